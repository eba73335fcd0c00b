/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of FP16 numbers, the first one in the lower half. */
#ifndef BQR_KERNELS_COMMON_PTX_CVT_CUH
#define BQR_KERNELS_COMMON_PTX_CVT_CUH

#include <cstdint>

namespace bqr {

__device__ __forceinline__ uint32_t rounded_to_fp16([[maybe_unused]] float x, [[maybe_unused]] float y) {
  uint32_t two = 0;
#if __CUDA_ARCH__ >= 800
  asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(two) : "f"(x), "f"(y));
#endif
  return two;
}

__device__ __forceinline__ void unpack_fp16(uint32_t two, float &x, float &y) {
  asm("{\n.reg .b16 l, h;\nmov.b32 {l, h}, %2;\ncvt.f32.f16 %0, l;\ncvt.f32.f16 %1, h;\n}"
      : "=f"(x), "=f"(y)
      : "r"(two));
}

} // namespace bqr

#endif
