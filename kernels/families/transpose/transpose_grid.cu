/* SPDX-License-Identifier: BSD-3-Clause */
/* transpose_grid: the first step of GELS, for members that one block of threads would be busy with for long.
 * A first kernel finds the largest magnitudes of A and of B, a second one scales where that is needed and
 * makes the copies, transposed ones through shared memory. Blocks share a member's pieces. */
#include "costs.h"
#include "family.h"
#include "tall_sizes.cuh"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {
namespace {

constexpr int warps = 8, threads = warps * warp_lanes;
constexpr int piece_rows = 1024, piece_cols = 8; /* of a matrix that stays as it is stored */
constexpr int tile = warp_lanes, tile_ld = tile + 1;

/* Pieces of a matrix. One whose columns are adjacent is cut into pieces of one long column. */
struct pieces_of {
  int rows, cols; /* of a piece */
  int down;       /* pieces in a column of them */
  int64_t count;
};

BQR_INLINE int64_t pieces_along(int64_t length, int piece) { return (length + piece - 1) / piece; }

BQR_INLINE pieces_of cut(int rows, int cols, int piece_of_rows, int piece_of_cols) {
  const int64_t down = pieces_along(rows, piece_of_rows);
  return {piece_of_rows, piece_of_cols, static_cast<int>(down), down * pieces_along(cols, piece_of_cols)};
}

/* f(element) for the elements of the pieces `first`, first + step, ... of a. */
template <class T, class F>
__device__ __forceinline__ void for_pieces(const matrix_view<T> &a, int64_t first, int64_t step, F &&f) {
  if (a.rows == 0 || a.cols == 0) return;
  if (a.ld == a.rows || a.cols == 1) {
    const int64_t size = static_cast<int64_t>(a.rows) * a.cols;
    constexpr int length = piece_rows * piece_cols;
    for (int64_t start = first * length; start < size; start += step * length) {
      const int count = size - start < length ? static_cast<int>(size - start) : length;
#pragma unroll 8
      for (int i = thread_id(); i < count; i += threads) f(a.data[start + i]);
    }
    return;
  }
  const pieces_of cuts = cut(a.rows, a.cols, piece_rows, piece_cols);
  for (int64_t p = first; p < cuts.count; p += step) {
    const int row = static_cast<int>(p % cuts.down) * piece_rows,
              col = static_cast<int>(p / cuts.down) * piece_cols;
    const int rows = least(piece_rows, a.rows - row), cols = least(piece_cols, a.cols - col);
    for_each(a.part(row, col, rows, cols), [&](T &x, int, int) { f(x); });
  }
}

/* to := scale * from^H, tile by tile. */
template <class T>
__device__ __forceinline__ void transpose_pieces(const matrix_view<T> &from, const matrix_view<T> &to,
                                                 real_t<T> scale, int64_t first, int64_t step) {
  __shared__ T memory[tile * tile_ld];
  const pieces_of cuts = cut(from.rows, from.cols, tile, tile);
  for (int64_t p = first; p < cuts.count; p += step) {
    const int row = static_cast<int>(p % cuts.down) * tile, col = static_cast<int>(p / cuts.down) * tile;
    block_sync();
#pragma unroll
    for (int j = warp_id(); j < tile; j += warps)
      if (row + lane_id() < from.rows && col + j < from.cols)
        memory[lane_id() + j * tile_ld] = *from.at(row + lane_id(), col + j);
    block_sync();
#pragma unroll
    for (int j = warp_id(); j < tile; j += warps)
      if (col + lane_id() < from.cols && row + j < from.rows)
        *to.at(col + lane_id(), row + j) = scaled(conj(memory[j + lane_id() * tile_ld]), scale);
  }
}

/* to := scale * from, piece by piece. */
template <class T>
__device__ __forceinline__ void copy_pieces(const matrix_view<T> &from, const matrix_view<T> &to,
                                            real_t<T> scale, int64_t first, int64_t step) {
  const pieces_of cuts = cut(from.rows, from.cols, piece_rows, piece_cols);
  for (int64_t p = first; p < cuts.count; p += step) {
    const int row = static_cast<int>(p % cuts.down) * piece_rows,
              col = static_cast<int>(p / cuts.down) * piece_cols;
    const int rows = least(piece_rows, from.rows - row), cols = least(piece_cols, from.cols - col);
    const matrix_view<T> mine = to.part(row, col, rows, cols);
    for_each(from.part(row, col, rows, cols),
             [&](const T &x, int i, int j) { *mine.at(i, j) = scaled(x, scale); });
  }
}

template <class T> struct system_views { matrix_view<T> a, b; };
template <class T>
__device__ __forceinline__ system_views<T> views_of(const bqr_args &args, const member &x, bool transposed) {
  system_views<T> v = {{nullptr, 0, 0, 0}, {nullptr, 0, 0, 0}};
  const int b_rows = transposed ? x.n : x.m;
  if (x.m > 0 && x.n > 0) v.a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
  if (b_rows > 0 && x.k > 0) v.b = {matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), b_rows, x.k};
  return v;
}

