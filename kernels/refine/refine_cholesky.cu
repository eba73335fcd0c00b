/* SPDX-License-Identifier: BSD-3-Clause */
/* R of (A D)^H A D = R^H R, in single precision, in place of the copy: 128 columns' triangle by one block, in
 * double precision, which leaves its inverse alone; then R's rows right of it, and what they take from the
 * rows below up to the end of an outer block. What they take from all others are products on matrix units
 * (src/drivers/gram_factor.c). A pivot that is small next to its column's squared length is what rounding has
 * left of it: then R is no preconditioner. */
#include "common/matrix/view.cuh"
#include "small_square.cuh"
#include "tall.cuh"

namespace {
using namespace bqr;

constexpr int side = BQR_REFINE_TRIANGLE, warps = 8, threads = warps * warp_lanes;
constexpr double rounding = 0x1p-20; /* the least pivot */

struct triangle_memory {
  square_memory<side, warps> square;
  square_scales<side> scales;
  double sums[2 * warps * 4];
};

struct triangle_task {
  low *r, *inverse; /* the triangle's; of the inverse the block of refine_block columns' */
  int64_t ldr;
  const double *norms2;
  int cols;
  bqr_refine_state *state;
};

__global__ void __launch_bounds__(threads, 1) triangle_kernel(const __grid_constant__ triangle_task s) {
  auto &m = *shared_memory<triangle_memory>();
  constexpr int ld = square_memory<side, warps>::ld;
  if (s.state->stop) return;
#pragma unroll 8
  for (int e = thread_id(); e < side * side; e += threads) {
    const int i = e % side, j = e / side;
    if (i <= j && j < s.cols) m.square.x[i * ld + j] = s.r[i + j * s.ldr];
  }
  block_sync();
  small_square<side, warps> square(m.square, m.scales, m.sums, s.cols);
  bool good = square.invert();
  for (int j = thread_id(); j < s.cols && good; j += threads) {
    const double inverse = times_power(m.square.x[j * ld + j], m.scales.exponents[j]);
    good = inverse * inverse * rounding * s.norms2[j] < 1;
  }
  if (block_any(!good)) {
    if (thread_id() == 0) s.state->failed = s.state->stop = 1;
    return;
  }
  for (int e = thread_id(); e < side * side; e += threads) {
    const int i = e % side, j = e / side;
    const bool in = i <= j && j < s.cols;
    s.inverse[i + j * static_cast<int64_t>(refine_block)] =
        in ? static_cast<low>(times_power(m.square.x[j * ld + i], m.scales.exponents[i])) : low(i == j);
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
constexpr int strip = 64, depth_ld = side + 4;
struct rows_memory {
  alignas(16) low left[side * depth_ld], right[strip * depth_ld];
};
struct rows_task {
  const low *left, *right;
  low *c;
  int64_t ldl, ldr, ldc;
  int row_tiles, cols;
  const bqr_refine_state *state;
};

template <bool SUBTRACT>
__global__ void __launch_bounds__(threads, 2) rows_kernel(const __grid_constant__ rows_task s) {
  constexpr int apart = 16, rows = side / apart, cols = strip / apart, pack = 4;
  auto &m = *shared_memory<rows_memory>();
  if (s.state->stop) return;
  const int row = static_cast<int>(blockIdx.x) % s.row_tiles * side,
            col = static_cast<int>(blockIdx.x) / s.row_tiles * strip;
  if (SUBTRACT && col + strip <= row) return; /* below the diagonal */
  const int count = least(strip, s.cols - col);
#pragma unroll 8
  for (int e = thread_id(); e < side * side; e += threads) {
    const int k = e % side, j = e / side;
    const bool in = SUBTRACT ? row + j < s.cols : k <= j;
    m.left[j * depth_ld + k] = in ? s.left[k + (row + j) * s.ldl] : low(0);
  }
#pragma unroll 8
  for (int e = thread_id(); e < side * strip; e += threads) {
    const int k = e % side, j = e / side;
    m.right[j * depth_ld + k] = j < count ? s.right[k + (col + j) * s.ldr] : low(0);
  }
  block_sync();
  const int i0 = thread_id() % apart, j0 = thread_id() / apart;
  low sum[rows][cols] = {};
#pragma unroll 2
  for (int k = 0; k < side; k += pack) {
    float4 x[rows], y[cols];
#pragma unroll
    for (int i = 0; i < rows; i++)
      x[i] = *reinterpret_cast<const float4 *>(m.left + (i0 + apart * i) * depth_ld + k);
#pragma unroll
    for (int j = 0; j < cols; j++)
      y[j] = *reinterpret_cast<const float4 *>(m.right + (j0 + apart * j) * depth_ld + k);
#pragma unroll
    for (int i = 0; i < rows; i++)
#pragma unroll
      for (int j = 0; j < cols; j++)
        sum[i][j] = fused(x[i].x, y[j].x,
                          fused(x[i].y, y[j].y, fused(x[i].z, y[j].z, fused(x[i].w, y[j].w, sum[i][j]))));
  }
#pragma unroll
  for (int j = 0; j < cols; j++)
#pragma unroll
    for (int i = 0; i < rows; i++) {
      const int at = col + j0 + apart * j, down = row + i0 + apart * i;
      if (at >= s.cols || (SUBTRACT && down > at)) continue;
      low &to = s.c[down + at * s.ldc];
      to = SUBTRACT ? to - sum[i][j] : sum[i][j];
    }
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
