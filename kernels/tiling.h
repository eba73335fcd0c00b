/* SPDX-License-Identifier: BSD-3-Clause */
/* Large products on matrix units of less than the working precision: operands are converted to tiles (see
 * common/tiles.cuh), then multiplied. For compute capability 9.0. Sizes, leading dimensions and k count
 * elements of the type; nothing here allocates or synchronises. */
#ifndef BATCHQR_KERNELS_TILING_H
#define BATCHQR_KERNELS_TILING_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The places in c := alpha op(a) b + beta c. An operand's rows are those of op(a), and the columns of b. */
typedef enum batchqr_operand {
  BATCHQR_OPERAND_A,         /* a is rows x k */
  BATCHQR_OPERAND_A_ADJOINT, /* a is k x rows, op(a) = a^H */
  BATCHQR_OPERAND_B          /* b is k x rows */
} batchqr_operand;

typedef struct batchqr_tiled_product {
  batchqr_type type;
  int64_t m, n, k;
  int alpha, beta;
  const void *a, *b; /* converted */
  void *c;
  int64_t ldc;
  void *workspace; /* product_bytes(), aligned to 256 */
} batchqr_tiled_product;

/* One kind of arithmetic. */
typedef struct batchqr_tiling {
  unsigned types; /* sum of 1 << batchqr_type */
  int64_t most_k; /* of one product, in reals */
  /* Loads the kernels; once for each plan. */
  batchqr_status (*prepare)(void);
  size_t (*operand_bytes)(batchqr_type type, batchqr_operand operand, int64_t rows, int64_t k);
  size_t (*product_bytes)(batchqr_type type, int64_t m, int64_t n);
  batchqr_status (*convert)(batchqr_type type, batchqr_operand operand, int64_t rows, int64_t k,
                            const void *x, int64_t ld, void *tiles, batchqr_stream stream);
  batchqr_status (*multiply)(const batchqr_tiled_product *product, const batchqr_device *device,
                             batchqr_stream stream);
} batchqr_tiling;

/* FP16 products with FP32 sums: of entries rounded to FP16, and of entries split into two FP16 numbers. */
extern const batchqr_tiling batchqr_tiling_half, batchqr_tiling_split;
/* INT8 products modulo coprime numbers: Ozaki, Uchino and Imamura, Ozaki Scheme II, 2025. */
extern const batchqr_tiling batchqr_tiling_modular;

#ifdef __cplusplus
}
#endif
#endif
