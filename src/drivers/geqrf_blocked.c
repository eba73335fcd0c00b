/* SPDX-License-Identifier: BSD-3-Clause */
/* Members that one block of threads does not hold: blocked QR, as LAPACK's xGEQRF, of all members side by
 * side. Panels of 32 columns come with T of their compact WY form, where a kernel makes both, or from the
 * on-chip family that holds them; updates are on matrix units. These go by groups of panels: within a group
 * each panel is updated just before it is factored, by those of the group before it, and all columns on the
 * right once the group is complete. Groups of one are right-looking QR, one group is left-looking: it reads
 * half as much and writes next to nothing, but a step of a member is the work of a single cluster. The last
 * panels of square members may be left to another family, see bqr_before_tail().
 *
 * Many members go in two parts, in streams of their own, so that panels of one run beside updates of the
 * other. Of few members the next group's columns are updated first, and its panels are factored beside the
 * update of the columns behind them, which leaves them a cluster for each member. */
#include "costs.h"
#include "launch_part.h"
#include "panel_steps.h"
#include "streams.h"
#include "wy/clusters.h"
#include "wy/geqrt_clusters.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>

enum { WIDTH = BQR_BLOCK_WIDTH, S = 1 << BATCHQR_S, D = 1 << BATCHQR_D };

/* rows: of panels, at first; tree: any number of them. wide: panels are given many threads, as are those of
 * more than 1024 rows; blocks: a cluster of so many each. by: the panels of a group; left: all panels are one
 * group. */
static const bqr_variant variants[] = {
    {.name = "rows256.left", .rows = 256, .left = true, .tails = D},
    {.name = "rows512.left", .rows = 512, .left = true, .tails = S | D},
    {.name = "rows1024.left", .rows = 1024, .left = true},
    {.name = "rows512.wide.left", .rows = 512, .wide = true, .left = true, .tails = S | D},
    {.name = "rows1024.wide.left", .rows = 1024, .wide = true, .left = true},
    {.name = "rows4096.left", .rows = 4096, .left = true},
    {.name = "rows256.wide.by2", .rows = 256, .wide = true, .by = 2},
    {.name = "rows512.wide.by4", .rows = 512, .wide = true, .by = 4},
    {.name = "rows1024.wide.by4", .rows = 1024, .wide = true, .by = 4},
    {.name = "rows4096.by4", .rows = 4096, .by = 4},
    {.name = "rows256", .rows = 256},
    {.name = "rows512", .rows = 512},
    {.name = "rows1024", .rows = 1024},
    {.name = "rows256.wide", .rows = 256, .wide = true},
    {.name = "rows512.wide", .rows = 512, .wide = true},
    {.name = "rows1024.wide", .rows = 1024, .wide = true},
    {.name = "rows4096", .rows = 4096},
    {.name = "rows8192", .rows = 8192},
    {.name = "rows16384", .rows = 16384},
    {.name = "rows1024.by4.blocks4", .rows = 1024, .by = 4, .blocks = 4},
    {.name = "rows4096.by4.blocks8", .rows = 4096, .by = 4, .blocks = 8},
    {.name = "rows8192.blocks8", .rows = 8192, .blocks = 8},
    {.name = "rows16384.blocks8", .rows = 16384, .blocks = 8},
    {.name = "tree", .tree = true},
};

static int rows_of(const bqr_variant *variant) { return variant->tree ? INT_MAX : variant->rows; }

static bqr_panel_kind kind_of(const bqr_variant *variant, batchqr_type type) {
  return (bqr_panel_kind){.rows = rows_of(variant),
                          .many_threads = variant->wide || variant->blocks > 0 || rows_of(variant) > 1024,
                          .blocks = variant->blocks,
                          .tail = (variant->tails & 1 << type) != 0};
}

static int group_of(const bqr_variant *variant) {
  return variant->left ? INT_MAX : variant->by > 0 ? variant->by : 1;
}

/* Some of the members, their launches and their workspace. */
typedef struct part {
  bqr_problem problem;
  bqr_panel_steps steps;
  bool ahead; /* a group's panels are factored beside updates by the one before */
  int held;   /* panels whose T is kept */
  char *t;    /* of these, of all members one panel after the other */
} part;

