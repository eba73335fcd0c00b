/* SPDX-License-Identifier: BSD-3-Clause */
/* R of (A D)^H A D = R^H R, in single precision, in place of the copy: 128 columns' triangle by one block,
 * which leaves its inverse alone; then R's rows right of it, and what they take from the rows below up to the
 * end of an outer block. What they take from all others are products on matrix units
 * (src/drivers/gram_factor.c). A pivot that is small next to its column's squared length is what rounding has
 * left of it: then R is no preconditioner. */
#include "common/matrix/view.cuh"
#include "common/ptx/cp_async.cuh"
#include "row_reduction.cuh"
#include "tall.cuh"
#include "with_task.cuh"

namespace {
using namespace bqr;

constexpr int side = BQR_REFINE_TRIANGLE, threads = 256, apart = 16;
constexpr double rounding = 0x1p-20; /* the least pivot, next to a column's squared length */

using reduction = row_reduction<low, side, threads>;
struct triangle_memory {
  low square[side * (side + 1)];
  reduction::memory rows;
  low least_pivots[side];
};

struct triangle_task {
  low *r, *inverse; /* the triangle's; of the inverse the block of refine_block columns' */
  int64_t ldr;
  const double *norms2;
  int cols;
  bqr_refine_state *state;
};

__global__ void __launch_bounds__(threads, 1) triangle_kernel(const __grid_constant__ triangle_task s) {
  constexpr int ld = side + 1;
  auto &m = *shared_memory<triangle_memory>();
  if (s.state->stop) return;
#pragma unroll 16
  for (int e = thread_id(); e < side * side; e += threads) {
    const int i = e % side, j = e / side;
    m.square[i * ld + j] = i <= j && j < s.cols ? s.r[i + j * s.ldr] : low(i == j);
  }
  for (int j = thread_id(); j < side; j += threads)
    m.least_pivots[j] = j < s.cols ? static_cast<low>(rounding * s.norms2[j]) : 0;
  block_sync();
  reduction rows;
  rows.load([&](int i, int j) { return m.square[i * ld + j]; });
  if (!rows.run(m.rows, side, [&](int i) { return m.least_pivots[i]; })) {
    if (thread_id() == 0) s.state->failed = s.state->stop = 1;
    return;
  }
  rows.each(
      [&](int i, int j, low x) { s.inverse[j + i * static_cast<int64_t>(refine_block)] = j <= i ? x : 0; });
}

/* The whole inverse, before: zeros. */
__global__ void __launch_bounds__(threads)
    clear_kernel(float4 *inverse, int64_t count, const bqr_refine_state *state) {
  if (state->stop) return;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * threads + thread_id(); i < count;
       i += static_cast<int64_t>(gridDim.x) * threads)
    inverse[i] = {};
}

/* c := left^H right, or c -= that, of `side` rows of left and right, by tiles of `side` x `strip`. Where c is
 * right's memory, a block reads all that it overwrites first. */
constexpr int strip = 64, rows_ld = side + 4;
struct rows_memory {
  alignas(16) low left[side * rows_ld], right[strip * rows_ld];
};
struct rows_task {
  const low *left, *right;
  low *c;
  int64_t ldl, ldr, ldc;
  int row_tiles, cols;
  const bqr_refine_state *state;
};

/* Columns from `first` on of `side` rows, zeros from column `end` on. */
__device__ __forceinline__ void fetch_columns(low *to, int count, const low *from, int64_t ld, int first,
                                              int end) {
  constexpr int pack = 16 / sizeof(low), packs = side / pack;
#pragma unroll 8
  for (int e = thread_id(); e < count * packs; e += threads) {
    const int k = e % packs * pack, j = e / packs;
    const bool in = first + j < end;
    copy_async_if<16>(in, to + j * rows_ld + k, in ? from + k + (first + j) * ld : from);
  }
}

