/* SPDX-License-Identifier: BSD-3-Clause */
#include "wy.h"
#include "common/simt/arrival.cuh"
#include "common/panel/columns.cuh"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/ptx/barrier.cuh"

namespace {
using namespace bqr;

constexpr int fill_threads = 128, most_threads = 512;

template <class T>
__global__ void __launch_bounds__(fill_threads)
    fill_kernel(const __grid_constant__ bqr_args args, int cols, int width, int steps, bool tail,
                bqr_panels panels, bqr_columns columns) {
  const int64_t total = args.count * (steps + tail), stride = static_cast<int64_t>(gridDim.x) * fill_threads;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(fill_threads) + thread_id(); i < total; i += stride) {
    const int step = static_cast<int>(i / args.count);
    const member x = member_at<BATCHQR_GEQRF>(args, i % args.count);
    const int before = tail ? bqr_before_tail(x.m, x.n, width) : x.n;
    const int first = step < steps ? step * width : before,
              end = step < steps ? least(first + width, before) : x.n;
    const bool any = x.ok && !(columns.done && *columns.done) && first < least(x.m, end);
    const int64_t ld = x.ok ? matrix_ld(args.a, x.id) : 1;
    panels.a[i] = any ? matrix_data<T>(args, args.a, x.id) + first * (ld + 1) : nullptr;
    panels.tau[i] = any ? tau_data<T>(args, x.id) + first : nullptr;
    panels.m[i] = any ? x.m - first : 0;
    panels.n[i] = any ? end - first : 0;
    panels.ld[i] = static_cast<int>(ld);
    if (step == 0) columns.nonfinite[i] = 0;
  }
  for (int64_t i = blockIdx.x * static_cast<int64_t>(fill_threads) + thread_id();
       i < args.count * columns.shared; i += stride)
    columns.magnitudes[i] = columns.arrived[i] = 0;
  for (int64_t i = blockIdx.x * static_cast<int64_t>(fill_threads) + thread_id(); i < args.count * width;
       i += stride)
    if (i % width < cols) columns.exponents[i / width * cols + i % width] = 0;
}

/* A block for a column, or several, of which the last one that is done goes on. */
template <class T>
__global__ void __launch_bounds__(most_threads)
    columns_in_kernel(const __grid_constant__ bqr_args args, int cols, int pieces, bqr_columns columns) {
  __shared__ uint32_t scratch[block_reducer<uint32_t, 1>::elements];
  block_reducer<uint32_t, 1> reducer(scratch);
  for (int64_t p = blockIdx.x; p < args.count * cols * pieces; p += gridDim.x) {
    const int64_t i = p / pieces, entry = i / cols;
    const int j = static_cast<int>(i % cols);
    member x = member_at<BATCHQR_GEQRF>(args, entry);
    if (!x.ok || x.m == 0 || j >= x.n) continue;
    if (columns.done && *columns.done) {
      if (thread_id() == 0) columns.exponents[i] = 0;
      continue;
    }
    T *column = matrix_data<T>(args, args.a, x.id) + j * matrix_ld(args.a, x.id);
    const int share = (x.m - 1) / pieces + 1, first = static_cast<int>(p % pieces) * share,
              end = first + least(share, x.m - first);
    uint32_t u = 0;
#pragma unroll 8
    for (int r = first + thread_id(); r < end; r += num_threads()) u = greater(u, magnitude(column[r]));
    u = reducer.max(u);
    if (pieces > 1) {
      if (thread_id() == 0) atomicMax(&columns.magnitudes[i], u);
      if (!last_to_arrive(&columns.arrived[i], pieces)) continue;
      u = __ldcg(&columns.magnitudes[i]);
    }
    const int exponent = column_exponent<T>(u);
    if (thread_id() == 0) {
      columns.exponents[i] = static_cast<short>(exponent);
      if (!magnitude_finite<T>(u)) columns.nonfinite[entry] = BATCHQR_INFO_NONFINITE;
    }
    if (exponent == 0) continue;
    const real_t<T> scale = exponent_scale<real_t<T>>(exponent);
    for (int r = thread_id(); r < x.m; r += num_threads()) column[r] = scaled(column[r], scale);
  }
}

/* A block for an entry. What is not finite or zero is looked up beside the exponents, which are zero as a
 * rule. */
