/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters: up to 8 blocks of threads that read each other's shared memory, from compute capability 9.0 on;
 * before, a cluster is one block. */
#ifndef BATCHQR_KERNELS_COMMON_CLUSTER_CUH
#define BATCHQR_KERNELS_COMMON_CLUSTER_CUH

#include "launch.cuh"

namespace bqr {

constexpr int most_cluster_blocks = 8;

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool has_clusters = true;
#else
constexpr bool has_clusters = false;
#endif

__device__ __forceinline__ int cluster_size() {
#if __CUDA_ARCH__ >= 900
  unsigned size;
  asm("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return static_cast<int>(size);
#else
  return 1;
#endif
}
__device__ __forceinline__ int cluster_rank() {
#if __CUDA_ARCH__ >= 900
  unsigned rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return static_cast<int>(rank);
#else
  return 0;
#endif
}

/* A barrier of all threads of the cluster; orders their shared-memory accesses. */
__device__ __forceinline__ void cluster_sync() {
#if __CUDA_ARCH__ >= 900
  asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
#else
  __syncthreads();
#endif
}

/* Where block `rank` has what is here at `shared`. */
template <class T> __device__ __forceinline__ T *cluster_shared(T *shared, int rank) {
#if __CUDA_ARCH__ >= 900
  uint64_t there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(reinterpret_cast<uint64_t>(shared)), "r"(rank));
  return reinterpret_cast<T *>(there);
#else
  return shared;
#endif
}

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}

/* launch_kernel() with a grid of up to `clusters` clusters of `blocks` blocks. */
template <class... P, class... A>
batchqr_status launch_clusters(void (*kernel)(P...), unsigned clusters, int blocks, int threads, size_t smem,
                               batchqr_stream stream, const A &...args) {
  constexpr unsigned most_clusters = 1u << 27;
  cudaLaunchAttribute cluster = {};
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3((clusters < most_clusters ? clusters : most_clusters) * static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  config.attrs = &cluster;
  config.numAttrs = blocks > 1 ? 1 : 0;
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

} // namespace bqr

#endif
