/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of clusters, and how many run at the same time. */
#ifndef BQR_KERNELS_COMMON_SIMT_LAUNCH_CLUSTER_CUH
#define BQR_KERNELS_COMMON_SIMT_LAUNCH_CLUSTER_CUH

#include "launch.cuh"
#include "common/ptx/cluster.cuh"

namespace bqr {

inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, attribute, device);
  return value;
}

/* A launch of up to `clusters` clusters of `blocks` blocks; `cluster` is to live as long. */
inline cudaLaunchConfig_t cluster_config(cudaLaunchAttribute *cluster, unsigned clusters, int blocks,
                                         int threads, size_t smem, batchqr_stream stream) {
  constexpr unsigned most_clusters = 1u << 27;
  *cluster = {};
  cluster->id = cudaLaunchAttributeClusterDimension;
  cluster->val.clusterDim = {static_cast<unsigned>(blocks), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim =
      dim3((clusters < most_clusters ? clusters : most_clusters) * static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  config.attrs = cluster;
  config.numAttrs = blocks > 1 ? 1 : 0;
  return config;
}

/* launch_kernel() with such a grid. */
template <class... P, class... A>
batchqr_status launch_clusters(void (*kernel)(P...), unsigned clusters, int blocks, int threads, size_t smem,
                               batchqr_stream stream, const A &...args) {
  cudaLaunchAttribute cluster;
  const cudaLaunchConfig_t config = cluster_config(&cluster, clusters, blocks, threads, smem, stream);
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

/* The clusters of such a launch that run at the same time; 0 if the runtime does not tell. */
template <class... P> int clusters_at_once(void (*kernel)(P...), int blocks, int threads, size_t smem) {
  int clusters = 0;
  cudaLaunchAttribute cluster;
  const cudaLaunchConfig_t config = cluster_config(&cluster, 1, blocks, threads, smem, nullptr);
  const cudaError_t error =
      blocks > 1 ? cudaOccupancyMaxActiveClusters(&clusters, kernel, &config)
                 : cudaOccupancyMaxActiveBlocksPerMultiprocessor(&clusters, kernel, threads, smem);
  if (error != cudaSuccess) return 0;
  return blocks > 1 ? clusters : clusters * device_attribute(cudaDevAttrMultiProcessorCount);
}

/* That of a kernel's launches of SHAPES shapes, asked for before the first launch. All zeros at first. */
template <int SHAPES> class cluster_counts {
  int known_[SHAPES];

public:
  template <class... P> void ask(int shape, void (*kernel)(P...), int blocks, int threads, size_t smem) {
    if (known_[shape] == 0) known_[shape] = clusters_at_once(kernel, blocks, threads, smem);
  }

  /* At least 1. */
  template <class... P>
  int at_once(int shape, void (*kernel)(P...), int blocks, int threads, size_t smem) const {
    const int clusters = known_[shape] > 0 ? known_[shape] : clusters_at_once(kernel, blocks, threads, smem);
    return clusters > 0 ? clusters : 1;
  }
};

} // namespace bqr

#endif
