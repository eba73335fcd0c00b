/* SPDX-License-Identifier: BSD-3-Clause */
/* Pivoted QR by products: the order of columns comes from A^H A in double precision (see pivots/pivots.h),
 * then A P, in the workspace, has an ordinary QR factorization. Members whose order A^H A does not tell for
 * sure, which stop before their last column or hold a NaN, are left to another family of GEQP3, as they were.
 * The device decides that: all is enqueued for all, and finds nothing to do where the other way is taken.
 *
 * Members of few columns, without a C, are ordered in one launch, by a block each, and factored where
 * they are; only what is left to the other family is copied to the workspace, before.
 *
 * Many members go one part after another, which bounds the workspace; of one, half of the members are ordered
 * in a stream of their own, so that choices, which wait, run beside complements, which read and write. */
#include "arena.h"
#include "batch.h"
#include "costs.h"
#include "pivots/pivots.h"
#include "step_children.h"
#include "streams.h"

#include <stdlib.h>

/* many: a member is one block's, up to so many columns. Else cols: of a panel; blocks: that share a member,
 * as a cluster; wide: one for each WIDE_COLUMNS columns. */
static const bqr_variant variants[] = {
    {.name = "cols128.many", .cols = BQR_PIVOTS_MEMBER_COLUMNS, .many = true},
    {.name = "cols32", .cols = 32, .blocks = 1},
    {.name = "cols64.blocks8", .cols = 64, .blocks = 8},
    {.name = "cols128.wide", .cols = 128, .wide = true}};

enum { WIDE_COLUMNS = 64, MOST_ROWS = 1 << 30 };
enum { MOST_MEMBERS = 1000 };                       /* of a part: no family of a child takes fewer */
static const int64_t most_bytes = (int64_t)6 << 30; /* of the workspace, but for a member's */

/* The children: the factorization, C's product where there is a C, and the other family. */
enum { FACTOR, MULTIPLY };

static int blocks_of(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  if (!variant->wide) return bqr_max(variant->blocks, 1);
  return bqr_min(device->multiprocessors, (problem->n - 1) / WIDE_COLUMNS + 1);
}

/* Without a copy of A P in the workspace. */
static bool works_in_place(const bqr_problem *problem, const bqr_variant *variant) {
  return variant->many || (!variant->wide && problem->k == 0 && problem->n <= BQR_PIVOTS_IN_PLACE_COLUMNS);
}

static size_t wide_bytes(batchqr_type type) {
  return type == BATCHQR_C || type == BATCHQR_Z ? 2 * sizeof(double) : sizeof(double);
}

static int64_t work_ld(const bqr_problem *problem) { return ((int64_t)problem->m + 15) / 16 * 16; }

/* How many members children are chosen for: what is chosen, and so a member's bits, must depend on the
 * variant and not on their number. */
static int64_t members_chosen_for(const bqr_variant *variant) {
  return variant->wide ? 1 : variant->blocks > 1 ? 8 : 1000;
}

/* Members of a part. */
static int64_t members_at_once(const bqr_problem *problem, const bqr_variant *variant) {
  const double n = problem->n, ld = (double)work_ld(problem);
  const double each = (variant->many ? 0 : 2 * n * n * (double)wide_bytes(problem->type)) +
                      ld * (n + problem->k) * (double)bqr_type_bytes(problem->type);
  const double room = (double)most_bytes / each;
  const int64_t most = room < 1 ? 1 : room > MOST_MEMBERS ? MOST_MEMBERS : (int64_t)room;
  const int64_t parts = (problem->count - 1) / most + 1;
  return (problem->count - 1) / parts + 1;
}

typedef struct work {
  bqr_pivots pivots;
  void *of_child[3];
  size_t bytes;
} work;

