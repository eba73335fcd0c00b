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

/* Leading bits, so that those of numbers below 0 come behind all others. */
template <class R> __device__ __forceinline__ uint32_t leading_bits(R norm2) {
  return norm2 >= 0 ? greater(magnitude(norm2), 1) : 0;
}

/* Whether there is more than one. */
__device__ __forceinline__ bool several(unsigned votes) { return (votes & (votes - 1)) != 0; }

/* The first of the lanes that say so. */
__device__ __forceinline__ int first_of(unsigned votes) { return __ffs(static_cast<int>(votes)) - 1; }

/* The lanes, within LANES lanes, with the largest leading bits. */
template <int LANES, class R> __device__ __forceinline__ unsigned longest_lanes(R norm2) {
  const uint32_t high = leading_bits(norm2), most = member_max<LANES>(high);
  return member_votes<LANES>(high == most);
}

/* The lane, within LANES lanes, of the largest number: of equal ones the first. Those below 0 come behind all
 * others.
 */
template <int LANES, class R> __device__ __forceinline__ int longest_lane(R norm2) {
  unsigned votes = longest_lanes<LANES>(norm2);
  if (sizeof(R) > sizeof(uint32_t) && group_any(several(votes))) {
    const bool best = votes >> (lane_id() & (LANES - 1)) & 1;
    const uint32_t low = best ? low_bits(norm2) : 0, most = member_max<LANES>(low);
    votes = member_votes<LANES>(best && low == most);
  }
  return first_of(votes);
}

} // namespace bqr

#endif
