/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/lapack.h"
#include "host/member.h"

#include <cblas.h>
#include <complex.h>
#include <float.h>
#include <lapacke.h>
#include <limits.h>
#include <math.h>

/* One of four expressions. */
#define BY_TYPE(TYPE, S, D, C, Z)                                                                            \
  ((TYPE) == BATCHQR_S ? (S) : (TYPE) == BATCHQR_D ? (D) : (TYPE) == BATCHQR_C ? (C) : (Z))

/* CALL(letter, name), where real types have another name than complex ones. */
#define CALL_NAMED(TYPE, CALL, REAL, COMPLEX)                                                                \
  BY_TYPE(TYPE, CALL(s, REAL), CALL(d, REAL), CALL(c, COMPLEX), CALL(z, COMPLEX))
#define CALL_TYPE(TYPE, CALL, NAME) CALL_NAMED(TYPE, CALL, NAME, NAME)

/* op(.) = ^H in LAPACK's letters. */
static char adjoint_letter(batchqr_type type) { return host_is_complex(type) ? 'C' : 'T'; }

#define FACTOR(letter, name) LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, m, n, a, lda, tau, work, lwork)
void bqr_lapack_geqrf(batchqr_type type, int m, int n, void *a, int lda, void *tau, void *work, int lwork) {
  CALL_TYPE(type, FACTOR, geqrf);
}
void bqr_lapack_geqrfp(batchqr_type type, int m, int n, void *a, int lda, void *tau, void *work, int lwork) {
  CALL_TYPE(type, FACTOR, geqrfp);
}

#define FACTOR_WITH_T(letter, name) LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, m, n, a, lda, t, ldt)
void bqr_lapack_geqrt3(batchqr_type type, int m, int n, void *a, int lda, void *t, int ldt) {
  CALL_TYPE(type, FACTOR_WITH_T, geqrt3);
}

#define FORM(letter, name) LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, m, n, k, a, lda, tau, work, lwork)
void bqr_lapack_orgqr(batchqr_type type, int m, int n, int k, void *a, int lda, const void *tau, void *work,
                      int lwork) {
  CALL_NAMED(type, FORM, orgqr, ungqr);
}

#define APPLY(letter, name)                                                                                  \
  LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, from, trans, m, n, k, a, lda, tau, c, ldc, work, lwork)
void bqr_lapack_ormqr(batchqr_type type, batchqr_side side, bool adjoint, int m, int n, int k, void *a,
                      int lda, const void *tau, void *c, int ldc, void *work, int lwork) {
  char from = side == BATCHQR_LEFT ? 'L' : 'R', trans = adjoint ? adjoint_letter(type) : 'N';
  CALL_NAMED(type, APPLY, ormqr, unmqr);
}

#define LARFT(letter, name)                                                                                  \
  LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, 'F', 'C', rows, k, v, ldv, tau, t, ldt)
void bqr_lapack_larft(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau, void *t,
                      int ldt) {
  CALL_TYPE(type, LARFT, larft);
}

#define LARFB(letter, name)                                                                                  \
  LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, left ? 'L' : 'R', trans, 'F', 'C', m, n, k, v, ldv, t,     \
                                ldt, c, ldc, work, left ? n : m)
void bqr_lapack_larfb(batchqr_type type, batchqr_side side, bool adjoint, int m, int n, int k, const void *v,
                      int ldv, const void *t, int ldt, void *c, int ldc, void *work) {
  bool left = side == BATCHQR_LEFT;
  char trans = adjoint ? adjoint_letter(type) : 'N';
  CALL_TYPE(type, LARFB, larfb);
}

#define SET(letter, name) LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, 'A', m, n, 0, diagonal, a, lda)
void bqr_lapack_laset(batchqr_type type, int m, int n, void *a, int lda, int diagonal) {
  CALL_TYPE(type, SET, laset);
}

#define SOLVE(letter, name)                                                                                  \
  LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, 'U', trans, 'N', n, k, a, lda, b, ldb)
bool bqr_lapack_trtrs(batchqr_type type, bool adjoint, int n, int k, const void *a, int lda, void *b,
                      int ldb) {
  char trans = adjoint ? adjoint_letter(type) : 'N';
  return CALL_TYPE(type, SOLVE, trtrs) == 0;
}

#define NORM(letter, name)                                                                                   \
  LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, 'F', rows, 1, column, bqr_max(1, rows), NULL)
double bqr_lapack_norm(batchqr_type type, int rows, const void *column) {
  return CALL_TYPE(type, NORM, lange);
}

#define REFLECT(letter, name)                                                                                \
  LAPACKE_##letter##name##_work(n, column, host_offset(column, bqr_type_bytes(type), 1), 1, tau)
void bqr_lapack_larfg(batchqr_type type, int n, void *column, void *tau) { CALL_TYPE(type, REFLECT, larfg); }