/* Without children where these are not known yet. */
static work lay_out(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                    void *base) {
  const int64_t most = members_at_once(problem, variant), n = problem->n;
  const size_t size = bqr_type_bytes(problem->type), wide = wide_bytes(problem->type);
  const int blocks = blocks_of(problem, variant, device);
  work w = {.pivots = {.m = problem->m,
                       .n = problem->n,
                       .steps = bqr_min(problem->m, problem->n),
                       .width = variant->cols,
                       .blocks = blocks,
                       .candidates = bqr_pivots_candidates(problem->type, problem->n, variant->cols, blocks,
                                                           (size_t)device->smem_per_block),
                       .cluster = blocks > 1 && !variant->wide,
                       .in_place = works_in_place(problem, variant),
                       .most = most,
                       .ld = work_ld(problem)}};
  bqr_pivots *p = &w.pivots;
  bqr_arena arena = {base, 0};
  p->states = bqr_arena_take(&arena, most, sizeof *p->states);
  for (int i = 0; i < 2 && !variant->many; i++) {
    p->grams[i] = bqr_arena_take(&arena, most * n, (size_t)n * wide);
    p->columns[i] = bqr_arena_take(&arena, most * n, sizeof(int));
    p->places[i] = bqr_arena_take(&arena, most * n, sizeof(int));
  }
  if (p->in_place) {
    p->whole = bqr_arena_take(&arena, most, sizeof *p->whole);
    int **const whole[] = {&p->ld_whole, &p->m_whole, &p->n_whole};
    for (int i = 0; i < 3; i++) *whole[i] = bqr_arena_take(&arena, most, sizeof(int));
  }
  if (!variant->many) {
    p->panel = bqr_arena_take(&arena, most * n, (size_t)variant->cols * wide);
    p->slots = bqr_arena_take(&arena, most * n, sizeof(int));
    p->first2 = bqr_arena_take(&arena, most * n, sizeof(double));
  }
  p->order = bqr_arena_take(&arena, most * n, sizeof(int));
  if (variant->wide) {
    const int64_t groups = bqr_max(device->multiprocessors / blocks, 1);
    const int64_t turns = 2 * groups * blocks;
    p->offers = bqr_arena_take(&arena, turns * BQR_PIVOTS_OFFERS, sizeof *p->offers);
    p->rests = bqr_arena_take(&arena, turns, sizeof *p->rests);
    p->offered = bqr_arena_take(&arena, turns * BQR_PIVOTS_OFFERS, (size_t)variant->cols * wide);
  }
  p->work = bqr_arena_take(&arena, most * n, (size_t)p->ld * size);
  if (problem->k > 0) p->work_c = bqr_arena_take(&arena, most * problem->k, (size_t)p->ld * size);
  p->tau = bqr_arena_take(&arena, most * p->steps, size);
  int **const ints[] = {&p->m_left, &p->n_left, &p->lda, &p->ldc, &p->rank, &p->info};
  for (int i = 0; i < 6; i++) *ints[i] = bqr_arena_take(&arena, most, sizeof(int));
  void ***const addresses[] = {&p->a, &p->c, &p->tau_at, &p->jpvt_at};
  for (int i = 0; i < 4; i++) *addresses[i] = bqr_arena_take(&arena, most, sizeof(void *));
  for (int i = 0; i < problem->num_children; i++)
    w.of_child[i] = bqr_arena_take(&arena, 1, bqr_step_child_workspace(problem, i, most, device));
  w.bytes = arena.bytes;
  return w;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  return lay_out(problem, variant, device, NULL).bytes;
}

/* Whether most members are factored as they are ordered, the others being known to the device alone. */
static bool factors_most(const bqr_problem *problem, const bqr_variant *variant) {
  return variant->many && bqr_pivots_member_factors(problem->type, problem->m, problem->n);
}

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  const bool with_c = problem->k > 0;
  (void)device;
  if (number > 1 + with_c) return false;
  *child = *problem;
  child->children = NULL;
  child->num_children = 0;
  child->count = members_chosen_for(variant);
  child->whole = false;
  child->workspace_limit = 0; /* the parent's says whether all of it fits */
  if (number == 1 + with_c) {
    child->role = BQR_ROLE_PANEL;
    child->pointers = true;
    child->uniform = false;
    return true;
  }
  child->role = BQR_ROLE_STEP;
  child->pointers = works_in_place(problem, variant);
  child->uniform = !factors_most(problem, variant);
  child->positive = false;
  if (!child->pointers) child->aligned = true;
  child->tall = problem->m >= problem->n;
  if (number == FACTOR) {
    child->op = BATCHQR_GEQRF;
    child->k = 0;
  } else {
    child->op = BATCHQR_ORMQR;
    child->side = BATCHQR_LEFT;
    child->trans = BATCHQR_CONJ_TRANS;
    child->n = problem->k;
    child->k = bqr_min(problem->m, problem->n);
  }
  return true;
}

