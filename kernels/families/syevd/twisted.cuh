/* SPDX-License-Identifier: BSD-3-Clause */
/* The eigenvector of an eigenvalue of T, by a lane: T - x = L D L^T from above and U D U^T from below, which
 * meet in the row where what is left of the diagonal is least (Fernando's twisted factorization). */
#ifndef BQR_KERNELS_FAMILIES_SYEVD_TWISTED_CUH
#define BQR_KERNELS_FAMILIES_SYEVD_TWISTED_CUH

#include "common/simt/scalar.cuh"
#include "sturm.cuh"

namespace bqr {

/* z^T T z - x, and |T z - x z|. */
struct twisted_rest {
  double shift, residual;
};

/* e[i]: beside rows i and i + 1. z: N numbers, of norm 1. */
template <int N>
__device__ __forceinline__ twisted_rest twisted_vector(const sturm_row *rows, const double *e, double x,
                                                       double *z) {
  constexpr double least = 0x1p-200;
  const auto pivot = [](double y) { return fabs(y) < least ? copysign(least, y) : y; };
  double down[N],
      factor[N]; /* pivots from above; z[i] over z[i - 1] below the twist; z has z[i] over z[i + 1] */
  double up = rows[N - 1].d - x;
  down[0] = rows[0].d - x;
#pragma unroll
  for (int i = 0; i < N - 1; i++) {
    const int j = N - 1 - i;
    const double above = e[i] * fast_recip(pivot(down[i])), below = e[j - 1] * fast_recip(pivot(up));
    z[i] = -above;
    factor[j] = -below;
    down[i + 1] = fused(-e[i], above, rows[i + 1].d - x);
    up = fused(-e[j - 1], below, rows[j - 1].d - x);
  }
  int twist = N - 1;
  double left = down[N - 1];
#pragma unroll
  for (int i = N - 2; i >= 0; i--) {
    const double here = fused(e[i], factor[i + 1], down[i]);
    if (fabs(here) < fabs(left)) {
      left = here;
      twist = i;
    }
  }
  double t = 0, norm2 = 0;
#pragma unroll
  for (int i = N - 1; i >= 0; i--) {
    t = i == twist ? 1.0 : i < N - 1 && i < twist ? z[i] * t : 0.0;
    down[i] = t;
    norm2 = fused(t, t, norm2);
  }
#pragma unroll
  for (int i = 0; i < N; i++) {
    t = i > 0 && i > twist ? factor[i] * t : down[i];
    if (i > twist) norm2 = fused(t, t, norm2);
    down[i] = t;
  }
  const double inverse = fast_rsqrt(norm2);
#pragma unroll
  for (int i = 0; i < N; i++) z[i] = down[i] * inverse;
  return {left * inverse * inverse, fabs(left) * inverse};
}

} // namespace bqr

#endif
