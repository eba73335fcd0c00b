/* SPDX-License-Identifier: BSD-3-Clause */
/* Registers moved between the warps of a block. */
#ifndef BQR_KERNELS_COMMON_PTX_SETMAXNREG_CUH
#define BQR_KERNELS_COMMON_PTX_SETMAXNREG_CUH

namespace bqr {

/* The registers of a thread, for all four warps of a group; elsewhere than on Hopper they stay as they are.
 */
template <int N> __device__ __forceinline__ void more_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
template <int N> __device__ __forceinline__ void fewer_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

} // namespace bqr

#endif
