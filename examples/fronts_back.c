/* SPDX-License-Identifier: BSD-3-Clause */
/* Back-substitution, from the root to the leaves, with R on the host. */
#include "fronts_solver.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A front's unknowns in the order of batch_geqp3(), the first `rank` of which are known, to their own order:
 * the others are zero. */
static void unpivot(const fr_solver *s, const fr_front *f, double *own) {
  const int *jpvt = s->host_jpvt + f->first;
  double *found = ex_alloc((size_t)f->rank, sizeof *found);
  memcpy(found, own, (size_t)f->rank * sizeof *found);
  for (int j = 0; j < f->k; j++) own[jpvt[j]] = j < f->rank ? found[j] : 0;
  free(found);
}

/* y := R11^-1 (c - R12 y_rest), where y are unknowns in the order of elimination. */
static void solve_front(const fr_solver *s, const fr_front *f, double *y) {
  const double *r = s->host_r + f->r_at;
  const int *rest = s->tree->rest + f->rest_at;
  double *own = y + f->first;
  for (int i = 0; i < f->k; i++) own[i] = i < f->rank ? r[i + (int64_t)f->n * f->k] : 0;
  for (int j = f->k; j < f->n; j++)
    for (int i = 0; i < f->rank; i++) own[i] -= r[i + (int64_t)j * f->k] * y[rest[j - f->k]];
  for (int j = f->rank - 1; j >= 0; j--) {
    own[j] /= r[j + (int64_t)j * f->k];
    for (int i = 0; i < j; i++) own[i] -= r[i + (int64_t)j * f->k] * own[j];
  }
  if (f->pivoted) unpivot(s, f, own);
}

/* The Frobenius norm of what counted as zero in the front's columns that depend on others. */
static double neglected_norm(const fr_solver *s, const fr_front *f) {
  double norm = 0;
  for (int j = f->rank; j < f->k; j++)
    norm = hypot(norm, fr_norm(f->k - f->rank, s->host_r + f->r_at + f->rank + (int64_t)j * f->k));
  return norm;
}

/* What is left of b where no column is: in the fronts, and in rows of A without an entry. */
static double dropped_norm(const fr_solver *s) {
  double norm = fr_norm(s->tree->count, s->host_dropped);
  for (int i = 0; i < s->a->rows; i++)
    if (s->a->start[i] == s->a->start[i + 1]) norm = hypot(norm, s->a->b[i]);
  return norm;
}

void fr_solve_back(const fr_solver *s, double *x) {
  const fr_tree *t = s->tree;
  double *y = ex_alloc((size_t)s->a->cols, sizeof *y);
  for (int l = t->num_levels - 1; l >= 0; l--) {
#pragma omp parallel for schedule(dynamic, 16)
    for (int i = t->levels[l].begin; i < t->levels[l].end; i++) solve_front(s, &t->fronts[i], y);
  }
  for (int p = 0; p < s->a->cols; p++) x[t->order[p]] = y[p];
  free(y);
  for (int i = 0; i < t->count; i++) {
    s->report->again += t->fronts[i].pivoted;
    s->report->rank += t->fronts[i].rank;
    s->report->neglected = hypot(s->report->neglected, neglected_norm(s, &t->fronts[i]));
  }
  s->report->dropped = dropped_norm(s);
}
