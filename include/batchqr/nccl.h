/* SPDX-License-Identifier: BSD-3-Clause */
/** @file nccl.h
 * Communicators over NCCL: libbatchqr_nccl. */
#ifndef BATCHQR_NCCL_H
#define BATCHQR_NCCL_H

#include <batchqr/ranks.h>
#include <nccl.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @addtogroup ranks
 * @{ */

/** Makes a communicator of NCCL's. It carries the memory of the GPU that `nccl` was made on. Not collective.
 * Ranks may be threads of one process or processes; threads agree on the host. After #BATCHQR_RANK_ERROR of a
 * time limit abort `nccl` (ncclCommAbort()) before anything else is released: what frees memory of a GPU
 * waits for the call that the other ranks have not come to.
 * `nccl` may be one that blocks, whose first call waits for other ranks on the host: a thread of its own
 * makes it, and ends at the latest when `nccl` is aborted.
 * @param[out] communicator  NULL after an error
 * @param nccl   stays the caller's, and must outlive the communicator
 * @param limit  seconds that `agree` and `wait` wait for other ranks; 0: 600
 * @retval BATCHQR_INVALID_ARGUMENT  `communicator` is NULL, or `nccl` is none
 * @retval BATCHQR_OUT_OF_MEMORY, BATCHQR_CUDA_ERROR  as CUDA says */
BATCHQR_API batchqr_status batchqr_nccl_create(batchqr_communicator **communicator, ncclComm_t nccl,
                                               double limit);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
