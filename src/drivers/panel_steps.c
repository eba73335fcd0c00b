/* SPDX-License-Identifier: BSD-3-Clause */
#include "panel_steps.h"
#include "batch.h"
#include "wy/geqrt_clusters.h"
#include <limits.h>

enum { WIDTH = BQR_BLOCK_WIDTH };

/* What there is of them without workspace. Sizes of members that differ are not known: all steps are
 * enqueued, and panels that lie in a member's tail are empty. */
static bqr_panel_steps new_steps(const bqr_problem *problem, const bqr_device *device, bqr_panel_kind kind) {
  const int tail = BQR_TAIL_PANELS * WIDTH;
  bqr_panel_steps steps = {.problem = problem, .device = device, .kind = kind, .end = problem->n};
  if (kind.tail && problem->uniform) steps.end = bqr_before_tail(problem->m, problem->n, WIDTH);
  steps.tail =
      steps.end < problem->n || (kind.tail && !problem->uniform && bqr_min(problem->m, problem->n) > tail);
  steps.count = (bqr_min(problem->m, steps.end) + WIDTH - 1) / WIDTH;
  return steps;
}

bool bqr_panel_steps_possible(const bqr_problem *problem, bqr_panel_kind kind) {
  return bqr_min(problem->m, problem->n) <= BQR_MOST_PANELS * WIDTH &&
         (kind.rows == 0 || problem->m <= kind.rows);
}

/* The most rows that a step's panels have; 0: the kind does not say. */
static int rows_of_kind(const bqr_panel_steps *steps, int step) {
  if (steps->kind.rows == INT_MAX) return INT_MAX;
  return bqr_max(steps->kind.rows - step * WIDTH, 0);
}

bool bqr_panel_steps_make_t(const bqr_panel_steps *steps, int step) {
  const int rows = rows_of_kind(steps, step), blocks = steps->kind.blocks;
  const batchqr_type type = steps->problem->type;
  return rows > 0 && rows <= (blocks > 0 ? bqr_geqrt_clusters_rows(type, blocks, steps->device)
                                         : bqr_geqrt_rows(type, steps->device));
}

/* --- children */

static bool is_tail(const bqr_panel_steps *steps, int step) { return steps->tail && step == steps->count; }

/* Whether a step's panel is a child: panels get lower from step to step, so that the first steps' are. */
static bool is_child(const bqr_panel_steps *steps, int step) {
  return step < steps->count && !bqr_panel_steps_make_t(steps, step);
}

/* NULL: bqr_geqrt() factors the panel. */
static const bqr_child *child_of(const bqr_panel_steps *steps, int step) {
  const int panels = steps->problem->num_children - steps->tail;
  const int number = is_tail(steps, step) ? panels : step;
  return is_tail(steps, step) || step < panels ? &steps->problem->children[number] : NULL;
}

/* The panels of all members at a step as a problem of their own, with the children of its family. */
static bqr_problem panel_problem(const bqr_panel_steps *steps, int step, int64_t count) {
  const bool tail = is_tail(steps, step);
  bqr_problem panel = *steps->problem;
  panel.op = BATCHQR_GEQRF;
  panel.role = tail ? BQR_ROLE_LEAF : BQR_ROLE_PANEL;
  panel.pointers = true;
  panel.uniform = false;
  panel.m = tail ? BQR_TAIL_PANELS * WIDTH : panel.m - step * WIDTH;
  panel.n = tail ? BQR_TAIL_PANELS * WIDTH : bqr_min(WIDTH, panel.n - step * WIDTH);
  panel.k = 0;
  panel.count = count;
  panel.children = NULL;
  panel.num_children = 0;
  return panel;
}

/* The same with what has been chosen for its children. */
static bqr_problem planned_panel(const bqr_panel_steps *steps, int step, int64_t count) {
  const bqr_child *child = child_of(steps, step);
  bqr_problem panel = panel_problem(steps, step, count);
  if (child) panel.children = child->problem.children, panel.num_children = child->problem.num_children;
  return panel;
}

/* Panels are asked for as if they were as high as the kind permits, and all 32 columns wide. The larger the
 * count, the fewer threads a panel is given; tails have a warp each. */
bool bqr_panel_steps_child(const bqr_problem *problem, const bqr_device *device, bqr_panel_kind kind,
                           int number, bqr_problem *child) {
  const bqr_panel_steps steps = new_steps(problem, device, kind);
  const bool tail = steps.tail && !is_child(&steps, number) && (number == 0 || is_child(&steps, number - 1));
  if (!tail && !is_child(&steps, number)) return false;
  *child = panel_problem(&steps, tail ? steps.count : number, kind.many_threads || tail ? 1 : INT_MAX);
  if (tail) return true;
  child->n = WIDTH;
  if (kind.rows > 0) child->m = rows_of_kind(&steps, number);
  return true;
}

