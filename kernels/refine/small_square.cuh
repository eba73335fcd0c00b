/* SPDX-License-Identifier: BSD-3-Clause */
/* R^-H of a small X = A^H A = R^H R in double precision, by one block of P warps, from shared memory to
 * shared memory. With D the powers of two that bring the lengths of A's columns into [1, 2), it is that of D
 * X D. R itself is not kept: all that it is wanted for are products with R^-1 and R^-H. */
#ifndef BQR_KERNELS_REFINE_SMALL_SQUARE_CUH
#define BQR_KERNELS_REFINE_SMALL_SQUARE_CUH

#include "common/matrix/member.cuh"
#include "common/panel/columns.cuh"
#include "common/panel/exponents.cuh"
#include "common/simt/block.cuh"
#include "row_reduction.cuh"

namespace bqr {

constexpr double least_pivot = 1e-10;  /* of a column's squared length: condition numbers up to 1e5 or so */
constexpr double most_condition = 3e5; /* by Frobenius norms: up to it A D R^-1 is orthogonal to 1e-5 */
constexpr double least_square = 1e-240, largest_square = 1e240; /* that are neither too small nor too large */

/* Of up to N columns. x: by rows. Sums take 2 * P * 4 doubles. */
template <int N, int P> struct square_memory {
  static constexpr int ld = N + 1;
  double x[N * ld];
  typename row_reduction<double, N, P * warp_lanes>::memory rows;
};
template <int N> struct square_scales {
  double lengths2[N]; /* of columns of A D, squared */
  int exponents[N];   /* of D */
};

template <int N, int P> class small_square {
  static constexpr int threads = P * warp_lanes, ld = square_memory<N, P>::ld, multiple = 4;
  static_assert(threads == 2 * N, "two threads to a row");

public:
  __device__ __forceinline__ small_square(square_memory<N, P> &m, square_scales<N> &s, double *sums, int cols)
      : m_(m), s_(s), sums_(sums), cols_(cols), padded_((cols + multiple - 1) / multiple * multiple) {}

  /* ||A D||_F, after invert(). */
  __device__ __forceinline__ double length() const { return length_; }

  /* X, of which what is on and above the diagonal is given, becomes R^-H, lower triangular. Whether columns
   * are far enough from being dependent for that. Barriers stand before and behind it. */
  __device__ __forceinline__ bool invert() {
    if (!scale()) return false;
    row_reduction<double, N, threads> rows;
    rows.load([&](int i, int j) { return i < padded_ && j < padded_ ? m_.x[i * ld + j] : double(i == j); });
    if (!rows.run(m_.rows, padded_, [&](int i) { return least_pivot * s_.lengths2[i]; })) return false;
    rows.each([&](int i, int j, double x) {
      if (j <= i && i < padded_) m_.x[i * ld + j] = x;
    });
    block_sync();
    double sums[4] = {};
    for (int i = warp_id(); i < cols_; i += P)
      for (int j = lane_id(); j <= i; j += warp_lanes)
        sums[0] = fused(m_.x[i * ld + j], m_.x[i * ld + j], sums[0]);
    for (int j = thread_id(); j < cols_; j += threads) sums[1] += s_.lengths2[j];
    block_reducer<double, 4> reducer(sums_);
    reducer.sum(sums);
    length_ = sqrt(sums[1]);
    return length_ * sqrt(sums[0]) <= most_condition;
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

  square_memory<N, P> &m_;
  square_scales<N> &s_;
  double *sums_;
  int cols_, padded_;
  double length_;
};

} // namespace bqr

#endif
