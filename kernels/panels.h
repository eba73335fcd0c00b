/* SPDX-License-Identifier: BSD-3-Clause */
/* What surrounds the panels of a blocked factorization (see blocked.h): panels as batches of their own, and
 * columns brought into range before and back after. C interface for src/drivers. */
#ifndef BQR_KERNELS_PANELS_H
#define BQR_KERNELS_PANELS_H

#include "family.h"

#ifdef __CUDACC__
#define BQR_ON_BOTH __host__ __device__
#else
#define BQR_ON_BOTH
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The tail: the last panels of a member whose last row and column are in the same panel, left to one launch
 * of another family as a member of its own. A member has one, if at all, behind one panel at least. */
enum { BQR_TAIL_PANELS = 3 };

/* The columns before the tail of a member of m x n; n: it has none. That depends on nothing else, or results
 * would depend on neighbours. */
BQR_ON_BOTH static inline int bqr_before_tail(int m, int n, int width) {
  const int panels = (n - 1) / width + 1;
  return panels > BQR_TAIL_PANELS && (m - 1) / width + 1 == panels ? (panels - BQR_TAIL_PANELS) * width : n;
}

/* Arrays over steps and, within a step, over the entries of a launch: panel s of an entry has `width` columns
 * from s * width on and the rows from there on; entries that end before it have none. With a tail, it is what
 * follows the last step. */
typedef struct bqr_panels {
  void **a, **tau;
  int *m, *n, *ld;
} bqr_panels;

/* Most columns of all entries that blocks share. */
enum { BQR_SHARED_COLUMNS = 512 };

/* What is known of the columns of a launch's entries, for as many columns as the widest has. */
typedef struct bqr_columns {
  short *exponents; /* of the power of two that a column was multiplied by */
  int *nonfinite;   /* of an entry: BATCHQR_INFO_NONFINITE if it holds a NaN or an Inf */
  /* Of columns that blocks may share, their largest elements, and counters. */
  int shared; /* of each entry: none, or as many as the widest has */
  unsigned *magnitudes;
  int *arrived;
  const int *done; /* NULL, or what is not 0 on the device where bqr_columns_in() is to leave all as it is */
} bqr_columns;

/* Fills in the panels, and zeros in nonfinite, magnitudes, arrived and the first panel's exponents. */
batchqr_status bqr_panels_fill(const bqr_problem *problem, const bqr_args *args, int width, int steps,
                               bool tail, const bqr_panels *panels, const bqr_columns *columns,
                               batchqr_stream stream);
/* Brings the columns of every entry's A into the range of common/columns.cuh. Not needed where what comes
 * next does so when it first reads a column: the first panel's family and bqr_larfb_stream(). */
batchqr_status bqr_columns_in(const bqr_problem *problem, const bqr_args *args, const bqr_columns *columns,
                              batchqr_stream stream);
/* Takes that out of R and writes info. */
batchqr_status bqr_columns_out(const bqr_problem *problem, const bqr_args *args, const bqr_columns *columns,
                               batchqr_stream stream);

/* Loads these kernels; once for each plan. */
batchqr_status bqr_panels_prepare(batchqr_type type);

/* Kernels that fill, in and out enqueue together. */
enum { BQR_PANELS_LAUNCHES = 3 };

#ifdef __cplusplus
}
#endif
#endif
