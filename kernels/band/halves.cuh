/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors of single precision as FP16 units take them, see common/ptx/wgmma_rows.cuh: x = hi + lo,
 * both FP16, of which lo is below 2^-11 |x|. What is left out of hi hi + hi lo + lo hi is below 2^-22 |a b|.
 *
 * By scales of powers of two, small parts are far from FP16's smallest numbers: entries of V and Y are at
 * most 2, since Y's column c is tau times H_1 ... H_(c-1) v; Z's columns are at most 4 long, and so are V^H
 * Z's entries below 6.
 *
 * V is stored by 16 rows and 32 reflectors, as columns of 16 numbers: blocks (k, half) that are not zero, hi,
 * then lo. -Y as columns, too, its rows: 32 of them by 16 reflectors, (chunk, k). */
#ifndef BQR_KERNELS_BAND_HALVES_CUH
#define BQR_KERNELS_BAND_HALVES_CUH

#include "parallelogram.cuh"
#include "scratch.cuh"
#include "common/ptx/cvt.cuh"
#include "common/ptx/wgmma_rows.cuh"

namespace bqr {

/* Two numbers' high parts, and their low ones. */
struct two_halves {
  uint32_t hi, lo;
};
__device__ __forceinline__ two_halves halves_of(float x, float y) {
  two_halves two;
  float hx, hy;
  two.hi = rounded_to_fp16(x, y);
  unpack_fp16(two.hi, hx, hy);
  two.lo = rounded_to_fp16(x - hx, y - hy);
  return two;
}

template <int B> struct half_shape : parallelogram<B, 64> {
  using base = parallelogram<B, 64>;
  using type = float;
  static constexpr int columns = 16, together = 4; /* of a warp; warps */
  static constexpr float scale = 0x1p13f, scale_of_block = 0x1p6f;
  static constexpr int step = 16, steps = base::down / 2; /* rows of V at a time */
  static constexpr int chunk = wgmma_narrow, chunks = base::down / 4;
  static constexpr int unit = 2 * wgmma_narrow_bytes;

  /* V's blocks (k, half), k < steps, and Y's (chunk, k). */
  BQR_INLINE static constexpr bool v_has(int k, int half) {
    return base::first(2 * k) < 4 * (half + 1) && base::last(2 * k + 1) > 4 * half;
  }
  BQR_INLINE static constexpr bool y_has(int c, int k) { return k >= base::first(4 * c) / 2; }
  BQR_INLINE static constexpr int v_before(int k, int half) {
    int count = 0;
    for (int i = 0; i < 2 * k + half; i++) count += v_has(i / 2, i % 2);
    return count;
  }
  BQR_INLINE static constexpr int y_before(int c, int k) {
    int count = 0;
    for (int i = 0; i < 4 * c + k; i++) count += y_has(i / 4, i % 4);
    return count;
  }
  static constexpr int v_bytes() { return v_before(steps, 0) * unit; }
  static constexpr int y_bytes() { return y_before(chunks, 0) * unit; }
  static constexpr int bytes() { return v_bytes() + y_bytes(); }

  /* By form_threads threads: of a block, each has two neighbours of 16 in one of 32 columns. */
  template <class S> __device__ __forceinline__ static void store(const S &s, char *block) {
    static_assert(form_threads == 256);
    const int core = warp_id(), column = core / 2 * 8 + lane_id() / 4,
              number = core % 2 * 8 + 2 * (lane_id() % 4);
    auto put = [&](int at, float x, float y) {
      const two_halves two = halves_of(scale_of_block * x, scale_of_block * y);
      uint32_t *to = reinterpret_cast<uint32_t *>(block + at * unit) + thread_id();
      to[0] = two.hi;
      to[wgmma_narrow_bytes / sizeof two.hi] = two.lo;
    };
    int at = 0;
    for (int k = 0; k < steps; k++)
      for (int half = 0; half < 2; half++) {
        if (!v_has(k, half)) continue;
        const int row = step * k + number, l = chunk * half + column;
        put(at++, s.get_v(row, l), s.get_v(row + 1, l));
      }
    for (int c = 0; c < chunks; c++)
      for (int k = 0; k < 4; k++) {
        if (!y_has(c, k)) continue;
        float sum[2];
        s.get_y(sum, chunk * c + column, step * k + number);
        put(at++, sum[0], sum[1]);
      }
  }

  static constexpr int most_warps(int) { return 8; }
  static constexpr int stages_of_few = 2, stages_of_many = 2;
};

} // namespace bqr

#endif
