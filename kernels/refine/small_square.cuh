/* SPDX-License-Identifier: BSD-3-Clause */
/* R^-H of a small X = A^H A = R^H R in double precision, by one block of P warps in shared memory.
 *
 * With D the powers of two that bring the lengths of A's columns into [1, 2), D X D becomes R^-H by 8 rows at
 * a time: row operations on [D X D, I] that leave [R, R^-H], of which the same square holds what is not yet
 * known of R and what is known of R^-H. R itself is not kept: all that it is wanted for are products with
 * R^-1 and R^-H. */
#ifndef BQR_KERNELS_REFINE_SMALL_SQUARE_CUH
#define BQR_KERNELS_REFINE_SMALL_SQUARE_CUH

#include "common/matrix/member.cuh"
#include "common/panel/columns.cuh"
#include "common/panel/exponents.cuh"
#include "common/ptx/mma.cuh"
#include "common/simt/block.cuh"

namespace bqr {

constexpr int square_rows = 8;         /* at a time */
constexpr double least_pivot = 1e-10;  /* of a column's squared length: condition numbers up to 1e5 or so */
constexpr double most_condition = 3e5; /* by Frobenius norms: up to it A D R^-1 is orthogonal to 1e-5 */
/* By Frobenius norms, of A of n columns: up to it X needs no step. Its backward error is about the condition
 * number times 2^-53: in single precision nothing, in double precision up to three times QR's where the
 * condition number is that of a random A. */
template <class T> __device__ __forceinline__ double safe_condition(int n) {
  return sizeof(T) == 4 ? 1e4 : 1.5 * n;
}
/* Squares of s, of b as it is, for which no product of A^H b is lost to underflow. */
__device__ __forceinline__ bool is_safe_square(double ss) { return ss >= 1e-300 && ss <= 1e300; }
constexpr double step_loss =
    0x1p-49; /* a step leaves of the error this times the condition number's square */
constexpr double least_square = 1e-240, largest_square = 1e240; /* that are neither too small nor too large */

/* Of up to N columns. x: by rows. Sums take 2 * P * 4 doubles. */
template <int N, int P> struct square_memory {
  static constexpr int ld = N + 1, panel_ld = N + 20;
  double x[N * ld];
  double panel[square_rows * panel_ld], corner[P][square_rows * square_rows];
};
template <int N> struct square_scales {
  double lengths2[N]; /* of columns of A D, squared */
  int exponents[N];   /* of D */
};

/* Row and column of element e of this lane in a tile of 16 x 8. */
__device__ __forceinline__ int square_tile_row(int e) { return lane_id() / 4 + e / 2 * 8; }
__device__ __forceinline__ int square_tile_col(int e) { return lane_id() % 4 * 2 + e % 2; }

template <int N, int P> class small_square {
  static constexpr int threads = P * warp_lanes, ld = square_memory<N, P>::ld,
                       panel_ld = square_memory<N, P>::panel_ld;
  static_assert(threads == 2 * N, "two threads to a row");

public:
  __device__ __forceinline__ small_square(square_memory<N, P> &m, square_scales<N> &s, double *sums, int cols)
      : m_(m), s_(s), sums_(sums), cols_(cols),
        padded_((cols + square_rows - 1) / square_rows * square_rows) {}

  /* ||A D||_F, and that times ||(A D)^+||_F, after invert(). */
  __device__ __forceinline__ double length() const { return length_; }
  __device__ __forceinline__ double condition() const { return condition_; }

  /* X, of which what is on and above the diagonal is given, becomes R^-H, lower triangular. Whether columns
   * are far enough from being dependent for that. Barriers stand before and behind it. */
  __device__ __forceinline__ bool invert() {
    if (!scale()) return false;
    for (int at = 0; at < padded_; at += square_rows) {
      if (!factor_corner(at)) return false; /* all threads */
      make_rows(at);
      subtract(at + square_rows);
      block_sync();
    }
    double sums[4] = {};
    for (int i = warp_id(); i < cols_; i += P)
      for (int j = lane_id(); j <= i; j += warp_lanes)
        sums[0] = fused(m_.x[i * ld + j], m_.x[i * ld + j], sums[0]);
    for (int j = thread_id(); j < cols_; j += threads) sums[1] += s_.lengths2[j];
    block_reducer<double, 4> reducer(sums_);
    reducer.sum(sums);
    length_ = sqrt(sums[1]);
    condition_ = length_ * sqrt(sums[0]);
    return condition_ <= most_condition;
  }

private:
  /* Brings columns into range: X := D X D with zeros below the diagonal. Whether they can be. */
  __device__ __forceinline__ bool scale() const {
    bool usable = true;
    for (int j = thread_id(); j < padded_; j += threads) {
      const double x = j < cols_ ? m_.x[j * ld + j] : 1;
      const bool in = x >= least_square && x <= largest_square;
      const int e = in ? -ilogb(sqrt(x)) : 0;
      usable = usable && in;
      s_.exponents[j] = e;
      s_.lengths2[j] = in ? times_power(x, 2 * e) : 1;
    }
    if (block_any(!usable)) return false;
    for (int i = warp_id(); i < padded_; i += P) {
      const double by = exponent_scale<double>(s_.exponents[i]);
      for (int j = lane_id(); j < padded_; j += warp_lanes) {
        double &x = m_.x[i * ld + j];
        x = j < i ? 0 : j >= cols_ ? (i == j ? 1 : 0) : x * by * exponent_scale<double>(s_.exponents[j]);
      }
    }
    block_sync();
    return true;
  }

  /* Lanes 0 to 7 take the columns of 8 x 8 on the diagonal at `at`, the next ones those of I: what becomes
   * of these, R^-H, goes to this warp's corner. Whether pivots are large enough. */
  __device__ __forceinline__ bool factor_corner(int at) const {
    const int c = lane_id() % (2 * square_rows);
    double x[square_rows];
#pragma unroll
    for (int i = 0; i < square_rows; i++)
      x[i] = c < square_rows ? m_.x[(at + i) * ld + at + c] : c - square_rows == i ? 1 : 0;
    bool good = true;
#pragma unroll
    for (int i = 0; i < square_rows; i++) {
      const double pivot = broadcast(x[i], i);
      good = good && pivot > least_pivot * s_.lengths2[at + i];
      x[i] *= fast_rsqrt(good ? pivot : 1);
#pragma unroll
      for (int r = i + 1; r < square_rows; r++) x[r] -= broadcast(x[i], r) * x[i];
    }
    if (lane_id() >= square_rows && lane_id() < 2 * square_rows)
#pragma unroll
      for (int i = 0; i < square_rows; i++) m_.corner[warp_id()][i * square_rows + c - square_rows] = x[i];
    warp_sync();
    return good;
  }

  /* 8 rows of [R, R^-H], also in `panel`: a thread for four of them in a column. */
  __device__ __forceinline__ void make_rows(int at) const {
    const int j = thread_id() % N, half = thread_id() / N * 4;
    const double *corner = m_.corner[warp_id()];
    double y[4] = {};
    if (j < padded_) {
      if (j >= at && j < at + square_rows) {
#pragma unroll
        for (int i = 0; i < 4; i++) y[i] = corner[(half + i) * square_rows + j - at];
      } else {
#pragma unroll
        for (int l = 0; l < square_rows; l++) {
          const double x = m_.x[(at + l) * ld + j];
#pragma unroll
          for (int i = 0; i < 4; i++) y[i] = fused(corner[(half + i) * square_rows + l], x, y[i]);
        }
      }
#pragma unroll
      for (int i = 0; i < 4; i++) m_.panel[(half + i) * panel_ld + j] = y[i];
    }
    block_sync();
    if (j < at + square_rows)
#pragma unroll
      for (int i = 0; i < 4; i++) m_.x[(at + half + i) * ld + j] = y[i];
  }

  /* 16 x 8 of what is not yet known. */
  struct tile {
    int col;
    double c[4], b[2];
    bool in[4];
  };
  __device__ __forceinline__ void read_tile(tile &t, int top, int row, int number) const {
    const int known = top / 8, g = lane_id() / 4, q = lane_id() % 4;
    t.col = number < known ? 8 * number : row + 8 * (number - known);
#pragma unroll
    for (int e = 0; e < 2; e++) t.b[e] = m_.panel[(q + 4 * e) * panel_ld + t.col + g];
#pragma unroll
    for (int e = 0; e < 4; e++) {
      const int i = row + square_tile_row(e), j = t.col + square_tile_col(e);
      t.in[e] = i < padded_ && (j < top || j >= i);
      t.c[e] = t.in[e] ? m_.x[i * ld + j] : 0;
    }
  }
  __device__ __forceinline__ void write_tile(const tile &t, int row) const {
#pragma unroll
    for (int e = 0; e < 4; e++)
      if (t.in[e]) m_.x[(row + square_tile_row(e)) * ld + t.col + square_tile_col(e)] = t.c[e];
  }

  /* The rows from `top` on: without the product of R's columns there and the 8 rows above. A warp has two
   * tiles at a time, so that one's loads run beside the other's. */
  __device__ __forceinline__ void subtract(int top) const {
    const int g = lane_id() / 4, q = lane_id() % 4;
    int turn = warp_id();
    for (int row = top; row < padded_; row += 16) {
      const int count = top / 8 + (padded_ - row) / 8;
      double a[4];
#pragma unroll
      for (int e = 0; e < 4; e++) a[e] = -m_.panel[(q + e % 2 * 4) * panel_ld + row + g + e / 2 * 8];
      while (turn < count) {
        const bool two = turn + P < count;
        tile x, y;
        read_tile(x, top, row, turn);
        if (two) read_tile(y, top, row, turn + P);
        multiply_add(x.c[0], x.c[1], x.c[2], x.c[3], a[0], a[1], a[2], a[3], x.b[0], x.b[1]);
        if (two) multiply_add(y.c[0], y.c[1], y.c[2], y.c[3], a[0], a[1], a[2], a[3], y.b[0], y.b[1]);
        write_tile(x, row);
        if (two) write_tile(y, row);
        turn += two ? 2 * P : P;
      }
      turn -= count;
    }
  }

  square_memory<N, P> &m_;
  square_scales<N> &s_;
  double *sums_;
  int cols_, padded_;
  double length_, condition_;
};

} // namespace bqr

#endif
