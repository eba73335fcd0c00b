/* SPDX-License-Identifier: BSD-3-Clause */
/* MULTIPLY, see family.h: products of members that have no size in common with any library's batch, and the
 * scaling that those by a library need. */
#ifndef BQR_KERNELS_GEMM_MEMBER_GEMM_H
#define BQR_KERNELS_GEMM_MEMBER_GEMM_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Loads the kernels; once for each plan. */
batchqr_status bqr_member_gemm_prepare(batchqr_type type);
/* All of MULTIPLY, for members of one size. A member's result depends on its sizes and entries alone. */
batchqr_status bqr_member_gemm(const bqr_problem *problem, const bqr_args *args, batchqr_stream stream);
/* r := scale r; with `back`, r := r / scale. */
batchqr_status bqr_member_gemm_scale(const bqr_problem *problem, const bqr_args *args, bool back,
                                     batchqr_stream stream);

#ifdef __cplusplus
}
#endif
#endif
