/* SPDX-License-Identifier: BSD-3-Clause */
#include "steps.h"
#include "batch.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = BQR_BLOCK_WIDTH };

/* What there is of them without workspace. Sizes of members that differ are not known: all steps are
 * enqueued, and panels that lie in a member's tail are empty. */
static bqr_steps new_steps(const bqr_problem *problem, const bqr_device *device, bqr_panel_rule rule) {
  const int tail = BQR_TAIL_PANELS * WIDTH;
  bqr_steps steps = {.problem = problem, .device = device, .rule = rule, .end = problem->n};
  if (rule.tail && problem->uniform) steps.end = bqr_before_tail(problem->m, problem->n, WIDTH);
  steps.tail =
      steps.end < problem->n || (rule.tail && !problem->uniform && bqr_min(problem->m, problem->n) > tail);
  steps.count = (bqr_min(problem->m, steps.end) + WIDTH - 1) / WIDTH;
  return steps;
}

/* Panels and tails. */
static int count_all(const bqr_steps *steps) { return steps->count + steps->tail; }
static bool is_tail(const bqr_steps *steps, int step) { return steps->tail && step == steps->count; }

static bqr_problem panel_problem(const bqr_steps *steps, int step, int64_t count) {
  const bool tail = is_tail(steps, step);
  bqr_problem panel = *steps->problem;
  panel.op = BATCHQR_GEQRF;
  panel.pointers = true;
  panel.uniform = false;
  panel.m = tail ? BQR_TAIL_PANELS * WIDTH : panel.m - step * WIDTH;
  panel.n = tail ? BQR_TAIL_PANELS * WIDTH : bqr_min(WIDTH, panel.n - step * WIDTH);
  panel.count = count;
  return panel;
}

/* The larger the count, the fewer threads a panel is given. Tails have a warp each, and no workspace: panels
 * may be factored beside them. */
static bool choose(const bqr_steps *steps, int step, bqr_panel *choice) {
  const bool tail = is_tail(steps, step);
  const int rows = steps->rule.rows;
  bqr_problem panel = panel_problem(steps, step, steps->rule.wide || tail ? 1 : INT_MAX);
  if (tail) return bqr_panel_choose(&panel, steps->device, true, choice) && !choice->family->workspace;
  panel.n = WIDTH;
  if (rows > 0) panel.m = rows == INT_MAX ? INT_MAX : rows - step * WIDTH;
  return bqr_panel_choose(&panel, steps->device, true, choice);
}

bool bqr_steps_possible(const bqr_problem *problem, const bqr_device *device, bqr_panel_rule rule) {
  const bqr_steps steps = new_steps(problem, device, rule);
  bqr_panel choice;
  return (rule.rows == 0 || problem->m <= rule.rows) && choose(&steps, 0, &choice) &&
         (!steps.tail || choose(&steps, steps.count, &choice));
}

static batchqr_status open_panel(const bqr_steps *steps, int step, bqr_panel *choice) {
  if (!choose(steps, step, choice)) return BATCHQR_UNSUPPORTED;
  if (!choice->family->prepare) return BATCHQR_SUCCESS;
  bqr_problem panel = panel_problem(steps, step, steps->problem->count);
  return choice->family->prepare(&panel, choice->variant, steps->device);
}

batchqr_status bqr_steps_open(const bqr_problem *problem, const bqr_device *device, bqr_panel_rule rule,
                              bqr_panel **chosen) {
  const bqr_steps steps = new_steps(problem, device, rule);
  const int count = count_all(&steps);
  *chosen = NULL;
  batchqr_status status = bqr_panels_prepare(problem->type);
  if (status || count == 0) return status;
  bqr_panel *panels = malloc((size_t)count * sizeof *panels);
  if (!panels) return BATCHQR_OUT_OF_MEMORY;
  for (int step = 0; step < count && !status; step++) status = open_panel(&steps, step, &panels[step]);
  if (status)
    free(panels);
  else
    *chosen = panels;
  return status;
}

/* Without a family where there is none. */
static bqr_panel panel_of(const bqr_steps *steps, int step) {
  if (steps->chosen) return steps->chosen[step];
  bqr_panel choice = {NULL, NULL};
  choose(steps, step, &choice);
  return choice;
}

/* Bytes of workspace that the panels' families need at the most. */
static size_t panels_workspace(const bqr_steps *steps) {
  size_t most = 0;
  for (int step = 0; step < count_all(steps); step++) {
    const bqr_panel choice = panel_of(steps, step);
    if (!choice.family || !choice.family->workspace) continue;
    bqr_problem panel = panel_problem(steps, step, steps->problem->count);
    size_t bytes = choice.family->workspace(&panel, choice.variant, steps->device);
    if (bytes > most) most = bytes;
  }
  return most;
}

