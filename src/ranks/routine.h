/* SPDX-License-Identifier: BSD-3-Clause */
/* Single routines on one matrix, which a plan over ranks launches itself: chosen as the steps of other plans
 * are, and readied when they are planned. There are many of them, of sizes that shrink from one to the next.
 * So those that follow one another on a stream share a queue: one workspace, and, where a family's open()
 * makes the same for any sizes, one state. */
#ifndef BQR_SRC_RANKS_ROUTINE_H
#define BQR_SRC_RANKS_ROUTINE_H

#include "handle.h"

enum { BQR_QUEUE_STATES = 8 };

typedef struct bqr_queue {
  struct {
    const bqr_family *family;
    void *state;
  } states[BQR_QUEUE_STATES];
  size_t workspace_bytes;
  void *workspace; /* set when all are planned */
} bqr_queue;

typedef struct bqr_routine {
  bqr_problem problem;      /* count 1 */
  const bqr_family *family; /* NULL: nothing is to be done */
  const bqr_variant *variant;
  void *state;
  bool owns_state; /* else it is the queue's, or there is none */
  char source[80]; /* see bqr_group_info */
} bqr_routine;

/* Chooses and readies a routine. `device`: the handle's, for as long as the routine lives. The routine is to
 * be given to bqr_routine_free(), whatever the status. */
batchqr_status bqr_routine_plan(struct batchqr_handle *handle, const bqr_device *device,
                                const bqr_problem *problem, bqr_queue *queue, bqr_routine *routine);
/* Enqueues it. Sets the sizes, the count, the workspace and the state in `args`. */
batchqr_status bqr_routine_launch(const bqr_routine *routine, const bqr_device *device,
                                  const bqr_queue *queue, bqr_args args, batchqr_stream stream,
                                  bqr_error *error);
void bqr_routine_free(bqr_routine *routine);
void bqr_queue_free(bqr_queue *queue);

#endif
