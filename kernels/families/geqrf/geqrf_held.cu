/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_held: members of up to 128 columns where few are to be factored, each in the registers of one block,
 * in one launch. A warp holds 8 columns of all rows, or twice 8. Once they have taken the reflectors before
 * them they are a panel, which it factors alone (common/panel/fragment_panel.cuh), without a sum over warps.
 * V and then T go through shared memory to the warps of the columns right of it, the first of which goes on
 * at once. A is read and written once.
 *
 * Method: xGEQRF with blocks of 8; columns in range as in common/panel/columns.cuh. */
#include "common/simt/instances.cuh"
#include "common/matrix/member.cuh"
#include "common/panel/fragment_panel.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/mbarrier.cuh"

namespace {
using namespace bqr;

/* The factorization of one member of up to 32 R rows and 8 K P columns by one block of P warps: K panels for
 * each, 8 P columns apart. */
template <class T, int R, int P, int K> class held_qr : panel_team<T, R, 1> {
  using base = panel_team<T, R, 1>;
  using base::N, base::m_, base::s;
  using typename base::columns;
  using typename base::real;
  static constexpr int step = N * P; /* between a warp's panels */

  struct storage : base::storage {
    alignas(16) T tiles[2][columns::units * N * N]; /* of V, in turn */
    alignas(16) T factor[N * N];
    phase_barrier made; /* factor, of a panel */
  };

public:
  static constexpr size_t smem = sizeof(storage);

  __device__ held_qr(void *shared, int m, bool positive)
      : base(*static_cast<storage *>(shared), m, positive), all_(*static_cast<storage *>(shared)) {}

  /* Returns info, in thread 0. */
  __device__ int run(T *a, int64_t ld, T *tau, int n) {
    const int k = least(m_, n);
    const bool packs = columns::packs(a, ld, m_);
    columns x[K];
    real back[K]; /* what R's column of this lane is to be multiplied by */
    if (thread_id() == 0) all_.made.init(warp_lanes);
    int col = N * broadcast(warp_id(), 0);
#pragma unroll
    for (int i = 0; i < K; i++) x[i].load(0, a + (col + step * i) * ld, ld, m_, n - col - step * i, packs);
#pragma unroll
    for (int i = 0; i < K; i++) back[i] = bring_into_range(x[i]);
#pragma unroll 1
    for (int top = 0; top < k; top += N) {
      const bool leads = col == top;
      T *tiles = all_.tiles[top / N % 2];
      if (leads) {
        base::template factor_panel<true>(x[0], tiles, top, least(N, k - top), back[0]);
        typename base::reflectors_type(tiles).set(x[0], 0, m_ - top);
      }
      block_sync();
      if (leads) {
        make_triangular_factor(all_.factor, s.z, s.tau);
        const T own_tau = s.tau[columns::column()];
        all_.made.arrive();
        if (columns::lane() == 0 && columns::column() < k - top) tau[top + columns::column()] = own_tau;
        scale_rows(x[0], columns::column(), back[0]);
        x[0].store(0, a + top + top * ld, ld, m_ - top, n - top, packs);
#pragma unroll
        for (int i = 1; i < K; i++) {
          x[i - 1] = x[i];
          back[i - 1] = back[i];
        }
        col += step;
      }
      if (col > top && col < n) {
        apply_reflectors<K, true, R, 1>(waiting_team{all_.made, top / N % 2}, x, tiles, all_.factor, 0,
                                        m_ - top);
#pragma unroll
        for (int i = 0; i < K; i++) {
          columns tile = x[i];
          scale_rows(tile, N, back[i]);
          const int from = col + step * i;
          if (from < n) tile.template store<1>(0, a + top + from * ld, ld, m_ - top, n - from, packs);
          x[i].drop_tile(0);
        }
      }
    }
    const bool finite = !block_any(!base::finite_);
    if (thread_id() == 0) all_.made.end();
    if (!finite) return BATCHQR_INFO_NONFINITE;
    return thread_id() == 0 ? s.zero_column : 0;
  }

private:
  /* Makes V^H x while T is made. */
  struct waiting_team {
    phase_barrier &made;
    int parity;
    template <class V> __device__ __forceinline__ void sum(V &) const { made.wait(parity); }
  };
  /* Returns what takes the columns' scale out of R. */
  __device__ __forceinline__ real bring_into_range(columns &x) {
    uint32_t u = 0;
    x.each([&](T &y) { u = greater(u, magnitude(y)); });
    u = greater(u, exchange(u, 1));
    u = greater(u, exchange(u, 2));
    base::finite_ &= magnitude_finite<T>(u);
    const int exponent = column_exponent<T>(u);
    if (group_any(exponent != 0)) {
      const real scale = exponent_scale<real>(exponent);
      x.each([&](T &y) { y = scaled(y, scale); });
    }
    return exponent_scale<real>(-exponent);
  }
  /* Up to row `last` of the first 8. */
  __device__ __forceinline__ static void scale_rows(columns &x, int last, real back) {
#pragma unroll
    for (int e = 0; e < 2; e++)
      if (2 * columns::lane() + e <= last) x.x[0][e] = scaled(x.x[0][e], back);
  }

  storage &all_;
};

template <class T, int R, int P, int K>
__global__ void __launch_bounds__(P *warp_lanes, 1)
    geqrf_held_kernel(const __grid_constant__ bqr_args args, bool positive) {
  extern __shared__ __align__(16) unsigned char shared[];
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_GEQRF>(args, i);
    int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
    if (x.ok && x.m > 0 && x.n > 0) {
      held_qr<T, R, P, K> qr(shared, x.m, positive);
      info = qr.run(matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id), tau_data<T>(args, x.id),
                    broadcast(x.n, 0));
      block_sync();
    }
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

enum : int { S = 1 << BATCHQR_S, D = 1 << BATCHQR_D, C = 1 << BATCHQR_C, Z = 1 << BATCHQR_Z };
constexpr bqr_variant held_variants[] = {
    {.name = "rows64.cols64.warps4", .rows = 64, .cols = 64, .warps = 4, .types = S | D | C},
    {.name = "rows64.cols64.warps8", .rows = 64, .cols = 64, .warps = 8, .types = Z},
    {.name = "rows128.cols128.warps8", .rows = 128, .cols = 128, .warps = 8, .types = S | D | C},
};

/* For instances. */
struct held {
  static constexpr auto &variants = held_variants;
  static constexpr int num_variants = sizeof variants / sizeof variants[0];
  template <class T, int I, class F> static auto instance(const bqr_problem *, F &&f) {
    constexpr const bqr_variant &v = variants[I];
    constexpr int R = v.rows / warp_lanes, P = v.warps, K = v.cols / (panel_width * P);
    return f(geqrf_held_kernel<T, R, P, K>, held_qr<T, R, P, K>::smem, P * warp_lanes);
  }
};
using family = instances<held>;

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  return problem->m <= variant->rows && problem->n <= variant->cols &&
         family::fits(problem, variant, device->smem_per_block);
}

batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *,
                      const bqr_args *args, batchqr_stream stream) {
  return family::launch_with(problem, variant, stream, *args, problem->positive);
}
} // namespace

extern "C" const bqr_family bqr_family_geqrf_held = {
    .name = "geqrf_held",
    .op = BATCHQR_GEQRF,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = held_variants,
    .nvariants = held::num_variants,
    .launches = 1,
    .supports = supports,
    .prepare = family::prepare,
    .launch = launch,
};
