/* SPDX-License-Identifier: BSD-3-Clause */
/* Rows of a panel of N columns in a warp's registers, 16 at a time, as operands of matrix units: divided by
 * triangles, and what comes of that. Triangles are small and in shared memory. All in double precision, X
 * double or complex. */
#ifndef BQR_KERNELS_COMMON_PANEL_PANEL_ROWS_CUH
#define BQR_KERNELS_COMMON_PANEL_PANEL_ROWS_CUH

#include "common/simt/block.cuh"
#include "common/simt/fragment.cuh"
#include "common/simt/product.cuh"

namespace bqr {
namespace panel_factors {

constexpr int tile = 8;

/* By rows; rows and columns are read free of conflicts. */
template <int N, class X = double> struct matrix {
  X x[N][N + 1];

  __device__ __forceinline__ X &operator()(int i, int j) { return x[i][j]; }
};

/* 16 rows as operands: the lane's element 2 h + s of tile J is in row 2 g + h, column 8 J + 2 q + s. */
template <int N, class X = double> using rows16 = X[N / tile][4];
/* f(element, row, column) */
template <class X, int TILES, class F> __device__ __forceinline__ void each_element(X (&x)[TILES][4], F &&f) {
#pragma unroll
  for (int J = 0; J < TILES; J++)
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
      for (int e = 0; e < 2; e++)
        f(x[J][2 * h + e], 2 * (lane_id() / 4) + h, tile * J + 2 * (lane_id() % 4) + e);
}
template <class X> __device__ __forceinline__ void add_product(X (&c)[4], const X (&a)[4], X b0, X b1) {
  multiply_add(c, {split(a[0]), split(a[1]), split(a[2]), split(a[3])}, {split(b0), split(b1)});
}

/* From and to rows in shared memory, whose columns are `ld` elements apart. */
template <class T, int TILES>
__device__ __forceinline__ void read_rows(double (&x)[TILES][4], const T *from, int ld) {
#pragma unroll
  for (int J = 0; J < TILES; J++)
#pragma unroll
    for (int e = 0; e < 2; e++) {
      T pair[2];
      read_two(pair, from + (tile * J + 2 * (lane_id() % 4) + e) * ld + 2 * (lane_id() / 4));
      x[J][e] = pair[0];
      x[J][2 + e] = pair[1];
    }
}
template <class T, int TILES>
__device__ __forceinline__ void write_rows(const double (&x)[TILES][4], T *to, int ld) {
#pragma unroll
  for (int J = 0; J < TILES; J++)
#pragma unroll
    for (int e = 0; e < 2; e++)
      write_two(to + (tile * J + 2 * (lane_id() % 4) + e) * ld + 2 * (lane_id() / 4),
                {static_cast<T>(x[J][e]), static_cast<T>(x[J][2 + e])});
}

/* Squared norms of columns whose rows a warp has, 16 at a time. */
template <class T, int N> class column_norms {
  double sums_[N / tile][2] = {};

public:
  /* As they are in type T. */
  __device__ __forceinline__ void add(const rows16<N, wide<T>> &x) {
#pragma unroll
    for (int J = 0; J < N / tile; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        auto as_stored = [](const wide<T> &y) { return converted<wide<T>>(converted<T>(y)); };
        sums_[J][e] = abs2_add(as_stored(x[J][e]), abs2_add(as_stored(x[J][2 + e]), sums_[J][e]));
      }
  }
  __device__ __forceinline__ void store(double (&to)[N]) const {
#pragma unroll
    for (int J = 0; J < N / tile; J++)
#pragma unroll
      for (int e = 0; e < 2; e++) {
        double sum = sums_[J][e];
#pragma unroll
        for (int d = 4; d < warp_lanes; d *= 2) sum += exchange(sum, d);
        if (lane_id() < 4) to[tile * J + 2 * lane_id() + e] = sum;
      }
  }
};

/* An upper triangle in a matrix, or the adjoint of a unit lower one. */
template <class X> struct triangle {
  const X *x;
  int down, across;
  bool adjoint; /* with ones on the diagonal, whatever is there */

  __device__ __forceinline__ X operator()(int i, int j) const {
    const X y = x[i * down + j * across];
    return adjoint ? conj(y) : y;
  }
};
template <int N, class X> __device__ __forceinline__ triangle<X> upper(matrix<N, X> &a) {
  return {&a(0, 0), N + 1, 1, false};
}
template <int N, class X> __device__ __forceinline__ triangle<X> lower_adjoint(matrix<N, X> &a) {
  return {&a(0, 0), 1, N + 1, true};
}

/* The inverses of a triangle's tiles on the diagonal, as operands. */
template <int N, class X = double> class inverses {
  two<X> tiles_[N / tile][warp_lanes];

public:
  /* Of tile J, by one warp. */
  __device__ __forceinline__ void set(int J, const triangle<X> &r) {
    const int top = J * tile, c = lane_id() % tile;
    X z[tile], back[tile];
#pragma unroll
    for (int i = 0; i < tile; i++) back[i] = r.adjoint ? make<X>(1) : fast_recip(r(top + i, top + i));
#pragma unroll
    for (int i = tile - 1; i >= 0; i--) {
      X sum = make<X>(i == c);
#pragma unroll
      for (int k = tile - 1; k > i; k--) sum = madd(-r(top + i, top + k), z[k], sum);
      z[i] = i > c ? zero<X>() : sum * back[i];
      if (lane_id() < tile) tiles_[J][4 * c + i / 2].v[i % 2] = z[i];
    }
  }
  __device__ __forceinline__ two<X> operator()(int J) const { return tiles_[J][lane_id()]; }
};

/* x := x R^-1. above(K, J): the lane's part of a tile of R as an operand; on(J): of an inverse. */
template <class X, int TILES, class A, class D>
__device__ __forceinline__ void divide_by(X (&x)[TILES][4], A &&above, D &&on) {
#pragma unroll
  for (int J = 0; J < TILES; J++) {
    X rest[4] = {x[J][0], x[J][1], x[J][2], x[J][3]};
#pragma unroll
    for (int K = 0; K < J; K++) {
      const X minus[4] = {-x[K][0], -x[K][1], -x[K][2], -x[K][3]};
      const two<X> r = above(K, J);
      add_product(rest, minus, r.v[0], r.v[1]);
    }
    const two<X> inverse = on(J);
#pragma unroll
    for (int e = 0; e < 4; e++) x[J][e] = zero<X>();
    add_product(x[J], rest, inverse.v[0], inverse.v[1]);
  }
}
template <class X, int TILES>
__device__ __forceinline__ void divide(X (&x)[TILES][4], const triangle<X> &r,
                                       const inverses<TILES * tile, X> &by) {
  const int g = lane_id() / 4, q = lane_id() % 4;
  divide_by(
      x,
      [&](int K, int J) {
        const int i = tile * K + 2 * q, j = tile * J + g;
        return two<X>{r(i, j), r(i + 1, j)};
      },
      by);
}

} // namespace panel_factors
} // namespace bqr

#endif
