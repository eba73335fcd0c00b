/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPU's half of reconstruct_point.h. */
#include "reconstruct_point.h"

#include <cuda_runtime.h>

namespace {

constexpr int threads = 256;

/* A thread for each equation: those of a point lie side by side, and so does what they write of a column. */
__global__ void __launch_bounds__(threads) assemble(rc_cloud c, int64_t equations) {
  int64_t e = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (e < equations) rc_assemble(&c, e);
}

__global__ void __launch_bounds__(threads) advance(rc_cloud c) {
  int i = static_cast<int>(blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x);
  if (i < c.n) rc_advance(&c, i);
}

__global__ void tick(rc_cloud c) { *c.time += c.dt; }
__global__ void nothing() {}

unsigned blocks(int64_t n) { return static_cast<unsigned>((n - 1) / threads + 1); }

} // namespace

int rc_launch_assemble(const rc_cloud *cloud, int64_t equations, void *stream) {
  assemble<<<blocks(equations), threads, 0, static_cast<cudaStream_t>(stream)>>>(*cloud, equations);
  return cudaGetLastError();
}

int rc_launch_advance(const rc_cloud *cloud, void *stream) {
  advance<<<blocks(cloud->n), threads, 0, static_cast<cudaStream_t>(stream)>>>(*cloud);
  tick<<<1, 1, 0, static_cast<cudaStream_t>(stream)>>>(*cloud);
  return cudaGetLastError();
}

void *rc_empty_kernel(void) { return reinterpret_cast<void *>(nothing); }
