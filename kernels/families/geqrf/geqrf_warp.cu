/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_warp: factors tiny members. See common/panel/tiny.cuh. */
#include "common/panel/tiny_warp.cuh"

namespace {
using namespace bqr;

/* About 128 registers of matrix to a lane, and half of that where the members are too few to fill the
 * machine. Wide members have a warp each. */
constexpr bqr_variant geqrf_variants[] = {
    {"rows4.cols4.lanes1", {4, 4, 1, tiny_s | tiny_d | tiny_c | tiny_z, 1}},
    {"rows8.cols4.lanes1", {8, 4, 1, tiny_s | tiny_d | tiny_c | tiny_z, 1}},
    {"rows8.cols8.lanes1", {8, 8, 1, tiny_s | tiny_d | tiny_c, 1}},
    {"rows8.cols8.lanes2", {8, 8, 2, tiny_z, 1}},
    {"rows16.cols16.lanes2", {16, 16, 2, tiny_s, 1}},
    {"rows16.cols16.lanes4", {16, 16, 4, tiny_d, 1}},
    {"rows16.cols16.lanes8", {16, 16, 8, tiny_c | tiny_z, 1}},
    {"rows16.cols16.lanes16", {16, 16, 16, tiny_s | tiny_d, 2}},
    {"rows32.cols8.lanes2", {32, 8, 2, tiny_s, 1}},
    {"rows32.cols8.lanes4", {32, 8, 4, tiny_d | tiny_c, 2}},
    {"rows32.cols8.lanes8", {32, 8, 8, tiny_z, 4}},
    {"rows24.cols24.lanes4", {24, 24, 4, tiny_s, 1}},
    {"rows24.cols24.lanes8", {24, 24, 8, tiny_s | tiny_d, 1}},
    {"rows32.cols16.lanes8", {32, 16, 8, tiny_s | tiny_d | tiny_c, 2}},
    {"rows32.cols16.lanes16", {32, 16, 16, tiny_s | tiny_d | tiny_z, 4}},
    {"rows64.cols8.lanes8", {64, 8, 8, tiny_s | tiny_d | tiny_c, 4}},
    {"rows32.cols32.lanes16", {32, 32, 16, tiny_s | tiny_d | tiny_c, 2}},
    {"rows32.cols32.lanes32", {32, 32, 32, tiny_s | tiny_d | tiny_c | tiny_z, 4}},
    {"rows64.cols16.lanes16", {64, 16, 16, tiny_s | tiny_d | tiny_c, 4}},
    {"rows64.cols32.lanes32", {64, 32, 32, tiny_s | tiny_c, 4, 1}},
    {"rows48.cols48.lanes32", {48, 48, 32, tiny_s | tiny_d | tiny_c, 4, 1}},
    {"rows64.cols48.lanes32", {64, 48, 32, tiny_s, 4, 1}},
    {"rows64.cols64.lanes32", {64, 64, 32, tiny_s, 4, 1}},
    {"rows128.cols8.lanes8", {128, 8, 8, tiny_s, 4}},
    {"rows128.cols16.lanes16", {128, 16, 16, tiny_s, 4}},
};
constexpr int num_variants = sizeof geqrf_variants / sizeof geqrf_variants[0];

struct geqrf {
  static constexpr int op = BATCHQR_GEQRF;
  static constexpr auto &variants = geqrf_variants;
  template <class W> static __device__ __forceinline__ void run(W &warp) {
    warp.template load<tiny_all>(warp.args.a);
    warp.factor();
    warp.template store<tiny_all>(warp.args.a);
    warp.store_tau();
  }
};
using family = tiny_family<geqrf>;
} // namespace

extern "C" const bqr_family bqr_family_geqrf_warp = {
    "geqrf_warp",
    BATCHQR_GEQRF,
    BQR_ALL_TYPES,
    BATCHQR_BACKEND_CUDA,
    80,
    geqrf_variants,
    num_variants,
    1,
    family::supports,
    nullptr,
    family::prepare,
    family::launch,
    BATCHQR_COMPUTE_AUTO,
    nullptr,
    nullptr,
    nullptr,
    family::prefers,
};
