/* SPDX-License-Identifier: BSD-3-Clause */
/* MULTIPLY for large members, one by one by the GEMM engine, in the arithmetic that the mode permits.
 * Operands that a library would sum in another way because of their alignment go through gemm/member_gemm.h,
 * but where the product is subtracted: then the sums may depend on the alignment. */
#include "batch.h"
#include "costs.h"
#include "drivers/gemm.h"
#include "drivers/strided_member.h"
#include "gemm/member_gemm.h"
#include "gemm/thin_gemm.h"

enum { MOST_MEMBERS = 1024 };
enum { THIN_COLUMNS = 1024 }; /* beyond, what splits a once costs less than the product */

static const bqr_variant variants[] = {{.name = "gemm"}};

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant, (void)device;
  return problem->uniform && !problem->pointers && problem->count <= MOST_MEMBERS;
}

/* Those of which a product fills the GPU. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double each = (double)problem->m * problem->n * problem->k;
  (void)variant;
  return each >= costs->products.multiplications &&
         ((double)problem->count <= costs->products.members || each >= costs->products.large_multiplications);
}

static bqr_gemm product_of(const bqr_problem *problem) {
  const bool adjoint = problem->trans != BATCHQR_NO_TRANS;
  return (bqr_gemm){.type = problem->type,
                    .mode = problem->compute,
                    .adjoint_a = adjoint,
                    .m = adjoint ? problem->n : problem->m,
                    .n = problem->k,
                    .k = adjoint ? problem->m : problem->n,
                    .alpha = problem->subtracts ? -1 : 1,
                    .beta = problem->subtracts};
}

static bqr_thin_gemm thin_product(const bqr_problem *problem) {
  const bqr_gemm product = product_of(problem);
  return (bqr_thin_gemm){.adjoint = product.adjoint_a, .m = product.m, .n = product.n, .k = product.k};
}

/* Whether products of which a's largest entry is known are those of gemm/thin_gemm.h. */
static bool is_thin(const bqr_problem *problem, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const bqr_thin_gemm g = thin_product(problem);
  if (device->sm != 90 || problem->type != BATCHQR_S || problem->subtracts || g.m == 0 || g.n == 0 ||
      g.k == 0 || g.n > THIN_COLUMNS)
    return false;
  if (problem->compute != BATCHQR_COMPUTE_AUTO && problem->compute != BATCHQR_COMPUTE_EMULATED) return false;
  return costs->split.launches_us +
             (double)bqr_thin_gemm_steps(&g, device) * 32 * costs->split.step_ns * 1e-3 <
         costs->native.launch_us + (double)g.m * (double)g.n * (double)g.k * costs->native.single_ps * 1e-6;
}

static size_t thin_workspace(const bqr_problem *problem, const bqr_device *device) {
  const bqr_thin_gemm thin = thin_product(problem);
  return is_thin(problem, device) ? bqr_thin_gemm_workspace(&thin, device) : 0;
}

/* Where the others of these sizes are thin, one that is not makes do with their room. */
static bqr_gemm product_in_room(const bqr_problem *problem, const bqr_device *device) {
  bqr_gemm product = product_of(problem);
  const size_t thin = thin_workspace(problem, device);
  if (thin > BQR_GEMM_LEAST_ROOM && 2 * thin < bqr_gemm_workspace(device, &product)) product.room = thin;
  return product;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  const bqr_gemm product = product_in_room(problem, device);
  const size_t bytes = bqr_gemm_workspace(device, &product), thin = thin_workspace(problem, device);
  (void)variant;
  return bytes > thin ? bytes : thin;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  const batchqr_status status = is_thin(problem, device) ? bqr_thin_gemm_prepare() : BATCHQR_SUCCESS;
  return status ? status : bqr_member_gemm_prepare(problem->type);
}

static batchqr_status open_engine(const bqr_problem *problem, const bqr_variant *variant,
                                  const bqr_device *device, void **state) {
  bqr_gemm_engine *engine;
  const batchqr_status status = bqr_gemm_engine_new(device, &engine);
  (void)problem, (void)variant;
  *state = status ? NULL : engine;
  return status;
}

