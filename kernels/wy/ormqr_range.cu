/* SPDX-License-Identifier: BSD-3-Clause */
/* What surrounds the blocks of reflectors that are applied to C: info, and the lines near the ends of the
 * range, columns (left) or rows (right), which are brought nearer to 1 before and back after; see
 * common/matrix/range.cuh. */
#include "wy.h"
#include "common/simt/block.cuh"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/ptx/barrier.cuh"

namespace {
using namespace bqr;

constexpr int lines_of_block = warp_lanes, warps = 8;

/* How C is shared out: blocks' lines, and, where lines are few and long, parts of these. */
struct line_plan {
  int pieces, shares, length; /* lines of so many blocks; parts of a line, and entries of one */
  static constexpr int enough = 512, least_length = 2048;
};

line_plan plan_lines(const bqr_problem *problem) {
  const bool left = problem->side == BATCHQR_LEFT;
  const int lines = left ? problem->n : problem->m, length = largest(1, left ? problem->m : problem->n);
  line_plan p = {(largest(1, lines) - 1) / lines_of_block + 1, 1, length};
  const int64_t blocks = p.pieces * largest(problem->count, int64_t(1));
  p.shares =
      static_cast<int>(largest(int64_t(1), least(int64_t(length / p.least_length), p.enough / blocks)));
  p.length = (length - 1) / p.shares + 1;
  return p;
}

/* A block's share of its lines of one member. On the left each is a warp's; on the right a lane's, of all
 * warps. */
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
__device__ __forceinline__ block_lines<T, LEFT> lines_of(const bqr_args &args, const member &x,
                                                         const line_plan &p, int64_t number) {
  const int start = static_cast<int>(number % p.shares) * p.length,
            first = static_cast<int>(number / p.shares % p.pieces) * lines_of_block;
  const int lines = LEFT ? x.n : x.m, length = LEFT ? x.m : x.n;
  if (!x.ok || x.m <= 0 || x.n <= 0 || first >= lines || start >= length) return {nullptr, 0, 0, 0};
  const int64_t ld = matrix_ld(args.c, x.id);
  T *c = matrix_data<T>(args, args.c, x.id) + (LEFT ? start + first * ld : first + start * ld);
  return {c, ld, least(lines_of_block, lines - first), least(p.length, length - start)};
}

__global__ void ormqr_info_kernel(const __grid_constant__ bqr_args args, int side) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count;
       i += threads) {
    const member x = member_at<BATCHQR_ORMQR>(args, i, side);
    set_info(args, x.id, x.ok ? 0 : BATCHQR_INFO_SIZES);
  }
}

template <class T> __device__ __forceinline__ real_t<T> scale_of(const member &x, uint32_t magnitude) {
  return x.k > 0 ? range_scale<T>(magnitude, true) : real_t<T>(1);
}

/* magnitudes: of each line of the pieces. Lines that have several blocks, and zeros there, are measured in
 * one launch and scaled in the next. */
template <class T, bool LEFT>
__global__ void __launch_bounds__(warps *warp_lanes)
    ormqr_begin_kernel(const __grid_constant__ bqr_args args, line_plan p, bool measure, bool scale,
                       uint32_t *magnitudes) {
  __shared__ uint32_t found[lines_of_block];
  for (int64_t i = blockIdx.x; i < args.count * p.pieces * p.shares; i += gridDim.x) {
    const member x =
        member_at<BATCHQR_ORMQR>(args, i / p.shares / p.pieces, LEFT ? BATCHQR_LEFT : BATCHQR_RIGHT);
    const block_lines<T, LEFT> lines = lines_of<T, LEFT>(args, x, p, i);
    uint32_t *mine = magnitudes + i / p.shares * lines_of_block;
    if (warp_id() == 0) found[lane_id()] = measure ? 0 : mine[lane_id()];
    block_sync();
    if (measure) {
      uint32_t u = 0;
      lines.each([&](int, const T &y) { u = greater(u, magnitude(y)); },
                 [&](int l) {
                   shared_max(&found[l], u);
                   u = 0;
                 });
      block_sync();
      if (warp_id() == 0) {
        if (scale)
          mine[lane_id()] = found[lane_id()];
        else
          atomicMax(mine + lane_id(), found[lane_id()]);
      }
      if (!magnitude_finite<T>(found[lane_id()])) set_info(args, x.id, BATCHQR_INFO_NONFINITE);
    }
    if (scale && group_any(lane_id() < lines.count && scale_of<T>(x, found[lane_id()]) != 1))
      lines.each([&](int l, T &y) { y = scaled(y, scale_of<T>(x, found[l])); });
    block_sync();
  }
}

