/* SPDX-License-Identifier: BSD-3-Clause */
#include "agree.h"
#include "device.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[BQR_NUM_COMMON] = {
    [BQR_COMMON_VERSION] = "batchqr_version()",
    [BQR_COMMON_CALL] = "another call, number",
    [BQR_COMMON_OP] = "op",
    [BQR_COMMON_TYPE] = "batch.type",
    [BQR_COMMON_M] = "batch.m",
    [BQR_COMMON_N] = "batch.n",
    [BQR_COMMON_K] = "batch.k",
    [BQR_COMMON_COUNT] = "batch.count",
    [BQR_COMMON_BLOCK] = "nb",
    [BQR_COMMON_TRANS] = "batch.trans",
    [BQR_COMMON_KMAX] = "batch.kmax",
    [BQR_COMMON_ABSTOL] = "batch.abstol, of bits",
    [BQR_COMMON_RELTOL] = "batch.reltol, of bits",
    [BQR_COMMON_BACKEND] = "a handle of backend",
    [BQR_COMMON_SM] = "a GPU of compute capability",
    [BQR_COMMON_MULTIPROCESSORS] = "a GPU of multiprocessors",
    [BQR_COMMON_COMPUTE] = "a handle of compute mode",
    [BQR_COMMON_POSITIVE] = "options.positive_diagonal",
    [BQR_COMMON_PLAN] = "another tuning table or build, hence a plan of hash",
};

static int64_t bits_of(double x) {
  int64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits;
}

void bqr_propose(const struct batchqr_handle *handle, bqr_collective call, batchqr_op op,
                 const batchqr_batch *batch, bqr_proposal *mine) {
  *mine = (bqr_proposal){.m = batch->m};
  int64_t *common = mine->common;
  common[BQR_COMMON_VERSION] = batchqr_version();
  common[BQR_COMMON_CALL] = call;
  common[BQR_COMMON_OP] = op;
  common[BQR_COMMON_TYPE] = batch->type;
  common[BQR_COMMON_N] = batch->n;
  common[BQR_COMMON_K] = batch->k;
  common[BQR_COMMON_COUNT] = batch->count;
  common[BQR_COMMON_TRANS] = batch->trans;
  common[BQR_COMMON_KMAX] = batch->kmax;
  common[BQR_COMMON_ABSTOL] = bits_of(batch->abstol);
  common[BQR_COMMON_RELTOL] = bits_of(batch->reltol);
  common[BQR_COMMON_BACKEND] = handle->device.backend;
  common[BQR_COMMON_SM] = handle->device.sm;
  common[BQR_COMMON_MULTIPROCESSORS] = handle->device.multiprocessors;
  common[BQR_COMMON_COMPUTE] = handle->compute;
  common[BQR_COMMON_POSITIVE] = handle->positive;
}

static batchqr_status compare(const bqr_proposal *all, int size, bqr_error *error) {
  for (int i = 0; i < BQR_NUM_COMMON; i++)
    for (int r = 1; r < size; r++)
      if (all[r].common[i] != all[0].common[i])
        return bqr_fail(error, BATCHQR_RANK_ERROR, "rank %d has %s = %" PRId64 ", and rank 0 %" PRId64, r,
                        names[i], all[r].common[i], all[0].common[i]);
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_agree(const batchqr_communicator *c, bqr_proposal *mine, batchqr_status status,
                         bqr_proposal *all, bqr_error *error) {
  mine->status = status;
  if (status) memcpy(mine->text, error->text, sizeof mine->text - 1);
  const batchqr_status sent = c->agree(c->context, mine, all, sizeof *mine);
  if (status) return status;
  if (sent) return bqr_fail(error, sent, "%s", c->message(c->context));
  for (int r = 0; r < c->size; r++)
    if (all[r].status) return bqr_fail(error, BATCHQR_RANK_ERROR, "rank %d failed: %.255s", r, all[r].text);
  return compare(all, c->size, error);
}

batchqr_status bqr_decline(const batchqr_communicator *c, batchqr_status status, bqr_error *error) {
  bqr_proposal mine = {.m = 0}, *all = calloc((size_t)(c->size > 0 ? c->size : 1), sizeof *all);
  if (all) status = bqr_agree(c, &mine, status, all, error);
  free(all);
  return status;
}

static bool is_first(const batchqr_communicator *c, const bqr_device *device, batchqr_stream stream,
                     bool launched) {
  return !launched && c->size > 1 && !bqr_stream_captured(device, stream);
}

batchqr_status bqr_meet_first(const batchqr_communicator *c, const bqr_device *device, batchqr_stream stream,
                              bool launched, char *said, bqr_condition mine, bqr_condition *worst) {
  const char say = (char)mine;
  *worst = mine;
  if (!is_first(c, device, stream, launched)) return BATCHQR_SUCCESS;
  const batchqr_status status = c->agree(c->context, &say, said, 1);
  for (int r = 0; r < c->size && !status; r++)
    if (said[r] > (char)*worst) *worst = (bqr_condition)said[r];
  return status;
}

void bqr_finish_first(const batchqr_communicator *c, const bqr_device *device, batchqr_stream stream,
                      bool launched) {
  if (is_first(c, device, stream, launched)) bqr_stream_finish(device, stream);
}

batchqr_status bqr_wait_first(const batchqr_communicator *c, const bqr_device *device, batchqr_stream stream,
                              bool launched) {
  return is_first(c, device, stream, launched) ? c->wait(c->context, stream) : BATCHQR_SUCCESS;
}

batchqr_status bqr_check_address(struct batchqr_handle *handle, const char *name, const void *address,
                                 int64_t elements) {
  bqr_error *error = &handle->error;
  if (elements == 0) return BATCHQR_SUCCESS;
  if (!address) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "operands.%s is NULL", name);
  if (!bqr_address_serves_device(&handle->device, address))
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "operands.%s = %p is host memory that %s cannot reach",
                    name, address, handle->device.name);
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_check_communicator(const struct batchqr_handle *handle, const batchqr_communicator *c,
                                      bqr_error *error) {
  const bqr_device *d = &handle->device;
  if (c->backend != BATCHQR_BACKEND_AUTO && c->backend != d->backend)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                    "the communicator carries %s memory, and the handle's is %s",
                    c->backend == BATCHQR_BACKEND_CPU ? "host" : "device",
                    d->backend == BATCHQR_BACKEND_CPU ? "host memory" : "a GPU's");
  if (d->backend == BATCHQR_BACKEND_CUDA && c->device >= 0 && c->device != d->ordinal)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                    "the communicator is of device %d, and the handle of device %d", c->device, d->ordinal);
  if (c->size < 1 || c->rank < 0 || c->rank >= c->size)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "the communicator says rank %d of %d", c->rank, c->size);
  return BATCHQR_SUCCESS;
}

batchqr_status batchqr_wait(batchqr_handle_t handle, const batchqr_communicator *communicator) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  bqr_error *error = &handle->error;
  if (!communicator) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "communicator is NULL");
  const batchqr_status status = communicator->wait(communicator->context, handle->stream);
  return status ? bqr_fail(error, status, "%s", communicator->message(communicator->context)) : status;
}
