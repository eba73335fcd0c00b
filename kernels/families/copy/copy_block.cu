/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies members, from and to matrices by any strides. Large ones go in tiles by way of shared memory: global
 * memory is read in the direction in which A's elements are closest and written in that in which C's are.
 * Elements of small ones are read as they come, since the rest of a sector is wanted soon. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/matrix/pieces.cuh"
#include "common/matrix/view.cuh"

namespace bqr {
namespace {

constexpr int tile_width = 32, tile_threads = 256;

template <class T>
__global__ void __launch_bounds__(piece_plan::block_threads)
    copy_columns_kernel(const __grid_constant__ bqr_args args, piece_plan plan) {
  for_pieces<BQR_COPY>(args, plan, [&](const member &x, auto &&walk) {
    const T *a = matrix_data<T>(args, args.a, x.id);
    T *c = matrix_data<T>(args, args.c, x.id);
    const int64_t lda = matrix_ld(args.a, x.id), ldc = matrix_ld(args.c, x.id);
    walk(x.m, x.n,
         [&](int i, int j) { c[i * args.c.row_stride + j * ldc] = a[i * args.a.row_stride + j * lda]; });
  });
}

/* Whether adjacent rows are closer in memory than adjacent columns. */
__device__ bool rows_are_closer(int64_t row_stride, int64_t ld) { return llabs(row_stride) <= llabs(ld); }

/* f(row, column) for a tile's elements, by all threads; adjacent ones have adjacent rows or columns. */
template <class F> __device__ __forceinline__ void walk_tile(int rows, int cols, bool down, F &&f) {
  for (int e = thread_id(); e < tile_width * tile_width; e += tile_threads) {
    const int near = e % tile_width, far = e / tile_width, i = down ? near : far, j = down ? far : near;
    if (i < rows && j < cols) f(i, j);
  }
}

template <class T>
__global__ void __launch_bounds__(tile_threads)
    copy_tiles_kernel(const __grid_constant__ bqr_args args, int tile_rows, int64_t tiles) {
  T *shared = shared_memory<T>();
  for (int64_t at = blockIdx.x; at < args.count * tiles; at += gridDim.x) {
    const member x = member_at<BQR_COPY>(args, at / tiles);
    const int tile = static_cast<int>(at % tiles);
    const int row = tile % tile_rows * tile_width, col = tile / tile_rows * tile_width;
    if (!x.ok || row >= x.m || col >= x.n) continue;
    const int rows = x.m - row, cols = x.n - col;
    const int64_t rsa = args.a.row_stride, rsc = args.c.row_stride, lda = matrix_ld(args.a, x.id),
                  ldc = matrix_ld(args.c, x.id);
    const T *a = matrix_data<T>(args, args.a, x.id) + row * rsa + col * lda;
    T *c = matrix_data<T>(args, args.c, x.id) + row * rsc + col * ldc;
    walk_tile(rows, cols, rows_are_closer(rsa, lda),
              [&](int i, int j) { shared[i * (tile_width + 1) + j] = a[i * rsa + j * lda]; });
    block_sync();
    walk_tile(rows, cols, rows_are_closer(rsc, ldc),
              [&](int i, int j) { c[i * rsc + j * ldc] = shared[i * (tile_width + 1) + j]; });
    block_sync();
  }
}

const bqr_variant variants[] = {{.name = "width32", .width = tile_width}, {.name = "columns"}};

bool prefers(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return (v->width > 0) == (p->m >= tile_width && p->n >= tile_width / 2);
}

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  const int64_t rows = (p->m - 1) / tile_width + 1, cols = (p->n - 1) / tile_width + 1;
  return v->width == 0 || rows * cols <= INT32_MAX;
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return v->width > 0 ? prepare_kernel(copy_tiles_kernel<T>, 0) : prepare_kernel(copy_columns_kernel<T>, 0);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (v->width == 0) {
      const piece_plan plan = plan_pieces(p->m, p->n);
      return launch_kernel(copy_columns_kernel<T>, piece_grid(plan, args->count), piece_plan::block_threads,
                           0, stream, *args, plan);
    }
    const int tile_rows = (p->m - 1) / tile_width + 1, tile_cols = (p->n - 1) / tile_width + 1;
    const int64_t tiles = static_cast<int64_t>(tile_rows) * tile_cols;
    return launch_kernel(copy_tiles_kernel<T>, grid_for(args->count * tiles), tile_threads,
                         sizeof(T) * tile_width * (tile_width + 1), stream, *args, tile_rows, tiles);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_copy_block = {
    .name = "copy_block",
    .op = BQR_COPY,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 2,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .prefers = bqr::prefers,
};
