/* SPDX-License-Identifier: BSD-3-Clause */
/* One-sided Jacobi, as in jacobi.cuh, of columns that a block of threads holds in registers. A warp has two
 * groups of PAIRS columns, a lane their rows, of what is rotated and of what is rotated likewise. In a round
 * PAIRS pairs of columns are rotated: the sums of all are formed together, and their rotations computed by
 * different lanes. A sweep begins with the pairs within groups; then two groups meet in a warp for PAIRS
 * rounds, each column of one with each of the other, until through shared memory they go on to the next. */
#ifndef BQR_KERNELS_COMMON_PANEL_HELD_JACOBI_CUH
#define BQR_KERNELS_COMMON_PANEL_HELD_JACOBI_CUH

#include "jacobi.cuh"

namespace bqr {

/* For columns of which a lane has so many rows. */
template <class T> BQR_INLINE constexpr int jacobi_pairs(int each) {
  return static_cast<size_t>(each) * sizeof(T) <= 16 ? 8 : 4;
}
/* Warps for so many columns. */
template <class T> BQR_INLINE int jacobi_warps(int cols, int each) {
  return cols > 0 ? (cols - 1) / (2 * jacobi_pairs<T>(each)) + 1 : 1;
}
/* Elements of shared memory for columns of up to 32 * each rows. */
template <class T> BQR_INLINE size_t jacobi_elements(int cols, int each) {
  const size_t warps = static_cast<size_t>(jacobi_warps<T>(cols, each));
  return warps > 1 ? warps * 4 * jacobi_pairs<T>(each) * static_cast<size_t>(each) * warp_lanes : 0;
}

/* EACH: rows of a lane. */
template <class T, int EACH> class held_jacobi {
  using R = real_t<T>;
  static constexpr int held = 2 * EACH; /* of x, then of w */
  static constexpr int pairs = jacobi_pairs<T>(EACH), half = pairs / 2, share = warp_lanes / pairs;

public:
  /* x: the columns to be rotated. with_w: so is an identity. space: jacobi_elements(), may be x's memory. */
  __device__ __forceinline__ held_jacobi(const matrix_view<T> &x, bool with_w, T *space)
      : x_(x), with_w_(with_w), space_(space), warps_(jacobi_warps<T>(x.cols, EACH)), warp_(warp_id()) {
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
    block_sync();
  }

  /* False: still not orthogonal after most_sweeps. */
  __device__ __forceinline__ bool run() {
    const R tolerance = limits<R>::eps * (2 * sqrt(static_cast<R>(x_.rows)) + 4);
    for (int sweep = 0; sweep < most_sweeps; sweep++) {
      bool turned = false;
      exchange_halves();
      const int steps = x_.cols > pairs ? 2 * warps_ : 1;
      for (int step = 0; step < steps; step++) { /* the first is within groups */
        const int rounds = step == 0 ? pairs - 1 : pairs;
        for (int round = 0; round < rounds && warp_ < warps_; round++) {
          turned = rotate_pairs(tolerance, step == 0 || round == 0) || turned;
          if (step == 0)
            move_within();
          else
            move_across();
        }
        if (step == 0)
          exchange_halves();
        else if (warps_ > 1)
          move_groups();
      }
      if (!block_any(turned)) return true;
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

  /* f(registers, column) for the places of this warp before and after sweeps. */
  template <class F> __device__ __forceinline__ void for_places(F &&f) {
#pragma unroll
    for (int i = 0; i < pairs; i++) {
      f(top_[i], warp_ < warps_ ? warp_ * pairs + i : x_.cols);
      f(bottom_[i], warp_ < warps_ ? (warps_ + warp_) * pairs + i : x_.cols);
    }
  }

  /* f(i): lane share * i and the next ones have the sum over the warp. */
  template <class V, class F> __device__ __forceinline__ V sum_each(F &&f) const {
    V sums[pairs];
#pragma unroll
    for (int i = 0; i < pairs; i++) sums[i] = f(i);
    return group_sum_scatter<pairs>(sums);
  }
  static __device__ __forceinline__ R norm2(const T (&column)[held]) {
    R sum = 0;
#pragma unroll
    for (int e = 0; e < EACH; e++) sum = abs2_add(column[e], sum);
    return sum;
  }

  /* fresh: norms are summed up; else they are those of the round before, of bottoms one place further. */
  __device__ __forceinline__ bool rotate_pairs(R tolerance, bool fresh) {
    if (fresh) {
      top_norm_ = sum_each<R>([&](int i) { return norm2(top_[i]); });
      bottom_norm_ = sum_each<R>([&](int i) { return norm2(bottom_[i]); });
    } else {
      bottom_norm_ = broadcast(bottom_norm_, lane_id() + share);
    }
    const T product = sum_each<T>([&](int i) {
      T sum = zero<T>();
#pragma unroll
      for (int e = 0; e < EACH; e++) sum = cmadd(top_[i][e], bottom_[i][e], sum);
      return sum;
    });
    rotation<T> r;
    R moved, angle;
    const bool turns = find_rotation(top_norm_, bottom_norm_, product, tolerance, r, angle, moved);
    if (!group_any(turns)) return false;
    if (turns) {
      top_norm_ -= moved;
      bottom_norm_ += moved;
    } else {
      r = {R(1), R(0), one<T>()};
    }
    if constexpr (!is_complex<T>) { /* turned by 1 or -1: what differs is the sign of a column */
      r.sine = r.phase < 0 ? -r.sine : r.sine;
      r.phase = one<T>();
    }
#pragma unroll
    for (int i = 0; i < pairs; i++) {
      rotation<T> turn = {broadcast(r.cosine, share * i), broadcast(r.sine, share * i), one<T>()};
      if constexpr (is_complex<T>) turn.phase = broadcast(r.phase, share * i);
#pragma unroll
      for (int e = 0; e < held; e++)
        if (e < EACH || with_w_) turn.apply(top_[i][e], bottom_[i][e]);
    }
    /* What the small turns of a sweep do to the other products is below the tolerance. */
    const R small = tolerance / static_cast<R>(largest(x_.cols, 1));
    return group_any(turns && (angle * angle > small || r.sine * r.sine > small));
  }

  /* Group 0 in both halves of the first places of each pair, group 1 in those of the others, or back. */
  __device__ __forceinline__ void exchange_halves() {
#pragma unroll
    for (int i = 0; i < half; i++)
#pragma unroll
      for (int e = 0; e < held; e++) {
        const T t = top_[half + i][e];
        top_[half + i][e] = bottom_[i][e];
        bottom_[i][e] = t;
      }
  }

  /* Each group's columns go round: the first top place keeps its column; right along the tops, left along the
   * bottoms. */
  __device__ __forceinline__ void move_within() {
#pragma unroll
    for (int g = 0; g < pairs; g += half)
#pragma unroll
      for (int e = 0; e < held; e++) {
        const T last = top_[g + half - 1][e], first = bottom_[g][e];
#pragma unroll
        for (int i = half - 1; i > 1; i--) top_[g + i][e] = top_[g + i - 1][e];
        top_[g + 1][e] = first;
#pragma unroll
        for (int i = 0; i < half - 1; i++) bottom_[g + i][e] = bottom_[g + i + 1][e];
        bottom_[g + half - 1][e] = last;
      }
  }

  __device__ __forceinline__ void move_across() {
#pragma unroll
    for (int e = 0; e < held; e++) {
      const T first = bottom_[0][e];
#pragma unroll
      for (int i = 0; i < pairs - 1; i++) bottom_[i][e] = bottom_[i + 1][e];
      bottom_[pairs - 1][e] = first;
    }
  }

  /* A warp's top or bottom group in shared memory. */
  __device__ __forceinline__ T *group_at(int warp, bool bottom) const {
    return space_ + (2 * warp + bottom) * pairs * held * warp_lanes + lane_id();
  }
  /* f(element here, element there) */
  template <class F> __device__ __forceinline__ void for_group(T (&group)[pairs][held], T *there, F &&f) {
#pragma unroll
    for (int i = 0; i < pairs; i++)
#pragma unroll
      for (int e = 0; e < held; e++)
        if (e < EACH || with_w_) f(group[i][e], there[(i * held + e) * warp_lanes]);
  }

  /* Groups go round as columns do in move_within(). */
  __device__ __forceinline__ void move_groups() {
    const auto store = [](const T &here, T &there) { there = here; };
    const auto load = [](T &here, const T &there) { here = there; };
    if (warp_ < warps_) {
      for_group(top_, group_at(warp_, false), store);
      for_group(bottom_, group_at(warp_, true), store);
    }
    block_sync();
    if (warp_ < warps_) {
      if (warp_ > 0) for_group(top_, warp_ == 1 ? group_at(0, true) : group_at(warp_ - 1, false), load);
      for_group(bottom_, warp_ == warps_ - 1 ? group_at(warp_, false) : group_at(warp_ + 1, true), load);
    }
    block_sync();
  }

  matrix_view<T> x_;
  bool with_w_;
  T *space_;
  int warps_, warp_;
  R top_norm_, bottom_norm_; /* squared, of the pair whose rotation this lane computes */
  T top_[pairs][held], bottom_[pairs][held];
};

} // namespace bqr

#endif
