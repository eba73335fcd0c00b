/* SPDX-License-Identifier: BSD-3-Clause */
/* Large members: right-looking over wide blocks of columns, each factored recursively (Elmroth and Gustavson:
 * the left half, its update of the right half, the right half, and T of both from T of each), so that all but
 * the panels of 32 columns are matrix products, see product_streams.h.
 *
 * Panels leave most of the GPU idle. A few members are under way at once, each in two streams: while one
 * factors the next block, the other applies the last one to the columns behind it. Of more members each has
 * one stream. What is computed is the same.
 *
 * A member whose columns are not aligned is factored in an aligned copy, see strided_member.h. Where they may
 * not be there is room for it. A limit of workspace leaves fewer members under way, and then products less
 * room.
 *
 * Variants `many` have all members in the same launches, as if they were one: of those whose panels are too
 * short for one launch after another. The members' workspaces follow one another. Variants `stream1` have no
 * stream for what is behind the next block: one product has all columns, and no panel waits for
 * multiprocessors.
 *
 * Where the problem says so, Q^H is applied to C, too, a wide block at a time while the next one is factored.
 */
#include "costs.h"
#include "geqrf_large_work.h"
#include "strided_member.h"
#include "wy/geqrt_clusters.h"
#include <math.h>

enum { WIDTH = BQR_BLOCK_WIDTH, MOST_MEMBERS = 1024 };

/* Columns of a wide block. */
static const bqr_variant variants[] = {
    {.name = "cols256", .cols = 256},
    {.name = "cols64", .cols = 64},
    {.name = "cols128", .cols = 128},
    {.name = "cols512", .cols = 512},
    {.name = "cols1024", .cols = 1024},
    {.name = "cols2048", .cols = 2048},
    {.name = "cols64.many", .cols = 64, .many = true},
    {.name = "cols128.many", .cols = 128, .many = true},
    {.name = "cols256.many", .cols = 256, .many = true},
    {.name = "cols64.many.stream1", .cols = 64, .many = true, .stream = 1},
    {.name = "cols128.many.stream1", .cols = 128, .many = true, .stream = 1},
    {.name = "cols256.many.stream1", .cols = 256, .many = true, .stream = 1}};

/* C := (I - V T^H V^H) C, with the reflectors of the steps s0 .. s1. */
static batchqr_status update_c(const bqr_large_task *t, int s0, int s1) {
  const int first = s0 * WIDTH;
  char *c = t->c + (size_t)first * t->block.size;
  const bqr_wy_product p = {.rows = t->block.problem.m - first,
                            .k = bqr_wide_reflectors(&t->block, s0, s1),
                            .n = t->block.problem.k,
                            .v = bqr_wide_in_a(&t->block, first, first),
                            .ldv = t->block.lda,
                            .c = c,
                            .ldc = t->ldc,
                            .t = bqr_wide_in_t(&t->block, first, first),
                            .ldt = t->block.ldt,
                            .done = t->block.done};
  return bqr_products_apply(t->rest, &t->block.problem, true, &p, c);
}

/* Factors a wide block's columns and applies it to those behind it, the next block's first where others are
 * applied to in another stream. */
static batchqr_status factor_block(bqr_large_task *t, int s0) {
  const int steps = t->block.width / WIDTH, s1 = bqr_min(s0 + steps, t->block.steps.count),
            right = s1 * WIDTH;
  const int next = s1 < t->block.steps.count ? bqr_min((s1 + steps) * WIDTH, t->block.problem.n) : right;
  t->block.origin = s0 * WIDTH;
  t->block.t = t->ts[s0 / steps % 2];
  batchqr_status status = bqr_products_enter(t->block.on);
  if (!status) status = bqr_wide_factor(&t->block, s0, s1, bqr_wide_applied(&t->block, s1 - 1));
  if (t->block.many.count > 0 && t->block.on == t->rest)
    return status ? status : bqr_wide_update(&t->block, t->rest, s0, s1, right, t->block.problem.n);
  if (!status) status = bqr_products_meet(t->block.on, t->rest);
  if (!status) status = bqr_products_enter(t->block.on);
  if (!status) status = bqr_wide_update(&t->block, t->block.on, s0, s1, right, next);
  if (!status) status = bqr_products_enter(t->rest);
  if (!status) status = bqr_wide_update(&t->block, t->rest, s0, s1, next, t->block.problem.n);
  return status ? status : update_c(t, s0, s1);
}

