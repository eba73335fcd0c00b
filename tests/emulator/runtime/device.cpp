/* SPDX-License-Identifier: BSD-3-Clause */
/* The device: an H200 in all that kernels ask for, with fewer multiprocessors. */
#include "runtime.h"
#include "emulator/engine.h"
#include "emulator/launch.h"
#include <cstdio>
#include <map>
#include <mutex>

namespace emulator {

static constexpr int shared_of_block = 227 * 1024, shared_of_multiprocessor = 228 * 1024,
                     reserved_of_block = 1024;
static constexpr int usual_shared = 48 * 1024;

/* Enough for a cluster of 16 blocks; launches of blocks that all run at once need a thread of the host for
 * each. */
int multiprocessors() {
  static const int count = option("BATCHQR_EMULATOR_MULTIPROCESSORS", 16);
  return count;
}

static thread_local cudaError_t last_error;

cudaError_t result(cudaError_t error) {
  if (error != cudaSuccess) last_error = error;
  return error;
}

/* A kernel's attributes, which it has for the process's life. */
struct kernel_attributes {
  int dynamic_shared = usual_shared;
  bool large_clusters = false;
};
static std::mutex lock;
static kernel_attributes &attributes_of(const void *kernel) {
  static std::map<const void *, kernel_attributes> all;
  return all[kernel];
}

/* As many as shared memory and threads allow; registers are not known, so that 1024 threads stand for them.
 */
int blocks_at_once(int threads, size_t shared) {
  const int by_shared = shared_of_multiprocessor / (static_cast<int>(shared) + reserved_of_block);
  const int by_threads = 1024 / ((threads + 31) / 32 * 32);
  return by_shared < by_threads ? by_shared : by_threads;
}

static int cluster_of(const cudaLaunchConfig_t &config) {
  for (unsigned i = 0; i < config.numAttrs; i++)
    if (config.attrs[i].id == cudaLaunchAttributeClusterDimension)
      return static_cast<int>(config.attrs[i].val.clusterDim.x);
  return 1;
}

static bool cooperative(const cudaLaunchConfig_t &config) {
  for (unsigned i = 0; i < config.numAttrs; i++)
    if (config.attrs[i].id == cudaLaunchAttributeCooperative && config.attrs[i].val.cooperative) return true;
  return false;
}

int clusters_at_once(const cudaLaunchConfig_t &config) {
  const int blocks = blocks_at_once(static_cast<int>(config.blockDim.x), config.dynamicSmemBytes);
  return multiprocessors() * blocks / cluster_of(config);
}

/* As a device refuses launches. */
static cudaError_t check(const cudaLaunchConfig_t &config, const void *kernel) {
  const dim3 g = config.gridDim, b = config.blockDim;
  if (b.x < 1 || b.x > 1024 || b.y != 1 || b.z != 1) return cudaErrorInvalidConfiguration;
  if (g.x < 1 || g.x > 2147483647u || g.y < 1 || g.y > 65535 || g.z < 1 || g.z > 65535)
    return cudaErrorInvalidConfiguration;
  std::lock_guard<std::mutex> hold(lock);
  const kernel_attributes &a = attributes_of(kernel);
  if (config.dynamicSmemBytes > static_cast<size_t>(a.dynamic_shared)) return cudaErrorInvalidValue;
  const unsigned cluster = static_cast<unsigned>(cluster_of(config));
  if (cluster > (a.large_clusters ? 16u : 8u) || g.x % cluster != 0) return cudaErrorInvalidConfiguration;
  return cudaSuccess;
}

cudaError_t enqueue_kernel(const cudaLaunchConfig_t &config, const void *kernel,
                           std::function<void()> thread) {
  const cudaError_t error = check(config, kernel);
  if (error != cudaSuccess) return result(error);
  launch work;
  work.grid = config.gridDim;
  work.block = config.blockDim;
  work.shared = config.dynamicSmemBytes;
  work.cluster = cluster_of(config);
  work.together = cooperative(config);
  work.thread = std::move(thread);
  const int blocks = static_cast<int>(work.grid.x * work.grid.y * work.grid.z);
  if (work.together && blocks > multiprocessors() * blocks_at_once(static_cast<int>(config.blockDim.x),
                                                                   config.dynamicSmemBytes))
    return result(cudaErrorCooperativeLaunchTooLarge);
  return enqueue(config.stream, [work] { run(work); });
}

} // namespace emulator

using namespace emulator;

extern "C" {

cudaError_t cudaGetLastError(void) {
  const cudaError_t error = last_error;
  last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError(void) { return last_error; }

const char *cudaGetErrorString(cudaError_t error) {
  switch (error) {
  case cudaSuccess:
    return "no error";
  case cudaErrorInvalidValue:
    return "invalid argument";
  case cudaErrorMemoryAllocation:
    return "out of memory";
  case cudaErrorInvalidConfiguration:
    return "invalid configuration argument";
  case cudaErrorNoDevice:
    return "no CUDA-capable device is detected";
  case cudaErrorCooperativeLaunchTooLarge:
    return "too many blocks in cooperative launch";
  case cudaErrorStreamCaptureUnsupported:
    return "operation not permitted when stream is capturing";
  case cudaErrorStreamCaptureInvalidated:
    return "operation failed due to a previous error during capture";
  case cudaErrorStreamCaptureUnjoined:
    return "capture was not joined";
  case cudaErrorStreamCaptureImplicit:
    return "operation would make the legacy stream depend on a capturing stream";
  }
  return "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int *count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int *device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return result(device == 0 ? cudaSuccess : cudaErrorInvalidValue); }

cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute, int) {
  switch (attribute) {
  case cudaDevAttrMultiProcessorCount:
    *value = multiprocessors();
    break;
  case cudaDevAttrComputeCapabilityMajor:
    *value = 9;
    break;
  case cudaDevAttrComputeCapabilityMinor:
    *value = 0;
    break;
  case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
    *value = shared_of_multiprocessor;
    break;
  case cudaDevAttrMaxSharedMemoryPerBlockOptin:
    *value = shared_of_block;
    break;
  case cudaDevAttrMemoryPoolsSupported:
  case cudaDevAttrClusterLaunch:
    *value = 1;
    break;
  default:
    *value = 0;
  }
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int) {
  snprintf(properties->name, sizeof properties->name, "Emulated H200");
  return cudaSuccess;
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes *attributes, const void *kernel) {
  std::lock_guard<std::mutex> hold(lock);
  attributes->maxDynamicSharedSizeBytes = attributes_of(kernel).dynamic_shared;
  return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *kernel, cudaFuncAttribute attribute, int value) {
  std::lock_guard<std::mutex> hold(lock);
  kernel_attributes &a = attributes_of(kernel);
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    a.large_clusters = value != 0;
  else if (value > shared_of_block)
    return result(cudaErrorInvalidValue);
  else
    a.dynamic_shared = value;
  return cudaSuccess;
}

} // extern "C"
