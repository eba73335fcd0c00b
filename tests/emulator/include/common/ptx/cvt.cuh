/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_CVT_CUH
#define BQR_KERNELS_COMMON_PTX_CVT_CUH

#include <cstdint>
#include <cstring>

namespace bqr {

inline uint32_t rounded_to_fp16(float x, float y) {
  const _Float16 two[2] = {static_cast<_Float16>(x), static_cast<_Float16>(y)};
  uint32_t bits;
  std::memcpy(&bits, two, sizeof bits);
  return bits;
}
inline void unpack_fp16(uint32_t bits, float &x, float &y) {
  _Float16 two[2];
  std::memcpy(two, &bits, sizeof bits);
  x = two[0];
  y = two[1];
}

} // namespace bqr

#endif
