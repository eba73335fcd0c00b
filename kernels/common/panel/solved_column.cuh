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

/* x / d. The diagonal of an R that QR has made is real. A d near the lower end of the range is brought up
 * first: what is computed of it there would have few digits. */
template <class T> __device__ __forceinline__ T divided(T x, T d) {
  if constexpr (is_complex<T>) {
    using R = real_t<T>;
    constexpr R up = limits<R>::range_up;
    if (d.im == 0) return T{x.re / d.re, x.im / d.re};
    if (fmax(fabs(d.re), fabs(d.im)) * up >= 1) return smith_divided(x, d);
    return scaled(smith_divided(x, scaled(d, up)), up);
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
