/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchange within a block. All threads of the block call these words together; blockDim.x is a multiple of
 * 32, y and z are 1. Sums are formed in an order that depends on the block's size alone. */
#ifndef BQR_KERNELS_COMMON_SIMT_BLOCK_CUH
#define BQR_KERNELS_COMMON_SIMT_BLOCK_CUH

#include "warp.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

constexpr int max_warps = 32;

__device__ __forceinline__ int thread_id() { return static_cast<int>(threadIdx.x); }
__device__ __forceinline__ int num_threads() { return static_cast<int>(blockDim.x); }
/* The largest of what threads offer, in shared memory. */
__device__ __forceinline__ void shared_max(uint32_t *to, uint32_t v) { atomicMax(to, v); }

/* Reductions over the block, N values of T at once. Two buffers are used in turn, so that each reduction
 * takes one barrier; that barrier also orders all other shared-memory accesses before and after it. N: a
 * power of two up to 32. */
template <class T, int N> class block_reducer {
public:
  /* Elements of T of shared memory. */
  static constexpr int elements = 2 * max_warps * N;
  BQR_INLINE static constexpr int elements_for(int warps) { return 2 * warps * N; }

  __device__ __forceinline__ explicit block_reducer(T *scratch) : scratch_(scratch), turn_(0) {}

  /* v[i] := the sum of v[i] over all threads, in all threads. */
  __device__ __forceinline__ void sum(T (&v)[N]) {
    T *buffer = next_buffer();
    T mine = group_sum_scatter<N>(v);
    if (lane_id() % (warp_lanes / N) == 0) buffer[warp_id() * N + lane_id() / (warp_lanes / N)] = mine;
    block_sync();
    T total = zero<T>();
    for (int w = lane_id() / N; w < num_warps(); w += warp_lanes / N)
      total = total + buffer[w * N + lane_id() % N];
#pragma unroll
    for (int d = warp_lanes / 2; d >= N; d /= 2) total = total + exchange(total, d);
#pragma unroll
    for (int i = 0; i < N; i++) v[i] = broadcast(total, i);
  }

  /* The sum of a real number over all threads, in all threads. */
  __device__ __forceinline__ real_t<T> sum(real_t<T> v) {
    real_t<T> *buffer = reinterpret_cast<real_t<T> *>(next_buffer());
    v = group_sum(v);
    if (lane_id() == 0) buffer[warp_id()] = v;
    block_sync();
    return group_sum(lane_id() < num_warps() ? buffer[lane_id()] : real_t<T>(0));
  }

  /* The largest over all threads, in all threads. */
  __device__ __forceinline__ uint32_t max(uint32_t v) {
    uint32_t *buffer = reinterpret_cast<uint32_t *>(next_buffer());
    v = group_max(v);
    if (lane_id() == 0) buffer[warp_id()] = v;
    block_sync();
    return group_max(lane_id() < num_warps() ? buffer[lane_id()] : 0u);
  }

private:
  __device__ __forceinline__ T *next_buffer() {
    T *buffer = scratch_ + turn_ * (num_warps() * N);
    turn_ ^= 1;
    return buffer;
  }

  T *scratch_;
  int turn_;
};

} // namespace bqr

#endif
