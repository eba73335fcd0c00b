/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors in the compact WY form, in global memory: the kernels that src/large drives for members
 * that one block of threads does not hold. `problem` tells operation, type, side and sizes, `args` the
 * members, as in a launch of a family; nothing here allocates or synchronises.
 *
 * V is args->a below its diagonal, with ones on it (ORGQR, ORMQR and GEQRF alike), tau args->tau. A member's
 * reflectors past its last one count as H = I: a step that lies past a member's end leaves it alone. */
#ifndef BATCHQR_KERNELS_BLOCKED_H
#define BATCHQR_KERNELS_BLOCKED_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The widest block; widths are 8, 16 or 32. */
enum { BATCHQR_BLOCK_WIDTH = 32 };

/* t := T of the blocks of `width` reflectors that start at first, first + width, ..., `blocks` of them:
 * H(j) H(j+1) ... = I - V T V^H. T is width x width, column-major, upper triangular with zeros below, that of
 * entry i and block b at t + (i * blocks + b) * width^2 elements. */
batchqr_status batchqr_larft(const batchqr_problem *problem, const batchqr_args *args, int first, int width,
                             int blocks, void *t, batchqr_stream stream);

/* Applies one such block, I - V T V^H or with `adjoint` I - V T^H V^H, whose T is entry i's at
 * t + i * stride_t elements:
 * GEQRF, to columns from .. to of A, rows from `first` on; ORMQR, to columns from .. to of C from the left,
 * or to its rows from .. to from the right. */
batchqr_status batchqr_larfb(const batchqr_problem *problem, const batchqr_args *args, int first, int width,
                             const void *t, int64_t stride_t, bool adjoint, int from, int to,
                             batchqr_stream stream);

/* Load them; once for each plan. */
batchqr_status batchqr_larft_prepare(batchqr_type type);
batchqr_status batchqr_larfb_prepare(batchqr_type type);
static inline batchqr_status batchqr_blocked_prepare(batchqr_type type) {
  batchqr_status status = batchqr_larft_prepare(type);
  return status ? status : batchqr_larfb_prepare(type);
}

#ifdef __cplusplus
}
#endif
#endif
