/* SPDX-License-Identifier: BSD-3-Clause */
/* Products on matrix units, c += a b with a 16 x 8, b 8 x 8 and c 16 x 8, by one warp, for every type: FP64
 * units for double precision, three TF32 products of split operands for single, four real products for
 * complex.
 *
 * Lane l, g = l / 4, q = l % 4, h and s in {0, 1}:
 *     a[2 h + s] = A(g + 8 h, 2 q + s)    b[s] = B(2 q + s, g)    c[2 h + s] = C(g + 8 h, 2 q + s)
 * The order of k is free: what the units number q + 4 s is here 2 q + s, so that an accumulator is the next
 * product's a without any exchange, and that two neighbours in memory are one lane's.
 *
 * Single precision: x = hi + lo, both of the 11 bits that the units read; a b = hi hi + (hi lo + lo hi), what
 * is left out is below 2^-22 |a b|. (Markidis et al., NVIDIA Tensor Core Programmability, 2018.) */
#ifndef BQR_KERNELS_COMMON_SIMT_PRODUCT_CUH
#define BQR_KERNELS_COMMON_SIMT_PRODUCT_CUH

#include "common/ptx/mma.cuh"
#include "scalar.cuh"

namespace bqr {

/* An operand's element, as the units take it. */
template <class T> struct operand;
template <> struct operand<double> { double x; };
template <> struct operand<float> { uint32_t hi, lo; };
template <class R> struct operand<complex<R>> { operand<R> re, im; };

__device__ __forceinline__ operand<double> split(double x) { return {x}; }
__device__ __forceinline__ operand<float> split(float x) {
  uint32_t hi = (__float_as_uint(x) + 0x1000u) & 0xffffe000u;
  return {hi, __float_as_uint(x - __uint_as_float(hi))};
}
template <class R> __device__ __forceinline__ operand<complex<R>> split(complex<R> x) {
  return {split(x.re), split(x.im)};
}

/* x, where `nothing` is 0, as numbers of their own: those that are parts of several operands of the units,
 * which take neighbouring registers, are otherwise copied for each. */
__device__ __forceinline__ operand<double> apart(operand<double> x, uint32_t nothing) {
  const int zero = static_cast<int>(nothing);
  return {__hiloint2double(__double2hiint(x.x) ^ zero, __double2loint(x.x) ^ zero)};
}
__device__ __forceinline__ operand<float> apart(operand<float> x, uint32_t) { return x; }
template <class R>
__device__ __forceinline__ operand<complex<R>> apart(operand<complex<R>> x, uint32_t nothing) {
  return {apart(x.re, nothing), apart(x.im, nothing)};
}

__device__ __forceinline__ operand<double> negated(operand<double> a) { return {-a.x}; }
__device__ __forceinline__ operand<float> negated(operand<float> a) {
  return {a.hi ^ 0x80000000u, a.lo ^ 0x80000000u};
}
template <class R> __device__ __forceinline__ operand<complex<R>> negated(operand<complex<R>> a) {
  return {negated(a.re), negated(a.im)};
}
template <class R> __device__ __forceinline__ operand<R> conj(operand<R> a) {
  if constexpr (is_complex<R>)
    return {a.re, negated(a.im)};
  else
    return a;
}

/* What c += a b consists of: the terms with a small part, and the large one. */
__device__ __forceinline__ void add_small(float (&c)[4], const operand<float> (&a)[4],
                                          const operand<float> (&b)[2]) {
  multiply_add_tf32(c[0], c[1], c[2], c[3], a[0].lo, a[1].lo, a[2].lo, a[3].lo, b[0].hi, b[1].hi);
  multiply_add_tf32(c[0], c[1], c[2], c[3], a[0].hi, a[1].hi, a[2].hi, a[3].hi, b[0].lo, b[1].lo);
}
__device__ __forceinline__ void add_large(float (&c)[4], const operand<float> (&a)[4],
                                          const operand<float> (&b)[2]) {
  multiply_add_tf32(c[0], c[1], c[2], c[3], a[0].hi, a[1].hi, a[2].hi, a[3].hi, b[0].hi, b[1].hi);
}

/* c += a b */
__device__ __forceinline__ void multiply_add(double (&c)[4], const operand<double> (&a)[4],
                                             const operand<double> (&b)[2]) {
  multiply_add(c[0], c[1], c[2], c[3], a[0].x, a[1].x, a[2].x, a[3].x, b[0].x, b[1].x);
}
__device__ __forceinline__ void multiply_add(float (&c)[4], const operand<float> (&a)[4],
                                             const operand<float> (&b)[2]) {
  add_small(c, a, b);
  add_large(c, a, b);
}
/* The units round sums toward zero, so that the errors of a long one add up, and a complex one has twice as
 * many terms. In single precision, the terms of a step are added up from zero, small ones first, and to c
 * outside: the solutions of GELS of 60 x 35 then differ by 18 eps from LAPACK's, and not by 78. */
template <class R>
__device__ __forceinline__ void multiply_add(complex<R> (&c)[4], const operand<complex<R>> (&a)[4],
                                             const operand<complex<R>> (&b)[2]) {
  constexpr bool apart = sizeof(R) == sizeof(float);
  R re[4], im[4];
  operand<R> ar[4], ai[4], br[2], bi[2], minus_bi[2];
#pragma unroll
  for (int i = 0; i < 4; i++) {
    re[i] = apart ? 0 : c[i].re;
    im[i] = apart ? 0 : c[i].im;
    ar[i] = a[i].re;
    ai[i] = a[i].im;
  }
#pragma unroll
  for (int s = 0; s < 2; s++) {
    br[s] = b[s].re;
    bi[s] = b[s].im;
    minus_bi[s] = negated(b[s].im);
  }
  auto each = [&](auto &&add) {
    add(re, ar, br);
    add(im, ar, bi);
    add(re, ai, minus_bi);
    add(im, ai, br);
  };
  if constexpr (apart) {
    each([](auto &sum, const auto &x, const auto &y) { add_small(sum, x, y); });
    each([](auto &sum, const auto &x, const auto &y) { add_large(sum, x, y); });
#pragma unroll
    for (int i = 0; i < 4; i++) c[i] = {c[i].re + re[i], c[i].im + im[i]};
  } else {
    each([](auto &sum, const auto &x, const auto &y) { multiply_add(sum, x, y); });
#pragma unroll
    for (int i = 0; i < 4; i++) c[i] = {re[i], im[i]};
  }
}

/* The same where c is a long sum: in single precision a step is added up from zero, and to c outside. */
template <class T>
__device__ __forceinline__ void add_apart(T (&c)[4], const operand<T> (&a)[4], const operand<T> (&b)[2]) {
  if constexpr (sizeof(T) == sizeof(float)) {
    T step[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
    multiply_add(step, a, b);
#pragma unroll
    for (int e = 0; e < 4; e++) c[e] += step[e];
  } else {
    multiply_add(c, a, b);
  }
}

/* Sums of products a b, or with ADJOINT conj(a) b, added up on the units all along, in complex single
 * precision, too: a sixth faster in larfb_stream, and residuals of 512 x 512 grow from 0.014 to 0.18. */
template <class T, bool ADJOINT> class direct_sum {
  T c_[4];

public:
  __device__ __forceinline__ void begin(int i, T x) { c_[i] = x; }
  __device__ __forceinline__ T end(int i) const { return c_[i]; }
  __device__ __forceinline__ void add(const operand<T> (&a)[4], const operand<T> (&b)[2]) {
    if constexpr (ADJOINT && is_complex<T>)
      multiply_add(c_, {conj(a[0]), conj(a[1]), conj(a[2]), conj(a[3])}, b);
    else
      multiply_add(c_, a, b);
  }
};
template <bool ADJOINT> class direct_sum<complex_float, ADJOINT> {
  float re_[4], im_[4];

public:
  __device__ __forceinline__ void begin(int i, complex_float x) {
    re_[i] = x.re;
    im_[i] = x.im;
  }
  __device__ __forceinline__ complex_float end(int i) const { return {re_[i], im_[i]}; }
  __device__ __forceinline__ void add(const operand<complex_float> (&a)[4],
                                      const operand<complex_float> (&b)[2]) {
    using element = const operand<complex_float> &;
    auto re_hi = [](element x) { return x.re.hi; };
    auto re_lo = [](element x) { return x.re.lo; };
    auto im_hi = [](element x) { return x.im.hi; };
    auto im_lo = [](element x) { return x.im.lo; };
    auto minus = [](auto &&part) { return [=](element x) { return part(x) ^ 0x80000000u; }; };
    auto add = [&](float(&c)[4], auto &&of_a, auto &&of_b) {
      multiply_add_tf32(c[0], c[1], c[2], c[3], of_a(a[0]), of_a(a[1]), of_a(a[2]), of_a(a[3]), of_b(b[0]),
                        of_b(b[1]));
    };
    auto add_all = [&](auto &&a_re, auto &&a_im, auto &&b_re, auto &&b_im) {
      add(re_, a_re, b_re);
      add(im_, a_re, b_im);
      if constexpr (ADJOINT) {
        add(re_, a_im, b_im);
        add(im_, a_im, minus(b_re));
      } else {
        add(re_, a_im, minus(b_im));
        add(im_, a_im, b_re);
      }
    };
    add_all(re_lo, im_lo, re_hi, im_hi);
    add_all(re_hi, im_hi, re_lo, im_lo);
    add_all(re_hi, im_hi, re_hi, im_hi);
  }
};

} // namespace bqr

#endif
