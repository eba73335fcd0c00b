/* SPDX-License-Identifier: BSD-3-Clause */
/* Members that one block of threads does not hold: blocked QR, as LAPACK's xGEQRF, of all members side by
 * side. Panels of 32 columns come with T of their compact WY form, where a kernel makes both, or from the
 * on-chip family that holds them; updates are on matrix units. These go by groups of panels: within a group
 * each panel is updated just before it is factored, by those of the group before it, and all columns on the
 * right once the group is complete. Groups of one are right-looking QR, one group is left-looking: it reads
 * half as much and writes next to nothing, but a step of a member is the work of a single cluster. */
#include "batch.h"
#include "steps.h"
#include <limits.h>
#include <stdlib.h>

enum { WIDTH = BATCHQR_BLOCK_WIDTH };

/* The panels' first number of rows, whether a panel is given many threads, and the panels of a group. `tree`:
 * any number of rows. */
static const batchqr_variant variants[] = {
    {"rows512.left", {512, 0, INT_MAX}},
    {"rows1024.left", {1024, 0, INT_MAX}},
    {"rows512.wide.left", {512, 1, INT_MAX}},
    {"rows1024.wide.left", {1024, 1, INT_MAX}},
    {"rows4096.left", {4096, 1, INT_MAX}},
    {"rows512.wide.by4", {512, 1, 4}},
    {"rows1024.wide.by4", {1024, 1, 4}},
    {"rows4096.by4", {4096, 1, 4}},
    {"rows256", {256, 0, 1}},
    {"rows512", {512, 0, 1}},
    {"rows1024", {1024, 0, 1}},
    {"rows256.wide", {256, 1, 1}},
    {"rows512.wide", {512, 1, 1}},
    {"rows1024.wide", {1024, 1, 1}},
    {"rows4096", {4096, 1, 1}},
    {"rows8192", {8192, 1, 1}},
    {"rows16384", {16384, 1, 1}},
    {"tree", {INT_MAX, 1, 1}},
};

static bqr_panel_rule rule_of(const batchqr_variant *variant) {
  return (bqr_panel_rule){.rows = variant->p[0], .wide = variant->p[1] != 0};
}

static int group_of(const batchqr_variant *variant) { return variant->p[2]; }

typedef struct workspace {
  bqr_steps steps;
  char *t; /* of a group's panels, of all members one panel after the other */
} workspace;

enum { T_ELEMENTS = WIDTH * WIDTH };

static size_t t_bytes(const batchqr_problem *problem) {
  return (size_t)problem->count * T_ELEMENTS * bqr_type_bytes(problem->type);
}

/* Whether the updates by the first group's panels are the first to read all columns but the first panel's,
 * with a block for each member. */
static bool reads_first(const batchqr_problem *problem, const batchqr_variant *variant) {
  return group_of(variant) > 1 && batchqr_larfb_stream_shares(problem->m) == 1;
}

static size_t lay_out(const batchqr_problem *problem, const batchqr_variant *variant,
                      const batchqr_device *device, const bqr_panel *chosen, void *base, workspace *w) {
  bqr_arena arena = {base, 0};
  w->steps = bqr_steps_of(problem, device, rule_of(variant), chosen, &arena);
  w->steps.later = reads_first(problem, variant);
  w->t = bqr_arena_take(&arena, bqr_min(group_of(variant), w->steps.count), t_bytes(problem));
  return arena.bytes;
}

static bool supports(const batchqr_problem *problem, const batchqr_variant *variant,
                     const batchqr_device *device) {
  if (group_of(variant) > 1 && problem->m > batchqr_larfb_stream_rows(problem, device)) return false;
  return !problem->positive && bqr_steps_possible(problem, device, rule_of(variant));
}

/* Not where launches take longer than they save; many threads for a panel where panels are few. */
static bool prefers(const batchqr_problem *problem, const batchqr_variant *variant,
                    const batchqr_device *device) {
  const int k = bqr_min(problem->m, problem->n);
  if (k <= (problem->m > 1024 ? WIDTH : 256)) return false;
  const int64_t blocks = problem->count * batchqr_larfb_stream_shares(problem->m);
  if (group_of(variant) == INT_MAX && 2 * blocks < device->multiprocessors) return false;
  return rule_of(variant).wide == (problem->count < 2 * device->multiprocessors) || variant->p[0] > 1024;
}

