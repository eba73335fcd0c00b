/* SPDX-License-Identifier: BSD-3-Clause */
/* Programmatic dependent launches: see common/ptx/griddepcontrol.cuh. */
#ifndef BQR_KERNELS_COMMON_SIMT_LAUNCH_DEPENDENT_CUH
#define BQR_KERNELS_COMMON_SIMT_LAUNCH_DEPENDENT_CUH

#include "launch_cluster.cuh"
#include "common/ptx/griddepcontrol.cuh"

namespace bqr {

/* launch_kernel() of a kernel that calls wait_for_previous(). */
template <class... P, class... A>
batchqr_status launch_dependent(void (*kernel)(P...), dim3 grid, int threads, size_t smem,
                                batchqr_stream stream, const A &...args) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  config.attrs = &attribute;
  config.numAttrs = device_attribute(cudaDevAttrComputeCapabilityMajor) >= 9 ? 1 : 0;
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

/* The same of clusters. */
template <class... P, class... A>
batchqr_status launch_dependent_clusters(void (*kernel)(P...), unsigned clusters, int blocks, int threads,
                                         size_t smem, batchqr_stream stream, const A &...args) {
  cudaLaunchAttribute attributes[2] = {};
  cudaLaunchConfig_t config = cluster_config(&attributes[0], clusters, blocks, threads, smem, stream);
  attributes[1].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attributes[1].val.programmaticStreamSerializationAllowed = 1;
  config.numAttrs = 2;
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

} // namespace bqr

#endif
