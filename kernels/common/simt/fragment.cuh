/* SPDX-License-Identifier: BSD-3-Clause */
/* Fragments: 8 columns in the registers of W warps, the form in which panels are factored and trailing
 * columns updated. Column c lies in the 4 lanes 4 c .. 4 c + 3 of every warp. Rows go in units of two
 * neighbours over the 4 lanes, and so in tiles of 8 over the W warps, then over a lane's U units, an even
 * number of them. A unit of all lanes is an operand and an accumulator of common/simt/product.cuh.
 *
 * Warps are numbered from the one that has the first 8 rows. */
#ifndef BQR_KERNELS_COMMON_SIMT_FRAGMENT_CUH
#define BQR_KERNELS_COMMON_SIMT_FRAGMENT_CUH

#include "warp.cuh"
#include "common/ptx/cp_async.cuh"

namespace bqr {

/* Two neighbours in memory. */
template <class T> struct alignas(sizeof(T) == 4 ? 8 : 16) two { T v[2]; };
template <class T> __device__ __forceinline__ void read_two(T (&x)[2], const T *from) {
  two<T> p = *reinterpret_cast<const two<T> *>(from);
  x[0] = p.v[0];
  x[1] = p.v[1];
}
template <class T> __device__ __forceinline__ void write_two(T *to, const T (&x)[2]) {
  *reinterpret_cast<two<T> *>(to) = {x[0], x[1]};
}

/* Where an entry of a tile of 8 x 8 lies in shared memory: rows and columns are free of bank conflicts. */
__device__ __forceinline__ int tile_place(int row, int column) { return 8 * row + (column ^ (row & 6)); }

/* SPREAD: a lane's two rows of a tile are not neighbours but 4 apart, so that the lanes of a column read and
 * write whole sectors of memory where elements have 16 bytes. */
template <class T, int U, int W, bool SPREAD = false> struct unit_fragment {
  static constexpr int columns = 8, lanes = 4; /* of a warp, of a column */
  static constexpr int tile = 8, units = U, rows = tile * U * W;
  static constexpr int step = SPREAD ? lanes : 1; /* from a lane's first row of a tile to the second */

  T x[units][2];

  __device__ __forceinline__ static int column() { return lane_id() / lanes; }
  __device__ __forceinline__ static int lane() { return lane_id() % lanes; }
  /* The row of a tile that is this lane's element e, and the lane and the element that have a row. */
  __device__ __forceinline__ static int row(int e) { return (SPREAD ? 1 : 2) * lane() + step * e; }
  __device__ __forceinline__ static int lane_of(int row) { return SPREAD ? row & 3 : row >> 1; }
  __device__ __forceinline__ static int element_of(int row) { return SPREAD ? row >> 2 : row & 1; }
  /* And where it is in a tile's column that the lanes have written, two entries each. */
  __device__ __forceinline__ static int place_of(int row) {
    return SPREAD ? 2 * lane_of(row) + element_of(row) : row;
  }
  /* Whether unit u of warp w lies in the first `rows` rows, for any of its lanes. */
  __device__ __forceinline__ static bool has_rows(int w, int u, int rows) {
    return tile * (w + W * u) < rows;
  }

  template <class F> __device__ __forceinline__ void each(F &&f) {
#pragma unroll
    for (int u = 0; u < units; u++)
#pragma unroll
      for (int e = 0; e < 2; e++) f(x[u][e]);
  }

  /* Whether columns consist of whole aligned units. */
  __device__ static bool packs(const T *a, int64_t ld, int m) {
    constexpr uint64_t bytes = alignof(two<T>);
    return (reinterpret_cast<uint64_t>(a) | static_cast<uint64_t>(ld) * sizeof(T)) % bytes == 0 && m % 2 == 0;
  }

  /* From and to a matrix of m rows and n columns in global memory, `column()` being one of its columns. */
  __device__ __forceinline__ void load(int w, const T *a, int64_t ld, int m, int n, bool packs,
                                       int64_t row_stride = 1) {
    const T *from = a + column() * ld + first_row(w) * row_stride;
    const int left = column() < n ? m - first_row(w) : 0;
    if (packs && !SPREAD) {
#pragma unroll
      for (int u = 0; u < units; u++) {
        x[u][0] = x[u][1] = zero<T>();
        if (tile * W * u < left) read_two(x[u], from + tile * W * u);
      }
    } else {
#pragma unroll
      for (int u = 0; u < units; u++)
#pragma unroll
        for (int e = 0; e < 2; e++)
          x[u][e] = tile * W * u + step * e < left ? from[(tile * W * u + step * e) * row_stride] : zero<T>();
    }
  }
  /* The first `count` units. */
  template <int COUNT = units>
  __device__ __forceinline__ void store(int w, T *a, int64_t ld, int m, int n, bool packs) const {
    T *to = a + column() * ld + first_row(w);
    const int left = column() < n ? m - first_row(w) : 0;
    if (packs && !SPREAD) {
#pragma unroll
      for (int u = 0; u < COUNT; u++)
        if (tile * W * u < left) write_two(to + tile * W * u, x[u]);
    } else {
#pragma unroll
      for (int u = 0; u < COUNT; u++)
#pragma unroll
        for (int e = 0; e < 2; e++)
          if (tile * W * u + step * e < left) to[tile * W * u + step * e] = x[u][e];
    }
  }

  /* load() by way of shared memory, where a block of W warps has `to`: starts it,
   * and takes what has come. Each thread has entries of its own there. */
  __device__ __forceinline__ static void start_load(two<T> (*to)[W * warp_lanes], int w, const T *a,
                                                    int64_t ld, int m, int n, bool packs) {
    const T *from = a + column() * ld + first_row(w);
    const int left = column() < n ? m - first_row(w) : 0;
    if (packs) {
#pragma unroll
      for (int u = 0; u < units; u++) {
        const bool some = tile * W * u < left;
        copy_async_if<sizeof(two<T>)>(some, &to[u][threadIdx.x], some ? from + tile * W * u : a);
      }
    } else {
#pragma unroll
      for (int u = 0; u < units; u++)
#pragma unroll
        for (int e = 0; e < 2; e++) {
          const bool some = tile * W * u + e < left;
          copy_async_if<sizeof(T)>(some, &to[u][threadIdx.x].v[e], some ? from + tile * W * u + e : a);
        }
    }
  }
  __device__ __forceinline__ void finish_load(const two<T> (*from)[W * warp_lanes]) {
#pragma unroll
    for (int u = 0; u < units; u++) read_two(x[u], from[u][threadIdx.x].v);
  }

  /* Leaves the first 8 rows out: what was warp w's is now that of the warp before it, or of the last one. */
  __device__ __forceinline__ void drop_tile(int w) {
    if (w == 0) {
#pragma unroll
      for (int u = 0; u < units; u++)
#pragma unroll
        for (int e = 0; e < 2; e++) x[u][e] = u + 1 < units ? x[u + 1 < units ? u + 1 : u][e] : zero<T>();
    }
  }

  /* The other way: 8 zero rows before the first, where warp w then is the one that has them. */
  __device__ __forceinline__ void add_tile(int w) {
    if (w == 0) {
#pragma unroll
      for (int u = units - 1; u >= 0; u--)
#pragma unroll
        for (int e = 0; e < 2; e++) x[u][e] = u > 0 ? x[u > 0 ? u - 1 : 0][e] : zero<T>();
    }
  }

private:
  __device__ __forceinline__ static int first_row(int w) { return tile * w + row(0); }
};

/* 32 R rows to a warp. */
template <class T, int R, int W> using fragment = unit_fragment<T, 4 * R, W>;

} // namespace bqr

#endif
