/* SPDX-License-Identifier: BSD-3-Clause */
/* A grid of blocks that run at once: its barrier, its sums, and products of a matrix with a few vectors that
 * all of its warps share. Sums are formed in an order that depends on the sizes and the number of blocks
 * alone. */
#ifndef BQR_KERNELS_REFINE_REFINE_PRODUCTS_CUH
#define BQR_KERNELS_REFINE_REFINE_PRODUCTS_CUH

#include "refine.cuh"

namespace bqr {

constexpr int grid_warps = 16, grid_threads = grid_warps * warp_lanes;

/* K: vectors. */
template <int K> class refine_grid {
public:
  /* arrivals: 0 before; sums: of refine_task. */
  __device__ __forceinline__ refine_grid(unsigned *arrivals, double *sums)
      : arrivals_(arrivals), sums_(sums), expected_(0) {}

  /* What any block wrote before is then to be read with load_shared(). */
  __device__ __forceinline__ void wait_for_all() {
    device_fence();
    block_sync();
    expected_ += gridDim.x;
    if (thread_id() == 0) {
      atomicAdd(arrivals_, 1u);
      while (static_cast<int>(*const_cast<const volatile unsigned *>(arrivals_) - expected_) < 0) yield();
      device_fence();
    }
    block_sync();
  }

  /* The grid's sum number `which` of each vector: all threads give their parts, wait_for_all(), and take it.
   */
  __device__ __forceinline__ void give(int which, const double (&x)[K]) {
    __shared__ double parts[K][grid_warps];
#pragma unroll
    for (int c = 0; c < K; c++) {
      const double sum = group_sum(x[c]);
      if (lane_id() == 0) parts[c][warp_id()] = sum;
    }
    block_sync();
    if (thread_id() < K) {
      double sum = 0;
      for (int w = 0; w < grid_warps; w++) sum += parts[thread_id()][w];
      sums_[(which * K + thread_id()) * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x)] = sum;
    }
    block_sync();
  }
  __device__ __forceinline__ void take(int which, double (&x)[K]) const {
#pragma unroll
    for (int c = 0; c < K; c++) {
      double sum = 0;
      for (int b = lane_id(); b < static_cast<int>(gridDim.x); b += warp_lanes)
        sum += load_shared(sums_ + (which * K + c) * static_cast<int>(gridDim.x) + b);
      x[c] = group_sum(sum);
    }
  }

