/* SPDX-License-Identifier: BSD-3-Clause */
/* Prefetches into the second-level cache. */
#ifndef BQR_KERNELS_COMMON_PTX_PREFETCH_CUH
#define BQR_KERNELS_COMMON_PTX_PREFETCH_CUH

#include <cstdint>

namespace bqr {

/* Starts bringing what is there to L2. */
__device__ __forceinline__ void prefetch_l2(const void *from, int bytes) {
#if __CUDA_ARCH__ >= 900
  const uint64_t begin = (reinterpret_cast<uint64_t>(from) + 15) / 16 * 16,
                 end = (reinterpret_cast<uint64_t>(from) + static_cast<uint64_t>(bytes)) / 16 * 16;
  if (end > begin)
    asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(begin),
                 "r"(static_cast<uint32_t>(end - begin)));
#endif
}

__device__ __forceinline__ void prefetch_l2(const void *global) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(global));
}

} // namespace bqr

#endif
