/* SPDX-License-Identifier: BSD-3-Clause */
/* The routines and the planned tier. */
#include "handle.h"

#define NAMES(c_name)                                                                                        \
  { .operand = {"a", c_name, "r", "tau"}, .info = "info", .norms = "norms", .range = "range" }
static const bqr_names names_one_call = NAMES("c");
static const bqr_names names_qr = NAMES("q");
static const bqr_names names_typed = {.operand = {"a", "c", "r", "tau"}, .info = "info", .typed = true};
static const bqr_names names_typed_pointers = {
    .operand = {"a_array", "c_array", "r_array", "tau_array"}, .info = "info", .typed = true};

/* --- the one-call tier */

static batchqr_status call(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                           const batchqr_operands *operands, const bqr_names *names) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  if (!batch) return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  bqr_cached *cached;
  batchqr_status status = bqr_cache_find(handle, op, batch, names, &cached);
  return status ? status : bqr_cache_execute(handle, cached, operands, names);
}

batchqr_status batch_geqrf(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *tau,
                           int *info) {
  batchqr_operands operands = {.a = a, .tau = tau, .info = info};
  return call(handle, BATCHQR_GEQRF, batch, &operands, &names_one_call);
}

batchqr_status batch_orgqr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, const void *tau,
                           int *info) {
  batchqr_operands operands = {.a = a, .tau = (void *)tau, .info = info};
  return call(handle, BATCHQR_ORGQR, batch, &operands, &names_one_call);
}

batchqr_status batch_ungqr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, const void *tau,
                           int *info) {
  return batch_orgqr(handle, batch, a, tau, info);
}

batchqr_status batch_ormqr(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_side side,
                           batchqr_trans trans, const void *a, const void *tau, void *c, int *info) {
  batchqr_operands operands = {.a = (void *)a, .tau = (void *)tau, .c = c, .info = info};
  if (!batch) return call(handle, BATCHQR_ORMQR, NULL, &operands, &names_one_call);
  batchqr_batch turned = *batch;
  turned.side = side;
  turned.trans = trans;
  return call(handle, BATCHQR_ORMQR, &turned, &operands, &names_one_call);
}

batchqr_status batch_unmqr(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_side side,
                           batchqr_trans trans, const void *a, const void *tau, void *c, int *info) {
  return batch_ormqr(handle, batch, side, trans, a, tau, c, info);
}

batchqr_status batch_qr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *q, void *r,
                        int *info) {
  batchqr_operands operands = {.a = a, .c = q, .r = r, .info = info};
  return call(handle, BATCHQR_QR, batch, &operands, &names_qr);
}

batchqr_status batch_geqr_r(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *r,
                            int *info) {
  batchqr_operands operands = {.a = a, .r = r, .info = info};
  return call(handle, BATCHQR_GEQR_R, batch, &operands, &names_one_call);
}

batchqr_status batch_gels(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_trans trans, void *a,
                          void *c, void *norms, int *info) {
  batchqr_operands operands = {.a = a, .c = c, .info = info, .norms = norms};
  if (!batch) return call(handle, BATCHQR_GELS, NULL, &operands, &names_one_call);
  batchqr_batch turned = *batch;
  turned.trans = trans;
  return call(handle, BATCHQR_GELS, &turned, &operands, &names_one_call);
}

batchqr_status batch_r_range(batchqr_handle_t handle, const batchqr_batch *batch, const void *a, void *range,
                             int *info) {
  batchqr_operands operands = {.a = (void *)a, .info = info, .range = range};
  return call(handle, BATCHQR_R_RANGE, batch, &operands, &names_one_call);
}

/* --- typed wrappers */

static batchqr_status geqrf_strided(batchqr_handle_t handle, batchqr_type type, int m, int n, void *a,
                                    int lda, int64_t stride_a, void *tau, int64_t stride_tau, int64_t count) {
  batchqr_batch batch = {.type = type,
                         .layout = BATCHQR_STRIDED,
                         .count = count,
                         .m = m,
                         .n = n,
                         .a = {.ld = lda, .stride = stride_a},
                         .stride_tau = stride_tau};
  batchqr_operands operands = {.a = a, .tau = tau};
  return call(handle, BATCHQR_GEQRF, &batch, &operands, &names_typed);
}

