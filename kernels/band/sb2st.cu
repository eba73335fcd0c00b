/* SPDX-License-Identifier: BSD-3-Clause */
#include "band.h"
#include "chase.cuh"
#include "common/matrix/view.cuh"
#include "common/simt/launch_cluster.cuh"

namespace {
using namespace bqr;

/* The band with zeros below it and behind it; nothing is done yet. Blocks are columns. */
template <class T, int B>
__global__ void __launch_bounds__(2 * B)
    copy_band_kernel(const __grid_constant__ chase_args<T> p, const T *a, int64_t lda) {
  const int64_t c = blockIdx.x;
  const int below = thread_id();
  T x = zero<T>();
  if (below <= B && c + below < p.n) x = a[c + below + c * lda];
  if (below == 0) x = make<T>(real_part(x));
  p.band[band_storage<B>::at(c + below, c)] = x;
  const int64_t stride = static_cast<int64_t>(gridDim.x) * (2 * B);
  for (int64_t i = c * (2 * B) + below; i < border_storage<T, B>::count(p.n); i += stride)
    p.borders[i].tag = 0;
  if (below > 0) return;
  if (c < p.n) p.progress[c] = 0;
  if (c == 0) {
    *p.ticket = 0;
    if (p.n == 1) p.d[0] = real_part(x);
  }
}

template <class T, int B>
__global__ void __launch_bounds__(chase_shared<T, B>::threads, 1)
    chase_kernel(const __grid_constant__ chase_args<T> p) {
  using shared = chase_shared<T, B>;
  shared &s = *shared_memory<shared>();
  if (thread_id() == 0) {
    for (int i = 0; i < shared::slots; i++) {
      s.full[i].init(warp_lanes);
      s.empty[i].init(2 * warp_lanes + shared::workers - 2);
      s.stored[i].init(shared::workers);
      s.told[i].init(1);
    }
    for (int i = 0; i < shared::buffers; i++) {
      s.copied[i].init(2 * warp_lanes);
      s.taken[i].init(shared::workers);
    }
  }
  chase_worker<T, B> worker(p, s);
  int tiles = 0;
  for (int position = 0;;) {
    block_sync();
    if (thread_id() == 0) s.sweep = atomicAdd(p.ticket, 1);
    block_sync();
    const int j = s.sweep;
    if (j >= p.n - 1) break;
    if (warp_id() < shared::workers)
      worker.sweep(j, position);
    else if (warp_id() == shared::workers)
      read_borders(p, s, j, position);
    else if (warp_id() == shared::workers + 1)
      tell_progress(p, s, j, position);
    else
      copy_tiles(p, s, j, warp_id() == shared::workers + 2, tiles);
    position += reflector_storage<B>::hops(p.n, j) + 1;
  }
}
} // namespace

extern "C" {

size_t bqr_band_bytes(batchqr_type type, int n, int width, bool vectors) {
  return for_band(type, width, [&](auto tag, auto b) {
    using T = typename decltype(tag)::type;
    return band_memory<T, decltype(b)::value>(nullptr, n, vectors, bqr_band_back_bytes(type, width, n)).bytes;
  });
}

batchqr_status bqr_band_reduce(batchqr_type type, int n, int width, const void *a, int64_t lda, void *memory,
                               void *d, void *e, bool vectors, batchqr_stream stream) {
  if (n == 0) return BATCHQR_SUCCESS;
  return for_band(type, width, [&](auto tag, auto b) {
    using T = typename decltype(tag)::type;
    constexpr int B = decltype(b)::value;
    const band_memory<T, B> m(memory, n, vectors, 0);
    chase_args<T> p = {};
    p.n = n;
    p.ticket = m.ticket;
    p.progress = m.progress;
    p.borders = m.borders;
    p.band = m.band;
    p.tau = m.tau;
    p.v = vectors ? m.v : nullptr;
    p.d = static_cast<real_t<T> *>(d);
    p.e = static_cast<real_t<T> *>(e);
    batchqr_status status =
        launch_kernel(copy_band_kernel<T, B>, dim3(static_cast<unsigned>(band_storage<B>::columns(n))), 2 * B,
                      0, stream, p, static_cast<const T *>(a), lda);
    constexpr int threads = chase_shared<T, B>::threads;
    constexpr size_t smem = sizeof(chase_shared<T, B>);
    const int most = clusters_at_once(chase_kernel<T, B>, 1, threads, smem),
              blocks = n - 1 < most ? n - 1 : most;
    if (!status && n > 1)
      status =
          launch_kernel(chase_kernel<T, B>, dim3(static_cast<unsigned>(blocks)), threads, smem, stream, p);
    return status;
  });
}

batchqr_status bqr_band_prepare(batchqr_type type, int width) {
  return for_band(type, width, [&](auto tag, auto b) {
    using T = typename decltype(tag)::type;
    constexpr int B = decltype(b)::value;
    batchqr_status status = prepare_kernel(copy_band_kernel<T, B>, 0);
    if (!status) status = prepare_kernel(chase_kernel<T, B>, sizeof(chase_shared<T, B>));
    return status ? status : bqr_band_prepare_back(type, width);
  });
}
}
