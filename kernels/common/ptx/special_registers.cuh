/* SPDX-License-Identifier: BSD-3-Clause */
/* Special registers that CUDA C++ has no name for. */
#ifndef BQR_KERNELS_COMMON_PTX_SPECIAL_REGISTERS_CUH
#define BQR_KERNELS_COMMON_PTX_SPECIAL_REGISTERS_CUH

namespace bqr {

/* Multiprocessors of the device: by which the numbers of blocks that share one differ. */
__device__ __forceinline__ int multiprocessors() {
  unsigned count;
  asm("mov.u32 %0, %%nsmid;" : "=r"(count));
  return static_cast<int>(count);
}

} // namespace bqr

#endif
