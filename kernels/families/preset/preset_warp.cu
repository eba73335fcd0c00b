/* SPDX-License-Identifier: BSD-3-Clause */
/* What least squares that were solved directly tell of refinement: no iterations, and no residual. A group of
 * lanes for each member. */
#include "family.h"
#include "common/simt/launch.cuh"
#include "common/matrix/member.cuh"
#include "common/simt/block.cuh"
#include "common/simt/warp.cuh"

namespace bqr {
namespace {

constexpr int block_threads = 128;

template <class R, int LANES>
__global__ void __launch_bounds__(block_threads) preset_warp_kernel(const __grid_constant__ bqr_args args) {
  constexpr int members = block_threads / LANES;
  for (int64_t first = int64_t(blockIdx.x) * members; first < args.count;
       first += int64_t(gridDim.x) * members) {
    const int64_t i = first + thread_id() / LANES;
    if (i >= args.count) return;
    const member x = member_at<BQR_PRESET>(args, i);
    if (!x.ok || x.k == 0) continue;
    int *iterations = args.iterations.data ? vector_data<int>(args.iterations, x.id) : nullptr;
    R *relres = args.relres.data ? vector_data<R>(args.relres, x.id) : nullptr;
    for (int j = thread_id() % LANES; j < x.k; j += LANES) {
      if (iterations) iterations[j] = 0;
      if (relres) relres[j] = -1;
    }
  }
}

/* lanes: of a member; most: right-hand sides. */
const bqr_variant variants[] = {{.name = "lanes4", .lanes = 4, .most = 16},
                                {.name = "lanes32", .lanes = warp_lanes}};

bool supports(const bqr_problem *p, const bqr_variant *v, const bqr_device *) {
  return v->most == 0 || p->k <= v->most;
}

template <class F> batchqr_status with_kernel(const bqr_problem *p, const bqr_variant *v, F &&f) {
  return for_type(p->type, [&](auto tag) {
    using R = real_t<typename decltype(tag)::type>;
    return f(v->lanes == 4 ? preset_warp_kernel<R, 4> : preset_warp_kernel<R, warp_lanes>);
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

extern "C" const bqr_family bqr_family_preset_warp = {
    .name = "preset_warp",
    .op = BQR_PRESET,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = bqr::variants,
    .nvariants = 2,
    .launches = 1,
    .supports = bqr::supports,
    .prepare = bqr::prepare,
    .launch = bqr::launch,
};
