/* SPDX-License-Identifier: BSD-3-Clause */
/* What the checks of arguments, in files beside arguments.c, share. */
#ifndef BQR_SRC_ARGUMENTS_CHECK_H
#define BQR_SRC_ARGUMENTS_CHECK_H

#include "arguments.h"

/* What is checked, how it was given, and where to say what is wrong. */
typedef struct bqr_check {
  const bqr_operation *operation;
  const batchqr_batch *batch;
  bqr_caller caller;
  bqr_error *error;
} bqr_check;

#define BQR_INVALID(c, ...) bqr_fail((c)->error, BATCHQR_INVALID_ARGUMENT, __VA_ARGS__)

/* --- arguments_names.c, for the errors */

static inline bool bqr_is_typed(bqr_caller caller) {
  return caller == BQR_TYPED || caller == BQR_TYPED_POINTERS;
}
static inline const char *bqr_place_name(const bqr_use *use) { return bqr_places[use->place].name; }

/* "batch.kmax", or what a typed wrapper calls it; of side and trans, which are arguments of their own but in
 * the planned tier; of m, n and k, where they may be a member's. */
bqr_name bqr_scalar_name(const bqr_check *c, const char *field);
bqr_name bqr_way_name(const bqr_check *c, const char *field);
bqr_name bqr_size_name(const bqr_check *c, const char *field, int64_t member);
/* "batch.a.ld", or "batch.a.ld_array[17]"; "batch.a.row_stride"; "batch.a.stride". */
bqr_name bqr_ld_name(const bqr_check *c, const bqr_use *use, int64_t member);
bqr_name bqr_row_stride_name(const bqr_use *use);
bqr_name bqr_stride_name(const bqr_check *c, const bqr_use *use);
/* "min(m, n)" */
const char *bqr_extent_name(const bqr_check *c, bqr_extent extent);

/* --- arguments_storage.c */

/* An operand, and where it is. */
typedef struct bqr_checked {
  const bqr_check *c;
  const bqr_use *use;
  const batchqr_storage *storage;
} bqr_checked;

static inline bool bqr_is_matrix(const bqr_checked *x) { return x->use->kind == BQR_MATRIX; }
/* Whether the batch says how an optional matrix is stored: else no execute wants it. */
bool bqr_is_stored(const bqr_checked *x);
batchqr_status bqr_check_storage(const bqr_checked *x);
/* An optional vector that is wanted, whose longest has so many elements: without a look at all members. */
batchqr_status bqr_check_optional(const bqr_checked *x, int64_t largest);

#endif
