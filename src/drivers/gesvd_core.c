/* SPDX-License-Identifier: BSD-3-Clause */
/* The SVD of GESVDR's core, X, by one-sided Jacobi of X V, V being the eigenvectors of X^H X: its columns are
 * nearly orthogonal but for those of singular values below the root of eps, so that one or two sweeps are
 * left of ten. Errors are small next to ||X||, as those of X are, which products have made; small singular
 * values of matrices with columns of very different lengths would lose the digits that Jacobi's method alone
 * finds. */
#include "arena.h"
#include "batch.h"
#include "families/gesvd/gesvd_core.h"
#include "gemm/member_gemm.h"
#include "step_children.h"

static const bqr_variant variants[] = {{.name = "blocks16", .blocks = 16}};

enum { LEAST_COLUMNS = 129 }; /* 128 take as long without V */

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return problem->k > 0 && !problem->whole && problem->role == BQR_ROLE_STEP && problem->uniform &&
         problem->count == 1 && problem->m == problem->n && problem->n > 0 &&
         bqr_gesvd_core_supports(problem, device);
}

static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant, (void)device;
  return problem->n >= LEAST_COLUMNS;
}

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  (void)variant, (void)device;
  if (number > 0) return false;
  *child = (bqr_problem){.op = BATCHQR_SYEVD,
                         .role = BQR_ROLE_STEP,
                         .type = problem->type,
                         .compute = problem->compute,
                         .uplo = BATCHQR_UPPER,
                         .uniform = true,
                         .tall = true,
                         .vectors = true,
                         .m = problem->n,
                         .n = problem->n,
                         .count = 1};
  return true;
}

typedef struct work {
  void *core, *square, *turned, *values, *of_child;
  int *failed;
  size_t bytes;
} work;

static work lay_out(const bqr_problem *problem, const bqr_device *device, void *base) {
  const int64_t n = problem->n;
  const size_t size = bqr_type_bytes(problem->type);
  bqr_arena arena = {base, 0};
  work w;
  w.core = bqr_arena_take(&arena, 1, bqr_gesvd_core_bytes(problem));
  w.square = bqr_arena_take(&arena, n * n, size);
  w.turned = bqr_arena_take(&arena, n * n, size);
  w.values = bqr_arena_take(&arena, n, bqr_real_bytes(problem->type));
  w.failed = bqr_arena_take(&arena, 1, sizeof *w.failed);
  w.of_child =
      bqr_arena_take(&arena, 1, problem->num_children ? bqr_step_child_workspace(problem, 0, 1, device) : 0);
  w.bytes = arena.bytes;
  return w;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  return lay_out(problem, device, NULL).bytes;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  batchqr_status status = bqr_gesvd_core_prepare(problem);
  if (!status) status = bqr_member_gemm_prepare(problem->type);
  return status ? status : bqr_step_children_prepare(problem, 1, device);
}

static batchqr_status open_states(const bqr_problem *problem, const bqr_variant *variant,
                                  const bqr_device *device, void **state) {
  (void)variant;
  return bqr_step_children_open(problem, 1, device, state);
}

static bqr_matrix square(void *data, int n) { return (bqr_matrix){.data = data, .row_stride = 1, .ld = n}; }

/* c := op(a) b, all n x n */
static batchqr_status multiply(const bqr_problem *problem, bool adjoint, void *a, void *b, void *c,
                               batchqr_stream stream) {
  const int n = problem->n;
  const bqr_problem product = {.op = BQR_MULTIPLY,
                               .type = problem->type,
                               .trans = adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS,
                               .uniform = true,
                               .m = n,
                               .n = n,
                               .k = n,
                               .count = 1};
  const bqr_args args = {
      .a = square(a, n), .r = square(b, n), .c = square(c, n), .m = n, .n = n, .k = n, .count = 1};
  return bqr_member_gemm(&product, &args, stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  const int n = problem->n;
  const work w = lay_out(problem, device, args->workspace);
  void *x = bqr_gesvd_core_x(problem, w.core), *v = bqr_gesvd_core_v(problem, w.core);
  bqr_args eigenvectors = {.a = square(w.square, n),
                           .s = {.data = w.values},
                           .v = square(v, n),
                           .info = w.failed,
                           .workspace = w.of_child,
                           .m = n,
                           .n = n};
  (void)variant;
  batchqr_status status = bqr_gesvd_core_begin(problem, device, args, stream);
  if (!status) status = multiply(problem, true, x, x, w.square, stream);
  if (!status) status = bqr_step_child_launch(problem, 0, 1, device, eigenvectors, args->state, stream);
  if (!status) status = multiply(problem, false, x, v, w.turned, stream);
  return status ? status : bqr_gesvd_core_rotate(problem, device, args, w.turned, w.failed, stream);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  enum { PRODUCTS = 2 };
  (void)variant;
  return BQR_GESVD_CORE_LAUNCHES + PRODUCTS +
         (problem->num_children ? bqr_step_child_launches(problem, 0, 1, device) : 0);
}

const bqr_family bqr_family_gesvd_core = {
    .name = "gesvd_core",
    .op = BATCHQR_GESVD,
    .types = 1 << BATCHQR_S | 1 << BATCHQR_D,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_states,
    .close = bqr_step_children_close,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
    .only_where_good = true,
};
