/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchange within a warp. All lanes of the warp call these words together, except where a mask is given.
 * Sums are butterflies: every lane gets the same bits. */
#ifndef BQR_KERNELS_COMMON_SIMT_WARP_CUH
#define BQR_KERNELS_COMMON_SIMT_WARP_CUH

#include "scalar.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

constexpr int warp_lanes = 32;

__device__ __forceinline__ int lane_id() { return static_cast<int>(threadIdx.x) & (warp_lanes - 1); }
__device__ __forceinline__ int warp_id() { return static_cast<int>(threadIdx.x) / warp_lanes; }
__device__ __forceinline__ int num_warps() { return static_cast<int>(blockDim.x) / warp_lanes; }

/* The value of lane `source` of the subgroup of LANES lanes. */
template <int LANES = warp_lanes, class T>
__device__ __forceinline__ T broadcast(T v, int source, unsigned mask = full_mask) {
  if constexpr (is_complex<T>)
    return T{__shfl_sync(mask, v.re, source, LANES), __shfl_sync(mask, v.im, source, LANES)};
  else
    return __shfl_sync(mask, v, source, LANES);
}

/* The value of the lane whose number differs in the bits of `lanes`. */
template <class T> __device__ __forceinline__ T exchange(T v, int lanes, unsigned mask = full_mask) {
  if constexpr (is_complex<T>)
    return T{__shfl_xor_sync(mask, v.re, lanes), __shfl_xor_sync(mask, v.im, lanes)};
  else
    return __shfl_xor_sync(mask, v, lanes);
}

/* The sum over each subgroup of LANES lanes, in all of them. */
template <int LANES = warp_lanes, class T>
__device__ __forceinline__ T group_sum(T v, unsigned mask = full_mask) {
#pragma unroll
  for (int d = LANES / 2; d > 0; d /= 2) v = v + exchange(v, d, mask);
  return v;
}

/* The largest over each subgroup of LANES lanes, in all of them. */
template <int LANES = warp_lanes>
__device__ __forceinline__ uint32_t group_max(uint32_t v, unsigned mask = full_mask) {
#if __CUDA_ARCH__ >= 800
  if constexpr (LANES == warp_lanes) {
    v = __reduce_max_sync(mask, v);
  } else
#endif
  {
#pragma unroll
    for (int d = LANES / 2; d > 0; d /= 2) {
      uint32_t other = __shfl_xor_sync(mask, v, d);
      v = other > v ? other : v;
    }
  }
  return v;
}

/* Whether any lane of the mask says so. */
__device__ __forceinline__ bool group_any(bool v, unsigned mask = full_mask) {
  return __any_sync(mask, v) != 0;
}

/* The first lane, counted within the subgroup of LANES lanes, that says so; -1 if none does. */
template <int LANES = warp_lanes> __device__ __forceinline__ int first_lane(bool v) {
  unsigned votes = __ballot_sync(full_mask, v) >> (lane_id() & ~(LANES - 1));
  if constexpr (LANES < warp_lanes) votes &= (1u << LANES) - 1u;
  return __ffs(static_cast<int>(votes)) - 1;
}

/* N sums over LANES lanes at once (powers of two, N <= LANES): the sum of v[i] comes out in the lanes l of
 * the subgroup with l / (LANES / N) == i. LANES - 1 + log2 exchanges instead of N * log2(LANES). Destroys v.
 */
template <int N, int LANES = warp_lanes, class T>
__device__ __forceinline__ T group_sum_scatter(T (&v)[N], unsigned mask = full_mask) {
  static_assert(N <= LANES, "one value for a lane at most");
  int lane = lane_id();
#pragma unroll
  for (int n = N / 2, d = LANES / 2; n > 0; n /= 2, d /= 2) {
    bool upper = (lane & d) != 0;
#pragma unroll
    for (int i = 0; i < N / 2; i++)
      if (i < n) {
        T keep = upper ? v[i + n] : v[i], give = upper ? v[i] : v[i + n];
        v[i] = keep + exchange(give, d, mask);
      }
  }
  return group_sum<LANES / N>(v[0], mask);
}

} // namespace bqr

#endif
