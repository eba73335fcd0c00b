/* SPDX-License-Identifier: BSD-3-Clause */
#include "device.h"
#include "config.h"
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bqr_device_cpu(bqr_device *device, int threads) {
  *device = (bqr_device){.backend = BATCHQR_BACKEND_CPU, .types = BQR_ALL_TYPES, .name = "CPU"};
  device->threads = threads > 0 ? threads : omp_get_max_threads();
}

/* One of `archs`: its number, and its letter or 0. Returns what follows. */
static const char *next_arch(const char *at, int *sm, char *letter) {
  *sm = (int)strtol(at, (char **)&at, 10);
  *letter = *at == 'a' || *at == 'f' ? *at++ : '\0';
  return *at == ',' ? at + 1 : at;
}

bool bqr_archs_run_on(const char *archs, int sm) {
  int portable = 0, arch;
  char letter;
  while (*archs) {
    const char *next = next_arch(archs, &arch, &letter);
    if (next == archs) return false;
    archs = next;
    bool same_major = arch / 10 == sm / 10;
    if (letter == 'a' ? arch == sm : same_major && arch <= sm) return true;
    if (!letter) portable = arch;
  }
  return portable > 0 && portable <= sm;
}

static batchqr_status host_memory_new(size_t bytes, void **memory, bqr_error *error) {
  size_t rounded = (bytes + BQR_ALIGNMENT - 1) / BQR_ALIGNMENT * BQR_ALIGNMENT;
  *memory = rounded >= bytes ? aligned_alloc(BQR_ALIGNMENT, rounded) : NULL;
  if (*memory) return BATCHQR_SUCCESS;
  return bqr_fail(error, BATCHQR_OUT_OF_MEMORY, "host memory ran out for %zu bytes", bytes);
}

#if BQR_HAVE_CUDA
#include <cuda_runtime_api.h>
#ifdef __has_include
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#define HAVE_NVTX 1
#endif
#endif

static bool is_cuda(const bqr_device *device) { return device->backend == BATCHQR_BACKEND_CUDA; }

/* Reports a CUDA error and clears it, so that the caller's next check does not meet it. */
static batchqr_status fail_cuda(bqr_error *error, const char *what, cudaError_t code) {
  cudaGetLastError();
  batchqr_status status = code == cudaErrorMemoryAllocation ? BATCHQR_OUT_OF_MEMORY : BATCHQR_CUDA_ERROR;
  return bqr_fail(error, status, "%s: %s", what, cudaGetErrorString(code));
}

static int attribute(int ordinal, enum cudaDeviceAttr which) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, ordinal) == cudaSuccess ? value : 0;
}

static cudaError_t read_properties(bqr_device *device) {
  int count;
  cudaError_t code = cudaGetDeviceCount(&count);
  if (code == cudaSuccess && count == 0) code = cudaErrorNoDevice;
  if (code == cudaSuccess) code = cudaGetDevice(&device->ordinal);
  if (code != cudaSuccess) return code;
  int ordinal = device->ordinal;
  device->sm = 10 * attribute(ordinal, cudaDevAttrComputeCapabilityMajor) +
               attribute(ordinal, cudaDevAttrComputeCapabilityMinor);
  device->multiprocessors = attribute(ordinal, cudaDevAttrMultiProcessorCount);
  device->smem_per_block = attribute(ordinal, cudaDevAttrMaxSharedMemoryPerBlockOptin);
  device->smem_per_sm = attribute(ordinal, cudaDevAttrMaxSharedMemoryPerMultiprocessor);
  struct cudaDeviceProp properties;
  code = cudaGetDeviceProperties(&properties, ordinal);
  if (code == cudaSuccess) {
    snprintf(device->name, sizeof device->name, "%.127s", properties.name);
    code = cudaFree(NULL); /* makes the context, and fails if the device cannot be used */
  }
  return code;
}

batchqr_status bqr_device_cuda(bqr_device *device, bqr_error *reason) {
  *device = (bqr_device){.backend = BATCHQR_BACKEND_CUDA, .threads = 1, .types = BQR_CUDA_TYPES};
  cudaError_t code = read_properties(device);
  if (code != cudaSuccess) {
    cudaGetLastError();
    return bqr_fail(reason, BATCHQR_UNSUPPORTED, "%s", cudaGetErrorString(code));
  }
  if (!bqr_archs_run_on(BQR_CUDA_ARCHS, device->sm))
    return bqr_fail(reason, BATCHQR_UNSUPPORTED, "%s is an sm_%d and this build has code for %s",
                    device->name, device->sm, BQR_CUDA_ARCHS);
  return BATCHQR_SUCCESS;
}

