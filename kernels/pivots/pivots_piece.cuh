/* SPDX-License-Identifier: BSD-3-Clause */
/* Sums of products in double precision by FP64 matrix units, real or complex. */
#ifndef BQR_KERNELS_PIVOTS_PIVOTS_PIECE_CUH
#define BQR_KERNELS_PIVOTS_PIVOTS_PIECE_CUH

#include "common/ptx/mma.cuh"
#include "common/simt/scalar.cuh"

namespace bqr {

/* Sums of products of a warp, a piece of 16 x 8: element e of a lane, see common/simt/product.cuh. */
template <class W> struct piece_sums;
template <> struct piece_sums<double> {
  double c[4] = {};

  __device__ __forceinline__ void add(const double (&a)[4], const double (&b)[2]) {
    multiply_add(c[0], c[1], c[2], c[3], a[0], a[1], a[2], a[3], b[0], b[1]);
  }
  __device__ __forceinline__ double get(int e) const { return c[e]; }
  __device__ __forceinline__ void set(int e, double x) { c[e] = x; }
};
/* Of a^H b. */
template <> struct piece_sums<complex_double> {
  piece_sums<double> re, im;

  __device__ __forceinline__ void add(const complex_double (&a)[4], const complex_double (&b)[2]) {
    const double a_re[4] = {a[0].re, a[1].re, a[2].re, a[3].re},
                 a_im[4] = {a[0].im, a[1].im, a[2].im, a[3].im},
                 minus[4] = {-a_im[0], -a_im[1], -a_im[2], -a_im[3]};
    const double b_re[2] = {b[0].re, b[1].re}, b_im[2] = {b[0].im, b[1].im};
    re.add(a_re, b_re);
    re.add(a_im, b_im);
    im.add(a_re, b_im);
    im.add(minus, b_re);
  }
  __device__ __forceinline__ complex_double get(int e) const { return {re.get(e), im.get(e)}; }
  __device__ __forceinline__ void set(int e, complex_double x) {
    re.set(e, x.re);
    im.set(e, x.im);
  }
};

} // namespace bqr

#endif
