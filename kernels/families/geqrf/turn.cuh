/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks that start together on a multiprocessor, and would all wait for memory, then all for arithmetic. */
#ifndef BQR_KERNELS_FAMILIES_GEQRF_TURN_CUH
#define BQR_KERNELS_FAMILIES_GEQRF_TURN_CUH

#include "common/simt/block.cuh"

namespace bqr {

/* Waits for about as long as it takes to load `bytes` for each of the `before` blocks that are to go first,
 * when all multiprocessors do so. */
__device__ __forceinline__ void wait_for_turn(int before, int64_t bytes) {
  constexpr int bytes_per_cycle = 25; /* of a multiprocessor's share of the memory, Hopper */
  const int64_t start = clock64(), cycles = before * bytes / bytes_per_cycle;
  while (clock64() - start < cycles) __nanosleep(50);
}

} // namespace bqr

#endif
