/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided Jacobi, as in jacobi.cuh, of columns that a block of threads holds in registers. A warp has four
 * pairs of columns, a lane their rows, of what is rotated and of what is rotated likewise; sums of a round's
 * four pairs are formed together, and their rotations computed by different lanes. From one round to the next
 * columns move by a place, those in two of a warp's eight places to its neighbours, through shared memory. */
#ifndef BQR_KERNELS_COMMON_PANEL_HELD_JACOBI_CUH
#define BQR_KERNELS_COMMON_PANEL_HELD_JACOBI_CUH

#include "jacobi.cuh"

namespace bqr {

constexpr int jacobi_pairs = 4;

/* Warps for so many columns. */
BQR_INLINE int jacobi_warps(int cols) { return (cols - 1) / (2 * jacobi_pairs) + 1; }
/* Elements of shared memory for columns of up to 32 * each rows. */
BQR_INLINE size_t jacobi_elements(int cols, int each) {
  return size_t(2) * static_cast<size_t>(jacobi_warps(cols)) * 2 * 2 * static_cast<size_t>(each) * warp_lanes;
}

/* EACH: rows of a lane. */
template <class T, int EACH> class held_jacobi {
  using R = real_t<T>;
  static constexpr int held = 2 * EACH; /* of x, then of w */

public:
  /* x: the columns to be rotated. with_w: so is an identity. space: jacobi_elements(). */
  __device__ __forceinline__ held_jacobi(const matrix_view<T> &x, bool with_w, T *space)
      : x_(x), with_w_(with_w), space_(space), warps_(jacobi_warps(x.cols)), warp_(warp_id()) {
    for_places([&](T(&column)[held], int col) {
#pragma unroll
      for (int e = 0; e < held; e++) {
        const int row = row_of(e);
        column[e] = col >= x_.cols  ? zero<T>()
                    : e >= EACH     ? (row == col ? one<T>() : zero<T>())
                    : row < x_.rows ? *x_.at(row, col)
                                    : zero<T>();
      }
    });
  }

  /* False: still not orthogonal after most_sweeps. */
  __device__ bool run() {
    const R tolerance = limits<R>::eps * (2 * sqrt(static_cast<R>(x_.rows)) + 4);
    for (int sweep = 0; sweep < most_sweeps; sweep++) {
      bool rotated = false;
      for (int round = 0; round < 2 * jacobi_pairs * warps_ - 1; round++) {
        if (warp_ < warps_) rotated = rotate_pairs(tolerance) || rotated;
        move_columns(round % 2);
      }
      if (!block_any(rotated)) return true;
    }
    return x_.cols < 2;
  }

  /* What has become of x, and of the identity. */
  __device__ __forceinline__ void store(const matrix_view<T> &w) {
    for_places([&](T(&column)[held], int col) {
#pragma unroll
      for (int e = 0; e < held; e++) {
        const matrix_view<T> &to = e < EACH ? x_ : w;
        if (col < x_.cols && row_of(e) < to.rows && (e < EACH || with_w_)) *to.at(row_of(e), col) = column[e];
      }
    });
  }

private:
  __device__ __forceinline__ int row_of(int e) const { return lane_id() + e % EACH * warp_lanes; }

  /* f(registers, column) for the places of this warp before and after whole sweeps. */
  template <class F> __device__ __forceinline__ void for_places(F &&f) {
    const int first = warp_ * jacobi_pairs;
#pragma unroll
    for (int i = 0; i < jacobi_pairs; i++) {
      f(top_[i], warp_ < warps_ ? first + i : x_.cols);
      f(bottom_[i], warp_ < warps_ ? (warps_ * jacobi_pairs + first + i) : x_.cols);
    }
  }

  /* The sums of pair i, for lanes 8 k + 2 i and the next one: |top|^2, |bottom|^2, real and imaginary part of
   * the product for k = 0, 1, 2 and 3. */
  __device__ __forceinline__ R sum_pairs() const {
    R sums[4 * jacobi_pairs];
#pragma unroll
    for (int i = 0; i < jacobi_pairs; i++) {
      R a = 0, b = 0;
      T product = zero<T>();
#pragma unroll
      for (int e = 0; e < EACH; e++) {
        a = abs2_add(top_[i][e], a);
        b = abs2_add(bottom_[i][e], b);
        product = cmadd(top_[i][e], bottom_[i][e], product);
      }
      sums[i] = a;
      sums[jacobi_pairs + i] = b;
      sums[2 * jacobi_pairs + i] = real_part(product);
      sums[3 * jacobi_pairs + i] = imag_part(product);
    }
    return group_sum_scatter<4 * jacobi_pairs>(sums);
  }

  __device__ __forceinline__ bool rotate_pairs(R tolerance) {
    constexpr int kind = 2 * jacobi_pairs; /* lanes of sums of one kind */
    const R sum = sum_pairs();
    const int mine = lane_id() % kind;
    const R a = broadcast(sum, mine), b = broadcast(sum, kind + mine), re = broadcast(sum, 2 * kind + mine);
    T product = make<T>(re);
    if constexpr (is_complex<T>) product.im = broadcast(sum, 3 * kind + mine);
    rotation<T> r;
    const bool turns = find_rotation(a, b, product, tolerance, r);
    if (!group_any(turns)) return false;
    if (!turns) r = {R(1), R(0), one<T>()};
    if constexpr (!is_complex<T>) { /* turned by 1 or -1: what differs is the sign of a column */
      r.sine = r.phase < 0 ? -r.sine : r.sine;
    }
#pragma unroll
    for (int i = 0; i < jacobi_pairs; i++) {
      rotation<T> turn = {broadcast(r.cosine, 2 * i), broadcast(r.sine, 2 * i), one<T>()};
      if constexpr (is_complex<T>) turn.phase = broadcast(r.phase, 2 * i);
#pragma unroll
      for (int e = 0; e < held; e++)
        if (e < EACH || with_w_) turn.apply(top_[i][e], bottom_[i][e]);
    }
    return true;
  }

  /* What a warp gives away in a round of that parity: of the last top place, or of the first bottom place. */
  __device__ __forceinline__ T *gift(int parity, int warp, bool bottom) const {
    return space_ + ((parity * warps_ + warp) * 2 + bottom) * held * warp_lanes + lane_id();
  }

  /* The first top place keeps its column; the others go round: right along the tops, left along the bottoms.
   */
  __device__ __forceinline__ void move_columns(int parity) {
    constexpr int last = jacobi_pairs - 1;
    const bool first_warp = warp_ == 0, last_warp = warp_ == warps_ - 1;
    if (warp_ < warps_) {
      give(gift(parity, warp_, false), top_[last], !last_warp);
      give(gift(parity, warp_, true), bottom_[0], !first_warp);
    }
    if (warps_ > 1) block_sync();
    if (warp_ >= warps_) return;
    const T *left = gift(parity, warp_ - 1, false), *right = gift(parity, warp_ + 1, true);
#pragma unroll
    for (int e = 0; e < held; e++) {
      const T from_left = first_warp ? bottom_[0][e] : left[e * warp_lanes];
      const T from_right = last_warp ? top_[last][e] : right[e * warp_lanes];
#pragma unroll
      for (int i = last; i > 1; i--) top_[i][e] = top_[i - 1][e];
      top_[1][e] = first_warp ? from_left : top_[0][e];
      top_[0][e] = first_warp ? top_[0][e] : from_left;
#pragma unroll
      for (int i = 0; i < last; i++) bottom_[i][e] = bottom_[i + 1][e];
      bottom_[last][e] = from_right;
    }
  }
  __device__ __forceinline__ void give(T *to, const T (&column)[held], bool any) const {
#pragma unroll
    for (int e = 0; e < held; e++)
      if (any) to[e * warp_lanes] = column[e];
  }

  matrix_view<T> x_;
  bool with_w_;
  T *space_;
  int warps_, warp_;
  T top_[jacobi_pairs][held], bottom_[jacobi_pairs][held];
};

} // namespace bqr

#endif