bqr_steps bqr_steps_of(const bqr_problem *problem, const bqr_device *device, bqr_panel_rule rule,
                       const bqr_panel *chosen, bqr_arena *arena) {
  bqr_steps steps = new_steps(problem, device, rule);
  steps.chosen = chosen;
  const int64_t panels = problem->count * count_all(&steps);
  steps.panels.a = bqr_arena_take(arena, panels, sizeof(void *));
  steps.panels.tau = bqr_arena_take(arena, panels, sizeof(void *));
  steps.panels.m = bqr_arena_take(arena, panels, sizeof(int));
  steps.panels.n = bqr_arena_take(arena, panels, sizeof(int));
  steps.panels.ld = bqr_arena_take(arena, panels, sizeof(int));
  steps.columns.nonfinite = bqr_arena_take(arena, problem->count, sizeof(int));
  steps.columns.exponents = bqr_arena_take(arena, problem->count, (size_t)problem->n * sizeof(short));
  if (problem->count <= BQR_SHARED_COLUMNS / bqr_max(problem->n, 1)) {
    steps.columns.shared = problem->n;
    steps.columns.magnitudes = bqr_arena_take(arena, BQR_SHARED_COLUMNS, sizeof(unsigned));
    steps.columns.arrived = bqr_arena_take(arena, BQR_SHARED_COLUMNS, sizeof(int));
  }
  steps.workspace = bqr_arena_take(arena, 1, panels_workspace(&steps));
  return steps;
}

int bqr_steps_panel_launches(const bqr_steps *steps, int step) {
  const bqr_panel choice = panel_of(steps, step);
  if (!choice.family) return 0;
  bqr_problem panel = panel_problem(steps, step, steps->problem->count);
  const bqr_family *f = choice.family;
  return f->count_launches ? f->count_launches(&panel, choice.variant, steps->device) : f->launches;
}

batchqr_status bqr_steps_begin(const bqr_steps *steps, const bqr_args *args, batchqr_stream stream) {
  if (steps->count == 0) return BATCHQR_SUCCESS;
  batchqr_status status = bqr_panels_fill(steps->problem, args, WIDTH, steps->count, steps->tail,
                                          &steps->panels, &steps->columns, stream);
  return status || steps->later ? status : bqr_columns_in(steps->problem, args, &steps->columns, stream);
}

static bqr_args panels_of(const bqr_steps *steps, int step, const bqr_problem *panel) {
  const int64_t first = step * panel->count;
  return (bqr_args){
      .a = {.data = steps->panels.a + first, .ld_array = steps->panels.ld + first, .pointers = true},
      .tau = {.data = steps->panels.tau + first, .pointers = true},
      .m_array = steps->panels.m + first,
      .n_array = steps->panels.n + first,
      .info = steps->later && step == 0 ? steps->columns.nonfinite : NULL,
      .m = panel->m,
      .n = panel->n,
      .count = panel->count,
      .workspace = steps->workspace};
}

batchqr_status bqr_steps_panel(const bqr_steps *steps, const bqr_args *args, int step,
                               batchqr_stream stream) {
  const bqr_problem panel = panel_problem(steps, step, args->count);
  const bqr_args panels = panels_of(steps, step, &panel);
  const bqr_panel choice = panel_of(steps, step);
  if (!choice.family) return BATCHQR_UNSUPPORTED;
  return choice.family->launch(&panel, choice.variant, steps->device, &panels, stream);
}

/* The most that a step's panels have; 0: the rule does not say. */
static int rows_of_rule(const bqr_steps *steps, int step) {
  return bqr_max(steps->rule.rows - step * WIDTH, 0);
}

bool bqr_steps_make_t(const bqr_steps *steps, int step) {
  const int rows = rows_of_rule(steps, step);
  return rows > 0 && rows <= bqr_geqrt_rows(steps->problem->type, steps->device);
}

batchqr_status bqr_steps_panel_and_t(const bqr_steps *steps, const bqr_args *args, int step, void *t,
                                     batchqr_stream stream) {
  const bqr_problem panel = panel_problem(steps, step, args->count);
  const bqr_args panels = panels_of(steps, step, &panel);
  return bqr_geqrt(panel.type, &panels, rows_of_rule(steps, step), steps->rule.wide, t, stream);
}

const void *bqr_steps_top(const bqr_steps *steps, int step) {
  const bqr_panel choice = panel_of(steps, step);
  const bool tree = choice.family && strcmp(choice.family->name, "geqrf_tsqr") == 0 &&
                    steps->problem->m - step * WIDTH > choice.variant->p[0];
  return tree ? steps->workspace : NULL;
}

batchqr_status bqr_steps_end(const bqr_steps *steps, const bqr_args *args, batchqr_stream stream) {
  return bqr_columns_out(steps->problem, args, &steps->columns, stream);
}
