/* SPDX-License-Identifier: BSD-3-Clause */
/* One vocabulary for float, double and their complex types. Everything here compiles for host and device. */
#ifndef BQR_KERNELS_COMMON_SIMT_SCALAR_CUH
#define BQR_KERNELS_COMMON_SIMT_SCALAR_CUH

#include "common/ptx/approximate.cuh"
#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#define BQR_INLINE __host__ __device__ __forceinline__

namespace bqr {

/* Aligned to its size, so that an element is one load. Trivial: may live in shared memory. */
template <class R> struct alignas(2 * sizeof(R)) complex { R re, im; };
using complex_float = complex<float>;
using complex_double = complex<double>;

template <class T> struct scalar_traits {
  using real = T;
  static constexpr bool is_complex = false;
};
template <class R> struct scalar_traits<complex<R>> {
  using real = R;
  static constexpr bool is_complex = true;
};
template <class T> using real_t = typename scalar_traits<T>::real;
template <class T> constexpr bool is_complex = scalar_traits<T>::is_complex;

/* What norms and scaling need to know of a real type. See common/panel/larfg.cuh and range_scale() below. */
template <class R> struct limits;
template <> struct limits<float> {
  static constexpr float eps = 0x1p-24f; /* unit roundoff, LAPACK's xLAMCH('E') */
  /* sums of squares in [norm_lo, norm_hi] are accurate; columns outside are multiplied by norm_up or
   * norm_down first, which brings every column whose norm is representable inside */
  static constexpr float norm_lo = 0x1p-90f, norm_hi = 0x1p120f, norm_up = 0x1p106f, norm_down = 0x1p-80f;
  /* (eps / 8)^2: the part of such a sum that xLARFGP drops; norm_lo / negligible: above it all that is not
   * dropped is accurate too, below it norm_mid makes it so */
  static constexpr float negligible = 0x1p-54f, norm_part_lo = 0x1p-36f, norm_mid = 0x1p45f;
  /* see range_scale() */
  static constexpr float range_up = 0x1p64f, range_down = 0x1p-24f, range_down_long = 0x1p-56f;
  static constexpr uint32_t magnitude_lo = (127u - 62u) << 23;      /* 2^-62 */
  static constexpr uint32_t magnitude_hi = (127u + 103u) << 23;     /* 2^103 */
  static constexpr uint32_t magnitude_hi_long = (127u + 71u) << 23; /* 2^71 */
  static constexpr uint32_t magnitude_inf = 255u << 23;
};
template <> struct limits<double> {
  static constexpr double eps = 0x1p-53;
  static constexpr double norm_lo = 0x1p-700, norm_hi = 0x1p1000, norm_up = 0x1p724, norm_down = 0x1p-640;
  static constexpr double negligible = 0x1p-112, norm_part_lo = 0x1p-588, norm_mid = norm_up;
  static constexpr double range_up = 0x1p128, range_down = 0x1p-24, range_down_long = 0x1p-88;
  static constexpr uint32_t magnitude_lo = (1023u - 894u) << 20;      /* 2^-894 */
  static constexpr uint32_t magnitude_hi = (1023u + 999u) << 20;      /* 2^999 */
  static constexpr uint32_t magnitude_hi_long = (1023u + 935u) << 20; /* 2^935 */
  static constexpr uint32_t magnitude_inf = 2047u << 20;
};

/* Real arithmetic. */
BQR_INLINE float fused(float a, float b, float c) { return ::fmaf(a, b, c); }
BQR_INLINE double fused(double a, double b, double c) { return ::fma(a, b, c); }

/* x -> T: a real number, or one with imaginary part zero. */
template <class T> BQR_INLINE T make(real_t<T> x) {
  if constexpr (is_complex<T>)
    return T{x, 0};
  else
    return x;
}
template <class T> BQR_INLINE T zero() { return make<T>(0); }
template <class T> BQR_INLINE T one() { return make<T>(1); }

template <class R> BQR_INLINE complex<R> operator-(complex<R> a) { return {-a.re, -a.im}; }
template <class R> BQR_INLINE complex<R> operator+(complex<R> a, complex<R> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class R> BQR_INLINE complex<R> operator-(complex<R> a, complex<R> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class R> BQR_INLINE complex<R> operator*(complex<R> a, complex<R> b) {
  return {fused(a.re, b.re, -a.im * b.im), fused(a.re, b.im, a.im * b.re)};
}
template <class R> BQR_INLINE complex<R> &operator+=(complex<R> &a, complex<R> b) { return a = a + b; }
template <class R> BQR_INLINE complex<R> &operator-=(complex<R> &a, complex<R> b) { return a = a - b; }

BQR_INLINE float conj(float a) { return a; }
BQR_INLINE double conj(double a) { return a; }
template <class R> BQR_INLINE complex<R> conj(complex<R> a) { return {a.re, -a.im}; }

template <class T> BQR_INLINE real_t<T> real_part(T a) {
  if constexpr (is_complex<T>)
    return a.re;
  else
    return a;
}
template <class T> BQR_INLINE real_t<T> imag_part(T a) {
  if constexpr (is_complex<T>)
    return a.im;
  else
    return 0;
}

/* a * b + c */
BQR_INLINE float madd(float a, float b, float c) { return fused(a, b, c); }
BQR_INLINE double madd(double a, double b, double c) { return fused(a, b, c); }
template <class R> BQR_INLINE complex<R> madd(complex<R> a, complex<R> b, complex<R> c) {
  return {fused(-a.im, b.im, fused(a.re, b.re, c.re)), fused(a.im, b.re, fused(a.re, b.im, c.im))};
}

/* conj(a) * b + c */
BQR_INLINE float cmadd(float a, float b, float c) { return fused(a, b, c); }
BQR_INLINE double cmadd(double a, double b, double c) { return fused(a, b, c); }
template <class R> BQR_INLINE complex<R> cmadd(complex<R> a, complex<R> b, complex<R> c) {
  return {fused(a.im, b.im, fused(a.re, b.re, c.re)), fused(-a.im, b.re, fused(a.re, b.im, c.im))};
}

/* a * s, s real */
template <class T> BQR_INLINE T scaled(T a, real_t<T> s) {
  if constexpr (is_complex<T>)
    return T{a.re * s, a.im * s};
  else
    return a * s;
}

/* a * s + c, s real */
template <class T> BQR_INLINE T scaled_add(T a, real_t<T> s, T c) {
  if constexpr (is_complex<T>)
    return T{fused(a.re, s, c.re), fused(a.im, s, c.im)};
  else
    return fused(a, s, c);
}

/* |a|^2 + c and |a|^2 */
template <class T> BQR_INLINE real_t<T> abs2_add(T a, real_t<T> c) {
  if constexpr (is_complex<T>)
    return fused(a.im, a.im, fused(a.re, a.re, c));
  else
    return fused(a, a, c);
}
template <class T> BQR_INLINE real_t<T> abs2(T a) { return abs2_add(a, real_t<T>(0)); }

template <class T> BQR_INLINE bool is_zero(T a) { return real_part(a) == 0 && imag_part(a) == 0; }

/* The leading 32 bits of |a|, of the larger component where a is complex. Ordered as |a| is, with Inf and
 * NaN above all finite numbers: the maximum over a matrix tells whether it is finite and where it lies. */
BQR_INLINE uint32_t magnitude(float a) {
#ifdef __CUDA_ARCH__
  return __float_as_uint(a) & 0x7fffffffu;
#else
  uint32_t u;
  std::memcpy(&u, &a, sizeof u);
  return u & 0x7fffffffu;
#endif
}
BQR_INLINE uint32_t magnitude(double a) {
#ifdef __CUDA_ARCH__
  return static_cast<uint32_t>(__double2hiint(a)) & 0x7fffffffu;
#else
  uint64_t u;
  std::memcpy(&u, &a, sizeof u);
  return static_cast<uint32_t>(u >> 32) & 0x7fffffffu;
#endif
}
template <class R> BQR_INLINE uint32_t magnitude(complex<R> a) {
  uint32_t re = magnitude(a.re), im = magnitude(a.im);
  return re > im ? re : im;
}

BQR_INLINE uint32_t greater(uint32_t a, uint32_t b) { return a > b ? a : b; }

/* On magnitudes of T's. */
template <class T> BQR_INLINE bool magnitude_finite(uint32_t u) {
  return u < limits<real_t<T>>::magnitude_inf;
}
template <class T> BQR_INLINE bool is_finite(T a) { return magnitude_finite<T>(magnitude(a)); }

/* The power of two by which a matrix with this largest magnitude is multiplied before, and divided after,
 * work on it: 1 but at the ends of the range. There it keeps sums over a column from overflowing although the
 * result is representable (long_vectors: also where reflectors may be those of xLARFGP, whose v can be as
 * long as 8 / eps), and small entries from losing bits in every step instead of once. */
template <class T> BQR_INLINE real_t<T> range_scale(uint32_t u, bool long_vectors) {
  using L = limits<real_t<T>>;
  if (u < L::magnitude_lo) return L::range_up;
  if (u < (long_vectors ? L::magnitude_hi_long : L::magnitude_hi) || u >= L::magnitude_inf) return 1;
  return long_vectors ? L::range_down_long : L::range_down;
}

/* What undoes it; exact, as all powers of two here. */
template <class R> BQR_INLINE R range_unscale(R scale) { return R(1) / scale; }

/* 1/sqrt(x) and 1/x to about one unit in the last place, for x well inside the normal range: the hardware's
 * estimate and a Newton step (double precision: one of third order), without the branches that handle the
 * range's ends. a / sqrt(x) from a y, y being an estimate of 1/sqrt(x) and e = 1 - x y^2; a / x from a y and
 * e = 1 - x y.
 */
BQR_INLINE float refined_rsqrt(float ay, float e) { return fused(ay * e, 0.5f, ay); }
BQR_INLINE double refined_rsqrt(double ay, double e) { return fused(ay * e, fused(0.375, e, 0.5), ay); }
BQR_INLINE float refined_recip(float ay, float e) { return fused(ay, e, ay); }
BQR_INLINE double refined_recip(double ay, double e) { return fused(ay, fused(e, e, e), ay); }
template <class R> BQR_INLINE R fast_rsqrt(R x) {
  R y = estimated_rsqrt(x);
  return refined_rsqrt(y, fused(-(x * y), y, R(1)));
}
template <class R> BQR_INLINE R fast_recip(R x) {
  R y = estimated_recip(x);
  return refined_recip(y, fused(-x, y, R(1)));
}
template <class R> BQR_INLINE complex<R> fast_recip(complex<R> x) {
  return scaled(conj(x), fast_recip(abs2(x)));
}

/* The type of double precision. */
template <class T> using wide = std::conditional_t<is_complex<T>, complex<double>, double>;
/* x as a T, exactly or rounded. */
template <class T, class X> BQR_INLINE T converted(X x) {
  if constexpr (is_complex<T>)
    return {static_cast<real_t<T>>(x.re), static_cast<real_t<T>>(x.im)};
  else
    return static_cast<T>(x);
}

template <class F, int... I> BQR_INLINE void for_each_index(F &f, std::integer_sequence<int, I...>) {
  (f(std::integral_constant<int, I>{}), ...);
}

/* static_for<N>([&](auto i) { ... }): an unrolled loop whose index is a constant, decltype(i)::value. Not by
 * calls that contain each other, which take longer to compile. */
template <int N, class F> BQR_INLINE void static_for(F &&f) {
  for_each_index(f, std::make_integer_sequence<int, N>{});
}

} // namespace bqr

#endif
