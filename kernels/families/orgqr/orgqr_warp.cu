/* SPDX-License-Identifier: BSD-3-Clause */
/* orgqr_warp: forms Q of tiny members from their vectors, in place. See common/panel/tiny.cuh. */
#include "common/panel/tiny_warp.cuh"

namespace {
using namespace bqr;

struct orgqr {
  static constexpr int op = BATCHQR_ORGQR;
  static constexpr auto &variants = tiny_variants;
  template <class W> static __device__ __forceinline__ void run(W &warp) {
    warp.template load<tiny_columns>(warp.args.a);
    warp.take_vectors();
    warp.form_q();
    warp.template store<tiny_all>(warp.args.a);
  }
};
/* orgqr_mma is as fast as the variants for full tiles. */
using family = tiny_family<orgqr, tiny_num_not_full>;
} // namespace

extern "C" const bqr_family bqr_family_orgqr_warp = {
    .name = "orgqr_warp",
    .op = BATCHQR_ORGQR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = tiny_variants,
    .nvariants = tiny_num_not_full,
    .launches = 1,
    .supports = family::supports,
    .prepare = family::prepare,
    .launch = family::launch,
};
