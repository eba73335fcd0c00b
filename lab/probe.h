/* SPDX-License-Identifier: BSD-3-Clause */
/* Test ratios of members that are too large for an exact check, estimated with random vectors: one pass over
 * the data for each product. */
#ifndef BQR_LAB_PROBE_H
#define BQR_LAB_PROBE_H

#include "memory.h"
#include "routines.h"

/* A dense operand of a member: in the space's memory, the host's, or a stretch of the random sequence. */
typedef struct lab_source {
  const void *data; /* in the space; NULL: it is not there */
  const void *host; /* NULL: the sequence */
  int64_t first;    /* where in the sequence */
  int rows, cols;
} lab_source;

/* A member before and after an operation, by place; m >= n for ORGQR and ORMQR, which is from the left, and
 * conjugate-transposed. */
typedef struct lab_probed {
  memory_space *space;
  batchqr_type type;
  int m, n;
  bool strict_r; /* what lies below R's diagonal must be zero */
  lab_source before[BQR_NUM_OPERANDS], now[BQR_NUM_OPERANDS];
} lab_probed;

lab_ratios probe_geqrf(const lab_probed *x);
lab_ratios probe_orgqr(const lab_probed *x);
lab_ratios probe_ormqr(const lab_probed *x);
lab_ratios probe_qr(const lab_probed *x);
lab_ratios probe_geqr_r(const lab_probed *x);

#endif
