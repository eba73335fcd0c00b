/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies the columns of a factored matrix that hold reflectors, 0 .. min(m,n), all rows, to where Q will be
 * formed. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/matrix/pieces.cuh"

namespace bqr {
namespace {

template <class T>
__global__ void __launch_bounds__(piece_plan::block_threads)
    copy_v_block_kernel(const __grid_constant__ bqr_args args, piece_plan plan) {
  for_pieces<BQR_COPY_V>(args, plan, [&](const member &x, auto &&walk) {
    const T *a = matrix_data<T>(args, args.a, x.id);
    T *c = matrix_data<T>(args, args.c, x.id);
    int64_t lda = matrix_ld(args.a, x.id), ldc = matrix_ld(args.c, x.id);
    walk(x.m, least(x.m, x.n), [&](int i, int j) { c[i + j * ldc] = a[i + j * lda]; });
  });
}

const bqr_variant variants[] = {{.name = "columns"}};

bool supports(const bqr_problem *, const bqr_variant *, const bqr_device *) { return true; }

batchqr_status prepare(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return for_type(
      p->type, [](auto tag) { return prepare_kernel(copy_v_block_kernel<typename decltype(tag)::type>, 0); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  piece_plan plan = plan_pieces(p->m, least(p->m, p->n));
  return for_type(p->type, [&](auto tag) {
    return launch_kernel(copy_v_block_kernel<typename decltype(tag)::type>, piece_grid(plan, args->count),
                         piece_plan::block_threads, 0, stream, *args, plan);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_copy_v_block = {
    .name = "copy_v_block",
    .op = BQR_COPY_V,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
