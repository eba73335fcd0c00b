/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns near the ends of the exponent range. Multiplying a column of A by a power of two is exact,
 * multiplies the same column of R and of Q^H A and leaves Q alone; so the few columns that need it (see
 * range_scale()) are brought nearer to 1 before and back after the work. Warps share the columns; no word
 * contains a barrier. */
#ifndef BQR_KERNELS_COMMON_MATRIX_RANGE_CUH
#define BQR_KERNELS_COMMON_MATRIX_RANGE_CUH

#include "view.cuh"

namespace bqr {

/* What was done to columns, a byte in shared memory for each: 0 nothing, 1 up, 2 down. Wider matrices have
 * a byte for several columns in a row. */
constexpr int most_column_scales = 4096;

BQR_INLINE int columns_of_scale(int cols) { return (cols - 1) / most_column_scales + 1; }

/* Bytes for matrices of that many columns, a multiple of 16. */
BQR_INLINE int column_scales_bytes(int cols) { return (least(cols, most_column_scales) + 15) / 16 * 16; }

/* Multiplies the columns that need it. Returns the largest magnitude of the thread's elements. */
template <class T>
__device__ uint32_t bring_into_range(const matrix_view<T> &a, bool long_vectors, uint8_t *scales) {
  uint32_t largest_of_all = 0;
  const int width = columns_of_scale(a.cols);
  for (int s = warp_id(); s * width < a.cols; s += num_warps()) {
    const int end = least(a.cols, s * width + width);
    uint32_t u = 0;
    for (int j = s * width; j < end; j++)
      for (int i = lane_id(); i < a.rows; i += warp_lanes) u = greater(u, magnitude(*a.at(i, j)));
    u = group_max(u);
    largest_of_all = greater(largest_of_all, u);
    real_t<T> scale = range_scale<T>(u, long_vectors);
    if (lane_id() == 0) scales[s] = static_cast<uint8_t>(scale == 1 ? 0 : scale > 1 ? 1 : 2);
    if (scale == 1) continue;
    for (int j = s * width; j < end; j++)
      for (int i = lane_id(); i < a.rows; i += warp_lanes) *a.at(i, j) = scaled(*a.at(i, j), scale);
  }
  return largest_of_all;
}

/* Takes that back, in the first `rows(column)` rows. */
template <class T, class F>
__device__ void bring_back(const matrix_view<T> &a, bool long_vectors, const uint8_t *scales, F &&rows) {
  using L = limits<real_t<T>>;
  const int width = columns_of_scale(a.cols);
  for (int s = warp_id(); s * width < a.cols; s += num_warps()) {
    if (scales[s] == 0) continue;
    real_t<T> unscale = range_unscale(scales[s] == 1 ? L::range_up
                                      : long_vectors ? L::range_down_long
                                                     : L::range_down);
    for (int j = s * width; j < least(a.cols, s * width + width); j++)
      for (int i = lane_id(); i < rows(j); i += warp_lanes) *a.at(i, j) = scaled(*a.at(i, j), unscale);
  }
}

} // namespace bqr

#endif
