/* SPDX-License-Identifier: BSD-3-Clause */
/* A panel in shared memory, as many of its rows as a block of threads has, in slabs of 16, the last of which
 * zeros fill up. Slabs go to warps in turn. */
#ifndef BATCHQR_KERNELS_COMMON_PANEL_SLABS_CUH
#define BATCHQR_KERNELS_COMMON_PANEL_SLABS_CUH

#include "panel_rows.cuh"

namespace bqr {

template <class T> struct panel_slabs {
  static constexpr int slab_rows = 16;

  T *x;
  int ld, first, rows; /* first: the panel's row that is the block's first one */

  __device__ __forceinline__ T *at(int i, int j) const { return x + i + j * ld; }

  /* f(first row): the slabs of a warp, which is number `warp` of `count`. */
  template <class F> __device__ __forceinline__ void each(int from, int warp, int count, F &&f) const {
#pragma unroll 1
    for (int top = from + warp * slab_rows; top < rows; top += count * slab_rows) f(top);
  }

  /* Eight columns of a slab as an operand whose rows they are: the lane has rows 4 q .. of column g. */
  __device__ __forceinline__ void read_columns(double (&to)[4], int top, int column) const {
#pragma unroll
    for (int t = 0; t < 4; t += 2) {
      T pair[2];
      read_two(pair, at(top + 4 * (lane_id() % 4) + t, column + lane_id() / 4));
      to[t] = pair[0];
      to[t + 1] = pair[1];
    }
  }
};

} // namespace bqr

#endif
