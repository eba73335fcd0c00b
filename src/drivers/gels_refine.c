/* SPDX-License-Identifier: BSD-3-Clause */
/* Least squares of large members that are not wide: R is made in arithmetic that is faster than the working
 * precision's (gram_factor.h), and CGLS with it as preconditioner brings X to what QR in the working
 * precision would give (kernels/refine/refine.h, decision 32). Members for which it does not are solved as
 * ever. */
#include "gels_rungs.h"
#include "batch.h"
#include "costs.h"
#include "gram_factor.h"
#include "strided_member.h"

enum { MOST_STEPS = 100, LEAST_STEPS = 20 };

/* What an outer block of R has columns. */
static const bqr_variant variants[] = {{.name = "width1024", .width = 1024},
                                       {.name = "width512", .width = 512}};

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  (void)variant, (void)device;
  if (number >= BQR_RUNG_CHILDREN) return false;
  *child = bqr_rungs_child(problem, number);
  return true;
}

typedef struct work {
  bqr_rungs rungs;
  void *tiles;
  size_t bytes;
} work;

static void lay_out(const bqr_problem *problem, const bqr_device *device, void *base, work *w) {
  bqr_arena arena = {base, 0};
  bqr_rungs_lay_out(problem, device, &arena, &w->rungs);
  bqr_refine *r = &w->rungs.refine;
  r->ldcopy = bqr_aligned_ld(problem->m);
  r->copy = bqr_arena_take(&arena, r->ldcopy, (size_t)problem->n * sizeof(float));
  r->memory = bqr_arena_take(&arena, 1, bqr_refine_bytes(r));
  w->tiles = bqr_arena_take(&arena, 1, bqr_gram_factor_bytes(problem->m, problem->n));
  w->bytes = arena.bytes;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  work w;
  (void)variant;
  lay_out(problem, device, NULL, &w);
  return w.bytes;
}

/* So many that they take half of the time of the direct way. */
static int most_steps(const bqr_problem *problem, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double m = problem->m, n = problem->n;
  const double ps = problem->type == BATCHQR_D ? costs->native.double_ps : costs->native.single_ps;
  const double direct_us = n * n * (m - n / 3) * ps * 1e-6;
  const double bytes = 2 * m * n * (double)bqr_type_bytes(problem->type);
  const double step_us =
      costs->refine.step_us + costs->refine.column_ns * 1e-3 * n + bytes * costs->members.byte_ps * 1e-6;
  const double steps = direct_us / 2 / step_us;
  return steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : (int)steps;
}

static batchqr_status solve_member(work *w, int width, const bqr_args *args, int64_t entry,
                                   batchqr_stream stream) {
  bqr_rungs *t = &w->rungs;
  const bqr_refine *r = &t->refine;
  bqr_rungs_begin(t, args, entry, stream);
  batchqr_status status = bqr_rungs_bring_into_range(t, false);
  if (!status) status = bqr_refine_begin(r, stream);
  if (!status) status = bqr_gram_factor(r, width, t->device, w->tiles, stream);
  if (!status) status = bqr_refine_iterate(r, most_steps(t->problem, t->device), stream);
  if (!status) status = bqr_refine_judge(r, stream);
  if (!status) status = bqr_rungs_solve_directly(t);
  return status ? status
                : bqr_refine_end(r, t->args.c.data, t->norms, t->args.info, t->iterations, t->relres, stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  work w;
  lay_out(problem, device, args->workspace, &w);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t entry = 0; entry < args->count && !status; entry++)
    status = solve_member(&w, variant->width, args, entry, stream);
  return status;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bool real = problem->type == BATCHQR_S || problem->type == BATCHQR_D;
  (void)variant;
  return real && bqr_rungs_possible(problem, device) && problem->k <= BQR_REFINE_MOST;
}

/* Where R and a few steps take less time than the direct way. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double least = problem->type == BATCHQR_D ? costs->refine.double_cols : costs->refine.single_cols;
  const double ratio = (double)problem->m / problem->n;
  return problem->n >= least && ratio >= costs->refine.least_ratio && ratio <= costs->refine.most_ratio &&
         problem->k <= BQR_REFINE_COLUMNS && variant->width == 1024;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  batchqr_status status = bqr_refine_prepare(problem->type, problem->k);
  if (!status) status = bqr_gram_factor_prepare();
  return status ? status : bqr_step_children_prepare(problem, 1, device);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  work w;
  lay_out(problem, device, NULL, &w);
  return (int)problem->count *
         (bqr_refine_launches(&w.rungs.refine) + bqr_gram_factor_launches(problem->n, variant->width) +
          bqr_rungs_launches(problem, device));
}

const bqr_family bqr_family_gels_refine = {
    BQR_RUNGS_FAMILY,
    .name = "gels_refine",
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
};
