/* SPDX-License-Identifier: BSD-3-Clause */
/* hmatrix_cores.h: what lies between the batches. A block of threads for a core, or for its left or right
 * half; a thread for a core's rank. */
#include "hmatrix_cores.h"

#include <cuda_runtime.h>

namespace {

__global__ void form(hm_cores c) {
  const hm_core core = c.cores[blockIdx.x];
  const double *u = c.factors + core.u_at, *v = c.factors + core.v_at;
  for (int e = threadIdx.x; e < core.k * core.k; e += blockDim.x) {
    const int i = e % core.k, j = e / core.k;
    double sum = 0;
    for (int l = max(i, j); l < core.k; l++)
      sum = fma(u[i + static_cast<int64_t>(l) * core.m], v[j + static_cast<int64_t>(l) * core.n], sum);
    c.left[core.core_at + e] = sum;
  }
}

/* The smallest rank, 1 or more, whose error is at most eps. */
__global__ void keep(hm_cores c, double eps) {
  const int64_t i = blockIdx.x * static_cast<int64_t>(blockDim.x) + threadIdx.x;
  if (i >= c.count) return;
  const hm_core core = c.cores[i];
  const double *s = c.sigma + core.column_at;
  double total = 0, tail = 0; /* relative to the largest: no square overflows */
  const double unit = s[0] > 0 ? 1 / s[0] : 0;
  for (int j = 0; j < core.k; j++) total += s[j] * unit * (s[j] * unit);
  int rank = core.k;
  for (; rank > 1; rank--) {
    const double next = s[rank - 1] * unit;
    if (tail + next * next > eps * eps * total) break;
    tail += next * next;
  }
  c.kept[i] = c.info[i] == 0 ? rank : -1;
}

__global__ void put(hm_cores c, const int64_t *result_at, double *results) {
  const hm_core core = c.cores[blockIdx.x];
  const int right = blockIdx.y, rows = right ? core.n : core.m, kept = c.kept[blockIdx.x];
  const double *from = (right ? c.right : c.left) + core.core_at;
  double *to = results + result_at[2 * static_cast<int64_t>(blockIdx.x) + right];
  for (int j = threadIdx.y; j < kept; j += blockDim.y) {
    const double root = sqrt(c.sigma[core.column_at + j]);
    for (int i = threadIdx.x; i < rows; i += blockDim.x)
      to[i + static_cast<int64_t>(j) * rows] =
          i < core.k ? from[i + static_cast<int64_t>(j) * core.k] * root : 0;
  }
}

} /* namespace */

int hm_device_form(const hm_cores *c) {
  form<<<static_cast<unsigned>(c->count), 256>>>(*c);
  return cudaGetLastError();
}

int hm_device_keep(const hm_cores *c, double eps) {
  constexpr int threads = 128;
  keep<<<static_cast<unsigned>((c->count + threads - 1) / threads), threads>>>(*c, eps);
  return cudaGetLastError();
}

int hm_device_put(const hm_cores *c, const int64_t *result_at, double *results) {
  put<<<dim3(static_cast<unsigned>(c->count), 2), dim3(32, 8)>>>(*c, result_at, results);
  return cudaGetLastError();
}
