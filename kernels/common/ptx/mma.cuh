/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by one warp (mma.sync), c += a b. Operands are numbered as common/simt/product.cuh does. */
#ifndef BQR_KERNELS_COMMON_PTX_MMA_CUH
#define BQR_KERNELS_COMMON_PTX_MMA_CUH

#include <cstdint>

namespace bqr {

/* 8 rows of a and every other k. */
__device__ __forceinline__ void multiply_add(double &c0, double &c1, double a, double b) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(c0), "+d"(c1)
      : "d"(a), "d"(b));
#endif
}
__device__ __forceinline__ void multiply_add(double &c0, double &c1, double &c2, double &c3, double a0,
                                             double a1, double a2, double a3, double b0, double b1) {
#if __CUDA_ARCH__ >= 900
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(c0), "+d"(c1), "+d"(c2), "+d"(c3)
      : "d"(a0), "d"(a2), "d"(a1), "d"(a3), "d"(b0), "d"(b1));
#elif __CUDA_ARCH__ >= 800
  multiply_add(c0, c1, a0, b0);
  multiply_add(c2, c3, a2, b0);
  multiply_add(c0, c1, a1, b1);
  multiply_add(c2, c3, a3, b1);
#endif
}
__device__ __forceinline__ void multiply_add_tf32(float &c0, float &c1, float &c2, float &c3, uint32_t a0,
                                                  uint32_t a1, uint32_t a2, uint32_t a3, uint32_t b0,
                                                  uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c0), "+f"(c1), "+f"(c2), "+f"(c3)
      : "r"(a0), "r"(a2), "r"(a1), "r"(a3), "r"(b0), "r"(b1));
#endif
}

/* 16 x 16 by 16 x 8. */
__device__ __forceinline__ void multiply_add_f16(float (&c)[4], uint32_t a0, uint32_t a1, uint32_t a2,
                                                 uint32_t a3, uint32_t b0, uint32_t b1) {
#if __CUDA_ARCH__ >= 800
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a0), "r"(a1), "r"(a2), "r"(a3), "r"(b0), "r"(b1));
#endif
}

} // namespace bqr

#endif
