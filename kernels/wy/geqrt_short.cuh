/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of up to 32 rows and columns, V, R and T by one warp, which waits for no other: a tiny member. */
#ifndef BQR_KERNELS_WY_GEQRT_SHORT_CUH
#define BQR_KERNELS_WY_GEQRT_SHORT_CUH

#include "common/panel/panel_rows.cuh"
#include "common/panel/tiny.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cp_async.cuh"

namespace bqr {

template <class T> class short_panel {
  using X = wide<T>;
  static constexpr int N = 32, lanes_of_column = 4;
  using tile = tiny_tile<T, N, N, warp_lanes, lanes_of_column>;
  using qr = tiny_qr<T, N, N, warp_lanes, lanes_of_column>;
  static_assert(tile::norm_at == N, "vectors fill their columns");

public:
  struct storage {
    alignas(16) T a[tile::smem / sizeof(T)];
    alignas(16) T products[N]; /* V^H v of a step */
    panel_factors::matrix<N, X> t;
  };

  __device__ __forceinline__ explicit short_panel(storage &s) : s(s), qr_(s.a) {}

  /* A is rows x columns. Returns info, in all lanes. t: NULL, or T without gaps. */
  __device__ __forceinline__ int run(T *a, int64_t lda, int rows, int columns, T *tau, T *t, bool positive) {
    const tile_walk<T, warp_lanes, tile::ld> walk(rows, tile_packs(a, lda, rows), lane_id());
    auto each = [&](auto &&f) { walk.template each<1, 0>(s.a, a, lda, columns, 1, 0, f); };
    each([](auto *to, auto *from, int, int) { copy_async<sizeof *to>(to, from); });
    copy_async_wait();
    warp_sync();
    qr_.read(rows, columns);
    const int reflectors = least(rows, columns);
    const uint32_t top = qr_.factor(columns, reflectors, positive);
    warp_sync();
    qr_.write();
    warp_sync();
    each([](auto *from, auto *to, int, int) { *to = *from; });
    qr_.store_tau(tau, reflectors);
    if (t) store_t(t, reflectors);
    return group_any(!magnitude_finite<T>(top)) ? BATCHQR_INFO_NONFINITE : 0;
  }

private:
  /* A lane has a row, and a vector of V. */
  __device__ __forceinline__ void store_t(T *t, int reflectors) {
    const int lane = lane_id();
    warp_sync();
    qr_.write_vectors();
    warp_sync();
    T v[N], p[N];
    column_read<0>(v, s.a + lane * tile::ld);
#pragma unroll 1
    for (int k = 0; k < N; k++) {
      column_read<0>(p, s.a + k * tile::ld);
      T part[4] = {};
#pragma unroll
      for (int i = 0; i < N; i++) part[i % 4] = cmadd(v[i], p[i], part[i % 4]);
      s.products[lane] = (part[0] + part[1]) + (part[2] + part[3]);
      warp_sync();
      X sum = zero<X>();
#pragma unroll 4
      for (int l = 0; l < k; l++)
        if (l >= lane) sum = madd(s.t(lane, l), converted<X>(s.products[l]), sum);
      const X tau = converted<X>(k < reflectors ? qr_.tau(k) : zero<T>());
      const X y = lane < k ? -tau * sum : lane == k ? tau : zero<X>();
      s.t(lane, k) = y;
      t[lane + k * N] = converted<T>(y);
      warp_sync();
    }
  }

  storage &s;
  qr qr_;
};

} // namespace bqr

#endif
