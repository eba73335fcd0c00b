/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvectors in registers: reflectors applied to columns, and the sign. */
#ifndef BQR_KERNELS_COMMON_EIGEN_VECTORS_CUH
#define BQR_KERNELS_COMMON_EIGEN_VECTORS_CUH

#include "common/panel/jacobi.cuh"

namespace bqr {

/* What makes this entry real and positive, the first of the largest of its column, of squared magnitude most.
 */
template <class T> BQR_INLINE sign<T> sign_of(T entry, real_t<T> most, int row) {
  if constexpr (is_complex<T>)
    return most > 0 ? sign<T>{scaled(conj(entry), real_t<T>(1) / sqrt(most)), row} : sign<T>{one<T>(), -1};
  else
    return {entry < 0 ? T(-1) : T(1), row};
}

/* x := H x with v's entries below row k in memory; x: a column, in the registers of a lane. */
template <int ROWS, class T>
__device__ __forceinline__ void apply_to_column(T (&x)[ROWS], const T *v, T tau, int k, int rows) {
  T dot = zero<T>();
#pragma unroll
  for (int i = 1; i < ROWS; i++)
    if (i > k && i < rows) dot = cmadd(v[i], x[i], dot);
  const T factor = -(tau * dot);
#pragma unroll
  for (int i = 1; i < ROWS; i++)
    if (i > k && i < rows) x[i] = madd(factor, v[i], x[i]);
}

/* COLS columns, of each of which a lane has rows lane, lane + 32 ... */
template <class T, int EACH, int COLS> class warp_columns {
  using R = real_t<T>;
  static constexpr bool held = EACH * sizeof(T) <= 256; /* v in registers, too; else it is read twice */

public:
  /* f(entry, row, column) for all. */
  template <class F> __device__ __forceinline__ void each(F &&f) {
#pragma unroll
    for (int c = 0; c < COLS; c++) {
#pragma unroll
      for (int e = 0; e < EACH; e++) f(x[c][e], e * warp_lanes + lane_id(), c);
    }
  }

  __device__ __forceinline__ void turn() {
#pragma unroll
    for (int c = 0; c < COLS; c++) {
      const sign<T> s = find_sign(c);
#pragma unroll
      for (int e = 0; e < EACH; e++) x[c][e] = s.of(x[c][e], e * warp_lanes + lane_id());
    }
  }

  /* v: of H(k), entries in rows k + 1 on. */
  __device__ __forceinline__ void apply(const T *v, T tau, int k, int rows) {
    T mine[held ? EACH : 1], dot[COLS];
    const auto entry = [&](int e) {
      const int i = e * warp_lanes + lane_id();
      return i > k && i < rows ? v[i] : zero<T>();
    };
    if constexpr (held) {
#pragma unroll
      for (int e = 0; e < EACH; e++) mine[e] = entry(e);
    }
#pragma unroll
    for (int c = 0; c < COLS; c++) dot[c] = zero<T>();
#pragma unroll
    for (int e = 0; e < EACH; e++)
      if ((e + 1) * warp_lanes > k + 1) {
        const T ve = held ? mine[held ? e : 0] : entry(e);
#pragma unroll
        for (int c = 0; c < COLS; c++) dot[c] = cmadd(ve, x[c][e], dot[c]);
      }
    const T total = group_sum_scatter<COLS>(dot);
    T factor[COLS];
#pragma unroll
    for (int c = 0; c < COLS; c++) factor[c] = -(tau * broadcast(total, c * (warp_lanes / COLS)));
#pragma unroll
    for (int e = 0; e < EACH; e++)
      if ((e + 1) * warp_lanes > k + 1) {
        const T ve = held ? mine[held ? e : 0] : entry(e);
#pragma unroll
        for (int c = 0; c < COLS; c++) x[c][e] = madd(factor[c], ve, x[c][e]);
      }
  }

private:
  __device__ __forceinline__ sign<T> find_sign(int c) const {
    R most = 0;
    int at = EACH * warp_lanes;
    T entry = zero<T>();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
      const R here = abs2(x[c][e]);
      if (here > most) {
        most = here;
        at = e * warp_lanes + lane_id();
        entry = x[c][e];
      }
    }
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) {
      const R other = exchange(most, d);
      const int other_at = exchange(at, d);
      const T other_entry = exchange(entry, d);
      if (other > most || (other == most && other_at < at)) {
        most = other;
        at = other_at;
        entry = other_entry;
      }
    }
    return sign_of(entry, most, at);
  }

  T x[COLS][EACH];
};

} // namespace bqr

#endif
