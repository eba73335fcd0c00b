/* SPDX-License-Identifier: BSD-3-Clause */
/* transpose_block: the first step of GELS, one block of threads for a member. A and B are brought into range,
 * and a wide A gets a transposed copy. Both are read once more than the factorization would read them. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/matrix/view.cuh"

namespace bqr {
namespace {

constexpr int most_warps = 8;

/* See bqr_args.tall_sizes. */
__device__ void write_sizes(const bqr_args &args, const member &x, bool transposed) {
  if (!args.tall_sizes || thread_id() > 0) return;
  bool least_squares = (x.m < x.n) == transposed;
  int *to = args.tall_sizes + x.id;
  to[0] = x.ok ? largest(x.m, x.n) : -1;
  to[args.count] = x.ok ? least(x.m, x.n) : 0;
  to[2 * args.count] = x.ok && least_squares ? x.k : 0;
  to[3 * args.count] = x.ok && !least_squares ? x.k : 0;
}

template <class T> __device__ void scale_matrix(const matrix_view<T> &a, real_t<T> scale) {
  if (scale != 1) for_each(a, [&](T &x, int, int) { x = scaled(x, scale); });
}

/* to := scale * from, or its adjoint. Writes to adjacent addresses, reads what lies apart. */
template <class T>
__device__ void copy_tall(const matrix_view<T> &from, const matrix_view<T> &to, bool wide, real_t<T> scale) {
  for_each(to, [&](T &x, int i, int j) { x = scaled(wide ? conj(*from.at(j, i)) : *from.at(i, j), scale); });
}

template <class T>
__global__ void __launch_bounds__(most_warps *warp_lanes)
    transpose_block_kernel(const __grid_constant__ bqr_args args, bool transposed) {
  block_reducer<T, 1> reducer(shared_memory<T>());
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    member x = member_at<BQR_TRANSPOSE>(args, i);
    write_sizes(args, x, transposed);
    if (!x.ok) continue;
    matrix_view<T> a{nullptr, 0, 0, 0}, b{nullptr, 0, 0, 0};
    int b_rows = transposed ? x.n : x.m;
    if (x.m > 0 && x.n > 0) a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), x.m, x.n};
    if (b_rows > 0 && x.k > 0) b = {matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), b_rows, x.k};

    uint32_t u_a = reducer.max(matrix_magnitude(a)), u_b = reducer.max(matrix_magnitude(b));
    bool finite = magnitude_finite<T>(greater(u_a, u_b));
    real_t<T> scale_a = finite ? range_scale<T>(u_a, false) : 1,
              scale_b = finite ? range_scale<T>(u_b, false) : 1;
    if (thread_id() == 0) {
      args.scales[2 * x.id] = finite ? scale_a : nan("");
      args.scales[2 * x.id + 1] = scale_b;
    }
    if (!args.r.data)
      scale_matrix(a, scale_a);
    else if (a.cols > 0)
      copy_tall(a,
                matrix_view<T>{matrix_data<T>(args, args.r, x.id), matrix_ld(args.r, x.id), largest(x.m, x.n),
                               least(x.m, x.n)},
                x.m < x.n, scale_a);
    scale_matrix(b, scale_b);
  }
}

/* most: elements of A. */
const bqr_variant variants[] = {{.name = "warps1", .warps = 1, .most = 1024},
                                {.name = "warps8", .warps = most_warps}};

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return v->most == 0 || static_cast<int64_t>(p->m) * p->n <= v->most;
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return for_type(p->type, [](auto tag) {
    return prepare_kernel(transpose_block_kernel<typename decltype(tag)::type>, 0);
  });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  bool transposed = p->trans != BATCHQR_NO_TRANS;
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    size_t smem = sizeof(T) * static_cast<size_t>(block_reducer<T, 1>::elements_for(v->warps));
    return launch_kernel(transpose_block_kernel<T>, grid_for(args->count), v->warps * warp_lanes, smem,
                         stream, *args, transposed);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_transpose_block = {
    .name = "transpose_block",
    .op = BQR_TRANSPOSE,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 2,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
