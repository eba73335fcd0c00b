/* SPDX-License-Identifier: BSD-3-Clause */
/* The one-call tier, whose routines are in routines.c, and the planned tier. */
#include "handle.h"
#include "verbose.h"

/* --- the one-call tier */

batchqr_status bqr_launch(struct batchqr_handle *handle, const struct batchqr_plan *plan,
                          const batchqr_operands *operands, void *workspace) {
  const double begin = handle->verbose ? bqr_verbose_clock(&plan->device, handle->stream) : 0;
  const batchqr_status status = bqr_plan_launch(plan, operands, workspace, handle->stream, &handle->error);
  if (handle->verbose) bqr_verbose_report(plan, status, begin, handle->stream);
  return status;
}

batchqr_status bqr_call(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                        const batchqr_operands *operands, bqr_caller caller) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  if (!batch) return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  batchqr_batch seen = *batch;
  if (!bqr_addresses_aligned(operands)) seen.unaligned = 1;
  bqr_cached *cached;
  batchqr_status status = bqr_cache_find(handle, op, &seen, caller, &cached);
  return status ? status : bqr_cache_execute(handle, cached, operands, caller);
}

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
  return status ? status : bqr_launch(handle, plan, operands, workspace);
}

void batchqr_plan_destroy(batchqr_plan_t plan) { bqr_plan_free(plan); }
