/* SPDX-License-Identifier: BSD-3-Clause */
/* Words in global memory by which blocks of a grid tell one another how far they are. */
#ifndef BQR_KERNELS_COMMON_PTX_PUBLISH_CUH
#define BQR_KERNELS_COMMON_PTX_PUBLISH_CUH

namespace bqr {

/* Writes x; who sees it sees all that the thread wrote, and others before a barrier with it. */
__device__ __forceinline__ void publish(int *to, int x) {
#if __CUDA_ARCH__ >= 700
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(to), "r"(x) : "memory");
#endif
}
/* What was published there. */
__device__ __forceinline__ int published([[maybe_unused]] const int *from) {
  int x = 0;
#if __CUDA_ARCH__ >= 700
  asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
#endif
  return x;
}

/* Orders the thread's accesses to memory for all threads of the block. */
__device__ __forceinline__ void block_fence() { __threadfence_block(); }

} // namespace bqr

#endif
