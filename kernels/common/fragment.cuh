/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragments: 8 columns in the registers of a block, the form in which panels are factored and trailing
 * columns updated. Column c lies in the 4 lanes 4 c .. 4 c + 3 of every warp. Rows go in units of 16 bytes
 * over the 4 lanes, then over the P warps, then over a lane's units; 32 R rows to a warp. In double precision
 * a unit of all lanes is an accumulator of the matrix units, see mma.cuh. */
#ifndef BATCHQR_KERNELS_COMMON_FRAGMENT_CUH
#define BATCHQR_KERNELS_COMMON_FRAGMENT_CUH

#include "block.cuh"
#include "tile.cuh"

namespace bqr {

template <class T, int R, int P> struct fragment {
  static constexpr int columns = 8, lanes = 4; /* of a warp, of a column */
  static constexpr int unit = pack<T>::size,
                       tile = lanes * unit; /* rows of a lane's and of four lanes' unit */
  static constexpr int units = 8 * R / unit, rows = 32 * R * P;

  T x[units][unit];

  __device__ __forceinline__ static int column() { return lane_id() / lanes; }
  __device__ __forceinline__ static int lane() { return lane_id() % lanes; }
  /* The row of x[u][e], from the fragment's first row. */
  __device__ __forceinline__ static int row(int u, int e) {
    return tile * (warp_id() + P * u) + unit * lane() + e;
  }
  /* Whether unit u lies in the first `rows` rows, for any lane of the warp. */
  __device__ __forceinline__ static bool has_rows(int u, int rows) {
    return tile * (warp_id() + P * u) < rows;
  }
  /* Whether unit u may hold one of the first 8 rows, those of the triangle in a panel. */
  static constexpr bool in_head(int u) { return tile * P * u < columns; }

  /* f(entry, its row) */
  template <class F> __device__ __forceinline__ void each(F &&f) {
#pragma unroll
    for (int u = 0; u < units; u++)
#pragma unroll
      for (int e = 0; e < unit; e++) f(x[u][e], row(u, e));
  }

  /* From and to a matrix of m rows and n columns in global memory, `column()` being one of its columns;
   * packs: its columns consist of whole aligned units. */
  __device__ __forceinline__ void load(const T *a, int64_t ld, int m, int n, bool packs) {
    const T *from = a + column() * ld + row(0, 0);
    const int left = column() < n ? m - row(0, 0) : 0;
    if (packs) {
#pragma unroll
      for (int u = 0; u < units; u++) {
#pragma unroll
        for (int e = 0; e < unit; e++) x[u][e] = zero<T>();
        if (tile * P * u < left) column_read<0>(x[u], from + tile * P * u);
      }
    } else {
#pragma unroll
      for (int u = 0; u < units; u++)
#pragma unroll
        for (int e = 0; e < unit; e++) x[u][e] = tile * P * u + e < left ? from[tile * P * u + e] : zero<T>();
    }
  }
  __device__ __forceinline__ void store(T *a, int64_t ld, int m, int n, bool packs) const {
    T *to = a + column() * ld + row(0, 0);
    const int left = column() < n ? m - row(0, 0) : 0;
    if (packs) {
#pragma unroll
      for (int u = 0; u < units; u++)
        if (tile * P * u < left) column_write<0>(to + tile * P * u, x[u]);
    } else {
#pragma unroll
      for (int u = 0; u < units; u++)
#pragma unroll
        for (int e = 0; e < unit; e++)
          if (tile * P * u + e < left) to[tile * P * u + e] = x[u][e];
    }
  }
};

} // namespace bqr

#endif