/* Members of one size; where a block has all of a member, of few columns, else of which a panel's columns fit
 * on the chip. */
static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  if (problem->role != BQR_ROLE_STEP || !problem->uniform || problem->n > BQR_PIVOTS_COLUMNS ||
      problem->m > MOST_ROWS || problem->m < 1 || problem->n < 1)
    return false;
  if (variant->many)
    return problem->n <= variant->cols && problem->k == 0 && problem->type != BATCHQR_C &&
           bqr_pivots_member_shared(problem->type, problem->m, problem->n) <= (size_t)device->smem_per_block;
  const int blocks = blocks_of(problem, variant, device);
  if (!variant->wide && blocks > 1 && !bqr_has_clusters(device)) return false;
  return blocks <= device->multiprocessors &&
         bqr_pivots_shared(problem->type, problem->n, works_in_place(problem, variant)) <=
             (size_t)device->smem_per_block &&
         bqr_pivots_candidates(problem->type, problem->n, variant->cols, blocks,
                               (size_t)device->smem_per_block) > 0;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  const work w = lay_out(problem, variant, device, NULL);
  batchqr_status status = bqr_pivots_prepare(problem->type, &w.pivots, !variant->many);
  if (!status && variant->many) status = bqr_pivots_member_prepare(problem->type, &w.pivots);
  return status ? status : bqr_step_children_prepare(problem, members_at_once(problem, variant), device);
}

/* What a plan's launches share. */
typedef struct shared_state {
  void *children;
  bqr_streams *streams; /* of two halves of the members; NULL where they go together */
} shared_state;

static const void *children_of(const bqr_args *args) { return ((const shared_state *)args->state)->children; }

/* Of members that a block each chooses for, while there are several for each multiprocessor in both. */
static bool goes_in_halves(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                           int64_t members) {
  return !variant->many && variant->blocks == 1 && works_in_place(problem, variant) &&
         members >= 4 * device->multiprocessors;
}

static void close_state(void *state) {
  shared_state *shared = state;
  bqr_step_children_close(shared->children);
  bqr_streams_free(shared->streams);
  free(shared);
}

static batchqr_status open_state(const bqr_problem *problem, const bqr_variant *variant,
                                 const bqr_device *device, void **state) {
  const int64_t members = members_at_once(problem, variant);
  shared_state *shared = *state = calloc(1, sizeof *shared);
  if (!shared) return BATCHQR_OUT_OF_MEMORY;
  batchqr_status status = bqr_step_children_open(problem, members, device, &shared->children);
  if (!status && goes_in_halves(problem, variant, device, members))
    status = bqr_streams_new(device, 2, false, &shared->streams, NULL);
  return status;
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int64_t members = members_at_once(problem, variant), parts = (problem->count - 1) / members + 1;
  const int panels = (bqr_min(problem->m, problem->n) - 1) / variant->cols + 1, of_c = problem->k > 0 ? 3 : 0;
  const int halves = goes_in_halves(problem, variant, device, members) ? 2 : 1;
  int launches =
      variant->many
          ? 2
          : halves * (BQR_PIVOTS_BEGIN_LAUNCHES + BQR_PIVOTS_PANEL_LAUNCHES * panels - 1 + 1) + 1 + of_c;
  for (int i = 0; i < problem->num_children; i++)
    launches += bqr_step_child_launches(problem, i, members, device);
  return launches * (int)parts;
}

