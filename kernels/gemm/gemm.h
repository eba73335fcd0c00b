/* SPDX-License-Identifier: BSD-3-Clause */
/* Large products on matrix units of less than the working precision: operands are converted to tiles (see
 * gemm/multiply.cuh), then multiplied. For compute capability 9.0. Sizes, leading dimensions and k count
 * elements of the type; nothing here allocates or synchronises. */
#ifndef BQR_KERNELS_GEMM_GEMM_H
#define BQR_KERNELS_GEMM_GEMM_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The places in c := alpha op(a) b + beta c. An operand's rows are those of op(a), and the columns of b. */
typedef enum bqr_gemm_operand {
  BQR_GEMM_A,         /* a is rows x k */
  BQR_GEMM_A_ADJOINT, /* a is k x rows, op(a) = a^H */
  BQR_GEMM_B          /* b is k x rows */
} bqr_gemm_operand;

/* An operand in memory; of a batch, of members that are `stride` elements apart. */
typedef struct bqr_tiled_source {
  const void *x;
  int64_t ld, stride;
  int count;       /* at least 1 */
  const int *done; /* NULL, or what is not 0 on the device where there is nothing to do */
} bqr_tiled_source;

typedef struct bqr_tiled_product {
  batchqr_type type;
  int64_t m, n, k;
  int alpha, beta;
  const void *a, *b; /* converted */
  void *c;
  int64_t ldc, stride_c;
  int count;        /* of products, as of sources: at least 1 */
  void *workspace;  /* product_bytes(), aligned to 256 */
  const int *done;  /* NULL, or what is not 0 on the device where there is nothing to do */
  bool many_blocks; /* several to a multiprocessor, one after another, each for a part of the tiles */
} bqr_tiled_product;

/* One kind of arithmetic. */
typedef struct bqr_tiling {
  unsigned types; /* sum of 1 << batchqr_type */
  int64_t most_k; /* of one product, in reals */
  bool batches;   /* counts may be more than 1 */
  /* Loads the kernels; once for each plan. */
  batchqr_status (*prepare)(void);
  /* What an operand takes; those of a batch, as many times as much. */
  size_t (*operand_bytes)(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k);
  size_t (*product_bytes)(batchqr_type type, int64_t m, int64_t n);
  batchqr_status (*convert)(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k,
                            const bqr_tiled_source *from, void *tiles, batchqr_stream stream);
  batchqr_status (*multiply)(const bqr_tiled_product *product, const bqr_device *device,
                             batchqr_stream stream);
  /* c := beta c + the sum of the results of such a batch, one behind another; NULL without batches. */
  batchqr_status (*add)(const bqr_tiled_product *batch, int beta, void *c, int64_t ldc,
                        batchqr_stream stream);
} bqr_tiling;

/* FP16 products with FP32 sums: of entries rounded to FP16, and of entries split into two FP16 numbers. */
extern const bqr_tiling bqr_tiling_half, bqr_tiling_split;
/* INT8 products modulo coprime numbers: Ozaki, Uchino and Imamura, Ozaki Scheme II, 2025. */
extern const bqr_tiling bqr_tiling_modular;

#ifdef __cplusplus
}
#endif
#endif
