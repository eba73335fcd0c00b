/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_DP4A_CUH
#define BQR_KERNELS_COMMON_PTX_DP4A_CUH

#include <cstdint>

namespace bqr {

inline int byte_products(uint32_t a, int b, int c) {
  for (int i = 0; i < 4; i++) c += static_cast<int>(a >> 8 * i & 255) * static_cast<int8_t>(b >> 8 * i);
  return c;
}

} // namespace bqr

#endif
