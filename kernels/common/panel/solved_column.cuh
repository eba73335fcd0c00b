/* SPDX-License-Identifier: BSD-3-Clause */
/* What solving with R takes beside products: quotients, and norms of what is left of a right-hand side. */
#ifndef BQR_KERNELS_COMMON_PANEL_SOLVED_COLUMN_CUH
#define BQR_KERNELS_COMMON_PANEL_SOLVED_COLUMN_CUH

#include "larfg.cuh"
#include "common/simt/warp.cuh"

namespace bqr {

/* x / d by Smith's division. */
template <class R> __device__ __forceinline__ complex<R> smith_divided(complex<R> x, complex<R> d) {
  if (fabs(d.re) < fabs(d.im)) {
    const R q = d.re / d.im, s = fused(d.re, q, d.im);
    return {fused(x.re, q, x.im) / s, fused(x.im, q, -x.re) / s};
  }
  const R q = d.im / d.re, s = fused(d.im, q, d.re);
  return {fused(x.im, q, x.re) / s, fused(-x.re, q, x.im) / s};
}

/* The larger part's size. */
template <class R> __device__ __forceinline__ R larger_part(complex<R> x) {
  return fmax(fabs(x.re), fabs(x.im));
}

/* x / d. The diagonal of an R that QR has made is real. Near the ends of the range x and d are first
 * multiplied by powers of two: what is computed of them there would overflow, or have few digits. */
template <class T> __device__ __forceinline__ T divided(T x, T d) {
  if constexpr (is_complex<T>) {
    using R = real_t<T>;
    constexpr R up = limits<R>::range_up, down = R(0.25), large = limits<R>::norm_hi * down;
    if (d.im == 0) return T{x.re / d.re, x.im / d.re};
    const R size = larger_part(d), of_x = larger_part(x) >= large ? down : R(1),
            of_d = size >= large   ? down
                   : size * up < 1 ? up
                                   : R(1);
    return scaled(smith_divided(scaled(x, of_x), scaled(d, of_d)), of_d / of_x);
  } else
    return x / d;
}

/* Divides by d more than once, d a real number in a T that is not near the upper end of the range: by its
 * inverse, where that is finite. */
template <class T> class divisor {
  T d_;
  real_t<T> inverse_;
  bool finite_;

public:
  __device__ __forceinline__ explicit divisor(T d)
      : d_(d), inverse_(1 / real_part(d)), finite_(is_finite(inverse_)) {}
  __device__ __forceinline__ T operator()(T x) const {
    return finite_ ? scaled(x, inverse_) : divided(x, d_);
  }
};

/* The norm of the rows from `first` on of a column, in all lanes. */
template <class T> __device__ real_t<T> column_norm(const T *column, int first, int rows) {
  using R = real_t<T>;
  R ss = 0;
  for (int i = first + lane_id(); i < rows; i += warp_lanes) ss = abs2_add(column[i], ss);
  ss = group_sum(ss);
  R pre = norm_prescale(ss, false);
  if (pre != 1) {
    ss = 0;
    for (int i = first + lane_id(); i < rows; i += warp_lanes) ss = abs2_add(scaled(column[i], pre), ss);
    ss = group_sum(ss);
  }
  return sqrt(ss) / pre;
}

} // namespace bqr

#endif
