/* SPDX-License-Identifier: BSD-3-Clause */
/* orgqr_warp: forms Q of tiny members from their vectors, in place. See common/tiny.cuh. */
#include "tiny.cuh"

namespace {
using namespace bqr;

template <class T, int ROWS, int COLS, int LANES>
__global__ void __launch_bounds__(warp_lanes) orgqr_warp_kernel(const __grid_constant__ batchqr_args args) {
  using tile = tiny_tile<T, ROWS, COLS, LANES>;
  extern __shared__ __align__(16) unsigned char dynamic[];
  T *shared = reinterpret_cast<T *>(dynamic);
  const int lane = lane_id() % LANES, group = lane_id() / LANES;

  for (int64_t first = int64_t(blockIdx.x) * tile::members; first < args.count;
       first += int64_t(gridDim.x) * tile::members) {
    tiny_mover<BATCHQR_ORGQR, tiny_columns, T, ROWS, COLS, LANES>(args, args.a, shared)
        .each(first,
              [](const auto &walk, const T *v, int64_t ld, int k, T *to) { walk.load_async(to, v, ld, k); });
    const member x = tiny_member<BATCHQR_ORGQR>(args, first + group);
    tiny_qr<T, ROWS, COLS, LANES> qr;
    qr.shared = shared + group * tile::size;
    qr.lane = lane;
#pragma unroll
    for (int s = 0; s < tile::slots; s++)
      qr.tau[s] = qr.column(s) < x.k ? tau_data<T>(args, x.id)[qr.column(s)] : zero<T>();
    copy_async_wait();
    warp_sync();

    const bool padded = group_any(x.m < ROWS || x.k < COLS);
    if (args.info || padded) qr.read(x.m, x.k);
    if (args.info) {
      const bool finite = qr.vectors_finite();
      if (lane == 0 && first + group < args.count)
        set_info(args, x.id, !x.ok ? BATCHQR_INFO_SIZES : finite ? 0 : BATCHQR_INFO_NONFINITE);
    }
    if (padded) {
      qr.write();
      warp_sync();
    }
    qr.form_q(tiny_steps(x.k));

    warp_sync();
    qr.write();
    warp_sync();
    tiny_mover<BATCHQR_ORGQR, tiny_all, T, ROWS, COLS, LANES>(args, args.a, shared)
        .each(first,
              [](const auto &walk, T *q, int64_t ld, int n, const T *from) { walk.store(q, ld, from, n); });
    warp_sync();
  }
}

struct kernels {
  static constexpr auto &variants = tiny_variants;
  template <class T, int ROWS, int COLS, int LANES> static auto kernel() {
    return orgqr_warp_kernel<T, ROWS, COLS, LANES>;
  }
};
using family = tiny_family<kernels>;
} // namespace

extern "C" const batchqr_family batchqr_family_orgqr_warp = {
    "orgqr_warp",
    BATCHQR_ORGQR,
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
