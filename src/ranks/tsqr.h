/* SPDX-License-Identifier: BSD-3-Clause */
/* TSQR over ranks. The rows of a matrix are those on top, `height` of them, which LAPACK's format wants as
 * they are, and the rest: each rank factors its part of the rest, A_r = Q_r R_r. The stack is what all ranks
 * factor alike: the rows on top, and below them every R_r. With Q_r, which has orthonormal columns, in the
 * place of R_r's unit vectors, what is found for the stack holds for A: its R, and its reflectors' vectors,
 * whose lengths and products with one another Q_r leaves alone.
 *
 * A rank sends its R_r in rows 0 .. blocks-1 of a matrix, its rows on top behind them, and for GELS the
 * lengths of what Q_r^H B has below R_r in one row more. */
#ifndef BQR_SRC_RANKS_TSQR_H
#define BQR_SRC_RANKS_TSQR_H

#include "agree.h"

/* A matrix of each member. ld 0: all elements are the one at data. */
typedef struct bqr_view {
  void *data;
  int ld;
  int64_t stride;
} bqr_view;

/* The rows of one rank: its first `top` ones are on top, as rows top_at ... of the stack; R_r has `block`
 * rows, rows block_at ... of the stack. */
typedef struct bqr_rank_rows {
  int top, rest, block;
  int top_at, block_at;
} bqr_rank_rows;

/* How an operation is done. Extents are those of the whole matrix; 0: none. */
typedef struct bqr_tsqr_form {
  batchqr_op op;
  bqr_extent cols;       /* of A (V) that are sent, */
  bqr_extent more;       /* and of C, which Q_r^H is applied to */
  bqr_extent height;     /* rows on top */
  bqr_extent stack_cols; /* of the stack */
  bqr_extent formed;     /* columns that are formed of `result` */
  bqr_extent least_rows; /* that the whole matrix must have */
  bqr_operand result;    /* what Q_r is applied to in the end; none: what is found for the stack is all */
  bool keeps_v;          /* A is only read */
  bool in_steps;         /* the stack's Q is formed by GEQRF and ORGQR, in its place */
  bool solves;           /* the stack's solution is the result; residuals want lengths */
} bqr_tsqr_form;

/* tsqr_layout.c; NULL: it cannot be done over ranks. */
const bqr_tsqr_form *bqr_tsqr_form_of(batchqr_op op);

/* The plans of a rank's steps. */
typedef enum bqr_tsqr_step {
  BQR_TSQR_LOCAL,   /* A_r = Q_r R_r */
  BQR_TSQR_DOWN,    /* C_r := Q_r^H C_r */
  BQR_TSQR_NORMS,   /* lengths of columns of B */
  BQR_TSQR_COMMON,  /* what all ranks do alike with the stack */
  BQR_TSQR_FORM,    /* the stack's Q */
  BQR_TSQR_UP,      /* C_r := Q_r C_r */
  BQR_TSQR_UP_WORK, /* the same in the workspace */
  BQR_TSQR_NUM_STEPS
} bqr_tsqr_step;

struct batchqr_tsqr {
  struct batchqr_handle *handle;
  bqr_device device; /* the handle's, which may be gone when the plan is released */
  const batchqr_communicator *communicator;
  const bqr_tsqr_form *form;
  batchqr_batch batch; /* this rank's */
  bqr_rank_rows *rows; /* by rank */
  bqr_rank_rows own;
  int64_t total;    /* rows of the whole matrix */
  int height;       /* rows on top */
  int blocks, tops; /* most rows of an R_r, most rows on top that a rank has */
  int cols, more;   /* of A and of C in what is sent */
  int sent_rows, stack_rows, stack_cols;
  int formed; /* columns that are formed of Q, V or U in the rest */

  bool preparing; /* plans are made, nothing is enqueued */
  batchqr_plan_t steps[BQR_TSQR_NUM_STEPS];
  void *workspace; /* of the steps */
  size_t workspace_bytes;
  void *memory;
  size_t memory_bytes;
  char *said;         /* see bqr_meet_first() */
  bool parted;        /* a function of the communicator has failed, in this execute */
  bool launched;      /* by an execute: all kernels are loaded */
  bool abandoned;     /* after a call that others may still send to: the memory must stay */
  bqr_view zero, nan; /* one element each */
  bqr_view sent, gathered, stack, stack_c, tau, common_tau, work;
  char *description;
};

/* tsqr_layout.c: what is where, from the numbers of rows of all ranks; the plan's memory. */
batchqr_status bqr_ranks_layout(struct batchqr_tsqr *t, const bqr_proposal *all, bqr_error *error);
batchqr_status bqr_ranks_allocate(struct batchqr_tsqr *t, bqr_error *error);

/* tsqr_run.c: all of an execute, or, while preparing, the plans for it. */
batchqr_status bqr_ranks_down(struct batchqr_tsqr *t, const batchqr_operands *operands);
/* mine: whether this rank has what it sends. */
batchqr_status bqr_ranks_gather(struct batchqr_tsqr *t, bqr_condition mine);
/* The end of an execute that may be the first, see agree.h; `status` is what has come of it. */
batchqr_status bqr_ranks_end_first(struct batchqr_tsqr *t, batchqr_status status);
batchqr_status bqr_ranks_up(struct batchqr_tsqr *t, const batchqr_operands *operands);
/* Sends NaNs. */
batchqr_status bqr_ranks_spoil(struct batchqr_tsqr *t);

/* tsqr_step.c */

/* The part of a matrix from that row and column on. */
bqr_view bqr_view_at(const struct batchqr_tsqr *t, bqr_view x, int64_t row, int64_t col);
/* Copies `count` matrices. */
batchqr_status bqr_ranks_move(struct batchqr_tsqr *t, int m, int n, int64_t count, bqr_view from,
                              bqr_view to);
/* Copies R of factored matrices of m rows. */
batchqr_status bqr_ranks_copy_r(struct batchqr_tsqr *t, int m, int n, bqr_view from, bqr_view to);
/* Makes the step's plan, or enqueues it. */
batchqr_status bqr_ranks_do(struct batchqr_tsqr *t, bqr_tsqr_step step, batchqr_op op,
                            const batchqr_batch *batch, const batchqr_operands *operands);

static inline batchqr_storage bqr_stored(bqr_view x) {
  return (batchqr_storage){.ld = x.ld, .stride = x.stride};
}

#endif
