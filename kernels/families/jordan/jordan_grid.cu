/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps around the eigenvalues of [0 A; A^H 0]: JORDAN makes that matrix, HALVES takes singular values
 * and vectors from what SYEVD leaves. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/matrix/pieces.cuh"

namespace bqr {
namespace {

template <class T>
__global__ void __launch_bounds__(piece_plan::block_threads)
    jordan_kernel(const __grid_constant__ bqr_args args, piece_plan plan) {
  for_pieces<BQR_JORDAN>(args, plan, [&](const member &x, auto &&walk) {
    const T *a = matrix_data<T>(args, args.a, x.id);
    T *c = matrix_data<T>(args, args.c, x.id);
    const int64_t lda = matrix_ld(args.a, x.id), ldc = matrix_ld(args.c, x.id);
    const int n = x.m / 2;
    walk(x.m, x.n, [&](int i, int j) {
      const bool above = i < n && j >= n, below = i >= n && j < n;
      c[i + j * ldc] = above ? a[i + (j - n) * lda] : below ? conj(a[j + (i - n) * lda]) : zero<T>();
    });
  });
}

template <class T>
__global__ void __launch_bounds__(piece_plan::block_threads)
    halves_kernel(const __grid_constant__ bqr_args args, piece_plan plan) {
  using R = real_t<T>;
  for_pieces<BQR_HALVES>(args, plan, [&](const member &x, auto &&walk) {
    const T *a = matrix_data<T>(args, args.a, x.id);
    T *u = matrix_data<T>(args, args.u, x.id), *v = matrix_data<T>(args, args.v, x.id);
    const R *w = vector_data<R>(args.tau, x.id);
    R *s = vector_data<R>(args.s, x.id);
    const int64_t lda = matrix_ld(args.a, x.id), ldu = matrix_ld(args.u, x.id), ldv = matrix_ld(args.v, x.id);
    const int n = x.n;
    const R root = R(1.4142135623730951);
    walk(n, n, [&](int i, int j) {
      const T *y = a + (x.m - 1 - j) * lda;
      u[i + j * ldu] = scaled(y[i], root);
      v[i + j * ldv] = scaled(y[n + i], root);
      if (i == 0) s[j] = w[x.m - 1 - j] < 0 ? R(0) : w[x.m - 1 - j];
    });
  });
}

const bqr_variant variants[] = {{.name = "columns"}};

bool supports(const bqr_problem *, const bqr_variant *, const bqr_device *) { return true; }

/* The kernels of the two families. */
struct jordan {
  template <class T> static auto kernel() { return jordan_kernel<T>; }
};
struct halves {
  template <class T> static auto kernel() { return halves_kernel<T>; }
};

template <class STEP> batchqr_status prepare(const bqr_problem *p, const bqr_variant *, const bqr_device *) {
  return for_type(p->type, [](auto tag) {
    return prepare_kernel(STEP::template kernel<typename decltype(tag)::type>(), 0);
  });
}

template <class STEP>
batchqr_status launch(const bqr_problem *p, const bqr_variant *, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  const piece_plan plan = plan_pieces(args->m, args->n);
  return for_type(p->type, [&](auto tag) {
    return launch_kernel(STEP::template kernel<typename decltype(tag)::type>(), piece_grid(plan, args->count),
                         piece_plan::block_threads, 0, stream, *args, plan);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_jordan_grid = {
    .name = "jordan_grid",
    .op = BQR_JORDAN,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare<bqr::jordan>,
    .launch = bqr::launch<bqr::jordan>,
};

extern "C" const bqr_family bqr_family_halves_grid = {
    .name = "halves_grid",
    .op = BQR_HALVES,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 1,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare<bqr::halves>,
    .launch = bqr::launch<bqr::halves>,
};
