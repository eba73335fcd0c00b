/* SPDX-License-Identifier: BSD-3-Clause */
/* Pivots that depend on others.
 *
 * As in SuiteSparseQR (Heath: Some extensions of an algorithm for sparse linear least squares problems, SIAM
 * J. Sci. Stat. Comput. 3, 1982), a column whose part below the rows of R that are there already is no longer
 * than a tolerance counts as dependent: that part is taken for zero, the column makes no row of R, and its
 * unknown will be zero. As only columns with a zero in x are changed, x solves the least-squares problem of
 * the other columns without an error of the tolerance's size.
 *
 * R's diagonal tells whether a front has such pivots: hardly any has. In those that do, R's pivots' rows,
 *
 *     k pivots    other columns, b
 *   ┌───────────┬────────────────────┐          ┌──────┬────┬────────────────┐
 *   │ R R R R R │ R R R R R R R R R  │          │ R R R│R R │ R R R R R R R R│ rank rows
 *   │   R R R R │ R R R R R R R R R  │          │   R R│R R │ R R R R R R R R│
 *   │     0 R R │ R R R R R R R R R  │  ──────► │     R│R R │ R R R R R R R R│
 *   │       R R │ R R R R R R R R R  │          │      ├────┼────────────────┤
 *   │         0 │ R R R R R R R R R  │          │      │0 0 │ C C C C C C C C│ passed on
 *   ├───────────┼────────────────────┤          │      │0 0 │   C C C C C C C│
 *   │           │ C C C C C C C C C  │          ├──────┴────┤     C C C C C C│
 *   │           │   C C C C C C C C  │          │           │       C C C C C│
 *
 * are factored once more by batch_geqp3(), which exchanges pivots and stops at the tolerance, and then what
 * is below the rank's rows by batch_geqrf(). Both are batches of these fronts alone. A front with fewer rows
 * than pivots is one of them, whatever its numbers are. */
#include "fronts_solver.h"

#include <stdlib.h>

/* Fronts of a level, and a matrix in each: a batch. */
typedef struct selection {
  int count;
  int *front;
  int *m, *n, *k, *ld;
  double **a, **c, **tau;
  int **jpvt, **rank;
} selection;

static int smaller(int a, int b) { return a < b ? a : b; }

static void open_selection(selection *d, int most) {
  int **ints[] = {&d->front, &d->m, &d->n, &d->k, &d->ld};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) *ints[i] = ex_alloc((size_t)most, sizeof(int));
  d->count = 0;
  d->a = ex_alloc((size_t)most, sizeof *d->a);
  d->c = ex_alloc((size_t)most, sizeof *d->c);
  d->tau = ex_alloc((size_t)most, sizeof *d->tau);
  d->jpvt = ex_alloc((size_t)most, sizeof *d->jpvt);
  d->rank = ex_alloc((size_t)most, sizeof *d->rank);
}

static void close_selection(selection *d) {
  void *owned[] = {d->front, d->m, d->n, d->k, d->ld, d->a, d->c, d->tau, d->jpvt, d->rank};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}

/* Fronts without a row need nothing: their rank is 0. A NaN is for the check of info. */
static void find_dependent(const fr_solver *s, int l, selection *d) {
  const fr_level *level = &s->tree->levels[l];
  const size_t count = (size_t)(level->end - level->begin);
  batchqr_operands operands = {.a = s->front_address + level->begin, .range = s->range};
  ex_check(
      &s->backend,
      batchqr_plan_execute(s->backend.handle, s->range_plans[l], &operands, s->workspace, s->workspace_bytes),
      "range of R's diagonal");
  ex_copy_from_backend(&s->backend, s->host_range, s->range, 2 * count * sizeof *s->range);
  for (int i = level->begin; i < level->end; i++) {
    const fr_front *f = &s->tree->fronts[i];
    const double smallest = s->host_range[2 * (i - level->begin)];
    if (f->m > 0 && (f->m < f->k || !(smallest > s->core->tolerance))) d->front[d->count++] = i;
  }
}

/* --- the two factorizations */

