/* SPDX-License-Identifier: BSD-3-Clause */
/* Of A^H A and A^H B what a warp adds up at a time, by matrix units for double precision, from 32 rows of the
 * columns in shared memory. */
#ifndef BQR_KERNELS_REFINE_GRAM_JOB_CUH
#define BQR_KERNELS_REFINE_GRAM_JOB_CUH

#include "common/ptx/cp_async.cuh"
#include "common/ptx/mma.cuh"
#include "common/simt/warp.cuh"

namespace bqr {

constexpr int slab = 32, slab_ld = slab + 4; /* the leading dimension keeps fragments free of conflicts */

/* Whether columns are aligned to 16 bytes. */
template <class T> __device__ __forceinline__ bool is_packed(const T *a, int64_t lda) {
  return (reinterpret_cast<uint64_t>(a) | static_cast<uint64_t>(lda) * sizeof(T)) % 16 == 0;
}

/* Starts copying 32 rows of up to N columns, from row `first` on, by P warps; zeros behind the last row and
 * column. packs: see is_packed(). */
template <int N, int P, class T>
__device__ __forceinline__ void fetch_slab(T *to, const T *a, int64_t lda, bool packs, int first, int rows,
                                           int cols) {
  constexpr int unit = 16 / sizeof(T), lanes = slab / unit, at_once = warp_lanes / lanes; /* of a column */
  static_assert(N % (P * at_once) == 0, "each warp copies as many columns");
  if (packs) {
    const int place = lane_id() % lanes * unit, left = rows - (first + place);
    const int bytes = left >= unit ? 16 : left > 0 ? left * static_cast<int>(sizeof(T)) : 0;
#pragma unroll
    for (int i = 0; i < N / (P * at_once); i++) {
      const int col = (i * P + warp_id()) * at_once + lane_id() / lanes;
      const bool there = bytes > 0 && col < cols;
      copy_async_part<16>(to + col * slab_ld + place, there ? a + first + place + col * lda : a,
                          there ? bytes : 0);
    }
  } else {
    const int row = first + lane_id();
#pragma unroll 4
    for (int col = warp_id(); col < N; col += P) {
      const bool there = row < rows && col < cols;
      copy_async_if<sizeof(T)>(there, to + col * slab_ld + lane_id(), there ? a + row + col * lda : a);
    }
  }
}

/* This lane's part of 8 rows, from row `k` on, of 16 columns from `col` on. */
template <class T>
__device__ __forceinline__ void load_fragment(double (&a)[4], const T *columns, int col, int k) {
  const T *own = columns + (col + lane_id() / 4) * slab_ld + k + lane_id() % 4;
#pragma unroll
  for (int e = 0; e < 4; e++) a[e] = static_cast<double>(own[e / 2 * 8 * slab_ld + e % 2 * 4]);
}
/* Of 8 columns. */
template <class T>
__device__ __forceinline__ void load_fragment(double (&b)[2], const T *columns, int col, int k) {
  const T *own = columns + (col + lane_id() / 4) * slab_ld + k + lane_id() % 4;
#pragma unroll
  for (int e = 0; e < 2; e++) b[e] = static_cast<double>(own[e * 4]);
}
__device__ __forceinline__ void multiply_fragments(double (&c)[4], const double (&a)[4],
                                                   const double (&b)[2]) {
  multiply_add(c[0], c[1], c[2], c[3], a[0], a[1], a[2], a[3], b[0], b[1]);
}

/* c += left^H right of 32 columns each; of columns with themselves without what is below the diagonal. */
template <class T>
__device__ __forceinline__ void add_job(double (&c)[8][4], const T *left, const T *right, bool own) {
#pragma unroll
  for (int k = 0; k < slab; k += 8) {
    double a[2][4], b[4][2];
#pragma unroll
    for (int i = 0; i < 2; i++) load_fragment(a[i], left, 16 * i, k);
#pragma unroll
    for (int j = 0; j < 4; j++) load_fragment(b[j], right, 8 * j, k);
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
      for (int j = 0; j < 4; j++)
        if (i == 0 || j >= 2 || !own) multiply_fragments(c[4 * i + j], a[i], b[j]);
  }
}

/* c += left^H right of N columns and up to 8 right-hand sides. */
template <int N, int UNROLL, class T>
__device__ __forceinline__ void add_right(double (&c)[8][4], const T *left, const T *right) {
#pragma unroll UNROLL
  for (int k = 0; k < slab; k += 8) {
    double b[2];
    load_fragment(b, right, 0, k);
#pragma unroll
    for (int i = 0; i < N / 16; i++) {
      double a[4];
      load_fragment(a, left, 16 * i, k);
      multiply_fragments(c[i], a, b);
    }
  }
}

} // namespace bqr

#endif
