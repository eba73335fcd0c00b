/* SPDX-License-Identifier: BSD-3-Clause */
/* From lane_rows.cuh's T to lane_pairs.cuh, and from T's vectors to those of the matrix: N lanes for one of
 * up to N rows, which lies in the last of these, from row `first` on. */
#ifndef BQR_KERNELS_COMMON_EIGEN_LANE_VECTORS_CUH
#define BQR_KERNELS_COMMON_EIGEN_LANE_VECTORS_CUH

#include "common/panel/exponents.cuh"
#include "lane_pairs.cuh"
#include "lane_rows.cuh"

namespace bqr {

/* T to double precision, times a power of two so that its norm is at most 1. Returns the exponent of what
 * undoes that; if T = 0, of what leaves nothing of roundings. */
template <class T, int N>
__device__ __forceinline__ int split_tridiagonal(const reduced_rows<T, N> &from, tridiagonal_pairs<N> &to,
                                                 int first) {
  const int lane = lane_id() & (N - 1);
  const bool mine = lane >= first;
  const double d = mine ? static_cast<double>(from.d[lane]) : 0,
               before = mine && lane > first ? static_cast<double>(from.e[lane - 1]) : 0,
               after = mine && lane < N - 1 ? static_cast<double>(from.e[lane]) : 0;
  const uint32_t u = group_max<N>(magnitude(fabs(d) + fabs(before) + fabs(after)));
  const int exponent = u ? exponent_to<double>(u, -1) : 0;
  const double e = times_power(before, exponent);
  to.rows[lane] = {mine ? times_power(d, exponent) : 2.0, e * e};
  to.e[lane] = times_power(after, exponent);
  warp_sync();
  return u ? -exponent : -4096;
}

/* column := H(k) column, the lane's own. */
template <class T, int N>
__device__ __forceinline__ void apply_reflector(const reduced_rows<T, N> &reduced, int k, T (&column)[N]) {
  const T *v = reduced.vectors + k * N;
  constexpr int chunk = 8;
  T dot[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
#pragma unroll
  for (int c = 0; c < N; c += chunk)
    if (k < c + chunk - 1) {
#pragma unroll
      for (int i = c; i < c + chunk; i++) dot[i % 4] = cmadd(v[i], column[i], dot[i % 4]);
    }
  const T factor = -(reduced.tau[k] * ((dot[0] + dot[1]) + (dot[2] + dot[3])));
#pragma unroll
  for (int c = 0; c < N; c += chunk)
    if (k < c + chunk - 1) {
#pragma unroll
      for (int i = c; i < c + chunk; i++) column[i] = madd(factor, v[i], column[i]);
    }
}

} // namespace bqr

#endif
