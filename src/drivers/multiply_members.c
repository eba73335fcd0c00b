/* SPDX-License-Identifier: BSD-3-Clause */
/* MULTIPLY for any members, in one launch: see gemm/member_gemm.h. */
#include "gemm/member_gemm.h"

static const bqr_variant variants[] = {{.name = "rows64.cols32", .rows = 64, .cols = 32}};

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant, (void)device;
  return !problem->subtracts;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant, (void)device;
  return bqr_member_gemm_prepare(problem->type);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)device;
  return bqr_member_gemm(problem, args, stream);
}

const bqr_family bqr_family_multiply_members = {
    .name = "multiply_members",
    .op = BQR_MULTIPLY,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .variants = variants,
    .nvariants = 1,
    .launches = 1,
    .supports = supports,
    .prepare = prepare,
    .launch = launch,
};
