/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors on FP64 matrix units: C := (I - V T^T V^T) C in the compact WY form, 8 reflectors to 8
 * columns in a fragment at a time; V and T lie in shared memory.
 *
 * mma.m8n8k4: lane l holds A(l / 4, l % 4), B(l % 4, l / 4) and C(l / 4, 2 (l % 4) + {0, 1}). The order of k
 * is free, so that an accumulator serves as the next product's A without any exchange: what lies in column 2
 * (l % 4) + s is taken as k number l % 4 of step s. All products are formed transposed: W^T = C^T V, then W^T
 * T, then C^T -= (W^T T) V^T. */
#ifndef BATCHQR_KERNELS_COMMON_MMA_CUH
#define BATCHQR_KERNELS_COMMON_MMA_CUH

#include "fragment.cuh"

namespace bqr {

/* c += a b */
__device__ __forceinline__ void mma(double (&c)[2], double a, double b) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(c[0]), "+d"(c[1])
               : "d"(a), "d"(b));
}

template <int R, int P> class mma_reflector {
  using columns = fragment<double, R, P>;
  static constexpr int N = 8, units = columns::units, tile = columns::tile;
  static constexpr int ld = columns::rows + tile; /* free of bank conflicts */

public:
  struct alignas(16) storage {
    double v[N * ld];
    double v_rows[columns::rows * N]; /* V^T, for the second product */
    double t[N * N];                  /* t[i * N + l] = T(i, l) */
    double w[2][P][N * N];            /* W of each warp's rows, in two buffers used in turn */
  };

  __device__ __forceinline__ explicit mma_reflector(storage &s) : s_(s) {}

  /* Takes V from a fragment that holds its ones and zeros. Barriers are the caller's. */
  __device__ __forceinline__ void set_v(const columns &v) const {
    const int c = columns::column();
#pragma unroll
    for (int u = 0; u < units; u++) {
      column_write<0>(s_.v + c * ld + columns::row(u, 0), v.x[u]);
#pragma unroll
      for (int e = 0; e < columns::unit; e++) s_.v_rows[columns::row(u, e) * N + c] = v.x[u][e];
    }
  }
  __device__ __forceinline__ void set_t_row(int i, const double (&t)[N]) const {
    column_write<0>(s_.t + i * N, t);
  }

  /* Applies it to the first `rows` rows of c. All threads of the block call it together. */
  __device__ __forceinline__ void apply(columns &c, int rows) {
    const int n = columns::column(), q = columns::lane();
    double w[4][2] = {}; /* independent sums: the units' latency is long */
#pragma unroll
    for (int u = 0; u < units; u++)
      if (columns::has_rows(u, rows)) {
        double v[2];
        column_read<0>(v, s_.v + n * ld + columns::row(u, 0));
        mma(w[u % 2], c.x[u][0], v[0]);
        mma(w[u % 2 + 2], c.x[u][1], v[1]);
      }
    double sum[2] = {(w[0][0] + w[1][0]) + (w[2][0] + w[3][0]), (w[0][1] + w[1][1]) + (w[2][1] + w[3][1])};
    if (P > 1) sum_over_warps(sum);
    double y[2] = {0, 0};
    mma(y, sum[0], s_.t[2 * q * N + n]);
    mma(y, sum[1], s_.t[(2 * q + 1) * N + n]);
#pragma unroll
    for (int u = 0; u < units; u++)
      if (columns::has_rows(u, rows)) {
        double v[2];
        column_read<0>(v, s_.v_rows + (columns::row(u, 0) - 2 * q + n) * N + 2 * q);
        mma(c.x[u], -y[0], v[0]);
        mma(c.x[u], -y[1], v[1]);
      }
  }

private:
  __device__ __forceinline__ void sum_over_warps(double (&sum)[2]) {
    double(*part)[N * N] = s_.w[turn_];
    turn_ ^= 1;
    column_write<0>(part[warp_id()] + 2 * lane_id(), sum);
    block_sync();
    sum[0] = sum[1] = 0;
#pragma unroll
    for (int p = 0; p < P; p++) {
      double other[2];
      column_read<0>(other, part[p] + 2 * lane_id());
      sum[0] += other[0];
      sum[1] += other[1];
    }
  }

  storage &s_;
  int turn_ = 0;
};

} // namespace bqr

#endif
