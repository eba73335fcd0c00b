/* SPDX-License-Identifier: BSD-3-Clause */
/* Least squares of a batch's small members by A^H A and corrected seminormal equations, see
 * kernels/refine/small.h; those with nearly dependent columns are solved by another family behind it, for
 * which the others have no rows and no columns. */
#include "arena.h"
#include "costs.h"
#include "refine/small.h"
#include "step_children.h"

/* The most columns. */
static const bqr_variant variants[] = {
    {.name = "cols32", .cols = 32},
    {.name = "cols64", .cols = 64},
    {.name = "cols128", .cols = BQR_SMALL_COLUMNS},
};

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  (void)variant, (void)device;
  if (number > 0) return false;
  *child = *problem;
  child->role = BQR_ROLE_PANEL;
  child->uniform = false;
  child->children = NULL;
  child->num_children = 0;
  return true;
}

typedef struct work {
  int *sizes; /* 3 for each member: see small.h */
  void *child;
  size_t bytes;
} work;

static work lay_out(const bqr_problem *problem, const bqr_device *device, void *base) {
  bqr_arena arena = {base, 0};
  work w;
  w.sizes = bqr_arena_take(&arena, problem->count, 3 * sizeof *w.sizes);
  w.child = bqr_arena_take(&arena, 1, bqr_step_child_workspace(problem, 0, problem->count, device));
  w.bytes = arena.bytes;
  return w;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  return lay_out(problem, device, NULL).bytes;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)device;
  return problem->role == BQR_ROLE_STEP && problem->uniform && problem->trans == BATCHQR_NO_TRANS &&
         problem->m >= problem->n && problem->n > 0 && problem->n <= variant->cols && problem->k > 0 &&
         problem->k <= BQR_SMALL_RIGHT;
}

/* Rows for each column, and columns of members of more than 64; rows of many members, and up to how many
 * columns of these in single precision. */
enum { LEAST_RATIO = 3, LEAST_WIDE = 80, WIDE = 64, LEAST_ROWS = 96, NARROW = 32 };

/* Where the work that A^H A saves is more than what its factor takes. What this saves of gels_mma's time on
 * an NVIDIA H200, where X is all that is wanted, of 1000 members: d 512 x 128 2.30, 320 x 100 2.06, 256 x
 * 64 2.43, 192 x 64 2.39, 128 x 40 1.32, 128 x 32 1.86, 100 x 33 1.19, 96 x 24 1.64; s 512 x 128 1.34, 320 x
 * 100 1.17, 256 x 64 1.79, 192 x 64 1.65, 128 x 32 1.29, 96 x 24 1.19; of 100 512 x 128 d 2.03, s 1.88; but
 * 64 x 20 d 0.77, s 1.04, and s 256 x 80 0.75, 128 x 40 0.98, 100 x 33 0.94. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const bool many = problem->count >= 3 * (int64_t)device->multiprocessors,
             low = many && (problem->type == BATCHQR_D || problem->n <= NARROW);
  if (problem->n <= costs->gram_cols || problem->m < (int64_t)LEAST_RATIO * problem->n) return false;
  if (variant->cols > WIDE) return problem->n >= LEAST_WIDE && problem->m > 2 * costs->gram_rows;
  return low ? problem->m >= LEAST_ROWS : problem->m > costs->gram_rows;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  const batchqr_status status = bqr_small_prepare(problem->type, variant->cols);
  return status ? status : bqr_step_children_prepare(problem, problem->count, device);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  const work w = lay_out(problem, device, args->workspace);
  batchqr_status status = BATCHQR_SUCCESS;
  bqr_args left = *args;
  left.workspace = w.child;
  if (!args->members) { /* arrays of sizes are indexed by members, of whom a list does not tell the largest */
    status = bqr_small_solve(problem->type, variant->cols, args, w.sizes, stream);
    left.m_array = w.sizes;
    left.n_array = w.sizes + args->count;
    left.k_array = w.sizes + 2 * args->count;
  }
  if (status) return status;
  const bqr_child *c = &problem->children[0];
  left.state = NULL;
  return c->family->launch(&c->problem, c->variant, device, &left, stream);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return 1 + bqr_step_child_launches(problem, 0, problem->count, device);
}

const bqr_family bqr_family_gels_gram = {
    .name = "gels_gram",
    .op = BATCHQR_GELS,
    .types = 1 << BATCHQR_S | 1 << BATCHQR_D,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
    .only_where_good = true,
};
