/* SPDX-License-Identifier: BSD-3-Clause */
/* V and T of wide blocks of reflectors, as operands of matrix products. C interface for src/drivers. */
#ifndef BQR_KERNELS_WY_H
#define BQR_KERNELS_WY_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A panel of `width` reflectors at row and column `at` of a block of `rows` rows and `cols` columns. */
typedef struct bqr_wy_panel {
  int rows, cols, at, width;
  void *a; /* the block in A: vectors below its diagonal */
  int64_t lda;
  void *tau;       /* the panel's */
  const void *top; /* NULL, or what geqrf_tsqr left of the panel, see tsqr.cu */
  void *r, *t;     /* the block's, cols x cols both */
  int64_t ldr, ldt;
  void *sums;      /* BQR_WY_SUMS elements */
  int *counters;   /* BQR_WY_COUNTERS, see bqr_wy_begin() */
  const int *done; /* NULL, or what is not 0 on the device where bqr_wy_unfold() is to do nothing */
} bqr_wy_panel;
enum { BQR_WY_BLOCKS = 256, BQR_WY_SUMS = 128 * 64 * 64, BQR_WY_COUNTERS = 32 };

/* Before the first panel. */
batchqr_status bqr_wy_begin(int *counters, batchqr_stream stream);
/* Makes the panel's columns of A those of V, with their ones and zeros, from the block's first row on; R's go
 * to r. Writes of T what is not above the panel's triangle. bqr_wy_unfold() is for panels with a top. */
batchqr_status bqr_wy_store(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream);
batchqr_status bqr_wy_unfold(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream);
/* Factors the panel, too, in the same launch: of 32 or 64 columns, and at most so many rows below the block's
 * row `at`; at least as many as columns. 0: none. */
int bqr_wy_factor_rows(batchqr_type type, int width, const bqr_device *device);
batchqr_status bqr_wy_factor(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream);
batchqr_status bqr_wy_factor_prepare(batchqr_type type, const bqr_device *device);
/* Panels of BQR_WY_TALL columns of real types, of any number of rows, as bqr_wy_factor() makes them,
 * if their columns are far from dependent: then *bqr_wy_tall_done() is 1 and the two numbers at `rows` 0,
 * all on the device; else nothing is done. Of the columns from `stored` on R stays in A. */
enum { BQR_WY_TALL = 64 };
bool bqr_wy_tall_possible(batchqr_type type, const bqr_device *device);
size_t bqr_wy_tall_bytes(void); /* of memory */
const int *bqr_wy_tall_done(const void *memory);
batchqr_status bqr_wy_tall(batchqr_type type, const bqr_wy_panel *panel, int stored, void *memory, int *rows,
                           batchqr_stream stream);
batchqr_status bqr_wy_tall_prepare(batchqr_type type);
/* Puts R back. r: side by side, for each block of `width` columns of A, the rows of R from the block's on. */
batchqr_status bqr_wy_restore(batchqr_type type, int width, int cols, const void *r, int64_t ldr, void *a,
                              int64_t lda, batchqr_stream stream);

/* to := from, rows x cols. */
batchqr_status bqr_wy_copy(batchqr_type type, int rows, int cols, const void *from, int64_t ld_from, void *to,
                           int64_t ld_to, batchqr_stream stream);
batchqr_status bqr_wy_prepare(batchqr_type type);

/* A wide block of reflectors as LAPACK leaves them. */
typedef struct bqr_wy_block {
  int rows, cols, above; /* of V; rows of A above the block's first */
  void *a;               /* the first element of the block's columns in A */
  int64_t lda;
  const void *tau;
  void *v, *t; /* where V goes, with its diagonal and zeros, and T */
  int64_t ldv, ldt;
  const void *gram; /* V^H V of that V, with T's leading dimension */
  int *info;        /* NULL, or where BATCHQR_INFO_NONFINITE goes if V or tau is not finite */
  bool unit;        /* the columns of A become those of the unit matrix */
} bqr_wy_block;
enum { BQR_WY_WIDEST = 1024 }; /* columns */

/* Writes V. Columns of xLARFGP, which may be as long as 8 / eps, are divided by a power of two near their
 * length, with which T makes up for it: products may be exact only next to the lengths of V's rows. */
batchqr_status bqr_wy_take(batchqr_type type, const bqr_wy_block *block, batchqr_stream stream);
/* Writes T, zeros below its diagonal. */
batchqr_status bqr_wy_form(batchqr_type type, const bqr_wy_block *block, batchqr_stream stream);
/* Kernels of that. */
static inline int bqr_wy_form_launches(int cols) {
  int launches = 1;
  for (int half = 32; half < cols; half *= 2) launches++;
  return launches;
}
/* to := from^H; from is rows x cols. */
batchqr_status bqr_wy_adjoint(batchqr_type type, int rows, int cols, const void *from, int64_t ld_from,
                              void *to, int64_t ld_to, batchqr_stream stream);
batchqr_status bqr_wy_form_prepare(batchqr_type type);

/* Narrow products: k and n are at most this. Columns of V and C are aligned to 16 bytes; V is rows x k, C
 * rows x n, T k x k and upper triangular. */
enum { BQR_WY_NARROW = 128 };

/* to := T^H V^H C, or -T V^H C. sums: BQR_WY_SUMS elements. */
typedef struct bqr_wy_product {
  int rows, k, n;
  bool negative; /* -T */
  const void *v, *c, *t;
  void *to;
  int64_t ldv, ldc, ldt, ldto;
  const int *done; /* as of a panel */
} bqr_wy_product;
batchqr_status bqr_wy_multiply(batchqr_type type, const bqr_wy_product *product, void *sums,
                               batchqr_stream stream);

/* to := X T; X: m x n, T: n x n, all with leading dimension ld. done: as of a panel. */
batchqr_status bqr_wy_unite(batchqr_type type, int m, int n, const void *x, const void *t, void *to,
                            int64_t ld, const int *done, batchqr_stream stream);

/* C := C - V W; W: k x n. */
typedef struct bqr_wy_update {
  int rows, k, n;
  const void *v, *w;
  void *c;
  int64_t ldv, ldw, ldc;
  const int *done; /* as of a panel */
} bqr_wy_update;
batchqr_status bqr_wy_subtract(batchqr_type type, const bqr_wy_update *update, batchqr_stream stream);

batchqr_status bqr_wy_narrow_prepare(batchqr_type type);

#ifdef __cplusplus
}
#endif
#endif
