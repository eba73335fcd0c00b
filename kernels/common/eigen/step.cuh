/* SPDX-License-Identifier: BSD-3-Clause */
/* What reductions to tridiagonal form, as LAPACK's xSYTD2 does it, have in common, whichever threads have the
 * matrix, whose largest entry is near 1. */
#ifndef BQR_KERNELS_COMMON_EIGEN_STEP_CUH
#define BQR_KERNELS_COMMON_EIGEN_STEP_CUH

#include "common/panel/larfg.cuh"

namespace bqr {

/* Of a squared norm that is nothing beside A's. */
template <class R> constexpr R least2_of_step = sizeof(R) > 4 ? R(0x1p-300) : R(0x1p-80f);

/* An entry z of A - v w^H - w v^H. */
template <class T> __device__ __forceinline__ T updated(T z, T vi, T wi, T vj, T wj) {
  return madd(-vi, conj(wj), madd(-wi, conj(vj), z));
}

} // namespace bqr

#endif