/* The members under way, block by block in turn. */
static batchqr_status factor_blocks(bqr_large_work *w, int members) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int s0 = 0; s0 < w->tasks[0].block.steps.count && !status; s0 += w->tasks[0].block.width / WIDTH)
    for (int i = 0; i < members && !status; i++) status = factor_block(&w->tasks[i], s0);
  return status;
}

static bqr_args args_of_c(const bqr_large_task *t) {
  return (bqr_args){.c = {.data = t->c, .ld = (int)t->ldc},
                    .m = t->block.problem.m,
                    .n = t->block.problem.k,
                    .k = bqr_min(t->block.problem.m, t->block.problem.n),
                    .count = 1};
}

static batchqr_status begin_c(bqr_large_task *t, const bqr_strided_member *e, batchqr_stream stream) {
  const bqr_problem problem = bqr_large_problem_of_c(&t->block.problem);
  const bool in_place = t->block.problem.aligned || bqr_columns_aligned(e->c, e->ldc, t->block.size);
  if (problem.n == 0) return BATCHQR_SUCCESS;
  t->c = in_place ? e->c : t->copy_of_c;
  t->ldc = in_place ? e->ldc : t->ldcopy;
  batchqr_status status = BATCHQR_SUCCESS;
  if (!in_place) status = bqr_wy_copy(problem.type, problem.m, problem.n, e->c, e->ldc, t->c, t->ldc, stream);
  const bqr_args args = args_of_c(t);
  return status ? status : bqr_ormqr_begin(&problem, &args, t->scales_of_c, stream);
}

static batchqr_status end_c(const bqr_large_task *t, const bqr_strided_member *e, batchqr_stream stream) {
  const bqr_problem problem = bqr_large_problem_of_c(&t->block.problem);
  if (problem.n == 0) return BATCHQR_SUCCESS;
  const bqr_args args = args_of_c(t);
  batchqr_status status = bqr_ormqr_end(&problem, &args, t->scales_of_c, stream);
  if (status || t->c == e->c) return status;
  return bqr_wy_copy(problem.type, problem.m, problem.n, t->c, t->ldc, e->c, e->ldc, stream);
}

static bool is_in_place(const bqr_large_task *t, const bqr_args *all, const bqr_strided_member *e) {
  const bool strided =
      t->block.many.count < 2 || (size_t)all->a.stride * t->block.size % BQR_COLUMN_ALIGNMENT == 0;
  return t->block.problem.aligned || (strided && bqr_columns_aligned(e->a, e->lda, t->block.size)) ||
         t->block.steps.count == 0;
}

/* Of the task's members into its copies, or back. */
static batchqr_status copy_members(const bqr_large_task *t, const bqr_args *all, int64_t entry, bool in,
                                   batchqr_stream stream) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < bqr_max(t->block.many.count, 1) && !status; i++) {
    const bqr_strided_member e = bqr_strided_member_at(all, t->block.size, entry + i);
    char *copy = (char *)t->copy + (size_t)i * (size_t)(t->ldcopy * t->block.problem.n) * t->block.size;
    status = in ? bqr_wy_copy(t->block.problem.type, t->block.problem.m, t->block.problem.n, e.a, e.lda, copy,
                              t->ldcopy, stream)
                : bqr_wy_copy(t->block.problem.type, t->block.problem.m, t->block.problem.n, copy, t->ldcopy,
                              e.a, e.lda, stream);
  }
  return status;
}

static batchqr_status begin_member(bqr_large_task *t, const bqr_args *all, int64_t entry) {
  const bqr_strided_member e = bqr_strided_member_at(all, t->block.size, entry);
  const int m = t->block.problem.m, n = t->block.problem.n;
  batchqr_stream stream = t->rest->stream;
  const bool in_place = is_in_place(t, all, &e);
  const int64_t count = bqr_max(t->block.many.count, 1), stride = in_place ? all->a.stride : t->ldcopy * n;
  t->block.a = in_place ? e.a : t->copy;
  t->block.lda = in_place ? e.lda : t->ldcopy;
  t->block.many.a = stride * (int64_t)t->block.size;
  t->block.many.tau = all->tau.stride * (int64_t)t->block.size;
  t->block.args = (bqr_args){.a = {.data = t->block.a, .ld = (int)t->block.lda, .stride = stride},
                             .tau = {.data = e.tau, .stride = all->tau.stride},
                             .info = e.info,
                             .m = m,
                             .n = n,
                             .count = count};
  batchqr_status status = bqr_products_enter(t->rest);
  if (!status) status = bqr_wy_begin_many(t->block.counters, &t->block.many, stream);
  if (!in_place) status = status ? status : copy_members(t, all, entry, true, stream);
  if (!status) status = begin_c(t, &e, stream);
  t->block.done = all->off ? &all->off->off : NULL;
  t->block.steps.columns.done = t->block.done;
  t->block.steps.later =
      t->block.steps.count == 2 && bqr_wide_tall(&t->block, 0); /* which looks at all columns */
  return status ? status : bqr_panel_steps_begin(&t->block.steps, &t->block.args, stream);
}

