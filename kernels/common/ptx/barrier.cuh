/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers of warps and blocks, and fences. */
#ifndef BQR_KERNELS_COMMON_PTX_BARRIER_CUH
#define BQR_KERNELS_COMMON_PTX_BARRIER_CUH

namespace bqr {

constexpr unsigned full_mask = 0xffffffffu;

/* Shared-memory writes before it are seen by the warp's lanes after it. */
__device__ __forceinline__ void warp_sync(unsigned mask = full_mask) { __syncwarp(mask); }
/* Of all threads of the block. */
__device__ __forceinline__ void block_sync() { __syncthreads(); }
/* Likewise; whether any of them says so. */
__device__ __forceinline__ bool block_any(bool v) { return __syncthreads_or(v) != 0; }

/* Waits for `threads` threads, whole warps, that name the same number, 1 to 15. */
__device__ __forceinline__ void named_sync(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/* Likewise; whether any of them says so. */
__device__ __forceinline__ bool named_any(int number, int threads, bool v) {
  int any;
  asm volatile("{\n.reg .pred p, q;\nsetp.ne.s32 p, %1, 0;\nbar.red.or.pred q, %2, %3, p;\n"
               "selp.s32 %0, 1, 0, q;\n}"
               : "=r"(any)
               : "r"(static_cast<int>(v)), "r"(number), "r"(threads)
               : "memory");
  return any != 0;
}

/* Orders the thread's accesses to global memory for all threads of the device. */
__device__ __forceinline__ void device_fence() { __threadfence(); }

} // namespace bqr

#endif
