/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters: up to 8 blocks of threads that read each other's shared memory, from compute capability 9.0 on;
 * before, a cluster is one block. */
#ifndef BQR_KERNELS_COMMON_PTX_CLUSTER_CUH
#define BQR_KERNELS_COMMON_PTX_CLUSTER_CUH

#include "barrier.cuh"
#include "target.cuh"

namespace bqr {

constexpr int most_cluster_blocks = 8;

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
  block_sync();
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

/* The same for warps whose lanes may be apart. */
__device__ __forceinline__ void cluster_sync_unaligned() {
#if __CUDA_ARCH__ >= 900
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
#endif
}

} // namespace bqr

#endif
