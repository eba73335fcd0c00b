/* SPDX-License-Identifier: BSD-3-Clause */
/* A block for each member's reduction to tridiagonal form, which holds the member on the chip. */
#include "sytrd.h"
#include "common/eigen/block_tiles.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int tiles_of_side = 8;
template <class T> constexpr int blocks_at_once = sizeof(T) > 4 ? 1 : 2;
template <class T> using tiles = block_tiles<T, tiles_of_side, 16 / blocks_at_once<T>, blocks_at_once<T>>;
template <class T> constexpr int reduce_threads = 16 / blocks_at_once<T> *warp_lanes;

template <class T>
__global__ void __launch_bounds__(reduce_threads<T>, blocks_at_once<T>)
    syevd_tiles_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_sytrd_work work,
                       int64_t first, bool lower) {
  const int n = args.n, number = static_cast<int>(blockIdx.x);
  const int64_t row = static_cast<int64_t>(number) * n;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  T *d = static_cast<T *>(work.d) + row, *e = static_cast<T *>(work.e) + row,
    *tau = static_cast<T *>(work.tau) + row;
  int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
  bool sound = x.ok && x.n == n;
  if (sound) {
    tiles<T> held(*shared_memory<typename tiles<T>::storage>(), n);
    const uint32_t u = held.load({matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), n, n}, lower);
    sound = magnitude_finite<T>(u);
    if (sound) {
      const int exponent = u ? exponent_to<T>(u, 0) : 0;
      held.run(exponent, d, e, {static_cast<T *>(work.a) + row * n, n, n, n}, tau, 1);
      if (thread_id() == 0) work.states[number].exponent = exponent + span<T>::top;
    } else {
      info = BATCHQR_INFO_NONFINITE;
      T *w = vector_data<T>(args.s, x.id);
      for (int j = thread_id(); j < n; j += num_threads()) w[j] = static_cast<T>(nan(""));
    }
  }
  for (int j = thread_id(); j < n && !sound; j += num_threads()) d[j] = e[j] = tau[j] = 0;
  if (thread_id() > 0) return;
  set_info(args, x.id, info);
  work.states[number].sound = sound;
}

/* f(kernel, its threads, its bytes) */
template <class F> batchqr_status with_kernel(const bqr_problem *p, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex<T>)
      return BATCHQR_UNSUPPORTED;
    else
      return f(syevd_tiles_kernel<T>, reduce_threads<T>, sizeof(typename tiles<T>::storage));
  });
}

} // namespace
} // namespace bqr

extern "C" bool bqr_sytrd_tiles_supports(const bqr_problem *p, const bqr_device *device) {
  return p->uniform && p->n >= 1 && p->n <= bqr::tiles_of_side * bqr::warp_lanes &&
         bqr::with_kernel(p, [&](auto, int, size_t bytes) {
           return bytes <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS
                                                                       : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

extern "C" batchqr_status bqr_sytrd_tiles_prepare(const bqr_problem *p) {
  return bqr::with_kernel(p,
                          [](auto kernel, int, size_t bytes) { return bqr::prepare_kernel(kernel, bytes); });
}

extern "C" batchqr_status bqr_sytrd_tiles_reduce(const bqr_problem *p, const bqr_args *args, int64_t first,
                                                 int count, const bqr_sytrd_work *work,
                                                 batchqr_stream stream) {
  return bqr::with_kernel(p, [&](auto kernel, int threads, size_t bytes) {
    return bqr::launch_kernel(kernel, dim3(static_cast<unsigned>(count)), threads, bytes, stream, *args,
                              *work, first, p->uplo == BATCHQR_LOWER);
  });
}
