/* SPDX-License-Identifier: BSD-3-Clause */
#include "wide_block.h"
#include "batch.h"
#include "wy/geqrt_clusters.h"
#include "wy/wy_factor.h"

enum { WIDTH = BQR_BLOCK_WIDTH };

const bqr_panel_kind bqr_wide_kind = {.rows = 0, .many_threads = true};

bqr_panel_kind bqr_wide_kind_of_many(const bqr_problem *problem) {
  return (bqr_panel_kind){.rows = problem->m, .many_threads = true, .blocks = BQR_GEQRT_BLOCKS};
}

/* Reflectors of the steps s0 .. s1. */
int bqr_wide_reflectors(const bqr_wide_block *b, int s0, int s1) {
  return bqr_min(s1 * WIDTH, bqr_min(b->problem.m, b->problem.n)) - s0 * WIDTH;
}

/* Columns from .. to of A := (I - V T^H V^H) A, with the reflectors of the steps s0 .. s1. */
batchqr_status bqr_wide_update(const bqr_wide_block *b, const bqr_products *on, int s0, int s1, int from,
                               int to) {
  const int first = s0 * WIDTH;
  char *c = bqr_wide_in_a(b, first, from);
  const bqr_wy_product p = {.rows = b->problem.m - first,
                            .k = bqr_wide_reflectors(b, s0, s1),
                            .n = to - from,
                            .v = bqr_wide_in_a(b, first, first),
                            .ldv = b->lda,
                            .c = c,
                            .ldc = b->lda,
                            .t = bqr_wide_in_t(b, first, first),
                            .ldt = b->ldt,
                            .done = b->done,
                            .many = b->many};
  return bqr_products_apply(on, &b->problem, true, &p, c);
}

/* T of the steps s0 .. s1 from those of s0 .. mid and mid .. s1: above its diagonal -T1 (V1^H V2) T2. */
static batchqr_status merge(const bqr_wide_block *b, int s0, int mid, int s1) {
  const int first = s0 * WIDTH, second = mid * WIDTH, rows = b->problem.m - second;
  const int k1 = bqr_wide_reflectors(b, s0, mid), k2 = bqr_wide_reflectors(b, mid, s1);
  const bqr_products *on = b->on;
  const bqr_wy_product p = {.rows = rows,
                            .k = k1,
                            .n = k2,
                            .negative = true,
                            .v = bqr_wide_in_a(b, second, first),
                            .ldv = b->lda,
                            .c = bqr_wide_in_a(b, second, second),
                            .ldc = b->lda,
                            .t = bqr_wide_in_t(b, first, first),
                            .ldt = b->ldt,
                            .done = b->done,
                            .many = b->many};
  batchqr_status status = bqr_products_project(on, &b->problem, false, p);
  if (status) return status;
  const char *t2 = bqr_wide_in_t(b, second, second);
  char *to = bqr_wide_in_t(b, first, second);
  if (bqr_products_are_narrow(on, b->problem.type, &p, false))
    return bqr_wy_unite(b->problem.type, k1, k2, on->w2, t2, to, b->ldt, b->done, &b->many, on->stream);
  const bqr_gemm last = bqr_product_of_many(bqr_product(&b->problem, false, k1, k2, k2), &b->many, 0);
  return bqr_products_multiply(on, last, on->w2, b->ldt, t2, b->ldt, to, b->ldt);
}

/* Whether a step's reflectors are applied to other columns. */
bool bqr_wide_applied(const bqr_wide_block *b, int step) {
  return (step + 1) * WIDTH < b->problem.n || b->problem.k > 0 || b->all;
}

/* Whether one launch does `panels` panels from a step on, V and T included. */
static bool is_quick(const bqr_wide_block *b, int step, int panels) {
  const int rows = b->problem.m - step * WIDTH, width = panels * WIDTH;
  const int most = b->many.count > 0 ? bqr_wy_factor_rows_of_many(b->problem.type, width, b->steps.device)
                                     : bqr_wy_factor_rows(b->problem.type, width, b->steps.device);
  return bqr_wide_applied(b, step + panels - 1) && bqr_wide_reflectors(b, step, step + panels) == width &&
         rows >= BQR_WIDE_LEAST_ROWS && rows <= most;
}

static bqr_wy_panel panels_of(const bqr_wide_block *b, int step, int panels) {
  const int first = step * WIDTH;
  return (bqr_wy_panel){.rows = b->problem.m - b->origin,
                        .cols = b->width,
                        .at = first - b->origin,
                        .width = bqr_wide_reflectors(b, step, step + panels),
                        .a = bqr_wide_in_a(b, b->origin, b->origin),
                        .lda = b->lda,
                        .tau = (char *)b->args.tau.data + (size_t)first * b->size,
                        .r = b->r + (size_t)(b->origin * b->ldt) * b->size,
                        .t = b->t,
                        .ldr = b->ldt,
                        .ldt = b->ldt,
                        .sums = b->on->sums,
                        .counters = b->counters,
                        .done = b->done,
                        .positive = b->problem.positive,
                        .many = b->many};
}

static batchqr_status factor_quickly(const bqr_wide_block *b, int step, int panels) {
  const bqr_wy_panel panel = panels_of(b, step, panels);
  return bqr_wy_factor(b->problem.type, &panel, b->on->stream);
}

