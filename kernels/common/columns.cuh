/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns in range. The on-chip kernels multiply the pivot column, as it is, with the trailing columns: one
 * product then serves the norm and all the updates, and its sums are formed at the same time. Squares of
 * large or small entries would leave the range, so that each column of a member with such entries is first
 * multiplied by a power of two. Q does not change with the scale of A's columns, and column j of R is divided
 * by its power in the end. What is then below `tail` is dropped: next to its column's largest entry it is
 * below the rounding. */
#ifndef BATCHQR_KERNELS_COMMON_COLUMNS_CUH
#define BATCHQR_KERNELS_COMMON_COLUMNS_CUH

#include "larfg.cuh"

namespace bqr {

template <class R> struct column_range;
template <> struct column_range<float> {
  static constexpr int mantissa = 23, bias = 127;
  static constexpr uint32_t lo = (127u - 30u) << 23, hi = (127u + 30u) << 23; /* 2^-30, 2^30 */
  static constexpr float tail = 0x1p-110f;                                    /* of squared norms */
};
template <> struct column_range<double> {
  static constexpr int mantissa = 20, bias = 1023;
  static constexpr uint32_t lo = (1023u - 200u) << 20, hi = (1023u + 200u) << 20;
  static constexpr double tail = 0x1p-960;
};

BQR_INLINE float power_of_two(float, int exponent) {
#ifdef __CUDA_ARCH__
  return __uint_as_float(static_cast<uint32_t>(127 + exponent) << 23);
#else
  return std::ldexp(1.0f, exponent);
#endif
}
BQR_INLINE double power_of_two(double, int exponent) {
#ifdef __CUDA_ARCH__
  return __hiloint2double((1023 + exponent) << 20, 0);
#else
  return std::ldexp(1.0, exponent);
#endif
}

/* u: the largest magnitude() of a column. Whether the column needs a scale. */
template <class T> BQR_INLINE bool column_out_of_range(uint32_t u) {
  using C = column_range<real_t<T>>;
  return u != 0 && (u < C::lo || u >= C::hi) && magnitude_finite<T>(u);
}

/* The exponent of the power of two that brings a column into range; 0 if it is. */
template <class T> BQR_INLINE int column_exponent(uint32_t u) {
  using C = column_range<real_t<T>>;
  if (!column_out_of_range<T>(u)) return 0;
  int e = C::bias - static_cast<int>(u >> C::mantissa);
  return e < 1 - C::bias ? 1 - C::bias : e > C::bias - 1 ? C::bias - 1 : e;
}

template <class R> BQR_INLINE R exponent_scale(int exponent) { return power_of_two(R(0), exponent); }

/* larfg() for columns in range; ss: the squared norm of the rest. */
template <class T> BQR_INLINE reflector<T> larfg_in_range(T alpha, real_t<T> ss) {
  if (abs2_add(alpha, ss) < column_range<real_t<T>>::tail) {
    alpha = make<T>(real_part(alpha));
    ss = 0;
  }
  return larfg(alpha, ss, real_t<T>(1), false);
}

} // namespace bqr

#endif
