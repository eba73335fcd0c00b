/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by four warps at once of rows in registers and columns in shared memory. Only for targets of which
 * has_wgmma is true; elsewhere these functions do nothing, and no kernel that uses them is launched. */
#ifndef BQR_KERNELS_COMMON_PTX_WGMMA_ROWS_CUH
#define BQR_KERNELS_COMMON_PTX_WGMMA_ROWS_CUH

#include "wgmma.cuh"

namespace bqr {

/* Columns of 16 FP16 numbers: 8 of them by the first 8 numbers of each are 128 bytes, the other 8 numbers the
 * next 128, and then come the next 8 columns. */
constexpr int wgmma_narrow = 32, wgmma_narrow_bytes = wgmma_narrow * 16 * 2;

/* What the units call so many columns, at a multiple of 16 bytes. */
__device__ __forceinline__ uint64_t wgmma_columns(const void *columns) {
  const uint64_t other_half = 128 >> 4, eight_columns = 256 >> 4;
  return ((shared_address(columns) & 0x3ffff) >> 4) | (other_half << 16) | (eight_columns << 32);
}

/* Columns so many bytes further on. */
__device__ __forceinline__ uint64_t wgmma_columns_at(uint64_t columns, int bytes) {
  return columns + static_cast<uint64_t>(bytes >> 4);
}

/* c := a b^T, or c += a b^T, FP16 products of 64 rows with FP32 sums; as wgmma(), between wgmma_begin() and
 * wgmma_end(). Thread t of the four warps, w = t / 32, l = t % 32, holds at c[g][2 h + s] row 16 w + l / 4 +
 * 8 h of column 8 g + 2 (l % 4) + s; of the row 16 w + l / 4 the numbers 2 (l % 4), 2 (l % 4) + 1 at a[0], 8
 * more at a[2], and of the row 8 further on at a[1] and a[3]. */
template <bool ADD>
__device__ __forceinline__ void wgmma_rows_by([[maybe_unused]] float (&c)[4][4],
                                              [[maybe_unused]] const uint32_t (&a)[4],
                                              [[maybe_unused]] uint64_t b) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define BQR_FOUR(i) "+f"(c[i][0]), "+f"(c[i][1]), "+f"(c[i][2]), "+f"(c[i][3])
  asm volatile("{\n.reg .pred add;\nsetp.ne.b32 add, %21, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n32k16.f32.f16.f16 "
               "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}, "
               "{%16, %17, %18, %19}, %20, add, 1, 1, 0;\n}"
               : BQR_FOUR(0), BQR_FOUR(1), BQR_FOUR(2), BQR_FOUR(3)
               : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "n"(ADD ? 1 : 0));
#undef BQR_FOUR
#endif
}
/* Ties sums and rows to this place: after the wait for the products that have them. */
__device__ __forceinline__ void wgmma_over(float (&c)[4][4]) {
#pragma unroll
  for (int i = 0; i < 4; i++)
#pragma unroll
    for (int e = 0; e < 4; e++) asm volatile("" : "+f"(c[i][e])::"memory");
}
__device__ __forceinline__ void wgmma_over(const uint32_t (&a)[4]) {
  asm volatile("" ::"r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]) : "memory");
}

} // namespace bqr

#endif
