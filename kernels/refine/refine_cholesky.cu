/* SPDX-License-Identifier: BSD-3-Clause */
/* R of (A D)^H A D = R^H R, in single precision, in place of the copy: 128 columns' triangle by one block,
 * which leaves its inverse alone; then R's rows right of it, and what they take from the rows below up to the
 * end of an outer block. What they take from all others are products on matrix units
 * (src/drivers/gram_factor.c). A pivot that is small next to its column's squared length is what rounding has
 * left of it: then R is no preconditioner. */
#include "common/matrix/view.cuh"
#include "common/ptx/cp_async.cuh"
#include "tall.cuh"

namespace {
using namespace bqr;

constexpr int side = BQR_REFINE_TRIANGLE, threads = 256, apart = 16;
constexpr double rounding = 0x1p-20; /* the least pivot, next to a column's squared length */

/* 128 columns of G = R^H R. [G, I] becomes [R, R^-H] by four rows at a time; as its left half is upper and
 * the right one lower triangular, one square in registers holds what is not yet known of R and what is of
 * R^-H. A thread has rows and columns 16 apart. */
struct triangle_memory {
  low square[side * (side + 1)];
  alignas(16) float4 rows[side]; /* of a column what four rows are before they become R's and R^-H's */
  float4 done[side];             /* and afterwards; of those four columns R^-H's alone */
  low least_pivots[side];
  int failed;
};

struct triangle_task {
  low *r, *inverse; /* the triangle's; of the inverse the block of refine_block columns' */
  int64_t ldr;
  const double *norms2;
  int cols;
  bqr_refine_state *state;
};

/* Column `col` of the four rows from `top` on, G's and I's. Whether pivots are large enough. */
__device__ __forceinline__ bool reduce_rows(triangle_memory &m, int top, int col) {
  const float4 c0 = m.rows[top], c1 = m.rows[top + 1], c2 = m.rows[top + 2], c3 = m.rows[top + 3];
  float4 x = m.rows[col];
  const int own = col - top;
  if (own >= 0 && own < 4) x = {low(own == 0), low(own == 1), low(own == 2), low(own == 3)};
  const low d0 = fast_rsqrt(c0.x), r01 = c1.x * d0, r02 = c2.x * d0, r03 = c3.x * d0;
  const low p1 = c1.y - r01 * r01, d1 = fast_rsqrt(p1), r12 = (c2.y - r01 * r02) * d1,
            r13 = (c3.y - r01 * r03) * d1;
  const low p2 = c2.z - r02 * r02 - r12 * r12, d2 = fast_rsqrt(p2), r23 = (c3.z - r02 * r03 - r12 * r13) * d2;
  const low p3 = c3.w - r03 * r03 - r13 * r13 - r23 * r23, d3 = fast_rsqrt(p3);
  x.x = x.x * d0;
  x.y = (x.y - r01 * x.x) * d1;
  x.z = (x.z - r02 * x.x - r12 * x.y) * d2;
  x.w = (x.w - r03 * x.x - r13 * x.y - r23 * x.z) * d3;
  m.done[col] = x;
  const low *least = m.least_pivots + top;
  return c0.x > least[0] && p1 > least[1] && p2 > least[2] && p3 > least[3];
}

__global__ void __launch_bounds__(threads, 1) triangle_kernel(const __grid_constant__ triangle_task s) {
  constexpr int each = side / apart, ld = side + 1;
  auto &m = *shared_memory<triangle_memory>();
  if (s.state->stop) return;
#pragma unroll 16
  for (int e = thread_id(); e < side * side; e += threads) {
    const int i = e % side, j = e / side;
    m.square[i * ld + j] = i <= j && j < s.cols ? s.r[i + j * s.ldr] : low(i == j);
  }
  for (int j = thread_id(); j < side; j += threads)
    m.least_pivots[j] = j < s.cols ? static_cast<low>(rounding * s.norms2[j]) : 0;
  if (thread_id() == 0) m.failed = 0;
  block_sync();
  const int col0 = thread_id() % apart, row0 = thread_id() / apart;
  low x[each][each];
#pragma unroll
  for (int u = 0; u < each; u++)
#pragma unroll
    for (int v = 0; v < each; v++) x[u][v] = m.square[(row0 + apart * u) * ld + col0 + apart * v];
#pragma unroll
  for (int u = 0; u < each; u++)
#pragma unroll 1
    for (int quarter = 0; quarter < apart; quarter += 4) {
      const int top = apart * u + quarter, own = row0 - quarter;
      const bool mine = own >= 0 && own < 4;
      if (mine)
#pragma unroll
        for (int v = 0; v < each; v++) reinterpret_cast<low *>(&m.rows[col0 + apart * v])[own] = x[u][v];
      block_sync();
      if (thread_id() < side && !reduce_rows(m, top, thread_id())) m.failed = 1;
      block_sync();
      float4 right[each];
#pragma unroll
      for (int v = 0; v < each; v++) right[v] = m.done[col0 + apart * v];
      if (col0 >= quarter && col0 < quarter + 4) /* where R^-H begins */
#pragma unroll
        for (int w = u; w < each; w++) x[w][u] = 0;
#pragma unroll
      for (int w = u; w < each; w++) {
        float4 left = m.done[row0 + apart * w];
        if (w == u && row0 < quarter + 4) left = {};
#pragma unroll
        for (int v = 0; v < each; v++)
          x[w][v] -= left.x * right[v].x + left.y * right[v].y + left.z * right[v].z + left.w * right[v].w;
      }
      if (mine)
#pragma unroll
        for (int v = 0; v < each; v++)
          x[u][v] = own == 0 ? right[v].x : own == 1 ? right[v].y : own == 2 ? right[v].z : right[v].w;
    }
  if (m.failed) {
    if (thread_id() == 0) s.state->failed = s.state->stop = 1;
    return;
  }
#pragma unroll
  for (int u = 0; u < each; u++)
#pragma unroll
    for (int v = 0; v < each; v++) {
      const int row = row0 + apart * u, col = col0 + apart * v;
      s.inverse[col + row * static_cast<int64_t>(refine_block)] = col <= row ? x[u][v] : 0;
    }
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

/* All of A's types have a copy in single precision. */
template <class F> batchqr_status with_task(const bqr_refine *r, F &&f) {
  return for_real_type(r->type,
                       [&](auto tag) { return f(refine_task_of<typename decltype(tag)::type>(*r)); });
}
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