void bqr_lapack_larf(batchqr_type type, int m, int n, void *column, const void *tau, void *c, int ldc,
                     void *work) {
  if (n == 0) return;
#define LARF(letter, T)                                                                                      \
  do {                                                                                                       \
    T *v = column, first = *v;                                                                               \
    *v = 1;                                                                                                  \
    LAPACKE_##letter##larfx_work(LAPACK_COL_MAJOR, 'L', m, n, v, CONJUGATE_##letter(*(const T *)tau), c,     \
                                 ldc, work);                                                                 \
    *v = first;                                                                                              \
  } while (0)
#define CONJUGATE_s(x) (x)
#define CONJUGATE_d(x) (x)
#define CONJUGATE_c(x) conjf(x)
#define CONJUGATE_z(x) conj(x)
  switch (type) {
  case BATCHQR_S:
    LARF(s, float);
    break;
  case BATCHQR_D:
    LARF(d, double);
    break;
  case BATCHQR_C:
    LARF(c, lapack_complex_float);
    break;
  default:
    LARF(z, lapack_complex_double);
    break;
  }
}

/* --- singular values, eigenvalues: work begins with the elements, then come real numbers, then ints */

typedef struct pieces {
  size_t elements, reals, ints;
} pieces;

/* SIZE_MAX: LAPACK's ints do not count them. */
static size_t bytes_of(batchqr_type type, pieces p) {
  if (p.elements > INT_MAX || p.reals > INT_MAX || p.ints > INT_MAX) return SIZE_MAX;
  return host_aligned(p.elements * bqr_type_bytes(type)) + host_aligned(p.reals * bqr_real_bytes(type)) +
         p.ints * sizeof(int);
}
static void *reals_in(batchqr_type type, pieces p, void *work) {
  return host_offset(work, 1, (int64_t)host_aligned(p.elements * bqr_type_bytes(type)));
}
static void *ints_in(batchqr_type type, pieces p, void *work) {
  return host_offset(reals_in(type, p, work), 1, (int64_t)host_aligned(p.reals * bqr_real_bytes(type)));
}

static pieces gejsv_pieces(batchqr_type type, int m, int n) {
  const size_t rows = (size_t)m, cols = (size_t)n;
  return (pieces){2 * cols * cols + 8 * cols + 2 * rows + 64,
                  host_is_complex(type) ? 2 * (rows + cols) + 64 : 0, rows + 3 * cols + 4};
}

size_t bqr_lapack_gejsv_work(batchqr_type type, int m, int n) {
  return bytes_of(type, gejsv_pieces(type, m, n));
}

/* What the singular values are to be multiplied by: xGEJSV gives it as a quotient. */
static void multiply(batchqr_type type, int n, void *s, double by) {
  for (int i = 0; i < n && by != 1; i++)
    if (host_is_single(type))
      ((float *)s)[i] = (float)(((float *)s)[i] * by);
    else
      ((double *)s)[i] *= by;
}

int bqr_lapack_gejsv(batchqr_type type, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *v,
                     int ldv, void *work) {
  const pieces p = gejsv_pieces(type, m, n);
  const int lwork = (int)p.elements, lrwork = (int)p.reals;
  const char jobu = u ? 'U' : 'N', jobv = v ? 'V' : 'N';
  void *reals = reals_in(type, p, work);
  int *ints = ints_in(type, p, work), info = 0;
  /* Of A = D1 C D2 with a well-conditioned C, no column is thought to be zero that is not; no transposition.
   */
#define GEJSV(letter, ...)                                                                                   \
  info = LAPACKE_##letter##gejsv_work(LAPACK_COL_MAJOR, 'F', jobu, jobv, 'R', 'N', 'N', m, n, a, lda, s, u,  \
                                      ldu, v, ldv, work, lwork, __VA_ARGS__)
  switch (type) {
  case BATCHQR_S:
    GEJSV(s, ints);
    multiply(type, n, s, (double)((float *)work)[0] / ((float *)work)[1]);
    break;
  case BATCHQR_D:
    GEJSV(d, ints);
    multiply(type, n, s, ((double *)work)[0] / ((double *)work)[1]);
    break;
  case BATCHQR_C:
    GEJSV(c, reals, lrwork, ints);
    multiply(type, n, s, (double)((float *)reals)[0] / ((float *)reals)[1]);
    break;
  default:
    GEJSV(z, reals, lrwork, ints);
    multiply(type, n, s, ((double *)reals)[0] / ((double *)reals)[1]);
    break;
  }
  return info;
}

static pieces syevd_pieces(batchqr_type type, int n) {
  const size_t order = (size_t)n, ints = 3 + 5 * order;
  if (!host_is_complex(type)) return (pieces){1 + 6 * order + 2 * order * order, 0, ints};
  return (pieces){1 + 2 * order + order * order, 1 + 5 * order + 2 * order * order, ints};
}

size_t bqr_lapack_syevd_work(batchqr_type type, int n) { return bytes_of(type, syevd_pieces(type, n)); }

