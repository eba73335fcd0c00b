/* SPDX-License-Identifier: BSD-3-Clause */
/* The eigenvector of an eigenvalue of T, by a thread: T - x = L D L^T from above and U D U^T from below,
 * which meet in the row where what is left of the diagonal is least (Fernando's twisted factorization). */
#ifndef BQR_KERNELS_COMMON_EIGEN_TWISTED_CUH
#define BQR_KERNELS_COMMON_EIGEN_TWISTED_CUH

#include "sturm.cuh"

namespace bqr {

/* Of a vector z: z^T T z - x and |T z - x z| for z / |z|, and 1 / |z|. */
struct twisted_rest {
  double shift, residual, inverse;
};

/* N: as sturm_at's. e[i]: beside rows i and i + 1. z, down and factor: n numbers each, [i]. */
template <int N, class Z, class WORK>
__device__ __forceinline__ twisted_rest twisted_vector(const sturm_row *rows, const double *e, int n,
                                                       double x, Z &&z, WORK &&down, WORK &&factor) {
  constexpr double least = 0x1p-200;
  constexpr int at_once = N ? N : 4;
  const int rows_in_all = N ? N : n;
  const auto pivot = [](double y) { return fabs(y) < least ? copysign(least, y) : y; };
  /* down: pivots from above; factor: z[i] over z[i - 1] below the twist; z: z[i] over z[i + 1] above it */
  double pivot_up = rows[rows_in_all - 1].d - x, pivot_down = rows[0].d - x;
#pragma unroll(at_once)
  for (int i = 0; i < rows_in_all - 1; i++) {
    const int j = rows_in_all - 1 - i;
    const double above = e[i] * fast_recip(pivot(pivot_down)), below = e[j - 1] * fast_recip(pivot(pivot_up));
    down[i] = pivot_down;
    z[i] = -above;
    factor[j] = -below;
    pivot_down = fused(-e[i], above, rows[i + 1].d - x);
    pivot_up = fused(-e[j - 1], below, rows[j - 1].d - x);
  }
  int twist = rows_in_all - 1;
  double left = pivot_down, norm2 = 0, t = 1;
#pragma unroll(at_once)
  for (int i = rows_in_all - 2; i >= 0; i--) {
    const double here = fused(e[i], factor[i + 1], down[i]);
    if (fabs(here) < fabs(left)) {
      left = here;
      twist = i;
    }
  }
#pragma unroll(at_once)
  for (int i = rows_in_all - 1; i >= 0; i--)
    if (i <= twist) {
      if (i < twist) t *= z[i];
      z[i] = t;
      norm2 = fused(t, t, norm2);
    }
  t = 1;
#pragma unroll(at_once)
  for (int i = 1; i < rows_in_all; i++)
    if (i > twist) {
      t *= factor[i];
      z[i] = t;
      norm2 = fused(t, t, norm2);
    }
  const double inverse = fast_rsqrt(norm2);
  return {left * inverse * inverse, fabs(left) * inverse, inverse};
}

} // namespace bqr

#endif