static batchqr_status end_member(const bqr_large_task *t, const bqr_args *all, int64_t entry) {
  batchqr_stream stream = t->rest->stream;
  const bqr_strided_member e = bqr_strided_member_at(all, t->block.size, entry);
  int stored = 0;
  while (stored < t->block.steps.count && bqr_wide_applied(&t->block, stored)) stored++;
  batchqr_status status = bqr_products_enter(t->rest);
  if (!status && stored > 0)
    status =
        bqr_wy_restore_many(t->block.problem.type, t->block.width, bqr_wide_reflectors(&t->block, 0, stored),
                            t->block.r, t->block.ldt, t->block.a, t->block.lda, &t->block.many, stream);
  if (!status) status = bqr_panel_steps_end(&t->block.steps, &t->block.args, stream);
  if (!status) status = end_c(t, &e, stream);
  return status || t->block.a == e.a ? status : copy_members(t, all, entry, false, stream);
}

/* Both streams of each member. */
static batchqr_status meet(const bqr_large_work *w, int members) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < members && !status; i++)
    status = bqr_products_meet(w->tasks[i].block.on, w->tasks[i].rest);
  return status;
}

/* The entries from `entry` on that are under way at once. */
static batchqr_status factor_members(bqr_large_work *w, const bqr_args *args, int64_t entry, int members) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < members && !status; i++) status = begin_member(&w->tasks[i], args, entry + i);
  if (!status) status = meet(w, members);
  if (!status) status = factor_blocks(w, members);
  if (!status) status = meet(w, members);
  for (int i = 0; i < members && !status; i++) status = end_member(&w->tasks[i], args, entry + i);
  return status;
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  bqr_large_work w;
  bqr_large_lay_out(problem, variant, device, args->workspace, &w);
  const bool many = bqr_large_many(problem, variant) > 0,
             regular = !args->host_members && !args->a.host_offsets && !args->tau.host_offsets &&
                       !args->a.host_ld_array;
  const int64_t each = many ? (regular ? args->count : 1) : w.members;
  if (many) w.tasks[0].block.many.count = (int)each;
  for (int i = 0; i < w.streams; i++) w.products[i].done = args->off ? &args->off->off : NULL;
  batchqr_status status = bqr_products_begin(args->state, stream, w.products);
  for (int64_t entry = 0; entry < args->count && !status; entry += each)
    status = factor_members(&w, args, entry, many ? 1 : (int)bqr_min(each, args->count - entry));
  const batchqr_status last = bqr_products_end(args->state);
  return status ? status : last;
}

static bqr_panel_kind kind_of(const bqr_problem *problem, const bqr_variant *variant) {
  return bqr_large_many(problem, variant) ? bqr_wide_kind_of_many(problem) : bqr_wide_kind;
}

/* Members must be alike, their addresses the host's, and few enough to be enqueued one by one. */
static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)device;
  (void)variant;
  return problem->uniform && !problem->pointers && problem->count <= MOST_MEMBERS &&
         bqr_panel_steps_possible(problem, bqr_wide_kind);
}

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *panel) {
  return bqr_panel_steps_child(problem, device, kind_of(problem, variant), number, panel);
}

static bool is_slender(const bqr_problem *problem) {
  return problem->m / 4 > bqr_min(problem->m, problem->n);
}

static bool is_square(const bqr_problem *problem) {
  const int k = bqr_min(problem->m, problem->n);
  return problem->m < 2 * k && problem->n < 2 * k;
}

/* Wide blocks make products fast, those in less than the working precision above all, and their own
 * factorization slow. */
