/* SPDX-License-Identifier: BSD-3-Clause */
/* qr_warp: thin Q and R of tiny members in one go: A is read, R and Q are written. See common/tiny.cuh. */
#include "tiny.cuh"

namespace {
using namespace bqr;

template <class T, int ROWS, int COLS, int LANES>
__global__ void __launch_bounds__(warp_lanes) qr_warp_kernel(const __grid_constant__ batchqr_args args) {
  using tile = tiny_tile<T, ROWS, COLS, LANES>;
  extern __shared__ __align__(16) unsigned char dynamic[];
  T *shared = reinterpret_cast<T *>(dynamic);
  const int lane = lane_id() % LANES, group = lane_id() / LANES;

  for (int64_t first = int64_t(blockIdx.x) * tile::members; first < args.count;
       first += int64_t(gridDim.x) * tile::members) {
    tiny_mover<BATCHQR_QR, tiny_all, T, ROWS, COLS, LANES>(args, args.a, shared)
        .each(first,
              [](const auto &walk, const T *a, int64_t ld, int n, T *to) { walk.load_async(to, a, ld, n); });
    const member x = tiny_member<BATCHQR_QR>(args, first + group);
    const int k = tiny_reflectors<BATCHQR_QR>(x);
    copy_async_wait();
    warp_sync();

    tiny_qr<T, ROWS, COLS, LANES> qr;
    qr.shared = shared + group * tile::size;
    qr.lane = lane;
    qr.read(x.m, x.n);
    const uint32_t top = qr.template factor<true>(x.n, k);
    if (args.info) {
      const int info = qr.info(top, k);
      if (lane == 0 && first + group < args.count) set_info(args, x.id, x.ok ? info : BATCHQR_INFO_SIZES);
    }

    warp_sync();
    qr.write();
    warp_sync();
    tiny_mover<BATCHQR_QR, tiny_r, T, ROWS, COLS, LANES>(args, args.r, shared)
        .each(first, [](const auto &walk, T *r, int64_t ld, int n, const T *from) {
          walk.store_upper(r, ld, from, n);
        });
    qr.form_q(tiny_steps(k));

    warp_sync();
    qr.write();
    warp_sync();
    tiny_mover<BATCHQR_QR, tiny_columns, T, ROWS, COLS, LANES>(args, args.c, shared)
        .each(first,
              [](const auto &walk, T *q, int64_t ld, int n, const T *from) { walk.store(q, ld, from, n); });
    warp_sync();
  }
}

struct kernels {
  static constexpr auto &variants = tiny_variants;
  template <class T, int ROWS, int COLS, int LANES> static auto kernel() {
    return qr_warp_kernel<T, ROWS, COLS, LANES>;
  }
};
using family = tiny_family<kernels>;
} // namespace

extern "C" const batchqr_family batchqr_family_qr_warp = {
    "qr_warp",
    BATCHQR_QR,
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
