/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/pivoted.h"
#include "host/lapack.h"
#include "host/numbers.h"

#include <float.h>
#include <math.h>

host_pivoting bqr_host_pivoting(batchqr_type type, int n, int k, bqr_arena *arena) {
  host_pivoting w;
  w.norms = bqr_arena_take(arena, n, sizeof *w.norms);
  w.computed = bqr_arena_take(arena, n, sizeof *w.computed);
  w.order = bqr_arena_take(arena, n, sizeof *w.order);
  w.lapack = bqr_arena_take(arena, bqr_max(n, k), bqr_type_bytes(type));
  return w;
}

static void exchange(batchqr_type type, const host_member *x, const host_pivoting *w, int i, int j) {
  if (i == j) return;
  unsigned char *p = host_at(type, x->a, x->lda, 0, i), *q = host_at(type, x->a, x->lda, 0, j);
  for (size_t b = 0; b < (size_t)x->m * bqr_type_bytes(type); b++) {
    const unsigned char byte = p[b];
    p[b] = q[b];
    q[b] = byte;
  }
  const int column = w->order[i];
  w->order[i] = w->order[j];
  w->order[j] = column;
  w->norms[j] = w->norms[i];
  w->computed[j] = w->computed[i];
}

/* The first of the longest columns from `first` on. */
static int longest(const host_pivoting *w, int first, int n) {
  int pivot = first;
  for (int j = first + 1; j < n; j++)
    if (w->norms[j] > w->norms[pivot]) pivot = j;
  return pivot;
}

/* Takes row j off the norm of a column, which is computed anew where too little of it would be left. */
static void downdate(batchqr_type type, const host_member *x, const host_pivoting *w, int j, int column) {
  const double eps = host_is_single(type) ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
  double *norm = &w->norms[column], *computed = &w->computed[column];
  if (*norm == 0) return;
  const double part = cabs(bqr_host_get(type, host_at(type, x->a, x->lda, j, column))) / *norm;
  const double left = fmax(0, (1 - part) * (1 + part)), since = *norm / *computed;
  if (left * since * since > sqrt(eps))
    *norm *= sqrt(left);
  else
    *norm = *computed = bqr_lapack_norm(type, x->m - j - 1, host_at(type, x->a, x->lda, j + 1, column));
}

int bqr_host_factor_pivoted(batchqr_type type, const host_member *x, const host_pivoting *w, int most,
                            double abstol, double reltol) {
  const int m = x->m, n = x->n;
  double length = 0;
  for (int j = 0; j < n; j++) {
    w->order[j] = j;
    w->norms[j] = w->computed[j] = bqr_lapack_norm(type, m, host_at(type, x->a, x->lda, 0, j));
    length = fmax(length, w->norms[j]);
  }
  const double tolerance = fmax(abstol, reltol * length);
  for (int j = 0; j < most; j++) {
    const int pivot = longest(w, j, n);
    if (!(w->norms[pivot] > tolerance)) return j;
    exchange(type, x, w, j, pivot);
    void *column = host_at(type, x->a, x->lda, j, j), *tau = host_offset(x->tau, bqr_type_bytes(type), j);
    bqr_lapack_larfg(type, m - j, column, tau);
    bqr_lapack_larf(type, m - j, n - j - 1, column, tau, host_at(type, x->a, x->lda, j, j + 1), x->lda,
                    w->lapack);
    if (x->c)
      bqr_lapack_larf(type, m - j, x->k, column, tau, host_at(type, x->c, x->ldc, j, 0), x->ldc, w->lapack);
    for (int i = j + 1; i < n; i++) downdate(type, x, w, j, i);
  }
  return most;
}
