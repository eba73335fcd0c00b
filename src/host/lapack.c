/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/lapack.h"
#include "batch.h"

#include <lapacke.h>

/* One of four expressions. */
#define BY_TYPE(TYPE, S, D, C, Z)                                                                            \
  ((TYPE) == BATCHQR_S ? (S) : (TYPE) == BATCHQR_D ? (D) : (TYPE) == BATCHQR_C ? (C) : (Z))

/* CALL(letter, name), where real types have another name than complex ones. */
#define CALL_NAMED(TYPE, CALL, REAL, COMPLEX)                                                                \
  BY_TYPE(TYPE, CALL(s, REAL), CALL(d, REAL), CALL(c, COMPLEX), CALL(z, COMPLEX))
#define CALL_TYPE(TYPE, CALL, NAME) CALL_NAMED(TYPE, CALL, NAME, NAME)

/* op(.) = ^H in LAPACK's letters. */
static char adjoint_letter(batchqr_type type) { return type == BATCHQR_C || type == BATCHQR_Z ? 'C' : 'T'; }

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