/* By a kernel that leaves V where LAPACK does, and T in the place of sums. */
static batchqr_status factor_by_clusters(const bqr_wide_block *b, int step) {
  const bool whole = bqr_wide_reflectors(b, step, step + 1) == WIDTH, applied = bqr_wide_applied(b, step);
  const bqr_wy_panel panel = panels_of(b, step, 1);
  void *t = whole && applied ? b->on->sums : NULL;
  const int64_t stride_t = b->many.own / (int64_t)b->size;
  batchqr_status status = bqr_panel_steps_clusters(&b->steps, &b->args, step, t, stride_t, b->on->stream);
  if (status || !applied) return status;
  return t ? bqr_geqrt_heads(b->problem.type, &panel, t, stride_t, b->on->stream)
           : bqr_wy_store(b->problem.type, &panel, b->on->stream);
}

static batchqr_status factor_panel(const bqr_wide_block *b, int step) {
  if (is_quick(b, step, 1)) return factor_quickly(b, step, 1);
  if (bqr_panel_steps_make_t(&b->steps, step)) return factor_by_clusters(b, step);
  batchqr_status status = bqr_panel_steps_factor(&b->steps, &b->args, step, b->on->stream);
  if (status || !bqr_wide_applied(b, step)) return status;
  bqr_wy_panel panel = panels_of(b, step, 1);
  if (bqr_wide_reflectors(b, step, step + 1) == WIDTH && !b->many.count)
    panel.top = bqr_panel_steps_top(&b->steps, step);
  return panel.top ? bqr_wy_unfold(b->problem.type, &panel, b->on->stream)
                   : bqr_wy_store(b->problem.type, &panel, b->on->stream);
}

/* Whether two panels are first tried at once: each of them would take several passes over A. */
bool bqr_wide_tall(const bqr_wide_block *b, int s0) {
  return !b->tried && !b->many.count && bqr_wy_tall_possible(b->problem.type, b->steps.device) &&
         bqr_wide_reflectors(b, s0, s0 + 2) == BQR_WY_TALL && bqr_panel_steps_tall(&b->steps, s0) &&
         bqr_panel_steps_tall(&b->steps, s0 + 1);
}

/* Tries both panels in one go, and enqueues their factorization one by one, too: where the try has succeeded,
 * it has said so on the device, and the launches behind it return at once. */
static batchqr_status factor_tall(const bqr_wide_block *b, int s0, bool with_t) {
  const bqr_wy_panel panel = panels_of(b, s0, 2);
  const int stored = bqr_wide_applied(b, s0 + 1) ? 2 * WIDTH : WIDTH;
  batchqr_status status =
      bqr_wy_tall(b->problem.type, &panel, stored, b->tall, b->steps.panels.m + s0, b->on->stream);
  bqr_wide_block rest = *b;
  rest.done = bqr_wy_tall_done(b->tall);
  rest.tried = true;
  rest.steps.later = false;
  if (!status && b->steps.later) {
    bqr_columns columns = b->steps.columns;
    columns.done = rest.done;
    status = bqr_columns_in(&b->problem, &b->args, &columns, b->on->stream);
  }
  return status ? status : bqr_wide_factor(&rest, s0, s0 + 2, with_t);
}

/* Factors the columns of the steps s0 .. s1 and forms their V and, if asked for, T. */
batchqr_status bqr_wide_factor(const bqr_wide_block *b, int s0, int s1, bool with_t) {
  if (s1 - s0 == 1) return factor_panel(b, s0);
  if (s1 - s0 == 2 && is_quick(b, s0, 2)) return factor_quickly(b, s0, 2);
  if (s1 - s0 == 2 && bqr_wide_tall(b, s0)) return factor_tall(b, s0, with_t);
  int half = 1;
  while (2 * half < s1 - s0) half *= 2;
  const int mid = s0 + half;
  batchqr_status status = bqr_wide_factor(b, s0, mid, true);
  if (!status) status = bqr_wide_update(b, b->on, s0, mid, mid * WIDTH, bqr_min(s1 * WIDTH, b->problem.n));
  if (!status) status = bqr_wide_factor(b, mid, s1, with_t);
  return status || !with_t ? status : merge(b, s0, mid, s1);
}

/* Products count as one. */
int bqr_wide_launches(const bqr_wide_block *b, int s0, int s1, bool with_t) {
  if (s1 - s0 <= 2 && is_quick(b, s0, s1 - s0)) return 1;
  if (s1 - s0 == 1)
    return (bqr_panel_steps_make_t(&b->steps, s0) ? 1 : bqr_panel_steps_launches(&b->steps, s0)) +
           bqr_wide_applied(b, s0);
  const int tall = s1 - s0 == 2 && bqr_wide_tall(b, s0) ? 2 : 0;
  int half = 1;
  while (2 * half < s1 - s0) half *= 2;
  return tall + bqr_wide_launches(b, s0, s0 + half, true) + 3 + bqr_wide_launches(b, s0 + half, s1, with_t) +
         (with_t ? 3 : 0);
}

batchqr_status bqr_wide_prepare(const bqr_problem *problem, const bqr_device *device) {
  bqr_problem member = *problem;
  member.count = 1;
  batchqr_status status = bqr_panel_steps_prepare(&member, device, bqr_wide_kind);
  if (!status) status = bqr_wy_prepare(problem->type);
  if (!status) status = bqr_wy_factor_prepare(problem->type, device);
  if (!status) status = bqr_larft_prepare(problem->type);
  if (!status) status = bqr_wy_narrow_prepare(problem->type);
  if (!status && bqr_wy_tall_possible(problem->type, device)) status = bqr_wy_tall_prepare(problem->type);
  return status;
}
