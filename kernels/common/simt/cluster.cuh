/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters: up to 8 blocks of threads that read each other's shared memory, from compute capability 9.0 on;
 * before, a cluster is one block. */
#ifndef BQR_KERNELS_COMMON_SIMT_CLUSTER_CUH
#define BQR_KERNELS_COMMON_SIMT_CLUSTER_CUH

#include "launch.cuh"
#include <atomic>

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

/* Barriers for some threads of each block of a cluster: a phase is over when `count` have arrived. */
__device__ __forceinline__ void cluster_barrier_init([[maybe_unused]] uint64_t *b,
                                                     [[maybe_unused]] int count) {
#if __CUDA_ARCH__ >= 900
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;\n\tfence.mbarrier_init.release.cluster;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(b))),
               "r"(count)
               : "memory");
#endif
}
/* Arrives at the barriers at the same place in all blocks, for the thread's own writes: racecheck does not
 * see those of others behind an arrival. One fence for all of them, since each arrival that releases waits
 * again. */
__device__ __forceinline__ void cluster_arrive_everywhere([[maybe_unused]] uint64_t *b) {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.acq_rel.cluster;" ::: "memory");
  for (int rank = 0; rank < cluster_size(); rank++)
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(
                     static_cast<uint32_t>(__cvta_generic_to_shared(b))),
                 "r"(rank)
                 : "memory");
#endif
}
/* Waits until the phase of this parity is over. */
__device__ __forceinline__ void cluster_wait([[maybe_unused]] uint64_t *b, [[maybe_unused]] uint32_t parity) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "{\n.reg .pred done;\nagain:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@done bra over;\nbra again;\nover:\n}" ::"r"(static_cast<uint32_t>(__cvta_generic_to_shared(b))),
      "r"(parity)
      : "memory");
#endif
}

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}

/* A launch of up to `clusters` clusters of `blocks` blocks; `cluster` is to live as long. */
inline cudaLaunchConfig_t cluster_config(cudaLaunchAttribute *cluster, unsigned clusters, int blocks,
                                         int threads, size_t smem, batchqr_stream stream) {
  constexpr unsigned most_clusters = 1u << 27;
  *cluster = {};
  cluster->id = cudaLaunchAttributeClusterDimension;
  cluster->val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3((clusters < most_clusters ? clusters : most_clusters) * static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  config.attrs = cluster;
  config.numAttrs = blocks > 1 ? 1 : 0;
  return config;
}

/* launch_kernel() with such a grid. */
template <class... P, class... A>
batchqr_status launch_clusters(void (*kernel)(P...), unsigned clusters, int blocks, int threads, size_t smem,
                               batchqr_stream stream, const A &...args) {
  cudaLaunchAttribute cluster;
  const cudaLaunchConfig_t config = cluster_config(&cluster, clusters, blocks, threads, smem, stream);
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

/* The clusters of such a launch that run at the same time; 0 if the runtime does not tell. */
template <class... P> int clusters_at_once(void (*kernel)(P...), int blocks, int threads, size_t smem) {
  int clusters = 0;
  cudaLaunchAttribute cluster;
  const cudaLaunchConfig_t config = cluster_config(&cluster, 1, blocks, threads, smem, nullptr);
  const cudaError_t error =
      blocks > 1 ? cudaOccupancyMaxActiveClusters(&clusters, kernel, &config)
                 : cudaOccupancyMaxActiveBlocksPerMultiprocessor(&clusters, kernel, threads, smem);
  if (error != cudaSuccess) return 0;
  return blocks > 1 ? clusters : clusters * device_attribute(cudaDevAttrMultiProcessorCount);
}

/* That of a kernel's launches of SHAPES shapes, asked for once on each device. */
template <int SHAPES> class kept_clusters {
  static constexpr int devices = 32;
  std::atomic<int> known_[devices][SHAPES] = {};

public:
  /* At least 1. */
  template <class... P> int at_once(int shape, void (*kernel)(P...), int blocks, int threads, size_t smem) {
    int device = 0;
    cudaGetDevice(&device);
    std::atomic<int> *const known = device < devices ? &known_[device][shape] : nullptr;
    int clusters = known ? known->load(std::memory_order_relaxed) : 0;
    if (clusters == 0) {
      clusters = clusters_at_once(kernel, blocks, threads, smem);
      if (known) known->store(clusters, std::memory_order_relaxed);
    }
    return clusters > 0 ? clusters : 1;
  }
};

} // namespace bqr

#endif
