/* SPDX-License-Identifier: BSD-3-Clause */
/* The routines and the planned tier. */
#include "handle.h"

/* --- the one-call tier */

static batchqr_status call(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                           const batchqr_operands *operands, bqr_caller caller) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  if (!batch) return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  bqr_cached *cached;
  batchqr_status status = bqr_cache_find(handle, op, batch, caller, &cached);
  return status ? status : bqr_cache_execute(handle, cached, operands, caller);
}

batchqr_status batch_geqrf(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *tau,
                           int *info) {
  batchqr_operands operands = {.a = a, .tau = tau, .info = info};
  return call(handle, BATCHQR_GEQRF, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_orgqr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, const void *tau,
                           int *info) {
  batchqr_operands operands = {.a = a, .tau = (void *)tau, .info = info};
  return call(handle, BATCHQR_ORGQR, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_ungqr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, const void *tau,
                           int *info) {
  return batch_orgqr(handle, batch, a, tau, info);
}

batchqr_status batch_ormqr(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_side side,
                           batchqr_trans trans, const void *a, const void *tau, void *c, int *info) {
  batchqr_operands operands = {.a = (void *)a, .tau = (void *)tau, .c = c, .info = info};
  if (!batch) return call(handle, BATCHQR_ORMQR, NULL, &operands, BQR_ONE_CALL);
  batchqr_batch turned = *batch;
  turned.side = side;
  turned.trans = trans;
  return call(handle, BATCHQR_ORMQR, &turned, &operands, BQR_ONE_CALL);
}

batchqr_status batch_unmqr(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_side side,
                           batchqr_trans trans, const void *a, const void *tau, void *c, int *info) {
  return batch_ormqr(handle, batch, side, trans, a, tau, c, info);
}

batchqr_status batch_qr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *q, void *r,
                        int *info) {
  batchqr_operands operands = {.a = a, .c = q, .r = r, .info = info};
  return call(handle, BATCHQR_QR, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_geqr_r(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *r,
                            int *info) {
  batchqr_operands operands = {.a = a, .r = r, .info = info};
  return call(handle, BATCHQR_GEQR_R, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_gels(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_trans trans, void *a,
                          void *c, void *norms, int *info) {
  batchqr_operands operands = {.a = a, .c = c, .info = info, .norms = norms};
  if (!batch) return call(handle, BATCHQR_GELS, NULL, &operands, BQR_ONE_CALL);
  batchqr_batch turned = *batch;
  turned.trans = trans;
  return call(handle, BATCHQR_GELS, &turned, &operands, BQR_ONE_CALL);
}

batchqr_status batch_r_range(batchqr_handle_t handle, const batchqr_batch *batch, const void *a, void *range,
                             int *info) {
  batchqr_operands operands = {.a = (void *)a, .info = info, .range = range};
  return call(handle, BATCHQR_R_RANGE, batch, &operands, BQR_ONE_CALL);
}

/* --- typed wrappers */

static batchqr_status geqrf_strided(batchqr_handle_t handle, batchqr_type type, int m, int n, void *a,
                                    int lda, int64_t stride_a, void *tau, int64_t stride_tau, int64_t count) {
  batchqr_batch batch = {.type = type,
                         .count = count,
                         .m = m,
                         .n = n,
                         .a = {.ld = lda, .stride = stride_a},
                         .tau = {.stride = stride_tau}};
  batchqr_operands operands = {.a = a, .tau = tau};
  return call(handle, BATCHQR_GEQRF, &batch, &operands, BQR_TYPED);
}

static batchqr_status geqrf_pointers(batchqr_handle_t handle, batchqr_type type, int m, int n,
                                     const void *a_array, int lda, const void *tau_array, int64_t count) {
  batchqr_batch batch = {.type = type,
                         .count = count,
                         .m = m,
                         .n = n,
                         .a = {.layout = BATCHQR_POINTERS, .ld = lda},
                         .tau = {.layout = BATCHQR_POINTERS}};
  batchqr_operands operands = {.a = (void *)a_array, .tau = (void *)tau_array};
  return call(handle, BATCHQR_GEQRF, &batch, &operands, BQR_TYPED_POINTERS);
}

static batchqr_status gels_strided(batchqr_handle_t handle, batchqr_type type, batchqr_trans trans, int m,
                                   int n, int k, void *a, int lda, int64_t stride_a, void *c, int ldc,
                                   int64_t stride_c, int *info, int64_t count) {
  batchqr_batch batch = {.type = type,
                         .count = count,
                         .m = m,
                         .n = n,
                         .k = k,
                         .trans = trans,
                         .a = {.ld = lda, .stride = stride_a},
                         .c = {.ld = ldc, .stride = stride_c}};
  batchqr_operands operands = {.a = a, .c = c, .info = info};
  return call(handle, BATCHQR_GELS, &batch, &operands, BQR_TYPED);
}

static batchqr_status gels_pointers(batchqr_handle_t handle, batchqr_type type, batchqr_trans trans, int m,
                                    int n, int k, const void *a_array, int lda, const void *c_array, int ldc,
                                    int *info, int64_t count) {
  batchqr_batch batch = {.type = type,
                         .count = count,
                         .m = m,
                         .n = n,
                         .k = k,
                         .trans = trans,
                         .a = {.layout = BATCHQR_POINTERS, .ld = lda},
                         .c = {.layout = BATCHQR_POINTERS, .ld = ldc}};
  batchqr_operands operands = {.a = (void *)a_array, .c = (void *)c_array, .info = info};
  return call(handle, BATCHQR_GELS, &batch, &operands, BQR_TYPED_POINTERS);
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

/* The operation of the planned tier's `op`; NULL with the error set. Steps are not for callers. */
static const bqr_operation *find_operation(batchqr_handle_t handle, batchqr_op op,
                                           const batchqr_batch *batch) {
  if ((unsigned)op >= BQR_NUM_ROUTINES)
    bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "op = %d is not a batchqr_op", (int)op);
  else if (!batch)
    bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  else
    return bqr_registry_operation(bqr_registry_builtin(), (int)op);
  return NULL;
}

batchqr_status batchqr_plan_create(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                                   batchqr_plan_t *plan) {
  if (plan) *plan = NULL;
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  bqr_error *error = &handle->error;
  if (!plan) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "plan is NULL");
  const bqr_operation *operation = find_operation(handle, op, batch);
  if (!operation) return BATCHQR_INVALID_ARGUMENT;
  if (bqr_stream_captured(&handle->device, handle->stream))
    return bqr_fail(error, BATCHQR_CAPTURE_ERROR,
                    "a plan allocates, and the handle's stream is being captured");
  batchqr_status status = bqr_check_enums(operation, batch, BQR_PLANNED, error);
  if (status) return status;
  const batchqr_batch normalized = bqr_batch_normalized(operation, batch);
  return bqr_make_plan(handle, operation, &normalized, BQR_PLANNED, plan);
}

batchqr_status batchqr_workspace_size(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                                      size_t *bytes) {
  if (bytes) *bytes = 0;
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  if (!bytes) return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "bytes is NULL");
  if (!find_operation(handle, op, batch)) return BATCHQR_INVALID_ARGUMENT;
  bqr_cached *cached;
  batchqr_status status = bqr_cache_find(handle, op, batch, BQR_PLANNED, &cached);
  if (!status) *bytes = cached->plan->workspace_bytes;
  return status;
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
  if (!status) status = bqr_check_operands(plan, operands, BQR_PLANNED, error);
  if (!status) status = bqr_check_workspace(plan, workspace, workspace_bytes, error);
  return status ? status : bqr_plan_launch(plan, operands, workspace, handle->stream, error);
}

void batchqr_plan_destroy(batchqr_plan_t plan) { bqr_plan_free(plan); }