template <class T, bool LEFT>
__global__ void __launch_bounds__(warps *warp_lanes)
    ormqr_end_kernel(const __grid_constant__ bqr_args args, line_plan p, const uint32_t *magnitudes) {
  for (int64_t i = blockIdx.x; i < args.count * p.pieces * p.shares; i += gridDim.x) {
    const member x =
        member_at<BATCHQR_ORMQR>(args, i / p.shares / p.pieces, LEFT ? BATCHQR_LEFT : BATCHQR_RIGHT);
    const uint32_t *mine = magnitudes + i / p.shares * lines_of_block;
    const block_lines<T, LEFT> lines = lines_of<T, LEFT>(args, x, p, i);
    if (!group_any(lane_id() < lines.count && scale_of<T>(x, mine[lane_id()]) != 1)) continue;
    lines.each([&](int l, T &y) {
      const real_t<T> scale = scale_of<T>(x, mine[l]);
      if (scale != 1) y = scaled(y, range_unscale(scale));
    });
  }
}

/* f(begin kernel, end kernel) of a problem. */
template <class F> batchqr_status with_kernels(const bqr_problem *problem, F &&f) {
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return problem->side == BATCHQR_LEFT ? f(ormqr_begin_kernel<T, true>, ormqr_end_kernel<T, true>)
                                         : f(ormqr_begin_kernel<T, false>, ormqr_end_kernel<T, false>);
  });
}

} // namespace

int64_t bqr_ormqr_scales(const bqr_problem *problem) {
  return plan_lines(problem).pieces * lines_of_block * static_cast<int64_t>(sizeof(uint32_t));
}

int bqr_ormqr_launches(const bqr_problem *problem) { return plan_lines(problem).shares > 1 ? 5 : 3; }

batchqr_status bqr_ormqr_begin(const bqr_problem *problem, const bqr_args *args, void *scales,
                               batchqr_stream stream) {
  constexpr int threads = warps * warp_lanes;
  const line_plan plan = plan_lines(problem);
  batchqr_status status = BATCHQR_SUCCESS;
  if (args->info)
    status = launch_kernel(ormqr_info_kernel, grid_for((args->count - 1) / threads + 1), threads, 0, stream,
                           *args, static_cast<int>(problem->side));
  auto begin = [&](bool measure, bool scale) {
    return with_kernels(problem, [&](auto kernel, auto) {
      return launch_kernel(kernel, grid_for(args->count * plan.pieces * plan.shares), threads, 0, stream,
                           *args, plan, measure, scale, static_cast<uint32_t *>(scales));
    });
  };
  if (status || !scales) return status;
  if (plan.shares == 1) return begin(true, true);
  status = status_of(
      cudaMemsetAsync(scales, 0, static_cast<size_t>(args->count * bqr_ormqr_scales(problem)), stream));
  if (!status) status = begin(true, false);
  return status ? status : begin(false, true);
}

batchqr_status bqr_ormqr_end(const bqr_problem *problem, const bqr_args *args, const void *scales,
                             batchqr_stream stream) {
  const line_plan plan = plan_lines(problem);
  return with_kernels(problem, [&](auto, auto end) {
    return launch_kernel(end, grid_for(args->count * plan.pieces * plan.shares), warps * warp_lanes, 0,
                         stream, *args, plan, static_cast<const uint32_t *>(scales));
  });
}

batchqr_status bqr_ormqr_prepare(const bqr_problem *problem) {
  batchqr_status status = prepare_kernel(ormqr_info_kernel, 0);
  if (status) return status;
  return with_kernels(problem, [](auto begin, auto end) {
    batchqr_status loaded = prepare_kernel(begin, 0);
    return loaded ? loaded : prepare_kernel(end, 0);
  });
}
