/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues and vectors of a real symmetric tridiagonal matrix by QL steps with implicit shifts, xSTEQR's:
 * N lanes of a warp, each with a row of T in registers and one of the vectors in shared memory. */
#ifndef BQR_KERNELS_COMMON_EIGEN_IMPLICIT_QL_CUH
#define BQR_KERNELS_COMMON_EIGEN_IMPLICIT_QL_CUH

#include "common/simt/warp.cuh"

namespace bqr {

template <int N> class implicit_ql {
public:
  /* T of |T| <= 1; d and e: the lane's, e beside the next row. z: the lane's row of the vectors so far,
   * entries ld apart; null: none are wanted. The N lanes call all words together, whatever others of the warp
   * do. */
  __device__ implicit_ql(double d, double e, double *z, int ld)
      : d_(d), e_(e), z_(z), ld_(ld), lane_(lane_id() & (N - 1)),
        mask_((N < warp_lanes ? (1u << (N & 31)) - 1 : full_mask) << (lane_id() & ~(N - 1))) {}

  /* False: no convergence. */
  __device__ bool run() {
    int steps = 30 * N;
    for (int from = 0; from < N - 1;) {
      const unsigned joined =
          __ballot_sync(mask_, lane_ < N - 1 && fabs(e_) > negligible) >> (lane_id() & ~(N - 1));
      const int to = from + __ffs(static_cast<int>(~(joined >> from))) - 1; /* the first row that is not */
      if (to == from)
        from++;
      else if (steps-- > 0)
        step(from, to);
      else
        return false;
    }
    return true;
  }

  /* An eigenvalue, in any order. */
  __device__ double value() const { return d_; }
  __device__ double value(int i) const { return broadcast<N>(d_, i, mask_); }

private:
  static constexpr double negligible = 0x1p-54, vanishing = 0x1p-900;

  /* Of rows from .. to, which no entry of e splits. */
  __device__ void step(int from, int to) {
    const double d = value(from), e = beside(from), half = 0.5 * (value(from + 1) - d),
                 shift = d - e * (e / (half + copysign(sqrt(fused(half, half, e * e)), half)));
    double cosine = 1, sine = 1, moved = 0, bulge = value(to) - shift;
    for (int i = to - 1; i >= from; i--) {
      const double here = beside(i), f = sine * here, b = cosine * here, norm2 = fused(f, f, bulge * bulge);
      const bool splits = norm2 < vanishing;
      const double inverse = splits ? 0 : fast_rsqrt(norm2), g = value(i + 1) - moved;
      sine = f * inverse;
      cosine = bulge * inverse;
      const double r = fused(value(i) - g, sine, 2 * cosine * b);
      moved = sine * r;
      if (lane_ == i + 1) {
        d_ = splits ? g : g + moved;
        e_ = norm2 * inverse;
      }
      if (lane_ == to) e_ = 0;
      if (splits) return;
      bulge = fused(cosine, r, -b);
      if (z_) rotate(i, cosine, sine);
    }
    if (lane_ == from) {
      d_ -= moved;
      e_ = bulge;
    }
  }
  __device__ double beside(int i) const { return broadcast<N>(e_, i, mask_); }

  __device__ void rotate(int i, double cosine, double sine) {
    const double x = z_[i * ld_], y = z_[(i + 1) * ld_];
    z_[(i + 1) * ld_] = fused(sine, x, cosine * y);
    z_[i * ld_] = fused(cosine, x, -(sine * y));
  }

  double d_, e_;
  double *z_;
  int ld_, lane_;
  unsigned mask_;
};

} // namespace bqr

#endif
