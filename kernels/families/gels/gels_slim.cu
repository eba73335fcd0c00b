/* SPDX-License-Identifier: BSD-3-Clause */
/* gels_slim: least squares of tall members of up to 8 columns, those of B counted too, in one go: Q^H is
 * applied to B where A is factored, and R solved with by the threads that hold it. Columns are brought into
 * range one by one, and X back from there. See common/panel/slim.cuh. */
#include "common/panel/slim_family.cuh"

namespace {
using namespace bqr;

struct gels {
  static constexpr int op = BATCHQR_GELS;
  static constexpr bool solves = true;
  template <class T, class Q>
  static __device__ __forceinline__ int run(Q &qr, const bqr_args &args, const member &x, bool) {
    const bool any_a = x.m > 0 && x.n > 0, any_b = x.m > 0 && x.k > 0;
    qr.load(any_a ? matrix_data<T>(args, args.a, x.id) : nullptr, args.a.row_stride,
            any_a ? matrix_ld(args.a, x.id) : 0);
    T *const b = any_b ? matrix_data<T>(args, args.c, x.id) : nullptr;
    const int64_t ld = any_b ? matrix_ld(args.c, x.id) : 0;
    qr.load_right(b, ld);
    const int info = qr.factor(false);
    if (args.norms.data)
      qr.store_norms(x.k > 0 ? vector_data<real_t<T>>(args.norms, x.id) : nullptr, info == 0);
    qr.solve(b, ld);
    return info;
  }
};
using family = slim_family<gels>;

bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  bqr_problem columns = *problem; /* with those of B */
  if (!problem->tall || problem->trans != BATCHQR_NO_TRANS || problem->k > variant->cols) return false;
  columns.n += problem->k;
  return family::supports(&columns, variant, device);
}

bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  bqr_problem columns = *problem;
  columns.n += problem->k;
  return family::prefers(&columns, variant, device);
}
} // namespace

extern "C" const bqr_family bqr_family_gels_slim = {
    .name = "gels_slim",
    .op = BATCHQR_GELS,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = slim_variants,
    .nvariants = slim_num_variants,
    .launches = 1,
    .supports = supports,
    .prepare = family::prepare,
    .launch = family::launch,
    .prefers = prefers,
    .keeps_a = true,
};
