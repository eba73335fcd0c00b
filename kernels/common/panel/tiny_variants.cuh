/* SPDX-License-Identifier: BSD-3-Clause */
/* The variants of the *_warp families of tiny members. */
#ifndef BQR_KERNELS_COMMON_PANEL_TINY_VARIANTS_CUH
#define BQR_KERNELS_COMMON_PANEL_TINY_VARIANTS_CUH

#include "family.h"

namespace bqr {

enum : int {
  tiny_s = 1 << BATCHQR_S,
  tiny_d = 1 << BATCHQR_D,
  tiny_c = 1 << BATCHQR_C,
  tiny_z = 1 << BATCHQR_Z
};

/* Those of the families that write Q or R. Fewer than of geqrf_warp, for they take longer to compile. */
constexpr bqr_variant tiny_variants[] = {
    {.name = "rows4.cols4.lanes1",
     .rows = 4,
     .cols = 4,
     .lanes = 1,
     .types = tiny_s | tiny_d | tiny_c | tiny_z,
     .split = 1},
    {.name = "rows8.cols4.lanes1",
     .rows = 8,
     .cols = 4,
     .lanes = 1,
     .types = tiny_s | tiny_d | tiny_c | tiny_z,
     .split = 1},
    {.name = "rows8.cols8.lanes1",
     .rows = 8,
     .cols = 8,
     .lanes = 1,
     .types = tiny_s | tiny_d | tiny_c,
     .split = 1},
    {.name = "rows8.cols8.lanes2", .rows = 8, .cols = 8, .lanes = 2, .types = tiny_z, .split = 1},
    {.name = "rows16.cols16.lanes2", .rows = 16, .cols = 16, .lanes = 2, .types = tiny_s, .split = 1},
    {.name = "rows16.cols16.lanes4", .rows = 16, .cols = 16, .lanes = 4, .types = tiny_d, .split = 1},
    {.name = "rows16.cols16.lanes8",
     .rows = 16,
     .cols = 16,
     .lanes = 8,
     .types = tiny_c | tiny_z,
     .split = 1},
    {.name = "rows32.cols8.lanes2", .rows = 32, .cols = 8, .lanes = 2, .types = tiny_s, .split = 1},
    {.name = "rows32.cols8.lanes4", .rows = 32, .cols = 8, .lanes = 4, .types = tiny_d | tiny_c, .split = 2},
    {.name = "rows32.cols8.lanes8", .rows = 32, .cols = 8, .lanes = 8, .types = tiny_z, .split = 4},
    {.name = "rows24.cols24.lanes4", .rows = 24, .cols = 24, .lanes = 4, .types = tiny_s, .split = 1},
    {.name = "rows24.cols24.lanes8", .rows = 24, .cols = 24, .lanes = 8, .types = tiny_d, .split = 1},
    {.name = "rows32.cols16.lanes4", .rows = 32, .cols = 16, .lanes = 4, .types = tiny_s, .split = 1},
    {.name = "rows32.cols16.lanes8",
     .rows = 32,
     .cols = 16,
     .lanes = 8,
     .types = tiny_d | tiny_c,
     .split = 2},
    {.name = "rows32.cols16.lanes16", .rows = 32, .cols = 16, .lanes = 16, .types = tiny_z, .split = 4},
    {.name = "rows64.cols8.lanes8", .rows = 64, .cols = 8, .lanes = 8, .types = tiny_s | tiny_d, .split = 4},
    {.name = "rows32.cols32.lanes16",
     .rows = 32,
     .cols = 32,
     .lanes = 16,
     .types = tiny_s | tiny_d | tiny_c,
     .split = 2},
    {.name = "rows32.cols32.lanes32",
     .rows = 32,
     .cols = 32,
     .lanes = 32,
     .types = tiny_s | tiny_d | tiny_z,
     .split = 4},
    {.name = "rows64.cols16.lanes16",
     .rows = 64,
     .cols = 16,
     .lanes = 16,
     .types = tiny_s | tiny_d,
     .split = 4},
    {.name = "rows64.cols32.lanes32",
     .rows = 64,
     .cols = 32,
     .lanes = 32,
     .types = tiny_s,
     .split = 4,
     .full = true},
    {.name = "rows48.cols48.lanes32",
     .rows = 48,
     .cols = 48,
     .lanes = 32,
     .types = tiny_s | tiny_d,
     .split = 4,
     .full = true},
    {.name = "rows64.cols64.lanes32",
     .rows = 64,
     .cols = 64,
     .lanes = 32,
     .types = tiny_s,
     .split = 4,
     .full = true},
};
constexpr int tiny_num_variants = sizeof tiny_variants / sizeof tiny_variants[0];

/* Those before the ones for full tiles, which are the last. */
constexpr int count_not_full() {
  int count = tiny_num_variants;
  while (tiny_variants[count - 1].full) count--;
  return count;
}
constexpr int tiny_num_not_full = count_not_full();

} // namespace bqr

#endif
