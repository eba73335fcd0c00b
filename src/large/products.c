/* SPDX-License-Identifier: BSD-3-Clause */
#include "products.h"
#include "batch.h"

/* Up to so many rows, what narrow products take is latency, and the kernels of wy.h are faster. */
enum { LOW = 32768 };

bqr_gemm bqr_product(const bqr_problem *problem, bool adjoint_a, int64_t m, int64_t n, int64_t k) {
  return (bqr_gemm){.type = problem->type,
                    .mode = problem->compute,
                    .adjoint_a = adjoint_a,
                    .m = m,
                    .n = n,
                    .k = k,
                    .alpha = 1};
}

batchqr_status bqr_lane_multiply(const bqr_lane *lane, bqr_gemm product, const void *a, int64_t lda,
                                 const void *b, int64_t ldb, void *c, int64_t ldc) {
  product.a = a;
  product.b = b;
  product.c = c;
  product.lda = lda;
  product.ldb = ldb;
  product.ldc = ldc;
  return bqr_gemm_enqueue(lane->engine, &product, lane->gemm, lane->gemm_bytes, lane->stream);
}

void bqr_lane_lay_out(const bqr_problem *problem, int width, int64_t cols, const bqr_gemm largest[2],
                      bqr_arena *arena, bqr_lane *lane) {
  const size_t size = bqr_type_bytes(problem->type);
  *lane = (bqr_lane){.w1 = bqr_arena_take(arena, cols, (size_t)width * size),
                     .w2 = bqr_arena_take(arena, cols, (size_t)width * size),
                     .sums = bqr_arena_take(arena, BQR_WY_SUMS, size)};
  for (int i = 0; i < 2; i++) {
    size_t bytes = bqr_gemm_workspace(&largest[i]);
    if (bytes > lane->gemm_bytes) lane->gemm_bytes = bytes;
  }
  lane->gemm = bqr_arena_take(arena, 1, lane->gemm_bytes);
}

bool bqr_product_is_narrow(const bqr_wy_product *p, bool adjoint) {
  return (adjoint || p->negative) && (p->rows <= LOW || p->done) && p->k <= BQR_WY_NARROW &&
         p->n <= BQR_WY_NARROW;
}

batchqr_status bqr_lane_project(const bqr_lane *lane, const bqr_problem *problem, bool adjoint,
                                bqr_wy_product p) {
  p.to = lane->w2;
  p.ldto = p.ldt;
  if (bqr_product_is_narrow(&p, adjoint)) return bqr_wy_multiply(problem->type, &p, lane->sums, lane->stream);
  batchqr_status status = bqr_lane_multiply(lane, bqr_product(problem, true, p.k, p.n, p.rows), p.v, p.ldv,
                                            p.c, p.ldc, lane->w1, p.ldt);
  if (status) return status;
  bqr_gemm last = bqr_product(problem, adjoint, p.k, p.n, p.k);
  last.alpha = p.negative ? -1 : 1;
  return bqr_lane_multiply(lane, last, p.t, p.ldt, lane->w1, p.ldt, lane->w2, p.ldt);
}

batchqr_status bqr_lane_apply(const bqr_lane *lane, const bqr_problem *problem, bool adjoint,
                              const bqr_wy_product *p, void *c) {
  if (p->n <= 0) return BATCHQR_SUCCESS;
  batchqr_status status = bqr_lane_project(lane, problem, adjoint, *p);
  if (status) return status;
  if (bqr_product_is_narrow(p, adjoint)) {
    const bqr_wy_update u = {p->rows, p->k, p->n, p->v, lane->w2, c, p->ldv, p->ldt, p->ldc, p->done};
    return bqr_wy_subtract(problem->type, &u, lane->stream);
  }
  bqr_gemm last = bqr_product(problem, false, p->rows, p->n, p->k);
  last.alpha = -1;
  last.beta = 1;
  return bqr_lane_multiply(lane, last, p->v, p->ldv, lane->w2, p->ldt, c, p->ldc);
}
