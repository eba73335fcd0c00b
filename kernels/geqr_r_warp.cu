/* SPDX-License-Identifier: BSD-3-Clause */
/* geqr_r_warp: R of tiny members in one go, beside A or in its place. See common/tiny.cuh. */
#include "tiny_warp.cuh"

namespace {
using namespace bqr;

struct geqr_r {
  static constexpr int op = BATCHQR_GEQR_R;
  static constexpr auto &variants = tiny_variants;
  template <class W> static __device__ __forceinline__ void run(W &warp) {
    warp.template load<tiny_all>(warp.args.a);
    warp.template factor<false>();
    warp.template store_upper<tiny_r>(warp.args.r);
  }
};
using family = tiny_family<geqr_r>;
} // namespace

extern "C" const batchqr_family batchqr_family_geqr_r_warp = {
    "geqr_r_warp",
    BATCHQR_GEQR_R,
    BATCHQR_ALL_TYPES,
    BATCHQR_BACKEND_CUDA,
    80,
    tiny_variants,
    tiny_num_variants,
    1,
    family::supports,
    nullptr,
    family::prepare,
    family::launch,
};