enum { MOST_PARTS = 2, BEHIND = 0, AHEAD = 1 /* the streams of a part that looks ahead */ };

enum { T_ELEMENTS = WIDTH * WIDTH };

static size_t t_bytes(const bqr_problem *problem) {
  return (size_t)problem->count * T_ELEMENTS * bqr_type_bytes(problem->type);
}

/* Whether the updates by the first group's panels are the first to read all columns but the first panel's,
 * with a block for each member. */
static bool reads_first(const bqr_problem *problem, const bqr_variant *variant) {
  return group_of(variant) > 1 && bqr_larfb_stream_shares(problem->type, problem->m) == 1;
}

/* Few members leave multiprocessors idle as they are, and a single panel has no updates. */
static int parts_of(const bqr_problem *problem, const bqr_device *device) {
  if (problem->n <= WIDTH) return 1;
  const int64_t blocks = problem->count * bqr_larfb_stream_shares(problem->type, problem->m);
  return 2 * blocks > device->multiprocessors ? MOST_PARTS : 1;
}

static int64_t first_of(const bqr_problem *problem, int number, int parts) {
  return number == parts ? problem->count : problem->count / parts * number;
}

/* Multiprocessors that panels by clusters take: of real types two blocks find room in one. */
static int64_t taken_by_panels(const bqr_problem *problem, const bqr_variant *variant) {
  const bool complex = problem->type == BATCHQR_C || problem->type == BATCHQR_Z;
  return problem->count * variant->blocks / (complex ? 1 : 2);
}

/* Whether panels leave most of the GPU to updates beside them. */
static bool looks_ahead(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int64_t taken = variant->blocks > 0
                            ? taken_by_panels(problem, variant)
                            : 2 * problem->count * bqr_larfb_stream_shares(problem->type, problem->m);
  return group_of(variant) > 1 && 2 * taken <= device->multiprocessors;
}

/* Whether a group that ends with a step updates the next one's columns apart from those behind them: there
 * are more of these than go at once. */
static bool splits(const part *p, const bqr_variant *variant, int step) {
  const int right = (step + 1) * WIDTH, strips = (p->steps.end - right + WIDTH - 1) / WIDTH;
  if (step + 1 >= p->steps.count || strips <= group_of(variant)) return false;
  return p->problem.count * strips * bqr_larfb_stream_shares(p->problem.type, p->problem.m - right) >
         p->steps.device->multiprocessors;
}

/* The parts and what they take of the workspace; returns how many there are. may_look_ahead: what is opened
 * for that is there, as it need not be for fewer members than it was opened for. */
static int lay_out(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                   bool may_look_ahead, bqr_arena *arena, part parts[MOST_PARTS]) {
  const int count = parts_of(problem, device);
  for (int i = 0; i < count; i++) {
    part *p = &parts[i];
    p->problem = *problem;
    p->problem.count = first_of(problem, i + 1, count) - first_of(problem, i, count);
    p->steps = bqr_panel_steps_of(&p->problem, device, kind_of(variant, problem->type), arena);
    p->steps.later = reads_first(problem, variant);
    p->held = bqr_min(group_of(variant), p->steps.count);
    p->ahead = may_look_ahead && looks_ahead(problem, variant, device) && splits(p, variant, p->held - 1);
    if (p->ahead) p->held *= 2;
    p->t = bqr_arena_take(arena, bqr_min(p->held, p->steps.count), t_bytes(&p->problem));
  }
  return count;
}

/* Whether tails have streams of their own: of members that differ, beside the last steps of those without. */
static bool tails_beside(const part *p) { return p->steps.tail && !p->problem.uniform; }

/* Those of the parts, and of their tails in the same order. */
static int streams_of(const part *parts, int count) {
  return parts->ahead ? 2 : tails_beside(parts) ? 2 * count : count;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  if (group_of(variant) > 1 && problem->m > bqr_larfb_stream_rows(problem, device)) return false;
  return bqr_panel_steps_possible(problem, kind_of(variant, problem->type));
}

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *panel) {
  return bqr_panel_steps_child(problem, device, kind_of(variant, problem->type), number, panel);
}

