/* SPDX-License-Identifier: BSD-3-Clause */
/* What orgqr_blocked and ormqr_blocked have in common: Q in blocks of 32 reflectors, of all members side by
 * side. */
#ifndef BQR_SRC_DRIVERS_BLOCKED_Q_H
#define BQR_SRC_DRIVERS_BLOCKED_Q_H

#include "wy/wy.h"

enum { BQR_T_ELEMENTS = BQR_BLOCK_WIDTH * BQR_BLOCK_WIDTH };

/* stream: the most rows of members whose columns stay on the chip from the first block of reflectors that
 * reaches them to the last; 0: they need not. */
static const bqr_variant bqr_blocked_q_variants[] = {{.name = "stream256", .stream = 256},
                                                     {.name = "stream1024", .stream = 1024},
                                                     {.name = "width32", .width = BQR_BLOCK_WIDTH}};
enum { BQR_BLOCKED_Q_VARIANTS = sizeof bqr_blocked_q_variants / sizeof bqr_blocked_q_variants[0] };

/* Whether it is one whose columns stay on the chip. */
static inline bool bqr_keeps_columns(const bqr_variant *variant) { return variant->stream > 0; }

static inline int bqr_reflector_blocks(const bqr_problem *problem) {
  return (problem->k + BQR_BLOCK_WIDTH - 1) / BQR_BLOCK_WIDTH;
}

/* See bqr_family.open and close. */
static inline batchqr_status bqr_blocked_q_open(const bqr_problem *problem, const bqr_variant *variant,
                                                const bqr_device *device, void **state) {
  bqr_clusters *clusters;
  const batchqr_status status = bqr_clusters_new(problem, device, variant->stream, &clusters);
  *state = clusters;
  return status;
}

static inline void bqr_blocked_q_close(void *state) { bqr_clusters_free(state); }

#endif