  /* Likewise, the largest of what is not negative. */
  __device__ __forceinline__ void give_largest(int which, const double (&x)[K]) {
    __shared__ double parts[K][grid_warps];
#pragma unroll
    for (int c = 0; c < K; c++) {
      const double top = warp_largest(x[c]);
      if (lane_id() == 0) parts[c][warp_id()] = top;
    }
    block_sync();
    if (thread_id() < K) {
      double top = 0;
      for (int w = 0; w < grid_warps; w++) top = fmax(top, parts[thread_id()][w]);
      sums_[(which * K + thread_id()) * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x)] = top;
    }
    block_sync();
  }
  __device__ __forceinline__ void take_largest(int which, double (&x)[K]) const {
#pragma unroll
    for (int c = 0; c < K; c++) {
      double top = 0;
      for (int b = lane_id(); b < static_cast<int>(gridDim.x); b += warp_lanes)
        top = fmax(top, load_shared(sums_ + (which * K + c) * static_cast<int>(gridDim.x) + b));
      x[c] = warp_largest(top);
    }
  }

  /* out(row, c, sum) for the rows of A X, X's entries being load(row of X, c). Of an upper triangle what is
   * below is not read. A block for 32 rows at a time, a warp for 32 columns. memory: grid_warps x K x 32. */
  template <class M, class Load, class Out>
  __device__ __forceinline__ void rows(const M *a, int64_t ld, int rows, int cols, bool upper, M *memory,
                                       Load &&load, Out &&out) const {
    constexpr int at_once = sizeof(M) < 16 ? 16 : 8;
    for (int first = static_cast<int>(blockIdx.x) * warp_lanes; first < rows;
         first += static_cast<int>(gridDim.x) * warp_lanes) {
      const int row = first + lane_id();
      M sum[K] = {};
      for (int j = (upper ? first : 0) + warp_id() * warp_lanes; j < cols; j += grid_threads) {
        M x[K];
        const int mine = j + lane_id();
#pragma unroll
        for (int c = 0; c < K; c++) x[c] = mine < cols ? load(mine, c) : zero<M>();
        const M *from = a + (row < rows ? row : first) + j * ld;
        const int here = least(warp_lanes, cols - j);
#pragma unroll
        for (int start = 0; start < warp_lanes; start += at_once) {
          M y[at_once];
#pragma unroll
          for (int i = 0; i < at_once; i++) y[i] = start + i < here ? from[(start + i) * ld] : zero<M>();
#pragma unroll
          for (int i = 0; i < at_once; i++)
#pragma unroll
            for (int c = 0; c < K; c++) sum[c] = madd(y[i], broadcast(x[c], start + i), sum[c]);
        }
      }
#pragma unroll
      for (int c = 0; c < K; c++) memory[(warp_id() * K + c) * warp_lanes + lane_id()] = sum[c];
      block_sync();
      if (warp_id() < K && row < rows) {
        M total = memory[warp_id() * warp_lanes + lane_id()];
        for (int w = 1; w < grid_warps; w++) total += memory[(w * K + warp_id()) * warp_lanes + lane_id()];
        out(row, warp_id(), total);
      }
      block_sync();
    }
  }

  /* out(column, c, number of the chunk, sum) in one lane, for the chunks of `chunk` rows of A^H X, likewise.
   * A warp for four columns at a time. */
  template <class M, class Load, class Out>
  __device__ __forceinline__ void columns(const M *a, int64_t ld, int rows, int cols, int chunk, bool upper,
                                          Load &&load, Out &&out) const {
    constexpr int side = 4, deep = sizeof(M) < 16 ? 4 : 2;
    const int groups = (cols - 1) / side + 1, chunks = (rows - 1) / chunk + 1;
    const int64_t step = static_cast<int64_t>(gridDim.x) * grid_warps;
    if (rows <= 0 || cols <= 0) return;
    /* neighbours in the grid get neighbouring columns */
    for (int64_t i = static_cast<int64_t>(warp_id()) * gridDim.x + blockIdx.x;
         i < static_cast<int64_t>(groups) * chunks; i += step) {
      const int col = static_cast<int>(i % groups) * side, number = static_cast<int>(i / groups);
      const int end = least(least(rows, (number + 1) * chunk), upper ? col + side : rows);
      M sum[side][K] = {};
      const M *from[side];
#pragma unroll
      for (int j = 0; j < side; j++) from[j] = a + (col + j < cols ? col + j : col) * ld;
      for (int row = number * chunk + lane_id(); row < end + lane_id(); row += deep * warp_lanes) {
        M y[deep][side], x[deep][K];
#pragma unroll
        for (int d = 0; d < deep; d++) {
          const int at = row + d * warp_lanes;
#pragma unroll
          for (int j = 0; j < side; j++) y[d][j] = at < end ? from[j][at] : zero<M>();
#pragma unroll
          for (int c = 0; c < K; c++) x[d][c] = at < end ? load(at, c) : zero<M>();
        }
#pragma unroll
        for (int d = 0; d < deep; d++)
#pragma unroll
          for (int j = 0; j < side; j++)
#pragma unroll
            for (int c = 0; c < K; c++) sum[j][c] = cmadd(y[d][j], x[d][c], sum[j][c]);
      }
#pragma unroll
      for (int j = 0; j < side; j++)
#pragma unroll
        for (int c = 0; c < K; c++) {
          const M total = group_sum(sum[j][c]);
          if (lane_id() == 0 && col + j < cols) out(col + j, c, number, total);
        }
    }
  }

  /* f(index, c) for the vectors' elements, shared among all threads. */
  template <class F> __device__ __forceinline__ void elements(int count, F &&f) const {
    for (int i = static_cast<int>(blockIdx.x) * grid_threads + thread_id(); i < count;
         i += static_cast<int>(gridDim.x) * grid_threads)
#pragma unroll
      for (int c = 0; c < K; c++) f(i, c);
  }

  /* f(index), of whole warps. */
  template <class F> __device__ __forceinline__ void each_warp(int count, F &&f) const {
    for (int i = warp_id() * static_cast<int>(gridDim.x) + static_cast<int>(blockIdx.x); i < count;
         i += static_cast<int>(gridDim.x) * grid_warps)
      f(i);
  }

private:
  __device__ __forceinline__ static double warp_largest(double x) {
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) x = fmax(x, exchange(x, d));
    return x;
  }
  __device__ __forceinline__ static void yield() {
#ifdef __CUDA_ARCH__
    __nanosleep(20);
#endif
  }
  unsigned *arrivals_;
  double *sums_;
  unsigned expected_;
};

} // namespace bqr

#endif
