/* SPDX-License-Identifier: BSD-3-Clause */
/* The products with wide blocks of reflectors, I - V T V^H, whose V and T are matrices: the engine's, see
 * gemm.h, in the arithmetic that the compute mode permits, or, where they are small, those of wy.h. */
#ifndef BQR_SRC_LARGE_PRODUCTS_H
#define BQR_SRC_LARGE_PRODUCTS_H

#include "arena.h"
#include "pair.h"
#include "wy/wy.h"

/* What a product of the problem's type and mode is made of; alpha is 1, beta 0. */
bqr_gemm bqr_product(const bqr_problem *problem, bool adjoint_a, int64_t m, int64_t n, int64_t k);
batchqr_status bqr_lane_multiply(const bqr_lane *lane, bqr_gemm product, const void *a, int64_t lda,
                                 const void *b, int64_t ldb, void *c, int64_t ldc);

/* Takes the lane's memory: w1 and w2 for width x cols elements each, and what products of up to the sizes of
 * the two need. */
void bqr_lane_lay_out(const bqr_problem *problem, int width, int64_t cols, const bqr_gemm largest[2],
                      bqr_arena *arena, bqr_lane *lane);

/* The lane's w2 := op(T) V^H C with op(T) = T, or T^H for `adjoint`, or -T where p says so; w1 and w2 have
 * T's leading dimension. p.to and p.ldto are not read. */
batchqr_status bqr_lane_project(const bqr_lane *lane, const bqr_problem *problem, bool adjoint,
                                bqr_wy_product p);
/* Whether that is done by the kernels of wy.h, which are for T^H and -T. */
bool bqr_product_is_narrow(const bqr_wy_product *p, bool adjoint);
/* C := (I - V op(T) V^H) C; p.c is written. */
batchqr_status bqr_lane_apply(const bqr_lane *lane, const bqr_problem *problem, bool adjoint,
                              const bqr_wy_product *p, void *c);

#endif
