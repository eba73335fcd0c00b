/* SPDX-License-Identifier: BSD-3-Clause */
/* The columns of Q that a block's own reflectors turn into: I - V S with S = T V_1^H, row by row and so in
 * place, each warp with 16 rows on matrix units. And what is to be done before all blocks: the columns right
 * of the last reflector, and info. */
#include "wy.h"
#include "common/simt/block.cuh"
#include "common/matrix/pieces.cuh"
#include "strip.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/simt/launch_cluster.cuh"

namespace {
using namespace bqr;

constexpr int W = BQR_BLOCK_WIDTH, most_warps = 8;

/* 16 rows of a panel, by one warp. */
template <class T> class panel_rows {
  using part = chunk<T>;
  using strip = warp_strip<T, false>;
  static constexpr int chunks = W / part::rows;

public:
  /* row: the first one, counted from the first of V's; there are `rows` from it on. */
  __device__ __forceinline__ panel_rows(const vectors<T> &v, T *panel, int row, int rows, bool packs)
      : v_(v), row_(row), lines_(panel + row, v.ld, rows, v.width, packs) {}

  /* Overwrites V by I - V S; factor: S. */
  __device__ __forceinline__ void run(const factor_tile<T> &factor) const {
    typename strip::entries x[chunks];
    load(x);
    operand<T> a[chunks][part::steps][4];
    each([&](int c, int t, int i) { a[c][t][i] = split(-x[c][i / 2][part::entry(t, i % 2)]); });
#pragma unroll
    for (int c = 0; c < chunks; c++)
#pragma unroll
      for (int t = 0; t < part::steps; t++) {
        T sum[4];
#pragma unroll
        for (int i = 0; i < 4; i++)
          sum[i] = row_ + strip::line(i / 2) == column(c, lane_id() % 4, t, i % 2) ? one<T>() : zero<T>();
        add_products(sum, a, factor, c, column(c, lane_id() / 8, t, lane_id() / 4 % 2));
#pragma unroll
        for (int i = 0; i < 4; i++) x[c][i / 2][part::entry(t, i % 2)] = sum[i];
      }
#pragma unroll
    for (int c = 0; c < chunks; c++) lines_.store(x[c], c * part::rows);
  }

private:
  template <class F> __device__ __forceinline__ static void each(F &&f) {
#pragma unroll
    for (int c = 0; c < chunks; c++)
#pragma unroll
      for (int t = 0; t < part::steps; t++)
#pragma unroll
        for (int i = 0; i < 4; i++) f(c, t, i);
  }
  /* The number that lane q's entry s of product t in chunk c has in the row. */
  __device__ __forceinline__ static int column(int c, int q, int t, int s) {
    return c * part::rows + part::row(q, part::entry(t, s));
  }

  __device__ __forceinline__ void load(typename strip::entries (&x)[chunks]) const {
    if (row_ >= W) {
#pragma unroll
      for (int c = 0; c < chunks; c++) lines_.load(x[c], c * part::rows);
    } else {
#pragma unroll
      for (int c = 0; c < chunks; c++)
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
          for (int e = 0; e < part::each; e++)
            x[c][h][e] = v_.at(row_ + strip::line(h), c * part::rows + part::row(lane_id() % 4, e));
    }
  }

  /* Column `to` of -V S, which lies in chunk `last`; S is upper triangular. */
  __device__ __forceinline__ static void add_products(T (&sum)[4],
                                                      const operand<T> (&a)[chunks][part::steps][4],
                                                      const factor_tile<T> &factor, int last, int to) {
#pragma unroll
    for (int c = 0; c <= last; c++)
#pragma unroll
      for (int t = 0; t < part::steps; t++) {
        operand<T> b[2];
        factor.read(b, column(c, lane_id() % 4, t, 0), column(c, lane_id() % 4, t, 1), to);
        multiply_add(sum, a[c][t], b);
      }
  }

  const vectors<T> &v_;
  int row_;
  strip lines_;
};

/* A block takes `piece` of the rows; those above V become zeros. */
template <class T>
__global__ void __launch_bounds__(most_warps *warp_lanes, sizeof(T) == 16 ? 1 : 2)
    orgqr_panel_kernel(const __grid_constant__ bqr_args args, block_step step, const T *head,
                       int64_t stride_head, int piece, int pieces) {
  const factor_tile<T> factor(shared_memory<T>());
  for (int64_t i = blockIdx.x; i < args.count * pieces; i += gridDim.x) {
    const member x = member_of_step(args, i / pieces, step);
    const vectors<T> v = vectors_of<T>(args, x, step);
    const int top = static_cast<int>(i % pieces) * piece - step.first, end = least(v.rows, top + piece);
    if (v.width <= 0 || top >= end) continue;
    T *panel = matrix_data<T>(args, args.a, x.id) + step.first * (v.ld + 1);
    for_each(matrix_view<T>{panel + top, v.ld, least(0, end) - top, v.width},
             [](T &y, int, int) { y = zero<T>(); });
    if (end > 0) {
      block_sync();
      factor.load(head + i / pieces * stride_head, step.width, false);
      block_sync();
      const bool packs = warp_strip<T, false>::packs(panel, v.ld, v.rows, v.width);
      for (int row = largest(0, top) + warp_id() * warp_lines; row < end; row += num_warps() * warp_lines)
        panel_rows<T>(v, panel, row, end - row, packs).run(factor);
    }
  }
}

/* info of every member, and columns k .. n of the unit matrix. */
template <class T>
__global__ void orgqr_begin_kernel(const __grid_constant__ bqr_args args, piece_plan plan) {
  const int64_t threads = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < args.count;
       i += threads) {
    const member x = member_at<BATCHQR_ORGQR>(args, i);
    set_info(args, x.id, x.ok ? 0 : BATCHQR_INFO_SIZES);
  }
  for_pieces<BATCHQR_ORGQR>(args, plan, [&](const member &x, auto &&walk) {
    if (x.k == x.n) return;
    T *q = matrix_data<T>(args, args.a, x.id);
    const int64_t ld = matrix_ld(args.a, x.id);
    walk(x.m, x.n, [&](int i, int j) {
      if (j >= x.k) q[i + j * ld] = i == j ? one<T>() : zero<T>();
    });
  });
}

} // namespace