template <class T>
__global__ void __launch_bounds__(most_threads)
    columns_out_kernel(const __grid_constant__ bqr_args args, int cols, bqr_columns columns) {
  __shared__ uint32_t scratch[block_reducer<uint32_t, 1>::elements];
  block_reducer<uint32_t, 1> reducer(scratch);
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    member x = member_at<BATCHQR_GEQRF>(args, i);
    int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
    const int k = least(x.m, x.n);
    if (x.ok && k > 0) {
      T *a = matrix_data<T>(args, args.a, x.id);
      const int64_t ld = matrix_ld(args.a, x.id);
      /* the first exact zero on the diagonal, as the largest distance from its end */
      auto find_zero = [&] {
        uint32_t from_end = 0;
        for (int j = thread_id(); j < k; j += num_threads())
          if (is_zero(a[j * (ld + 1)])) from_end = greater(from_end, static_cast<uint32_t>(k - j));
        return from_end;
      };
      const bool nonfinite = columns.nonfinite[i] == BATCHQR_INFO_NONFINITE;
      uint32_t zero_from_end = find_zero();
      bool any = false;
      for (int j = thread_id(); j < x.n; j += num_threads()) any |= columns.exponents[i * cols + j] != 0;
      if (block_any(any)) {
        for (int j = warp_id(); j < x.n; j += num_warps()) {
          const real_t<T> back = exponent_scale<real_t<T>>(-columns.exponents[i * cols + j]);
          for (int r = lane_id(); r <= j && r < x.m && back != 1; r += warp_lanes)
            a[r + j * ld] = scaled(a[r + j * ld], back);
        }
        block_sync();
        zero_from_end = find_zero();
      }
      zero_from_end = reducer.max(zero_from_end);
      if (zero_from_end > 0) info = k - static_cast<int>(zero_from_end) + 1;
      if (nonfinite) info = BATCHQR_INFO_NONFINITE;
    }
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

/* Blocks for a column, where there are few of them. */
int pieces_for(const bqr_args &args, int m, const bqr_columns &columns) {
  constexpr int most_blocks = 1024, rows = 4096;
  const int64_t cols = args.count * columns.shared;
  return cols == 0 ? 1 : static_cast<int>(largest(1, least(m / rows, static_cast<int>(most_blocks / cols))));
}

/* Threads that walk over `length` elements, about 8 each. */
int threads_for(int length) {
  int threads = warp_lanes;
  while (threads < most_threads && threads * 8 < length) threads *= 2;
  return threads;
}
} // namespace

extern "C" {

batchqr_status bqr_panels_fill(const bqr_problem *problem, const bqr_args *args, int width, int steps,
                               bool tail, const bqr_panels *panels, const bqr_columns *columns,
                               batchqr_stream stream) {
  return for_type(problem->type, [&](auto tag) {
    const int64_t blocks = (args->count * (steps + tail) - 1) / fill_threads + 1;
    return launch_kernel(fill_kernel<typename decltype(tag)::type>, grid_for(blocks), fill_threads, 0, stream,
                         *args, problem->n, width, steps, tail, *panels, *columns);
  });
}

batchqr_status bqr_columns_in(const bqr_problem *problem, const bqr_args *args, const bqr_columns *columns,
                              batchqr_stream stream) {
  return for_type(problem->type, [&](auto tag) {
    const int pieces = pieces_for(*args, problem->m, *columns);
    return launch_kernel(columns_in_kernel<typename decltype(tag)::type>,
                         grid_for(args->count * problem->n * pieces), threads_for(problem->m / pieces), 0,
                         stream, *args, problem->n, pieces, *columns);
  });
}

batchqr_status bqr_columns_out(const bqr_problem *problem, const bqr_args *args, const bqr_columns *columns,
                               batchqr_stream stream) {
  return for_type(problem->type, [&](auto tag) {
    return launch_kernel(columns_out_kernel<typename decltype(tag)::type>, grid_for(args->count),
                         threads_for(8 * least(problem->n, most_threads)), 0, stream, *args, problem->n,
                         *columns);
  });
}

batchqr_status bqr_panels_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(fill_kernel<T>, 0);
    if (!status) status = prepare_kernel(columns_in_kernel<T>, 0);
    return status ? status : prepare_kernel(columns_out_kernel<T>, 0);
  });
}
}
