/* SPDX-License-Identifier: BSD-3-Clause */
/* A tile of X^T X, X real, of 128 x 128, by a block of 512 threads and FP64 matrix units. Columns of X come
 * by asynchronous copies, in stages of 256 bytes of each; numbers in single precision become wider as
 * operands. */
#ifndef BQR_KERNELS_PIVOTS_PIVOTS_TILE_CUH
#define BQR_KERNELS_PIVOTS_PIVOTS_TILE_CUH

#include "pivots_piece.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/simt/block.cuh"

namespace bqr {

/* X: rows x cols. */
template <class T> struct factor {
  const T *x;
  int64_t ld;
  int rows, cols;
  double half, rest; /* what elements are multiplied by: powers of two */
};

/* To the tile's lower left, or on the diagonal; there entries above it are any. */
template <class T> class large_tile {
public:
  static constexpr int size = 128, threads = 512;

private:
  static constexpr int bytes = 256, granules = 16, granule = 16; /* of a column in a stage */
  static constexpr int rows = bytes / sizeof(T), stages = 3, stage_bytes = 2 * size * bytes;
  static constexpr int down = 2, across = 4; /* pieces of a warp */
  static constexpr int warps_down = size / (16 * down);
  static constexpr int ld = size + 2; /* of the result's columns */

public:
  static constexpr size_t shared_bytes =
      stages * stage_bytes > size *ld * 8 ? stages *stage_bytes : size *ld * 8;

  __device__ __forceinline__ large_tile(const factor<T> &f, unsigned char *memory) : f_(f), memory_(memory) {
    const uint64_t places = reinterpret_cast<uint64_t>(f.x) | static_cast<uint64_t>(f.ld) * sizeof(T);
    aligned_ = places % granule == 0;
    scales_ = sizeof(T) == 8 && (f.half != 1 || f.rest != 1);
  }

  /* Rows from `row`, columns from `col` on. put(i, j, x) with threads of a warp in neighbouring rows, then
   * again put_mirrored(i, j, x) in neighbouring columns. By all threads, ends with a barrier. */
  template <class PUT, class MIRRORED>
  __device__ __forceinline__ void run(int row, int col, PUT &&put, MIRRORED &&put_mirrored) {
    row_ = row;
    col_ = col;
    if (scales_)
      multiply<true>();
    else
      multiply<false>();
    keep_sums();
    block_sync();
    const double *const sums = reinterpret_cast<const double *>(memory_);
    for (int j = warp_id(); j < size; j += threads / warp_lanes)
      for (int i = lane_id(); i < size; i += warp_lanes) put(row + i, col + j, sums[j * ld + i]);
    for (int i = warp_id(); i < size; i += threads / warp_lanes)
      for (int j = lane_id(); j < size; j += warp_lanes) put_mirrored(row + i, col + j, sums[j * ld + i]);
    block_sync();
  }

private:
  /* Granules lie in each column so that lanes that read operands are in different banks. */
  __device__ __forceinline__ static int swizzle(int column) {
    return sizeof(T) == 8 ? (column & 1) << 2 : (column & 3) << 1;
  }
  /* Of a warp. */
  __device__ __forceinline__ static int first_row() { return warp_id() % warps_down * 16 * down; }
  __device__ __forceinline__ static int first_column() { return warp_id() / warps_down * 8 * across; }
  __device__ __forceinline__ bool on_diagonal() const { return row_ == col_; }

  __device__ __forceinline__ void copy(int chunk) {
    constexpr int each = granule / static_cast<int>(sizeof(T));
    unsigned char *const stage = memory_ + chunk % stages * stage_bytes;
    const int unit = thread_id() % granules, first = chunk * rows + unit * each;
    const int columns = on_diagonal() ? size : 2 * size;
    for (int c = thread_id() / granules; c < columns; c += threads / granules) {
      const int column = c < size ? row_ + c : col_ + c - size;
      unsigned char *const to = stage + c * bytes + (unit ^ swizzle(c)) * granule;
      int there = column < f_.cols ? f_.rows - first : 0;
      there = there < 0 ? 0 : there > each ? each : there;
      const T *const from = there > 0 ? f_.x + first + column * f_.ld : f_.x;
      if (aligned_) {
        copy_async_part<granule>(to, from, there * static_cast<int>(sizeof(T)));
      } else {
#pragma unroll
        for (int e = 0; e < each; e++)
          copy_async_if<sizeof(T)>(e < there, to + e * sizeof(T), e < there ? from + e : f_.x);
      }
    }
    copy_async_group();
  }

  template <bool SCALES> __device__ __forceinline__ void multiply() {
    const int chunks = (f_.rows + rows - 1) / rows;
    const int top = first_row(), left = first_column();
    const bool works =
        row_ + top < f_.cols && col_ + left < f_.cols && !(on_diagonal() && left >= top + 16 * down);
#pragma unroll
    for (int i = 0; i < down; i++)
#pragma unroll
      for (int j = 0; j < across; j++) sums_[i][j] = {};
#pragma unroll 1
    for (int c = 0; c < stages - 1; c++) {
      if (c < chunks)
        copy(c);
      else
        copy_async_group();
    }
#pragma unroll 1
    for (int c = 0; c < chunks; c++) {
      copy_async_wait_groups<stages - 2>();
      block_sync();
      if (c + stages - 1 < chunks)
        copy(c + stages - 1);
      else
        copy_async_group();
      if (works) add<SCALES>(memory_ + c % stages * stage_bytes, top, on_diagonal() ? left : size + left);
    }
    block_sync(); /* the stages' memory is free */
  }

  /* Rows 8 step + 2 q and one more of a column. */
  template <bool SCALES>
  __device__ __forceinline__ void read(double (&v)[2], const unsigned char *column, int step,
                                       int swizzled) const {
    const int q = lane_id() % 4;
    if constexpr (sizeof(T) == 8) {
      const double2 two = *reinterpret_cast<const double2 *>(column + ((4 * step + q) ^ swizzled) * granule);
      v[0] = two.x;
      v[1] = two.y;
    } else {
      const float2 two = *reinterpret_cast<const float2 *>(
          column + ((2 * step + q / 2) ^ swizzled) * granule + q % 2 * static_cast<int>(sizeof(float2)));
      v[0] = static_cast<double>(two.x);
      v[1] = static_cast<double>(two.y);
    }
    if (SCALES) {
      v[0] = v[0] * f_.half * f_.rest;
      v[1] = v[1] * f_.half * f_.rest;
    }
  }

  template <bool SCALES> __device__ __forceinline__ void add(const unsigned char *stage, int top, int left) {
    const int g = lane_id() / 4, swizzled = swizzle(g);
    const unsigned char *const a_columns = stage + (top + g) * bytes, *const b_columns =
                                                                          stage + (left + g) * bytes;
#pragma unroll
    for (int step = 0; step < rows / 8; step++) {
      double a[down][4], b[across][2];
#pragma unroll
      for (int j = 0; j < across; j++) read<SCALES>(b[j], b_columns + 8 * j * bytes, step, swizzled);
#pragma unroll
      for (int i = 0; i < down; i++) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
          double two[2];
          read<SCALES>(two, a_columns + (16 * i + 8 * h) * bytes, step, swizzled);
          a[i][2 * h] = two[0];
          a[i][2 * h + 1] = two[1];
        }
#pragma unroll
        for (int j = 0; j < across; j++) sums_[i][j].add(a[i], b[j]);
      }
    }
  }

  __device__ __forceinline__ void keep_sums() {
    const int g = lane_id() / 4, q = lane_id() % 4, top = first_row(), left = first_column();
    double *const to = reinterpret_cast<double *>(memory_);
#pragma unroll
    for (int i = 0; i < down; i++)
#pragma unroll
      for (int j = 0; j < across; j++)
#pragma unroll
        for (int e = 0; e < 4; e++)
          to[(left + 8 * j + 2 * q + e % 2) * ld + top + 16 * i + 8 * (e / 2) + g] = sums_[i][j].get(e);
  }

  const factor<T> f_;
  unsigned char *memory_;
  bool aligned_, scales_;
  int row_ = 0, col_ = 0;
  piece_sums<double> sums_[down][across];
};

} // namespace bqr

#endif
