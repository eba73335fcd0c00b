/* SPDX-License-Identifier: BSD-3-Clause */
/* Bulk copies from shared to global memory; phase_barrier (common/ptx/mbarrier.cuh) has those that come. */
#ifndef BQR_KERNELS_COMMON_PTX_CP_ASYNC_BULK_CUH
#define BQR_KERNELS_COMMON_PTX_CP_ASYNC_BULK_CUH

#include "target.cuh"

namespace bqr {

/* Between a thread's accesses to shared memory and copy_bulk() to the same place. */
__device__ __forceinline__ void bulk_fence() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* Starts copying whole 16 bytes of what a bulk_fence() and a barrier are behind. */
__device__ __forceinline__ void store_bulk([[maybe_unused]] void *global, [[maybe_unused]] const void *shared,
                                           [[maybe_unused]] int bytes) {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(static_cast<uint32_t>(__cvta_generic_to_shared(shared))), "r"(bytes)
               : "memory");
#endif
}
/* The thread waits until its copies have read what they copy. */
__device__ __forceinline__ void wait_for_bulk_stores() {
#if __CUDA_ARCH__ >= 900
  asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

} // namespace bqr

#endif
