/* SPDX-License-Identifier: BSD-3-Clause */
/* All checks of what a caller passes. Their texts name the argument, the member and the value. */
#ifndef BQR_SRC_ARGUMENTS_H
#define BQR_SRC_ARGUMENTS_H

#include "error.h"
#include "plan.h"

/* How the caller called, which is what his arguments are called by. */
typedef enum bqr_caller {
  BQR_PLANNED,       /* operands.a, batch.a.ld */
  BQR_ONE_CALL,      /* a, batch.a.ld; side and trans are arguments */
  BQR_TYPED,         /* a, lda, stride_a */
  BQR_TYPED_POINTERS /* a_array, lda */
} bqr_caller;

/* The enums, which say how to read the rest. */
batchqr_status bqr_check_enums(const bqr_operation *operation, const batchqr_batch *batch, bqr_caller caller,
                               bqr_error *error);
/* What the compute mode must permit, of a normalized batch. */
batchqr_status bqr_check_mode(const batchqr_batch *batch, batchqr_compute compute, bqr_error *error);
/* All but the enums, of a normalized batch. */
batchqr_status bqr_check_batch(const bqr_operation *operation, const batchqr_batch *batch, bqr_caller caller,
                               bqr_error *error);
/* That arrays of sizes are where the batch says. */
batchqr_status bqr_check_array_memory(const bqr_operation *operation, const batchqr_batch *batch,
                                      const bqr_device *device, bqr_error *error);
batchqr_status bqr_check_operands(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                  bqr_caller caller, bqr_error *error);
/* alignment.c: whether the addresses of A and C are multiples of BQR_COLUMN_ALIGNMENT. */
bool bqr_addresses_aligned(const batchqr_operands *operands);
batchqr_status bqr_check_workspace(const struct batchqr_plan *plan, const void *workspace, size_t bytes,
                                   bqr_error *error);

/* What the caller calls an operand, or, with use NULL, info; the text lives in the struct. */
typedef struct bqr_name {
  char text[64];
} bqr_name;
bqr_name bqr_operand_name(const bqr_use *use, bqr_caller caller);

#endif
