/* SPDX-License-Identifier: BSD-3-Clause */
/* The hardware's estimates of 1 / sqrt(x) and 1 / x, to about 20 bits, for x well inside the normal range; on
 * the host the functions themselves. */
#ifndef BQR_KERNELS_COMMON_PTX_APPROXIMATE_CUH
#define BQR_KERNELS_COMMON_PTX_APPROXIMATE_CUH

#include <cmath>

namespace bqr {

__host__ __device__ __forceinline__ float estimated_rsqrt(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return static_cast<float>(1 / std::sqrt(static_cast<double>(x)));
#endif
}
__host__ __device__ __forceinline__ double estimated_rsqrt(double x) {
#ifdef __CUDA_ARCH__
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
#else
  return 1 / std::sqrt(x);
#endif
}
__host__ __device__ __forceinline__ float estimated_recip(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}
__host__ __device__ __forceinline__ double estimated_recip(double x) {
#ifdef __CUDA_ARCH__
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
#else
  return 1 / x;
#endif
}

} // namespace bqr

#endif
