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
/* orgqr_mma is as fast as the wide variants. */
using family = tiny_family<orgqr, tiny_num_narrow>;
} // namespace

extern "C" const bqr_family bqr_family_orgqr_warp = {
    "orgqr_warp",
    BATCHQR_ORGQR,
    BQR_ALL_TYPES,
    BATCHQR_BACKEND_CUDA,
    80,
    tiny_variants,
    tiny_num_narrow,
    1,
    family::supports,
    nullptr,
    family::prepare,
    family::launch,
};
