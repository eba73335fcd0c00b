/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues and vectors of a real symmetric tridiagonal matrix by QL steps with implicit shifts, xSTEQR's:
 * N lanes, each of which does the same with numbers of its own, and rotates its row of the vectors. */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_IMPLICIT_QL_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_IMPLICIT_QL_CUH

#include "common/simt/scalar.cuh"

namespace bqr {

template <int N> class implicit_ql {
public:
  /* T of |T| <= 1, rows `first` on. z: a row of the vectors so far, entries ld apart; null: none are wanted.
   */
  __device__ implicit_ql(int first, double *z, int ld) : first_(first), z_(z), ld_(ld) {}
  double d[N], e[N];

  /* Leaves eigenvalues in d, in any order. False: no convergence. */
  __device__ bool run() {
    int steps = 30 * N;
    for (int from = first_; from < N - 1;) {
      int to = from;
      while (to < N - 1 && fabs(e[to]) > negligible) to++;
      if (to == from)
        from++;
      else if (steps-- > 0)
        step(from, to);
      else
        return false;
    }
    return true;
  }

private:
  static constexpr double negligible = 0x1p-54, vanishing = 0x1p-900;

  /* Of rows from .. to, which no entry of e splits. */
  __device__ void step(int from, int to) {
    const double half = 0.5 * (d[from + 1] - d[from]), size = sqrt(fused(half, half, e[from] * e[from]));
    const double shift = d[from] - e[from] * (e[from] / (half + copysign(size, half)));
    double cosine = 1, sine = 1, moved = 0, bulge = d[to] - shift;
    for (int i = to - 1; i >= from; i--) {
      const double f = sine * e[i], b = cosine * e[i], norm2 = fused(f, f, bulge * bulge);
      if (norm2 < vanishing) { /* the matrix splits here */
        d[i + 1] -= moved;
        e[i + 1] = e[to] = 0;
        return;
      }
      const double inverse = fast_rsqrt(norm2);
      e[i + 1] = norm2 * inverse;
      sine = f * inverse;
      cosine = bulge * inverse;
      const double g = d[i + 1] - moved, r = fused(d[i] - g, sine, 2 * cosine * b);
      moved = sine * r;
      d[i + 1] = g + moved;
      bulge = fused(cosine, r, -b);
      if (z_) rotate(i, cosine, sine);
    }
    d[from] -= moved;
    e[from] = bulge;
    e[to] = 0;
  }

  __device__ void rotate(int i, double cosine, double sine) {
    const double x = z_[i * ld_], y = z_[(i + 1) * ld_];
    z_[(i + 1) * ld_] = fused(sine, x, cosine * y);
    z_[i * ld_] = fused(cosine, x, -(sine * y));
  }

  int first_;
  double *z_;
  int ld_;
};

} // namespace bqr

#endif
