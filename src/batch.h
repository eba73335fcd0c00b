/* SPDX-License-Identifier: BSD-3-Clause */
/* What a batch means: the shapes of its operands, member by member. Shared by checks and planner. */
#ifndef BQR_SRC_BATCH_H
#define BQR_SRC_BATCH_H

#include "family.h"

/* The matrix operands, then tau. */
enum { BQR_A, BQR_C, BQR_R, BQR_NUM_MATRICES, BQR_TAU = BQR_NUM_MATRICES, BQR_NUM_OPERANDS };

typedef struct bqr_sizes {
  int m, n, k;
} bqr_sizes;

typedef struct bqr_shape {
  int rows, cols;
} bqr_shape;

static inline int bqr_min(int a, int b) { return a < b ? a : b; }
static inline int bqr_max(int a, int b) { return a > b ? a : b; }

/* Bytes of an element, and of the real numbers that it is made of. */
size_t bqr_type_bytes(batchqr_type type);
size_t bqr_real_bytes(batchqr_type type);

bool bqr_op_uses(batchqr_op op, int operand);
bool bqr_op_writes(batchqr_op op, int operand);
/* Whether k is an argument of the operation. */
bool bqr_op_has_k(batchqr_op op);

/* The batch with nothing in it but what the operation looks at, so that equal problems are equal batches.
 * Its enums must be valid. */
batchqr_batch bqr_batch_normalized(batchqr_op op, const batchqr_batch *batch);

/* How many different members the host sees: all of them with host sizes, else one that stands for all. */
int64_t bqr_visible_members(const batchqr_batch *batch);
/* Member i's sizes; those of the one that stands for all are the largest possible. */
bqr_sizes bqr_member_sizes(batchqr_op op, const batchqr_batch *batch, int64_t i);

const batchqr_storage *bqr_batch_storage(const batchqr_batch *batch, int matrix);
/* tau is a column of as many rows as it has elements. */
bqr_shape bqr_operand_shape(batchqr_op op, const batchqr_batch *batch, int operand, bqr_sizes sizes);

/* The operand's address: operands->a for BQR_A and so on. */
const void *bqr_operand(const batchqr_operands *operands, int operand);

#endif
