/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_warp: factors tiny members. See common/tiny.cuh. */
#include "tiny.cuh"

namespace {
using namespace bqr;

template <class T, int ROWS, int COLS, int LANES>
__global__ void __launch_bounds__(warp_lanes) geqrf_warp_kernel(const __grid_constant__ batchqr_args args) {
  using tile = tiny_tile<T, ROWS, COLS, LANES>;
  extern __shared__ __align__(16) unsigned char dynamic[];
  T *shared = reinterpret_cast<T *>(dynamic);
  const int lane = lane_id() % LANES, group = lane_id() / LANES;
  const tiny_mover<BATCHQR_GEQRF, tiny_all, T, ROWS, COLS, LANES> mover(args, args.a, shared);

  for (int64_t first = int64_t(blockIdx.x) * tile::members; first < args.count;
       first += int64_t(gridDim.x) * tile::members) {
    mover.each(first,
               [](const auto &walk, const T *a, int64_t ld, int n, T *to) { walk.load_async(to, a, ld, n); });
    const member x = tiny_member<BATCHQR_GEQRF>(args, first + group);
    const int k = tiny_reflectors<BATCHQR_GEQRF>(x);
    copy_async_wait();
    warp_sync();

    tiny_qr<T, ROWS, COLS, LANES> qr;
    qr.shared = shared + group * tile::size;
    qr.lane = lane;
    qr.read(x.m, x.n);
    const uint32_t top = qr.template factor<true>(x.n, k);

    warp_sync();
    qr.write();
    warp_sync();
#pragma unroll
    for (int s = 0; s < tile::slots; s++)
      if (qr.column(s) < k) tau_data<T>(args, x.id)[qr.column(s)] = qr.tau[s];
    mover.each(first,
               [](const auto &walk, T *a, int64_t ld, int n, const T *from) { walk.store(a, ld, from, n); });
    if (args.info) {
      const int info = qr.info(top, k);
      if (lane == 0 && first + group < args.count) set_info(args, x.id, x.ok ? info : BATCHQR_INFO_SIZES);
    }
    warp_sync();
  }
}

/* rows, columns, lanes, types: about 128 registers of matrix to a lane. */
enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
constexpr batchqr_variant geqrf_variants[] = {
    {"rows4.cols4.lanes1", {4, 4, 1, S | D | C | Z}}, {"rows8.cols4.lanes1", {8, 4, 1, S | D | C | Z}},
    {"rows8.cols8.lanes1", {8, 8, 1, S | D | C}},     {"rows8.cols8.lanes2", {8, 8, 2, Z}},
    {"rows16.cols16.lanes2", {16, 16, 2, S}},         {"rows16.cols16.lanes4", {16, 16, 4, D | C}},
    {"rows16.cols16.lanes8", {16, 16, 8, Z}},         {"rows32.cols8.lanes2", {32, 8, 2, S}},
    {"rows32.cols8.lanes4", {32, 8, 4, D | C}},       {"rows32.cols8.lanes8", {32, 8, 8, Z}},
    {"rows24.cols24.lanes4", {24, 24, 4, S}},         {"rows24.cols24.lanes8", {24, 24, 8, D | C}},
    {"rows32.cols16.lanes4", {32, 16, 4, S}},         {"rows32.cols16.lanes8", {32, 16, 8, D | C}},
    {"rows32.cols16.lanes16", {32, 16, 16, Z}},       {"rows64.cols8.lanes4", {64, 8, 4, S}},
    {"rows64.cols8.lanes8", {64, 8, 8, D | C}},       {"rows32.cols32.lanes8", {32, 32, 8, S}},
    {"rows32.cols32.lanes16", {32, 32, 16, D | C}},   {"rows32.cols32.lanes32", {32, 32, 32, S | D | C | Z}},
    {"rows64.cols16.lanes8", {64, 16, 8, S}},         {"rows64.cols16.lanes16", {64, 16, 16, D | C}},
    {"rows128.cols8.lanes8", {128, 8, 8, S}},         {"rows128.cols16.lanes16", {128, 16, 16, S}},
};
constexpr int num_variants = sizeof geqrf_variants / sizeof geqrf_variants[0];

struct kernels {
  static constexpr auto &variants = geqrf_variants;
  template <class T, int ROWS, int COLS, int LANES> static auto kernel() {
    return geqrf_warp_kernel<T, ROWS, COLS, LANES>;
  }
};
using family = tiny_family<kernels>;
} // namespace

extern "C" const batchqr_family batchqr_family_geqrf_warp = {
    "geqrf_warp",
    BATCHQR_GEQRF,
    BATCHQR_ALL_TYPES,
    BATCHQR_BACKEND_CUDA,
    80,
    geqrf_variants,
    num_variants,
    1,
    family::supports,
    nullptr,
    family::prepare,
    family::launch,
};
