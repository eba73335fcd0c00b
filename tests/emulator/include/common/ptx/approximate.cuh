/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_APPROXIMATE_CUH
#define BQR_KERNELS_COMMON_PTX_APPROXIMATE_CUH

#include <cmath>
#include <cstdint>
#include <cstring>

namespace bqr {

inline float estimated_rsqrt(float x) { return static_cast<float>(1 / std::sqrt(static_cast<double>(x))); }
inline float estimated_recip(float x) { return 1 / x; }

/* Of double precision the units give the upper half. */
inline double upper_half(double x) {
  uint64_t u;
  std::memcpy(&u, &x, sizeof u);
  u &= 0xffffffff00000000u;
  std::memcpy(&x, &u, sizeof u);
  return x;
}
inline double estimated_rsqrt(double x) { return upper_half(1 / std::sqrt(x)); }
inline double estimated_recip(double x) { return upper_half(1 / x); }

} // namespace bqr

#endif
