/* SPDX-License-Identifier: BSD-3-Clause */
/* The factors of common/panel_factors.cuh, eight columns in a step, by one block of 8 warps: short chains of
 * one warp for what a column waits for, matrix units for the rest. */
#ifndef BATCHQR_KERNELS_COMMON_STEP_FACTORS_CUH
#define BATCHQR_KERNELS_COMMON_STEP_FACTORS_CUH

#include "panel_factors.cuh"
#include "ring.cuh"

namespace bqr {
namespace step_factors {

using panel_factors::add_product, panel_factors::each_element, panel_factors::lower_adjoint,
    panel_factors::matrix, panel_factors::N, panel_factors::rows16, panel_factors::tile, panel_factors::tiles,
    panel_factors::triangle, panel_factors::upper, panel_factors::warps;

/* Rows `top` .. of R from those of what is left of G, by one warp: lanes are columns. The next pivot comes
 * first, and is known to all of them. */
__device__ __forceinline__ void make_r(matrix &r, double *inverse_of, int top) {
  const int c = lane_id();
  double x[tile], mine = 1; /* the pivot of lane k's row */
#pragma unroll
  for (int i = 0; i < tile; i++) x[i] = r(top + i, c);
  double pivot = broadcast(x[0], top);
#pragma unroll
  for (int k = 0; k < tile; k++) {
    if (c == k) mine = pivot;
    if (k + 1 == tile) break;
    const double guess = estimated_recip(pivot), e = fused(-pivot, guess, 1.0), e2 = fused(e, e, e);
    const double part = x[k] * guess, factor = fused(part, e2, part), next = broadcast(x[k], top + k + 1),
                 next_part = next * guess;
    pivot = fused(-next, fused(next_part, e2, next_part), broadcast(x[k + 1], top + k + 1));
#pragma unroll
    for (int i = k + 1; i < tile; i++) x[i] = fused(-broadcast(x[k], top + i), factor, x[i]);
  }
  const double scale = fast_rsqrt(mine);
  if (c < tile) inverse_of[top + c] = scale;
#pragma unroll
  for (int k = 0; k < tile; k++) {
    const double y = x[k] * broadcast(scale, k);
    r(top + k, c) = c < top + k ? 0 : y;
  }
}

/* Rows `top` .. of the LU factors of lw - S R, by one warp, lanes being columns; and the columns below them
 * by another one, lanes being rows, which takes a row of W as soon as it is there. */
using row_barriers = phase_barrier[tile]; /* of a warp's lanes */
__device__ __forceinline__ void make_w(matrix &lw, matrix &r, double *sign_of, double *inverse_of,
                                       row_barriers &rows, int top) {
  const int c = lane_id();
  double x[tile], mine = 1; /* 1 / W(c, c) */
#pragma unroll
  for (int i = 0; i < tile; i++) x[i] = lw(top + i, c);
  double diagonal = broadcast(x[0], top);
#pragma unroll
  for (int k = 0; k < tile; k++) {
    const double sign = diagonal >= 0 ? -1 : 1, pivot = fused(-sign, r(top + k, top + k), diagonal);
    const double guess = estimated_recip(pivot), e = fused(-pivot, guess, 1.0), e2 = fused(e, e, e);
    const double w = fused(-sign, r(top + k, c), x[k]), inverse = fused(guess, e2, guess);
    if (c >= top + k) lw(top + k, c) = w;
    if (c == top + k) {
      mine = inverse;
      sign_of[c] = sign;
      inverse_of[c] = inverse;
    }
    rows[k].arrive();
    const double part = w * guess, factor = c > top + k ? fused(part, e2, part) : 0;
    if (k + 1 < tile)
      diagonal = fused(-broadcast(x[k + 1], top + k), broadcast(factor, top + k + 1),
                       broadcast(x[k + 1], top + k + 1));
#pragma unroll
    for (int i = k + 1; i < tile; i++) x[i] = fused(-broadcast(x[i], top + k), factor, x[i]);
  }
#pragma unroll
  for (int i = 1; i < tile; i++)
    if (c >= top && c < top + i) lw(top + i, c) = x[i] * mine;
}
__device__ __forceinline__ void make_y(matrix &lw, const double *inverse_of, row_barriers &rows, int top) {
  const int i = lane_id();
  double y[tile];
#pragma unroll
  for (int k = 0; k < tile; k++) y[k] = i < top + tile ? 0 : lw(i, top + k);
#pragma unroll
  for (int k = 0; k < tile; k++) {
    rows[k].wait(top / tile & 1);
    y[k] *= inverse_of[top + k];
#pragma unroll
    for (int l = k + 1; l < tile; l++) y[l] = fused(-y[k], lw(top + k, top + l), y[l]);
    if (i >= top + tile) lw(i, top + k) = y[k];
  }
}

/* The inverses of a triangle's tiles on the diagonal, as operands. */
class inverses {
  two<double> tiles_[tiles][warp_lanes];

public:
  /* By one warp. back: 1 / r(i, i), or NULL for ones. */
  __device__ __forceinline__ void set(const triangle &r, const double *back) {
    const int top = lane_id() / tile * tile, c = lane_id() % tile;
    double z[tile];
#pragma unroll
    for (int i = tile - 1; i >= 0; i--) {
      double sum = i == c ? 1 : 0;
#pragma unroll
      for (int k = tile - 1; k > i; k--) sum = fused(-r(top + i, top + k), z[k], sum);
      z[i] = i > c ? 0 : back ? sum * back[top + i] : sum;
      tiles_[top / tile][4 * c + i / 2].v[i % 2] = z[i];
    }
  }
  /* x := x r^-1 */
  __device__ __forceinline__ void divide(rows16 &x, const triangle &r) const {
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int J = 0; J < tiles; J++) {
      double rest[4] = {x[J][0], x[J][1], x[J][2], x[J][3]};
#pragma unroll
      for (int K = 0; K < J; K++) {
        const double minus[4] = {-x[K][0], -x[K][1], -x[K][2], -x[K][3]};
        add_product(rest, minus, r(tile * K + 2 * q, tile * J + g), r(tile * K + 2 * q + 1, tile * J + g));
      }
      const two<double> inverse = tiles_[J][lane_id()];
#pragma unroll
      for (int e = 0; e < 4; e++) x[J][e] = 0;
      add_product(x[J], rest, inverse.v[0], inverse.v[1]);
    }
  }
};

/* The tile of c at i, j := it - a product of two tiles, left(i, k) and right(k, j). */
template <class L, class R>
__device__ __forceinline__ void subtract_tile(matrix &c, int i, int j, L &&left, R &&right) {
  const int g = lane_id() / 4, q = lane_id() % 4;
  double *at = &c(i + g, j + 2 * q), c0 = at[0], c1 = at[1];
#pragma unroll
  for (int k = 0; k < tile; k += 4) multiply_add(c0, c1, -left(i + g, k + q), right(k + q, j + g));
  at[0] = c0;
  at[1] = c1;
}

/* r: G's upper triangle becomes R; lw: A1 becomes Y1 and W. Eight columns in a step, those of R a step ahead.
 * `beside` is what a fourth warp does while the last columns of W are made. */
template <class F>
__device__ __forceinline__ void factor(matrix &r, matrix &lw, double *sign, double *inverse_r,
                                       double *inverse_w, row_barriers &rows, F &&beside) {
#pragma unroll 1
  for (int step = 0;; step++) {
    const int top = step * tile, top_w = top - tile;
    if (warp_id() == 0 && step < tiles) make_r(r, inverse_r, top);
    if (warp_id() == 1 && step > 0) make_w(lw, r, sign, inverse_w, rows, top_w);
    if (warp_id() == 2 && step > 0) make_y(lw, inverse_w, rows, top_w);
    if (warp_id() == 3 && step == tiles) beside();
    block_sync();
    if (step == tiles) break;
    constexpr int side = tiles - 1; /* what may be left, in tiles: a square of either */
#pragma unroll 1
    for (int n = warp_id(); n < 2 * side * side; n += warps) {
      const bool of_r = n < side * side;
      const int i = 1 + n / side % side, j = 1 + n % side;
      if (of_r && i > step && i <= j)
        subtract_tile(
            r, i * tile, j * tile, [&](int a, int k) { return r(top + k, a); },
            [&](int k, int b) { return r(top + k, b); });
      if (!of_r && step > 0 && i >= step && j >= step)
        subtract_tile(
            lw, i * tile, j * tile, [&](int a, int k) { return lw(a, top_w + k); },
            [&](int k, int b) { return lw(top_w + k, b); });
    }
    block_sync();
  }
}

} // namespace step_factors
} // namespace bqr

#endif
