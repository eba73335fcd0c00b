/* SPDX-License-Identifier: BSD-3-Clause */
/* A block of threads makes a tile of a member's C, every thread 4 x 4 elements of it (z: 2 x 4). Chunks of
 * op(A) and of B go through shared memory, and the next ones are on their way while these are multiplied. */
#include "member_gemm.h"
#include "common/simt/launch.cuh"
#include "common/matrix/pieces.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace {

constexpr int down = 16, across = 8, threads = down * across, chunk = 16;
template <class T> constexpr int rows_each = std::is_same<T, complex_double>::value ? 2 : 4;
constexpr int cols_each = 4, tile_cols = across * cols_each;
template <class T> constexpr int tile_rows = down *rows_each<T>;

/* A chunk of an operand on its way: LINES lines (rows of op(A), columns of B) of `chunk` entries each. */
template <class T, int LINES> struct part {
  static constexpr int mine = LINES * chunk / threads;
  T x[mine];

  /* f(i, line, l) for the thread's entries; neighbours have neighbouring l, or else lines. */
  template <class F> __device__ __forceinline__ static void for_mine(bool along, F &&f) {
#pragma unroll
    for (int i = 0; i < mine; i++) {
      const int at = thread_id() + i * threads;
      if (along)
        f(i, at / chunk, at % chunk);
      else
        f(i, at % LINES, at / LINES);
    }
  }
};

/* The entries first .. first + chunk - 1 of the lines from `line` on of op(x): entry l of line i is at l + i
 * ld, or at i + l ld where they do not lie `along` the columns. Zeros beyond. */
template <class T, int LINES>
__device__ __forceinline__ void load(part<T, LINES> &p, const T *x, int64_t ld, bool along, int line,
                                     int lines, int first, int length) {
  p.for_mine(along, [&](int i, int r, int l) {
    const int64_t row = line + r, at = first + l;
    const bool there = row < lines && at < length;
    p.x[i] = there ? x[along ? at + row * ld : row + at * ld] : zero<T>();
  });
}

template <class T>
__global__ void __launch_bounds__(threads)
    member_gemm_kernel(const __grid_constant__ bqr_args args, bool adjoint, int tiles_down, int tiles) {
  /* One more: entries that threads write at once are in different banks. */
  __shared__ T of_a[chunk][tile_rows<T> + 1], of_b[chunk][tile_cols + 1];
  for (int64_t i = blockIdx.x; i < args.count * tiles; i += gridDim.x) {
    const int64_t entry = i / tiles, id = args.members ? args.members[entry] : entry;
    const int tile = static_cast<int>(i % tiles), row = tile % tiles_down * tile_rows<T>,
              col = tile / tiles_down * tile_cols;
    const int rows = adjoint ? args.n : args.m, inner = adjoint ? args.m : args.n, cols = args.k;
    const T *a = inner > 0 ? matrix_data<T>(args, args.a, id) : nullptr,
            *b = inner > 0 ? matrix_data<T>(args, args.r, id) : nullptr;
    T *c = matrix_data<T>(args, args.c, id);
    const int64_t lda = matrix_ld(args.a, id), ldb = matrix_ld(args.r, id), ldc = matrix_ld(args.c, id);
    const real_t<T> scale = args.scales ? static_cast<real_t<T>>(args.scales[2 * id]) : real_t<T>(1);
    const int my_row = thread_id() % down, my_col = thread_id() / down;
    T sum[cols_each][rows_each<T>];
#pragma unroll
    for (int y = 0; y < cols_each; y++)
#pragma unroll
      for (int x = 0; x < rows_each<T>; x++) sum[y][x] = zero<T>();
    part<T, tile_rows<T>> next_a;
    part<T, tile_cols> next_b;
    load(next_a, a, lda, adjoint, row, rows, 0, inner);
    load(next_b, b, ldb, true, col, cols, 0, inner);
    for (int k = 0; k < inner; k += chunk) {
      block_sync();
      next_a.for_mine(adjoint,
                      [&](int q, int r, int l) { of_a[l][r] = adjoint ? conj(next_a.x[q]) : next_a.x[q]; });
      next_b.for_mine(true, [&](int q, int r, int l) { of_b[l][r] = scaled(next_b.x[q], scale); });
      block_sync();
      if (k + chunk < inner) {
        load(next_a, a, lda, adjoint, row, rows, k + chunk, inner);
        load(next_b, b, ldb, true, col, cols, k + chunk, inner);
      }
#pragma unroll 4
      for (int l = 0; l < chunk; l++) {
        T left[rows_each<T>], right[cols_each];
#pragma unroll
        for (int x = 0; x < rows_each<T>; x++) left[x] = of_a[l][my_row + x * down];
#pragma unroll
        for (int y = 0; y < cols_each; y++) right[y] = of_b[l][my_col + y * across];
#pragma unroll
        for (int y = 0; y < cols_each; y++)
#pragma unroll
          for (int x = 0; x < rows_each<T>; x++) sum[y][x] = madd(left[x], right[y], sum[y][x]);
      }
    }
#pragma unroll
    for (int y = 0; y < cols_each; y++)
#pragma unroll
      for (int x = 0; x < rows_each<T>; x++) {
        const int64_t at = row + my_row + x * down, to = col + my_col + y * across;
        if (at < rows && to < cols) c[at + to * ldc] = sum[y][x];
      }
  }
}

