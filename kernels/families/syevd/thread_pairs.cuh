/* SPDX-License-Identifier: BSD-3-Clause */
/* As lane_pairs.cuh, by a block of threads, of which each has an eigenvalue; vectors lie in memory by rows.
 * In shared memory a vector's factors take no more room than itself: see twisted_in_place. */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_THREAD_PAIRS_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_THREAD_PAIRS_CUH

#include "common/simt/block.cuh"
#include "twisted.cuh"

namespace bqr {

/* A column of a matrix that is stored by rows. */
struct strided_column {
  double *first;
  int ld;
  __device__ __forceinline__ double &operator[](int i) const { return first[i * static_cast<int64_t>(ld)]; }
};

/* As twisted_vector(), with z alone for memory: of the pivots from above those up to the middle row are kept,
 * as factors of z, and of those from below likewise. The others are computed twice, until the twist is known
 * and as far as it. Row i of z is at i * ld. */
class twisted_in_place {
public:
  __device__ __forceinline__ twisted_in_place(const sturm_row *rows, const double *e, int n, double x,
                                              double *z)
      : rows_(rows), e_(e), n_(n), middle_(n / 2), ld_(n), x_(x), z_(z) {}

  __device__ __forceinline__ twisted_rest run() {
    go_to_middle();
    const double down = down_, up = up_;
    find_twist();
    go_to_twist(twist_ < middle_, twist_ < middle_ ? up : down);
    return multiply();
  }

private:
  __device__ __forceinline__ static double pivot(double y) {
    constexpr double least = 0x1p-200;
    return fabs(y) < least ? copysign(least, y) : y;
  }
  __device__ __forceinline__ double &z(int i) const { return z_[i * ld_]; }
  __device__ __forceinline__ double diagonal(int i) const { return rows_[i].d - x_; }

  /* From a pivot to the next one, which is `to`, over an entry beside the diagonal. Returns the factor. */
  __device__ __forceinline__ double step(double &p, double beside, int to) const {
    const double factor = -(beside * fast_recip(pivot(p)));
    p = fused(beside, factor, diagonal(to));
    return factor;
  }

  __device__ __forceinline__ void go_to_middle() {
    down_ = diagonal(0);
    up_ = diagonal(n_ - 1);
#pragma unroll 2
    for (int i = 0; i < middle_; i++) {
      const int j = n_ - 1 - i;
      z(i) = step(down_, e_[i], i + 1);
      if (j > middle_) z(j) = step(up_, e_[j - 1], j - 1);
    }
    twist_ = middle_;
    left_ = down_ + (up_ - diagonal(middle_));
  }

  __device__ __forceinline__ void note(double here, int i) {
    if (fabs(here) < fabs(left_)) {
      left_ = here;
      twist_ = i;
    }
  }

  __device__ __forceinline__ void find_twist() {
#pragma unroll 2
    for (int s = 1; s <= middle_; s++) {
      const int i = middle_ + s, j = middle_ - s;
      if (i < n_) {
        step(down_, e_[i - 1], i);
        note(i < n_ - 1 ? fused(e_[i], z(i + 1), down_) : down_, i);
      }
      step(up_, e_[j], j);
      note(j > 0 ? fused(e_[j - 1], z(j - 1), up_) : up_, j);
    }
  }

  __device__ __forceinline__ void go_to_twist(bool up, double p) const {
    const int by = up ? -1 : 1;
#pragma unroll 2
    for (int i = middle_; i != twist_; i += by) z(i) = step(p, e_[up ? i - 1 : i], i + by);
  }

  __device__ __forceinline__ twisted_rest multiply() const {
    constexpr int at_once = 4;
    double above = 1, below = 1, norm2[2] = {1, 0};
    const int steps = largest(twist_, n_ - 1 - twist_);
    z(twist_) = 1;
    for (int s = 1; s <= steps; s += at_once) {
      double factor[2][at_once];
#pragma unroll
      for (int q = 0; q < at_once; q++) {
        const int i = twist_ - s - q, j = twist_ + s + q;
        factor[0][q] = i >= 0 ? z(i) : 0;
        factor[1][q] = j < n_ ? z(j) : 0;
      }
#pragma unroll
      for (int q = 0; q < at_once; q++) {
        const int i = twist_ - s - q, j = twist_ + s + q;
        above *= factor[0][q];
        below *= factor[1][q];
        norm2[0] = fused(above, above, norm2[0]);
        norm2[1] = fused(below, below, norm2[1]);
        if (i >= 0) z(i) = above;
        if (j < n_) z(j) = below;
      }
    }
    const double inverse = fast_rsqrt(norm2[0] + norm2[1]);
    return {left_ * inverse * inverse, fabs(left_) * inverse, inverse};
  }

  const sturm_row *rows_;
  const double *e_;
  int n_, middle_, twist_ = 0, ld_;
  double x_, *z_, down_ = 0, up_ = 0, left_ = 0;
};

class thread_pairs {
public:
  static constexpr int most_near = 8; /* eigenvalues close to one on one side */

