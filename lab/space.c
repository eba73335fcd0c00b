/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory in the order of one stream. */
#include "memory.h"
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#if BQR_HAVE_CUDA
#include <cuda_runtime_api.h>

static void check(cudaError_t status, const char *call) {
  if (status != cudaSuccess) lab_die("%s: %s", call, cudaGetErrorString(status));
}
#define CHECK(call) check((call), #call)

static bool on_device(const memory_space *space) { return space->backend == BATCHQR_BACKEND_CUDA; }

static void transfer(memory_space *space, void *to, const void *from, size_t bytes,
                     enum cudaMemcpyKind kind) {
  if (bytes) CHECK(cudaMemcpyAsync(to, from, bytes, kind, space->stream));
}
#endif

memory_space space_new(batchqr_backend backend) {
  memory_space space = {.backend = backend};
#if BQR_HAVE_CUDA
  if (!on_device(&space)) return space;
  cudaStream_t stream;
  CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  space.stream = stream;
  for (int i = 0; i < 2; i++) {
    cudaEvent_t arrived;
    CHECK(cudaEventCreateWithFlags(&arrived, cudaEventDisableTiming));
    space.places[i].arrived = arrived;
  }
#endif
  return space;
}

void space_free(memory_space *space) {
#if BQR_HAVE_CUDA
  if (!on_device(space)) return;
  for (int i = 0; i < 2; i++) {
    CHECK(cudaFreeHost(space->places[i].memory));
    CHECK(cudaEventDestroy(space->places[i].arrived));
  }
  CHECK(cudaStreamDestroy(space->stream));
#else
  (void)space;
#endif
}

void *space_alloc(memory_space *space, size_t bytes) {
#if BQR_HAVE_CUDA
  if (on_device(space)) {
    void *p = NULL;
    cudaError_t status = cudaMalloc(&p, bytes ? bytes : 1);
    if (status == cudaSuccess) return p;
    if (status != cudaErrorMemoryAllocation) check(status, "cudaMalloc");
    cudaGetLastError();
    return NULL;
  }
#else
  (void)space;
#endif
  return aligned_alloc(256, (bytes + 256) / 256 * 256);
}

void space_release(memory_space *space, void *p) {
#if BQR_HAVE_CUDA
  if (on_device(space)) {
    if (!p) return;
    space_sync(space);
    CHECK(cudaFree(p));
    return;
  }
#else
  (void)space;
#endif
  free(p);
}

size_t space_available(memory_space *space) {
#if BQR_HAVE_CUDA
  if (on_device(space)) {
    size_t unused, all;
    CHECK(cudaMemGetInfo(&unused, &all));
    return unused;
  }
#else
  (void)space;
#endif
  long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : SIZE_MAX;
}

void space_sync(memory_space *space) {
#if BQR_HAVE_CUDA
  if (on_device(space)) CHECK(cudaStreamSynchronize(space->stream));
#else
  (void)space;
#endif
}

void space_copy(memory_space *space, void *to, const void *from, size_t bytes) {
#if BQR_HAVE_CUDA
  if (on_device(space)) {
    transfer(space, to, from, bytes, cudaMemcpyDeviceToDevice);
    return;
  }
#else
  (void)space;
#endif
  if (bytes) memcpy(to, from, bytes);
}

void space_fill(memory_space *space, void *to, int byte, size_t bytes) {
#if BQR_HAVE_CUDA
  if (on_device(space)) {
    if (bytes) CHECK(cudaMemsetAsync(to, byte, bytes, space->stream));
    return;
  }
#else
  (void)space;
#endif
  if (bytes) memset(to, byte, bytes);
}

void space_upload(memory_space *space, void *to, const void *from, size_t bytes) {
#if BQR_HAVE_CUDA
  if (on_device(space)) {
    transfer(space, to, from, bytes, cudaMemcpyHostToDevice);
    space_sync(space);
    return;
  }
#endif
  space_copy(space, to, from, bytes);
}

void space_download(memory_space *space, void *to, const void *from, size_t bytes) {
#if BQR_HAVE_CUDA
  if (on_device(space)) {
    transfer(space, to, from, bytes, cudaMemcpyDeviceToHost);
    space_sync(space);
    return;
  }
#endif
  space_copy(space, to, from, bytes);
}

#if BQR_HAVE_CUDA
/* Pinned memory, which grows as needed: copies to it run beside the host, and several times as fast. */
static void fetch_pinned(memory_space *space, memory_staging *to, const memory_columns *columns) {
  size_t bytes = columns->bytes * (size_t)columns->count;
  if (to->room < bytes) {
    CHECK(cudaFreeHost(to->memory));
    for (to->room = (size_t)1 << 20; to->room < bytes;) to->room *= 2;
    CHECK(cudaMallocHost(&to->memory, to->room));
  }
  to->columns = (memory_columns){to->memory, columns->bytes, columns->bytes, columns->count};
  if (columns->count == 1 || columns->pitch == columns->bytes)
    CHECK(cudaMemcpyAsync(to->memory, columns->data, bytes, cudaMemcpyDeviceToHost, space->stream));
  else
    CHECK(cudaMemcpy2DAsync(to->memory, columns->bytes, columns->data, columns->pitch, columns->bytes,
                            (size_t)columns->count, cudaMemcpyDeviceToHost, space->stream));
  CHECK(cudaEventRecord(to->arrived, space->stream));
}
#endif

void space_fetch(memory_space *space, int place, const memory_columns *columns) {
#if BQR_HAVE_CUDA
  if (on_device(space)) {
    fetch_pinned(space, &space->places[place], columns);
    return;
  }
#endif
  space->places[place].columns = *columns; /* they are there */
}

memory_columns space_fetched(memory_space *space, int place) {
#if BQR_HAVE_CUDA
  if (on_device(space)) CHECK(cudaEventSynchronize(space->places[place].arrived));
#endif
  return space->places[place].columns;
}
