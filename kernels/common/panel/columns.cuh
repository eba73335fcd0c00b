/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns in range. The on-chip kernels multiply the pivot column, as it is, with the trailing columns: one
 * product then serves the norm and all the updates, and its sums are formed at the same time. Squares of
 * large or small entries would leave the range, so that each column of a member with such entries is first
 * multiplied by a power of two. Q does not change with the scale of A's columns, and column j of R is divided
 * by its power in the end. What is then below `tail` is dropped: next to its column's largest entry it is
 * below the rounding. */
#ifndef BQR_KERNELS_COMMON_PANEL_COLUMNS_CUH
#define BQR_KERNELS_COMMON_PANEL_COLUMNS_CUH

#include "larfg.cuh"
#include "common/ptx/approximate.cuh"

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

/* u: the largest magnitude() of a column. The exponent of the power of two that brings the column into range;
 * 0 if it is, or is not finite. A magnitude of 0 may be a subnormal's; zeros take no harm. */
template <class T> BQR_INLINE int column_exponent(uint32_t u) {
  using C = column_range<real_t<T>>;
  if ((u >= C::lo && u < C::hi) || !magnitude_finite<T>(u)) return 0;
  int e = C::bias - static_cast<int>(u >> C::mantissa);
  return e < 1 - C::bias ? 1 - C::bias : e > C::bias - 1 ? C::bias - 1 : e;
}

/* Whether an entry lies in the range of columns. */
template <class T> BQR_INLINE bool in_column_range(T x) {
  using C = column_range<real_t<T>>;
  return magnitude(x) - C::lo < C::hi - C::lo;
}

/* Whether an entry lies outside of the range of columns: if none does, no column needs a scale. */
template <class T> BQR_INLINE bool out_of_range(T x) {
  using C = column_range<real_t<T>>;
  uint32_t u = magnitude(x);
  return u >= C::hi || (u < C::lo && !is_zero(x));
}

template <class R> BQR_INLINE R exponent_scale(int exponent) { return power_of_two(R(0), exponent); }

/* H = I - tau v v^H with v(0) = 1 and v(i) = scale x(i), H^H (alpha; x) = (beta; 0). */
template <class T> struct column_reflector {
  T tau, scale;
  real_t<T> beta;
};

/* What a reflector with beta >= 0 is made of: u = (head; x) and 1 / head. */
template <class T> struct positive_head {
  T head, inverse;
  bool dropped; /* x counts as zero, and alpha as real: H = I, or H = I - 2 e e^H where alpha < 0 */
};

/* For columns in range; ss: the squared norm of the rest x, norm: that of (alpha; x). Where alpha > 0, head =
 * alpha - norm = -(ss + Im(alpha)^2) / (alpha + norm) has no cancellation; a rest below the rounding of alpha
 * is dropped, as xLARFGP does. The reciprocals do not wait for one another. */
template <class T>
BQR_INLINE positive_head<T> make_positive(T alpha, real_t<T> ss, real_t<T> norm, real_t<T> rnorm) {
  using R = real_t<T>;
  const R tail = column_range<R>::tail, ar = real_part(alpha), ai = imag_part(alpha);
  const R norm2 = abs2_add(alpha, ss), rest2 = fused(ai, ai, ss), d = fabs(ar) + norm;
  const R least = ar < 0 ? R(0) : limits<R>::negligible * norm2, part = ar > 0 ? rest2 * fast_recip(d) : d;
  positive_head<T> h;
  h.dropped = norm2 < tail || (ar >= 0 && (rest2 < tail || rest2 < least));
  if constexpr (is_complex<T>) {
    const R re = part * rnorm, im = ai * rnorm; /* squares of the head's parts may underflow */
    const R w = fast_recip(fused(re, re, im * im));
    h.head = T{-part, ai};
    h.inverse = T{-(re * w) * rnorm, -(im * w) * rnorm};
  } else {
    h.head = -part;
    h.inverse = -(ar > 0 ? d * fast_recip(rest2) : fast_recip(d));
  }
  return h;
}

/* larfg() for columns in range, without a branch on data; ss: the squared norm of the rest. What follows from
 * estimates is only what refines them, so that the two chains overlap. */
template <class T>
BQR_INLINE column_reflector<T> larfg_in_range(T alpha, real_t<T> ss, bool positive = false) {
  using R = real_t<T>;
  R ar = fabs(real_part(alpha)), ai = imag_part(alpha), norm2 = abs2_add(alpha, ss);
  bool identity = norm2 < column_range<R>::tail || (ss == 0 && ai == 0);
  R y = estimated_rsqrt(norm2), near = norm2 * y, near_d = ar + near;
  R e = fused(-near, y, R(1));
  R rnorm = refined_rsqrt(y, e), norm = refined_rsqrt(near, e), d = ar + norm; /* no cancellation */
  column_reflector<T> h;
  if (positive) {
    const positive_head<T> p = make_positive(alpha, ss, norm, rnorm);
    h = {scaled(p.head, -rnorm), p.inverse, norm};
    if (p.dropped) h = {real_part(alpha) < 0 ? make<T>(2) : tau_of_identity(alpha), zero<T>(), ar};
    return h;
  }
  h.beta = copysign(norm, -real_part(alpha));
  h.tau = make<T>(fused(ar, rnorm, R(1)));
  if constexpr (is_complex<T>) {
    R r = estimated_recip(fused(near_d, near_d, ai * ai));
    r = refined_recip(r, fused(-fused(d, d, ai * ai), r, R(1)));
    h.tau.im = ai * copysign(rnorm, real_part(alpha));
    h.scale = T{copysign(d * r, real_part(alpha)), -ai * r};
  } else {
    R r = estimated_recip(near_d);
    h.scale = copysign(refined_recip(r, fused(-d, r, R(1))), alpha);
  }
  if (identity) h = {tau_of_identity(alpha), zero<T>(), real_part(alpha)};
  return h;
}

} // namespace bqr

#endif