static batchqr_status launch_child(const bqr_problem *problem, int number, const work *w, int64_t members,
                                   const bqr_device *device, bqr_args args, const void *states,
                                   batchqr_stream stream) {
  args.workspace = w->of_child[number];
  return bqr_step_child_launch(problem, number, members, device, args, states, stream);
}

static bqr_matrix matrix_of(void *data, int64_t ld, int64_t cols) {
  return (bqr_matrix){.data = data, .stride = ld * cols, .row_stride = 1, .ld = (int)ld};
}

/* A P = Q R, and Q^H C. */
static batchqr_status factor(const bqr_problem *problem, const work *w, const bqr_device *device,
                             const void *states, batchqr_stream stream) {
  const bqr_pivots *p = &w->pivots;
  const bqr_matrix a = matrix_of(p->work, p->ld, p->n);
  const bqr_vector tau = {.data = p->tau, .stride = p->steps};
  const bqr_args of_a = {.a = a, .tau = tau, .m = p->m, .n = p->n};
  batchqr_status status = launch_child(problem, FACTOR, w, p->most, device, of_a, states, stream);
  if (status || !p->work_c) return status;
  const bqr_args of_c = {.a = a,
                         .c = matrix_of(p->work_c, p->ld, problem->k),
                         .tau = tau,
                         .m = p->m,
                         .n = problem->k,
                         .k = p->steps};
  return launch_child(problem, MULTIPLY, w, p->most, device, of_c, states, stream);
}

/* A P = Q R where A was. */
static batchqr_status factor_in_place(const bqr_problem *problem, const work *w, const bqr_device *device,
                                      const bqr_args *args, batchqr_stream stream) {
  const bqr_pivots *p = &w->pivots;
  const bool uniform = problem->children[FACTOR].problem.uniform;
  const bqr_args of_a = {.a = {.data = p->whole,
                               .ld_array = args->a.ld_array ? p->ld_whole : NULL,
                               .ld = args->a.ld,
                               .row_stride = 1,
                               .pointers = true},
                         .tau = {.data = p->tau_at, .pointers = true},
                         .m_array = uniform ? NULL : p->m_whole,
                         .n_array = uniform ? NULL : p->n_whole,
                         .m = p->m,
                         .n = p->n};
  return launch_child(problem, FACTOR, w, p->count, device, of_a, children_of(args), stream);
}

static batchqr_status launch_other(const bqr_problem *problem, const work *w, const bqr_device *device,
                                   const bqr_args *args, batchqr_stream stream) {
  const bqr_pivots *p = &w->pivots;
  const int number = problem->num_children - 1;
  const bqr_args left = {
      .a = {.data = p->a, .ld_array = p->lda, .ld = args->a.ld, .row_stride = 1, .pointers = true},
      .c = {.data = p->work_c ? p->c : NULL,
            .ld_array = p->ldc,
            .ld = args->c.ld,
            .row_stride = 1,
            .pointers = true},
      .tau = {.data = p->tau_at, .pointers = true},
      .jpvt = {.data = args->jpvt.data ? p->jpvt_at : NULL, .pointers = true},
      .rank = {.data = p->rank, .stride = 1},
      .info = p->info,
      .m_array = p->m_left,
      .n_array = p->n_left,
      .m = p->m,
      .n = p->n,
      .k = problem->k,
      .kmax = args->kmax,
      .abstol = args->abstol,
      .reltol = args->reltol};
  return launch_child(problem, number, w, p->most, device, left, children_of(args), stream);
}

/* Whether members are to stop early, for all that one can know: where fewer columns are asked for than there
 * are, or with a tolerance above rounding errors. They then all take the other way, which stops with them. */
static bool stop_early(const bqr_problem *problem, const bqr_args *args) {
  const bool single = problem->type == BATCHQR_S || problem->type == BATCHQR_C;
  const double noise = 16.0 * (single ? 0x1p-24 : 0x1p-53) * ((double)problem->m + problem->n);
  return args->kmax < bqr_min(problem->m, problem->n) || args->abstol > 0 || args->reltol > noise;
}

