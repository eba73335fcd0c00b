/* SPDX-License-Identifier: BSD-3-Clause */
/* Kernels that start while the one before them in the stream ends, from compute capability 9.0 on; what they
 * read or write before they have waited must be theirs alone. */
#ifndef BQR_KERNELS_COMMON_SIMT_OVERLAP_CUH
#define BQR_KERNELS_COMMON_SIMT_OVERLAP_CUH

#include "cluster.cuh"

namespace bqr {

/* Waits for the end of the kernel before, and lets the next one start once all blocks have come here. */
__device__ __forceinline__ void wait_for_previous() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;\n\tgriddepcontrol.launch_dependents;" ::: "memory");
#endif
}

/* launch_kernel() of a kernel that calls wait_for_previous(). */
template <class... P, class... A>
batchqr_status launch_overlapped(void (*kernel)(P...), dim3 grid, int threads, size_t smem,
                                 batchqr_stream stream, const A &...args) {
  cudaLaunchAttribute overlap = {};
  overlap.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  overlap.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  config.attrs = &overlap;
  config.numAttrs = device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9 ? 1 : 0;
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

/* The same of one cluster. */
template <class... P, class... A>
batchqr_status launch_cluster_overlapped(void (*kernel)(P...), int blocks, int threads, size_t smem,
                                         batchqr_stream stream, const A &...args) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = cluster_config(&attributes[0], 1, blocks, threads, smem, stream);
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  config.numAttrs = 2;
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

} // namespace bqr

#endif
