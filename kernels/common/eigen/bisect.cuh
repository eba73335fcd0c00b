/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues of a real symmetric tridiagonal matrix by bisection, a thread for each: xSTEBZ's counts. */
#ifndef BQR_KERNELS_COMMON_EIGEN_BISECT_CUH
#define BQR_KERNELS_COMMON_EIGEN_BISECT_CUH

#include "common/panel/exponents.cuh"
#include "common/simt/scope.cuh"

namespace bqr {

/* Eigenvalues of T below x; squares: of e. */
template <class R> __device__ __forceinline__ int count_below(int n, const R *d, const R *squares, R x) {
  const R least = span<R>::least2; /* squares are at most 4 or so: no quotient overflows */
  R q = d[0] - x;
  int below = 0;
  for (int i = 0;; i++) {
    if (fabs(q) < least) q = -least;
    below += q < 0;
    if (i == n - 1) return below;
    q = fused(-squares[i], fast_recip(q), d[i + 1] - x);
  }
}

/* d: the eigenvalues, ascending; e, of which the squares are left, and w: n numbers. All in shared memory, of
 * magnitudes up to 1 or so. */
template <class R, class SCOPE> __device__ void bisect(SCOPE &scope, int n, R *d, R *e, R *w) {
  R low = d[0], high = d[0];
  for (int i = 0; i < n; i++) {
    const R radius = (i > 0 ? fabs(e[i - 1]) : R(0)) + (i < n - 1 ? fabs(e[i]) : R(0));
    low = fmin(low, d[i] - radius);
    high = fmax(high, d[i] + radius);
  }
  const R size = fmax(fabs(low), fabs(high)), margin = 2 * static_cast<R>(n) * limits<R>::eps * size;
  low -= margin;
  high += margin;
  scope.sync();
  for (int i = scope.thread(); i < n - 1; i += scope.threads()) e[i] *= e[i];
  scope.sync();
  for (int j = scope.thread(); j < n; j += scope.threads()) {
    R a = low, b = high;
    while (b - a > limits<R>::eps * size) {
      const R middle = R(0.5) * (a + b);
      if (!(middle > a && middle < b)) break;
      (count_below(n, d, e, middle) <= j ? a : b) = middle;
    }
    w[j] = R(0.5) * (a + b);
  }
  scope.sync();
  for (int j = scope.thread(); j < n; j += scope.threads()) {
    R most = w[j]; /* where roundings differ */
    for (int i = 0; i < j; i++) most = fmax(most, w[i]);
    d[j] = most;
  }
  scope.sync();
}

} // namespace bqr

#endif
