/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrt: panels of up to 32 columns of many members, V, R and T, one block of threads for a panel or two that
 * share its rows, in one launch: see wy/geqrt_panel.cuh.
 *
 * Few panels have 8 warps each and their rows in shared memory. Of many, which have 4, the rows are read
 * twice, from global memory, so that a multiprocessor has four panels under way; of complex ones, few or
 * many, it has two. */
#include "geqrt_panel.cuh"
#include <algorithm>

namespace {
using namespace bqr;
using namespace bqr::geqrt;

constexpr int one_block_rows = 512, most_rows = 1024;

/* f(a panel_qr's type, its kernel, its shape) of the instance for panels of up to so many rows, with many
 * threads or few. */
template <class F> auto with_kernel(batchqr_type type, int rows, bool wide, F &&f) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto go = [&](auto shape) {
      using S = decltype(shape);
      return f(type_tag<panel_qr<T, S>>{}, geqrt_kernel<T, S>, shape);
    };
    if constexpr (!is_complex<T>) {
      if (rows > one_block_rows) return go(shape<T, 2, 8, true>{});
      if (wide) return go(shape<T, 1, 8, true>{});
    }
    return go(shape<T, 1, 4, false>{});
  });
}
} // namespace

extern "C" {
batchqr_status bqr_geqrt(batchqr_type type, const bqr_args *panels, int rows, bool wide, bool positive,
                         void *t, batchqr_stream stream) {
  return with_kernel(type, rows, wide, [&](auto tag, auto kernel, auto shape) {
    using Q = typename decltype(tag)::type;
    batchqr_status status = BATCHQR_SUCCESS;
    for (int64_t first = 0; first < panels->count && !status; first += most_panels)
      status = launch_clusters(kernel, grid_for(std::min(panels->count - first, most_panels)), shape.blocks,
                               shape.threads, Q::smem(panels->m), stream, *panels, first, t,
                               static_cast<int64_t>(N * N), Q::ld_of(panels->m), positive);
    return status;
  });
}

int bqr_geqrt_rows(batchqr_type type, const bqr_device *device) {
  if (!bqr_has_wide_clusters(device)) return 0;
  return type == BATCHQR_S || type == BATCHQR_D ? most_rows : one_block_rows;
}

batchqr_status bqr_geqrt_prepare(batchqr_type type) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < 3 && !status; i++)
    status = with_kernel(
        type, i == 0 ? most_rows : one_block_rows, i == 1, [&](auto tag, auto kernel, auto shape) {
          using Q = typename decltype(tag)::type;
          return prepare_kernel(kernel, Q::smem(shape.blocks * one_block_rows), shape.blocks);
        });
  return status;
}
}
