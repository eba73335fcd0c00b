/* SPDX-License-Identifier: BSD-3-Clause */
/* turn_block: a block for each column. */
#include "common/panel/jacobi.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int threads = 256;

/* The row of the first of the largest entries, in all threads. candidates: of each warp. */
template <class R> struct candidate {
  R size;
  int row;

  BQR_INLINE void take(const candidate &other) {
    if (other.size > size || (other.size == size && other.row < row)) *this = other;
  }
};

template <class T>
__device__ __forceinline__ int row_of_largest(const T *x, int rows, candidate<real_t<T>> *candidates) {
  candidate<real_t<T>> mine = {0, rows};
  for (int i = thread_id(); i < rows; i += threads) mine.take({abs2(x[i]), i});
#pragma unroll
  for (int d = warp_lanes / 2; d > 0; d /= 2) mine.take({exchange(mine.size, d), exchange(mine.row, d)});
  if (lane_id() == 0) candidates[warp_id()] = mine;
  block_sync();
  for (int w = 0; w < threads / warp_lanes; w++) mine.take(candidates[w]);
  block_sync();
  return mine.row;
}

template <class T>
__global__ void __launch_bounds__(threads) turn_block_kernel(const __grid_constant__ bqr_args args) {
  auto *candidates = shared_memory<candidate<real_t<T>>>();
  for (int64_t i = blockIdx.x; i < args.count * args.n; i += gridDim.x) {
    const member x = member_at<BQR_TURN>(args, i / args.n);
    const int col = static_cast<int>(i % args.n);
    if (!x.ok || x.m <= 0 || col >= x.n) continue;
    T *column = matrix_data<T>(args, args.c, x.id) + col * matrix_ld(args.c, x.id);
    const int row = row_of_largest(column, x.m, candidates);
    const T z = row < x.m ? column[row] : one<T>();
    if (imag_part(z) == 0 && real_part(z) > 0) continue; /* the same in all threads */
    const sign<T> turn = sign_of(z, row);
    block_sync();
    for (int k = thread_id(); k < x.m; k += threads) column[k] = turn.of(column[k], k);
    block_sync();
  }
}

const bqr_variant variants[] = {{.name = "columns"}};

bool supports(const bqr_problem *, const bqr_variant *, const bqr_device *) { return true; }

/* f(kernel, shared memory) */
template <class F> batchqr_status with_kernel(const bqr_problem *p, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return f(turn_block_kernel<T>, sizeof(candidate<real_t<T>>) * (threads / warp_lanes));
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return with_kernel(p, [](auto kernel, size_t smem) { return prepare_kernel(kernel, smem); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  return with_kernel(p, [&](auto kernel, size_t smem) {
    return launch_kernel(kernel, dim3(grid_for(args->count * args->n)), threads, smem, stream, *args);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_turn_block = {
    .name = "turn_block",
    .op = BQR_TURN,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
