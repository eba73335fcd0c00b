/* SPDX-License-Identifier: BSD-3-Clause */
/* What a batch means: the shapes of an operation's operands, member by member. Shared by checks and planner.
 */
#ifndef BQR_SRC_BATCH_H
#define BQR_SRC_BATCH_H

#include "operations.h"

/* How a library sums may depend on how its operands are aligned, and a member's result must not depend on its
 * place: what is not aligned to so many bytes is worked on in an aligned copy. */
enum { BQR_COLUMN_ALIGNMENT = 16 };

typedef struct bqr_dims {
  int m, n, k;
} bqr_dims;

typedef struct bqr_shape {
  int rows, cols;
} bqr_shape;

static inline int bqr_min(int a, int b) { return a < b ? a : b; }
static inline int bqr_max(int a, int b) { return a > b ? a : b; }

/* Bytes of an element, and of the real numbers that it is made of. */
size_t bqr_type_bytes(batchqr_type type);
size_t bqr_real_bytes(batchqr_type type);
/* Bytes of an element of an operand, and the alignment that a C compiler would give it. */
size_t bqr_kind_bytes(bqr_kind kind, batchqr_type type);
size_t bqr_kind_alignment(bqr_kind kind, batchqr_type type);

/* The batch with nothing in it but what the operation looks at, and zeros elsewhere, so that equal problems
 * are equal batches, byte for byte. Its enums must be valid. */
batchqr_batch bqr_batch_normalized(const bqr_operation *operation, const batchqr_batch *batch);

/* The batch's arrays over members: m_array, n_array, k_array, then the ld_arrays of the operation's matrices.
 * Returns how many there may be; NULL where there is none. */
typedef struct bqr_batch_array {
  const char *owner; /* "a" of a.ld_array; NULL: the batch itself */
  const char *field; /* "ld_array" */
  const int **at;
} bqr_batch_array;
enum { BQR_MOST_ARRAYS = 3 + BQR_MOST_USES };
int bqr_batch_arrays(const bqr_operation *operation, batchqr_batch *batch,
                     bqr_batch_array arrays[BQR_MOST_ARRAYS]);

/* How many different members the host sees: all of them with host sizes, else one that stands for all. */
int64_t bqr_visible_members(const batchqr_batch *batch);
/* Member i's sizes; those of the one that stands for all are the largest possible. */
bqr_dims bqr_member_sizes(const bqr_operation *operation, const batchqr_batch *batch, int64_t i);

/* How the operand at a place is stored. */
const batchqr_storage *bqr_storage_at(const batchqr_batch *batch, int place);
/* Its address. */
void *bqr_address_at(const batchqr_operands *operands, int place);
/* Whether some operand of the operation is an array of addresses. */
bool bqr_batch_has_pointers(const bqr_operation *operation, const batchqr_batch *batch);

/* Whether neighbours in a column are not neighbours in memory. */
bool bqr_by_strides(const batchqr_storage *x);
/* Whether an operand that is BQR_ANNOUNCED is. */
bool bqr_is_announced(const batchqr_storage *storage);
/* How a part of the spectrum is chosen, see family.h; 0: it is not. */
unsigned bqr_batch_range(const batchqr_batch *batch);
/* Whether the operation can leave A as it is. */
bool bqr_may_keep_a(const bqr_operation *operation);

/* The rows or columns that an extent stands for. */
int bqr_extent_of(bqr_extent extent, const batchqr_batch *batch, bqr_dims sizes);
/* The shape of an operand. */
bqr_shape bqr_shape_of(const bqr_use *use, const batchqr_batch *batch, bqr_dims sizes);

#endif
