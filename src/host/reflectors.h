/* SPDX-License-Identifier: BSD-3-Clause */
/* Blocks of reflectors, and the lines that they are applied to: columns from the left, rows from the right.
 * All is cut up by the member's sizes alone. */
#ifndef BQR_SRC_HOST_REFLECTORS_H
#define BQR_SRC_HOST_REFLECTORS_H

#include "host/member.h"

/* Most reflectors that are applied together; lines of a piece. */
enum { HOST_MOST_BLOCK = 64, HOST_LINES = 256 };

/* Reflectors that are applied together, of k. */
static inline int host_block(int k) { return k < 512 ? 32 : HOST_MOST_BLOCK; }

/* Few lines, next to few short reflectors, are done sooner by xORMQR than by blocks. */
enum { HOST_FEW_LINES = 16, HOST_SMALL = 1 << 15 };
static inline bool host_is_few(int rows, int k, int lines) {
  return lines <= HOST_FEW_LINES && (int64_t)rows * k <= HOST_SMALL;
}

/* Q = H_1 ... H_k of that many rows; block b's factor T is block x block elements at t + b * block * block.
 */
typedef struct host_reflectors {
  batchqr_type type;
  int rows, k, ldv;
  const void *v, *tau;
  void *t;
} host_reflectors;

/* Bytes of t for up to k reflectors, and of work for a piece of up to so many lines; SIZE_MAX if beyond
 * counting. */
size_t bqr_host_factors_bytes(batchqr_type type, int k);
size_t bqr_host_piece_bytes(batchqr_type type, int k, int lines);

/* Sets t. */
void bqr_host_form_factors(const host_launch *launch, const host_reflectors *q);

/* One block from the left or right, to no more than HOST_LINES lines of C's rows (columns) from the block's
 * first on. */
void bqr_host_apply_block(const host_reflectors *q, int block, batchqr_side side, bool adjoint, int lines,
                          void *c, int ldc, void *work);
/* C := op(Q) C or C op(Q) for no more than HOST_LINES lines. */
void bqr_host_apply(const host_reflectors *q, batchqr_side side, bool adjoint, int lines, void *c, int ldc,
                    void *work);

#endif
