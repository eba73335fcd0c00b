/* SPDX-License-Identifier: BSD-3-Clause */
/* As lane_pairs.cuh, by a block of threads, of which each has an eigenvalue; vectors lie in memory by rows.
 * In shared memory a vector's factors take no more room than itself: see twisted_in_place. */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_THREAD_PAIRS_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_THREAD_PAIRS_CUH

#include "common/simt/block.cuh"
#include "common/eigen/twisted.cuh"
#include "twisted_in_place.cuh"

namespace bqr {

/* A column of a matrix that is stored by rows. */
struct strided_column {
  double *first;
  int ld;
  __device__ __forceinline__ double &operator[](int i) const { return first[i * static_cast<int64_t>(ld)]; }
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
