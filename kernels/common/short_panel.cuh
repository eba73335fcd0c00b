/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of up to 32 rows and columns, V, R and T by one warp, which waits for no other: a lane has a column
 * in registers. Reflectors are made one after the other. As each is applied, rows move up by one: the pivot's
 * row is always the first one, and a row that leaves is finished. */
#ifndef BATCHQR_KERNELS_COMMON_SHORT_PANEL_CUH
#define BATCHQR_KERNELS_COMMON_SHORT_PANEL_CUH

#include "columns.cuh"
#include "member.cuh"
#include "panel_rows.cuh"
#include "tile.cuh"

namespace bqr {

template <class T> class short_panel {
  static constexpr int N = 32, step_rows = 8;

public:
  struct storage {
    pack<T> pivot[2][N / pack<T>::size];
    panel_factors::matrix<N> a, z, t; /* A, its finished rows; V^H V left of its diagonal, tau on it; T */
  };

  __device__ __forceinline__ explicit short_panel(storage &s) : s(s), lane_(lane_id()) {}

  /* A is rows x columns. Returns info, in all lanes. t: NULL, or T without gaps. */
  __device__ __forceinline__ int run(T *a, int64_t lda, int rows, int columns, T *tau, T *t) {
#pragma unroll 8
    for (int j = 0; j < N; j++) s.a(lane_, j) = lane_ < rows && j < columns ? a[lane_ + j * lda] : zero<T>();
    warp_sync();
    uint32_t u = 0;
#pragma unroll
    for (int i = 0; i < N; i++) {
      x_[i] = static_cast<T>(s.a(i, lane_));
      u = greater(u, magnitude(x_[i]));
    }
    const int exponent = column_exponent<T>(u);
    if (exponent != 0)
#pragma unroll
      for (int i = 0; i < N; i++) x_[i] = scaled(x_[i], exponent_scale<T>(exponent));
    back_ = exponent_scale<T>(-exponent);
    static_for<N / step_rows>([&](auto number) {
      constexpr int first = decltype(number)::value * step_rows;
#pragma unroll 1
      for (int k = first; k < least(rows, first + step_rows); k++) step<N - first>(k);
    });
    warp_sync();
#pragma unroll 8
    for (int j = 0; j < N; j++)
      if (lane_ < rows && j < columns) a[lane_ + j * lda] = static_cast<T>(s.a(lane_, j));
    const int reflectors = least(rows, columns);
    if (lane_ < reflectors) tau[lane_] = tau_;
    if (t) store_t(t, reflectors);
    return group_any(!magnitude_finite<T>(u)) ? BATCHQR_INFO_NONFINITE : 0;
  }

private:
  /* Reflector k, of which no more than ROWS rows are left. */
  template <int ROWS> __device__ __forceinline__ void step(int k) {
    T *const pivot = reinterpret_cast<T *>(s.pivot[k % 2]);
    if (lane_ == k) {
      T own[ROWS];
#pragma unroll
      for (int i = 0; i < ROWS; i++) own[i] = x_[i];
      column_write<0>(pivot, own);
    }
    warp_sync();
    T p[ROWS], part[4] = {};
    column_read<0>(p, pivot);
#pragma unroll
    for (int i = 1; i < ROWS; i++) part[i % 4] = madd(p[i], x_[i], part[i % 4]);
    const T sum = (part[0] + part[1]) + (part[2] + part[3]);
    const column_reflector<T> h = larfg_in_range(p[0], broadcast(sum, k));
    const T dot = madd(h.scale, sum, x_[0]), w = lane_ > k ? h.tau * dot : 0, factor = -(h.scale * w);
    s.a(k, lane_) = lane_ < k ? scale_ * x_[0] : scaled(lane_ == k ? h.beta : x_[0] - w, back_);
    s.z(k, lane_) = lane_ < k ? scale_ * dot : h.tau;
    if (lane_ == k) scale_ = h.scale, tau_ = h.tau;
    if (ROWS == N) {
      asm volatile("" ::: "memory"); /* read again, or there are not enough registers */
      column_read<0>(p, pivot);
    }
#pragma unroll
    for (int i = 1; i < ROWS; i++) x_[i - 1] = madd(factor, p[i], x_[i]);
    x_[ROWS - 1] = 0;
  }

  /* A lane has a row. */
  __device__ __forceinline__ void store_t(T *t, int reflectors) {
#pragma unroll 1
    for (int k = 0; k < N; k++) {
      double sum = 0;
#pragma unroll 4
      for (int l = 0; l < k; l++)
        if (k < reflectors && l >= lane_) sum = fused(s.t(lane_, l), s.z(k, l), sum);
      const double tau = k < reflectors ? s.z(k, k) : 0, y = lane_ < k ? -tau * sum : lane_ == k ? tau : 0;
      s.t(lane_, k) = y;
      t[lane_ + k * N] = static_cast<T>(y);
    }
  }

  storage &s;
  const int lane_;
  T x_[N], scale_ = 0, tau_ = 0, back_ = 1;
};

} // namespace bqr

#endif