static size_t workspace_bytes(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  workspace w;
  return lay_out(problem, variant, device, NULL, NULL, &w);
}

static int count_launches(const batchqr_problem *problem, const batchqr_variant *variant,
                          const batchqr_device *device) {
  workspace w;
  lay_out(problem, variant, device, NULL, NULL, &w);
  int launches = BQR_STEPS_LAUNCHES - w.steps.later;
  for (int step = 0; step < w.steps.count; step++) {
    const int right = (step + 1) * WIDTH;
    const bool makes_t = bqr_steps_make_t(&w.steps, step);
    launches += makes_t ? 1 : bqr_steps_panel_launches(&w.steps, step);
    if (right >= problem->n) continue;
    launches +=
        !makes_t + (group_of(variant) > 1 ? 1 : batchqr_larfb_launches(problem, device, step * WIDTH));
  }
  return launches;
}

static batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  (void)variant, (void)device;
  batchqr_status status = batchqr_blocked_prepare(problem->type);
  if (!status) status = batchqr_larfb_stream_prepare(problem->type);
  return status ? status : batchqr_geqrt_prepare(problem->type);
}

static batchqr_status open_panels(const batchqr_problem *problem, const batchqr_variant *variant,
                                  const batchqr_device *device, void **state) {
  bqr_panel *chosen;
  batchqr_status status = bqr_steps_open(problem, device, rule_of(variant), &chosen);
  *state = chosen;
  return status;
}

/* Panel `step`, and T of it unless nothing is right of it. */
static batchqr_status factor(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_args *args, const workspace *w, int step, batchqr_stream stream) {
  const bool last = (step + 1) * WIDTH >= problem->n;
  void *t = last ? NULL : w->t + (size_t)(step % group_of(variant)) * t_bytes(problem);
  if (bqr_steps_make_t(&w->steps, step)) return bqr_steps_panel_and_t(&w->steps, args, step, t, stream);
  batchqr_status status = bqr_steps_panel(&w->steps, args, step, stream);
  return status || last ? status : batchqr_larft(problem, args, step * WIDTH, WIDTH, 1, t, stream);
}

/* What follows panel `step`: the next one of its group, by all of the group so far, or all columns right of
 * the group. */
static batchqr_status update(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_args *args, const workspace *w, int step, batchqr_stream stream) {
  const int group = group_of(variant), number = step % group, start = (step - number) * WIDTH;
  const int right = (step + 1) * WIDTH;
  if (right >= problem->n) return BATCHQR_SUCCESS;
  if (group == 1)
    return batchqr_larfb(problem, args, start, WIDTH, w->t, T_ELEMENTS, true, right, problem->n, stream);
  const bool complete = number + 1 == group || step + 1 == w->steps.count;
  return batchqr_larfb_stream(problem, args, start, number + 1, w->t, T_ELEMENTS, problem->count * T_ELEMENTS,
                              right, complete ? problem->n : bqr_min(right + WIDTH, problem->n),
                              w->steps.later && start == 0 ? &w->steps.columns : NULL, stream);
}

static batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_device *device, const batchqr_args *args, batchqr_stream stream) {
  workspace w;
  lay_out(problem, variant, device, args->state, args->workspace, &w);
  batchqr_status status = bqr_steps_begin(&w.steps, args, stream);
  for (int step = 0; step < w.steps.count && !status; step++) {
    status = factor(problem, variant, args, &w, step, stream);
    if (!status) status = update(problem, variant, args, &w, step, stream);
  }
  return status ? status : bqr_steps_end(&w.steps, args, stream);
}

const batchqr_family batchqr_family_geqrf_blocked = {
    .name = "geqrf_blocked",
    .op = BATCHQR_GEQRF,
    .types = BATCHQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_panels,
    .close = free,
    .count_launches = count_launches,
    .prefers = prefers,
};
