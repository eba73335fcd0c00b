/* SPDX-License-Identifier: BSD-3-Clause */
/* Products by four warps at once of operands in shared memory. Only for targets of which has_wgmma is true;
 * elsewhere these functions do nothing, and no kernel that uses them is launched. */
#ifndef BQR_KERNELS_COMMON_PTX_WGMMA_CUH
#define BQR_KERNELS_COMMON_PTX_WGMMA_CUH

#include "target.cuh"
#include <type_traits>

namespace bqr {

#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
constexpr bool has_wgmma = true;
#define BQR_SM90(...) asm volatile(__VA_ARGS__)
#else
constexpr bool has_wgmma = false;
#define BQR_SM90(...) ((void)0)
#endif

/* Products of tiles whose rows are 128 bytes of consecutive k, 8 rows to 1024 bytes, in which the 16
 * bytes number c of row r lie at number c ^ (r % 8). A step takes 32 bytes of k. */

constexpr int wgmma_rows = 64, wgmma_cols = 256, wgmma_step = 32;
constexpr int wgmma_sums = wgmma_rows * wgmma_cols / 128; /* of a thread */

/* What the units call a tile that starts at a multiple of 1024 bytes; `+ wgmma_steps(s)`: its step s. */
__device__ __forceinline__ uint64_t wgmma_tile(const void *tile) {
  const uint64_t eight_rows = 1024 >> 4, swizzled_128 = 1;
  return ((shared_address(tile) & 0x3ffff) >> 4) | (uint64_t(1) << 16) | (eight_rows << 32) |
         (swizzled_128 << 62);
}
__host__ __device__ __forceinline__ constexpr uint64_t wgmma_steps(int s) {
  return static_cast<uint64_t>(s * wgmma_step) >> 4;
}

/* Products of a group of four warps run in the order in which they are issued, between begin and end, and are
 * over after wait<N>() but for the last N groups. */
__device__ __forceinline__ void wgmma_begin() { BQR_SM90("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_end() { BQR_SM90("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int N> __device__ __forceinline__ void wgmma_wait() {
  BQR_SM90("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");
}
/* Ties the sums to this place: before the first product and after the last wait. */
template <class S> __device__ __forceinline__ void wgmma_hold(S (&c)[wgmma_sums]) {
#pragma unroll
  for (int i = 0; i < wgmma_sums; i++) {
    if constexpr (std::is_same<S, float>::value)
      asm volatile("" : "+f"(c[i])::"memory");
    else
      asm volatile("" : "+r"(c[i])::"memory");
  }
}

#define BQR_EIGHT(as, c, i)                                                                                  \
  as(c[i]), as(c[i + 1]), as(c[i + 2]), as(c[i + 3]), as(c[i + 4]), as(c[i + 5]), as(c[i + 6]), as(c[i + 7])
#define BQR_64(as, c, i)                                                                                     \
  BQR_EIGHT(as, c, i), BQR_EIGHT(as, c, i + 8), BQR_EIGHT(as, c, i + 16), BQR_EIGHT(as, c, i + 24),          \
      BQR_EIGHT(as, c, i + 32), BQR_EIGHT(as, c, i + 40), BQR_EIGHT(as, c, i + 48), BQR_EIGHT(as, c, i + 56)
/* clang-format off */
#define BQR_SUMS                                                                                              \
  "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "                                   \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "                          \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "                          \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "                          \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "                          \
  "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "                          \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "              \
  "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"
/* clang-format on */

/* c += a b^T: FP16 products with FP32 sums, and INT8 ones with INT32 sums. Thread t of the group, w = t / 32,
 * l = t % 32, holds at c[4 g + 2 h + s] row 16 w + l / 4 + 8 h of column 8 g + 2 (l % 4) + s. */
__device__ __forceinline__ void wgmma([[maybe_unused]] float (&c)[wgmma_sums], [[maybe_unused]] uint64_t a,
                                      [[maybe_unused]] uint64_t b) {
#define BQR_FLOAT(x) "+f"(x)
  BQR_SM90("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 " BQR_SUMS ", %128, %129, 1, 1, 1, 0, 0;"
           : BQR_64(BQR_FLOAT, c, 0), BQR_64(BQR_FLOAT, c, 64)
           : "l"(a), "l"(b));
}
/* Likewise, of FP16 numbers of a that threads hold: at a[2 g + h], the lower half first, columns
 * 8 g + 2 (l % 4) and the next one of k, of row 16 w + l / 4 + 8 h. These registers and the sums are the
 * units' until wgmma_wait(). */
__device__ __forceinline__ void wgmma([[maybe_unused]] float (&c)[wgmma_sums],
                                      [[maybe_unused]] const uint32_t (&a)[4], [[maybe_unused]] uint64_t b) {
  BQR_SM90("wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 " BQR_SUMS
           ", {%128, %129, %130, %131}, %132, 1, 1, 1, 0;"
           : BQR_64(BQR_FLOAT, c, 0), BQR_64(BQR_FLOAT, c, 64)
           : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b));
#undef BQR_FLOAT
}
__device__ __forceinline__ void wgmma([[maybe_unused]] int (&c)[wgmma_sums], [[maybe_unused]] uint64_t a,
                                      [[maybe_unused]] uint64_t b) {
#define BQR_INT(x) "+r"(x)
  BQR_SM90("wgmma.mma_async.sync.aligned.m64n256k32.s32.s8.s8 " BQR_SUMS ", %128, %129, 1;"
           : BQR_64(BQR_INT, c, 0), BQR_64(BQR_INT, c, 64)
           : "l"(a), "l"(b));
#undef BQR_INT
}

#undef BQR_EIGHT
#undef BQR_64
#undef BQR_SUMS
#undef BQR_SM90

} // namespace bqr

#endif
