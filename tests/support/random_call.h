/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls of any operation that has a row, drawn at random: right ones, and ones with one thing wrong. */
#ifndef BQR_TESTS_RANDOM_CALL_H
#define BQR_TESTS_RANDOM_CALL_H

#include "arguments.h"
#include "trial.h"

/* The random numbers of one call: a function of its seed. */
typedef struct dice {
  uint64_t seed, next;
} dice;

int roll(dice *d, int low, int high);
bool chance(dice *d, int one_in);

/* A trial that is ready to be built. None, or up to 24 members, of which a few are up to 300 x 300;
 * all layouts, kinds of sizes and of matrices. */
trial draw_trial(dice *d, const bqr_operation *operation);

/* A call that is to be refused. */
typedef struct wrong_call {
  const trial *t;
  batchqr_handle_t handle;
  bqr_caller caller; /* BQR_PLANNED or BQR_ONE_CALL */
  batchqr_op op;
  batchqr_batch batch;
  batchqr_operands operands;
  bool no_batch, no_plan, no_operands;
  int workspace_short, workspace_off; /* bytes that it lacks; by which it is not aligned */
  bool no_workspace;
  int *array; /* of the batch, copied and changed; or NULL */
  batchqr_status status;
  char named[96]; /* what the error's text has to name */
} wrong_call;

/* Spoils one thing of a right call, whose plan is given. */
wrong_call draw_wrong_call(dice *d, const trial *t, batchqr_handle_t handle, const batchqr_batch *batch,
                           const batchqr_operands *operands, const struct batchqr_plan *plan);
/* Makes the call: its status. */
batchqr_status make_wrong_call(const wrong_call *w);
void free_wrong_call(wrong_call *w);

#endif
