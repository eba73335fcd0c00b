/* SPDX-License-Identifier: BSD-3-Clause */
/* Solutions of GELS judged, in complex long double for all types: the systems are small, and few right-hand
 * sides are looked at. */
#include "residual.h"
#include "memory.h"
#include "types.h"

#include <complex.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

typedef long double _Complex wide;

/* op(A): rows x cols; in wide numbers, by columns. */
typedef struct equations {
  batchqr_type type;
  int rows, cols;
  wide *a;
  long double norm; /* Frobenius */
} equations;

static wide load(batchqr_type type, const void *a, int64_t i) {
  switch (type) {
  case BATCHQR_S:
    return ((const float *)a)[i];
  case BATCHQR_D:
    return ((const double *)a)[i];
  case BATCHQR_C:
    return ((const float _Complex *)a)[i];
  default:
    return ((const double _Complex *)a)[i];
  }
}

static wide *vectors(int64_t elements) { return memory_host((size_t)elements * sizeof(wide)); }

static long double norm(const wide *x, int n) {
  long double sum = 0.0L;
  for (int i = 0; i < n; i++) sum += creall(x[i]) * creall(x[i]) + cimagl(x[i]) * cimagl(x[i]);
  return sqrtl(sum);
}

static wide dot(const wide *x, const wide *y, int n) {
  wide sum = 0;
  for (int i = 0; i < n; i++) sum += conjl(x[i]) * y[i];
  return sum;
}

static void axpy(wide s, const wide *x, wide *y, int n) {
  for (int i = 0; i < n; i++) y[i] += s * x[i];
}

static equations load_system(batchqr_type type, batchqr_trans trans, int m, int n, const void *a, int lda) {
  bool plain = trans == BATCHQR_NO_TRANS;
  equations s = {.type = type, .rows = plain ? m : n, .cols = plain ? n : m, .a = vectors((int64_t)m * n)};
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      wide x = load(type, a, (int64_t)j * lda + i);
      s.a[plain ? (int64_t)j * m + i : (int64_t)i * n + j] = plain ? x : conjl(x);
    }
  for (int j = 0; j < s.cols; j++) s.norm = hypotl(s.norm, norm(s.a + (int64_t)j * s.rows, s.rows));
  return s;
}

/* The distance of x from the range of op(A)^H, for the x = op(A)^H z of least norm, next to
 * max(m,n) ||A|| ||z|| eps, which is what a small change of A makes of it; 0 where such a change may make a
 * different space of the range. */
static long double row_space_ratio(const equations *s, const wide *x, long double eps, long double eta) {
  int p = s->cols, q = s->rows;
  wide *f = vectors((int64_t)p * q), *r = vectors((int64_t)q * q), *z = vectors(q), *rest = vectors(p);
  for (int j = 0; j < q; j++)
    for (int i = 0; i < p; i++) f[(int64_t)j * p + i] = conjl(s->a[(int64_t)i * q + j]);
  for (int i = 0; i < p; i++) rest[i] = x[i];
  for (int j = 0; j < q; j++) { /* op(A)^H = F R by Gram and Schmidt, twice */
    wide *fj = f + (int64_t)j * p;
    for (int twice = 0; twice < 2; twice++)
      for (int l = 0; l < j; l++) {
        wide h = dot(f + (int64_t)l * p, fj, p);
        r[(int64_t)j * q + l] += h;
        axpy(-h, f + (int64_t)l * p, fj, p);
      }
    long double length = norm(fj, p);
    r[(int64_t)j * q + j] = length;
    for (int i = 0; i < p && length > 0.0L; i++) fj[i] /= length;
    z[j] = dot(fj, rest, p);
    axpy(-z[j], fj, rest, p);
  }
  long double ratio = 0.0L, least = s->norm;
  for (int j = 0; j < q; j++) least = fminl(least, creall(r[(int64_t)j * q + j]));
  for (int j = q - 1; j >= 0; j--) {
    z[j] /= r[(int64_t)j * q + j];
    axpy(-z[j], r + (int64_t)j * q, z, j);
  }
  if (least > 1000 * eps * s->norm) ratio = norm(rest, p) / (p * (s->norm * norm(z, q) * eps + eta));
  free(f), free(r), free(z), free(rest);
  return ratio;
}

/* What a small change of A and b makes of b - op(A) x. */
static long double slack(const equations *s, long double eps, long double eta, long double x, long double b) {
  int size = s->rows > s->cols ? s->rows : s->cols;
  return size * ((s->norm * x + b) * eps + (s->norm + 1.0L) * eta);
}

static long double column_ratio(const equations *s, const wide *b, long double b_norm, const wide *x,
                                const double *norm_of_b) {
  long double eps = type_eps(s->type), eta = type_eta(s->type), ratio;
  wide *r = vectors(s->rows);
  for (int i = 0; i < s->rows; i++) r[i] = b[i];
  for (int j = 0; j < s->cols; j++) axpy(-x[j], s->a + (int64_t)j * s->rows, r, s->rows);
  long double left = norm(r, s->rows), few = slack(s, eps, eta, norm(x, s->cols), b_norm);
  if (s->rows >= s->cols) { /* what is left is orthogonal to the columns */
    long double sum = 0.0L;
    for (int j = 0; j < s->cols; j++) sum = hypotl(sum, cabsl(dot(s->a + (int64_t)j * s->rows, r, s->rows)));
    ratio = sum == 0.0L ? 0.0L : sum / (s->norm * few);
  } else {
    ratio = left == 0.0L ? 0.0L : left / few;
    if ((int64_t)s->rows * s->rows * s->cols < 1000000) ratio = fmaxl(ratio, row_space_ratio(s, x, eps, eta));
  }
  const long double off = norm_of_b != NULL ? fabsl(left - *norm_of_b) / (few + eta) : 0.0L;
  if (!(off <= ratio)) ratio = off; /* a NaN, too */
  free(r);
  return ratio != ratio ? INFINITY : ratio;
}

