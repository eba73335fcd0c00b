/* SPDX-License-Identifier: BSD-3-Clause */
/* All checks of what a caller passes. Their texts name the argument, the member and the value. */
#ifndef BQR_SRC_ARGUMENTS_H
#define BQR_SRC_ARGUMENTS_H

#include "error.h"
#include "plan.h"

/* What the caller calls his arguments. */
typedef struct bqr_names {
  const char *operand[BQR_NUM_OPERANDS];
  const char *info, *norms, *range;
  bool typed; /* a typed wrapper: m, lda, stride_a instead of batch.m, batch.a.ld, batch.a.stride */
} bqr_names;

/* The names of the planned tier. */
extern const bqr_names bqr_names_planned;

/* The enums, which say how to read the rest. */
batchqr_status bqr_check_enums(batchqr_op op, const batchqr_batch *batch, const bqr_names *names,
                               bqr_error *error);
/* All but the enums. */
batchqr_status bqr_check_batch(batchqr_op op, const batchqr_batch *batch, const bqr_names *names,
                               bqr_error *error);
batchqr_status bqr_check_operands(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                  const bqr_names *names, bqr_error *error);
batchqr_status bqr_check_workspace(const struct batchqr_plan *plan, const void *workspace, size_t bytes,
                                   bqr_error *error);

#endif
