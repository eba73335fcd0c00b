/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/complete.h"
#include "host/lapack.h"
#include "host/numbers.h"
#include "host/range.h"
#include "host/reflectors.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* work: of xGEQRF and xORMQR, and a column. */
host_complete bqr_host_complete(const bqr_problem *problem, int columns, bqr_arena *arena) {
  const size_t size = bqr_type_bytes(problem->type);
  const int n = problem->n, q = bqr_min(problem->m, n);
  host_complete f = {.type = problem->type};
  f.pivoting = bqr_host_pivoting(problem->type, n, columns, arena);
  f.l = bqr_arena_take(arena, n, (size_t)q * size);
  f.tau_l = bqr_arena_take(arena, q, size);
  f.work = bqr_arena_take(arena, bqr_max(1, bqr_max(n, columns)), 64 * size);
  return f;
}

void bqr_host_complete_factor(host_complete *f, const host_member *x, const bqr_args *args) {
  const int k = bqr_min(x->m, x->n);
  f->x = x;
  f->range = bqr_host_matrix_range(f->type, x->m, x->n, x->a, x->lda);
  if (f->range) bqr_host_scale(f->type, x->m, x->n, x->a, x->lda, f->range);
  const double roundings = (host_is_single(f->type) ? FLT_EPSILON : DBL_EPSILON) * bqr_max(x->m, x->n);
  f->rank =
      bqr_host_factor_pivoted(f->type, x, &f->pivoting, bqr_min(k, args->kmax), ldexp(args->abstol, f->range),
                              args->reltol > 0 ? args->reltol : roundings);
  for (int j = f->rank; j < k; j++) bqr_host_set(f->type, host_offset(x->tau, bqr_type_bytes(f->type), j), 0);
  if (f->rank == 0 || f->rank == x->n) return;
  bqr_lapack_laset(f->type, x->n, f->rank, f->l, x->n, 0);
  for (int j = 0; j < x->n; j++)
    for (int i = 0; i < f->rank && i <= j; i++)
      bqr_host_copy_adjoint(f->type, 1, 1, host_at(f->type, x->a, x->lda, i, j), 1,
                            host_at(f->type, f->l, x->n, j, i), 1);
  bqr_lapack_geqrf(f->type, x->n, f->rank, f->l, x->n, f->tau_l, f->work, 64 * f->rank);
}

/* The rows of a column where the columns of A were before they changed places. */
static void move_back(const host_complete *f, void *column) {
  const size_t size = bqr_type_bytes(f->type);
  for (int i = 0; i < f->x->n; i++)
    memcpy(host_offset(f->work, size, f->pivoting.order[i]), host_offset(column, size, i), size);
  memcpy(column, f->work, (size_t)f->x->n * size);
}

/* Brings a column's y to the size of R, so that no part of x underflows that counts: y may be far smaller
 * than b. Returns the exponent. */
static int bring_to_r(const host_complete *f, void *column) {
  const int shift = bqr_host_exponent(f->type, 1, f->x->a) - bqr_host_exponent(f->type, f->rank, column);
  bqr_host_scale(f->type, f->rank, 1, column, f->rank, shift);
  return shift;
}

/* HOST_LINES columns at most. */
static void solve_columns(const host_complete *f, int columns, void *c, int ldc, const int *exponents) {
  const host_member *x = f->x;
  const int n = x->n, rank = f->rank;
  int shifts[HOST_LINES];
  for (int j = 0; j < columns; j++) shifts[j] = bring_to_r(f, host_at(f->type, c, ldc, 0, j));
  if (rank == n)
    bqr_lapack_trtrs(f->type, false, n, columns, x->a, x->lda, c, ldc);
  else {
    bqr_lapack_laset(f->type, n - rank, columns, host_at(f->type, c, ldc, rank, 0), ldc, 0);
    bqr_lapack_trtrs(f->type, true, rank, columns, f->l, n, c, ldc);
    bqr_lapack_ormqr(f->type, BATCHQR_LEFT, false, n, columns, rank, f->l, n, f->tau_l, c, ldc, f->work,
                     64 * columns);
  }
  for (int j = 0; j < columns; j++) {
    void *column = host_at(f->type, c, ldc, 0, j);
    bqr_host_scale(f->type, n, 1, column, ldc, f->range - shifts[j] - (exponents ? exponents[j] : 0));
    move_back(f, column);
  }
}

void bqr_host_complete_solve(const host_complete *f, int columns, void *c, int ldc, const int *exponents) {
  if (f->x->n == 0) return;
  if (f->rank == 0) bqr_lapack_laset(f->type, f->x->n, columns, c, ldc, 0);
  for (int j = 0; j < columns && f->rank > 0; j += HOST_LINES)
    solve_columns(f, bqr_min(HOST_LINES, columns - j), host_at(f->type, c, ldc, 0, j), ldc,
                  exponents ? exponents + j : NULL);
}