/* Whether columns right of the reflectors are work for more blocks than there are members: the fewer members,
 * the fewer columns. */
static bool is_wide(const bqr_problem *problem, const bqr_device *device) {
  const double right = bqr_costs_of(device)->blocked_right,
               share = (double)problem->count / (4 * device->multiprocessors);
  return problem->n - problem->m >= right * fmax(share, 0.125) && share < 1;
}

/* Not where launches take longer than they save; many threads for a panel where panels are few. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int k = bqr_min(problem->m, problem->n);
  if (variant->blocks > 0) return false; /* the table says where */
  const double fewest = problem->m > 1024 ? WIDTH : bqr_costs_of(device)->blocked_cols;
  if (k <= fewest && !is_wide(problem, device)) return false;
  const int64_t blocks = problem->count * bqr_larfb_stream_shares(problem->type, problem->m);
  if (group_of(variant) == INT_MAX && 2 * blocks < device->multiprocessors) return false;
  return kind_of(variant, problem->type).many_threads == (problem->count < 2 * device->multiprocessors) ||
         rows_of(variant) > 1024;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  part parts[MOST_PARTS];
  bqr_arena arena = {NULL, 0};
  lay_out(problem, variant, device, true, &arena, parts);
  return arena.bytes;
}

/* Whether a step is the last one of its group. */
static bool completes(const part *p, const bqr_variant *variant, int step) {
  return (step + 1) % group_of(variant) == 0 || step + 1 == p->steps.count;
}

static int count_part(const part *p, const bqr_variant *variant, const bqr_device *device) {
  int launches = BQR_PANEL_STEPS_LAUNCHES - p->steps.later;
  for (int step = 0; step < p->steps.count; step++) {
    const int right = (step + 1) * WIDTH;
    const bool makes_t = bqr_panel_steps_make_t(&p->steps, step);
    launches += makes_t ? 1 : bqr_panel_steps_launches(&p->steps, step);
    if (right < p->problem.n) launches += !makes_t;
    if (right < p->steps.end)
      launches += group_of(variant) > 1
                      ? 1 + (completes(p, variant, step) && p->ahead && splits(p, variant, step))
                      : bqr_larfb_launches(&p->problem, device, step * WIDTH);
  }
  return launches + (p->steps.tail ? 1 + bqr_panel_steps_launches(&p->steps, p->steps.count) : 0);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  part parts[MOST_PARTS];
  bqr_arena arena = {NULL, 0};
  const int count = lay_out(problem, variant, device, true, &arena, parts);
  int launches = 0;
  for (int i = 0; i < count; i++) launches += count_part(&parts[i], variant, device);
  return launches;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  batchqr_status status = bqr_panel_steps_prepare(problem, device, kind_of(variant, problem->type));
  if (!status) status = bqr_blocked_prepare(problem->type);
  if (!status) status = bqr_larfb_stream_prepare(problem->type);
  if (!status && variant->blocks > 0)
    return bqr_geqrt_clusters_prepare(problem->type, variant->blocks, device);
  return status ? status : bqr_geqrt_prepare(problem->type);
}

/* What a plan's launches share. */
typedef struct shared_state {
  bqr_streams *streams;            /* of the parts and their tails; NULL where there is one */
  bqr_clusters *clusters, *beside; /* beside: of updates behind a group whose panels are under way */
} shared_state;

static void close_state(void *state) {
  shared_state *shared = state;
  bqr_streams_free(shared->streams);
  bqr_clusters_free(shared->clusters);
  bqr_clusters_free(shared->beside);
  free(shared);
}

