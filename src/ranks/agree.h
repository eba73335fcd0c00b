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

/* The first execute of a plan. CUDA loads a kernel when it is launched first, cuBLAS's too, and while it does
 * it may wait for all that the process's GPUs have been given, with locks that other threads want. So no GPU
 * must have been given anything then that waits for another rank: that one may be a thread of the same
 * process, and wait for such a lock. Until a plan has been `launched` by all ranks, they therefore meet
 * before each message, and wait for it behind it; and before the first one, for what the caller has enqueued,
 * which the communicator's time limit is not for. Under capture nothing runs, and all of these do nothing. */
typedef enum bqr_condition {
  BQR_WELL,
  BQR_FAILED /* sends NaNs */,
  BQR_SPEECHLESS /* cannot send */
} bqr_condition;

/* Collective; said: a byte for each rank; mine: how this rank's own part has gone so far. *worst: how
 * anybody's has; where they do not meet, this rank's. */
batchqr_status bqr_meet_first(const batchqr_communicator *communicator, const bqr_device *device,
                              batchqr_stream stream, bool launched, char *said, bqr_condition mine,
                              bqr_condition *worst);
void bqr_finish_first(const batchqr_communicator *communicator, const bqr_device *device,
                      batchqr_stream stream, bool launched);
batchqr_status bqr_wait_first(const batchqr_communicator *communicator, const bqr_device *device,
                              batchqr_stream stream, bool launched);

/* Whether the communicator carries the memory of the handle's device. */
batchqr_status bqr_check_communicator(const struct batchqr_handle *handle, const batchqr_communicator *c,
                                      bqr_error *error);

/* Whether the handle's device can use the address of an operand of so many elements. */
batchqr_status bqr_check_address(struct batchqr_handle *handle, const char *name, const void *address,
                                 int64_t elements);

#endif
