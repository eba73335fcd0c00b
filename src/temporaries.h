/* SPDX-License-Identifier: BSD-3-Clause */
/* The temporaries of a plan's program: how large they are, and where they lie in the workspace. */
#ifndef BQR_SRC_TEMPORARIES_H
#define BQR_SRC_TEMPORARIES_H

#include "batch.h"

typedef struct bqr_temporary {
  size_t at, bytes; /* from the workspace's start */
  int64_t stride;   /* elements from member to member */
  const int64_t
      *offsets; /* in the plan's image, where sizes vary: elements before a member's part; or NULL */
} bqr_temporary;

/* Whether a member of these sizes is worked on as a transposed copy. */
bool bqr_has_copy(const batchqr_batch *batch, bqr_dims sizes);

/* Elements of a member's part of a temporary, and their bytes. */
int64_t bqr_temporary_elements(int place, const batchqr_batch *batch, bqr_dims sizes);
size_t bqr_temporary_bytes(int place, batchqr_type type);
/* The leading dimension of a member's part of one that is a matrix. */
int bqr_temporary_rows(int place, const batchqr_batch *batch, bqr_dims sizes);
/* Whether members of different sizes have parts of different sizes. */
bool bqr_temporary_varies(int place);

#endif