static batchqr_status open_state(const bqr_problem *problem, const bqr_variant *variant,
                                 const bqr_device *device, void **state) {
  part parts[MOST_PARTS];
  bqr_arena arena = {NULL, 0};
  const int count = lay_out(problem, variant, device, true, &arena, parts);
  shared_state *shared = *state = calloc(1, sizeof *shared);
  if (!shared) return BATCHQR_OUT_OF_MEMORY;
  batchqr_status status =
      bqr_streams_new(device, streams_of(parts, count), parts->ahead, &shared->streams, NULL);
  const int streamed = group_of(variant) > 1 ? rows_of(variant) : 0;
  if (!status) status = bqr_clusters_new(problem, device, streamed, &shared->clusters);
  if (status || !parts->ahead) return status;
  status = bqr_clusters_new(problem, device, streamed, &shared->beside);
  const int64_t shares = bqr_larfb_stream_shares(problem->type, problem->m),
                spared = variant->blocks > 0 ? (taken_by_panels(problem, variant) - 1) / shares + 1
                                             : problem->count;
  if (!status) bqr_clusters_spare(shared->beside, (int)spared);
  return status;
}

static const shared_state *state_of(const bqr_args *args) { return args->state; }

/* Of the panels of a group that begins or goes on with a step. */
static char *t_of(const part *p, int step) { return p->t + (size_t)(step % p->held) * t_bytes(&p->problem); }

/* Panel `step`, and T of it unless nothing is right of it. */
static batchqr_status factor(const part *p, const bqr_args *args, int step, batchqr_stream stream) {
  const bool last = (step + 1) * WIDTH >= p->problem.n;
  void *t = last ? NULL : t_of(p, step);
  if (bqr_panel_steps_make_t(&p->steps, step)) return bqr_panel_steps_geqrt(&p->steps, args, step, t, stream);
  batchqr_status status = bqr_panel_steps_factor(&p->steps, args, step, stream);
  return status || last ? status : bqr_larft(&p->problem, args, step * WIDTH, WIDTH, 1, t, stream);
}

/* Applies the panels start / 32 .. step to columns from .. to of the span. */
static batchqr_status stream_past(const part *p, const bqr_variant *variant, const bqr_args *args, int start,
                                  int step, bqr_span span, int from, int to, const bqr_clusters *clusters,
                                  batchqr_stream stream) {
  const bqr_columns *first_read = p->steps.later && start == 0 ? &p->steps.columns : NULL;
  return bqr_larfb_stream(&p->problem, args, start, step + 1 - start / WIDTH, t_of(p, start / WIDTH),
                          T_ELEMENTS, p->problem.count * T_ELEMENTS, span, from, to, first_read,
                          rows_of(variant), clusters, stream);
}

/* The columns of the next group, and beside its panels those behind them. */
static batchqr_status update_ahead(const part *p, const bqr_variant *variant, const bqr_args *args, int start,
                                   int step, batchqr_stream stream) {
  const shared_state *state = state_of(args);
  const int right = (step + 1) * WIDTH, behind = right + group_of(variant) * WIDTH;
  batchqr_status status =
      stream_past(p, variant, args, start, step, BQR_WHOLE, right, behind, state->clusters, stream);
  if (!status) status = bqr_streams_follow(state->streams, BEHIND, AHEAD, &stream, NULL);
  if (!status)
    status =
        stream_past(p, variant, args, start, step, BQR_WHOLE, behind, p->steps.end, state->beside, stream);
  return status ? status : bqr_streams_enter(state->streams, AHEAD, &stream, NULL);
}

/* What follows panel `step`: the next one of its group, by all of the group so far, or all columns right of
 * the group but tails. */
static batchqr_status update(const part *p, const bqr_variant *variant, const bqr_args *args, int step,
                             batchqr_stream stream) {
  const shared_state *state = state_of(args);
  const bqr_problem *problem = &p->problem;
  const int group = group_of(variant), start = (step - step % group) * WIDTH;
  const int right = (step + 1) * WIDTH, end = p->steps.end;
  const bool complete = completes(p, variant, step);
  if (right >= end) return BATCHQR_SUCCESS;
  if (group == 1)
    return bqr_larfb(problem, args, start, WIDTH, p->t, T_ELEMENTS, true, right, end, state->clusters,
                     stream);
  if (p->ahead && complete) {
    batchqr_status status = bqr_streams_follow(state->streams, AHEAD, BEHIND, &stream, NULL);
    if (status) return status;
    if (splits(p, variant, step)) return update_ahead(p, variant, args, start, step, stream);
  }
  return stream_past(p, variant, args, start, step, p->steps.tail ? BQR_BEFORE_TAIL : BQR_WHOLE, right,
                     complete ? end : bqr_min(right + WIDTH, end), state->clusters, stream);
}

