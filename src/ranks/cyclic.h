/* SPDX-License-Identifier: BSD-3-Clause */
/* One matrix whose columns are dealt to ranks in blocks, in turn. Work goes in sweeps over the blocks that
 * have reflectors: for each of them its rank makes a message (the factored block with tau, or a block of R's
 * columns), all get it by a broadcast, and each does with it what its own columns want. Of two streams the
 * urgent one, the queue `ahead`, makes and carries the next message while the caller's, the queue `beside`,
 * is at work with the last one. There are two places for messages. */
#ifndef BQR_SRC_RANKS_CYCLIC_H
#define BQR_SRC_RANKS_CYCLIC_H

#include "agree.h"
#include "drivers/trailing.h"
#include "routine.h"

/* What is done for a block of columns. */
typedef enum bqr_cyclic_step {
  BQR_CYCLIC_FACTOR,    /* its own rank: A's block from the diagonal on */
  BQR_CYCLIC_SEND,      /* its own rank: that, into the message */
  BQR_CYCLIC_NEXT,      /* the next block's rank: Q^H of the block applied to the next block */
  BQR_CYCLIC_REST,      /* Q^H applied to own columns of A behind that, a strip of them */
  BQR_CYCLIC_REST_END,  /* and to the last strip, which is narrower */
  BQR_CYCLIC_RIGHT,     /* op(Q) applied to own columns of C, likewise */
  BQR_CYCLIC_RIGHT_END, /**/
  BQR_CYCLIC_SEND_R,    /* its own rank: R's block of columns, into the message */
  BQR_CYCLIC_SOLVE,     /* X's rows of the block, in C */
  BQR_CYCLIC_SUBTRACT,  /* R's block times X's, from the rows above */
  BQR_CYCLIC_NUM_STEPS
} bqr_cyclic_step;

typedef enum bqr_cyclic_queue { BQR_CYCLIC_BESIDE, BQR_CYCLIC_AHEAD, BQR_CYCLIC_NUM_QUEUES } bqr_cyclic_queue;

/* A block of columns, or what there is of it where the matrix ends. */
typedef struct bqr_cyclic_block {
  int first, cols, rows; /* first column; rows from the diagonal on */
  int reflectors;
  int rank;  /* whose it is */
  int local; /* its first column among that rank's */
} bqr_cyclic_block;

/* How an operation is done. */
typedef struct bqr_cyclic_form {
  batchqr_op op;
  bqr_extent cols;  /* of A (V), which are dealt */
  bqr_extent right; /* of C, each rank's own; 0: there is no C */
  bool applies;     /* A is factored already, and op(Q) applied */
  bool solves;      /* R X = C comes behind A's factorization and Q^H C */
} bqr_cyclic_form;

struct batchqr_columns {
  struct batchqr_handle *handle;
  bqr_device device; /* the handle's, which may be gone when the plan is released */
  const batchqr_communicator *communicator;
  const bqr_cyclic_form *form;
  const bqr_operation *operation; /* its row */
  batchqr_batch batch;
  int nb;
  int m, n;   /* A, all of it */
  int own;    /* its columns on this rank */
  int right;  /* columns of C on this rank */
  int blocks; /* that have reflectors */
  int strip;  /* columns to which reflectors are applied at once */

  bqr_routine (*routines)[BQR_CYCLIC_NUM_STEPS]; /* by block */
  bqr_queue queues[BQR_CYCLIC_NUM_QUEUES];
  bqr_trailing *trailing; /* does NEXT and REST, instead of routines; NULL: there are these */
  bqr_streams *streams;   /* NULL: one */
  batchqr_plan_t norms;   /* GELS */
  void *norms_workspace;
  char *memory;
  size_t memory_bytes, message_bytes;
  void *messages[2];
  void *nans;     /* nb elements */
  int *nonfinite; /* BATCHQR_INFO_NONFINITE */
  char *said;     /* see bqr_meet_first() */
  bool launched;  /* by an execute: all kernels are loaded */
  bool abandoned; /* after a call that others may still send to: the memory must stay */
  char *description;
};

bqr_cyclic_block bqr_cyclic_block_at(const struct batchqr_columns *t, int number);
/* This rank's first column of those in block `number` and behind it, among its own. */
int bqr_cyclic_own_from(const struct batchqr_columns *t, int number);

/* cyclic_plan.c: the routines and the memory. */
batchqr_status bqr_cyclic_plan(struct batchqr_columns *t);

/* cyclic_run.c: all of an execute. `status` is that of the operands' checks: after an error the rank takes
 * part with NaNs. Returns the first error. */
batchqr_status bqr_cyclic_run(struct batchqr_columns *t, const batchqr_operands *operands,
                              batchqr_status status);

#endif