/* magnitudes: the largest of A and of B, of each entry; zeros before. */
template <class T>
__global__ void __launch_bounds__(threads)
    transpose_measure_kernel(const __grid_constant__ bqr_args args, bool transposed, int shares,
                             uint32_t *magnitudes) {
  __shared__ T scratch[block_reducer<T, 1>::elements_for(warps)];
  block_reducer<T, 1> reducer(scratch);
  for (int64_t i = blockIdx.x; i < args.count * shares; i += gridDim.x) {
    const int64_t entry = i / shares, share = i % shares;
    const member x = member_at<BQR_TRANSPOSE>(args, entry);
    if (!x.ok) continue;
    const system_views<T> v = views_of<T>(args, x, transposed);
    uint32_t of_a = 0, of_b = 0;
    for_pieces(v.a, share, shares, [&](const T &y) { of_a = greater(of_a, magnitude(y)); });
    for_pieces(v.b, share, shares, [&](const T &y) { of_b = greater(of_b, magnitude(y)); });
    of_a = reducer.max(of_a);
    of_b = reducer.max(of_b);
    if (thread_id() > 0) continue;
    atomicMax(magnitudes + 2 * entry, of_a);
    atomicMax(magnitudes + 2 * entry + 1, of_b);
  }
}

template <class T>
__global__ void __launch_bounds__(threads)
    transpose_grid_kernel(const __grid_constant__ bqr_args args, bool transposed, int shares,
                          const uint32_t *magnitudes) {
  using R = real_t<T>;
  for (int64_t i = blockIdx.x; i < args.count * shares; i += gridDim.x) {
    const int64_t entry = i / shares, share = i % shares;
    const member x = member_at<BQR_TRANSPOSE>(args, entry);
    if (share == 0) write_tall_sizes(args, x, transposed);
    if (!x.ok) continue;
    const system_views<T> v = views_of<T>(args, x, transposed);
    const uint32_t of_a = magnitudes[2 * entry], of_b = magnitudes[2 * entry + 1];
    const bool finite = magnitude_finite<T>(greater(of_a, of_b));
    const R scale_a = finite ? range_scale<T>(of_a, false) : R(1),
            scale_b = finite ? range_scale<T>(of_b, false) : R(1);
    if (share == 0 && thread_id() == 0) {
      args.scales[2 * x.id] = finite ? scale_a : nan("");
      args.scales[2 * x.id + 1] = scale_b;
    }
    if (!args.r.data) {
      if (scale_a != 1) for_pieces(v.a, share, shares, [&](T &y) { y = scaled(y, scale_a); });
    } else if (v.a.cols > 0) {
      const matrix_view<T> to{matrix_data<T>(args, args.r, x.id), matrix_ld(args.r, x.id), largest(x.m, x.n),
                              least(x.m, x.n)};
      if (x.m < x.n)
        transpose_pieces(v.a, to, scale_a, share, shares);
      else
        copy_pieces(v.a, to, scale_a, share, shares);
    }
    if (scale_b != 1) for_pieces(v.b, share, shares, [&](T &y) { y = scaled(y, scale_b); });
  }
}

/* Blocks for each member: as many as it has pieces, but no more than keep the device busy. */
int shares_of(const bqr_problem *p, const bqr_device *device) {
  constexpr int resident = 8;
  const int64_t elements =
      static_cast<int64_t>(p->m) * p->n + static_cast<int64_t>(largest(p->m, p->n)) * p->k;
  const int64_t pieces = largest(int64_t(1), pieces_along(elements, piece_rows * piece_cols));
  const int64_t busy =
      pieces_along(static_cast<int64_t>(resident) * device->multiprocessors,
                   static_cast<int>(p->count < 1 << 20 ? largest(p->count, int64_t(1)) : 1 << 20));
  return static_cast<int>(pieces < busy ? pieces : busy);
}

const bqr_variant variants[] = {{.name = "warps8", .warps = warps}};

bool supports(const bqr_problem *, const bqr_variant *, const bqr_device *) { return true; }

/* Large members, and too few of them to keep all multiprocessors busy otherwise. */
bool prefers(const bqr_problem *p, const bqr_variant *, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  return static_cast<double>(p->m) * p->n >= costs->transposed_elements &&
         static_cast<double>(p->count) < costs->transposed_members * device->multiprocessors;
}

size_t magnitudes_bytes(const bqr_problem *p) { return static_cast<size_t>(p->count) * 2 * sizeof(uint32_t); }

size_t workspace_bytes(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return magnitudes_bytes(p);
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return for_type(p->type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(transpose_measure_kernel<T>, 0);
    return status ? status : prepare_kernel(transpose_grid_kernel<T>, 0);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *, const bqr_device *device,
                      const bqr_args *args, batchqr_stream stream) {
  const bool transposed = p->trans != BATCHQR_NO_TRANS;
  const int shares = shares_of(p, device);
  uint32_t *magnitudes = static_cast<uint32_t *>(args->workspace);
  batchqr_status status = status_of(cudaMemsetAsync(magnitudes, 0, magnitudes_bytes(p), stream));
  if (status) return status;
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const unsigned grid = grid_for(args->count * shares);
    batchqr_status measured = launch_kernel(transpose_measure_kernel<T>, grid, threads, 0, stream, *args,
                                            transposed, shares, magnitudes);
    if (measured) return measured;
    return launch_kernel(transpose_grid_kernel<T>, grid, threads, 0, stream, *args, transposed, shares,
                         static_cast<const uint32_t *>(magnitudes));
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_transpose_grid = {
    .name = "transpose_grid",
    .op = BQR_TRANSPOSE,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 3,
    .supports = bqr::supports,
    .workspace = bqr::workspace_bytes,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
    .prefers = bqr::prefers,
};