template <bool SUBTRACT>
__global__ void __launch_bounds__(threads, 2) rows_kernel(const __grid_constant__ rows_task s) {
  constexpr int rows = side / apart, cols = strip / apart, pack = 4;
  auto &m = *shared_memory<rows_memory>();
  if (s.state->stop) return;
  const int row = static_cast<int>(blockIdx.x) % s.row_tiles * side,
            col = static_cast<int>(blockIdx.x) / s.row_tiles * strip;
  if (SUBTRACT && col + strip <= row) return; /* below the diagonal */
  fetch_columns(m.left, side, s.left, s.ldl, row, SUBTRACT ? s.cols : side);
  fetch_columns(m.right, strip, s.right, s.ldr, col, s.cols);
  copy_async_wait();
  block_sync();
  const int i0 = thread_id() % apart, j0 = thread_id() / apart;
  low sum[rows][cols] = {};
#pragma unroll 2
  for (int k = 0; k < side; k += pack) {
    float4 x[rows], y[cols];
#pragma unroll
    for (int i = 0; i < rows; i++)
      x[i] = *reinterpret_cast<const float4 *>(m.left + (i0 + apart * i) * rows_ld + k);
#pragma unroll
    for (int j = 0; j < cols; j++)
      y[j] = *reinterpret_cast<const float4 *>(m.right + (j0 + apart * j) * rows_ld + k);
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
      for (int j = 0; j < cols; j++)
        sum[i][j] = fused(x[i].x, y[j].x,
                          fused(x[i].y, y[j].y, fused(x[i].z, y[j].z, fused(x[i].w, y[j].w, sum[i][j]))));
  }
  low before[rows][cols];
  auto each = [&](auto &&f) {
#pragma unroll
    for (int j = 0; j < cols; j++)
#pragma unroll
      for (int i = 0; i < rows; i++) {
        const int at = col + j0 + apart * j, down = row + i0 + apart * i;
        if (at < s.cols && (!SUBTRACT || down <= at)) f(s.c[down + at * s.ldc], before[i][j], sum[i][j]);
      }
  };
  if (SUBTRACT) each([](const low &c, low &x, low) { x = c; });
  each([](low &c, low x, low y) { c = SUBTRACT ? x - y : y; });
}

unsigned strips_of(int cols) { return static_cast<unsigned>((cols - 1) / strip + 1); }
} // namespace

extern "C" {

batchqr_status bqr_refine_clear(const bqr_refine *r, batchqr_stream stream) {
  return with_task(r, [&](auto s) {
    const int64_t count = refine_blocks_of(s.n) * refine_block * refine_block / 4;
    return launch_kernel(clear_kernel, static_cast<unsigned>(4 * s.blocks), threads, 0, stream,
                         reinterpret_cast<float4 *>(s.inverse), count, s.state);
  });
}

batchqr_status bqr_refine_rows(const bqr_refine *r, int at, int end, batchqr_stream stream) {
  return with_task(r, [&](auto s) {
    low *const own = s.copy + at + at * s.ldcopy, *const right = own + side * s.ldcopy;
    const int64_t in_block = at % refine_block;
    low *const inverse = s.inverse + static_cast<int64_t>(at / refine_block) * refine_block * refine_block +
                         in_block * (refine_block + 1);
    const int behind = s.n - at - side;
    const triangle_task triangle = {own, inverse, s.ldcopy, s.norms2 + at, least(side, s.n - at), s.state};
    batchqr_status status =
        launch_kernel(triangle_kernel, 1, threads, sizeof(triangle_memory), stream, triangle);
    if (status || behind <= 0) return status;
    const rows_task solve = {inverse, right, right, refine_block, s.ldcopy, s.ldcopy, 1, behind, s.state};
    status =
        launch_kernel(rows_kernel<false>, strips_of(behind), threads, sizeof(rows_memory), stream, solve);
    const int below = least(end, s.n) - at - side;
    if (status || below <= 0) return status;
    const unsigned tiles = static_cast<unsigned>((below - 1) / side + 1);
    const rows_task subtract = {
        right, right, right + side, s.ldcopy, s.ldcopy, s.ldcopy, static_cast<int>(tiles), behind, s.state};
    return launch_kernel(rows_kernel<true>, tiles * strips_of(behind), threads, sizeof(rows_memory), stream,
                         subtract);
  });
}

batchqr_status bqr_refine_cholesky_prepare(void) {
  batchqr_status status = prepare_kernel(triangle_kernel, sizeof(triangle_memory));
  if (!status) status = prepare_kernel(clear_kernel, 0);
  if (!status) status = prepare_kernel(rows_kernel<false>, sizeof(rows_memory));
  return status ? status : prepare_kernel(rows_kernel<true>, sizeof(rows_memory));
}
}
