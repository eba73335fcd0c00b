/* SPDX-License-Identifier: BSD-3-Clause */
/* hmatrix_cores.h: a block of threads for a core, and one-sided Jacobi rotations of its columns (Hestenes;
 * Demmel, Veselic: Jacobi's method is more accurate than QR, SIAM J. Matrix Anal. Appl. 13, 1992). A core has
 * few columns, so that all of it is on chip, and each round rotates disjoint pairs of all columns at once. */
#include "hmatrix_cores.h"

#include <cuda_runtime.h>

namespace {

constexpr int lanes = 8; /* of a warp share a pair of columns */
constexpr int most_sweeps = 40;
/* Columns count as orthogonal when the cosine of their angle is below this. */
constexpr double cosine = 1e-14;
/* A column that is smaller than this, relative to the whole, is as good as zero. */
constexpr double negligible = 1e-16;

__device__ double group_sum(double x) {
  for (int d = lanes / 2; d > 0; d /= 2) x += __shfl_xor_sync(~0u, x, d);
  return x;
}

/* The larger value of all threads; `slots` has room for one of each warp. */
__device__ double block_max(double x, double *slots) {
  for (int d = 16; d > 0; d /= 2) x = fmax(x, __shfl_xor_sync(~0u, x, d));
  if (threadIdx.x % 32 == 0) slots[threadIdx.x / 32] = x;
  __syncthreads();
  for (int w = 0; w < static_cast<int>(blockDim.x) / 32; w++) x = fmax(x, slots[w]);
  __syncthreads();
  return x;
}

struct columns {
  double *x, *z;
  int k, ld;
};

/* X := R_U R_V^T, Z := I. Returns the thread's largest entry of X. */
__device__ double form(const columns &c, const double *u, int m, const double *v, int n) {
  double largest = 0;
  for (int e = threadIdx.x; e < c.k * c.k; e += blockDim.x) {
    const int i = e % c.k, j = e / c.k;
    double sum = 0;
    for (int l = max(i, j); l < c.k; l++)
      sum = fma(u[i + static_cast<int64_t>(l) * m], v[j + static_cast<int64_t>(l) * n], sum);
    c.x[i + j * c.ld] = sum;
    c.z[i + j * c.ld] = i == j;
    largest = fmax(largest, fabs(sum));
  }
  return largest;
}

__device__ void divide(const columns &c, double by) {
  for (int e = threadIdx.x; e < c.k * c.k; e += blockDim.x) c.x[e % c.k + e / c.k * c.ld] /= by;
}

/* Makes columns a and b of X orthogonal; the lanes of a group without a pair have a = b = k. True if they
 * were not. */
__device__ bool rotate(const columns &c, int a, int b, double least) {
  const int lane = threadIdx.x % lanes;
  const bool any = a < c.k && b < c.k;
  double *xa = c.x + a * c.ld, *xb = c.x + b * c.ld, *za = c.z + a * c.ld, *zb = c.z + b * c.ld;
  double aa = 0, bb = 0, ab = 0;
  for (int i = lane; any && i < c.k; i += lanes) {
    aa = fma(xa[i], xa[i], aa);
    bb = fma(xb[i], xb[i], bb);
    ab = fma(xa[i], xb[i], ab);
  }
  aa = group_sum(aa), bb = group_sum(bb), ab = group_sum(ab);
  if (!(fmin(aa, bb) > least && ab * ab > cosine * cosine * aa * bb)) return false;
  const double zeta = (bb - aa) / (2 * ab);
  const double t = copysign(1 / (fabs(zeta) + sqrt(fma(zeta, zeta, 1.0))), zeta);
  const double cs = rsqrt(fma(t, t, 1.0)), sn = cs * t;
  for (int i = lane; i < c.k; i += lanes) {
    const double x = xa[i], z = za[i];
    xa[i] = cs * x - sn * xb[i];
    xb[i] = sn * x + cs * xb[i];
    za[i] = cs * z - sn * zb[i];
    zb[i] = sn * z + cs * zb[i];
  }
  return true;
}

/* All pairs of columns once, as in a tournament of an even number of players: who has the number k, if it is
 * one of them, rests. */
__device__ bool sweep(const columns &c, double least) {
  const int players = c.k + c.k % 2, others = players - 1, pairs = players / 2;
  const int group = threadIdx.x / lanes, groups = blockDim.x / lanes;
  bool rotated = false;
  for (int round = 0; round < others; round++) {
    for (int p = group; p - group % 4 < pairs; p += groups) { /* all groups of a warp, for its exchanges */
      const int a = p == 0 ? others : (round + p) % others, b = (round - p % others + others) % others;
      rotated |= rotate(c, p < pairs ? a : c.k, p < pairs ? b : c.k, least);
    }
    __syncthreads();
  }
  return __syncthreads_or(rotated);
}

/* squares[j] := the square of column j's norm. */
__device__ void square_columns(const columns &c, double *squares) {
  const int group = threadIdx.x / lanes, groups = blockDim.x / lanes;
  for (int j = group; j - group % 4 < c.k; j += groups) {
    double sum = 0;
    for (int i = threadIdx.x % lanes; j < c.k && i < c.k; i += lanes)
      sum = fma(c.x[i + j * c.ld], c.x[i + j * c.ld], sum);
    sum = group_sum(sum);
    if (j < c.k) squares[j] = sum;
  }
  __syncthreads();
}

__device__ double total(const double *squares, int k) {
  double sum = 0;
  for (int j = 0; j < k; j++) sum += squares[j];
  return sum;
}

/* The smallest rank, 1 or more, whose error is at most eps; `sorted` descends. */
__device__ int truncated_rank(const double *sorted, int k, double eps) {
  const double allowed = eps * eps * total(sorted, k);
  double tail = 0;
  int rank = k;
  while (rank > 1 && tail + sorted[rank - 1] <= allowed) tail += sorted[--rank];
  return rank;
}

/* Sets the columns' scales and places, and `sorted`. X has been divided by `largest`. */
__device__ void place_columns(const hm_cores &c, const hm_core &core, const double *squares, double *sorted,
                              double largest) {
  for (int j = threadIdx.x; j < core.k; j += blockDim.x) {
    int place = 0;
    for (int i = 0; i < core.k; i++) place += squares[i] > squares[j] || (squares[i] == squares[j] && i < j);
    sorted[place] = squares[j];
    const double root = sqrt(sqrt(squares[j])), unit = sqrt(largest);
    c.places[core.column_at + j] = place;
    c.scales[2 * (core.column_at + j)] = root > 0 ? unit / root : 0;
    c.scales[2 * (core.column_at + j) + 1] = unit * root;
  }
  __syncthreads();
}

template <bool on_chip> __global__ void truncate(hm_cores c, int64_t begin, double eps) {
  extern __shared__ double shared[];
  __shared__ double slots[32];
  const hm_core core = c.cores[begin + blockIdx.x];
  const int64_t size = hm_core_size(core.k);
  double *vectors = c.vectors + core.core_at, *squares = on_chip ? shared + size : shared;
  double *sorted = squares + core.k, *x = on_chip ? shared : vectors;
  const columns columns = {x, x + size / 2, core.k, core.k | 1};

  const double largest =
      block_max(form(columns, c.factors + core.u_at, core.m, c.factors + core.v_at, core.n), slots);
  if (largest > 0)
    divide(columns, largest); /* squares of the rest neither overflow nor matter if they vanish */
  __syncthreads();
  square_columns(columns, squares);
  const double least = negligible * negligible * total(squares, core.k);
  int sweeps = 0;
  while (sweeps < most_sweeps && sweep(columns, least)) sweeps++;
  square_columns(columns, squares);
  place_columns(c, core, squares, sorted, largest);
  if (threadIdx.x == 0) c.kept[core.block] = sweeps < most_sweeps ? truncated_rank(sorted, core.k, eps) : -1;
  for (int64_t e = threadIdx.x; on_chip && e < size; e += blockDim.x) vectors[e] = shared[e];
}

__global__ void put(hm_cores c, const int64_t *result_at, double *results) {
  const hm_core core = c.cores[blockIdx.x];
  const int v = blockIdx.y, rows = v ? core.n : core.m, ld = core.k | 1, kept = c.kept[core.block];
  const double *from = c.vectors + core.core_at + (v ? hm_core_size(core.k) / 2 : 0);
  double *to = results + result_at[2 * core.block + v];
  for (int j = threadIdx.y; j < core.k; j += blockDim.y) {
    const int place = c.places[core.column_at + j];
    const double scale = c.scales[2 * (core.column_at + j) + v];
    for (int i = threadIdx.x; place < kept && i < rows; i += blockDim.x)
      to[i + static_cast<int64_t>(place) * rows] = i < core.k ? from[i + j * ld] * scale : 0;
  }
}

} /* namespace */

int hm_device_truncate(const hm_cores *c, int64_t begin, int64_t end, int k, double eps) {
  int device = 0, room = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&room, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  const int wanted = (k + 1) / 2 * lanes, threads = wanted < 512 ? (wanted + 31) / 32 * 32 : 512;
  const size_t sums = 2 * k * sizeof(double), all = sums + hm_core_size(k) * sizeof(double);
  const bool on_chip = all + 1024 <= static_cast<size_t>(room); /* 1024: what the kernel has besides */
  const auto kernel = on_chip ? truncate<true> : truncate<false>;
  const size_t bytes = on_chip ? all : sums;
  cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes));
  if (error != cudaSuccess) return error;
  kernel<<<static_cast<unsigned>(end - begin), threads, bytes>>>(*c, begin, eps);
  return cudaGetLastError();
}

int hm_device_put(const hm_cores *c, int64_t count, const int64_t *result_at, double *results) {
  put<<<dim3(static_cast<unsigned>(count), 2), dim3(32, 8)>>>(*c, result_at, results);
  return cudaGetLastError();
}
