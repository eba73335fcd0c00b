/* SPDX-License-Identifier: BSD-3-Clause */
/* fronts_assemble.h on the GPU: grids of fronts x slices. */
#include "fronts_assemble.h"

namespace {

constexpr int block_rows = 32, block_cols = 8;

__device__ fr_share my_share() {
  return {static_cast<int>(threadIdx.x), block_rows, static_cast<int>(threadIdx.y + block_cols * blockIdx.y),
          static_cast<int>(block_cols * gridDim.y)};
}

__device__ int my_front(int begin) { return begin + static_cast<int>(blockIdx.x); }

__global__ void put_rows(fr_arrays x, int begin, double *level) {
  const fr_front *f = &x.fronts[my_front(begin)];
  fr_put_rows(&x, f, level + f->front_at, my_share());
}

__global__ void put_contributions(fr_arrays x, int begin, const double *level, double *next) {
  const fr_front *f = &x.fronts[my_front(begin)];
  if (f->parent < 0) return;
  fr_put_contribution(&x, f, level + f->front_at, next + x.fronts[f->parent].front_at, my_share());
}

__global__ void clear_reflectors(fr_arrays x, const int *list, double *level) {
  const fr_front *f = &x.fronts[list[blockIdx.x]];
  fr_clear_reflectors(f, level + f->front_at, my_share());
}

__global__ void keep_r(fr_arrays x, int begin, const double *level) {
  const int front = my_front(begin);
  fr_keep_r(&x, front, level + x.fronts[front].front_at, my_share());
}

dim3 grid(int begin, int end, int slices) {
  return {static_cast<unsigned>(end - begin), static_cast<unsigned>(slices)};
}

const dim3 block{block_rows, block_cols};

} // namespace

int fr_device_put_rows(const fr_arrays *x, int begin, int end, int slices, double *level, int64_t size) {
  if (size > 0) cudaMemsetAsync(level, 0, static_cast<size_t>(size) * sizeof *level);
  put_rows<<<grid(begin, end, slices), block>>>(*x, begin, level);
  return cudaGetLastError();
}

int fr_device_put_contributions(const fr_arrays *x, int begin, int end, int slices, const double *level,
                                double *next) {
  put_contributions<<<grid(begin, end, slices), block>>>(*x, begin, level, next);
  return cudaGetLastError();
}

int fr_device_clear_reflectors(const fr_arrays *x, const int *list, int count, int slices, double *level) {
  clear_reflectors<<<grid(0, count, slices), block>>>(*x, list, level);
  return cudaGetLastError();
}

int fr_device_keep_r(const fr_arrays *x, int begin, int end, int slices, const double *level) {
  keep_r<<<grid(begin, end, slices), block>>>(*x, begin, level);
  return cudaGetLastError();
}
