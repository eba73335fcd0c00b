/* SPDX-License-Identifier: BSD-3-Clause */
/* R^-H of G = R^H R, by one block of threads: row operations turn [G, I] into [R, R^-H], four rows at a time.
 * As the left half is upper and the right one lower triangular, one square, in registers, holds what is not
 * yet known of R and what is of R^-H. R is not kept. */
#ifndef BQR_KERNELS_REFINE_ROW_REDUCTION_CUH
#define BQR_KERNELS_REFINE_ROW_REDUCTION_CUH

#include "common/ptx/barrier.cuh"
#include "common/simt/scalar.cuh"
#include "common/simt/warp.cuh"

namespace bqr {

template <class R> struct alignas(16) quad { R x, y, z, w; };

/* N x N; a thread has rows 16 apart, and eight columns. */
template <class R, int N, int THREADS> class row_reduction {
  static constexpr int rows_apart = 16, cols_apart = THREADS / rows_apart, rows = N / rows_apart,
                       cols = N / cols_apart;
  static_assert(cols == 8 && rows_apart % cols_apart == 0, "all have a place in registers");

public:
  struct memory {
    quad<R> before[N], after[N]; /* of each column four rows; of their own columns R^-H's */
    int failed;
  };

  /* G's elements, above the diagonal and on it; zeros below. */
  template <class F> __device__ __forceinline__ void load(F &&element) {
    each([&](int i, int j, R &x) { x = element(i, j); });
  }
  template <class F> __device__ __forceinline__ void each(F &&f) {
#pragma unroll
    for (int u = 0; u < rows; u++)
#pragma unroll
      for (int v = 0; v < cols; v++) f(row() + rows_apart * u, col() + cols_apart * v, x_[u][v]);
  }

  /* The first `count` rows, a multiple of 4; those behind are the unit matrix's. R^-H is on the diagonal and
   * below. Whether all pivots are greater than least_pivot(row): else it is not what it should be. All
   * threads of the block call it. */
  template <class F> __device__ __forceinline__ bool run(memory &m, int count, F &&least_pivot) {
    if (thread_id() == 0) m.failed = 0;
#pragma unroll
    for (int u = 0; u < rows; u++) {
      const int end = count - rows_apart * u < rows_apart ? count - rows_apart * u : rows_apart;
#pragma unroll 1
      for (int first = 0; first < end; first += 4) {
        const int own = row() - first;
        if (own >= 0 && own < 4)
#pragma unroll
          for (int v = 0; v < cols; v++)
            reinterpret_cast<R *>(&m.before[col() + cols_apart * v])[own] = x_[u][v];
        block_sync();
        const int top = rows_apart * u + first;
        if (thread_id() < N && !reduce(m, top, thread_id(), least_pivot)) m.failed = 1;
        block_sync();
        subtract(m, u, top);
      }
    }
    return !m.failed;
  }

private:
  __device__ __forceinline__ static int col() { return thread_id() % cols_apart; }
  __device__ __forceinline__ static int row() { return thread_id() / cols_apart; }

  /* The four rows from `top` on in column `j`. */
  template <class F>
  __device__ __forceinline__ static bool reduce(memory &m, int top, int j, F &&least_pivot) {
    const quad<R> c0 = m.before[top], c1 = m.before[top + 1], c2 = m.before[top + 2], c3 = m.before[top + 3];
    quad<R> x = m.before[j];
    const int own = j - top;
    if (own >= 0 && own < 4) x = {R(own == 0), R(own == 1), R(own == 2), R(own == 3)};
    const R d0 = fast_rsqrt(c0.x), r01 = c1.x * d0, r02 = c2.x * d0, r03 = c3.x * d0;
    const R p1 = c1.y - r01 * r01, d1 = fast_rsqrt(p1), r12 = (c2.y - r01 * r02) * d1,
            r13 = (c3.y - r01 * r03) * d1;
    const R p2 = c2.z - r02 * r02 - r12 * r12, d2 = fast_rsqrt(p2), r23 = (c3.z - r02 * r03 - r12 * r13) * d2;
    const R p3 = c3.w - r03 * r03 - r13 * r13 - r23 * r23, d3 = fast_rsqrt(p3);
    x.x = x.x * d0;
    x.y = (x.y - r01 * x.x) * d1;
    x.z = (x.z - r02 * x.x - r12 * x.y) * d2;
    x.w = (x.w - r03 * x.x - r13 * x.y - r23 * x.z) * d3;
    m.after[j] = x;
    return c0.x > least_pivot(top) && p1 > least_pivot(top + 1) && p2 > least_pivot(top + 2) &&
           p3 > least_pivot(top + 3);
  }

  /* From the rows below: this thread's rows from the u-th on. */
  __device__ __forceinline__ void subtract(const memory &m, int u, int top) {
    constexpr int at_once = 32 / sizeof(R); /* columns in registers */
#pragma unroll
    for (int from = 0; from < cols; from += at_once) {
      quad<R> right[at_once];
#pragma unroll
      for (int v = 0; v < at_once; v++) right[v] = m.after[col() + cols_apart * (from + v)];
#pragma unroll
      for (int v = 0; v < at_once; v++) {
        if (cols_apart * (from + v) / rows_apart != u) continue;
        const int own = col() + cols_apart * (from + v) - top;
        if (own >= 0 && own < 4) /* where R^-H begins */
#pragma unroll
          for (int w = 0; w < rows; w++)
            if (w >= u) x_[w][from + v] = 0;
      }
#pragma unroll
      for (int w = 0; w < rows; w++) {
        if (w < u) continue;
        const int i = row() + rows_apart * w, own = i - top;
        quad<R> left = m.after[i];
        if (w == u && own < 4) left = {};
#pragma unroll
        for (int v = 0; v < at_once; v++)
          x_[w][from + v] -=
              left.x * right[v].x + left.y * right[v].y + left.z * right[v].z + left.w * right[v].w;
        if (w > u || own < 0 || own >= 4) continue;
#pragma unroll
        for (int v = 0; v < at_once; v++)
          x_[w][from + v] = own == 0   ? right[v].x
                            : own == 1 ? right[v].y
                            : own == 2 ? right[v].z
                                       : right[v].w;
      }
    }
  }

  R x_[rows][cols];
};

} // namespace bqr

#endif
