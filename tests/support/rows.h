/* SPDX-License-Identifier: BSD-3-Clause */
/* A call of any operation on members of any sizes, with the operands that its row describes. Inputs are
 * filled on the host; rows_run() brings all operands to the backend, executes and brings them back, and
 * checks that nothing was written where nothing is to be written. */
#ifndef BQR_TESTS_ROWS_H
#define BQR_TESTS_ROWS_H

#include "guard.h"
#include "operations.h"

/* One operand: where members begin, in elements, and their leading dimensions. */
typedef struct rows_operand {
  bool wanted;
  guard data;
  int64_t *at;
  int *ld;
} rows_operand;

typedef struct rows_call {
  const bqr_operation *operation;
  batchqr_batch batch; /* sizes, kind of sizes, options: to be set by the caller before rows_run() */
  batchqr_layout layout;
  int *m, *n, *k; /* `count` each */
  rows_operand operands[BQR_NUM_OPERANDS];
  int *info;
} rows_call;

/* Members of m[i] x n[i] with k[i]; all of one size where kind is uniform. Places in `unwanted`, ended by
 * BQR_NO_OPERAND, are left out; NULL: none. */
rows_call rows_new(int op, batchqr_type type, batchqr_sizes kind, batchqr_layout layout, int64_t count,
                   const int *m, const int *n, const int *k, const int *unwanted);
/* The same of a batch with type, sizes, count and a range. */
rows_call rows_new_range(const batchqr_batch *batch, int op, batchqr_layout layout, const int *m,
                         const int *n, const int *k, const int *unwanted);
void rows_free(rows_call *call);

/* A member's part of an operand, on the host; and what it was before the call. */
void *rows_at(const rows_call *call, int place, int64_t member);
const void *rows_before(const rows_call *call, int place, int64_t member);
int rows_ld(const rows_call *call, int place, int64_t member);

/* The status of the plan's creation, if that failed; all else must succeed. */
batchqr_status rows_run(rows_call *call, batchqr_handle_t handle);

#endif
