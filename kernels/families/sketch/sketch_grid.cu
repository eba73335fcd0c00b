/* SPDX-License-Identifier: BSD-3-Clause */
/* The first and the last step of GESVDR, which go over elements. SKETCH: a first kernel clears, a second one
 * finds the largest magnitudes, a third one writes the scales and Omega. COPY_S. */
#include "family.h"
#include "sketch.h"
#include "common/simt/launch.cuh"
#include "common/matrix/pieces.cuh"

namespace bqr {
namespace {

/* The largest magnitude() of A is gathered where B's scale would be. */
__device__ __forceinline__ uint32_t *magnitude_of(const bqr_args &args, int64_t id) {
  return reinterpret_cast<uint32_t *>(args.scales + 2 * id + 1);
}

constexpr int clear_threads = 256;

__global__ void __launch_bounds__(clear_threads) sketch_clear_kernel(const __grid_constant__ bqr_args args) {
  for (int64_t i = blockIdx.x * int64_t(clear_threads) + thread_id(); i < args.count;
       i += gridDim.x * int64_t(clear_threads)) {
    const int64_t id = args.members ? args.members[i] : i;
    args.scales[2 * id] = 1;
    *magnitude_of(args, id) = 0;
  }
}

/* What a thread has read of the largest magnitude may be old, and too small: then it asks once more than it
 * had to. */
template <class T>
__global__ void __launch_bounds__(piece_plan::block_threads)
    sketch_measure_kernel(const __grid_constant__ bqr_args args, piece_plan plan) {
  for_pieces<BQR_SKETCH>(args, plan, [&](const member &x, auto &&walk) {
    const T *a = matrix_data<T>(args, args.a, x.id);
    const int64_t lda = matrix_ld(args.a, x.id);
    uint32_t most = 0, *const to = magnitude_of(args, x.id);
    walk(x.m, x.n, [&](int i, int j) { most = greater(most, magnitude(a[i + j * lda])); });
    if (most > *to) atomicMax(to, most);
  });
}

/* The members' sizes are those of Omega. */
template <class T>
__global__ void __launch_bounds__(piece_plan::block_threads)
    sketch_fill_kernel(const __grid_constant__ bqr_args args, piece_plan plan) {
  for_pieces<BQR_COPY>(args, plan, [&](const member &x, auto &&walk) {
    T *c = matrix_data<T>(args, args.c, x.id);
    const int64_t ldc = matrix_ld(args.c, x.id);
    walk(x.m, x.n, [&](int i, int j) {
      if (i == 0 && j == 0) args.scales[2 * x.id] = range_scale<T>(*magnitude_of(args, x.id), false);
      const float re = bqr_sketch_entry(args.seed, i, j, 0);
      if constexpr (is_complex<T>)
        c[i + j * ldc] = {re, bqr_sketch_entry(args.seed, i, j, 1)};
      else
        c[i + j * ldc] = re;
    });
  });
}

template <class R>
__global__ void __launch_bounds__(piece_plan::block_threads)
    copy_s_kernel(const __grid_constant__ bqr_args args, piece_plan plan) {
  for_pieces<BQR_COPY_S>(args, plan, [&](const member &x, auto &&walk) {
    const R *from = vector_data<R>(args.tau, x.id);
    R *to = vector_data<R>(args.s, x.id);
    const auto back = static_cast<R>(1 / args.scales[2 * x.id]);
    walk(x.n, 1, [&](int i, int) { to[i] = from[i] * back; });
  });
}

const bqr_variant variants[] = {{.name = "columns"}};

bool supports(const bqr_problem *, const bqr_variant *, const bqr_device *) { return true; }

batchqr_status prepare_sketch(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  const batchqr_status cleared = prepare_kernel(sketch_clear_kernel, 0);
  if (cleared) return cleared;
  return for_type(p->type, [](auto tag) {
    using T = typename decltype(tag)::type;
    const batchqr_status status = prepare_kernel(sketch_measure_kernel<T>, 0);
    return status ? status : prepare_kernel(sketch_fill_kernel<T>, 0);
  });
}

batchqr_status launch_sketch(const bqr_problem *p, const bqr_variant *, const bqr_device *,
                             const bqr_args *args, batchqr_stream stream) {
  batchqr_status status = launch_kernel(sketch_clear_kernel, grid_for((args->count - 1) / clear_threads + 1),
                                        clear_threads, 0, stream, *args);
  bqr_args of_c = *args;
  of_c.m = args->n;
  of_c.n = args->k;
  const piece_plan on_a = plan_pieces(p->m, p->n), on_c = plan_pieces(of_c.m, of_c.n);
  const int threads = piece_plan::block_threads;
  if (status) return status;
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const batchqr_status measured = launch_kernel(sketch_measure_kernel<T>, piece_grid(on_a, args->count),
                                                  threads, 0, stream, *args, on_a);
    if (measured) return measured;
    return launch_kernel(sketch_fill_kernel<T>, piece_grid(on_c, args->count), threads, 0, stream, of_c,
                         on_c);
  });
}

batchqr_status prepare_copy(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return for_type(p->type, [](auto tag) {
    return prepare_kernel(copy_s_kernel<real_t<typename decltype(tag)::type>>, 0);
  });
}

/* A vector is a piece of one column. */
batchqr_status launch_copy(const bqr_problem *p, const bqr_variant *, const bqr_device *,
                           const bqr_args *args, batchqr_stream stream) {
  const piece_plan plan = plan_pieces(args->n, 1);
  return for_type(p->type, [&](auto tag) {
    return launch_kernel(copy_s_kernel<real_t<typename decltype(tag)::type>>, piece_grid(plan, args->count),
                         piece_plan::block_threads, 0, stream, *args, plan);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_sketch_grid = {
    .name = "sketch_grid",
    .op = BQR_SKETCH,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 3,
    .supports = bqr::supports,
    .prepare = bqr::prepare_sketch,
    .launch = bqr::launch_sketch,
};

extern "C" const bqr_family bqr_family_copy_s_grid = {
    .name = "copy_s_grid",
    .op = BQR_COPY_S,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare_copy,
    .launch = bqr::launch_copy,
};
