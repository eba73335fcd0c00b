/* SPDX-License-Identifier: BSD-3-Clause */
/* gels_warp: least squares of tiny members in one go. B lies behind A's columns: what factors A applies Q^H
 * to B, and the lanes solve with R for one column of X after another. Columns are brought into range one by
 * one, as in the factorization, and X back from there; nothing else is scaled. See common/panel/tiny.cuh. */
#include "common/panel/tiny_warp.cuh"

namespace {
using namespace bqr;

/* cols: of A and of B together. */
constexpr bqr_variant gels_variants[] = {
    {.name = "rows8.cols8.lanes1", .rows = 8, .cols = 8, .lanes = 1, .types = tiny_s | tiny_d, .split = 1},
    {.name = "rows8.cols8.lanes2", .rows = 8, .cols = 8, .lanes = 2, .types = tiny_c | tiny_z, .split = 1},
    {.name = "rows32.cols8.lanes4", .rows = 32, .cols = 8, .lanes = 4, .types = tiny_d | tiny_c, .split = 2},
    {.name = "rows32.cols8.lanes8", .rows = 32, .cols = 8, .lanes = 8, .types = tiny_z, .split = 4},
    {.name = "rows16.cols16.lanes4",
     .rows = 16,
     .cols = 16,
     .lanes = 4,
     .types = tiny_s | tiny_d,
     .split = 1},
    {.name = "rows16.cols16.lanes8", .rows = 16, .cols = 16, .lanes = 8, .types = tiny_c, .split = 2},
    {.name = "rows32.cols12.lanes8",
     .rows = 32,
     .cols = 12,
     .lanes = 8,
     .types = tiny_s | tiny_d | tiny_c,
     .split = 2},
    {.name = "rows32.cols16.lanes8",
     .rows = 32,
     .cols = 16,
     .lanes = 8,
     .types = tiny_s | tiny_d | tiny_c,
     .split = 2},
    {.name = "rows32.cols16.lanes16", .rows = 32, .cols = 16, .lanes = 16, .types = tiny_z, .split = 4},
    {.name = "rows48.cols12.lanes16",
     .rows = 48,
     .cols = 12,
     .lanes = 16,
     .types = tiny_s | tiny_d | tiny_c,
     .split = 4},
    {.name = "rows64.cols12.lanes16",
     .rows = 64,
     .cols = 12,
     .lanes = 16,
     .types = tiny_s | tiny_d | tiny_c,
     .split = 4},
    {.name = "rows64.cols16.lanes16",
     .rows = 64,
     .cols = 16,
     .lanes = 16,
     .types = tiny_s | tiny_d | tiny_c,
     .split = 4},
    {.name = "rows64.cols16.lanes32", .rows = 64, .cols = 16, .lanes = 32, .types = tiny_z, .split = 4},
    {.name = "rows32.cols32.lanes16",
     .rows = 32,
     .cols = 32,
     .lanes = 16,
     .types = tiny_s | tiny_d | tiny_c,
     .split = 2},
    {.name = "rows32.cols32.lanes32", .rows = 32, .cols = 32, .lanes = 32, .types = tiny_z, .split = 2},
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
  return problem->tall && problem->trans == BATCHQR_NO_TRANS && problem->m <= variant->rows &&
         problem->n + static_cast<int64_t>(problem->k) <= variant->cols &&
         (variant->types & 1 << problem->type) != 0;
}
} // namespace

extern "C" const bqr_family bqr_family_gels_warp = {
    .name = "gels_warp",
    .op = BATCHQR_GELS,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = gels_variants,
    .nvariants = sizeof gels_variants / sizeof gels_variants[0],
    .launches = 1,
    .supports = supports,
    .prepare = family::prepare,
    .launch = family::launch,
    .keeps_a = true,
};
