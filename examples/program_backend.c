/* SPDX-License-Identifier: BSD-3-Clause */
/* The library, and memory of the backend. */
#include "program.h"

#include <stdlib.h>
#if HAVE_CUDA
#include <cuda_runtime_api.h>

void ex_check_cuda(int error) {
  if (error != cudaSuccess) ex_die(EX_FAILED, "CUDA: %s", cudaGetErrorString(error));
}
#endif

void ex_open_backend(ex_backend *b, batchqr_backend backend, int threads) {
  batchqr_options options = {.backend = backend, .threads = threads};
  batchqr_status status = batchqr_create(&b->handle, &options);
  if (status != BATCHQR_SUCCESS)
    ex_die(status == BATCHQR_UNSUPPORTED ? EX_BAD_INPUT : EX_FAILED, "the backend could not be opened: %s%s",
           batchqr_status_string(status),
           status == BATCHQR_UNSUPPORTED ? " (no GPU here, or a library without CUDA)" : "");
  b->on_device = batchqr_get_backend(b->handle) == BATCHQR_BACKEND_CUDA;
}

void ex_close_backend(ex_backend *b) {
  batchqr_destroy(b->handle);
  b->handle = NULL;
}

void ex_require_backend(batchqr_backend backend) {
  ex_backend b;
  ex_open_backend(&b, backend, 1);
  ex_close_backend(&b);
}

void ex_check(const ex_backend *b, batchqr_status status, const char *what) {
  if (status != BATCHQR_SUCCESS)
    ex_die(EX_FAILED, "%s: %s: %s", what, batchqr_status_string(status), batchqr_error_message(b->handle));
}

double ex_available_to_backend(const ex_backend *b) {
#if HAVE_CUDA
  if (b->on_device) {
    size_t unused, all;
    ex_check_cuda(cudaMemGetInfo(&unused, &all));
    return (double)unused;
  }
#endif
  (void)b;
  return ex_available_memory();
}

void *ex_new_memory(const ex_backend *b, size_t bytes) {
  if (bytes == 0) return NULL;
#if HAVE_CUDA
  if (b->on_device) {
    void *device;
    ex_check_cuda(cudaMalloc(&device, bytes));
    return device;
  }
#endif
  (void)b;
  void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!memory) ex_die(EX_FAILED, "no memory: %zu bytes", bytes);
  return memory;
}

void ex_free_memory(const ex_backend *b, void *memory) {
#if HAVE_CUDA
  if (b->on_device) {
    ex_check_cuda(cudaFree(memory));
    return;
  }
#endif
  (void)b;
  free(memory);
}

void *ex_copy_to_backend(const ex_backend *b, void *host, size_t bytes) {
#if HAVE_CUDA
  if (b->on_device) {
    void *device = ex_new_memory(b, bytes ? bytes : 1);
    ex_check_cuda(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    return device;
  }
#endif
  (void)b, (void)bytes;
  return host;
}

void ex_update_copy(const ex_backend *b, void *copy, const void *host, size_t bytes) {
#if HAVE_CUDA
  if (b->on_device) ex_check_cuda(cudaMemcpy(copy, host, bytes, cudaMemcpyHostToDevice));
#endif
  (void)b, (void)copy, (void)host, (void)bytes;
}

void ex_copy_from_backend(const ex_backend *b, void *host, const void *copy, size_t bytes) {
#if HAVE_CUDA
  if (b->on_device) ex_check_cuda(cudaMemcpy(host, copy, bytes, cudaMemcpyDeviceToHost));
#endif
  (void)b, (void)host, (void)copy, (void)bytes;
}

void ex_free_copy(const ex_backend *b, void *copy) {
  if (b->on_device) ex_free_memory(b, copy);
}

void *ex_new_host_memory(const ex_backend *b, size_t bytes) {
#if HAVE_CUDA
  if (b->on_device) {
    void *pinned;
    ex_check_cuda(cudaMallocHost(&pinned, bytes));
    return pinned;
  }
#endif
  return ex_new_memory(b, bytes);
}

void ex_free_host_memory(const ex_backend *b, void *memory) {
#if HAVE_CUDA
  if (b->on_device) {
    ex_check_cuda(cudaFreeHost(memory));
    return;
  }
#endif
  ex_free_memory(b, memory);
}

void ex_wait_for_backend(const ex_backend *b) {
#if HAVE_CUDA
  if (b->on_device) ex_check_cuda(cudaDeviceSynchronize());
#endif
  (void)b;
}
