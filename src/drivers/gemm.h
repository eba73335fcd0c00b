/* SPDX-License-Identifier: BSD-3-Clause */
/* The matrix products of large members, in the arithmetic that a compute mode permits: native (cuBLAS),
 * emulated single precision (split FP16) and double precision (Ozaki scheme II on INT8), or half. Emulated
 * products keep ||error|| small next to the norms of op(a)'s rows and b's columns, as native ones do. */
#ifndef BQR_SRC_DRIVERS_GEMM_H
#define BQR_SRC_DRIVERS_GEMM_H

#include "gemm/gemm.h"

/* The libraries' handles; owned by a plan. Enqueuing with it locks it: plans may be shared by threads. */
typedef struct bqr_gemm_engine bqr_gemm_engine;
batchqr_status bqr_gemm_engine_new(const bqr_device *device, bqr_gemm_engine **engine);
void bqr_gemm_engine_free(bqr_gemm_engine *engine);

/* c := alpha op(a) b + beta c; op(a) is m x k, b k x n, c m x n; column-major in device memory. alpha is 1 or
 * -1, beta 0 or 1. */
typedef struct bqr_gemm {
  batchqr_type type;
  batchqr_compute mode; /* AUTO: the fastest that keeps the working precision's bounds */
  bool adjoint_a;       /* op(a) = a^H, a then being k x m */
  int64_t m, n, k;
  int alpha, beta;
  const void *a, *b;
  void *c;
  int64_t lda, ldb, ldc;
  /* It may be given `done`, NULL or what is not 0 on the device where the product is not wanted any more. No
   * library's kernels heed that: where there is another arithmetic it takes the native one's place. */
  bool switched;
  const int *done;
  /* Products that are alike: so many, and elements from one's operands to the next one's. 0: a single one.
   * Arithmetic and sums are those of each of them among any number of others. */
  int count;
  int64_t stride_a, stride_b, stride_c;
  size_t room; /* bytes of workspace that it may take for each of `count` products, at least
                  BQR_GEMM_LEAST_ROOM; 0: what makes it fast */
  /* Tiled products of many columns leave some multiprocessors to others' kernels; or they consist of short
   * pieces, which lose little where others' kernels have some of the multiprocessors already. */
  bool yields, shares;
  bool sliced; /* tiled products of few results and long sums in single precision may be made in slices of k
                  side by side */
} bqr_gemm;
enum { BQR_GEMM_LEAST_ROOM = 1 << 16 };

/* Bytes that a product of up to these sizes needs beside its operands. Pure. */
size_t bqr_gemm_workspace(const bqr_device *device, const bqr_gemm *sizes);
/* Enqueues it; neither allocates nor synchronises. `workspace`: aligned to 256. */
batchqr_status bqr_gemm_enqueue(bqr_gemm_engine *engine, const bqr_gemm *gemm, void *workspace, size_t bytes,
                                batchqr_stream stream);

/* Whether products of up to these sizes may be others than native ones, with room enough. Pure. */
bool bqr_gemm_may_be_tiled(const bqr_device *device, const bqr_gemm *sizes);
/* What stands in for the native product where the device can do it; NULL: nothing is faster. Pure. */
const bqr_tiling *bqr_gemm_tiling(const bqr_device *device, const bqr_gemm *sizes);
/* A product in that arithmetic, whatever its sizes and mode but k > 0, and its workspace. */
size_t bqr_gemm_tiled_workspace(const bqr_tiling *tiling, const bqr_device *device, const bqr_gemm *sizes);
batchqr_status bqr_gemm_tiled(const bqr_tiling *tiling, const bqr_device *device, const bqr_gemm *gemm,
                              void *workspace, batchqr_stream stream);

#endif