/* Of a tridiagonal matrix, d and e, what is off the diagonal and far below roundoff becomes zero. */
static void drop_negligible(batchqr_type type, int n, const void *d, void *e) {
  const bool single = host_is_single(type);
  const double eps = single ? FLT_EPSILON : DBL_EPSILON;
  double norm = 0;
  for (int i = 0; i < n; i++) {
    norm = fmax(norm, fabs(single ? (double)((const float *)d)[i] : ((const double *)d)[i]));
    if (i < n - 1) norm = fmax(norm, fabs(single ? (double)((float *)e)[i] : ((double *)e)[i]));
  }
  for (int i = 0; i < n - 1; i++)
    if (single && fabsf(((float *)e)[i]) < eps * eps * norm)
      ((float *)e)[i] = 0;
    else if (!single && fabs(((double *)e)[i]) < eps * eps * norm)
      ((double *)e)[i] = 0;
}

/* xSYTRD and xSTERF, which is what xSYEVD does; but xSTERF squares numbers, and where squares of those off
 * the diagonal are subnormal its eigenvalues are good to seven digits (seen in LAPACK 3.11). */
static int eigenvalues(batchqr_type type, batchqr_uplo uplo, int n, void *a, int lda, void *w, void *work) {
  const pieces p = syevd_pieces(type, n);
  const bool complex_type = host_is_complex(type);
  const char triangle = uplo == BATCHQR_LOWER ? 'L' : 'U';
  void *tau = work, *e = complex_type ? reals_in(type, p, work) : host_at(type, work, n, 0, 1);
  void *rest = host_at(type, work, n, 0, complex_type ? 1 : 2);
  const int lwork = (int)p.elements - (complex_type ? 1 : 2) * n;
#define TRIDIAGONAL(letter, name)                                                                            \
  LAPACKE_##letter##name##_work(LAPACK_COL_MAJOR, triangle, n, a, lda, w, e, tau, rest, lwork)
  const int info = CALL_NAMED(type, TRIDIAGONAL, sytrd, hetrd);
  if (info) return info;
  drop_negligible(type, n, w, e);
  return host_is_single(type) ? LAPACKE_ssterf_work(n, w, e) : LAPACKE_dsterf_work(n, w, e);
}

int bqr_lapack_syevd(batchqr_type type, bool vectors, batchqr_uplo uplo, int n, void *a, int lda, void *w,
                     void *work) {
  if (!vectors) return eigenvalues(type, uplo, n, a, lda, w, work);
  const pieces p = syevd_pieces(type, n);
  const int lwork = (int)p.elements, lrwork = (int)p.reals, liwork = (int)p.ints;
  void *reals = reals_in(type, p, work);
  int *ints = ints_in(type, p, work);
#define EVD(routine, ...)                                                                                    \
  LAPACKE_##routine##_work(LAPACK_COL_MAJOR, 'V', uplo == BATCHQR_LOWER ? 'L' : 'U', n, a, lda, w, work,     \
                           lwork, __VA_ARGS__)
  switch (type) {
  case BATCHQR_S:
    return EVD(ssyevd, ints, liwork);
  case BATCHQR_D:
    return EVD(dsyevd, ints, liwork);
  case BATCHQR_C:
    return EVD(cheevd, reals, lrwork, ints, liwork);
  default:
    return EVD(zheevd, reals, lrwork, ints, liwork);
  }
}

int bqr_lapack_syev(batchqr_type type, batchqr_uplo uplo, int n, void *a, int lda, void *w, void *work) {
  const pieces p = syevd_pieces(type, n);
  const int lwork = (int)p.elements;
  void *reals = reals_in(type, p, work);
#define EV(routine, ...)                                                                                     \
  LAPACKE_##routine##_work(LAPACK_COL_MAJOR, 'V', uplo == BATCHQR_LOWER ? 'L' : 'U', n, a, lda, w,           \
                           __VA_ARGS__)
  switch (type) {
  case BATCHQR_S:
    return EV(ssyev, work, lwork);
  case BATCHQR_D:
    return EV(dsyev, work, lwork);
  case BATCHQR_C:
    return EV(cheev, work, lwork, reals);
  default:
    return EV(zheev, work, lwork, reals);
  }
}

void bqr_blas_gemm(batchqr_type type, bool adjoint, bool subtracts, int m, int n, int k, const void *a,
                   int lda, const void *b, int ldb, void *c, int ldc) {
  const CBLAS_TRANSPOSE op = adjoint ? CblasConjTrans : CblasNoTrans;
  const float alpha = subtracts ? -1 : 1, beta = subtracts;
  const lapack_complex_float alpha_c = alpha, beta_c = beta;
  const lapack_complex_double alpha_z = alpha, beta_z = beta;
#define GEMM(letter, ALPHA, BETA)                                                                            \
  cblas_##letter##gemm(CblasColMajor, op, CblasNoTrans, m, n, k, ALPHA, a, lda, b, ldb, BETA, c, ldc)
  switch (type) {
  case BATCHQR_S:
    GEMM(s, alpha, beta);
    break;
  case BATCHQR_D:
    GEMM(d, alpha, beta);
    break;
  case BATCHQR_C:
    GEMM(c, &alpha_c, &beta_c);
    break;
  default:
    GEMM(z, &alpha_z, &beta_z);
    break;
  }
}