  BQR_INLINE static size_t bytes(int n) {
    return (sizeof(sturm_row) + sizeof(sturm_point) + sizeof(double) * (3 + most_near)) *
           static_cast<size_t>(n);
  }

  __device__ thread_pairs(int n, unsigned char *memory)
      : rows(reinterpret_cast<sturm_row *>(memory)), e(reinterpret_cast<double *>(rows + n)), n_(n),
        values_(e + n), inverse_(values_ + n), products_(inverse_ + n),
        points_(reinterpret_cast<sturm_point *>(products_ + most_near * n)), j_(thread_id()), mine_(j_ < n) {}

  /* T, |T| <= 1, to be written before. e[i]: beside rows i and i + 1. */
  sturm_row *rows;
  double *e;

  /* False: to be left to others. All threads of the block call words together. */
  __device__ bool find_values(bool vectors) {
    bool sound = true;
    if (mine_) sound = sturm_at<0>(rows, n_, sturm_place(j_, n_), points_[j_]);
    block_sync();
    if (mine_) {
      sturm_search<0> search(rows, n_, j_);
      sound = search.run(sturm_interval_of(points_, n_, n_, j_), vectors ? apart : 0) && sound;
      sound = sound && (search.alone() || !vectors);
      values_[j_] = search.value();
    }
    if (block_any(!sound)) return false;
    double value = 0;
    if (mine_) {
      value = values_[j_];
      for (int i = 0; i < j_ && !vectors; i++) value = fmax(value, values_[i]); /* roundings may differ */
    }
    block_sync();
    if (mine_) values_[j_] = value;
    return true;
  }
  /* The thread's eigenvalue. */
  __device__ double value() const { return values_[j_]; }

  /* z: n x n numbers; down, factor: likewise, or none, where z lies in shared memory. close: as lane_pairs'.
   * Vectors come to be in `to`, n x n numbers by rows, which may be the same memory as down. */
  template <bool IN_PLACE, class R>
  __device__ __forceinline__ bool find_vectors(double *z, double *down, double *factor, R *to, double close) {
    bool easy = true;
    if (mine_) {
      twisted_rest rest;
      if constexpr (IN_PLACE)
        rest = twisted_in_place(rows, e, n_, values_[j_], z + j_).run();
      else
        rest = twisted_vector<0>(rows, e, n_, values_[j_], strided_column{z + j_, n_},
                                 strided_column{down + j_, n_}, strided_column{factor + j_, n_});
      easy = rest.residual <= n_ * 0x1p-52;
      values_[j_] += rest.shift;
      inverse_[j_] = rest.inverse;
    }
    block_sync();
    double product[most_near] = {}, most = 0;
    int near = 0; /* eigenvalues that any thread has to look at */
#pragma unroll
    for (int d = 1; d <= most_near + 1; d++) {
      const double gap = mine_ && j_ + d < n_ ? values_[j_ + d] - values_[j_] : 2;
      if (near < d - 1 || !block_any(!(gap > close))) continue;
      if (d > most_near) {
        easy = false;
        continue;
      }
      near = d;
      easy = easy && gap > apart;
      if (!(gap > close)) product[least(d, most_near) - 1] = product_with(z, d);
      if (mine_) products_[(d - 1) * n_ + j_] = product[least(d, most_near) - 1];
      most = fmax(most, fabs(product[least(d, most_near) - 1]));
    }
    if (block_any(!easy || !(most < 0x1p-27))) return false;
    if (mine_) correct(z, to, product, near);
    return true;
  }

private:
  static constexpr double apart = 0x1p-26;

  __device__ __forceinline__ double product_with(const double *z, int d) const {
    double sum = 0;
#pragma unroll 8
    for (int i = 0; i < n_; i++) {
      const double *row = z + i * n_ + j_;
      sum = fused(row[0], row[d], sum);
    }
    return sum * inverse_[j_] * inverse_[j_ + d];
  }

  template <class R>
  __device__ __forceinline__ void correct(const double *z, R *to, const double (&product)[most_near],
                                          int near) const {
    double above[most_near], below[most_near];
#pragma unroll
    for (int d = 1; d <= most_near; d++) {
      above[d - 1] = d <= near && j_ + d < n_ ? -0.5 * product[d - 1] * inverse_[j_ + d] : 0;
      below[d - 1] = d <= near && j_ >= d ? -0.5 * products_[(d - 1) * n_ + j_ - d] * inverse_[j_ - d] : 0;
    }
    const double own = inverse_[j_];
#pragma unroll 2
    for (int i = 0; i < n_; i++) {
      const int at = i * n_ + j_;
      double sum = z[at] * own;
#pragma unroll
      for (int d = 1; d <= most_near; d++)
        if (d <= near) {
          if (above[d - 1] != 0) sum = fused(above[d - 1], z[at + d], sum);
          if (below[d - 1] != 0) sum = fused(below[d - 1], z[at - d], sum);
        }
      to[at] = static_cast<R>(sum);
    }
  }

  int n_;
  double *values_, *inverse_, *products_;
  sturm_point *points_;
  int j_;
  bool mine_;
};

} // namespace bqr

#endif