static batchqr_status geqrf_pointers(batchqr_handle_t handle, batchqr_type type, int m, int n,
                                     const void *a_array, int lda, const void *tau_array, int64_t count) {
  batchqr_batch batch = {
      .type = type, .layout = BATCHQR_POINTERS, .count = count, .m = m, .n = n, .a = {.ld = lda}};
  batchqr_operands operands = {.a = (void *)a_array, .tau = (void *)tau_array};
  return call(handle, BATCHQR_GEQRF, &batch, &operands, &names_typed_pointers);
}

static batchqr_status gels_strided(batchqr_handle_t handle, batchqr_type type, batchqr_trans trans, int m,
                                   int n, int k, void *a, int lda, int64_t stride_a, void *c, int ldc,
                                   int64_t stride_c, int *info, int64_t count) {
  batchqr_batch batch = {.type = type,
                         .layout = BATCHQR_STRIDED,
                         .count = count,
                         .m = m,
                         .n = n,
                         .k = k,
                         .trans = trans,
                         .a = {.ld = lda, .stride = stride_a},
                         .c = {.ld = ldc, .stride = stride_c}};
  batchqr_operands operands = {.a = a, .c = c, .info = info};
  return call(handle, BATCHQR_GELS, &batch, &operands, &names_typed);
}

static batchqr_status gels_pointers(batchqr_handle_t handle, batchqr_type type, batchqr_trans trans, int m,
                                    int n, int k, const void *a_array, int lda, const void *c_array, int ldc,
                                    int *info, int64_t count) {
  batchqr_batch batch = {.type = type,
                         .layout = BATCHQR_POINTERS,
                         .count = count,
                         .m = m,
                         .n = n,
                         .k = k,
                         .trans = trans,
                         .a = {.ld = lda},
                         .c = {.ld = ldc}};
  batchqr_operands operands = {.a = (void *)a_array, .c = (void *)c_array, .info = info};
  return call(handle, BATCHQR_GELS, &batch, &operands, &names_typed_pointers);
}

#define TYPED_WRAPPERS(x, TYPE, element)                                                                     \
  batchqr_status batch_##x##geqrf_strided(batchqr_handle_t handle, int m, int n, element *a, int lda,        \
                                          int64_t stride_a, element *tau, int64_t stride_tau,                \
                                          int64_t count) {                                                   \
    return geqrf_strided(handle, TYPE, m, n, a, lda, stride_a, tau, stride_tau, count);                      \
  }                                                                                                          \
  batchqr_status batch_##x##geqrf(batchqr_handle_t handle, int m, int n, element *const *a_array, int lda,   \
                                  element *const *tau_array, int64_t count) {                                \
    return geqrf_pointers(handle, TYPE, m, n, a_array, lda, tau_array, count);                               \
  }                                                                                                          \
  batchqr_status batch_##x##gels_strided(batchqr_handle_t handle, batchqr_trans trans, int m, int n, int k,  \
                                         element *a, int lda, int64_t stride_a, element *c, int ldc,         \
                                         int64_t stride_c, int *info, int64_t count) {                       \
    return gels_strided(handle, TYPE, trans, m, n, k, a, lda, stride_a, c, ldc, stride_c, info, count);      \
  }                                                                                                          \
  batchqr_status batch_##x##gels(batchqr_handle_t handle, batchqr_trans trans, int m, int n, int k,          \
                                 element *const *a_array, int lda, element *const *c_array, int ldc,         \
                                 int *info, int64_t count) {                                                 \
    return gels_pointers(handle, TYPE, trans, m, n, k, a_array, lda, c_array, ldc, info, count);             \
  }
TYPED_WRAPPERS(s, BATCHQR_S, float)
TYPED_WRAPPERS(d, BATCHQR_D, double)
TYPED_WRAPPERS(c, BATCHQR_C, batchqr_complex_float)
TYPED_WRAPPERS(z, BATCHQR_Z, batchqr_complex_double)

/* --- the planned tier */

