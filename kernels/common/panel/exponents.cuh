/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole matrices brought to the upper part of the exponent range by one power of two, so that sums of squares
 * of numbers that are far smaller than the largest are accurate too. */
#ifndef BQR_KERNELS_COMMON_PANEL_EXPONENTS_CUH
#define BQR_KERNELS_COMMON_PANEL_EXPONENTS_CUH

#include "common/simt/scalar.cuh"

namespace bqr {

template <class R> struct span;
template <> struct span<float> {
  static constexpr int top = 50;            /* the largest entry is near 2^top */
  static constexpr float unit = 0x1p-50f;   /* what brings it near 1 */
  static constexpr float least2 = 0x1p-80f; /* the least squared norm that is worked with */
  static constexpr float far = 0x1p20f;     /* its square rounds 1 away */
  static constexpr int mantissa = 23, bias = 127;
};
template <> struct span<double> {
  static constexpr int top = 480;
  static constexpr double unit = 0x1p-480;
  static constexpr double least2 = 0x1p-690;
  static constexpr double far = 0x1p30;
  static constexpr int mantissa = 20, bias = 1023; /* of the leading 32 bits */
};

/* magnitude(), but not 0 for numbers whose leading bits are. */
template <class T> BQR_INLINE uint32_t magnitude_or_one(T x) {
  return is_zero(x) ? 0 : greater(magnitude(x), 1);
}

/* The exponent by which numbers of that largest magnitude, not 0, are brought near 2^to; subnormals, not as
 * far. */
template <class T> BQR_INLINE int exponent_to(uint32_t u, int to) {
  using S = span<real_t<T>>;
  return to - (static_cast<int>(u >> S::mantissa) - S::bias);
}

BQR_INLINE float times_power(float x, int e) { return ::scalbnf(x, e); }
BQR_INLINE double times_power(double x, int e) { return ::scalbn(x, e); }
template <class R> BQR_INLINE complex<R> times_power(complex<R> x, int e) {
  return {times_power(x.re, e), times_power(x.im, e)};
}

} // namespace bqr

#endif
