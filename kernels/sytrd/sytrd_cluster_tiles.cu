/* SPDX-License-Identifier: BSD-3-Clause */
/* A cluster of blocks for each member's reduction to tridiagonal form, which holds the member on the chip. */
#include "sytrd.h"
#include "cluster_tiles.cuh"
#include "common/simt/launch_cluster.cuh"

namespace bqr {
namespace {

template <class T> using tiles = cluster_tiles<T, (sizeof(T) > 4 ? 2 : 4)>;

template <class T>
__global__ void __launch_bounds__(tiles<T>::warps *warp_lanes, 1)
    syevd_cluster_tiles_kernel(const __grid_constant__ bqr_args args,
                               const __grid_constant__ bqr_sytrd_work work, int64_t first, int in_shared,
                               bool lower) {
  const int n = args.n, number = static_cast<int>(blockIdx.x) / cluster_size();
  const bool leads = cluster_rank() == 0;
  const int64_t row = static_cast<int64_t>(number) * n;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  T *d = static_cast<T *>(work.d) + row, *e = static_cast<T *>(work.e) + row,
    *tau = static_cast<T *>(work.tau) + row;
  int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
  bool sound = x.ok && x.n == n;
  if (sound) {
    tiles<T> held(shared_memory<unsigned char>(), in_shared, {static_cast<T *>(work.a) + row * n, n, n, n});
    const uint32_t u = held.load({matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), n, n}, lower);
    sound = magnitude_finite<T>(u);
    if (sound) {
      const int exponent = u ? exponent_to<T>(u, 0) : 0;
      held.run(exponent, d, e, tau);
      if (leads && thread_id() == 0) work.states[number].exponent = exponent + span<T>::top;
    } else {
      info = BATCHQR_INFO_NONFINITE;
      T *w = vector_data<T>(args.s, x.id);
      for (int j = thread_id(); leads && j < n; j += num_threads()) w[j] = static_cast<T>(nan(""));
    }
  }
  if (!leads) return;
  for (int j = thread_id(); j < n && !sound; j += num_threads()) d[j] = e[j] = tau[j] = 0;
  if (thread_id() > 0) return;
  set_info(args, x.id, info);
  work.states[number].sound = sound;
}

/* f(kernel, its threads, tiles in shared memory, bytes of that) */
template <class F> batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, int room, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex<T>) {
      return BATCHQR_UNSUPPORTED;
    } else {
      const typename tiles<T>::shape shape(p->n, v->blocks);
      const int in_shared = shape.shared_tiles(room);
      if (in_shared < 0) return BATCHQR_UNSUPPORTED;
      return f(syevd_cluster_tiles_kernel<T>, tiles<T>::warps * warp_lanes, in_shared,
               static_cast<size_t>(shape.bytes(in_shared)));
    }
  });
}

} // namespace
} // namespace bqr

extern "C" bool bqr_sytrd_cluster_tiles_supports(const bqr_problem *p, const bqr_variant *v,
                                                 const bqr_device *device) {
  using namespace bqr;
  return bqr_has_clusters(device) && p->uniform && p->n >= 1 && p->n <= v->rows &&
         with_kernel(p, v, device->smem_per_block, [](auto, int, int, size_t) { return BATCHQR_SUCCESS; }) ==
             BATCHQR_SUCCESS;
}

extern "C" batchqr_status bqr_sytrd_cluster_tiles_prepare(const bqr_problem *p, const bqr_variant *v,
                                                          const bqr_device *device) {
  using namespace bqr;
  return with_kernel(p, v, device->smem_per_block, [&](auto kernel, int, int, size_t bytes) {
    return prepare_kernel(kernel, bytes, v->blocks);
  });
}

extern "C" batchqr_status bqr_sytrd_cluster_tiles_reduce(const bqr_problem *p, const bqr_variant *v,
                                                         const bqr_device *device, const bqr_args *args,
                                                         int64_t first, int count, const bqr_sytrd_work *work,
                                                         batchqr_stream stream) {
  using namespace bqr;
  return with_kernel(
      p, v, device->smem_per_block, [&](auto kernel, int threads, int in_shared, size_t bytes) {
        return launch_clusters(kernel, static_cast<unsigned>(count), v->blocks, threads, bytes, stream, *args,
                               *work, first, in_shared, p->uplo == BATCHQR_LOWER);
      });
}
