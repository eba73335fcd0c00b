/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of bytes outside matrix units. */
#ifndef BQR_KERNELS_COMMON_PTX_DP4A_CUH
#define BQR_KERNELS_COMMON_PTX_DP4A_CUH

#include <cstdint>

namespace bqr {

/* a's bytes times b's signed ones, added to c. */
__device__ __forceinline__ int byte_products(uint32_t a, int b, int c) {
  int d;
  asm("dp4a.u32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

} // namespace bqr

#endif
