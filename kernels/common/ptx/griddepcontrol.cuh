/* SPDX-License-Identifier: BSD-3-Clause */
/* Programmatic dependent launch, from compute capability 9.0 on: a kernel may start while the one before it
 * in the stream ends. What it reads or writes before it has waited must be its alone. */
#ifndef BQR_KERNELS_COMMON_PTX_GRIDDEPCONTROL_CUH
#define BQR_KERNELS_COMMON_PTX_GRIDDEPCONTROL_CUH

namespace bqr {

/* Waits for the end of the kernel before, and lets the next one start once all blocks have come here. */
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

} // namespace bqr

#endif