double residual_gels(batchqr_type type, batchqr_trans trans, int m, int n, int k, const void *a, int lda,
                     const void *b, int ldb, const void *x, int ldx, const void *norms, int columns) {
  int chosen = columns > 0 && columns < k ? columns : k;
  long double worst = 0.0L;
  equations s = load_system(type, trans, m, n, a, lda);
  wide *bj = vectors(s.rows), *xj = vectors(s.cols);
  long double b_norm = 0.0L;
  for (int j = 0; j < k; j++)
    for (int i = 0; i < s.rows; i++) b_norm = hypotl(b_norm, cabsl(load(type, b, (int64_t)j * ldb + i)));
  for (int c = 0; c < chosen; c++) {
    int j = chosen > 1 ? (int)((int64_t)c * (k - 1) / (chosen - 1)) : 0;
    double given = norms == NULL          ? 0.0
                   : type_is_double(type) ? ((const double *)norms)[j]
                                          : ((const float *)norms)[j];
    for (int i = 0; i < s.rows; i++) bj[i] = load(type, b, (int64_t)j * ldb + i);
    for (int i = 0; i < s.cols; i++) xj[i] = load(type, x, (int64_t)j * ldx + i);
    worst = fmaxl(worst, column_ratio(&s, bj, b_norm, xj, norms != NULL ? &given : NULL));
  }
  free(s.a), free(bj), free(xj);
  return (double)worst;
}

/* The first `rank` columns of A P, made orthonormal twice over, Q; A^H Q's adjoint as equations. */
static equations range_of(const equations *s, const int *jpvt, int rank, wide *q) {
  equations r = {.type = s->type, .rows = rank, .cols = s->cols, .a = vectors((int64_t)rank * s->cols)};
  const int m = s->rows;
  for (int j = 0; j < rank; j++) {
    wide *qj = q + (int64_t)j * m;
    const wide *aj = s->a + (int64_t)jpvt[j] * m;
    for (int i = 0; i < m; i++) qj[i] = aj[i];
    for (int twice = 0; twice < 2; twice++)
      for (int l = 0; l < j; l++) axpy(-dot(q + (int64_t)l * m, qj, m), q + (int64_t)l * m, qj, m);
    const long double length = norm(qj, m);
    for (int i = 0; i < m && length > 0.0L; i++) qj[i] /= length;
  }
  for (int j = 0; j < s->cols; j++)
    for (int i = 0; i < rank; i++)
      r.a[(int64_t)j * rank + i] = dot(q + (int64_t)i * m, s->a + (int64_t)j * m, m);
  for (int j = 0; j < r.cols; j++) r.norm = hypotl(r.norm, norm(r.a + (int64_t)j * rank, rank));
  return r;
}

static bool is_order(const int *jpvt, int n) {
  bool *taken = memory_host((size_t)n * sizeof *taken), good = true;
  for (int j = 0; j < n && good; j++) {
    good = jpvt[j] >= 0 && jpvt[j] < n && !taken[jpvt[j]];
    if (good) taken[jpvt[j]] = true;
  }
  free(taken);
  return good;
}

double residual_gelsy(batchqr_type type, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
                      const void *x, int ldx, const int *jpvt, int rank, int columns) {
  if (rank < 0 || rank > m || rank > n || (rank > 0 && !is_order(jpvt, n))) return INFINITY;
  const int chosen = columns > 0 && columns < k ? columns : k;
  const long double eps = type_eps(type), eta = type_eta(type);
  equations s = load_system(type, BATCHQR_NO_TRANS, m, n, a, lda);
  wide *q = vectors((int64_t)m * rank), *bj = vectors(m), *xj = vectors(n);
  equations r = range_of(&s, jpvt, rank, q);
  long double worst = 0.0L, b_norm = 0.0L;
  for (int j = 0; j < k; j++)
    for (int i = 0; i < m; i++) b_norm = hypotl(b_norm, cabsl(load(type, b, (int64_t)j * ldb + i)));
  for (int c = 0; c < chosen; c++) {
    const int j = chosen > 1 ? (int)((int64_t)c * (k - 1) / (chosen - 1)) : 0;
    long double sum = 0.0L, ratio;
    for (int i = 0; i < m; i++) bj[i] = load(type, b, (int64_t)j * ldb + i);
    for (int i = 0; i < n; i++) xj[i] = load(type, x, (int64_t)j * ldx + i);
    const long double few = slack(&s, eps, eta, norm(xj, n), b_norm);
    for (int i = 0; i < n; i++) axpy(-xj[i], s.a + (int64_t)i * m, bj, m);
    for (int i = 0; i < rank; i++) sum = hypotl(sum, cabsl(dot(s.a + (int64_t)jpvt[i] * m, bj, m)));
    ratio = sum == 0.0L ? 0.0L : sum / (s.norm * few);
    if (rank == 0) ratio = norm(xj, n) > 0.0L ? INFINITY : 0.0L;
    if (rank > 0 && rank < n) ratio = fmaxl(ratio, row_space_ratio(&r, xj, eps, eta));
    worst = fmaxl(worst, ratio != ratio ? INFINITY : ratio);
  }
  free(s.a), free(r.a), free(q), free(bj), free(xj);
  return (double)worst;
}
