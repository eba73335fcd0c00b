/* SPDX-License-Identifier: BSD-3-Clause */
/** @file mpi.h
 * Communicators over MPI: libbatchqr_mpi. */
#ifndef BATCHQR_MPI_H
#define BATCHQR_MPI_H

#include <batchqr/ranks.h>
#include <mpi.h>

#ifdef __cplusplus
extern "C" {
#endif

/** @addtogroup ranks
 * @{ */

/** How data of GPUs goes over MPI. */
typedef enum batchqr_mpi_way {
  BATCHQR_MPI_AUTO = 0,   /**< addresses of the GPU where MPI says that it takes them */
  BATCHQR_MPI_STAGED = 1, /**< by way of pinned host memory */
  BATCHQR_MPI_DEVICE = 2  /**< addresses of the GPU, which MPI takes even if it does not say so */
} batchqr_mpi_way;

/** Makes a communicator of MPI's, for either backend; of GPUs, for the thread's current one. Its functions
 * wait for the stream, and come back when the data are there. Collective: it duplicates `mpi`.
 * @param[out] communicator  NULL after an error
 * @param mpi    stays the caller's
 * @param backend  CPU or CUDA, that of the handles
 * @param way    of the CUDA backend
 * @param limit  seconds that each function waits for other ranks; 0: 600
 * @retval BATCHQR_INVALID_ARGUMENT  `communicator` is NULL, or an enum has no meaning
 * @retval BATCHQR_UNSUPPORTED  CUDA in a build without it
 * @retval BATCHQR_OUT_OF_MEMORY, BATCHQR_CUDA_ERROR  as CUDA says
 * @retval BATCHQR_RANK_ERROR  as MPI says */
BATCHQR_API batchqr_status batchqr_mpi_create(batchqr_communicator **communicator, MPI_Comm mpi,
                                              batchqr_backend backend, batchqr_mpi_way way, double limit);

/** @} */

#ifdef __cplusplus
}
#endif
#endif
