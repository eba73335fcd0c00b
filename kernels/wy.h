/* SPDX-License-Identifier: BSD-3-Clause */
/* V and T of wide blocks of reflectors, as operands of matrix products. C interface for src/large. */
#ifndef BATCHQR_KERNELS_WY_H
#define BATCHQR_KERNELS_WY_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A panel of `width` reflectors at row and column `at` of a block of `rows` rows and `cols` columns. */
typedef struct batchqr_wy_panel {
  int rows, cols, at, width;
  const void *a; /* the block in A: vectors below its diagonal */
  int64_t lda;
  const void *t_panel; /* the panel's T, from batchqr_larft */
  int t_panel_ld;
  void *v, *t; /* the block's: rows x cols, and cols x cols */
  int64_t ldv, ldt;
} batchqr_wy_panel;

/* Writes the panel's columns of V, with their ones and zeros, and of T what is not above its own triangle. */
batchqr_status batchqr_wy_store(batchqr_type type, const batchqr_wy_panel *panel, batchqr_stream stream);

/* to := from, rows x cols. */
batchqr_status batchqr_wy_copy(batchqr_type type, int rows, int cols, const void *from, int64_t ld_from,
                               void *to, int64_t ld_to, batchqr_stream stream);
batchqr_status batchqr_wy_prepare(batchqr_type type);

#ifdef __cplusplus
}
#endif
#endif
