/* SPDX-License-Identifier: BSD-3-Clause */
/* Least squares of large members that are not wide: R is made in arithmetic that is faster than the working
 * precision's, and CGLS with it as preconditioner brings X to what QR in the working precision would give
 * (kernels/refine/refine.h, decision 32). Members for which it does not are solved as ever.
 *
 * Variants: how many rungs there are, the last of them the direct way; before it R from FP16 products, and,
 * of double precision, from single precision's. */
#include "gels_rungs.h"
#include "batch.h"
#include "costs.h"
#include "strided_member.h"

enum { MOST_STEPS = 100, LEAST_STEPS = 12 };

static const bqr_variant variants[] = {{.name = "by2", .by = 2}, {.name = "by3", .by = 3}};

/* Children behind those of the direct way: what makes R of the copy. */
enum { HALF = BQR_RUNG_CHILDREN, SINGLE };

static batchqr_type single_of(batchqr_type type) { return type == BATCHQR_D ? BATCHQR_S : type; }

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  (void)device;
  if (number > (variant->by == 3 ? SINGLE : HALF)) return false;
  *child = bqr_rungs_child(problem, number);
  if (number < BQR_RUNG_CHILDREN) return true;
  child->type = single_of(problem->type);
  child->k = 0;
  child->aligned = true;
  child->switched = number == SINGLE;
  if (number == HALF) child->compute = BATCHQR_COMPUTE_HALF;
  return true;
}

typedef struct work {
  bqr_rungs rungs;
  void *tau; /* of the copy */
  size_t bytes;
} work;

static void lay_out(const bqr_problem *problem, const bqr_device *device, void *base, work *w) {
  bqr_arena arena = {base, 0};
  const size_t size = bqr_type_bytes(single_of(problem->type));
  bqr_rungs_lay_out(problem, device, &arena, &w->rungs);
  bqr_refine *r = &w->rungs.refine;
  w->tau = bqr_arena_take(&arena, problem->n, size);
  r->ldcopy = bqr_aligned_ld(problem->m);
  r->copy = bqr_arena_take(&arena, r->ldcopy, (size_t)problem->n * size);
  r->memory = bqr_arena_take(&arena, 1, bqr_refine_bytes(r));
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

/* A rung: the copy of A becomes R. */
static batchqr_status climb(const work *w, int rung) {
  const bqr_rungs *t = &w->rungs;
  const bqr_refine *r = &t->refine;
  const bqr_args copy = {.a = {.data = r->copy, .ld = (int)r->ldcopy},
                         .tau = {.data = w->tau},
                         .m = r->m,
                         .n = r->n,
                         .count = 1,
                         .off = rung == SINGLE ? &r->state->off : NULL};
  batchqr_status status = bqr_refine_begin(r, rung == SINGLE, t->stream);
  if (!status) status = bqr_rungs_launch_child(t, rung, copy);
  if (!status) status = bqr_refine_invert(r, t->stream);
  if (!status) status = bqr_refine_iterate(r, most_steps(t->problem, t->device), t->stream);
  return status ? status : bqr_refine_judge(r, t->stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  work w;
  (void)variant;
  lay_out(problem, device, args->workspace, &w);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t entry = 0; entry < args->count && !status; entry++) {
    bqr_rungs *t = &w.rungs;
    status = bqr_rungs_begin(t, args, entry, stream);
    for (int rung = HALF; rung < problem->num_children && !status; rung++) status = climb(&w, rung);
    if (!status) status = bqr_rungs_solve_directly(t);
    if (!status)
      status = bqr_refine_end(&t->refine, t->args.c.data, t->norms, t->args.info, t->iterations, t->relres,
                              stream);
  }
  return status;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bool real = problem->type == BATCHQR_S || problem->type == BATCHQR_D;
  return real && (device->types >> single_of(problem->type) & 1) && bqr_rungs_possible(problem, device) &&
         problem->k <= BQR_REFINE_MOST && (variant->by == 2 || problem->type == BATCHQR_D);
}

/* Where R from FP16 products and a few steps take less time than the direct way. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double least = problem->type == BATCHQR_D ? costs->refine.double_cols : costs->refine.single_cols;
  const double ratio = (double)problem->m / problem->n;
  return problem->n >= least && ratio >= costs->refine.least_ratio && ratio <= costs->refine.most_ratio &&
         problem->k <= BQR_REFINE_COLUMNS &&
         variant->by == (problem->type == BATCHQR_D && problem->n >= costs->refine.by3_cols ? 3 : 2);
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  batchqr_status status = bqr_refine_prepare(problem->type, problem->k);
  return status ? status : bqr_step_children_prepare(problem, 1, device);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  work w;
  lay_out(problem, device, NULL, &w);
  return (int)problem->count *
         (bqr_refine_launches(&w.rungs.refine, variant->by - 1) + bqr_rungs_launches(problem, device));
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
