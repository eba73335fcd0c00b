/* SPDX-License-Identifier: BSD-3-Clause */
/* qr_warp: thin Q and R of tiny members in one go: A is read, R and Q are written. geqr_r_warp: the same
 * kernels, which stop at R, beside A or in its place. See common/panel/tiny.cuh. */
#include "common/panel/tiny_warp.cuh"

namespace {
using namespace bqr;

struct qr {
  static constexpr int op = BATCHQR_QR;
  static constexpr auto &variants = tiny_variants;
  template <class W> static __device__ __forceinline__ void run(W &warp) {
    warp.template load<tiny_all>(warp.args.a);
    warp.factor();
    warp.template store_upper<tiny_r>(warp.args.r);
    if (!warp.args.c.data) return;
    warp.form_q();
    warp.template store<tiny_columns>(warp.args.c);
  }
};
using family = tiny_family<qr>;

batchqr_status launch_r(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                        const bqr_args *args, batchqr_stream stream) {
  bqr_args r_alone = *args;
  r_alone.c.data = nullptr;
  return family::launch(problem, variant, device, &r_alone, stream);
}
} // namespace

extern "C" const bqr_family bqr_family_qr_warp = {
    .name = "qr_warp",
    .op = BATCHQR_QR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = tiny_variants,
    .nvariants = tiny_num_variants,
    .launches = 1,
    .supports = family::supports,
    .prepare = family::prepare,
    .launch = family::launch,
    .prefers = family::prefers,
    .keeps_a = true,
};

extern "C" const bqr_family bqr_family_geqr_r_warp = {
    .name = "geqr_r_warp",
    .op = BATCHQR_GEQR_R,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = tiny_variants,
    .nvariants = tiny_num_variants,
    .launches = 1,
    .supports = family::supports,
    .prepare = family::prepare,
    .launch = launch_r,
    .prefers = family::prefers,
    .keeps_a = true,
};
