/* SPDX-License-Identifier: BSD-3-Clause */
/* NCCL's call that may wait for other ranks without a limit, in a thread of its own. */
#ifndef BATCHQR_COMMUNICATORS_FIRST_CALL_H
#define BATCHQR_COMMUNICATORS_FIRST_CALL_H

#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stdbool.h>

typedef struct first_call first_call;

/* Of ncclAllGather, in bytes; the device is the communicator's. */
typedef struct first_call_arguments {
  ncclComm_t nccl;
  int device;
  const void *send;
  void *receive;
  size_t bytes;
  cudaStream_t stream;
} first_call_arguments;

/* NULL if there is no memory, or no thread to be had. */
first_call *first_call_begin(const first_call_arguments *arguments);
/* Whether NCCL has returned. */
bool first_call_over(first_call *call);
/* What it has returned. A call that is not over is left to itself: it returns when its ncclComm_t is aborted.
 */
ncclResult_t first_call_end(first_call *call);

#endif
