/* SPDX-License-Identifier: BSD-3-Clause */
/* The small factors of a panel of 32 columns whose Householder vectors are made all at once, by one block of
 * 8 warps in double precision. From G = A^H A, R is the Cholesky factor. With A1 the panel's first rows and S
 * the signs of R's, A1 - S R = Y1 W is an LU factorization, whose pivots are sums of what has the same sign;
 * then V = A W^-1, of which Y1 are the first rows, and T = -U S Y1^-H with U = W R^-1. (G. Ballard, J. Demmel
 * et al., Reconstructing Householder vectors from tall-skinny QR, 2014.) */
#ifndef BATCHQR_KERNELS_COMMON_PANEL_FACTORS_CUH
#define BATCHQR_KERNELS_COMMON_PANEL_FACTORS_CUH

#include "block.cuh"
#include "fragment.cuh"
#include "product.cuh"
#include "ring.cuh"

namespace bqr {
namespace panel_factors {

constexpr int N = 32, tile = 8, tiles = N / tile, warps = 8;

/* By rows; rows and columns are read free of conflicts. */
struct matrix {
  double x[N][N + 1];

  __device__ __forceinline__ double &operator()(int i, int j) { return x[i][j]; }
};

/* 16 rows as operands: the lane's element 2 h + s of tile J is in row 2 g + h, column 8 J + 2 q + s. */
using rows16 = double[tiles][4];
/* f(element, row, column) */
template <class F> __device__ __forceinline__ void each_element(rows16 &x, F &&f) {
#pragma unroll
  for (int J = 0; J < tiles; J++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        f(x[J][2 * h + e], 2 * (lane_id() / 4) + h, tile * J + 2 * (lane_id() % 4) + e);
}
__device__ __forceinline__ void add_product(double (&c)[4], const double (&a)[4], double b0, double b1) {
  multiply_add(c, {{a[0]}, {a[1]}, {a[2]}, {a[3]}}, {{b0}, {b1}});
}

/* f(i, j, element) of a product, a 16 x 8 tile to a warp; a(i, l) and b(l, j) are the operands' elements. */
template <class A, class B, class F> __device__ __forceinline__ void multiply(A &&a, B &&b, F &&f) {
  const int g = lane_id() / 4, q = lane_id() % 4, I = 16 * (warp_id() / tiles),
            J = tile * (warp_id() % tiles);
  double c[4] = {};
#pragma unroll
  for (int l = 2 * q; l < N; l += tile) {
    const double left[4] = {a(I + g, l), a(I + g, l + 1), a(I + g + 8, l), a(I + g + 8, l + 1)};
    add_product(c, left, b(l, J + g), b(l + 1, J + g));
  }
#pragma unroll
  for (int e = 0; e < 4; e++) f(I + g + 8 * (e / 2), J + 2 * q + e % 2, c[e]);
}

/* An upper triangle in a matrix, or the adjoint of a unit lower one. */
struct triangle {
  const double *x;
  int down, across;
  bool unit; /* ones on the diagonal, whatever is there */

  __device__ __forceinline__ double operator()(int i, int j) const { return x[i * down + j * across]; }
};
__device__ __forceinline__ triangle upper(matrix &a) { return {&a(0, 0), N + 1, 1, false}; }
__device__ __forceinline__ triangle lower_adjoint(matrix &a) { return {&a(0, 0), 1, N + 1, true}; }

/* A triangle to divide rows by, as operands: by tiles, with the inverses of those on the diagonal. */
class divisor {
  static constexpr int above = tiles * (tiles - 1) / 2;
  two<double> minus_[above][warp_lanes], inverse_[tiles][warp_lanes];

public:
  /* By one warp. */
  __device__ __forceinline__ void set(const triangle &r) {
    const int top = lane_id() / tile * tile, c = lane_id() % tile;
    double z[tile], back[tile];
#pragma unroll
    for (int i = 0; i < tile; i++) back[i] = r.unit ? 1 : fast_recip(r(top + i, top + i));
#pragma unroll
    for (int i = tile - 1; i >= 0; i--) {
      double sum = i == c ? 1 : 0;
#pragma unroll
      for (int k = i + 1; k < tile; k++) sum = fused(-r(top + i, top + k), z[k], sum);
      z[i] = i <= c ? sum * back[i] : 0;
      inverse_[top / tile][4 * c + i / 2].v[i % 2] = z[i];
    }
    const int g = lane_id() / 4, q = lane_id() % 4;
    int t = 0;
#pragma unroll 1
    for (int J = 1; J < tiles; J++)
#pragma unroll 1
      for (int K = 0; K < J; K++, t++)
#pragma unroll
        for (int e = 0; e < 2; e++) minus_[t][lane_id()].v[e] = -r(tile * K + 2 * q + e, tile * J + g);
  }
  /* x := x R^-1 */
  __device__ __forceinline__ void divide(rows16 &x) const {
#pragma unroll
    for (int J = 0; J < tiles; J++) {
      double rest[4] = {x[J][0], x[J][1], x[J][2], x[J][3]};
#pragma unroll
      for (int K = 0; K < J; K++) add(rest, x[K], minus_[J * (J - 1) / 2 + K]);
#pragma unroll
      for (int e = 0; e < 4; e++) x[J][e] = 0;
      add(x[J], rest, inverse_[J]);
    }
  }

private:
  __device__ __forceinline__ static void add(double (&c)[4], const double (&a)[4],
                                             const two<double> (&b)[warp_lanes]) {
    const two<double> mine = b[lane_id()];
    add_product(c, a, mine.v[0], mine.v[1]);
  }
};

/* What a panel's columns must be like: their squared norms, how much of each is left in R's diagonal, and the
 * determinant of the matrix of their cosines, which is at most e times its least eigenvalue. */
struct limits {
  double least_norm2, most_norm2, least_share, least_determinant;
};

struct storage {
  matrix g, r, lw;               /* R; below the diagonal Y1, W on and above it */
  double row[2][2 * N], sign[N]; /* row: with zeros behind */
  bool good;
};

/* What tells a warp that eight more rows of R are there. The sanitizers follow these barriers, not named ones
 * of two warps. Another barrier must follow init(). */
class row_steps {
public:
  static constexpr int step = 8; /* rows, after which registers are fewer */

  __device__ __forceinline__ void init() {
    if (thread_id() < N / step) done_[thread_id()].init(warp_lanes);
  }
  /* Before its memory serves anything else. */
  __device__ __forceinline__ void end() {
    if (thread_id() < N / step) done_[thread_id()].end();
  }
  __device__ __forceinline__ void arrive(int number) { done_[number].arrive(); }
  /* turn: how many factorizations there were before. */
  __device__ __forceinline__ void wait(int number, int turn) { done_[number].wait(turn & 1); }

private:
  phase_barrier done_[N / step];
};

/* All but g of the storage, from g and A1 in `top`; `good` tells whether the panel is within the limits. One
 * warp makes R, another one, eight rows behind, Y1 and W; lanes are columns, whose rows are in registers.
 * Ends with a barrier. */
class factorization {
  static constexpr int step = row_steps::step;
  storage &s;
  row_steps &steps_;
  const int c;
  double a_[N]; /* the rows left */

public:
  __device__ factorization(storage &storage, matrix &top, limits l, row_steps &steps, int turn)
      : s(storage), steps_(steps), c(lane_id()) {
    if (warp_id() == 0) {
      load(s.g);
      make_r(l);
    } else if (warp_id() == 1) {
      load(top);
      static_for<N / step>([&](auto number) {
        constexpr int first = step * decltype(number)::value;
        steps_.wait(first / step, turn);
        make_w<first>();
      });
    }
    block_sync();
  }

private:
  __device__ __forceinline__ void load(matrix &from) {
#pragma unroll
    for (int i = 0; i < N; i++) a_[i] = from(i, c);
  }

  __device__ __forceinline__ void make_r(limits l) {
    const double norm2 = s.g(c, c), back = fast_recip(norm2);
    double share = 0;
    s.row[0][c] = a_[0];
    s.row[0][N + c] = s.row[1][N + c] = 0;
    static_for<N / step>([&](auto number) {
      constexpr int first = step * decltype(number)::value, left = N - first;
#pragma unroll 1
      for (int j = first; j < first + step; j++) {
        const double pivot = broadcast(a_[0], j), inverse = fast_recip(pivot), r = fast_rsqrt(pivot);
        const double *row = s.row[j & 1];
        const double mine = a_[0], factor = mine * inverse;
        warp_sync();
        a_[0] = fused(-row[j + 1], factor, a_[1]);
        s.row[(j + 1) & 1][c] = a_[0];
#pragma unroll
        for (int q = 2; q < left; q++) a_[q - 1] = fused(-row[j + q], factor, a_[q]);
        s.r(j, c) = c < j ? 0 : mine * r;
        if (c == j) share = pivot * back;
      }
      steps_.arrive(first / step);
    });
    const bool good = norm2 > l.least_norm2 && norm2 < l.most_norm2 && share > l.least_share;
#pragma unroll
    for (int d = 1; d < warp_lanes; d *= 2) share *= exchange(share, d);
    const bool all = !group_any(!good);
    if (c == 0) s.good = all && share > l.least_determinant;
  }

  /* Rows from FIRST on. */
  template <int FIRST> __device__ __forceinline__ void make_w() {
    constexpr int left = N - FIRST;
#pragma unroll 1
    for (int j = FIRST; j < FIRST + step; j++) {
      const double diagonal = broadcast(a_[0], j), sign = diagonal >= 0 ? -1 : 1;
      const double inverse = fast_recip(diagonal - sign * s.r(j, j)), x = a_[0] - sign * s.r(j, c);
      s.lw(j, c) = c < j ? a_[0] : x;
      if (c == j) s.sign[j] = sign;
#pragma unroll
      for (int q = 1; q < left; q++) {
        const double l = broadcast(a_[q], j) * inverse;
        a_[q - 1] = c > j ? fused(-l, x, a_[q]) : c == j ? l : a_[q];
      }
    }
  }
};

} // namespace panel_factors
} // namespace bqr

#endif