static int preferred_width(const bqr_problem *problem, const bqr_costs *costs) {
  const int k = bqr_min(problem->m, problem->n);
  const bool single = problem->type == BATCHQR_S || problem->type == BATCHQR_C;
  const bool native = problem->compute == BATCHQR_COMPUTE_NATIVE;
  if (is_slender(problem)) return 256;
  if (problem->count == 1 && k <= costs->large.lone_cols64) return 64;
  if (k <= costs->large.cols128) return 128;
  if (k <= costs->large.cols256) return 256;
  if (problem->switched) return k <= costs->large.cols256 ? 256 : 1024; /* see bqr_gemm */
  if (native || k <= (single ? costs->large.single_cols512 : costs->large.double_cols512)) return 512;
  return single || k <= costs->large.double_cols1024 ? 1024 : 2048;
}

/* Whether members that go through the same launches take less than one beside another, or than other
 * families: there are not too many of them, nor, of single precision, too few of the largest, whose products
 * are faster one after another; and panels are no small part. */
static bool go_together(const bqr_problem *problem, const bqr_costs *costs) {
  const double elements = (double)problem->m * problem->n, count = (double)problem->count;
  const bool complex = problem->type == BATCHQR_C || problem->type == BATCHQR_Z;
  const double members = complex                      ? costs->many.complex_members
                         : problem->type == BATCHQR_S ? costs->many.single_members
                                                      : costs->many.double_members;
  const int k = bqr_min(problem->m, problem->n);
  const bool square = is_square(problem);
  if (count * (1 << 20) > elements * members) return false;
  if (complex) return !is_slender(problem) && elements >= costs->many.complex_elements;
  if (problem->type == BATCHQR_D)
    return square || problem->m > problem->n || elements >= costs->many.tall_elements;
  if (elements >= costs->many.single_elements &&
      count * costs->many.single_elements < costs->many.single_least * elements)
    return false;
  return square || (elements >= costs->many.tall_elements &&
                    (k >= costs->many.single_cols || problem->m >= costs->many.single_rows));
}

/* Many of those that leave products short gain nothing by a second stream, of double precision square ones.
 */
static bool in_one_stream(const bqr_problem *problem, const bqr_costs *costs) {
  const bool complex = problem->type == BATCHQR_C || problem->type == BATCHQR_Z;
  return !complex && problem->count >= 8 && (double)problem->m * problem->n < costs->many.elements256 &&
         (problem->type == BATCHQR_S || is_square(problem));
}

/* Of the blocks of such members; 0: they had better not. */
static int width_of_many(const bqr_problem *problem, const bqr_costs *costs) {
  const double elements = (double)problem->m * problem->n;
  const bool native = problem->compute == BATCHQR_COMPUTE_AUTO || problem->compute == BATCHQR_COMPUTE_NATIVE;
  const bool complex = problem->type == BATCHQR_C || problem->type == BATCHQR_Z;
  const int k = bqr_min(problem->m, problem->n);
  const bool square = is_square(problem);
  if (problem->count < 2 || problem->k > 0 || problem->switched || elements < 1 << 20 || k <= WIDTH ||
      !native || problem->m > costs->many.rows || !go_together(problem, costs))
    return 0;
  if (complex) return elements < costs->many.tall_elements ? 64 : 128;
  if (in_one_stream(problem, costs)) {
    const bool narrow = k <= costs->many.tall_cols64;
    return problem->type == BATCHQR_D ? (narrow ? 64 : 128) : narrow ? 128 : 256;
  }
  const double few = problem->type == BATCHQR_S ? costs->many.single_few : costs->many.double_few;
  if (!square && problem->type == BATCHQR_D && k <= 2 * costs->many.tall_cols64)
    return k <= costs->many.tall_cols64 / 2 || elements < costs->many.tall_elements ? 64 : 128;
  if (!square) return k <= costs->many.tall_cols64 ? 64 : 256;
  if ((double)problem->count * elements < few) return 64;
  if (elements >= costs->many.elements256) return 256;
  return k <= costs->many.cols64 ? 64 : k <= costs->many.cols128 ? 128 : 256;
}

