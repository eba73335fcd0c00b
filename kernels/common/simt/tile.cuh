/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiles between global memory, shared memory and registers. */
#ifndef BQR_KERNELS_COMMON_SIMT_TILE_CUH
#define BQR_KERNELS_COMMON_SIMT_TILE_CUH

#include "warp.cuh"
#include "common/ptx/opaque.cuh"

namespace bqr {

/* 16 bytes: the widest access. */
template <class T> struct alignas(16) pack {
  static constexpr int size = 16 / static_cast<int>(sizeof(T));
  T v[size];
};

/* Whether a tile of m rows at `global` with leading dimension ld can be moved 16 bytes at a time. */
template <class T> __device__ __forceinline__ bool tile_packs(const T *global, int64_t ld, int m) {
  uint64_t bits = reinterpret_cast<uint64_t>(global) | static_cast<uint64_t>(ld) * sizeof(T) |
                  static_cast<uint64_t>(m) * sizeof(T);
  return bits % 16 == 0;
}

/* An element, or a pack from row `row` of column `col` on, with zeros below the diagonal. */
template <class T> __device__ __forceinline__ T upper(T x, int row, int col) {
  return row > col ? zero<T>() : x;
}
template <class T> __device__ __forceinline__ pack<T> upper(pack<T> p, int row, int col) {
#pragma unroll
  for (int i = 0; i < pack<T>::size; i++)
    if (row + i > col) p.v[i] = zero<T>();
  return p;
}

/* How LANES lanes walk down the columns of tiles of m rows between global memory and shared memory with
 * leading dimension LD: 16 bytes or one element at a time. Made once for many tiles, because of the
 * divisions. */
template <class T, int LANES, int LD> class tile_walk {
public:
  __device__ __forceinline__ tile_walk(int m, bool packs, int lane) : packs_(packs) {
    rows_ = packs ? m / pack<T>::size : m;
    row_ = lane % rows_;
    col_ = lane / rows_;
    row_step_ = LANES % rows_;
    col_step_ = LANES / rows_;
  }

  /* f(in shared memory, in global memory, row, column) for each pack or element of `count` tiles of n
   * columns, SIZE and `stride` elements apart, at most COUNT: a place in all of them, then the next. */
  template <int COUNT, int SIZE, class F>
  __device__ __forceinline__ void each(T *shared, T *global, int64_t ld, int n, int count, int64_t stride,
                                       F &&f) const {
    if (packs_)
      each_of<pack<T>, COUNT, SIZE>(shared, global, ld, n, count, stride, f);
    else
      each_of<T, COUNT, SIZE>(shared, global, ld, n, count, stride, f);
  }

  /* f(row, column) for each element of n columns, of a walk without packs. */
  template <class F> __device__ __forceinline__ void each_place(int n, F &&f) const {
    int row = row_;
    for (int col = col_; col < n; col += col_step_) {
      f(row, col);
      row += row_step_;
      if (row >= rows_) {
        row -= rows_;
        col++;
      }
    }
  }

private:
  template <class U, int COUNT, int SIZE, class F>
  __device__ __forceinline__ void each_of(T *shared, T *global, int64_t ld, int n, int count, int64_t stride,
                                          F &&f) const {
    int row = row_;
    for (int col = col_; col < n; col += col_step_) {
      const int at = row * static_cast<int>(sizeof(U) / sizeof(T));
      T *s = shared + col * LD + at, *g = global + col * ld + at;
#pragma unroll(sizeof(U) < 16 ? 1 : COUNT < 4 ? COUNT : 4)
      for (int i = 0; i < COUNT && i < count; i++, g += stride)
        f(reinterpret_cast<U *>(s + i * SIZE), reinterpret_cast<U *>(g), at, col);
      row += row_step_;
      if (row >= rows_) {
        row -= rows_;
        col++;
      }
    }
  }

  bool packs_;
  int rows_, row_, col_, row_step_, col_step_;
};

/* How a warp walks through TILES tiles of ROWS x COLS that lie one behind the other in global memory, their
 * columns too, and SIZE elements apart with leading dimension LD in shared memory: 16 bytes to a lane, and
 * all steps are constants. */
template <class T, int ROWS, int COLS, int TILES, int LD, int SIZE> class dense_walk {
  static constexpr int unit = pack<T>::size, units = ROWS / unit;
  static_assert(ROWS % unit == 0 && units <= warp_lanes, "columns are whole units, a warp's at most");

  /* The columns of a step: parts of a tile or whole tiles. */
  static constexpr int step_columns(int c) {
    return c * units <= warp_lanes && (COLS % c == 0 || (c % COLS == 0 && TILES % (c / COLS) == 0))
               ? c
               : step_columns(c - 1);
  }
  static constexpr int columns = step_columns(COLS * TILES), steps = COLS * TILES / columns;
  static constexpr int place(int column) { return column / COLS * SIZE + column % COLS * LD; }

public:
  /* f(in shared memory, in global memory, row, column of the tile) for each pack. */
  template <class F> static __device__ __forceinline__ void each(T *shared, T *global, F &&f) {
    const int row = lane_id() % units * unit, col = lane_id() / units;
    if (col >= columns) return;
    shared += place(col) + row;
    global += col * ROWS + row;
    opaque(global); /* or each step's address would be computed from the start */
    __builtin_assume(__isGlobal(global));
#pragma unroll
    for (int i = 0; i < steps; i++)
      f(reinterpret_cast<pack<T> *>(shared + place(i * columns)),
        reinterpret_cast<pack<T> *>(global + i * columns * ROWS), row, col % COLS + i * columns % COLS);
  }
};

/* Entries FIRST .. ROWS of a column between shared memory (aligned to 16 bytes) and registers; whole units of
 * 16 bytes, so that FIRST is rounded down to one. */
template <int FIRST, int ROWS, class T>
__device__ __forceinline__ void column_read(T (&a)[ROWS], const T *shared) {
  constexpr int unit = pack<T>::size;
#pragma unroll
  for (int i = FIRST / unit * unit; i < ROWS; i += unit) {
    pack<T> p = *reinterpret_cast<const pack<T> *>(shared + i);
#pragma unroll
    for (int j = 0; j < unit; j++) a[i + j] = p.v[j];
  }
}
template <int FIRST, int ROWS, class T>
__device__ __forceinline__ void column_write(T *shared, const T (&a)[ROWS]) {
  constexpr int unit = pack<T>::size;
#pragma unroll
  for (int i = FIRST / unit * unit; i < ROWS; i += unit) {
    pack<T> p;
#pragma unroll
    for (int j = 0; j < unit; j++) p.v[j] = a[i + j];
    *reinterpret_cast<pack<T> *>(shared + i) = p;
  }
}

} // namespace bqr

#endif