batchqr_status bqr_orgqr_begin(const bqr_problem *problem, const bqr_args *args, batchqr_stream stream) {
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const piece_plan plan = plan_pieces(args->m, args->n);
    return launch_kernel(orgqr_begin_kernel<T>, piece_grid(plan, args->count), piece_plan::block_threads, 0,
                         stream, *args, plan);
  });
}

batchqr_status bqr_orgqr_panel(const bqr_problem *problem, const bqr_args *args, int first, int width,
                               const void *head, int64_t stride_head, batchqr_stream stream) {
  return for_type(problem->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int most_turns = 4; /* of a block, which share T V_1^H */
    int warps = 1, turns = 1;
    while (warps < most_warps && warps * warp_lines < args->m) warps *= 2;
    const int64_t enough = 8 * static_cast<int64_t>(device_attribute(cudaDevAttrMultiProcessorCount));
    auto pieces_of = [&](int piece) { return (args->m - 1) / piece + 1; };
    while (turns < most_turns && args->count * pieces_of(2 * turns * warps * warp_lines) >= enough)
      turns *= 2;
    const int piece = turns * warps * warp_lines, pieces = pieces_of(piece);
    const block_step step = {problem->op, problem->side, first, width};
    return launch_kernel(orgqr_panel_kernel<T>, grid_for(args->count * pieces), warps * warp_lanes,
                         sizeof(T) * factor_tile<T>::elements, stream, *args, step,
                         static_cast<const T *>(head), stride_head, piece, pieces);
  });
}

batchqr_status bqr_orgqr_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(orgqr_begin_kernel<T>, 0);
    return status ? status : prepare_kernel(orgqr_panel_kernel<T>, sizeof(T) * factor_tile<T>::elements);
  });
}
