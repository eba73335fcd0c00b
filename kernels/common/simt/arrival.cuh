/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of a grid that leave what remains to the one that comes last. */
#ifndef BQR_KERNELS_COMMON_SIMT_ARRIVAL_CUH
#define BQR_KERNELS_COMMON_SIMT_ARRIVAL_CUH

#include "block.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

/* Whether the block is the last of `blocks` that come here. What the others wrote before is then to be read
 * with load_shared(), past the nearest cache. All threads call it together; *counter was 0 before. */
__device__ inline bool last_to_arrive(int *counter, int blocks) {
  __shared__ bool last;
  device_fence();
  block_sync();
  if (thread_id() == 0) last = atomicAdd(counter, 1) == blocks - 1;
  block_sync();
  device_fence();
  return last;
}
template <class T> __device__ __forceinline__ T load_shared(const T *from) {
  using unit =
      std::conditional_t<sizeof(T) == 16, double2, std::conditional_t<sizeof(T) == 8, double, float>>;
  union {
    unit u;
    T x;
  } value = {__ldcg(reinterpret_cast<const unit *>(from))};
  return value.x;
}
/* The sum of up to MOST of them, `stride` apart, in their order: all are under way at once. */
template <int MOST, class T>
__device__ __forceinline__ T sum_shared(const T *from, int64_t stride, int count) {
  T x[MOST], sum = zero<T>();
#pragma unroll
  for (int k = 0; k < MOST; k++) x[k] = k < count ? load_shared(from + k * stride) : zero<T>();
#pragma unroll
  for (int k = 0; k < MOST; k++) sum += x[k];
  return sum;
}

} // namespace bqr

#endif
