/* SPDX-License-Identifier: BSD-3-Clause */
/* A window of rows of Z, and block reflectors in 8 x 8 tiles that are applied to it by each warp. */
#ifndef BQR_KERNELS_BAND_TILE_WINDOW_CUH
#define BQR_KERNELS_BAND_TILE_WINDOW_CUH

#include "window.cuh"

namespace bqr {

/* The columns as rows of a 16 x 8 operand: complex ones their real parts in the upper eight rows, their
 * imaginary parts in the lower ones. */
template <class T> struct row_operand {
  using R = real_t<T>;
  operand<R> a[4];
  __device__ __forceinline__ explicit row_operand(const R (&x)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) a[e] = split_long(x[e]);
  }

private:
  static __device__ __forceinline__ operand<double> split_long(double x) { return split(x); }
  /* Longer by what a product loses on average where its sum is cut off, half an ulp or 0.72 2^-24 of it, and
   * the small part rounded to what the units read of it, which cut it off, too. */
  static __device__ __forceinline__ operand<float> split_long(float x) {
    const operand<float> parts = split(x);
    return {parts.hi, __float_as_uint(fmaf(x, 0x0.b8p-24f, __uint_as_float(parts.lo))) + 0x1000u};
  }
};

/* A sum of products with tiles. Units round sums toward zero, which shortens columns a little with each
 * block: in single precision every product is summed from zero, small terms first, and added outside (1000
 * columns' products with themselves were off by 500 eps without). Sums begin with zero, not with Z, whose
 * registers would be moved for each product: the units take operands in another order. */
template <class T> class row_sum {
  using R = real_t<T>;
  R c_[4];

  __device__ __forceinline__ void add_part(const operand<R> (&a)[4], const packed *part) {
    operand<R> b[2];
    unpack(b, part + lane_id());
    if constexpr (sizeof(R) == sizeof(float)) {
      R step[4] = {};
      multiply_add(step, a, b);
#pragma unroll
      for (int e = 0; e < 4; e++) c_[e] += step[e];
    } else {
      multiply_add(c_, a, b);
    }
  }

public:
  __device__ __forceinline__ row_sum() {
#pragma unroll
    for (int e = 0; e < 4; e++) c_[e] = 0;
  }
  __device__ __forceinline__ void add(const row_operand<T> &a, const packed *tile) {
    add_part(a.a, tile);
    if constexpr (is_complex<T>)
      add_part({negated(a.a[2]), negated(a.a[3]), a.a[0], a.a[1]}, tile + warp_lanes);
  }
  __device__ __forceinline__ R get(int e) const { return c_[e]; }
};

template <class S, int STAGES> class back_window : public window_rows<S, STAGES> {
  using rows = window_rows<S, STAGES>;
  using rows::across, rows::down, rows::x_;
  using typename rows::R;
  using typename rows::shape;
  using typename rows::T;

public:
  using rows::rows;
  using projection = R[across][4];

  /* w := V^H Z, transposed */
  __device__ __forceinline__ void project(projection &w, const packed *v) {
    row_sum<T> sum[across];
    static_for<down>([&](auto row) {
      constexpr int i = decltype(row)::value, first = shape::first(i), before = shape::v_before(i);
      const row_operand<T> a(x_[i]);
#pragma unroll
      for (int t = first; t < shape::last(i); t++)
        sum[t].add(a, v + (before + t - first) * shape::parts * warp_lanes);
    });
#pragma unroll
    for (int t = 0; t < across; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) w[t][e] = sum[t].get(e);
  }
  /* Z := Z - Y w, two tiles of rows at a time: sums depend on themselves. */
  __device__ __forceinline__ void update(const projection &w, const packed *y) {
    static_for<down / 2>([&](auto row) {
      constexpr int i = 2 * decltype(row)::value, first = shape::first(i), second = shape::first(i + 1),
                    before = shape::y_before(i), next = shape::y_before(i + 1);
      row_sum<T> sum[2];
#pragma unroll
      for (int t = first; t < across; t++) {
        const row_operand<T> a(w[t]);
        sum[0].add(a, y + (before + t - first) * shape::parts * warp_lanes);
        if (t >= second) sum[1].add(a, y + (next + t - second) * shape::parts * warp_lanes);
      }
#pragma unroll
      for (int e = 0; e < 4; e++) {
        x_[i][e] += sum[0].get(e);
        x_[i + 1][e] += sum[1].get(e);
      }
    });
  }
};

} // namespace bqr

#endif
