/* SPDX-License-Identifier: BSD-3-Clause */
#include "allocations.h"
#include "config.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#if BQR_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

static atomic_int allocations;
static int countdown = -1, failures;

int allocations_count(void) { return allocations; }

void allocations_fail_after(int count) {
  countdown = count;
  if (count >= 0) failures = 0;
}

int allocations_failed(void) { return failures; }

static bool must_fail(void) {
  allocations++;
  if (countdown < 0 || countdown-- > 0) return false;
  failures++;
  return true;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void *__wrap_aligned_alloc(size_t alignment, size_t bytes);

void *__wrap_malloc(size_t bytes) { return must_fail() ? NULL : __real_malloc(bytes); }
void *__wrap_calloc(size_t count, size_t bytes) { return must_fail() ? NULL : __real_calloc(count, bytes); }
void *__wrap_realloc(void *memory, size_t bytes) {
  return must_fail() ? NULL : __real_realloc(memory, bytes);
}
void *__wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return must_fail() ? NULL : __real_aligned_alloc(alignment, bytes);
}

#if BQR_HAVE_CUDA
cudaError_t __real_cudaMalloc(void **memory, size_t bytes);
cudaError_t __real_cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream);
cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes);
cudaError_t __wrap_cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream);

cudaError_t __wrap_cudaMalloc(void **memory, size_t bytes) {
  return must_fail() ? cudaErrorMemoryAllocation : __real_cudaMalloc(memory, bytes);
}
cudaError_t __wrap_cudaMallocAsync(void **memory, size_t bytes, cudaStream_t stream) {
  return must_fail() ? cudaErrorMemoryAllocation : __real_cudaMallocAsync(memory, bytes, stream);
}
#endif
