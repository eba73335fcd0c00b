/* SPDX-License-Identifier: BSD-3-Clause */
/* qr_slim: thin Q and R of members of up to 8 columns in one go: A is read, R and Q are written. geqr_r_slim:
 * R alone, beside A or in its place. See common/panel/slim.cuh. */
#include "common/panel/slim_family.cuh"

namespace {
using namespace bqr;

template <bool WITH_Q> struct explicit_qr {
  static constexpr int op = WITH_Q ? BATCHQR_QR : BATCHQR_GEQR_R;
  static constexpr bool solves = false;
  template <class T, class Q>
  static __device__ __forceinline__ int run(Q &qr, const bqr_args &args, const member &x, bool positive) {
    const bool any = x.m > 0;
    const T *const a = any ? matrix_data<T>(args, args.a, x.id) : nullptr;
    const int64_t ld = any ? matrix_ld(args.a, x.id) : 0;
    qr.load(a, args.a.row_stride, ld);
    const int info = qr.factor(positive);
    T *const r = any ? matrix_data<T>(args, args.r, x.id) : nullptr;
    const int64_t ld_r = any ? matrix_ld(args.r, x.id) : 0;
    if (!WITH_Q && r == a)
      qr.store_r_in_place(r, args.r.row_stride, ld_r);
    else
      qr.store_r(r, args.r.row_stride, ld_r);
    if constexpr (WITH_Q) {
      qr.form_q();
      T *const q = any ? matrix_data<T>(args, args.c, x.id) : nullptr;
      qr.store(q, args.c.row_stride, any ? matrix_ld(args.c, x.id) : 0, least(x.m, x.n));
    }
    return info;
  }
};
using with_q = slim_family<explicit_qr<true>>;
using r_alone = slim_family<explicit_qr<false>>;
} // namespace

extern "C" const bqr_family bqr_family_qr_slim = {
    .name = "qr_slim",
    .op = BATCHQR_QR,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = slim_variants,
    .nvariants = slim_num_variants,
    .launches = 1,
    .supports = with_q::supports,
    .prepare = with_q::prepare,
    .launch = with_q::launch,
    .prefers = with_q::prefers,
    .keeps_a = true,
};

extern "C" const bqr_family bqr_family_geqr_r_slim = {
    .name = "geqr_r_slim",
    .op = BATCHQR_GEQR_R,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = slim_variants,
    .nvariants = slim_num_variants,
    .launches = 1,
    .supports = r_alone::supports,
    .prepare = r_alone::prepare,
    .launch = r_alone::launch,
    .prefers = r_alone::prefers,
    .keeps_a = true,
};