/* Arrays of sizes that the wrong side of the machine would read. */
static batchqr_status check_array_memory(const struct batchqr_handle *handle, const batchqr_batch *batch,
                                         bqr_error *error) {
  const int *const arrays[] = {batch->m_array,    batch->n_array,    batch->k_array,
                               batch->a.ld_array, batch->c.ld_array, batch->r.ld_array};
  static const char *const called[] = {"m_array",    "n_array",    "k_array",
                                       "a.ld_array", "c.ld_array", "r.ld_array"};
  bool host = batch->sizes == BATCHQR_HOST_SIZES;
  for (int i = 0; i < 6 && batch->sizes != BATCHQR_UNIFORM; i++) {
    if (!arrays[i]) continue;
    bool serves = host ? bqr_address_serves_host(&handle->device, arrays[i])
                       : bqr_address_serves_device(&handle->device, arrays[i]);
    if (!serves)
      return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch.%s = %p is %s memory, but batch.sizes is %s",
                      called[i], (const void *)arrays[i], host ? "device" : "host",
                      host ? "BATCHQR_HOST_SIZES" : "BATCHQR_DEVICE_SIZES");
  }
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_make_plan(struct batchqr_handle *handle, batchqr_op op, const batchqr_batch *batch,
                             const bqr_names *names, struct batchqr_plan **plan) {
  bqr_error *error = &handle->error;
  *plan = NULL;
  batchqr_status status = bqr_check_enums(op, batch, names, error);
  batchqr_batch normalized = {.count = 0};
  if (!status) {
    normalized = bqr_batch_normalized(op, batch);
    status = check_array_memory(handle, &normalized, error);
  }
  if (!status) status = bqr_check_batch(op, &normalized, names, error);
  if (status) return status;
  bqr_planner planner = bqr_handle_planner(handle);
  status = bqr_plan_new(&planner, op, &normalized, plan, error);
  if (!status) status = bqr_plan_prepare(*plan, error);
  if (status) {
    bqr_plan_free(*plan);
    *plan = NULL;
  }
  return status;
}

batchqr_status batchqr_plan_create(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                                   batchqr_plan_t *plan) {
  if (plan) *plan = NULL;
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  bqr_error *error = &handle->error;
  if (!plan) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "plan is NULL");
  if (!batch) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  if ((unsigned)op >= BQR_NUM_ROUTINES)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "op = %d is not a batchqr_op", (int)op);
  if (bqr_stream_captured(&handle->device, handle->stream))
    return bqr_fail(error, BATCHQR_CAPTURE_ERROR,
                    "a plan allocates, and the handle's stream is being captured");
  return bqr_make_plan(handle, op, batch, &bqr_names_planned, plan);
}

size_t batchqr_plan_workspace(batchqr_plan_t plan) { return plan ? plan->workspace_bytes : 0; }

int batchqr_plan_launches(batchqr_plan_t plan) {
  int launches = 0;
  for (int i = 0; plan && i < plan->num_groups; i++) {
    const bqr_group *g = &plan->groups[i];
    launches += g->family->count_launches ? g->family->count_launches(&g->problem, g->variant, &plan->device)
                                          : g->family->launches;
  }
  return launches;
}

const char *batchqr_plan_describe(batchqr_plan_t plan) { return plan ? plan->description : ""; }

static const char *backend_name(const bqr_device *device) {
  return device->backend == BATCHQR_BACKEND_CPU ? "the CPU" : device->name;
}

static batchqr_status check_device(const struct batchqr_handle *handle, const struct batchqr_plan *plan,
                                   bqr_error *error) {
  const bqr_device *is = &handle->device, *was = &plan->device;
  if (is->backend == was->backend && is->ordinal == was->ordinal) return BATCHQR_SUCCESS;
  return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                  "the plan was made for %s (device %d), and the handle works on %s (device %d)",
                  backend_name(was), was->ordinal, backend_name(is), is->ordinal);
}

batchqr_status batchqr_plan_execute(batchqr_handle_t handle, batchqr_plan_t plan,
                                    const batchqr_operands *operands, void *workspace,
                                    size_t workspace_bytes) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  bqr_error *error = &handle->error;
  if (!plan) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "plan is NULL");
  if (!operands) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "operands is NULL");
  batchqr_status status = check_device(handle, plan, error);
  if (!status) status = bqr_check_operands(plan, operands, &bqr_names_planned, error);
  if (!status) status = bqr_check_workspace(plan, workspace, workspace_bytes, error);
  return status ? status : bqr_plan_launch(plan, operands, workspace, handle->stream, error);
}

void batchqr_plan_destroy(batchqr_plan_t plan) { bqr_plan_free(plan); }