/* Sets a selected front's pivots as the matrix to factor, with the other columns to apply Q^H to. */
static void select_pivots(const fr_solver *s, selection *d, int i) {
  const int front = d->front[i];
  const fr_front *f = &s->tree->fronts[front];
  d->m[i] = smaller(f->m, f->k), d->n[i] = f->k, d->k[i] = f->n + 1 - f->k, d->ld[i] = f->m;
  d->a[i] = s->front_at[front];
  d->c[i] = d->a[i] + (int64_t)f->m * f->k;
  d->tau[i] = s->tau_at[front];
  d->jpvt[i] = s->jpvt + f->first;
  d->rank[i] = s->rank + front;
}

/* ... and what is below the rank's rows. */
static void select_rest(const fr_solver *s, selection *d, int i) {
  const fr_front *f = &s->tree->fronts[d->front[i]];
  const int rank = s->host_rank[d->front[i]];
  d->m[i] = smaller(f->m, f->n + 1) - rank, d->n[i] = f->n + 1 - f->k;
  d->a[i] = s->front_at[d->front[i]] + rank + (int64_t)f->m * f->k;
}

static batchqr_batch batch_of(const selection *d) {
  return (batchqr_batch){.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = d->count,
                         .m_array = d->m,
                         .n_array = d->n,
                         .k_array = d->k,
                         .a = {.layout = BATCHQR_POINTERS, .ld_array = d->ld},
                         .c = {.layout = BATCHQR_POINTERS, .ld_array = d->ld},
                         .tau = {.layout = BATCHQR_POINTERS},
                         .jpvt = {.layout = BATCHQR_POINTERS},
                         .rank = {.layout = BATCHQR_POINTERS}};
}

static void *to_backend(const fr_solver *s, const selection *d, void *addresses) {
  return ex_copy_to_backend(&s->backend, addresses, (size_t)d->count * sizeof(void *));
}

static void factor_pivots(const fr_solver *s, selection *d) {
  for (int i = 0; i < d->count; i++) select_pivots(s, d, i);
  batchqr_batch batch = batch_of(d);
  batch.abstol = s->core->tolerance;
  void *a = to_backend(s, d, d->a), *c = to_backend(s, d, d->c), *tau = to_backend(s, d, d->tau);
  void *jpvt = to_backend(s, d, d->jpvt), *rank = to_backend(s, d, d->rank);
  ex_check(&s->backend, batch_geqp3(s->backend.handle, &batch, a, tau, jpvt, rank, c, NULL), "pivoted QR");
  void *copies[] = {a, c, tau, jpvt, rank};
  for (size_t i = 0; i < sizeof copies / sizeof *copies; i++) ex_free_copy(&s->backend, copies[i]);
}

static void factor_rest(const fr_solver *s, selection *d) {
  for (int i = 0; i < d->count; i++) select_rest(s, d, i);
  batchqr_batch batch = batch_of(d);
  void *a = to_backend(s, d, d->a), *tau = to_backend(s, d, d->tau);
  ex_check(&s->backend, batch_geqrf(s->backend.handle, &batch, a, tau, NULL), "QR of what is passed on");
  ex_free_copy(&s->backend, a);
  ex_free_copy(&s->backend, tau);
}

static void factor_again(const fr_solver *s, int l, selection *d) {
  const fr_level *level = &s->tree->levels[l];
  fr_clear_fronts(s, l, d->count, d->front);
  factor_pivots(s, d);
  ex_copy_from_backend(&s->backend, s->host_rank + level->begin, s->rank + level->begin,
                       (size_t)(level->end - level->begin) * sizeof *s->rank);
  factor_rest(s, d);
}

fr_change fr_settle_ranks(const fr_solver *s, int l) {
  const fr_level *level = &s->tree->levels[l];
  fr_change change = FR_SAME;
  selection d;
  open_selection(&d, level->end - level->begin);
  find_dependent(s, l, &d);
  if (d.count > 0) factor_again(s, l, &d);
  for (int i = level->begin, next = 0; i < level->end; i++) {
    fr_front *f = &s->tree->fronts[i];
    const int rank = f->rank, passed = f->passed;
    f->pivoted = next < d.count && d.front[next] == i;
    fr_set_rank(f, f->pivoted ? s->host_rank[i] : smaller(f->m, f->k));
    next += f->pivoted;
    if (f->rank != rank && change == FR_SAME) change = FR_RANKS;
    if (f->passed != passed) change = FR_ROWS;
  }
  close_selection(&d);
  return change;
}
