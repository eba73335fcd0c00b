/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest and the largest |R(j,j)| of factored members, a group of lanes for each. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/simt/warp.cuh"

namespace bqr {
namespace {

constexpr int block_threads = 128;

template <class R> struct diagonal {
  R smallest, largest;
  int first_zero; /* from 1 on; or beyond the last one */
  bool finite;
};

template <class T> __device__ __forceinline__ real_t<T> absolute(T x) {
  if constexpr (is_complex<T>)
    return hypot(x.re, x.im);
  else
    return fabs(x);
}

/* Every LANES-th entry from the lane's on. */
template <int LANES, class T>
__device__ __forceinline__ diagonal<real_t<T>> read_diagonal(const T *a, int64_t ld, int k) {
  using R = real_t<T>;
  diagonal<R> d = {static_cast<R>(INFINITY), 0, k + 1, true};
  for (int j = lane_id() % LANES; j < k; j += LANES) {
    const T x = a[j + j * ld];
    const R r = absolute(x);
    d.smallest = fmin(d.smallest, r);
    d.largest = fmax(d.largest, r);
    d.finite = d.finite && magnitude_finite<T>(magnitude(x));
    if (r == 0 && d.first_zero > k) d.first_zero = j + 1;
  }
  return d;
}

template <int LANES, class R> __device__ __forceinline__ void unite(diagonal<R> &d) {
#pragma unroll
  for (int step = LANES / 2; step > 0; step /= 2) {
    d.smallest = fmin(d.smallest, exchange(d.smallest, step));
    d.largest = fmax(d.largest, exchange(d.largest, step));
    d.first_zero = least(d.first_zero, exchange(d.first_zero, step));
    d.finite = exchange(static_cast<int>(d.finite), step) != 0 && d.finite;
  }
}

template <class T, int LANES>
__global__ void __launch_bounds__(block_threads) r_range_warp_kernel(const __grid_constant__ bqr_args args) {
  using R = real_t<T>;
  constexpr int members = block_threads / LANES;
  for (int64_t first = int64_t(blockIdx.x) * members; first < args.count;
       first += int64_t(gridDim.x) * members) {
    const int64_t i = first + static_cast<int>(threadIdx.x) / LANES;
    member x = {0, 0, 0, 0, false};
    if (i < args.count) x = member_at<BATCHQR_R_RANGE>(args, i);
    const int k = x.ok ? least(x.m, x.n) : 0;
    const T *a = k > 0 ? matrix_data<T>(args, args.a, x.id) : nullptr;
    diagonal<R> d = read_diagonal<LANES>(a, k > 0 ? matrix_ld(args.a, x.id) : 0, k);
    unite<LANES>(d);
    if (lane_id() % LANES != 0 || i >= args.count) continue;
    set_info(args, x.id,
             !x.ok               ? BATCHQR_INFO_SIZES
             : !d.finite         ? BATCHQR_INFO_NONFINITE
             : d.first_zero <= k ? d.first_zero
                                 : 0);
    if (!x.ok) continue;
    R *range = vector_data<R>(args.range, x.id);
    range[0] = !d.finite ? static_cast<R>(nan("")) : k > 0 ? d.smallest : 0;
    range[1] = !d.finite ? static_cast<R>(nan("")) : d.largest;
  }
}

/* lanes: of a member; most: the longest diagonal. */
const bqr_variant variants[] = {{.name = "lanes4", .lanes = 4, .most = 8},
                                {.name = "lanes32", .lanes = warp_lanes}};

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return v->most == 0 || least(p->m, p->n) <= v->most;
}

template <class F> batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return f(v->lanes == 4 ? r_range_warp_kernel<T, 4> : r_range_warp_kernel<T, warp_lanes>);
  });
}

batchqr_status prepare(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return with_kernel(p, v, [](auto kernel) { return prepare_kernel(kernel, 0); });
}

batchqr_status launch(const bqr_problem *p, const bqr_variant *v, const bqr_device *, const bqr_args *args,
                      batchqr_stream stream) {
  return with_kernel(p, v, [&](auto kernel) {
    const int members = block_threads / v->lanes;
    return launch_kernel(kernel, grid_for((args->count - 1) / members + 1), block_threads, 0, stream, *args);
  });
}

} // namespace
} // namespace bqr

extern "C" const bqr_family bqr_family_r_range_warp = {
    .name = "r_range_warp",
    .op = BATCHQR_R_RANGE,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 2,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