static batchqr_status launch_part(const bqr_problem *problem, const work *w, const bqr_device *device,
                                  const bqr_args *args, batchqr_stream stream) {
  const bqr_pivots *p = &w->pivots;
  const batchqr_type type = problem->type;
  const bool all_exact = stop_early(problem, args);
  batchqr_status status = bqr_pivots_begin(type, args, p, all_exact, stream);
  for (int panel = 0; panel * p->width < p->steps && !all_exact && !status; panel++)
    status = bqr_pivots_choose(type, args, p, panel, device, stream);
  if (!status && !all_exact) status = bqr_pivots_gather(type, args, p, stream);
  if (!status && !all_exact) status = factor(problem, w, device, children_of(args), stream);
  if (!status) status = launch_other(problem, w, device, args, stream);
  return status ? status : bqr_pivots_end(type, args, p, stream);
}

static void *behind(void *array, int64_t bytes) { return array ? (char *)array + bytes : NULL; }

/* `count` entries from `from` on, with room for `most`, of members that are ordered in place. */
static bqr_pivots part_of(const bqr_problem *problem, const bqr_pivots *p, int64_t from, int64_t most,
                          int64_t count) {
  const int64_t size = (int64_t)bqr_type_bytes(problem->type), wide = (int64_t)wide_bytes(problem->type);
  bqr_pivots part = *p;
  part.first += from;
  part.most = most;
  part.count = count;
  part.states += from;
  part.panel = behind(p->panel, from * p->n * p->width * wide);
  for (int i = 0; i < 2; i++) part.grams[i] = behind(p->grams[i], from * p->n * p->n * wide);
  int **const of_columns[] = {&part.columns[0], &part.columns[1], &part.places[0],
                              &part.places[1],  &part.slots,      &part.order};
  for (int i = 0; i < 6; i++) *of_columns[i] += from * p->n;
  part.first2 += from * p->n;
  part.work = behind(p->work, from * p->n * p->ld * size);
  part.tau = behind(p->tau, from * p->steps * size);
  int **const ints[] = {&part.m_left, &part.n_left,   &part.lda,     &part.ldc,    &part.rank,
                        &part.info,   &part.ld_whole, &part.m_whole, &part.n_whole};
  for (int i = 0; i < 9; i++) *ints[i] += from;
  void ***const addresses[] = {&part.a, &part.c, &part.tau_at, &part.jpvt_at, &part.whole};
  for (int i = 0; i < 5; i++) *addresses[i] += from;
  return part;
}

/* Step -1: A^H A; the last one: A P. */
static batchqr_status order_step(const bqr_problem *problem, const bqr_pivots *p, const bqr_device *device,
                                 const bqr_args *args, int step, int steps, batchqr_stream stream) {
  if (step < 0) return bqr_pivots_begin(problem->type, args, p, false, stream);
  return step < steps ? bqr_pivots_choose(problem->type, args, p, step, device, stream)
                      : bqr_pivots_arrange(problem->type, args, p, stream);
}

/* Steps of all parts in turn, so that none of them is far behind when the others begin. */
static batchqr_status order_parts(const bqr_problem *problem, const bqr_pivots *parts, int count,
                                  const bqr_device *device, const bqr_args *args, bqr_streams *streams,
                                  batchqr_stream stream) {
  const int steps = (parts->steps - 1) / parts->width + 1;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int step = -1; step <= steps && !status; step++)
    for (int i = 0; i < count && !status; i++) {
      if (count > 1) status = bqr_streams_enter(streams, i, &stream, NULL);
      if (!status) status = order_step(problem, &parts[i], device, args, step, steps, stream);
    }
  return status;
}

