/* SPDX-License-Identifier: BSD-3-Clause */
/* What surrounds the blocks of reflectors that are applied to C: info, and the lines near the ends of the
 * range, columns (left) or rows (right), which are brought nearer to 1 before and back after; see
 * common/range.cuh. */
#include "blocked.h"
#include "block.cuh"
#include "launch.cuh"
#include "member.cuh"

namespace {
using namespace bqr;

constexpr int lines_of_block = warp_lanes, warps = 8;

/* A block's lines of one member. On the left each is a warp's; on the right a lane's, of all warps. */
template <class T, bool LEFT> struct block_lines {
  T *c;
  int64_t ld;
  int count, length;

  /* f(number of the line, entry) for the thread's entries of them; g(number) when it is through with one */
  template <class F, class G> __device__ __forceinline__ void each(F &&f, G &&g) const {
    if (LEFT) {
      for (int l = warp_id(); l < count; l += warps) {
#pragma unroll 4
        for (int i = lane_id(); i < length; i += warp_lanes) f(l, c[i + l * ld]);
        g(l);
      }
    } else if (lane_id() < count) {
#pragma unroll 4
      for (int j = warp_id(); j < length; j += warps) f(lane_id(), c[lane_id() + j * ld]);
      g(lane_id());
    }
  }
  template <class F> __device__ __forceinline__ void each(F &&f) const {
    each(f, [](int) {});
  }
};

template <class T, bool LEFT>
__device__ __forceinline__ block_lines<T, LEFT> lines_of(const batchqr_args &args, const member &x,
                                                         int piece) {
  const int first = piece * lines_of_block, lines = LEFT ? x.n : x.m;
  if (!x.ok || x.m <= 0 || x.n <= 0 || first >= lines) return {nullptr, 0, 0, 0};
  const int64_t ld = matrix_ld(args.c, x.id);
  T *c = matrix_data<T>(args, args.c, x.id);
  return {LEFT ? c + first * ld : c + first, ld, least(lines_of_block, lines - first), LEFT ? x.m : x.n};
}

__global__ void ormqr_info_kernel(const __grid_constant__ batchqr_args args, int side) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count;
       i += threads) {
    const member x = member_at<BATCHQR_ORMQR>(args, i, side);
    set_info(args, x.id, x.ok ? 0 : BATCHQR_INFO_SIZES);
  }
}

/* scales: a byte for each line of `pieces` blocks, 0: as it was, 1: up, 2: down. */
template <class T, bool LEFT>
__global__ void __launch_bounds__(warps *warp_lanes)
    ormqr_begin_kernel(const __grid_constant__ batchqr_args args, int pieces, uint8_t *scales) {
  __shared__ uint32_t magnitudes[lines_of_block];
  for (int64_t i = blockIdx.x; i < args.count * pieces; i += gridDim.x) {
    const member x = member_at<BATCHQR_ORMQR>(args, i / pieces, LEFT ? BATCHQR_LEFT : BATCHQR_RIGHT);
    const block_lines<T, LEFT> lines = lines_of<T, LEFT>(args, x, static_cast<int>(i % pieces));
    if (warp_id() == 0) magnitudes[lane_id()] = 0;
    block_sync();
    uint32_t u = 0;
    lines.each([&](int, const T &y) { u = greater(u, magnitude(y)); },
               [&](int l) {
                 shared_max(&magnitudes[l], u);
                 u = 0;
               });
    block_sync();
    auto scale_of = [&](int l) { return x.k > 0 ? range_scale<T>(magnitudes[l], true) : real_t<T>(1); };
    const real_t<T> mine = scale_of(lane_id());
    if (warp_id() == 0) scales[i * lines_of_block + lane_id()] = mine == 1 ? 0 : mine > 1 ? 1 : 2;
    if (!magnitude_finite<T>(magnitudes[lane_id()])) set_info(args, x.id, BATCHQR_INFO_NONFINITE);
    if (group_any(mine != 1)) lines.each([&](int l, T &y) { y = scaled(y, scale_of(l)); });
    block_sync();
  }
}

template <class T, bool LEFT>
__global__ void __launch_bounds__(warps *warp_lanes)
    ormqr_end_kernel(const __grid_constant__ batchqr_args args, int pieces, const uint8_t *scales) {
  using L = limits<real_t<T>>;
  for (int64_t i = blockIdx.x; i < args.count * pieces; i += gridDim.x) {
    const uint8_t *mine = scales + i * lines_of_block;
    if (!group_any(mine[lane_id()] != 0)) continue;
    const member x = member_at<BATCHQR_ORMQR>(args, i / pieces, LEFT ? BATCHQR_LEFT : BATCHQR_RIGHT);
    lines_of<T, LEFT>(args, x, static_cast<int>(i % pieces)).each([&](int l, T &y) {
      if (mine[l] != 0) y = scaled(y, range_unscale(mine[l] == 1 ? L::range_up : L::range_down_long));
    });
  }
}

int pieces_of(const batchqr_problem *problem) {
  const int lines = problem->side == BATCHQR_LEFT ? problem->n : problem->m;
  return (largest(1, lines) - 1) / lines_of_block + 1;
}

/* f(begin kernel, end kernel) of a problem. */
template <class F> batchqr_status with_kernels(const batchqr_problem *problem, F &&f) {
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return problem->side == BATCHQR_LEFT ? f(ormqr_begin_kernel<T, true>, ormqr_end_kernel<T, true>)
                                         : f(ormqr_begin_kernel<T, false>, ormqr_end_kernel<T, false>);
  });
}

} // namespace

int64_t batchqr_ormqr_scales(const batchqr_problem *problem) { return pieces_of(problem) * lines_of_block; }

batchqr_status batchqr_ormqr_begin(const batchqr_problem *problem, const batchqr_args *args, void *scales,
                                   batchqr_stream stream) {
  constexpr int threads = warps * warp_lanes;
  batchqr_status status = BATCHQR_SUCCESS;
  if (args->info)
    status = launch_kernel(ormqr_info_kernel, grid_for((args->count - 1) / threads + 1), threads, 0, stream,
                           *args, static_cast<int>(problem->side));
  if (status) return status;
  return with_kernels(problem, [&](auto begin, auto) {
    return launch_kernel(begin, grid_for(args->count * pieces_of(problem)), threads, 0, stream, *args,
                         pieces_of(problem), static_cast<uint8_t *>(scales));
  });
}

batchqr_status batchqr_ormqr_end(const batchqr_problem *problem, const batchqr_args *args, const void *scales,
                                 batchqr_stream stream) {
  return with_kernels(problem, [&](auto, auto end) {
    return launch_kernel(end, grid_for(args->count * pieces_of(problem)), warps * warp_lanes, 0, stream,
                         *args, pieces_of(problem), static_cast<const uint8_t *>(scales));
  });
}

batchqr_status batchqr_ormqr_prepare(const batchqr_problem *problem) {
  batchqr_status status = prepare_kernel(ormqr_info_kernel, 0);
  if (status) return status;
  return with_kernels(problem, [](auto begin, auto end) {
    batchqr_status loaded = prepare_kernel(begin, 0);
    return loaded ? loaded : prepare_kernel(end, 0);
  });
}
