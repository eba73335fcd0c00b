/* SPDX-License-Identifier: BSD-3-Clause */
/* A cluster of blocks for each member's reduction to tridiagonal form, then, of the reflectors, a warp for a
 * few vectors. */
#include "sytrd.h"
#include "cluster.cuh"
#include "common/eigen/vectors.cuh"
#include "common/simt/launch_cluster.cuh"

namespace bqr {
namespace {

/* --- A to T */

constexpr int reduce_threads = 512;

template <class T, bool ON_CHIP> size_t reduce_bytes(int n, int blocks) {
  const size_t rows = static_cast<size_t>(cluster_tridiagonal<T, ON_CHIP>::most_rows(n, blocks));
  return 16 * sizeof(uint32_t) + block_scope::bytes + cluster_tridiagonal<T, ON_CHIP>::bytes(n, blocks) +
         (ON_CHIP ? sizeof(T) * rows * static_cast<size_t>(n) : 0);
}

/* The largest magnitude of the triangle; each block of the cluster looks at some columns. */
template <class T>
__device__ uint32_t cluster_magnitude(block_scope &scope, const matrix_view<T> &a, bool lower,
                                      uint32_t *seen) {
  const int rank = cluster_rank(), blocks = cluster_size();
  uint32_t u = 0;
  for (int j = rank + blocks * warp_id(); j < a.cols; j += blocks * num_warps())
    for (int i = (lower ? j : 0) + lane_id(); i < (lower ? a.rows : j + 1); i += warp_lanes) {
      const T x = *a.at(i, j);
      u = greater(u, magnitude_or_one(i == j ? make<T>(real_part(x)) : x));
    }
  u = scope.max(u);
  cluster_sync(); /* all blocks are there */
  if (thread_id() < blocks) *cluster_shared(seen + rank, thread_id()) = u;
  cluster_sync();
  for (int i = 0; i < blocks; i++) u = greater(u, seen[i]);
  return u;
}

template <class T, bool ON_CHIP>
__global__ void __launch_bounds__(reduce_threads, 1)
    syevd_cluster_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_sytrd_work work,
                         int64_t first, bool lower) {
  using R = real_t<T>;
  const int blocks = cluster_size(), number = static_cast<int>(blockIdx.x) / blocks, n = args.n;
  const bool leader = cluster_rank() == 0 && thread_id() == 0;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  unsigned char *memory = shared_memory<unsigned char>();
  uint32_t *seen = reinterpret_cast<uint32_t *>(memory);
  memory += 16 * sizeof(uint32_t);
  block_scope scope(memory);
  memory += block_scope::bytes;
  const int64_t row = static_cast<int64_t>(number) * n;
  R *d = static_cast<R *>(work.d) + row, *e = static_cast<R *>(work.e) + row;
  int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
  bool sound = x.ok && x.n == n;
  if (sound) {
    const matrix_view<T> a = {matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), n, n};
    const uint32_t u = cluster_magnitude(scope, a, lower, seen);
    sound = magnitude_finite<T>(u);
    if (sound) {
      const int exponent = u ? exponent_to<T>(u, span<R>::top) : 0;
      const matrix_view<T> kept = {static_cast<T *>(work.a) + row * n, n, n, n};
      using reduction = cluster_tridiagonal<T, ON_CHIP>;
      cluster_rows<T, ON_CHIP> rows = {kept.data, n, blocks};
      if (ON_CHIP) {
        rows.data = reinterpret_cast<T *>(memory);
        rows.ld = reduction::most_rows(n, blocks);
        memory += sizeof(T) * static_cast<size_t>(rows.ld) * static_cast<size_t>(n);
      }
      copy_rows(a, lower, exponent, rows);
      scope.sync();
      reduction(scope, rows, kept, memory).run(d, e);
      if (leader) work.states[number].exponent = exponent;
    } else {
      info = BATCHQR_INFO_NONFINITE;
      R *w = vector_data<R>(args.s, x.id);
      for (int j = thread_id(); cluster_rank() == 0 && j < n; j += num_threads())
        w[j] = static_cast<R>(nan(""));
    }
  }
  if (!sound && cluster_rank() == 0)
    for (int j = thread_id(); j < n; j += num_threads()) d[j] = e[j] = 0;
  if (leader) {
    set_info(args, x.id, info);
    work.states[number].sound = sound;
  }
}

/* --- T's values and vectors to A's. A block for each member. */

template <class R>
__global__ void __launch_bounds__(256)
    syevd_scale_kernel(const __grid_constant__ bqr_args args, const __grid_constant__ bqr_sytrd_work work,
                       int64_t first) {
  const bqr_sytrd_state state = work.states[blockIdx.x];
  if (!state.sound) return;
  const member x = member_at<BATCHQR_SYEVD>(args, first + blockIdx.x);
  const R *from = static_cast<const R *>(work.w) + blockIdx.x * static_cast<int64_t>(x.n);
  R *w = vector_data<R>(args.s, x.id);
  for (int j = thread_id(); j < x.n; j += num_threads())
    w[j] = times_power(from[j], span<R>::top - state.exponent);
}

