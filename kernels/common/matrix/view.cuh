/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices in memory, walked over by a block of threads: warps share the columns, lanes the rows. No word
 * here contains a barrier. */
#ifndef BQR_KERNELS_COMMON_MATRIX_VIEW_CUH
#define BQR_KERNELS_COMMON_MATRIX_VIEW_CUH

#include "common/simt/block.cuh"
#include "member.cuh"

namespace bqr {

/* The block's dynamic shared memory. */
template <class T> __device__ __forceinline__ T *shared_memory() {
  extern __shared__ __align__(16) unsigned char bqr_shared_memory[];
  return reinterpret_cast<T *>(bqr_shared_memory);
}

/* rows x cols elements, column-major. */
template <class T> struct matrix_view {
  T *data;
  int64_t ld;
  int rows, cols;

  BQR_INLINE T *at(int i, int j) const { return data + i + j * ld; }
  BQR_INLINE matrix_view part(int i, int j, int m, int n) const { return {at(i, j), ld, m, n}; }
};

/* f(element, row, column) for every element. */
template <class T, class F> __device__ __forceinline__ void for_each(const matrix_view<T> &a, F &&f) {
  for (int j = warp_id(); j < a.cols; j += num_warps()) {
    T *col = a.at(0, j);
    for (int i = lane_id(); i < a.rows; i += warp_lanes) f(col[i], i, j);
  }
}

template <class T> __device__ void copy_matrix(const matrix_view<T> &from, const matrix_view<T> &to) {
  for_each(from, [&](const T &x, int i, int j) { *to.at(i, j) = x; });
}

/* What is below the diagonal; the rest stays as it is. */
template <class T> __device__ void copy_vectors(const matrix_view<T> &from, const matrix_view<T> &to) {
  for_each(from, [&](const T &x, int i, int j) {
    if (i > j) *to.at(i, j) = x;
  });
}

/* The largest magnitude() of the thread's elements, and of those below the diagonal. */
template <class T> __device__ uint32_t matrix_magnitude(const matrix_view<T> &a) {
  uint32_t u = 0;
  for_each(a, [&](const T &x, int, int) { u = greater(u, magnitude(x)); });
  return u;
}
template <class T> __device__ uint32_t vectors_magnitude(const matrix_view<T> &a) {
  uint32_t u = 0;
  for_each(a, [&](const T &x, int i, int j) {
    if (i > j) u = greater(u, magnitude(x));
  });
  return u;
}

} // namespace bqr

#endif
