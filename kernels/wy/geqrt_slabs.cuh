/* SPDX-License-Identifier: BSD-3-Clause */
/* A panel in slabs of 16 rows, which go to warps in turn: as many rows as a block of threads has, in shared
 * memory, where zeros fill up the last slab, or all where they are in global memory. */
#ifndef BQR_KERNELS_WY_GEQRT_SLABS_CUH
#define BQR_KERNELS_WY_GEQRT_SLABS_CUH

#include "common/panel/panel_rows.cuh"
#include "common/simt/tile.cuh"

namespace bqr {

template <class T, bool SHARED> struct panel_slabs {
  static constexpr int slab_rows = 16, tile = panel_factors::tile;

  T *x;
  std::conditional_t<SHARED, int, int64_t> ld;
  int first, rows, columns; /* first: the panel's row that is the block's first one */

  __device__ __forceinline__ T *at(int i, int j) const { return x + i + j * ld; }

  /* COUNT neighbours of a column from row i on, zeros where there are none. WHOLE: all are there, and 16
   * bytes may be read at a time. */
  template <bool WHOLE = SHARED, int COUNT>
  __device__ __forceinline__ void read(T (&to)[COUNT], int i, int j) const {
    if constexpr (WHOLE && COUNT == 2) {
      read_two(to, at(i, j));
    } else if constexpr (WHOLE) {
      column_read<0>(to, at(i, j));
    } else {
#pragma unroll
      for (int k = 0; k < COUNT; k++) to[k] = i + k < rows && j < columns ? *at(i + k, j) : zero<T>();
    }
  }
  __device__ __forceinline__ void write(T y, int i, int j) const {
    if (SHARED || (i < rows && j < columns)) *at(i, j) = y;
  }

  /* f(first row): the slabs of a warp, which is number `warp` of `count`. */
  template <class F> __device__ __forceinline__ void each(int from, int warp, int count, F &&f) const {
#pragma unroll 1
    for (int top = from + warp * slab_rows; top < rows; top += count * slab_rows) f(top);
  }

  /* Eight rows of a slab's columns, as operands whose rows the columns are: the lane has rows 4 q + 2 t ..
   * or, in global memory, 8 t + 2 q .. of column g of each tile. */
  template <bool WHOLE = SHARED, int TILES>
  __device__ __forceinline__ void read_half(T (&to)[TILES][2], int top, int t) const {
    const int q = lane_id() % 4, row = top + (SHARED ? 4 * q + 2 * t : 8 * t + 2 * q);
#pragma unroll
    for (int J = 0; J < TILES; J++) read<WHOLE>(to[J], row, tile * J + lane_id() / 4);
  }
  /* Eight columns of a slab as an operand whose rows they are: the lane has rows 4 q .. of column g. */
  template <bool WHOLE = SHARED>
  __device__ __forceinline__ void read_columns(wide<T> (&to)[4], int top, int column) const {
    T four[4];
    read<WHOLE>(four, top + 4 * (lane_id() % 4), column + lane_id() / 4);
#pragma unroll
    for (int t = 0; t < 4; t++) to[t] = converted<wide<T>>(four[t]);
  }
  /* Columns of it as operands with 16 rows, as panel_factors::rows16. */
  template <bool WHOLE = SHARED, int TILES>
  __device__ __forceinline__ void read_rows(wide<T> (&to)[TILES][4], int top, int column) const {
    each_pair<TILES>(top, column, [&](int J, int e, int i, int j) {
      T pair[2];
      read<WHOLE>(pair, i, j);
      to[J][e] = converted<wide<T>>(pair[0]);
      to[J][2 + e] = converted<wide<T>>(pair[1]);
    });
  }
  template <int TILES>
  __device__ __forceinline__ void write_rows(const wide<T> (&y)[TILES][4], int top, int column) const {
    each_pair<TILES>(top, column, [&](int J, int e, int i, int j) {
      const T pair[2] = {converted<T>(y[J][e]), converted<T>(y[J][2 + e])};
      if (SHARED) {
        write_two(at(i, j), pair);
      } else {
        write(pair[0], i, j);
        write(pair[1], i + 1, j);
      }
    });
  }

private:
  /* f(tile, element, row, column) */
  template <int TILES, class F> __device__ __forceinline__ static void each_pair(int top, int column, F &&f) {
#pragma unroll
    for (int J = 0; J < TILES; J++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        f(J, e, top + 2 * (lane_id() / 4), column + tile * J + 2 * (lane_id() % 4) + e);
  }
};

} // namespace bqr

#endif
