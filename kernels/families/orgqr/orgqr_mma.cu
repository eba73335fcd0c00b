/* SPDX-License-Identifier: BSD-3-Clause */
/* orgqr_mma: forms Q of small members from their vectors in one launch, in place, one block for a member, on
 * matrix units. V and T go to shared memory; then each warp makes 8 or 16 columns of Q at a time
 * (common/panel/kept_panels.cuh).
 *
 * Method: xORGQR with blocks of 8. */
#include "common/panel/kept_panels.cuh"
#include "common/ptx/barrier.cuh"

namespace {
using namespace bqr;

/* Returns info. */
template <class T, int R>
__device__ int form_q(void *shared, T *a, int64_t ld, const T *tau, int m, int n, int k) {
  constexpr int width = panel_width * kept_panels<T, R>::K;
  const kept_panels<T, R> kept(shared, m, k);
  const bool finite = kept.take(a, ld, tau), packs = fragment<T, R, 1>::packs(a, ld, m);
  const int warps = num_warps(), groups = (n - 1) / width + 1;
  int warp = broadcast(warp_id(), 0);
#pragma unroll 1
  for (int i = 0; i < groups; i += warps) {
    const int group = groups - 1 - i - warp;
    if (group >= 0) kept.form(n, width * group, a, ld, packs);
    warp = warps - 1 - warp; /* those on the right take the most panels: each gets longer and shorter ones */
  }
  return finite ? 0 : BATCHQR_INFO_NONFINITE;
}

template <class T, int R, int REGISTERS>
__global__ void __maxnreg__(REGISTERS) orgqr_mma_kernel(const __grid_constant__ bqr_args args) {
  extern __shared__ __align__(16) unsigned char shared[];
  for (int64_t i = blockIdx.x; i < args.count; i += gridDim.x) {
    const member x = member_at<BATCHQR_ORGQR>(args, i);
    int info = x.ok ? 0 : BATCHQR_INFO_SIZES;
    if (x.ok && x.n > 0) {
      info = form_q<T, R>(shared, matrix_data<T>(args, args.a, x.id), matrix_ld(args.a, x.id),
                          x.k > 0 ? tau_data<T>(args, x.id) : nullptr, broadcast(x.m, 0), broadcast(x.n, 0),
                          x.k);
      block_sync();
    }
    if (thread_id() == 0) set_info(args, x.id, info);
  }
}

/* For kept_family. */
struct orgqr {
  static int rows(const bqr_problem *problem) { return problem->m; }
  static int lines(const bqr_problem *problem) { return problem->n; }
  template <class T, int R, int REGISTERS> static auto kernel(const bqr_problem *) {
    return orgqr_mma_kernel<T, R, REGISTERS>;
  }
};
using family = kept_family<orgqr>;
} // namespace

extern "C" const bqr_family bqr_family_orgqr_mma = {
    .name = "orgqr_mma",
    .op = BATCHQR_ORGQR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = kept_variants,
    .nvariants = family::num_variants,
    .launches = 1,
    .supports = family::supports,
    .prepare = family::prepare,
    .launch = family::launch,
    .prefers = family::prefers,
};
