/* SPDX-License-Identifier: BSD-3-Clause */
/* Members that one block of threads does not hold: right-looking blocked QR, as LAPACK's xGEQRF, of all
 * members side by side. For each panel of 32 columns the on-chip family that holds it, T of its compact WY
 * form, and the update of the columns to its right on matrix units. */
#include "batch.h"
#include "steps.h"
#include <limits.h>
#include <stdlib.h>

enum { WIDTH = BATCHQR_BLOCK_WIDTH };

/* The panels' first number of rows, and whether a panel is given many threads. `tree`: any number of rows. */
static const batchqr_variant variants[] = {
    {"rows256", {256, 0}},      {"rows512", {512, 0}},      {"rows1024", {1024, 0}},
    {"rows256.wide", {256, 1}}, {"rows512.wide", {512, 1}}, {"rows1024.wide", {1024, 1}},
    {"rows4096", {4096, 1}},    {"rows8192", {8192, 1}},    {"rows16384", {16384, 1}},
    {"tree", {INT_MAX, 1}},
};

static bqr_panel_rule rule_of(const batchqr_variant *variant) {
  return (bqr_panel_rule){.rows = variant->p[0], .wide = variant->p[1] != 0};
}

typedef struct workspace {
  bqr_steps steps;
  void *t;
} workspace;

static size_t lay_out(const batchqr_problem *problem, const batchqr_variant *variant,
                      const batchqr_device *device, const bqr_panel *chosen, void *base, workspace *w) {
  bqr_arena arena = {base, 0};
  w->steps = bqr_steps_of(problem, device, rule_of(variant), chosen, &arena);
  w->t = bqr_arena_take(&arena, problem->count, WIDTH * WIDTH * bqr_type_bytes(problem->type));
  return arena.bytes;
}

static bool supports(const batchqr_problem *problem, const batchqr_variant *variant,
                     const batchqr_device *device) {
  return !problem->positive && bqr_steps_possible(problem, device, rule_of(variant));
}

/* Not where launches take longer than they save; many threads for a panel where panels are few. */
static bool prefers(const batchqr_problem *problem, const batchqr_variant *variant,
                    const batchqr_device *device) {
  const int k = bqr_min(problem->m, problem->n);
  if (k <= (problem->m > 1024 ? WIDTH : 256)) return false;
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
  int launches = BQR_STEPS_LAUNCHES;
  for (int step = 0; step < w.steps.count; step++) {
    launches += bqr_steps_panel_launches(&w.steps, step);
    if ((step + 1) * WIDTH < problem->n)
      launches += 1 + batchqr_larfb_launches(problem, device, step * WIDTH);
  }
  return launches;
}

static batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  (void)variant, (void)device;
  return batchqr_blocked_prepare(problem->type);
}

static batchqr_status open_panels(const batchqr_problem *problem, const batchqr_variant *variant,
                                  const batchqr_device *device, void **state) {
  bqr_panel *chosen;
  batchqr_status status = bqr_steps_open(problem, device, rule_of(variant), &chosen);
  *state = chosen;
  return status;
}

static batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_device *device, const batchqr_args *args, batchqr_stream stream) {
  workspace w;
  lay_out(problem, variant, device, args->state, args->workspace, &w);
  batchqr_status status = bqr_steps_begin(&w.steps, args, stream);
  for (int step = 0; step < w.steps.count && !status; step++) {
    const int first = step * WIDTH, right = first + WIDTH;
    status = bqr_steps_panel(&w.steps, args, step, stream);
    if (status || right >= problem->n) continue;
    status = batchqr_larft(problem, args, first, WIDTH, 1, w.t, stream);
    if (!status)
      status =
          batchqr_larfb(problem, args, first, WIDTH, w.t, WIDTH * WIDTH, true, right, problem->n, stream);
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
