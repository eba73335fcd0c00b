/* SPDX-License-Identifier: BSD-3-Clause */
/* How ranks agree on what a collective call is to do. */
#ifndef BQR_SRC_RANKS_AGREE_H
#define BQR_SRC_RANKS_AGREE_H

#include "handle.h"
#include <batchqr/ranks.h>

/* Numbers that have to be equal on all ranks. */
typedef enum bqr_common {
  BQR_COMMON_VERSION,
  BQR_COMMON_CALL, /* a bqr_collective */
  BQR_COMMON_OP,
  BQR_COMMON_TYPE,
  BQR_COMMON_M,
  BQR_COMMON_N,
  BQR_COMMON_K,
  BQR_COMMON_COUNT,
  BQR_COMMON_BLOCK,
  BQR_COMMON_TRANS,
  BQR_COMMON_KMAX,
  BQR_COMMON_ABSTOL, /* these two: their bits */
  BQR_COMMON_RELTOL,
  BQR_COMMON_BACKEND,
  BQR_COMMON_SM,
  BQR_COMMON_MULTIPROCESSORS,
  BQR_COMMON_COMPUTE,
  BQR_COMMON_POSITIVE,
  BQR_COMMON_PLAN, /* a hash of the plans for what all ranks do alike */
  BQR_NUM_COMMON
} bqr_common;

typedef enum bqr_collective {
  BQR_CALL_TSQR_PROBLEM = 1,
  BQR_CALL_TSQR_PLAN,
  BQR_CALL_COLUMNS_PROBLEM,
  BQR_CALL_COLUMNS_PLAN
} bqr_collective;

/* What one rank says. */
typedef struct bqr_proposal {
  int64_t common[BQR_NUM_COMMON];
  int64_t m;      /* its own rows */
  int64_t status; /* not 0: it cannot do its part, for the reason in `text` */
  char text[256];
} bqr_proposal;

/* The common numbers of a call on a batch. */
void bqr_propose(const struct batchqr_handle *handle, bqr_collective call, batchqr_op op,
                 const batchqr_batch *batch, bqr_proposal *mine);

/* Collective: all[r] gets what rank r says. `status` is that of the caller so far, with its text in `error`.
 * Success if all ranks succeeded and said the same. */
batchqr_status bqr_agree(const batchqr_communicator *communicator, bqr_proposal *mine, batchqr_status status,
                         bqr_proposal *all, bqr_error *error);

/* Says to the other ranks that this one cannot take part; returns its status. */
batchqr_status bqr_decline(const batchqr_communicator *communicator, batchqr_status status, bqr_error *error);

/* Whether the communicator carries the memory of the handle's device. */
batchqr_status bqr_check_communicator(const struct batchqr_handle *handle, const batchqr_communicator *c,
                                      bqr_error *error);

/* Whether the handle's device can use the address of an operand of so many elements. */
batchqr_status bqr_check_address(struct batchqr_handle *handle, const char *name, const void *address,
                                 int64_t elements);

#endif
