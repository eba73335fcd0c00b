/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues and vectors of a real symmetric tridiagonal matrix T in double precision, |T| <= 1, a lane for
 * each: minors by which eigenvalues are told apart, twisted factorizations for vectors, and a correction of
 * vectors whose eigenvalues are close. Matrices of which that is not enough, those with eigenvalues closer
 * than 2^-26, leave it to QL steps.
 *
 * A vector z of a computed x has |T z - x z| of a few roundings eps; two of them, x and y, have a product of
 * 2 eps / |x - y| or so. One step of Newton and Schulz, Z := Z (3 I - Z^H Z) / 2, squares it, and leaves the
 * residuals as they are: what z gets of another vector, it gets times half that product, which is less than
 * eps / |x - y|. */
#ifndef BQR_KERNELS_COMMON_EIGEN_LANE_PAIRS_CUH
#define BQR_KERNELS_COMMON_EIGEN_LANE_PAIRS_CUH

#include "common/simt/warp.cuh"
#include "implicit_ql.cuh"
#include "twisted.cuh"

namespace bqr {

/* What the lanes of a matrix share. Rows before the first are those of a matrix of its own, 2 I. */
template <int N> struct tridiagonal_pairs {
  static constexpr int ld = N + 1;
  sturm_row rows[N];
  double e[N]; /* beside rows i and i + 1 */
  double z[N * ld];
  double inverse[N]; /* of norms of z's columns */
  double values[N];  /* by QL steps, with their columns of z, in ascending order */
  int order[N];
};

template <int N> class lane_pairs {
  static_assert(warp_lanes % N == 0, "a warp has whole matrices");

public:
  /* close: products of vectors whose eigenvalues are not that close are small enough. */
  __device__ lane_pairs(tridiagonal_pairs<N> &shared, int first, double close)
      : shared_(shared), first_(first), lane_(lane_id() & (N - 1)), close_(close), mine_(lane_ >= first) {}

  /* False: no convergence. All lanes of the warp call it together. */
  __device__ bool run(bool vectors) {
    const bool hard = !run_apart(vectors);
    if (!group_any(hard)) return true;
    warp_sync();
    const bool converged = hard ? leave_to_ql(vectors) : true;
    warp_sync();
    if (hard) take_from_ql(vectors);
    return group_max<N>(!converged) == 0;
  }

  /* The same without QL steps. False, to all lanes of a matrix: some of its eigenvalues are too close. */
  __device__ bool run_apart(bool vectors) {
    bool easy = find_value(vectors);
    if (vectors) {
      if (mine_ && easy) {
        double down[N], factor[N];
        const twisted_rest rest =
            twisted_vector<N>(shared_.rows, shared_.e, N, value_, column(lane_), down, factor);
        value_ += rest.shift;
        shared_.inverse[lane_] = rest.inverse;
        easy = rest.residual <= N * 0x1p-52;
      }
      warp_sync();
      easy = correct() && easy;
    } else {
      make_ascending();
    }
    return group_max<N>(!easy) == 0;
  }

  /* Of the lane: eigenvalues ascend with lanes from `first` on. */
  __device__ double value() const { return value_; }
  __device__ const double (&vector() const)[N] { return vector_; }

private:
  static constexpr double apart = 0x1p-26;

  __device__ double *column(int j) const { return shared_.z + j * tridiagonal_pairs<N>::ld; }

  __device__ bool find_value(bool vectors) {
    sturm_point *grid = reinterpret_cast<sturm_point *>(shared_.z);
    static_assert(sizeof(sturm_point) <= sizeof(double) * tridiagonal_pairs<N>::ld, "there is room");
    const int index = lane_ - first_;
    bool sound = sturm_at<N>(shared_.rows, N, sturm_place(lane_, N), grid[lane_]);
    warp_sync();
    const sturm_interval from = sturm_interval_of(grid, N, N - first_, index);
    warp_sync();
    sturm_search<N> search(shared_.rows, N, index);
    if (mine_) sound = search.run(from, vectors ? apart : 0) && sound;
    value_ = !mine_ ? 2 : first_ == N - 1 ? shared_.rows[N - 1].d : search.value();
    return sound && (search.alone() || !vectors || !mine_); /* others may have begun at a lane's point */
  }

  /* Roundings may have exchanged eigenvalues that are close. */
  __device__ void make_ascending() {
#pragma unroll
    for (int d = 1; d < N; d *= 2) {
      const double other = broadcast<N>(value_, lane_ - d);
      if (lane_ - d >= first_) value_ = fmax(value_, other);
    }
  }

  /* False: eigenvalues are too close. */
  __device__ bool correct() {
    const double inverse = shared_.inverse[lane_];
    double own[N], most = 0;
#pragma unroll
    for (int i = 0; i < N; i++) vector_[i] = own[i] = column(lane_)[i] * inverse;
    bool easy = true;
    for (int d = 1; d < N; d++) {
      const bool above = mine_ && lane_ + d < N, below = mine_ && lane_ - d >= first_;
      const double gap = broadcast<N>(value_, lane_ + d) - value_;
      const bool up = above && !(gap > close_);
      if (!group_any(up)) break;
      easy = easy && !(up && !(gap > apart));
      double product = 0;
      if (up) {
#pragma unroll
        for (int i = 0; i < N; i++) product = fused(column(lane_ + d)[i], own[i], product);
        product *= shared_.inverse[lane_ + d];
        subtract(product, lane_ + d);
      }
      most = fmax(most, fabs(product));
      const double other = broadcast<N>(product, lane_ - d);
      if (below && other != 0) subtract(other, lane_ - d);
    }
    return easy && most < 0x1p-27;
  }
  __device__ void subtract(double product, int j) {
    const double factor = -0.5 * product * shared_.inverse[j];
#pragma unroll
    for (int i = 0; i < N; i++) vector_[i] = fused(factor, column(j)[i], vector_[i]);
  }

  __device__ bool leave_to_ql(bool vectors) {
    constexpr int ld = tridiagonal_pairs<N>::ld;
    double *row = shared_.z + lane_;
    for (int i = 0; vectors && i < N; i++) row[i * ld] = i == lane_ ? 1 : 0;
    implicit_ql<N> ql(shared_.rows[lane_].d, lane_ < N - 1 ? shared_.e[lane_] : 0, vectors ? row : nullptr,
                      ld);
    const bool converged = ql.run();
    int before = first_;
    for (int i = 0; i < N; i++) {
      const double other = ql.value(i);
      before += i >= first_ && (other < ql.value() || (other == ql.value() && i < lane_));
    }
    if (mine_) {
      shared_.order[before] = lane_;
      shared_.values[before] = ql.value();
    }
    return converged;
  }

  __device__ void take_from_ql(bool vectors) {
    const int from = mine_ ? shared_.order[lane_] : 0;
#pragma unroll
    for (int i = 0; i < N; i++) vector_[i] = vectors ? column(from)[i] : 0;
    if (mine_) value_ = shared_.values[lane_];
  }

  tridiagonal_pairs<N> &shared_;
  int first_, lane_;
  double close_;
  bool mine_;
  double value_ = 2, vector_[N];
};

} // namespace bqr

#endif