static batchqr_status prepare_panel(const bqr_panel_steps *steps, int step) {
  const bqr_child *child = child_of(steps, step);
  if (!child || !child->family->prepare) return BATCHQR_SUCCESS;
  const bqr_problem panel = planned_panel(steps, step, steps->problem->count);
  return child->family->prepare(&panel, child->variant, steps->device);
}

batchqr_status bqr_panel_steps_prepare(const bqr_problem *problem, const bqr_device *device,
                                       bqr_panel_kind kind) {
  const bqr_panel_steps steps = new_steps(problem, device, kind);
  batchqr_status status = bqr_panels_prepare(problem->type);
  for (int step = 0; step < steps.count + steps.tail && !status; step++) status = prepare_panel(&steps, step);
  return status;
}

/* Bytes of workspace that the panels' families need at the most. */
static size_t panels_workspace(const bqr_panel_steps *steps) {
  size_t most = 0;
  for (int step = 0; step < steps->count + steps->tail; step++) {
    const bqr_child *child = child_of(steps, step);
    if (!child || !child->family->workspace) continue;
    const bqr_problem panel = planned_panel(steps, step, steps->problem->count);
    const size_t bytes = child->family->workspace(&panel, child->variant, steps->device);
    if (bytes > most) most = bytes;
  }
  return most;
}

int bqr_panel_steps_launches(const bqr_panel_steps *steps, int step) {
  const bqr_child *child = child_of(steps, step);
  const bqr_family *f = child->family;
  const bqr_problem panel = planned_panel(steps, step, steps->problem->count);
  return f->count_launches ? f->count_launches(&panel, child->variant, steps->device) : f->launches;
}

/* --- launches */

bqr_panel_steps bqr_panel_steps_of(const bqr_problem *problem, const bqr_device *device, bqr_panel_kind kind,
                                   bqr_arena *arena) {
  bqr_panel_steps steps = new_steps(problem, device, kind);
  const int64_t panels = problem->count * (steps.count + steps.tail);
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

batchqr_status bqr_panel_steps_begin(const bqr_panel_steps *steps, const bqr_args *args,
                                     batchqr_stream stream) {
  if (steps->count == 0) return BATCHQR_SUCCESS;
  batchqr_status status = bqr_panels_fill(steps->problem, args, WIDTH, steps->count, steps->tail,
                                          &steps->panels, &steps->columns, stream);
  return status || steps->later ? status : bqr_columns_in(steps->problem, args, &steps->columns, stream);
}

static bqr_args panels_of(const bqr_panel_steps *steps, int step, const bqr_problem *panel) {
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

batchqr_status bqr_panel_steps_factor(const bqr_panel_steps *steps, const bqr_args *args, int step,
                                      batchqr_stream stream) {
  const bqr_problem panel = planned_panel(steps, step, args->count);
  const bqr_args panels = panels_of(steps, step, &panel);
  const bqr_child *child = child_of(steps, step);
  return child->family->launch(&panel, child->variant, steps->device, &panels, stream);
}

batchqr_status bqr_panel_steps_geqrt(const bqr_panel_steps *steps, const bqr_args *args, int step, void *t,
                                     batchqr_stream stream) {
  if (steps->kind.blocks > 0) return bqr_panel_steps_clusters(steps, args, step, t, WIDTH * WIDTH, stream);
  const bqr_problem panel = panel_problem(steps, step, args->count);
  const bqr_args panels = panels_of(steps, step, &panel);
  return bqr_geqrt(panel.type, &panels, rows_of_kind(steps, step), steps->kind.many_threads, panel.positive,
                   t, stream);
}

batchqr_status bqr_panel_steps_clusters(const bqr_panel_steps *steps, const bqr_args *args, int step, void *t,
                                        int64_t stride_t, batchqr_stream stream) {
  const bqr_problem panel = panel_problem(steps, step, args->count);
  const bqr_args panels = panels_of(steps, step, &panel);
  return bqr_geqrt_clusters(panel.type, &panels, rows_of_kind(steps, step), steps->kind.blocks,
                            panel.positive, t, stride_t, stream);
}

const void *bqr_panel_steps_top(const bqr_panel_steps *steps, int step) {
  const bqr_child *child = child_of(steps, step);
  if (!child || !child->family->leaves_tops) return NULL;
  const bqr_problem panel = planned_panel(steps, step, steps->problem->count);
  return child->family->leaves_tops(&panel, child->variant) ? steps->workspace : NULL;
}

bool bqr_panel_steps_tall(const bqr_panel_steps *steps, int step) {
  const bqr_child *child = child_of(steps, step);
  if (!child || !child->family->leaves_tops) return false;
  bqr_problem panel = planned_panel(steps, step, steps->problem->count);
  panel.positive = false; /* tops are for signs that pivots ask for */
  return child->family->leaves_tops(&panel, child->variant);
}

batchqr_status bqr_panel_steps_end(const bqr_panel_steps *steps, const bqr_args *args,
                                   batchqr_stream stream) {
  return bqr_columns_out(steps->problem, args, &steps->columns, stream);
}