constexpr int back_warps = 4;
/* Columns of a warp. */
template <class T, int EACH> constexpr int back_columns() {
  constexpr int bytes = EACH * static_cast<int>(sizeof(T));
  return bytes <= 64 ? 4 : bytes <= 128 ? 2 : 1;
}

template <class T, int EACH>
__global__ void __launch_bounds__(back_warps *warp_lanes)
    syevd_cluster_back_kernel(const __grid_constant__ bqr_args args,
                              const __grid_constant__ bqr_sytrd_work work, int64_t first, int parts) {
  using R = real_t<T>;
  constexpr int columns = back_columns<T, EACH>();
  const int number = static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
  if (!work.states[number].sound) return;
  const member x = member_at<BATCHQR_SYEVD>(args, first + number);
  const int from = (part * back_warps + warp_id()) * columns, n = x.n;
  if (from >= n) return;
  const int64_t place = static_cast<int64_t>(number) * n * n;
  const matrix_view<T> a = {static_cast<T *>(work.a) + place, n, n, n},
                       v = {matrix_data<T>(args, args.v, x.id), matrix_ld(args.v, x.id), n, n};
  const matrix_view<R> q = {static_cast<R *>(work.q) + place, n, n, n};
  warp_columns<T, EACH, columns> z;
  z.each([&](T &entry, int i, int c) { entry = make<T>(i < n && from + c < n ? *q.at(i, from + c) : R(0)); });
  for (int k = n - 2; k >= 0; k--) z.apply(a.at(0, k), *a.at(k, k), k, n);
  z.turn();
  z.each([&](T &entry, int i, int c) {
    if (i < n && from + c < n) *v.at(i, from + c) = entry;
  });
}

/* --- the host's side */

/* f(kernel that reduces, its bytes) */
template <class F> batchqr_status with_reduce(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return v->global ? f(syevd_cluster_kernel<T, false>, reduce_bytes<T, false>(p->n, v->blocks))
                     : f(syevd_cluster_kernel<T, true>, reduce_bytes<T, true>(p->n, v->blocks));
  });
}
/* f(kernel that scales, kernel that applies reflectors, columns of its blocks) */
template <class F> batchqr_status with_back(const bqr_problem *p, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return for_value<8, 16, 32>(p->n <= 256   ? 8
                                : p->n <= 512 ? 16
                                              : 32,
                                [&](auto each) {
                                  constexpr int rows = decltype(each)::value;
                                  return f(syevd_scale_kernel<real_t<T>>, syevd_cluster_back_kernel<T, rows>,
                                           back_warps * back_columns<T, rows>());
                                });
  });
}

} // namespace
} // namespace bqr

extern "C" bool bqr_sytrd_supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  constexpr int most = 1024;
  return bqr_has_clusters(device) && p->uniform && p->n >= 1 && p->n <= most &&
         bqr::with_reduce(p, v, [&](auto, size_t bytes) {
           return bytes <= static_cast<size_t>(device->smem_per_block) ? BATCHQR_SUCCESS
                                                                       : BATCHQR_UNSUPPORTED;
         }) == BATCHQR_SUCCESS;
}

extern "C" batchqr_status bqr_sytrd_prepare(const bqr_problem *p, const bqr_variant *v) {
  using namespace bqr;
  const batchqr_status status =
      with_reduce(p, v, [&](auto kernel, size_t bytes) { return prepare_kernel(kernel, bytes, v->blocks); });
  return status ? status : with_back(p, [](auto scale, auto back, int) {
    const batchqr_status first = prepare_kernel(scale, 0);
    return first ? first : prepare_kernel(back, 0);
  });
}

extern "C" batchqr_status bqr_sytrd_reduce(const bqr_problem *p, const bqr_variant *v, const bqr_args *args,
                                           int64_t first, int count, const bqr_sytrd_work *work,
                                           batchqr_stream stream) {
  using namespace bqr;
  return with_reduce(p, v, [&](auto kernel, size_t bytes) {
    return launch_clusters(kernel, static_cast<unsigned>(count), v->blocks, reduce_threads, bytes, stream,
                           *args, *work, first, p->uplo == BATCHQR_LOWER);
  });
}

extern "C" batchqr_status bqr_sytrd_back(const bqr_problem *p, const bqr_args *args, int64_t first, int count,
                                         const bqr_sytrd_work *work, batchqr_stream stream) {
  using namespace bqr;
  return with_back(p, [&](auto scale, auto back, int columns) {
    const unsigned members = static_cast<unsigned>(count);
    const int parts = (p->n + columns - 1) / columns;
    const batchqr_status status = launch_kernel(scale, dim3(members), 256, 0, stream, *args, *work, first);
    if (status || !args->v.data) return status;
    return launch_kernel(back, dim3(members * static_cast<unsigned>(parts)), back_warps * warp_lanes, 0,
                         stream, *args, *work, first, parts);
  });
}
