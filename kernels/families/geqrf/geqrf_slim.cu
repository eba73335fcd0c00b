/* SPDX-License-Identifier: BSD-3-Clause */
/* geqrf_slim: factors members of up to 8 columns and as many rows as the registers of a cluster hold. See
 * common/panel/slim.cuh. */
#include "common/panel/slim_family.cuh"

namespace {
using namespace bqr;

struct geqrf {
  static constexpr int op = BATCHQR_GEQRF;
  static constexpr bool solves = false;
  template <class T, class Q>
  static __device__ __forceinline__ int run(Q &qr, const bqr_args &args, const member &x, bool positive) {
    T *const a = x.m > 0 ? matrix_data<T>(args, args.a, x.id) : nullptr;
    const int64_t ld = x.m > 0 ? matrix_ld(args.a, x.id) : 0;
    qr.load(a, 1, ld);
    const int info = qr.factor(positive);
    qr.store(a, 1, ld, x.n);
    if (x.m > 0) qr.store_tau(tau_data<T>(args, x.id));
    return info;
  }
};
using family = slim_family<geqrf>;
} // namespace

extern "C" const bqr_family bqr_family_geqrf_slim = {
    .name = "geqrf_slim",
    .op = BATCHQR_GEQRF,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = slim_variants,
    .nvariants = slim_num_variants,
    .launches = 1,
    .supports = family::supports,
    .prepare = family::prepare,
    .launch = family::launch,
    .prefers = family::prefers,
};
