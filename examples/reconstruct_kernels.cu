/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPU's half of reconstruct_point.h. */
#include "reconstruct_point.h"

#include <cuda_runtime.h>

namespace {

constexpr int threads = 256, warp = 32;

/* A warp for each point, a lane for each equation, so that columns of A are written side by side. */
__global__ void __launch_bounds__(threads) assemble(rc_cloud c) {
  int i = static_cast<int>((blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x) / warp);
  if (i >= c.n) return;
  for (int row = threadIdx.x % warp; row < c.first[i + 1] - c.first[i]; row += warp) rc_assemble(&c, i, row);
}

__global__ void __launch_bounds__(threads) advance(rc_cloud c) {
  int i = static_cast<int>(blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x);
  if (i < c.n) rc_advance(&c, i);
}

__global__ void tick(rc_cloud c) { *c.time += c.dt; }

unsigned blocks(int64_t n) { return static_cast<unsigned>((n - 1) / threads + 1); }

} // namespace

int rc_launch_assemble(const rc_cloud *cloud, void *stream) {
  assemble<<<blocks(static_cast<int64_t>(cloud->n) * warp), threads, 0, static_cast<cudaStream_t>(stream)>>>(
      *cloud);
  return cudaGetLastError();
}

int rc_launch_advance(const rc_cloud *cloud, void *stream) {
  advance<<<blocks(cloud->n), threads, 0, static_cast<cudaStream_t>(stream)>>>(*cloud);
  tick<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(*cloud);
  return cudaGetLastError();
}
