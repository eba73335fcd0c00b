/* SPDX-License-Identifier: BSD-3-Clause */
/* Columns in shared memory, for warps that have rows of other columns in registers as held_column does: row r
 * is warp r % W's. */
#ifndef BQR_KERNELS_FAMILIES_GESVD_STRIPS_CUH
#define BQR_KERNELS_FAMILIES_GESVD_STRIPS_CUH

#include "common/panel/held_qr.cuh"

namespace bqr {

/* A warp's rows of a column stand side by side, so that one address and constants lead to all of them: row r
 * at r % W * ROWS + r / W, and zeros in the places of rows that are not there. */
template <class T, int ROWS> struct strips {
  static constexpr int pad =
      16 / static_cast<int>(sizeof(T)); /* columns are aligned, and not all to one bank */
  T *data;
  int warps;

  BQR_INLINE static int ld(int m) { return held_row_warps(m, ROWS) * ROWS + pad; }

  __device__ __forceinline__ strips(T *to, int m) : data(to), warps(held_row_warps(m, ROWS)) {}
  __device__ __forceinline__ int places() const { return warps * ROWS; }
  __device__ __forceinline__ int row(int place) const { return place % ROWS * warps + place / ROWS; }
  __device__ __forceinline__ T *column(int j) const { return data + j * (warps * ROWS + pad); }
  __device__ __forceinline__ const T *part(int j, int warp) const { return column(j) + warp * ROWS; }

  /* conj(v)^T y and y += v w for vectors v that are 0 above row j, v: part() of one. */
  __device__ __forceinline__ T dot(const T (&y)[ROWS], const T *v, int warp, int j) const {
    T sums[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
#pragma unroll
    for (int e = 0; e < ROWS; e += held_group) {
      if (!has_rows(e, warp, j)) continue;
      T z[held_group];
      column_read<0>(z, v + e);
#pragma unroll
      for (int i = 0; i < held_group; i++) sums[i % 4] = cmadd(z[i], y[e + i], sums[i % 4]);
    }
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  __device__ __forceinline__ void add(T (&y)[ROWS], const T *v, const T &w, int warp, int j) const {
#pragma unroll
    for (int e = 0; e < ROWS; e += held_group) {
      if (!has_rows(e, warp, j)) continue;
      T z[held_group];
      column_read<0>(z, v + e);
#pragma unroll
      for (int i = 0; i < held_group; i++) y[e + i] = madd(z[i], w, y[e + i]);
    }
  }

  /* x -= r y. The elements from BASE on are those that stand `moved` places, which is not positive, before
   * theirs, as far as they are from BASE on; the last of them only where it is to be. */
  template <int BASE>
  static __device__ __forceinline__ void subtract(T (&x)[ROWS], const T *r, int moved, bool with_last,
                                                  const T &y) {
#pragma unroll
    for (int k = 0; k < BASE; k += held_group) {
      T z[held_group];
      column_read<0>(z, r + k);
#pragma unroll
      for (int i = 0; i < held_group; i++) x[k + i] = x[k + i] - z[i] * y;
    }
#pragma unroll
    for (int i = 0; i < held_group; i++)
      if (i + moved >= 0 && (i + 1 < held_group || with_last))
        x[BASE + i] = x[BASE + i] - r[BASE + i + moved] * y;
  }

private:
  /* Whether the group of a warp's rows from its e-th on has some from row j on. */
  __device__ __forceinline__ bool has_rows(int e, int warp, int j) const {
    return (e + held_group - 1) * warps + warp >= j;
  }
};

} // namespace bqr

#endif
