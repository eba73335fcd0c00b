/* SPDX-License-Identifier: BSD-3-Clause */
#include "exchange_triangle.cuh"
#include "shift.cuh"
#include "common/matrix/member.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/launch_dependent.cuh"

namespace {
using namespace bqr;

constexpr int threads = 256, rows_of_block = 4 * threads, most_blocks_in_y = 65535;

template <class T>
__global__ void __launch_bounds__(threads)
    copy_kernel(int rows, int cols, const T *from, int64_t ld_from, T *to, int64_t ld_to) {
  const int first = static_cast<int>(blockIdx.x) * rows_of_block + thread_id();
  for (int j = static_cast<int>(blockIdx.y); j < cols; j += static_cast<int>(gridDim.y)) {
#pragma unroll
    for (int i = 0; i < rows_of_block / threads; i++) {
      const int r = first + i * threads;
      if (r < rows) to[r + j * ld_to] = from[r + j * ld_from];
    }
  }
}

/* T = -U S Y1^-H from a top; rows of T are lanes. */
template <class T>
__global__ void __launch_bounds__(threads) unfold_kernel(const __grid_constant__ bqr_wy_panel p) {
  constexpr int N = warp_lanes;
  __shared__ T top[N + 1][N + 1], t[N][N + 1]; /* by columns; the last one of top are the signs */
  wait_for_previous();
  if (p.done && *p.done) return;
  exchange_triangle<T>(p);
  if (blockIdx.x > 0) return;
  for (int e = thread_id(); e < N * (N + 1); e += threads)
    top[e / N][e % N] = static_cast<const T *>(p.top)[e];
  block_sync();
  if (warp_id() == 0) {
    const int i = lane_id();
    T x[N];
#pragma unroll
    for (int j = 0; j < N; j++) x[j] = i <= j ? -(top[j][i] * top[N][j]) : zero<T>();
#pragma unroll
    for (int k = 0; k < N; k++) {
      t[k][i] = x[k];
#pragma unroll
      for (int j = k + 1; j < N; j++) x[j] = madd(-x[k], conj(top[k][j]), x[j]);
    }
  }
  block_sync();
  const int below = p.cols - p.at;
  for (int e = thread_id(); e < below * p.width; e += threads) {
    const int i = e % below, j = e / below;
    static_cast<T *>(p.t)[p.at + i + (p.at + j) * p.ldt] = i < N ? t[j][i] : zero<T>();
  }
}

/* Blocks in x are columns. */
template <class T>
__global__ void __launch_bounds__(threads)
    restore_kernel(int width, int cols, const T *r, int64_t ldr, T *a, int64_t lda, bqr_wy_many many) {
  r = shifted(r, blockIdx.y, many.own);
  a = shifted(a, blockIdx.y, many.a);
  const int j = static_cast<int>(blockIdx.x), first = j / width * width;
  for (int i = thread_id(); first + i <= j; i += threads) a[first + i + j * lda] = r[i + j * ldr];
}

unsigned pieces_of(int rows) { return static_cast<unsigned>((rows - 1) / rows_of_block + 1); }
} // namespace

extern "C" {

batchqr_status bqr_wy_copy(batchqr_type type, int rows, int cols, const void *from, int64_t ld_from, void *to,
                           int64_t ld_to, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(
        copy_kernel<T>, dim3(pieces_of(rows), static_cast<unsigned>(least(cols, most_blocks_in_y))), threads,
        0, stream, rows, cols, static_cast<const T *>(from), ld_from, static_cast<T *>(to), ld_to);
  });
}

batchqr_status bqr_wy_unfold(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    const int elements = (panel->at + panel->width) * panel->width;
    return launch_dependent(unfold_kernel<typename decltype(tag)::type>,
                            grid_for((elements - 1) / rows_of_block + 1), threads, 0, stream, *panel);
  });
}

batchqr_status bqr_wy_restore_many(batchqr_type type, int width, int cols, const void *r, int64_t ldr,
                                   void *a, int64_t lda, const bqr_wy_many *many, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const dim3 grid(static_cast<unsigned>(cols), members_of(*many));
    return launch_kernel(restore_kernel<T>, grid, threads, 0, stream, width, cols, static_cast<const T *>(r),
                         ldr, static_cast<T *>(a), lda, *many);
  });
}

batchqr_status bqr_wy_restore(batchqr_type type, int width, int cols, const void *r, int64_t ldr, void *a,
                              int64_t lda, batchqr_stream stream) {
  const bqr_wy_many one = {};
  return bqr_wy_restore_many(type, width, cols, r, ldr, a, lda, &one, stream);
}

batchqr_status bqr_wy_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(copy_kernel<T>, 0);
    if (!status) status = prepare_kernel(unfold_kernel<T>, 0);
    return status ? status : prepare_kernel(restore_kernel<T>, 0);
  });
}
}