/* The tails, which all panels on their left update at once. */
static batchqr_status finish_tails(const part *p, const bqr_variant *variant, const bqr_args *args,
                                   batchqr_stream stream) {
  const int last = p->steps.count - 1;
  batchqr_status status = stream_past(p, variant, args, 0, last, BQR_TAIL, 0, BQR_TAIL_PANELS * WIDTH,
                                      state_of(args)->clusters, stream);
  return status ? status : bqr_panel_steps_factor(&p->steps, args, p->steps.count, stream);
}

/* Before the first step, a step, or after the last one. */
static batchqr_status launch_step(const part *p, const bqr_variant *variant, const bqr_args *args, int step,
                                  batchqr_stream stream) {
  if (step < 0) return bqr_panel_steps_begin(&p->steps, args, stream);
  if (step == p->steps.count) return bqr_panel_steps_end(&p->steps, args, stream);
  batchqr_status status = factor(p, args, step, stream);
  return status ? status : update(p, variant, args, step, stream);
}

/* What comes before a step of part i of `count`: tails, once all panels before any of them are there. */
static batchqr_status launch_tails(const part *p, int i, int count, const bqr_variant *variant,
                                   const bqr_args *args, int step, bqr_streams *streams,
                                   batchqr_stream stream) {
  const bool end = step == p->steps.count, beside = tails_beside(p);
  if (!p->steps.tail) return BATCHQR_SUCCESS;
  if (!beside) return end ? finish_tails(p, variant, args, stream) : BATCHQR_SUCCESS;
  if (end) return bqr_streams_follow(streams, i, count + i, &stream, NULL);
  if (step != p->steps.count - BQR_TAIL_PANELS) return BATCHQR_SUCCESS;
  batchqr_status status = bqr_streams_follow(streams, count + i, i, &stream, NULL);
  if (!status) status = finish_tails(p, variant, args, stream);
  return status ? status : bqr_streams_enter(streams, i, &stream, NULL);
}

/* The stream of part i's step; what comes last needs all that is under way. */
static batchqr_status enter(const part *p, int i, int step, bqr_streams *streams, batchqr_stream *stream) {
  if (!p->ahead) return bqr_streams_enter(streams, i, stream, NULL);
  return step == p->steps.count ? bqr_streams_follow(streams, BEHIND, AHEAD, stream, NULL)
                                : bqr_streams_enter(streams, AHEAD, stream, NULL);
}

/* Steps of all parts in turn, so that none of them is far behind when the others begin. */
static batchqr_status launch_parts(const part *parts, int count, const bqr_variant *variant,
                                   const bqr_args *args, bqr_streams *streams, batchqr_stream stream) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int step = -1; step <= parts->steps.count && !status; step++)
    for (int i = 0; i < count && !status; i++) {
      if (streams) status = enter(&parts[i], i, step, streams, &stream);
      if (!status) status = launch_tails(&parts[i], i, count, variant, &args[i], step, streams, stream);
      if (!status) status = launch_step(&parts[i], variant, &args[i], step, stream);
    }
  return status;
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  const shared_state *shared = state_of(args);
  bqr_streams *streams = shared->streams;
  part parts[MOST_PARTS];
  bqr_args of_part[MOST_PARTS];
  bqr_arena arena = {args->workspace, 0};
  const int count = lay_out(problem, variant, device, shared->beside != NULL, &arena, parts);
  for (int i = 0; i < count; i++)
    of_part[i] = bqr_launch_part(args, problem->type, first_of(problem, i, count), parts[i].problem.count);
  if (!streams) return launch_parts(parts, count, variant, of_part, NULL, stream);
  batchqr_status status = bqr_streams_fork(streams, streams_of(parts, count), stream, NULL);
  if (!status) status = launch_parts(parts, count, variant, of_part, streams, stream);
  batchqr_status joined = bqr_streams_join(streams, NULL);
  return status ? status : joined;
}

const bqr_family bqr_family_geqrf_blocked = {
    .name = "geqrf_blocked",
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
    .open = open_state,
    .close = close_state,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
};