int bqr_device_enter(const bqr_device *device) {
  int current;
  if (!is_cuda(device) || cudaGetDevice(&current) != cudaSuccess || current == device->ordinal) return -1;
  cudaSetDevice(device->ordinal);
  return current;
}

void bqr_device_leave(int previous) {
  if (previous >= 0) cudaSetDevice(previous);
}

batchqr_status bqr_memory_new(const bqr_device *device, size_t bytes, void **memory, bqr_error *error) {
  if (!is_cuda(device)) return host_memory_new(bytes, memory, error);
  *memory = NULL;
  int previous = bqr_device_enter(device);
  cudaError_t code = cudaMalloc(memory, bytes);
  bqr_device_leave(previous);
  if (code == cudaSuccess) return BATCHQR_SUCCESS;
  bqr_error what;
  bqr_fail(&what, BATCHQR_CUDA_ERROR, "no %zu bytes of device memory", bytes);
  return fail_cuda(error, what.text, code);
}

void bqr_memory_free(const bqr_device *device, void *memory) {
  if (!is_cuda(device)) {
    free(memory);
  } else if (memory) {
    int previous = bqr_device_enter(device);
    if (cudaFree(memory) != cudaSuccess) cudaGetLastError();
    bqr_device_leave(previous);
  }
}

/* On a stream of its own that does not wait for the legacy default stream, nor this for it: a copy there
 * would break a capture that some other thread has under way. */
static cudaError_t copy_to_device(void *memory, const void *from, size_t bytes) {
  cudaStream_t stream;
  cudaError_t code = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  if (code != cudaSuccess) return code;
  code = cudaMemcpyAsync(memory, from, bytes, cudaMemcpyHostToDevice, stream);
  if (code == cudaSuccess) code = cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  return code;
}

batchqr_status bqr_memory_fill(const bqr_device *device, void *memory, const void *from, size_t bytes,
                               bqr_error *error) {
  int previous = bqr_device_enter(device);
  cudaError_t code = copy_to_device(memory, from, bytes);
  bqr_device_leave(previous);
  return code == cudaSuccess ? BATCHQR_SUCCESS : fail_cuda(error, "copying the plan to the device", code);
}

batchqr_status bqr_memory_copy(const bqr_device *device, void *to, const void *from, size_t bytes,
                               batchqr_stream stream, bqr_error *error) {
  if (!is_cuda(device)) {
    memcpy(to, from, bytes);
    return BATCHQR_SUCCESS;
  }
  cudaError_t code = cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream);
  return code == cudaSuccess ? BATCHQR_SUCCESS : fail_cuda(error, "copying on the device", code);
}

static enum cudaMemoryType memory_type(const void *address) {
  struct cudaPointerAttributes found;
  if (cudaPointerGetAttributes(&found, address) == cudaSuccess) return found.type;
  cudaGetLastError();
  return cudaMemoryTypeManaged; /* not known: anyone's */
}

bool bqr_address_serves_device(const bqr_device *device, const void *address) {
  return !is_cuda(device) || memory_type(address) != cudaMemoryTypeUnregistered ||
         attribute(device->ordinal, cudaDevAttrPageableMemoryAccess) != 0;
}

bool bqr_address_serves_host(const bqr_device *device, const void *address) {
  return !is_cuda(device) || memory_type(address) != cudaMemoryTypeDevice ||
         attribute(device->ordinal, cudaDevAttrPageableMemoryAccessUsesHostPageTables) != 0;
}

bool bqr_stream_captured(const bqr_device *device, batchqr_stream stream) {
  if (!is_cuda(device)) return false;
  enum cudaStreamCaptureStatus status;
  if (cudaStreamIsCapturing(stream, &status) == cudaSuccess) return status != cudaStreamCaptureStatusNone;
  /* The legacy default stream while another stream is captured. */
  return cudaGetLastError() == cudaErrorStreamCaptureImplicit;
}

void bqr_stream_finish(const bqr_device *device, batchqr_stream stream) {
  if (is_cuda(device)) cudaStreamSynchronize(stream);
}

struct bqr_fence {
  cudaEvent_t event;
};

static cudaError_t fence_new(bqr_fence **fence) {
  *fence = malloc(sizeof **fence);
  if (!*fence) return cudaErrorMemoryAllocation;
  cudaError_t code = cudaEventCreateWithFlags(&(*fence)->event, cudaEventDisableTiming);
  if (code == cudaSuccess) return code;
  free(*fence);
  *fence = NULL;
  return code;
}

