/* SPDX-License-Identifier: BSD-3-Clause */
/* Least squares of tall members, for which reading A is what takes time: refinement with R from A^H A, see
 * kernels/refine/tall.h, with the direct way behind it for members with nearly dependent columns. */
#include "gels_rungs.h"
#include "costs.h"
#include "refine/tall.h"

/* The most columns. */
static const bqr_variant variants[] = {{.name = "cols512", .cols = BQR_TALL_COLUMNS}};

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  (void)variant, (void)device;
  if (number >= BQR_RUNG_CHILDREN) return false;
  *child = bqr_rungs_child(problem, number);
  return true;
}

static size_t lay_out(const bqr_problem *problem, const bqr_device *device, void *base, bqr_rungs *t) {
  bqr_arena arena = {base, 0};
  bqr_rungs_lay_out(problem, device, &arena, t);
  t->refine.memory = bqr_arena_take(&arena, 1, bqr_tall_bytes(&t->refine));
  return arena.bytes;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  bqr_rungs t;
  (void)variant;
  return lay_out(problem, device, NULL, &t);
}

static batchqr_status solve_member(bqr_rungs *t, const bqr_args *args, int64_t entry, batchqr_stream stream) {
  const bqr_refine *r = &t->refine;
  batchqr_status status = bqr_rungs_begin(t, args, entry, stream);
  if (!status) status = bqr_tall_factor(r, stream);
  if (!status) status = bqr_tall_iterate(r, stream);
  if (!status) status = bqr_refine_judge(r, stream);
  if (!status) status = bqr_rungs_solve_directly(t);
  return status ? status
                : bqr_tall_end(r, t->args.c.data, t->norms, t->args.info, t->iterations, t->relres, stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  bqr_rungs t;
  (void)variant;
  lay_out(problem, device, args->workspace, &t);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t entry = 0; entry < args->count && !status; entry++)
    status = solve_member(&t, args, entry, stream);
  return status;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bool real = problem->type == BATCHQR_S || problem->type == BATCHQR_D;
  return real && bqr_rungs_possible(problem, device) && problem->n <= variant->cols &&
         problem->k <= BQR_TALL_RIGHT;
}

/* Where the columns are so high that launches do not count, and no other family keeps members on the chip. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  (void)variant;
  return problem->n >= costs->refine.tall_cols && problem->m >= costs->refine.tall_rows &&
         (double)problem->m * problem->n >= costs->refine.tall_elements;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  batchqr_status status = bqr_tall_prepare(problem->type, problem->n);
  return status ? status : bqr_step_children_prepare(problem, 1, device);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  bqr_rungs t;
  (void)variant;
  lay_out(problem, device, NULL, &t);
  return (int)problem->count * (bqr_tall_launches(&t.refine) + bqr_rungs_launches(problem, device));
}

const bqr_family bqr_family_gels_tall = {
    BQR_RUNGS_FAMILY,
    .name = "gels_tall",
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
