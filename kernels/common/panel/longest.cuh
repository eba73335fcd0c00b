/* SPDX-License-Identifier: BSD-3-Clause */
/* The longest column, by squared norms that lanes of a warp hold: a number's leading bits first, then the
 * others where there are several. */
#ifndef BQR_KERNELS_COMMON_PANEL_LONGEST_CUH
#define BQR_KERNELS_COMMON_PANEL_LONGEST_CUH

#include "common/simt/warp.cuh"

namespace bqr {

/* The last 32 bits of a number; 0 where it has no more than 32. */
BQR_INLINE uint32_t low_bits(float) { return 0; }
BQR_INLINE uint32_t low_bits(double x) {
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__double2loint(x));
#else
  uint64_t u;
  std::memcpy(&u, &x, sizeof u);
  return static_cast<uint32_t>(u);
#endif
}

/* group_max() by instructions that look at the whole warp: one for each member that shares it. */
template <int LANES> __device__ __forceinline__ uint32_t member_max(uint32_t v) {
  uint32_t most = 0;
#pragma unroll
  for (int g = 0; g < warp_lanes / LANES; g++) {
    const bool mine = LANES == warp_lanes || lane_id() / LANES == g;
    const uint32_t of = group_max(mine ? v : 0);
    if (mine) most = of;
  }
  return most;
}

/* Which lanes of the member say so. */
template <int LANES> __device__ __forceinline__ unsigned member_votes(bool v) {
  const unsigned votes = __ballot_sync(full_mask, v);
  return LANES == warp_lanes ? votes : votes >> (lane_id() & ~(LANES - 1)) & ((1u << (LANES & 31)) - 1u);
}

/* The lane, within LANES lanes, of the largest number: of equal ones the first. Those below 0 come behind all
 * others.
 */
template <int LANES, class R> __device__ __forceinline__ int longest_lane(R norm2) {
  const uint32_t high = norm2 >= 0 ? greater(magnitude(norm2), 1) : 0;
  bool best = high == member_max<LANES>(high);
  unsigned votes = member_votes<LANES>(best);
  if (sizeof(R) > sizeof(uint32_t) && group_any((votes & (votes - 1)) != 0)) {
    const uint32_t low = best ? low_bits(norm2) : 0, most = member_max<LANES>(low);
    best = best && low == most;
    votes = member_votes<LANES>(best);
  }
  return __ffs(static_cast<int>(votes)) - 1;
}

} // namespace bqr

#endif
