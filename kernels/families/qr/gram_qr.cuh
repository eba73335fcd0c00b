/* SPDX-License-Identifier: BSD-3-Clause */
/* Thin Q and R of a member of up to 32 columns from its Gram matrix, where that is as good as reflectors:
 * G = A^H A = R^H R, Q = A R^-1. One sum over all rows, one elimination by one warp, one product.
 *
 * With columns of norm 1, entry (i, j) of I - Q^H Q is at most the rounding of G times t_i t_j, where t_j is
 * the sum of |R^-1| over column j: 1 for orthogonal columns. Where some t_j^2 is too large, or entries lie
 * outside the range of columns (common/panel/columns.cuh), nothing is written, and the answer is no.
 *
 * The elimination makes G = L D L^H, in place: what is left of a column of G stands below row k, and the same
 * column of L^-H up to it. */
#ifndef BQR_KERNELS_FAMILIES_QR_GRAM_QR_CUH
#define BQR_KERNELS_FAMILIES_QR_GRAM_QR_CUH

#include "common/simt/block.cuh"
#include "common/panel/fragment_panel.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

constexpr int most_gram_columns = 32;

/* By a block of W warps, 32 R rows to each. */
template <class T, int R, int W> class gram_qr {
  static constexpr int N = panel_width, groups = most_gram_columns / N;
  /* Of a lane: blocks (i, j) and (i, j + 1) of G for even j and i <= j + 1. */
  static constexpr int sums = 24;
  static constexpr int threads = W * warp_lanes;
  using real = real_t<T>;
  using columns = fragment<T, R, W>;

  struct alignas(16) unit {
    T v[16 / sizeof(T)];
  };
  static constexpr int each = 16 / sizeof(T), column_units = most_gram_columns / each;

  struct storage {
    union {
      unit units[column_units];
      T entries[most_gram_columns];
    } pivot[2];                                             /* column, used in turn */
    real scale[most_gram_columns], norm[most_gram_columns]; /* of columns of A: 1 / norm, norm */
    real root[most_gram_columns];                           /* 1 / sqrt(D) */
    alignas(
        16) T g[most_gram_columns + 1][most_gram_columns + 1]; /* G, then D L^H above R^-1: see inverse() */
    bool good;
  };

public:
  static size_t smem(int m) {
    const size_t tiles = static_cast<size_t>(groups * N * N * W) * units(m), parts = sums * threads;
    return sizeof(storage) + sizeof(T) * (tiles > parts ? tiles : parts);
  }

  __device__ __forceinline__ gram_qr(void *shared, int m, int n)
      : s(*static_cast<storage *>(shared)), data_(reinterpret_cast<T *>(&s + 1)), m_(m), n_(n),
        warp_(W == 1 ? 0 : broadcast(warp_id(), 0)) {}

  /* a, q: m x n, a with rows rsa elements apart; r: n x n. Whether Q and R were made. */
  __device__ __forceinline__ bool run(const T *a, int64_t rsa, int64_t lda, T *q, int64_t ldq, T *r,
                                      int64_t ldr) {
    if (!sum_products(a, rsa, lda)) return false;
    if (warp_ == 0) eliminate();
    block_sync();
    if (!s.good) return false;
    store_r(r, ldr);
    const bool packs = columns::packs(q, ldq, m_);
#pragma unroll 1
    for (int j = 0; N * j < n_; j += 2) {
      columns y[2];
      divide(y, j);
#pragma unroll
      for (int i = 0; i < 2; i++) y[i].store(warp_, q + N * (j + i) * ldq, ldq, m_, n_ - N * (j + i), packs);
    }
    return true;
  }

private:
  /* Of a warp and 8 columns, in twos. */
  BQR_INLINE static int units(int m) { return ((m - 1) / (2 * N * W) + 1) * 2; }
  __device__ __forceinline__ T *tiles(int i) const { return data_ + N * N * units(m_) * (i * W + warp_); }
  /* R^-1(i, j), i <= j */
  __device__ __forceinline__ T &inverse(int i, int j) const { return s.g[j + 1][i]; }

  template <class F> __device__ __forceinline__ void each_active(F &&f) const {
#pragma unroll
    for (int u = 0; u < columns::units; u += 2)
      if (columns::has_rows(warp_, u, m_)) {
        f(u);
        f(u + 1);
      }
  }

  /* G; A is kept in this warp's tiles. Whether A is in range. */
  __device__ __forceinline__ bool sum_products(const T *a, int64_t rsa, int64_t lda) {
    columns x[groups];
    const bool packs = rsa == 1 && columns::packs(a, lda, m_);
    bool outside = false;
#pragma unroll
    for (int i = 0; i < groups; i++) x[i].load(warp_, a + N * i * lda, lda, m_, n_ - N * i, packs, rsa);
#pragma unroll
    for (int i = 0; i < groups; i++) x[i].each([&](T &y) { outside |= out_of_range(y); });
    T *part = data_ + sums * warp_lanes * warp_ + lane_id();
#pragma unroll
    for (int j = 0; j < groups; j += 2) {
      T y[groups][4] = {};
      each_active([&](int u) {
        operand<T> v[4];
#pragma unroll
        for (int i = 0; i < 4; i++) v[i] = split(x[j + i / 2].x[u][i % 2]);
#pragma unroll
        for (int i = 0; i < j + 2; i++)
          multiply_add(y[i], v, {conj(split(x[i].x[u][0])), conj(split(x[i].x[u][1]))});
      });
#pragma unroll
      for (int i = 0; i < j + 2; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) part[warp_lanes * (4 * (j + i) + e)] = y[i][e];
    }
    if (block_any(outside)) return false;
    for (int e = thread_id(); e < sums * warp_lanes; e += threads) add_up(e);
    block_sync();
#pragma unroll
    for (int i = 0; i < groups; i++) panel_reflectors<T, R, W>(tiles(i)).set(x[i], warp_, m_);
    return true;
  }

  /* Sum e of a warp over all warps. */
  __device__ __forceinline__ void add_up(int e) const {
    T y = data_[e];
#pragma unroll
    for (int w = 1; w < W; w++) y = y + data_[sums * warp_lanes * w + e];
    const int block = e / (4 * warp_lanes), j = block < 2 ? 0 : 2, lane = e % warp_lanes;
    const int row = N * (block - j) + 2 * (lane % 4) + e / warp_lanes % 2,
              col = N * (j + e / (2 * warp_lanes) % 2) + lane / 4;
    if (row > col) return;
    s.g[row][col] = y;
    s.g[col][row] = conj(y);
  }

  /* By one warp, a lane for a column. */
  __device__ __forceinline__ void eliminate() const {
    const int g = lane_id();
    const bool in = g < n_;
    const real norm2 = real_part(s.g[g][g]);
    bool good = !in || norm2 >= column_range<real>::tail;
    const real scale = in && good ? fast_rsqrt(norm2) : 1;
    real diagonal = in ? norm2 * scale * scale : 1; /* what is left of it */
    s.scale[g] = scale;
    s.norm[g] = norm2 * scale;
    warp_sync();
    T x[most_gram_columns];
#pragma unroll
    for (int i = 0; i < most_gram_columns; i++) x[i] = scaled(s.g[i][g], scale * s.scale[i]);
#pragma unroll 1
    for (int k = 0; k < n_; k++) {
      auto &pivot = s.pivot[k & 1];
      if (g == k) {
#pragma unroll
        for (int i = 0; i < column_units; i++) {
          unit y;
#pragma unroll
          for (int e = 0; e < each; e++) y.v[e] = x[each * i + e];
          pivot.units[i] = y;
        }
        pivot.entries[k] = make<T>(diagonal + 1); /* makes row k that of L^-H */
      }
      warp_sync();
      const real d = broadcast(diagonal, k), rd = fast_recip(d);
      const T own = g > k ? conj(pivot.entries[g]) : zero<T>(), factor = scaled(own, -rd);
      if (g >= k) s.g[k][g] = g == k ? make<T>(d) : own;
      diagonal = fused(-abs2(own), rd, diagonal);
#pragma unroll
      for (int i = 0; i < column_units; i++) {
        const unit y = pivot.units[i];
#pragma unroll
        for (int e = 0; e < each; e++) x[each * i + e] = madd(y.v[e], factor, x[each * i + e]);
      }
    }
    warp_sync();
    const real root = fast_rsqrt(diagonal);
    s.root[g] = root;
    real size = 1;
#pragma unroll
    for (int i = 0; i < most_gram_columns; i++)
      if (i <= g) {
        const T y = i < g ? x[i] : one<T>();
        if (i < g) size += fabs(real_part(y)) + fabs(imag_part(y));
        inverse(i, g) = in ? scaled(y, root * s.scale[i]) : zero<T>();
      }
    good = good && size * size <= most_loss<real> * diagonal;
    good = !group_any(!good);
    if (g == 0) s.good = good;
  }

  __device__ __forceinline__ void store_r(T *r, int64_t ldr) const {
    for (int e = thread_id(); e < most_gram_columns * n_; e += threads) {
      const int i = e % most_gram_columns, j = e / most_gram_columns;
      if (i < n_) r[i + j * ldr] = i > j ? zero<T>() : scaled(s.g[i][j], s.root[i] * s.norm[j]);
    }
  }

  /* Columns from 8 j on of A R^-1, j even. */
  __device__ __forceinline__ void divide(columns (&y)[2], int j) const {
    const int g = columns::column(), q = columns::lane();
#pragma unroll
    for (int i = 0; i < 2; i++) y[i].each([](T &z) { z = zero<T>(); });
#pragma unroll 1
    for (int i = 0; i < j + 2; i++) {
      operand<T> a[4];
#pragma unroll
      for (int e = 0; e < 4; e++) {
        const int row = N * i + 2 * q + e % 2, col = N * (j + e / 2) + g;
        a[e] = split(row <= col ? inverse(row, col) : zero<T>());
      }
      const T *x = tiles(i);
      each_active([&](int u) {
        T v[2], c[4];
        read_two(v, x + N * N * u + tile_place(g, 2 * q));
#pragma unroll
        for (int e = 0; e < 4; e++) c[e] = y[e / 2].x[u][e % 2];
        multiply_add(c, a, {split(v[0]), split(v[1])});
#pragma unroll
        for (int e = 0; e < 4; e++) y[e / 2].x[u][e % 2] = c[e];
      });
    }
  }

  storage &s;
  T *data_;
  int m_, n_, warp_;
};

} // namespace bqr

#endif
