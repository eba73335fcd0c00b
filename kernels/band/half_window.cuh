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

  /* Of sums' elements in two neighbouring tiles. */
  __device__ __forceinline__ void set(const float (&upper)[4], const float (&lower)[4]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
      const float *x = (i < 2 ? upper : lower) + 2 * (i % 2);
      const two_halves two = halves_of(x[0], x[1]);
      hi[i] = two.hi;
      lo[i] = two.lo;
    }
  }
  /* Of them times `scale`, and longer by so much of them. */
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

  /* Blocks of reflectors; the same for all lanes, which ptxas does not see by itself. */
  struct blocks {
    uint64_t first;
    __device__ __forceinline__ explicit blocks(const packed *from)
        : first(wgmma_columns(from) >> 32 << 32 | broadcast(static_cast<uint32_t>(wgmma_columns(from)), 0)) {}
    __device__ __forceinline__ uint64_t hi(int at) const { return wgmma_columns_at(first, at * shape::unit); }
    __device__ __forceinline__ uint64_t lo(int at) const {
      return wgmma_columns_at(first, at * shape::unit + wgmma_narrow_bytes);
    }
  };

public:
  using rows::rows;

  /* V^H Z, transposed, as operands of the other product. Units cut off what they add up, which would shorten
   * columns: it is made longer by about as much. (Of 4096 rows, the lengths of dense columns would need 2.65
   * and 3.3 times 2^-24 of width 32 and 64; columns of the unit matrix of 300 rows, which many zeros meet,
   * 1.5 and 1.7.) */
  struct projection {
    half_rows of[4];
  };

  __device__ __forceinline__ void project(projection &w, const packed *from) {
    const blocks v(from);
    float large[2][4][4], small[2][4][4];
    half_rows a[2];
    static_for<shape::steps>([&](auto step) {
      constexpr int k = decltype(step)::value;
      half_rows &rows_of = a[k % 2];
      if (k >= 2) {
        wgmma_wait<1>();
        rows_of.over();
      }
      rows_of.set(x_[2 * k], x_[2 * k + 1]);
      wgmma_begin();
      static_for<6>([&](auto number) { /* sums in turn */
                                       constexpr int h = decltype(number)::value % 2,
                                                     term = decltype(number)::value / 2,
                                                     at = shape::v_before(k, h);
                                       if constexpr (shape::v_has(k, h)) {
                                         if constexpr (term == 0)
                                           wgmma_rows_by<some_before(k, h)>(small[h], rows_of.lo, v.hi(at));
                                         else if constexpr (term == 1)
                                           wgmma_rows_by<some_before(k, h)>(large[h], rows_of.hi, v.hi(at));
                                         else
                                           wgmma_rows_by<true>(small[h], rows_of.hi, v.lo(at));
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
    constexpr float longer = (shape::width == 32 ? 2.2f : 2.75f) * 0x1p-24f;
#pragma unroll
    for (int k = 0; k < 4; k++)
      w.of[k].set(large[k / 2][k % 2 * 2], large[k / 2][k % 2 * 2 + 1], 1 / shape::scale_of_block, longer);
  }

  /* Z := Z - Y w, by pairs of chunks; while one is added the next one is multiplied. */
  __device__ __forceinline__ void update(const projection &w, const packed *from) {
    const blocks y(from);
    constexpr int pairs = (shape::chunks + 1) / 2;
    float sum[2][2][4][4];
    auto add = [&](auto pair) {
      constexpr int first = 2 * decltype(pair)::value;
#pragma unroll
      for (int c = first; c < first + 2 && c < shape::chunks; c++) {
        auto &chunk = sum[first / 2 % 2][c - first];
        wgmma_over(chunk);
#pragma unroll
        for (int t = 0; t < 4; t++)
#pragma unroll
          for (int e = 0; e < 4; e++)
            x_[4 * c + t][e] = fmaf(chunk[t][e], 1 / shape::scale_of_block, x_[4 * c + t][e]);
      }
    };
    static_for<pairs>([&](auto pair) {
      constexpr int first = 2 * decltype(pair)::value;
      auto &sums = sum[first / 2 % 2];
      wgmma_begin();
      static_for<24>([&](auto number) { /* small terms first, sums in turn */
                                        constexpr int i = decltype(number)::value, c = first + i % 2,
                                                      k = i < 16 ? i / 4 : (i - 16) / 2,
                                                      term = i < 16 ? i / 2 % 2 : 2;
                                        if constexpr (c < shape::chunks) {
                                          if constexpr (shape::y_has(c, k)) {
                                            constexpr int at = shape::y_before(c, k);
                                            if constexpr (term == 0)
                                              wgmma_rows_by<(k > shape::first(4 * c) / 2)>(
                                                  sums[c - first], w.of[k].lo, y.hi(at));
                                            else if constexpr (term == 1)
                                              wgmma_rows_by<true>(sums[c - first], w.of[k].hi, y.lo(at));
                                            else
                                              wgmma_rows_by<true>(sums[c - first], w.of[k].hi, y.hi(at));
                                          }
                                        }
      });
      wgmma_end();
      if constexpr (first > 0) {
        wgmma_wait<1>();
        add(std::integral_constant<int, first / 2 - 1>{});
      }
    });
    wgmma_wait<0>();
#pragma unroll
    for (int k = 0; k < 4; k++) w.of[k].over();
    add(std::integral_constant<int, pairs - 1>{});
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