static void close_engine(void *state) { bqr_gemm_engine_free(state); }

static char *address_of(const bqr_matrix *x, size_t size, int64_t id) {
  return (char *)x->data + (x->host_offsets ? x->host_offsets[id] : id * x->stride) * (int64_t)size;
}

static int64_t ld_of(const bqr_matrix *x, int64_t id) {
  return x->host_ld_array ? x->host_ld_array[id] : x->ld;
}

static int64_t entry_id(const bqr_args *args, int64_t entry) {
  return args->host_members ? args->host_members[entry] : entry;
}

static bool is_aligned(const bqr_matrix *x, size_t size, int64_t id) {
  return bqr_columns_aligned(address_of(x, size, id), ld_of(x, id), size);
}

/* Of all members, so that a member's result does not depend on its neighbours' place. */
static bool all_aligned(const bqr_args *args, size_t size) {
  bool aligned = true;
  for (int64_t i = 0; i < args->count && aligned; i++) {
    const int64_t id = entry_id(args, i);
    aligned =
        is_aligned(&args->a, size, id) && is_aligned(&args->r, size, id) && is_aligned(&args->c, size, id);
  }
  return aligned;
}

static batchqr_status multiply_all(const bqr_problem *problem, const bqr_device *device, const bqr_args *args,
                                   batchqr_stream stream) {
  const size_t size = bqr_type_bytes(problem->type);
  bqr_gemm product = product_in_room(problem, device);
  const size_t bytes = bqr_gemm_workspace(device, &product);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t i = 0; i < args->count && !status; i++) {
    const int64_t id = entry_id(args, i);
    product.a = address_of(&args->a, size, id);
    product.b = address_of(&args->r, size, id);
    product.c = address_of(&args->c, size, id);
    product.lda = ld_of(&args->a, id);
    product.ldb = ld_of(&args->r, id);
    product.ldc = ld_of(&args->c, id);
    status = bqr_gemm_enqueue(args->state, &product, args->workspace, bytes, stream);
  }
  return status;
}

static batchqr_status multiply_thin(const bqr_problem *problem, const bqr_device *device,
                                    const bqr_args *args, batchqr_stream stream) {
  const size_t size = bqr_type_bytes(problem->type);
  bqr_thin_gemm product = thin_product(problem);
  batchqr_status status = BATCHQR_SUCCESS;
  product.workspace = args->workspace;
  for (int64_t i = 0; i < args->count && !status; i++) {
    const int64_t id = entry_id(args, i);
    product.a = address_of(&args->a, size, id);
    product.r = address_of(&args->r, size, id);
    product.c = address_of(&args->c, size, id);
    product.lda = ld_of(&args->a, id);
    product.ldr = ld_of(&args->r, id);
    product.ldc = ld_of(&args->c, id);
    product.scales = args->scales + 2 * id;
    status = bqr_thin_gemm_enqueue(&product, device, stream);
  }
  return status;
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant;
  if (!problem->subtracts && !all_aligned(args, bqr_type_bytes(problem->type)))
    return bqr_member_gemm(problem, args, stream);
  if (!args->scales) return multiply_all(problem, device, args, stream);
  if (is_thin(problem, device)) return multiply_thin(problem, device, args, stream);
  batchqr_status status = bqr_member_gemm_scale(problem, args, false, stream);
  if (!status) status = multiply_all(problem, device, args, stream);
  return status ? status : bqr_member_gemm_scale(problem, args, true, stream);
}

/* Products count as one. */
static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant, (void)device;
  return 2 + (int)problem->count;
}

const bqr_family bqr_family_multiply_large = {
    .name = "multiply_large",
    .op = BQR_MULTIPLY,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = variants,
    .nvariants = 1,
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_engine,
    .close = close_engine,
    .one_state = true,
    .count_launches = count_launches,
    .prefers = prefers,
    .follows_mode = true,
};
