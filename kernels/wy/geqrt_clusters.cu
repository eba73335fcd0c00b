/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrt_clusters: panels of up to 32 columns of few members, V, R and T, a cluster of blocks for a panel, in
 * one launch: see wy/geqrt_panel.cuh.
 *
 * Rows lie in shared memory. Taller panels of real types are read twice, from global memory: of clusters of
 * 16 blocks that fill it not all of eight members run at the same time, of these two blocks share a
 * multiprocessor. */
#include "geqrt_clusters.h"
#include "exchange_triangle.cuh"
#include "geqrt_panel.cuh"
#include "shift.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/launch_dependent.cuh"

namespace {
using namespace bqr;
using namespace bqr::geqrt;

constexpr int few_blocks = 4, blocks = 8, most_blocks = 16;

/* Rows of a block that shared memory holds. */
template <class T> constexpr int rows_held = sizeof(T) == 4 ? 1024 : sizeof(T) == 8 ? 512 : 256;
constexpr int rows_passed = 1024;

/* f(a panel_qr's type, its kernel, its shape) of the instance for panels of up to so many rows. */
template <class F> auto with_kernel(batchqr_type type, int rows, int of_cluster, F &&f) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto go = [&](auto shape) {
      using S = decltype(shape);
      return f(type_tag<panel_qr<T, S>>{}, geqrt_kernel<T, S>, shape);
    };
    if (of_cluster <= few_blocks) return go(shape<T, few_blocks, 8, true, rows_held<T>>{});
    if constexpr (!is_complex<T>)
      if (rows > blocks * rows_held<T>) return go(shape<T, most_blocks, 8, false, rows_passed>{});
    return go(shape<T, blocks, 8, true, rows_held<T>>{});
  });
}

/* Of the type's instances, the first and the last. */
enum { SHORTEST = 1, TALLEST = 1 << 30 };

constexpr int threads_of_heads = 256;

/* A block of threads in y for each member. */
template <class T>
__global__ void __launch_bounds__(threads_of_heads)
    heads_kernel(const __grid_constant__ bqr_wy_panel panel, const T *t, int64_t stride_t) {
  wait_for_previous();
  if (panel.done && *panel.done) return;
  bqr_wy_panel p = panel;
  p.a = shifted(static_cast<T *>(p.a), blockIdx.y, panel.many.a);
  p.r = shifted(static_cast<T *>(p.r), blockIdx.y, panel.many.own);
  exchange_triangle<T>(p);
  T *to = shifted(static_cast<T *>(p.t), blockIdx.y, panel.many.own) + p.at * (p.ldt + 1);
  const int below = p.cols - p.at;
  for (int e = static_cast<int>(blockIdx.x) * threads_of_heads + thread_id(); e < below * p.width;
       e += static_cast<int>(gridDim.x) * threads_of_heads) {
    const int i = e % below, j = e / below;
    to[i + j * p.ldt] = i < N ? t[blockIdx.y * stride_t + i + j * N] : zero<T>();
  }
}
} // namespace

extern "C" {
batchqr_status bqr_geqrt_clusters(batchqr_type type, const bqr_args *panels, int rows, int of_cluster,
                                  bool positive, void *t, int64_t stride_t, batchqr_stream stream) {
  return with_kernel(type, rows, of_cluster, [&](auto tag, auto kernel, auto shape) {
    using Q = typename decltype(tag)::type;
    constexpr int64_t each = most_panels / most_blocks;
    batchqr_status status = BATCHQR_SUCCESS;
    for (int64_t first = 0; first < panels->count && !status; first += each)
      status = launch_clusters(kernel, grid_for(panels->count - first < each ? panels->count - first : each),
                               shape.blocks, shape.threads, Q::smem(panels->m), stream, *panels, first, t,
                               stride_t, Q::ld_of(panels->m), positive);
    return status;
  });
}

batchqr_status bqr_geqrt_heads(batchqr_type type, const bqr_wy_panel *panel, const void *t, int64_t stride_t,
                               batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int elements = (panel->at + panel->width) * panel->width;
    const dim3 grid(static_cast<unsigned>((elements - 1) / (4 * threads_of_heads) + 1),
                    members_of(panel->many));
    return launch_dependent(heads_kernel<T>, grid, threads_of_heads, 0, stream, *panel,
                            static_cast<const T *>(t), stride_t);
  });
}

int bqr_geqrt_clusters_rows(batchqr_type type, int of_cluster, const bqr_device *device) {
  if (!bqr_has_wide_clusters(device)) return 0;
  return with_kernel(type, TALLEST, of_cluster, [&](auto tag, auto, auto shape) {
    using Q = typename decltype(tag)::type;
    const int rows = shape.blocks * shape.rows;
    return Q::smem(rows) <= static_cast<size_t>(device->smem_per_block) ? rows : 0;
  });
}

batchqr_status bqr_geqrt_clusters_prepare(batchqr_type type, int of_cluster, const bqr_device *device) {
  if (bqr_geqrt_clusters_rows(type, of_cluster, device) == 0) return BATCHQR_SUCCESS;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int rows : {SHORTEST, TALLEST})
    if (!status)
      status = with_kernel(type, rows, of_cluster, [&](auto tag, auto kernel, auto shape) {
        using Q = typename decltype(tag)::type;
        return prepare_kernel(kernel, Q::smem(shape.blocks * shape.rows), shape.blocks);
      });
  return status;
}
}