/* One, or a few with few reflectors together, that geqrf_blocked would update by one panel after another. */
static bool is_lone_and_tall(const bqr_problem *problem, const bqr_costs *costs, bool high,
                             const bqr_device *device) {
  const double reflectors = (double)problem->count * bqr_min(problem->m, problem->n),
               column = (double)problem->m * (double)bqr_type_bytes(problem->type);
  return is_slender(problem) && (high || problem->m > bqr_larfb_stream_rows(problem, device)) &&
         (problem->count == 1 || (reflectors <= BQR_BLOCK_WIDTH / 2 * costs->high_members &&
                                  2 * column > costs->large.column_bytes));
}

/* Members so large that one of them fills the GPU with its products; more than one only where its panels take
 * no more time than these, or where no other family keeps panels on the chip. A smaller one alone, where that
 * is not tall, for its quick panels. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const int together = width_of_many(problem, costs);
  if (together || variant->many)
    return variant->many && variant->cols == together &&
           (variant->stream == 1) == in_one_stream(problem, costs);
  const double elements = (double)problem->m * problem->n;
  const int k = bqr_min(problem->m, problem->n), width = preferred_width(problem, costs);
  const bool quick = problem->count == 1 && width == 64 && k >= 2 * BQR_WIDE_LEAST_ROWS &&
                     bqr_wy_factor_rows(problem->type, 2 * WIDTH, device) >= problem->m;
  const bool high =
      is_slender(problem) && (double)problem->m * bqr_type_bytes(problem->type) >= costs->large.column_bytes;
  if (k <= WIDTH || variant->cols != width) return false;
  if (quick || is_lone_and_tall(problem, costs, high, device)) return elements >= costs->large.quick_elements;
  const double members = high ? costs->high_members : 1 + floor(elements / costs->large.member_elements);
  return elements >= costs->large.elements && (double)problem->count <= members;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  bqr_large_work w;
  bqr_large_lay_out(problem, variant, device, NULL, &w);
  return w.bytes;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  batchqr_status status = bqr_wide_prepare(problem, device);
  if (!status && bqr_large_many(problem, variant))
    status = bqr_panel_steps_prepare(problem, device, kind_of(problem, variant));
  if (!status && bqr_large_many(problem, variant))
    status = bqr_geqrt_clusters_prepare(problem->type, BQR_GEQRT_BLOCKS, device);
  const bqr_problem of_c = bqr_large_problem_of_c(problem);
  return status || problem->k == 0 ? status : bqr_ormqr_prepare(&of_c);
}

static void close_streams(void *state) { bqr_product_streams_free(state); }

static batchqr_status open_streams(const bqr_problem *problem, const bqr_variant *variant,
                                   const bqr_device *device, void **state) {
  bqr_large_work w;
  bqr_large_lay_out(problem, variant, device, NULL, &w);
  bqr_product_streams *streams;
  batchqr_status status = bqr_product_streams_new(device, w.streams, &streams);
  *state = streams;
  return status;
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  bqr_large_work w;
  bqr_large_lay_out(problem, variant, device, NULL, &w);
  const bqr_large_task *t = &w.tasks[0];
  const int steps = t->block.width / WIDTH;
  const bool many = bqr_large_many(problem, variant) > 0, in_one = bqr_large_in_one_stream(problem, variant);
  int launches = 0;
  for (int s0 = 0; s0 < t->block.steps.count; s0 += steps) {
    const int s1 = bqr_min(s0 + steps, t->block.steps.count), right = s1 * WIDTH;
    const bool next = !in_one && s1 < t->block.steps.count,
               behind = next ? right + t->block.width < problem->n : right < problem->n;
    launches += bqr_wide_launches(&t->block, s0, s1, bqr_wide_applied(&t->block, s1 - 1)) + (next ? 3 : 0) +
                (behind ? 3 : 0);
    launches += problem->k > 0 ? 3 : 0;
  }
  const bqr_problem of_c = bqr_large_problem_of_c(problem);
  const int of_range = problem->k > 0 ? bqr_ormqr_launches(&of_c) : 0;
  return (many ? 1 : (int)problem->count) * (2 + BQR_PANEL_STEPS_LAUNCHES + launches + of_range);
}

const bqr_family bqr_family_geqrf_large = {
    .name = "geqrf_large",
    .op = BATCHQR_GEQRF,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_streams,
    .close = close_streams,
    .one_state = true,
    .count_launches = count_launches,
    .prefers = prefers,
    .follows_mode = true,
    .child = child,
    .applies_q = true,
    .trusts_alignment = true,
    .heeds_switch = true,
};
