/* SPDX-License-Identifier: BSD-3-Clause */
/* The vector of twisted.cuh where a thread has room for itself alone. Compiles for the host, too. */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_TWISTED_IN_PLACE_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_TWISTED_IN_PLACE_CUH

#include "common/matrix/member.cuh"
#include "common/eigen/twisted.cuh"

namespace bqr {

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

} // namespace bqr

#endif