static batchqr_status order(const bqr_problem *problem, const bqr_variant *variant, const work *w,
                            const bqr_device *device, const bqr_args *args, batchqr_stream stream) {
  const bqr_pivots *p = &w->pivots;
  bqr_streams *streams = ((const shared_state *)args->state)->streams;
  if (variant->many) return bqr_pivots_member_order(problem->type, args, p, stream);
  if (!streams || !goes_in_halves(problem, variant, device, p->count))
    return order_parts(problem, p, 1, device, args, NULL, stream);
  const int64_t half = (p->count + 1) / 2;
  const bqr_pivots parts[] = {part_of(problem, p, 0, half, half),
                              part_of(problem, p, half, p->most - half, p->count - half)};
  batchqr_status status = bqr_streams_fork(streams, 2, stream, NULL);
  if (!status) status = order_parts(problem, parts, 2, device, args, streams, stream);
  const batchqr_status joined = bqr_streams_join(streams, NULL);
  return status ? status : joined;
}

static batchqr_status launch_part_in_place(const bqr_problem *problem, const bqr_variant *variant,
                                           const work *w, const bqr_device *device, const bqr_args *args,
                                           batchqr_stream stream) {
  const bqr_pivots *p = &w->pivots;
  batchqr_status status = order(problem, variant, w, device, args, stream);
  if (!status) status = factor_in_place(problem, w, device, args, stream);
  if (!status) status = launch_other(problem, w, device, args, stream);
  return status ? status : bqr_pivots_return(problem->type, args, p, stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  work w = lay_out(problem, variant, device, args->workspace);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t first = 0; first < args->count && !status; first += w.pivots.most) {
    w.pivots.first = first;
    w.pivots.count = bqr_min(w.pivots.most, args->count - first);
    if (!args->c.data) w.pivots.work_c = NULL;
    status = w.pivots.in_place && !stop_early(problem, args)
                 ? launch_part_in_place(problem, variant, &w, device, args, stream)
                 : launch_part(problem, &w, device, args, stream);
  }
  return status;
}

/* Members of which a step takes geqp3_block longer than a block that has their A^H A. */
static bool prefers_many(const bqr_problem *problem, const bqr_costs *costs, const bqr_device *device) {
  const bool single = problem->type == BATCHQR_S || problem->type == BATCHQR_C;
  const double least = single             ? costs->order.single_elements
                       : problem->n <= 32 ? costs->order.narrow_elements
                                          : costs->order.double_elements;
  /* so many rows geqp3_lanes has in registers, beside one another */
  if (problem->type == BATCHQR_D && problem->m <= (problem->n <= 32 ? 256 : problem->n <= 64 ? 64 : 0))
    return false;
  return (double)problem->m * problem->n >= least &&
         (double)problem->count >= costs->order.members * device->multiprocessors;
}

/* Members that geqp3_block does not hold in few registers, not much wider than high, with work for the GPU in
 * A^H A; more blocks for a member where there are few of them. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double bytes = (double)problem->m * problem->n * (double)bqr_type_bytes(problem->type);
  const double across = (problem->n - 1) / 64 + 1, tiles = across * (across + 1) / 2;
  if (variant->many) return prefers_many(problem, costs, device);
  const bool wide = problem->n > 2 * (int64_t)problem->m, many = problem->count >= device->multiprocessors;
  const bool high =
      problem->m > costs->pivots.high_rows && (double)problem->count * tiles < device->multiprocessors;
  const bool narrow = problem->n <= costs->pivots.narrow_cols;
  /* so many rows geqp3_block has in registers, with as many columns */
  const bool held = problem->m <= BQR_PIVOTS_MEMBER_COLUMNS && bytes <= costs->pivots.member_bytes;
  if (wide || high || held || bytes < (narrow ? costs->pivots.narrow_bytes : costs->pivots.member_bytes))
    return false;
  if (bytes * (double)problem->count < costs->pivots.batch_bytes) return false;
  const bool on_chip =
      bqr_pivots_candidates(problem->type, problem->n, 32, 1, (size_t)device->smem_per_block) > 0;
  if (many && problem->n <= costs->pivots.cols32 && on_chip) return variant->cols == 32;
  return problem->n <= costs->pivots.cols64 ? variant->cols == 64 : variant->wide;
}

const bqr_family bqr_family_geqp3_gram = {
    .name = "geqp3_gram",
    .op = BATCHQR_GEQP3,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_state,
    .close = close_state,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
};
