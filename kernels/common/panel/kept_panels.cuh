/* SPDX-License-Identifier: BSD-3-Clause */
/* All reflectors of a member in shared memory, V and T in panels of 8 (common/panel/fragment_panel.cuh), each
 * made by one of a block's warps. Every warp then forms columns of Q, or applies the reflectors to columns of
 * its own, all rows in its registers: nothing is exchanged between warps. */
#ifndef BQR_KERNELS_COMMON_PANEL_KEPT_PANELS_CUH
#define BQR_KERNELS_COMMON_PANEL_KEPT_PANELS_CUH

#include "costs.h"
#include "common/simt/block.cuh"
#include "common/simt/instances.cuh"
#include "common/matrix/member.cuh"
#include "fragment_panel.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

/* Up to 32 R rows, any number of warps. */
template <class T, int R> class kept_panels {
  using tiles_type = panel_tiles<T, 1>;
  static constexpr int N = panel_width;

  /* Of a warp. */
  struct storage {
    alignas(16) T z[N][N];
    T tau[N];
  };
  /* Sums over one warp. */
  struct lone_warp {
    __device__ __forceinline__ static int warp() { return 0; }
    template <class V> __device__ __forceinline__ void sum(V &) const {}
  };

public:
  using columns = fragment<T, R, 1>;
  static constexpr int K = R * sizeof(T) > 32 ? 1 : 2; /* 8 K columns at a time */

  static size_t smem(int rows, int k, int warps) {
    return sizeof(storage) * warps + tiles_type::bytes(rows, k);
  }

  __device__ __forceinline__ kept_panels(void *shared, int rows, int k)
      : s_(static_cast<storage *>(shared)), rows_(broadcast(rows, 0)), k_(broadcast(k, 0)),
        v_(reinterpret_cast<T *>(s_ + num_warps()), rows_) {}

  __device__ __forceinline__ int panels() const { return tiles_type::panels(k_); }

  /* Takes them all; whether they are finite. To be called by all threads; contains a barrier. */
  __device__ __forceinline__ bool take(const T *a, int64_t ld, const T *tau) const {
    const int warp = broadcast(warp_id(), 0);
    const bool packs = columns::packs(a, ld, rows_);
    bool finite = true;
#pragma unroll 1
    for (int p = warp; p < panels(); p += num_warps())
      finite &= take_panel(p, a + N * p * (ld + 1), ld, tau, packs);
    return !block_any(!finite);
  }

  /* 8 K columns from `col` on of the first n of Q, see form_columns(). */
  __device__ __forceinline__ void form(int n, int col, T *q, int64_t ldq, bool packs) const {
    form_columns<T, R, 1, K>(lone_warp(), v_, rows_, n, k_, col, q, ldq, packs);
  }

  /* x := (I - V T V^H) x, or with T^H, for panel p. */
  template <bool ADJOINT> __device__ __forceinline__ void apply(columns (&x)[K], int p) const {
    apply_reflectors<K, ADJOINT, R, 1>(lone_warp(), x, v_.at(p, 0), v_.at(p, 0), 0, rows_, p);
  }

private:
  /* Keeps V of panel p, which `a` points to, and its T; whether they are finite. */
  __device__ __forceinline__ bool take_panel(int p, const T *a, int64_t ld, const T *tau, bool packs) const {
    const int g = columns::column(), q = columns::lane(), rows = rows_ - N * p, count = k_ - N * p;
    storage &s = s_[warp_id()];
    T *tiles = v_.at(p, 0);
    columns x;
    x.load(0, a, ld, rows, count, packs);
    const T own_tau = g < count ? tau[N * p + g] : zero<T>();
    panel_reflectors<T, R, 1>(tiles).set(x, 0, rows);
#pragma unroll
    for (int e = 0; e < 2; e++)
      if (2 * q + e <= g) x.x[0][e] = make<T>(2 * q + e == g);
    T y[2];
    block_reflector<T, R, 1>::gram(y, x, 1, N + rows); /* as if below the 8 rows that it leaves out */
#pragma unroll
    for (int e = 0; e < 2; e++) s.z[2 * q + e][g] = y[e];
    if (q == 0) s.tau[g] = own_tau;
    bool finite = is_finite(own_tau);
    /* squares may leave the range where entries do not */
    if (group_any((q == g / 2) & !is_finite(g % 2 ? y[1] : y[0])))
      x.each([&](T &z) { finite &= is_finite(z); });
    make_triangular_factor(tiles, s.z, s.tau);
    return !group_any(!finite);
  }

  storage *s_;
  int rows_, k_;
  tiles_type v_;
};

/* Registers of a thread: fewer, and there would be spills within loops. More where they do not cost blocks.
 */
template <class T, int R, int WARPS>
constexpr int kept_registers = R * sizeof(T) <= 8                                    ? 96
                               : R * sizeof(T) <= 16                                 ? 128
                               : R * sizeof(T) <= 32 && !is_complex<T> && WARPS <= 4 ? 168
                                                                                     : 255;

constexpr int kept_types = 1 << BATCHQR_S | 1 << BATCHQR_D | 1 << BATCHQR_C,
              kept_all = kept_types | 1 << BATCHQR_Z;
constexpr bqr_variant kept_variants[] = {
    {.name = "rows64.warps4", .rows = 64, .warps = 4, .types = kept_all},
    {.name = "rows64.warps2", .rows = 64, .warps = 2, .types = kept_all, .fewest_warps = kept_all},
    {.name = "rows128.warps8", .rows = 128, .warps = 8, .types = kept_all},
    {.name = "rows128.warps4", .rows = 128, .warps = 4, .types = kept_all, .fewest_warps = kept_all},
    {.name = "rows256.warps8", .rows = 256, .warps = 8, .types = kept_types},
    {.name = "rows256.warps4", .rows = 256, .warps = 4, .types = kept_types, .fewest_warps = kept_types},
};
constexpr int kept_num_variants = sizeof kept_variants / sizeof kept_variants[0];

/* The host side of a family. OP::rows(problem): of V; OP::lines(problem): that one block changes;
 * OP::kernel<T, R, REGISTERS>(problem). VARIANTS: the first so many. */
template <class OP, int VARIANTS = kept_num_variants>
struct kept_family : instances<kept_family<OP, VARIANTS>> {
  static constexpr auto &variants = kept_variants;
  static constexpr int num_variants = VARIANTS;
  template <class T, int I, class F> static auto instance(const bqr_problem *problem, F &&f) {
    constexpr int R = variants[I].rows / warp_lanes, warps = variants[I].warps;
    const int rows = OP::rows(problem);
    return f(OP::template kernel<T, R, kept_registers<T, R, warps>>(problem),
             kept_panels<T, R>::smem(rows, least(problem->k, rows), warps), warps * warp_lanes);
  }

  static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
    return OP::rows(problem) <= variant->rows && kept_family::fits(problem, variant, device->smem_per_block);
  }

  static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
    return OP::lines(problem) <= bqr_costs_of(device)->blocks.lines &&
           ((variant->fewest_warps & 1 << problem->type) != 0 ||
            kept_family::warps_pay(problem, variant, device));
  }
};

} // namespace bqr

#endif
