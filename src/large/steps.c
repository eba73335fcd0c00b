/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"
#include "batch.h"
#include "panel.h"
#include <limits.h>

enum { WIDTH = BATCHQR_BLOCK_WIDTH };

static batchqr_problem panel_problem(const batchqr_problem *problem, int step, int64_t count) {
  batchqr_problem panel = *problem;
  panel.op = BATCHQR_GEQRF;
  panel.layout = BATCHQR_POINTERS;
  panel.uniform = false;
  panel.m = problem->m - step * WIDTH;
  panel.n = bqr_min(WIDTH, problem->n - step * WIDTH);
  panel.count = count;
  return panel;
}

/* The larger the count, the fewer threads a panel is given. */
static bool choose(const batchqr_problem *problem, const batchqr_device *device, bqr_panel_rule rule,
                   int step, bqr_panel *choice) {
  batchqr_problem panel = panel_problem(problem, step, rule.wide ? 1 : INT_MAX);
  panel.n = WIDTH;
  if (rule.rows > 0) panel.m = rule.rows == INT_MAX ? INT_MAX : rule.rows - step * WIDTH;
  return bqr_panel_choose(&panel, device, true, choice);
}

bool bqr_steps_possible(const batchqr_problem *problem, const batchqr_device *device, bqr_panel_rule rule) {
  bqr_panel choice;
  return (rule.rows == 0 || problem->m <= rule.rows) && choose(problem, device, rule, 0, &choice);
}

bqr_steps bqr_steps_of(const batchqr_problem *problem, const batchqr_device *device, bqr_panel_rule rule,
                       bqr_arena *arena) {
  bqr_steps steps = {.problem = problem, .device = device, .rule = rule};
  steps.count = (bqr_min(problem->m, problem->n) + WIDTH - 1) / WIDTH;
  const int64_t panels = problem->count * steps.count;
  steps.panels.a = bqr_arena_take(arena, panels, sizeof(void *));
  steps.panels.tau = bqr_arena_take(arena, panels, sizeof(void *));
  steps.panels.m = bqr_arena_take(arena, panels, sizeof(int));
  steps.panels.n = bqr_arena_take(arena, panels, sizeof(int));
  steps.panels.ld = bqr_arena_take(arena, panels, sizeof(int));
  steps.columns.nonfinite = bqr_arena_take(arena, problem->count, sizeof(int));
  steps.columns.exponents = bqr_arena_take(arena, problem->count, (size_t)problem->n * sizeof(short));
  size_t most = 0;
  for (int step = 0; step < steps.count; step++) {
    batchqr_problem panel = panel_problem(problem, step, problem->count);
    bqr_panel choice;
    if (!choose(problem, device, rule, step, &choice) || !choice.family->workspace) continue;
    size_t bytes = choice.family->workspace(&panel, choice.variant, device);
    if (bytes > most) most = bytes;
  }
  steps.workspace = bqr_arena_take(arena, 1, most);
  return steps;
}

batchqr_status bqr_steps_prepare(const bqr_steps *steps) {
  batchqr_status status = batchqr_panels_prepare(steps->problem->type);
  for (int step = 0; step < steps->count && !status; step++) {
    batchqr_problem panel = panel_problem(steps->problem, step, steps->problem->count);
    bqr_panel choice;
    if (choose(steps->problem, steps->device, steps->rule, step, &choice) && choice.family->prepare)
      status = choice.family->prepare(&panel, choice.variant, steps->device);
  }
  return status;
}

int bqr_steps_panel_launches(const bqr_steps *steps, int step) {
  batchqr_problem panel = panel_problem(steps->problem, step, steps->problem->count);
  bqr_panel choice;
  if (!choose(steps->problem, steps->device, steps->rule, step, &choice)) return 0;
  const batchqr_family *f = choice.family;
  return f->count_launches ? f->count_launches(&panel, choice.variant, steps->device) : f->launches;
}

batchqr_status bqr_steps_begin(const bqr_steps *steps, const batchqr_args *args, batchqr_stream stream) {
  if (steps->count == 0) return BATCHQR_SUCCESS;
  batchqr_status status =
      batchqr_panels_fill(steps->problem, args, WIDTH, steps->count, &steps->panels, &steps->columns, stream);
  return status ? status : batchqr_columns_in(steps->problem, args, &steps->columns, stream);
}

batchqr_status bqr_steps_panel(const bqr_steps *steps, const batchqr_args *args, int step,
                               batchqr_stream stream) {
  batchqr_problem panel = panel_problem(steps->problem, step, args->count);
  bqr_panel choice;
  if (!choose(steps->problem, steps->device, steps->rule, step, &choice)) return BATCHQR_UNSUPPORTED;
  const int64_t first = step * args->count;
  batchqr_args panels = {.a = {.data = steps->panels.a + first, .ld_array = steps->panels.ld + first},
                         .tau = steps->panels.tau + first,
                         .m_array = steps->panels.m + first,
                         .n_array = steps->panels.n + first,
                         .m = panel.m,
                         .n = panel.n,
                         .pointers = true,
                         .tau_pointers = true,
                         .count = args->count,
                         .workspace = steps->workspace};
  return choice.family->launch(&panel, choice.variant, steps->device, &panels, stream);
}

batchqr_status bqr_steps_end(const bqr_steps *steps, const batchqr_args *args, batchqr_stream stream) {
  return batchqr_columns_out(steps->problem, args, &steps->columns, stream);
}
