/* SPDX-License-Identifier: BSD-3-Clause */
/* A window of rows of Z in single precision, and block reflectors in FP16 halves that are applied to it by
 * four warps at once. */
#ifndef BQR_KERNELS_BAND_HALF_WINDOW_CUH
#define BQR_KERNELS_BAND_HALF_WINDOW_CUH

#include "halves.cuh"
#include "tile_window.cuh"

namespace bqr {

/* 16 rows of a window, or numbers of a projection, in the registers of a thread. */
struct half_rows {
  uint32_t hi[4], lo[4];

  /* f(x) of sums' elements x of two neighbouring tiles; with `longer` times them added. */
  __device__ __forceinline__ void set(const float (&upper)[4], const float (&lower)[4], float scale,
                                      float longer) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float *x = (i < 2 ? upper : lower) + 2 * (i % 2);
      const float a = x[0] * scale, b = x[1] * scale;
      float ha, hb;
      hi[i] = rounded_to_fp16(a, b);
      unpack_fp16(hi[i], ha, hb);
      lo[i] = rounded_to_fp16(fmaf(a, longer, a - ha), fmaf(b, longer, b - hb));
    }
  }
  __device__ __forceinline__ void over() const {
    wgmma_over(hi);
    wgmma_over(lo);
  }
};

template <int B, int STAGES>
class back_window<half_shape<B>, STAGES> : public window_rows<half_shape<B>, STAGES> {
  using rows = window_rows<half_shape<B>, STAGES>;
  using shape = half_shape<B>;
  using rows::x_;

  __device__ __forceinline__ static uint64_t hi(const packed *blocks, int at) {
    return wgmma_columns(reinterpret_cast<const char *>(blocks) + at * shape::unit);
  }
  __device__ __forceinline__ static uint64_t lo(const packed *blocks, int at) {
    return wgmma_columns(reinterpret_cast<const char *>(blocks) + at * shape::unit + wgmma_narrow_bytes);
  }

public:
  using rows::rows;

  /* V^H Z, transposed, as operands of the other product. Units cut off what they add up, m times half an ulp
   * of a sum that grows: (m + 1) / 2 times 0.72 2^-24 of it, in both products, by which it is made longer. */
  struct projection {
    half_rows of[4];
  };

  __device__ __forceinline__ void project(projection &w, const packed *v) {
    float large[2][4][4], small[2][4][4];
    half_rows a[2];
    static_for<shape::steps>([&](auto step) {
      constexpr int k = decltype(step)::value;
      half_rows &rows_of = a[k % 2];
      if (k >= 2) {
        wgmma_wait<1>();
        rows_of.over();
      }
      rows_of.set(x_[2 * k], x_[2 * k + 1], 1, 0);
      wgmma_begin();
      static_for<2>([&](auto half) {
        constexpr int h = decltype(half)::value, at = shape::v_before(k, h);
        constexpr bool add = some_before(k, h);
        if constexpr (shape::v_has(k, h)) {
          wgmma_rows_by<add>(small[h], rows_of.lo, hi(v, at));
          wgmma_rows_by<true>(small[h], rows_of.hi, lo(v, at));
          wgmma_rows_by<add>(large[h], rows_of.hi, hi(v, at));
        }
      });
      wgmma_end();
    });
    wgmma_wait<0>();
#pragma unroll
    for (int i = 0; i < 2; i++) {
      a[i].over();
      wgmma_over(large[i]);
      wgmma_over(small[i]);
#pragma unroll
      for (int t = 0; t < 4; t++)
#pragma unroll
        for (int e = 0; e < 4; e++) large[i][t][e] += small[i][t][e];
    }
    constexpr float sums = (shape::width / 16 + 2) / 2.f + 2.5f, longer = sums * 0.72f * 0x1p-24f;
#pragma unroll
    for (int k = 0; k < 4; k++)
      w.of[k].set(large[k / 2][k % 2 * 2], large[k / 2][k % 2 * 2 + 1], 1 / shape::scale_of_block, longer);
  }

  /* Z := Z - Y w, 32 rows at a time; while these are added the next ones are multiplied. */
  __device__ __forceinline__ void update(const projection &w, const packed *y) {
    float sum[2][4][4];
    auto add = [&](auto chunk) {
      constexpr int c = decltype(chunk)::value;
      wgmma_over(sum[c % 2]);
#pragma unroll
      for (int t = 0; t < 4; t++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          x_[4 * c + t][e] = fmaf(sum[c % 2][t][e], 1 / shape::scale_of_block, x_[4 * c + t][e]);
    };
    static_for<shape::chunks>([&](auto chunk) {
      constexpr int c = decltype(chunk)::value, first = shape::first(4 * c) / 2;
      wgmma_begin();
      static_for<4>([&](auto number) {
        constexpr int k = decltype(number)::value;
        if constexpr (shape::y_has(c, k)) {
          wgmma_rows_by<(k > first)>(sum[c % 2], w.of[k].lo, hi(y, shape::y_before(c, k)));
          wgmma_rows_by<true>(sum[c % 2], w.of[k].hi, lo(y, shape::y_before(c, k)));
        }
      });
      static_for<4>([&](auto number) {
        constexpr int k = decltype(number)::value;
        if constexpr (shape::y_has(c, k))
          wgmma_rows_by<true>(sum[c % 2], w.of[k].hi, hi(y, shape::y_before(c, k)));
      });
      wgmma_end();
      if constexpr (c > 0) {
        wgmma_wait<1>();
        add(std::integral_constant<int, c - 1>{});
      }
    });
    wgmma_wait<0>();
#pragma unroll
    for (int k = 0; k < 4; k++) w.of[k].over();
    add(std::integral_constant<int, shape::chunks - 1>{});
  }

private:
  /* Whether V has a block (i, h) with i < k. */
  BQR_INLINE static constexpr bool some_before(int k, int h) {
    for (int i = 0; i < k; i++)
      if (shape::v_has(i, h)) return true;
    return false;
  }
};

} // namespace bqr

#endif
