/* SPDX-License-Identifier: BSD-3-Clause */
/* gels_warp: least squares of tiny members in one go. B lies behind A's columns: what factors A applies Q^H
 * to B, and the lanes solve with R for one column of X after another. Columns are brought into range one by
 * one, as in the factorization, and X back from there; nothing else is scaled. See common/panel/tiny.cuh. */
#include "common/panel/tiny_warp.cuh"

namespace {
using namespace bqr;

/* Columns of A and of B together. */
constexpr bqr_variant gels_variants[] = {
    {"rows8.cols8.lanes1", {8, 8, 1, tiny_s | tiny_d, 1}},
    {"rows8.cols8.lanes2", {8, 8, 2, tiny_c | tiny_z, 1}},
    {"rows32.cols8.lanes4", {32, 8, 4, tiny_d | tiny_c, 2}},
    {"rows32.cols8.lanes8", {32, 8, 8, tiny_z, 4}},
    {"rows16.cols16.lanes4", {16, 16, 4, tiny_s | tiny_d, 1}},
    {"rows16.cols16.lanes8", {16, 16, 8, tiny_c, 2}},
    {"rows32.cols12.lanes8", {32, 12, 8, tiny_s | tiny_d | tiny_c, 2}},
    {"rows32.cols16.lanes8", {32, 16, 8, tiny_s | tiny_d | tiny_c, 2}},
    {"rows32.cols16.lanes16", {32, 16, 16, tiny_z, 4}},
    {"rows48.cols12.lanes16", {48, 12, 16, tiny_s | tiny_d | tiny_c, 4}},
    {"rows64.cols12.lanes16", {64, 12, 16, tiny_s | tiny_d | tiny_c, 4}},
    {"rows64.cols16.lanes16", {64, 16, 16, tiny_s | tiny_d | tiny_c, 4}},
    {"rows64.cols16.lanes32", {64, 16, 32, tiny_z, 4}},
    {"rows32.cols32.lanes16", {32, 32, 16, tiny_s | tiny_d | tiny_c, 2}},
    {"rows32.cols32.lanes32", {32, 32, 32, tiny_z, 2}},
};

struct gels {
  static constexpr int op = BATCHQR_GELS;
  static constexpr auto &variants = gels_variants;
  template <class W> static __device__ __forceinline__ void run(W &warp) {
    warp.load_system();
    warp.solve();
    warp.store_solution();
  }
};
using family = tiny_family<gels>;

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *) {
  return problem->tall && problem->trans == BATCHQR_NO_TRANS && problem->m <= variant->p[0] &&
         problem->n + static_cast<int64_t>(problem->k) <= variant->p[1] &&
         (variant->p[3] & 1 << problem->type) != 0;
}
} // namespace

extern "C" const bqr_family bqr_family_gels_warp = {
    "gels_warp",
    BATCHQR_GELS,
    BQR_ALL_TYPES,
    BATCHQR_BACKEND_CUDA,
    80,
    gels_variants,
    sizeof gels_variants / sizeof gels_variants[0],
    1,
    supports,
    nullptr,
    family::prepare,
    family::launch,
    BATCHQR_COMPUTE_AUTO,
    nullptr,
    nullptr,
    nullptr,
    nullptr,
    false,
    true,
};
