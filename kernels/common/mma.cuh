/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors on matrix units.
 *
 * FP64: mma.m8n8k4. Lane l holds A(l / 4, l % 4), B(l % 4, l / 4) and C(l / 4, 2 (l % 4) + {0, 1}). The order
 * of k is free, so that an accumulator serves as the next product's A without any exchange: what lies in
 * column 2 (l % 4) + s there is taken as k number l % 4 of step s. */
#ifndef BATCHQR_KERNELS_COMMON_MMA_CUH
#define BATCHQR_KERNELS_COMMON_MMA_CUH

#include "block.cuh"
#include "tile.cuh"

namespace bqr {

/* c += a b */
__device__ __forceinline__ void mma_f64(double (&c)[2], double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(c[0]), "+d"(c[1])
               : "d"(a), "d"(b));
}

/* C := (I - V T^H V^H) C for 8 reflectors and 8 columns at a time. The rows are dealt in tiles of 8 to P
 * warps, 4 R tiles to a warp; C's tile t is x[t]: lane l has rows 2 (l % 4) + {0, 1} of column l / 4. All
 * products are formed transposed, C^T V, then its product with T, then C^T -= ... V^T. */
template <int R, int P> class mma_reflector {
  static constexpr int N = 8, rows = 32 * R * P, ld = rows + N; /* ld: free of bank conflicts */

public:
  static constexpr int tiles = 4 * R;
  struct storage {
    double v_cols[N * ld], v_rows[rows * N], t[N * N];
    double w[2][P][2 * warp_lanes];
  };

  __device__ __forceinline__ explicit mma_reflector(storage &s) : s_(s) {}

  /* Row r of V, and row i of T by one lane each. Barriers are the caller's. */
  __device__ __forceinline__ void set_row(int r, const double (&v)[N]) const {
#pragma unroll
    for (int j = 0; j < N; j++) s_.v_cols[j * ld + r] = v[j];
    column_write<0>(s_.v_rows + r * N, v);
  }
  __device__ __forceinline__ void set_t(int i, const double (&t)[N]) const {
    column_write<0>(s_.t + i * N, t);
  }

  /* The tile number of x[t], and whether there are rows in it. */
  __device__ __forceinline__ static int tile(int t) { return warp_id() + P * t; }

  /* Applies the reflector to x; `used` tiles hold rows. All warps call it together. */
  __device__ __forceinline__ void apply(double (&x)[tiles][2], int used) {
    const int n = lane_id() / 4, q = lane_id() % 4;
    double w[2] = {0, 0}, w2[2] = {0, 0};
#pragma unroll
    for (int t = 0; t < tiles; t++)
      if (tile(t) < used) {
        double v[2];
        column_read<0>(v, s_.v_cols + n * ld + 8 * tile(t) + 2 * q);
        mma_f64(w, x[t][0], v[0]);
        mma_f64(w2, x[t][1], v[1]);
      }
    w[0] += w2[0];
    w[1] += w2[1];
    if (P > 1) {
      double(*part)[2 * warp_lanes] = s_.w[turn_];
      turn_ ^= 1;
      column_write<0>(part[warp_id()] + 2 * lane_id(), w);
      block_sync();
      w[0] = w[1] = 0;
#pragma unroll
      for (int p = 0; p < P; p++) {
        double other[2];
        column_read<0>(other, part[p] + 2 * lane_id());
        w[0] += other[0];
        w[1] += other[1];
      }
    }
    double y[2] = {0, 0};
    mma_f64(y, w[0], s_.t[(2 * q) * N + n]);
    mma_f64(y, w[1], s_.t[(2 * q + 1) * N + n]);
#pragma unroll
    for (int t = 0; t < tiles; t++)
      if (tile(t) < used) {
        double v[2];
        column_read<0>(v, s_.v_rows + (8 * tile(t) + n) * N + 2 * q);
        mma_f64(x[t], -y[0], v[0]);
        mma_f64(x[t], -y[1], v[1]);
      }
  }

private:
  storage &s_;
  int turn_ = 0;
};

} // namespace bqr

#endif
