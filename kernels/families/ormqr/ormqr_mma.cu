/* SPDX-License-Identifier: BSD-3-Clause */
/* ormqr_mma: applies Q from its reflectors to small members in one launch, one block for a member, on matrix
 * units. V and T go to shared memory; then each warp takes 8 or 16 columns of C at a time, or, with Q on the
 * right, of C^H (common/panel/kept_panels.cuh).
 *
 * Method: xORMQR with blocks of 8. */
#include "common/panel/kept_panels.cuh"
#include "common/ptx/barrier.cuh"

namespace {
using namespace bqr;

/* The sides that Q is on in the launches of a kernel. */
enum sides { left_alone, right_alone, either_side };

/* One kernel for both sides takes half of the time to compile; where registers are scarcest it loses 4 %. */
template <class T, int R> constexpr bool sides_share = R * sizeof(T) <= 32;

/* The lines of C that Q changes one by one: columns, or with Q on the right rows, as columns of C^H. */
template <class T, int R, int K> class lines {
  using columns = fragment<T, R, 1>;

public:
  __device__ __forceinline__ lines(T *c, int64_t ld, int length, int count, bool left)
      : c_(c), ld_(ld), length_(length), count_(count), left_(left), packs_(columns::packs(c, ld, length)) {}

  /* 8 K lines from number `first` on. */
  __device__ __forceinline__ void load(columns (&x)[K], int first) const {
    if (left_) {
#pragma unroll
      for (int i = 0; i < K; i++)
        x[i].load(0, c_ + (first + 8 * i) * ld_, ld_, length_, count_ - first - 8 * i, packs_);
    } else {
      each(first, [&](int i, int u, int e, bool in, T *y) { x[i].x[u][e] = in ? conj(*y) : zero<T>(); });
    }
  }
  __device__ __forceinline__ void store(const columns (&x)[K], int first) const {
    if (left_) {
#pragma unroll
      for (int i = 0; i < K; i++)
        x[i].store(0, c_ + (first + 8 * i) * ld_, ld_, length_, count_ - first - 8 * i, packs_);
    } else {
      each(first, [&](int i, int u, int e, bool in, T *y) {
        if (in) *y = conj(x[i].x[u][e]);
      });
    }
  }

private:
  /* f(number of 8 lines, unit, entry of it, whether there is one, its address) */
  template <class F> __device__ __forceinline__ void each(int first, F &&f) const {
    const int row = 2 * columns::lane();
#pragma unroll
    for (int i = 0; i < K; i++) {
      const int line = first + 8 * i + columns::column();
#pragma unroll
      for (int u = 0; u < columns::units; u++)
#pragma unroll
        for (int e = 0; e < 2; e++)
          f(i, u, e, line < count_ && 8 * u + row + e < length_, c_ + line + (8 * u + row + e) * ld_);
    }
  }

  T *c_;
  int64_t ld_;
  int length_, count_;
  bool left_, packs_;
};

/* Brings columns near the ends of the range nearer to 1; scale[i]: of this lane's column. Whether they are
 * finite. */
template <class C, class R, int K>
__device__ __forceinline__ bool bring_into_range(C (&x)[K], R (&scale)[K]) {
  bool finite = true;
#pragma unroll
  for (int i = 0; i < K; i++) {
    uint32_t u = 0;
    x[i].each([&](auto &y) { u = greater(u, magnitude(y)); });
    u = greater(u, exchange(u, 1));
    u = greater(u, exchange(u, 2));
    using T = std::decay_t<decltype(x[0].x[0][0])>;
    scale[i] = range_scale<T>(u, true);
    finite &= magnitude_finite<T>(u);
    if (group_any(scale[i] != 1)) x[i].each([&](T &y) { y = scaled(y, scale[i]); });
  }
  return finite;
}

/* C := Q C or C Q, or with Q^H; m x n, k reflectors. Returns info, to all threads. */
template <class T, int R>
__device__ __forceinline__ int apply_q(void *shared, const T *a, int64_t lda, const T *tau, T *c, int64_t ldc,
                                       int m, int n, int k, bool left, bool adjoint) {
  using kept_type = kept_panels<T, R>;
  constexpr int K = kept_type::K, width = panel_width * K;
  const int length = left ? m : n, count = left ? n : m, warp = broadcast(warp_id(), 0);
  const kept_type kept(shared, length, k);
  bool finite = kept.take(a, lda, tau);
  const lines<T, R, K> all(c, ldc, length, count, left);
#pragma unroll 1
  for (int first = width * warp; first < count; first += width * num_warps()) {
    fragment<T, R, 1> x[K];
    real_t<T> scale[K];
    all.load(x, first);
    finite &= bring_into_range(x, scale);
    if (k == 0) continue;
    if (left == adjoint) {
#pragma unroll 1
      for (int p = 0; p < kept.panels(); p++) kept.template apply<true>(x, p);
    } else {
#pragma unroll 1
      for (int p = kept.panels() - 1; p >= 0; p--) kept.template apply<false>(x, p);
    }
#pragma unroll
    for (int i = 0; i < K; i++)
      if (group_any(scale[i] != 1)) x[i].each([&](T &y) { y = scaled(y, range_unscale(scale[i])); });
    all.store(x, first);
  }
  return block_any(!finite) ? BATCHQR_INFO_NONFINITE : 0;
}

template <class T, int R, sides SIDES, int REGISTERS>
__global__ void __maxnreg__(REGISTERS)
    ormqr_mma_kernel(const __grid_constant__ bqr_args args, bool on_the_left, bool adjoint) {
  const bool left = SIDES == either_side ? on_the_left : SIDES == left_alone;
  extern __shared__ __align__(16) unsigned char shared[];
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_ORMQR>(args, i, left ? BATCHQR_LEFT : BATCHQR_RIGHT);
    int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
    if (x.ok && x.m > 0 && x.n > 0)
      info = apply_q<T, R>(shared, x.k > 0 ? matrix_data<T>(args, args.a, x.id) : nullptr,
                           matrix_ld(args.a, x.id), x.k > 0 ? tau_data<T>(args, x.id) : nullptr,
                           matrix_data<T>(args, args.c, x.id), matrix_ld(args.c, x.id), broadcast(x.m, 0),
                           broadcast(x.n, 0), broadcast(x.k, 0), left, adjoint);
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

/* For kept_family. */
struct ormqr {
  static int rows(const bqr_problem *problem) {
    return problem->side == BATCHQR_LEFT ? problem->m : problem->n;
  }
  static int lines(const bqr_problem *problem) {
    return problem->side == BATCHQR_LEFT ? problem->n : problem->m;
  }
  template <class T, int R, int REGISTERS> static auto kernel(const bqr_problem *problem) {
    if constexpr (sides_share<T, R>)
      return ormqr_mma_kernel<T, R, either_side, REGISTERS>;
    else
      return problem->side == BATCHQR_LEFT ? ormqr_mma_kernel<T, R, left_alone, REGISTERS>
                                           : ormqr_mma_kernel<T, R, right_alone, REGISTERS>;
  }
};
using family = kept_family<ormqr, 4>; /* up to 128 rows: beyond, the steps are as fast */

batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *,
                      const bqr_args *args, batchqr_stream stream) {
  return family::launch_with(problem, variant, stream, *args, problem->side == BATCHQR_LEFT,
                             problem->trans != BATCHQR_NO_TRANS);
}
} // namespace

extern "C" const bqr_family bqr_family_ormqr_mma = {
    .name = "ormqr_mma",
    .op = BATCHQR_ORMQR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = kept_variants,
    .nvariants = family::num_variants,
    .launches = 1,
    .supports = family::supports,
    .prepare = family::prepare,
    .launch = launch,
    .prefers = family::prefers,
};
