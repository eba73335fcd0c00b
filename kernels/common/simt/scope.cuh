/* SPDX-License-Identifier: BSD-3-Clause */
/* The threads that work on one member, as a template argument: a block of up to 16 warps. All of them call
 * these words together. Sums are formed in an order that does not depend on the block's size. */
#ifndef BQR_KERNELS_COMMON_SIMT_SCOPE_CUH
#define BQR_KERNELS_COMMON_SIMT_SCOPE_CUH

#include "block.cuh"

namespace bqr {

struct block_scope {
  /* For numbers of up to 16 bytes, in two buffers used in turn: one barrier for each sum. */
  static constexpr size_t bytes = 2 * size_t(max_warps) * 16;
  static constexpr int most_warps = 16;
  __device__ __forceinline__ explicit block_scope(unsigned char *memory) : memory_(memory), turn_(0) {}

  __device__ __forceinline__ int thread() const { return thread_id(); }
  __device__ __forceinline__ int threads() const { return num_threads(); }
  __device__ __forceinline__ int warp() const { return warp_id(); }
  __device__ __forceinline__ int warps() const { return num_warps(); }
  __device__ __forceinline__ void sync() const { block_sync(); }
  template <class T> __device__ __forceinline__ T sum(T v) {
    T *buffer = next<T>();
    v = group_sum(v);
    if (lane_id() == 0) buffer[warp_id()] = v;
    block_sync();
    return group_sum(lane_id() < num_warps() ? buffer[lane_id()] : zero<T>());
  }
  __device__ __forceinline__ uint32_t max(uint32_t v) {
    uint32_t *buffer = next<uint32_t>();
    v = group_max(v);
    if (lane_id() == 0) buffer[warp_id()] = v;
    block_sync();
    return group_max(lane_id() < num_warps() ? buffer[lane_id()] : 0u);
  }

private:
  template <class T> __device__ __forceinline__ T *next() {
    turn_ ^= 1;
    return reinterpret_cast<T *>(memory_ + turn_ * (max_warps * 16));
  }

  unsigned char *memory_;
  int turn_;
};

} // namespace bqr

#endif