/* r: x.m x x.n. */
template <class T>
__global__ void __launch_bounds__(piece_plan::block_threads)
    member_scale_kernel(const __grid_constant__ bqr_args args, bool back, piece_plan plan) {
  for_pieces<BQR_COPY>(args, plan, [&](const member &x, auto &&walk) {
    const double scale = args.scales[2 * x.id];
    if (scale == 1) return;
    const auto by = static_cast<real_t<T>>(back ? 1 / scale : scale);
    T *r = matrix_data<T>(args, args.r, x.id);
    const int64_t ld = matrix_ld(args.r, x.id);
    walk(x.m, x.n, [&](int i, int j) { r[i + j * ld] = scaled(r[i + j * ld], by); });
  });
}

} // namespace
} // namespace bqr

extern "C" batchqr_status bqr_member_gemm_prepare(batchqr_type type) {
  return bqr::for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    const batchqr_status status = bqr::prepare_kernel(bqr::member_gemm_kernel<T>, 0);
    return status ? status : bqr::prepare_kernel(bqr::member_scale_kernel<T>, 0);
  });
}

extern "C" batchqr_status bqr_member_gemm(const bqr_problem *problem, const bqr_args *args,
                                          batchqr_stream stream) {
  const bool adjoint = problem->trans != BATCHQR_NO_TRANS;
  const int rows = adjoint ? args->n : args->m;
  if (rows == 0 || args->k == 0) return BATCHQR_SUCCESS;
  return bqr::for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int tiles_down = (rows - 1) / bqr::tile_rows<T> + 1,
              tiles = tiles_down * ((args->k - 1) / bqr::tile_cols + 1);
    return bqr::launch_kernel(bqr::member_gemm_kernel<T>, bqr::grid_for(args->count * tiles), bqr::threads, 0,
                              stream, *args, adjoint, tiles_down, tiles);
  });
}

extern "C" batchqr_status bqr_member_gemm_scale(const bqr_problem *problem, const bqr_args *args, bool back,
                                                batchqr_stream stream) {
  bqr_args of_r = *args;
  if (problem->trans == BATCHQR_NO_TRANS) of_r.m = args->n;
  of_r.n = args->k;
  const bqr::piece_plan plan = bqr::plan_pieces(of_r.m, of_r.n);
  return bqr::for_type(problem->type, [&](auto tag) {
    return bqr::launch_kernel(bqr::member_scale_kernel<typename decltype(tag)::type>,
                              bqr::piece_grid(plan, args->count), bqr::piece_plan::block_threads, 0, stream,
                              of_r, back, plan);
  });
}
