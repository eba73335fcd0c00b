/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors of the back-transformation. The reflectors of KB sweeps that follow one another, at hop h,
 * lie in a parallelogram: V's column l is at rows l, ..., l + B - 1 from row KB g + B h on. H_1 H_2 ... = I -
 * Y V^H, Y = V T. */
#ifndef BQR_KERNELS_BAND_PARALLELOGRAM_CUH
#define BQR_KERNELS_BAND_PARALLELOGRAM_CUH

#include "common/simt/scalar.cuh"

namespace bqr {

/* Its 8 x 8 tiles, `down` rows of `across`. */
template <int B, int KB> struct parallelogram {
  static constexpr int width = B, sweeps = KB;
  static constexpr int across = sweeps / 8, high = B / 8, down = across + high;

  /* Tile (i, t) of V is not zero for first(i) <= t < last(i), that of Y for first(i) <= t < across. */
  BQR_INLINE static constexpr int first(int i) { return i > high ? i - high : 0; }
  BQR_INLINE static constexpr int last(int i) { return i < across ? i + 1 : across; }

  static constexpr int at_once = 16; /* groups of sweeps for which there is scratch */
  BQR_INLINE static int groups(int n) { return (n + sweeps - 1) / sweeps; }
  BQR_INLINE static int hops(int n) { return (n + B - 1) / B; }
};

/* What form_kernel has of a block reflector: columns of V, without what is above and below them, V^H V, T. */
template <class T, int B, int KB> struct form_shared {
  T v[KB][B + 1], gram[KB][KB + 1], t[KB][KB + 1], tau[KB];

  /* Of the parallelogram. */
  __device__ __forceinline__ T get_v(int row, int l) const {
    const int r = row - l;
    return r >= 0 && r < B ? v[l][r] : zero<T>();
  }
  /* sum := -Y, columns c and c + 1, c even. */
  __device__ __forceinline__ void get_y(T (&sum)[2], int row, int c) const {
    const int end = row < c + 1 ? row : c + 1;
    sum[0] = sum[1] = zero<T>();
#pragma unroll 4
    for (int l = row - B + 1 > 0 ? row - B + 1 : 0; l <= end; l++) {
      const T x = -v[l][row - l];
      sum[0] = madd(x, t[l][c], sum[0]);
      sum[1] = madd(x, t[l][c + 1], sum[1]);
    }
  }
};

} // namespace bqr

#endif
