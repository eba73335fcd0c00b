/* SPDX-License-Identifier: BSD-3-Clause */
/* The same problem, solved by others. */
#include "fronts.h"

#include <float.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ||x - y|| / ||x|| */
static double difference(int n, const double *x, const double *y) {
  double *d = ex_alloc((size_t)n, sizeof *d);
  for (int j = 0; j < n; j++) d[j] = x[j] - y[j];
  const double norm = fr_norm(n, x), ratio = fr_norm(n, d) / (norm > 0 ? norm : 1);
  free(d);
  return ratio;
}

static double *by_dense_columns(const fr_matrix *a) {
  double *dense = ex_zeros((size_t)a->rows * a->cols, sizeof *dense);
  for (int i = 0; i < a->rows; i++)
    for (int64_t e = a->start[i]; e < a->start[i + 1]; e++)
      dense[i + (size_t)a->col[e] * a->rows] = a->value[e];
  return dense;
}

/* The limit is that of least squares, eps (cond + cond^2 tan), tan = ||r|| / (||A|| ||x||) (Higham: Accuracy
 * and Stability of Numerical Algorithms, 2002, chapter 20), times a modest constant. */
double fr_compare_dense(const fr_matrix *a, const double *x, double *limit) {
  const int m = a->rows, n = a->cols;
  double *dense = by_dense_columns(a), *b = ex_alloc((size_t)m, sizeof *b);
  memcpy(b, a->b, (size_t)m * sizeof *b);
  const double norm = fr_norm((int64_t)m * n, dense);
  if (LAPACKE_dgels(LAPACK_COL_MAJOR, 'N', m, n, 1, dense, m, b, m) != 0)
    ex_die(EX_FAILED, "LAPACK's dgels finds no full column rank");
  double reciprocal = 0;
  LAPACKE_dtrcon(LAPACK_COL_MAJOR, '1', 'U', 'N', n, dense, m, &reciprocal);
  const double cond = 1 / fmax(reciprocal, DBL_EPSILON), scale = norm * fr_norm(n, x);
  const double tangent = scale > 0 ? fr_norm(m - n, b + n) / scale : 0;
  *limit = 1000 * DBL_EPSILON * (cond + cond * cond * tangent);
  const double d = difference(n, x, b);
  free(dense);
  free(b);
  return d;
}

/* The residual is the distance of b from A's range, of which dgelsy knows all but what its tolerance hides.
 */
double fr_compare_dense_residual(const fr_matrix *a, double norm_r, double tolerance, double *limit) {
  const int m = a->rows, n = a->cols, most = m > n ? m : n;
  double *dense = by_dense_columns(a), *y = ex_zeros((size_t)most, sizeof *y),
         *r = ex_alloc((size_t)m, sizeof *r);
  int *jpvt = ex_zeros((size_t)n, sizeof *jpvt), rank;
  const double norm = fr_norm_bound(a);
  memcpy(y, a->b, (size_t)m * sizeof *y);
  if (LAPACKE_dgelsy(LAPACK_COL_MAJOR, m, n, 1, dense, m, y, most, jpvt, norm > 0 ? tolerance / norm : 0,
                     &rank) != 0)
    ex_die(EX_FAILED, "LAPACK's dgelsy failed");
  fr_residual(a, y, r);
  *limit = 1e-11 * (fr_norm(m, a->b) + norm * fr_norm(n, y));
  const double d = fabs(norm_r - fr_norm(m, r));
  free(dense);
  free(y);
  free(r);
  free(jpvt);
  return d;
}

#if HAVE_SUITESPARSE
#include <suitesparse/SuiteSparseQR_C.h>

/* A by columns, as SuiteSparseQR wants it. */
static cholmod_sparse *by_columns(const fr_matrix *a, cholmod_common *common) {
  const size_t entries = (size_t)a->start[a->rows];
  cholmod_sparse *rows =
      cholmod_l_allocate_sparse((size_t)a->cols, (size_t)a->rows, entries, 1, 1, 0, CHOLMOD_REAL, common);
  if (!rows) return NULL;
  int64_t *start = rows->p, *col = rows->i;
  for (int i = 0; i <= a->rows; i++) start[i] = a->start[i];
  for (size_t e = 0; e < entries; e++) col[e] = a->col[e];
  memcpy(rows->x, a->value, entries * sizeof(double));
  cholmod_sparse *columns = cholmod_l_transpose(rows, 1, common);
  cholmod_l_free_sparse(&rows, common);
  return columns;
}

static double residual_norm(const fr_matrix *a, const double *y) {
  double *r = ex_alloc((size_t)a->rows, sizeof *r);
  fr_residual(a, y, r);
  const double norm = fr_norm(a->rows, r);
  free(r);
  return norm;
}

void fr_compare_suitesparse(const fr_matrix *a, const double *x, double tolerance, fr_suitesparse *result) {
  cholmod_common common;
  const double start = ex_seconds();
  cholmod_l_start(&common);
  cholmod_sparse *columns = by_columns(a, &common);
  cholmod_dense *b = cholmod_l_allocate_dense((size_t)a->rows, 1, (size_t)a->rows, CHOLMOD_REAL, &common);
  if (!columns || !b) ex_die(EX_FAILED, "no memory for SuiteSparseQR");
  memcpy(b->x, a->b, (size_t)a->rows * sizeof(double));
  cholmod_dense *y = SuiteSparseQR_C_backslash(SPQR_ORDERING_DEFAULT, tolerance, columns, b, &common);
  if (!y) ex_die(EX_FAILED, "SuiteSparseQR failed: CHOLMOD's status %d", common.status);
  *result = (fr_suitesparse){.t_analyze = common.SPQR_analyze_time,
                             .t_factor = common.SPQR_factorize_time,
                             .t_all = ex_seconds() - start,
                             .flops = common.SPQR_flopcount,
                             .rank = (int)common.SPQR_istat[4],
                             .norm_r = residual_norm(a, y->x),
                             .difference = difference(a->cols, x, y->x)};
  cholmod_l_free_dense(&y, &common);
  cholmod_l_free_dense(&b, &common);
  cholmod_l_free_sparse(&columns, &common);
  cholmod_l_finish(&common);
}
#else
void fr_compare_suitesparse(const fr_matrix *a, const double *x, double tolerance, fr_suitesparse *result) {
  (void)a, (void)x, (void)tolerance, (void)result;
}
#endif
