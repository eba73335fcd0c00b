/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of up to 32 columns in shared or global memory (wy/geqrt_slabs.cuh) whose reflectors are made one
 * after the other, as xGEQRT: whatever their columns, nothing is lost to cancellation. Eight columns are in
 * registers at a time, a lane having every fourth row of its warp's slabs of one column; a reflector takes
 * one barrier, and its sums are those of the eight columns. Then matrix units apply the eight to the others.
 * T grows with them: its tiles on the diagonal from the columns' sums, the others from V^H V, which is part
 * of the product with which the eight are applied. */
#ifndef BQR_KERNELS_WY_GEQRT_HOUSEHOLDER_CUH
#define BQR_KERNELS_WY_GEQRT_HOUSEHOLDER_CUH

#include "common/panel/columns.cuh"
#include "common/matrix/member.cuh"
#include "common/panel/panel_factors.cuh"
#include "geqrt_slabs.cuh"
#include "common/simt/tile.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cluster.cuh"

namespace bqr {

/* B blocks of WARPS warps, 4 or 8, share the rows, up to ROWS each. */
template <class T, int B, int ROWS, int WARPS, bool SHARED> class householder_panel {
  using X = wide<T>;
  using R = real_t<T>;
  using slabs_type = panel_slabs<T, SHARED>;
  static constexpr int N = 32, tile = panel_factors::tile, warps = WARPS, last_warp = warps - 1,
                       slab = slabs_type::slab_rows, slabs = ROWS / (slab * warps), quad = 4;
  static constexpr int values = N * tile;                    /* of a product of eight columns with all */
  static constexpr int each = values / (warps * warp_lanes); /* of a thread */

public:
  struct storage {
    panel_factors::matrix<N, X> t; /* T; right of finished columns V^H V T before */
    union {
      pack<T> pivot[slabs * slab / pack<T>::size];
      X part[values];
    } of_warp[warps];
    X w[values], share[B > 1 ? values : 1];
    alignas(16) X z[tile][tile]; /* V^H V above its diagonal, tau on it */
    pack<T> sums[2][tile][B][warps / pack<T>::size];
    T heads[2][tile];
    uint32_t magnitudes[B][N];
  };

  /* positive: R's diagonal is not negative. */
  __device__ __forceinline__ householder_panel(storage &s, const slabs_type &x, int columns, int reflectors,
                                               bool positive)
      : s(s), x_(x), columns_(columns), reflectors_(reflectors), positive_(positive),
        rank_(B > 1 ? cluster_rank() : 0), g(lane_id() / 4), q(lane_id() % 4) {}

  /* V below R in place of the panel, and tau. Returns info, in all threads; a barrier must follow. */
  __device__ __forceinline__ int run(T *tau) const {
    for (int i = warp_id(); i < N; i += warps) s.t(i, lane_id()) = zero<X>();
    const int info = bring_into_range();
#pragma unroll 1
    for (int at = 0; at < reflectors_; at += tile) {
      factor(at);
      if (warp_id() == last_warp) make_t(at, tau);
      apply(at);
    }
    block_sync();
    bring_back();
    return info;
  }

  /* T, after that and a barrier. */
  __device__ __forceinline__ void store_t(T *t) const {
    if (warp_id() != last_warp || rank_ > 0) return;
#pragma unroll 1
    for (int at = tile; at < N; at += tile) {
      X c[2][4] = {}; /* T's columns from those before: -T V^H V T */
#pragma unroll 1
      for (int l = 0; l < at; l += tile)
#pragma unroll
        for (int I = 0; I < 2; I++) {
          X a[4];
#pragma unroll
          for (int e = 0; e < 4; e++) a[e] = -s.t(16 * I + g + 8 * (e / 2), l + 2 * q + e % 2);
          panel_factors::add_product(c[I], a, s.t(l + 2 * q, at + g), s.t(l + 2 * q + 1, at + g));
        }
      warp_sync();
#pragma unroll
      for (int e = 0; e < 8; e++) {
        const int i = 16 * (e / 4) + g + 8 * (e / 2 % 2);
        if (i < at) s.t(i, at + 2 * q + e % 2) = c[e / 4][e % 4];
      }
      warp_sync();
    }
#pragma unroll 4
    for (int j = 0; j < N; j++) t[lane_id() + j * N] = converted<T>(s.t(lane_id(), j));
  }

private:
  /* Returns info. */
  __device__ __forceinline__ int bring_into_range() const {
    constexpr int unit = pack<T>::size;
    for (int j = warp_id(); j < columns_; j += warps) {
      uint32_t u = 0;
#pragma unroll 4
      for (int i = unit * lane_id(); i < x_.rows; i += unit * warp_lanes) {
        T y[unit];
        x_.read(y, i, j);
#pragma unroll
        for (int k = 0; k < unit; k++) u = greater(u, magnitude(y[k]));
      }
      u = group_max(u);
      if (lane_id() < B) *there(&s.magnitudes[rank_][j], lane_id()) = u;
    }
    sync();
    const uint32_t mine = lane_id() < columns_ ? magnitude_of(lane_id()) : column_range<R>::lo;
    if (group_any(column_exponent<T>(mine) != 0)) {
      for (int j = warp_id(); j < columns_; j += warps) {
        const R scale = exponent_scale<R>(column_exponent<T>(magnitude_of(j)));
        for (int i = lane_id(); i < x_.rows; i += warp_lanes) *x_.at(i, j) = scaled(*x_.at(i, j), scale);
      }
      block_sync();
    }
    return group_any(!magnitude_finite<T>(mine)) ? BATCHQR_INFO_NONFINITE : 0;
  }
  /* R. */
  __device__ __forceinline__ void bring_back() const {
    for (int j = warp_id(); j < columns_ && rank_ == 0; j += warps) {
      const int i = lane_id(), exponent = column_exponent<T>(magnitude_of(j));
      if (exponent != 0 && i <= j && i < x_.rows)
        *x_.at(i, j) = scaled(*x_.at(i, j), exponent_scale<R>(-exponent));
    }
  }
  /* The largest of a column. */
  __device__ __forceinline__ uint32_t magnitude_of(int j) const {
    uint32_t u = 0;
    for (int b = 0; b < B; b++) u = greater(u, s.magnitudes[b][j]);
    return u;
  }
  /* What is here at `shared`, in block b. */
  template <class U> __device__ __forceinline__ static U *there(U *shared, int b) {
    return B > 1 ? cluster_shared(shared, b) : shared;
  }

  __device__ __forceinline__ static void sync() { B > 1 ? cluster_sync() : block_sync(); }

  /* The reflectors of columns at .., with V below R in their place. */
  __device__ __forceinline__ void factor(int at) const {
    const int top = slab * warp_id(), own = quad * q;
    /* the warp's slabs; the rows of the first one from that of the lane's first entry to row `at` */
    const int count = (x_.rows - top + slab * warps - 1) / (slab * warps), above = at - x_.first - top - own;
    T x[slabs][quad], my_scale = zero<T>();
#pragma unroll
    for (int u = 0; u < slabs; u++) {
      if (u < count) x_.read(x[u], top + slab * warps * u + own, at + g);
#pragma unroll
      for (int r = 0; r < quad; r++)
        if (u >= count || (u == 0 && r < above)) x[u][r] = zero<T>();
    }
    T *const pivots = reinterpret_cast<T *>(s.of_warp[warp_id()].pivot) + own;
#pragma unroll 1
    for (int k = 0; k < tile; k++) {
      const int diagonal = above + k; /* in x[0] */
      const bool has_row = diagonal >= 0 && diagonal < quad;
      T *const heads = s.heads[k % 2];
      auto &sums = s.sums[k % 2];
      if (g == k) {
#pragma unroll
        for (int u = 0; u < slabs; u++) {
          T below[quad];
#pragma unroll
          for (int r = 0; r < quad; r++) below[r] = u > 0 || r > diagonal ? x[u][r] : zero<T>();
          column_write<0>(pivots + slab * u, below);
        }
      }
      if (has_row) {
        const T y = diagonal < 2 ? diagonal == 0 ? x[0][0] : x[0][1] : diagonal == 2 ? x[0][2] : x[0][3];
#pragma unroll
        for (int b = 0; b < B; b++) *there(heads + g, b) = y;
      }
      warp_sync();
      T pivot[slabs][quad], part[quad] = {};
#pragma unroll
      for (int u = 0; u < slabs; u++) {
        column_read<0>(pivot[u], pivots + slab * u);
#pragma unroll
        for (int r = 0; r < quad; r++) part[r] = cmadd(pivot[u][r], x[u][r], part[r]);
      }
      T sum = (part[0] + part[1]) + (part[2] + part[3]);
      sum = sum + exchange(sum, 1);
      sum = sum + exchange(sum, 2);
#pragma unroll
      for (int b = 0; b < B; b += quad)
        if (b + q < B) *there(reinterpret_cast<T *>(sums[g]) + warps * rank_ + warp_id(), b + q) = sum;
      sync();
      const T total = add(sums[g]), head = heads[g];
      const column_reflector<T> h = larfg_in_range(heads[k], real_part(add(sums[k])), positive_);
      const T dot = cmadd(h.scale, total, head), w = g > k ? conj(h.tau) * dot : zero<T>(),
              factor = -(h.scale * w);
      if (g == k) my_scale = h.scale;
#pragma unroll
      for (int u = 0; u < slabs; u++) {
        if (slabs > 4) column_read<0>(pivot[u], pivots + slab * u); /* there are no registers to keep it */
#pragma unroll
        for (int r = 0; r < quad; r++) x[u][r] = madd(factor, pivot[u][r], x[u][r]);
      }
      if (slabs > 4) warp_sync(); /* before the next pivot is written */
      if (has_row && g >= k) x_.write(g == k ? make<T>(h.beta) : head - w, at + k, at + g);
      if (warp_id() == last_warp && q == 0 && g <= k)
        s.z[g][k] = converted<X>(g == k ? h.tau : conj(my_scale * dot));
    }
#pragma unroll
    for (int u = 0; u < slabs; u++)
      if (u < count)
#pragma unroll
        for (int r = 0; r < quad; r++)
          if (u > 0 || r > above + g) x_.write(my_scale * x[u][r], top + slab * warps * u + own + r, at + g);
    warp_sync();
  }
  /* Of the warps' sums. */
  template <class U> __device__ __forceinline__ static U sum_of(const U (&y)[warps]) {
    U sum = (y[0] + y[1]) + (y[2] + y[3]);
    if constexpr (warps == 8) sum = sum + ((y[4] + y[5]) + (y[6] + y[7]));
    return sum;
  }
  __device__ __forceinline__ static T add(const pack<T> (&sums)[B][warps / pack<T>::size]) {
    T total[B];
#pragma unroll
    for (int b = 0; b < B; b++) {
      T y[warps];
      column_read<0>(y, reinterpret_cast<const T *>(sums[b]));
      total[b] = sum_of(y);
    }
#pragma unroll
    for (int b = 1; b < B; b++) total[0] = total[0] + total[b];
    return total[0];
  }

  /* T's tile on the diagonal, and tau, by the warp that wrote z; lanes of column g have row g. */
  __device__ __forceinline__ void make_t(int at, T *tau) const {
    X t[tile] = {};
#pragma unroll
    for (int k = 0; k < tile; k++) {
      X z[tile];
      column_read<0>(z, s.z[k]);
      t[k] = k < g ? zero<X>() : k == g ? z[k] : -(z[k] * t[k]);
#pragma unroll
      for (int l = k + 1; l < tile; l++) t[l] = madd(t[k], z[l], t[l]);
      if (k / 2 == q) s.t(at + g, at + k) = t[k];
    }
    if (q == 0 && rank_ == 0 && at + g < reflectors_) tau[at + g] = converted<T>(s.z[g][g]);
  }

  /* Columns right of these := (I - V T^H V^H) times them. */
  __device__ __forceinline__ void apply(int at) const {
    sum_products(at);
    X y[2][4] = {}; /* of W^H T, W = V^H X: the lane's columns and reflectors of an accumulator */
#pragma unroll
    for (int I = 0; I < 2; I++) {
      X w[4];
#pragma unroll
      for (int e = 0; e < 4; e++) w[e] = s.w[(4 * I + e) * warp_lanes + lane_id()];
      panel_factors::add_product(y[I], w, s.t(at + 2 * q, at + g), s.t(at + 2 * q + 1, at + g));
    }
    if (warp_id() == 0) {
#pragma unroll
      for (int J = 0; J < N / tile - 1; J++)
#pragma unroll
        for (int e = 0; e < 2; e++)
          if (tile * J < at) s.t(tile * J + g, at + 2 * q + e) = y[J / 2][J % 2 * 2 + e];
    }
    x_.each(0, warp_id(), warps, [&](int top) {
      X minus_v[1][4];
      x_.read_rows(minus_v, top, at);
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int above = at + 2 * q + e % 2 - x_.first - top - 2 * g - e / 2;
        minus_v[0][e] = above < 0 ? -minus_v[0][e] : make<X>(above == 0 ? -1 : 0);
      }
#pragma unroll
      for (int J = 1; J < N / tile; J++)
        if (tile * J > at) {
          X x[1][4];
          x_.read_rows(x, top, tile * J);
          panel_factors::add_product(x[0], minus_v[0], conj(y[J / 2][J % 2 * 2]),
                                     conj(y[J / 2][J % 2 * 2 + 1]));
          x_.write_rows(x, top, tile * J);
        }
    });
    warp_sync();
  }
  /* w := X^H V, as accumulators of 16 columns each; after a barrier. */
  __device__ __forceinline__ void sum_products(int at) const {
    X c[2][4] = {};
    x_.each(0, warp_id(), warps, [&](int top) {
      const int above = at + g - x_.first - top - quad * q;
      X v[quad], x[N / tile][quad];
      x_.read_columns(v, top, at);
#pragma unroll
      for (int J = 0; J < N / tile; J++) x_.read_columns(x[J], top, tile * J);
#pragma unroll
      for (int r = 0; r < quad; r++)
        if (r <= above) v[r] = make<X>(r == above);
#pragma unroll
      for (int t = 0; t < quad; t += 2)
#pragma unroll
        for (int I = 0; I < 2; I++)
          panel_factors::add_product(
              c[I],
              {conj(x[2 * I][t]), conj(x[2 * I][t + 1]), conj(x[2 * I + 1][t]), conj(x[2 * I + 1][t + 1])},
              v[t], v[t + 1]);
    });
#pragma unroll
    for (int e = 0; e < 8; e++) s.of_warp[warp_id()].part[e * warp_lanes + lane_id()] = c[e / 4][e % 4];
    block_sync();
    X total[each];
#pragma unroll
    for (int k = 0; k < each; k++) {
      const int i = thread_id() + k * warps * warp_lanes;
      X sum[warps];
#pragma unroll
      for (int w = 0; w < warps; w++) sum[w] = s.of_warp[w].part[i];
      total[k] = sum_of(sum);
      if (B > 1) s.share[i] = total[k];
    }
    if (B > 1) {
      cluster_sync();
#pragma unroll
      for (int k = 0; k < each; k++) {
        total[k] = zero<X>();
#pragma unroll
        for (int b = 0; b < B; b++)
          total[k] += *cluster_shared(s.share + thread_id() + k * warps * warp_lanes, b);
      }
    }
#pragma unroll
    for (int k = 0; k < each; k++) s.w[thread_id() + k * warps * warp_lanes] = total[k];
    block_sync();
  }

  storage &s;
  const slabs_type x_;
  const int columns_, reflectors_;
  const bool positive_;
  const int rank_, g, q;
};

} // namespace bqr

#endif