batchqr_status bqr_fence_record(const bqr_device *device, bqr_fence **fence, batchqr_stream stream,
                                bqr_error *error) {
  if (!is_cuda(device)) return BATCHQR_SUCCESS;
  int previous = bqr_device_enter(device);
  cudaError_t code = *fence ? cudaSuccess : fence_new(fence);
  if (code == cudaSuccess) code = cudaEventRecord((*fence)->event, stream);
  bqr_device_leave(previous);
  return code == cudaSuccess ? BATCHQR_SUCCESS : fail_cuda(error, "recording an event", code);
}

batchqr_status bqr_fence_order(const bqr_device *device, bqr_fence *fence, batchqr_stream stream,
                               bqr_error *error) {
  if (!fence) return BATCHQR_SUCCESS;
  int previous = bqr_device_enter(device);
  cudaError_t code = cudaStreamWaitEvent(stream, fence->event, 0);
  bqr_device_leave(previous);
  return code == cudaSuccess ? BATCHQR_SUCCESS
                             : fail_cuda(error, "waiting for the handle's last stream", code);
}

void bqr_fence_wait(const bqr_device *device, bqr_fence *fence) {
  if (!fence) return;
  int previous = bqr_device_enter(device);
  /* Waiting would end a capture that is under way in the strict modes, although the event is no part of it.
   */
  enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
  cudaThreadExchangeStreamCaptureMode(&mode);
  if (cudaEventSynchronize(fence->event) != cudaSuccess) cudaGetLastError();
  cudaThreadExchangeStreamCaptureMode(&mode);
  bqr_device_leave(previous);
}

void bqr_fence_free(const bqr_device *device, bqr_fence *fence) {
  if (!fence) return;
  int previous = bqr_device_enter(device);
  if (cudaEventDestroy(fence->event) != cudaSuccess) cudaGetLastError();
  bqr_device_leave(previous);
  free(fence);
}

const char *bqr_device_error(const bqr_device *device) {
  if (!is_cuda(device)) return "the CPU reported an error";
  cudaError_t code = cudaGetLastError();
  return code == cudaSuccess ? "an error without a text" : cudaGetErrorString(code);
}

#if HAVE_NVTX
void bqr_profile_begin(const bqr_device *device, const char *name) {
  if (is_cuda(device)) nvtxRangePushA(name);
}

void bqr_profile_end(const bqr_device *device) {
  if (is_cuda(device)) nvtxRangePop();
}
#endif

#else /* the CPU alone: there is nothing to wait for, and no address is another's */
#pragma GCC diagnostic ignored "-Wunused-parameter"

batchqr_status bqr_device_cuda(bqr_device *device, bqr_error *reason) {
  *device = (bqr_device){.backend = BATCHQR_BACKEND_CUDA};
  return bqr_fail(reason, BATCHQR_UNSUPPORTED, "this build is without CUDA");
}

int bqr_device_enter(const bqr_device *device) { return -1; }
void bqr_device_leave(int previous) {}

batchqr_status bqr_memory_new(const bqr_device *device, size_t bytes, void **memory, bqr_error *error) {
  return host_memory_new(bytes, memory, error);
}

void bqr_memory_free(const bqr_device *device, void *memory) { free(memory); }

batchqr_status bqr_memory_fill(const bqr_device *device, void *memory, const void *from, size_t bytes,
                               bqr_error *error) {
  memcpy(memory, from, bytes);
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_memory_copy(const bqr_device *device, void *to, const void *from, size_t bytes,
                               batchqr_stream stream, bqr_error *error) {
  memcpy(to, from, bytes);
  return BATCHQR_SUCCESS;
}

bool bqr_address_serves_device(const bqr_device *device, const void *address) { return true; }
bool bqr_address_serves_host(const bqr_device *device, const void *address) { return true; }
bool bqr_stream_captured(const bqr_device *device, batchqr_stream stream) { return false; }

void bqr_stream_finish(const bqr_device *device, batchqr_stream stream) {}

batchqr_status bqr_fence_record(const bqr_device *device, bqr_fence **fence, batchqr_stream stream,
                                bqr_error *error) {
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_fence_order(const bqr_device *device, bqr_fence *fence, batchqr_stream stream,
                               bqr_error *error) {
  return BATCHQR_SUCCESS;
}

void bqr_fence_wait(const bqr_device *device, bqr_fence *fence) {}
void bqr_fence_free(const bqr_device *device, bqr_fence *fence) {}

const char *bqr_device_error(const bqr_device *device) { return "the CPU reported an error"; }
#endif

#if !HAVE_NVTX
#pragma GCC diagnostic ignored "-Wunused-parameter"
void bqr_profile_begin(const bqr_device *device, const char *name) {}
void bqr_profile_end(const bqr_device *device) {}
#endif
