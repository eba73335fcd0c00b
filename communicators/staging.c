/* SPDX-License-Identifier: BSD-3-Clause */
#include "staging.h"

#if BATCHQR_MPI_WITH_CUDA
#include <cuda_runtime_api.h>
#include <mpi.h>
#if defined(OPEN_MPI) && OPEN_MPI
#include <mpi-ext.h>
#endif

enum { STAGING_BYTES = 1 << 25 };

batchqr_status staging_new(staging *s, bool staged) {
  cudaError_t code = cudaGetDevice(&s->ordinal);
  void *memory = NULL;
  if (code == cudaSuccess && staged) code = cudaMallocHost(&memory, STAGING_BYTES);
  *s =
      (staging){.device = true, .ordinal = s->ordinal, .memory = memory, .bytes = memory ? STAGING_BYTES : 0};
  if (code == cudaSuccess) return BATCHQR_SUCCESS;
  cudaGetLastError();
  return code == cudaErrorMemoryAllocation ? BATCHQR_OUT_OF_MEMORY : BATCHQR_CUDA_ERROR;
}

void staging_free(staging *s) {
  if (s->memory && cudaFreeHost(s->memory) != cudaSuccess) cudaGetLastError();
}

bool staging_not_needed(void) {
#if defined(MPIX_CUDA_AWARE_SUPPORT) && MPIX_CUDA_AWARE_SUPPORT
  return MPIX_Query_cuda_support() == 1;
#else
  return false;
#endif
}

bool staging_copy(void *to, const void *from, size_t bytes, batchqr_stream stream) {
  return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream) == cudaSuccess;
}

bool staging_wait(batchqr_stream stream) { return cudaStreamSynchronize(stream) == cudaSuccess; }

const char *staging_error(void) { return cudaGetErrorString(cudaGetLastError()); }

#else
#pragma GCC diagnostic ignored "-Wunused-parameter"
batchqr_status staging_new(staging *s, bool staged) { return BATCHQR_UNSUPPORTED; }
void staging_free(staging *s) {}
bool staging_not_needed(void) { return false; }
bool staging_copy(void *to, const void *from, size_t bytes, batchqr_stream stream) { return false; }
bool staging_wait(batchqr_stream stream) { return false; }
const char *staging_error(void) { return "this build is without CUDA"; }
#endif
