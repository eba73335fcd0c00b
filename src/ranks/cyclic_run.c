/* SPDX-License-Identifier: BSD-3-Clause */
/* Block-cyclic columns over ranks at work. */
#include "cyclic.h"

typedef struct message {
  void *data, *tau;
  int *info;
  int ld;
  size_t bytes;
} message;

/* An execute under way. */
typedef struct run {
  struct batchqr_columns *t;
  const batchqr_operands *o;
  batchqr_stream stream; /* of the queue that was entered last */
  batchqr_status status; /* of this rank's own work; after an error it sends NaNs */
  batchqr_status others; /* of the communicator; after an error there is none */
  bqr_error error;       /* the first one's text */
} run;

/* What a sweep does for a block on its own rank, to make its message, and then on all. */
typedef struct sweep {
  batchqr_status (*produce)(run *w, int number, const message *x);
  batchqr_status (*consume)(run *w, int number, const message *x);
  bool backward;
  /* On the caller's stream, before all blocks and behind them; NULL: nothing. */
  batchqr_status (*begin)(run *w), (*end)(run *w);
  /* What all do with a message that has come, on the queue `ahead`; NULL: nothing. */
  batchqr_status (*arrive)(run *w, int number, const message *x);
  bool alone;    /* what makes a message has the GPU to itself: kernels beside it would take it many times the
                    time */
  bool triangle; /* messages are R's blocks of columns, not those from the diagonal on */
} sweep;

static size_t size_of(const run *w) { return bqr_type_bytes(w->t->batch.type); }

static char *element(const run *w, void *x, int64_t row, int64_t col, int64_t ld) {
  return x ? (char *)x + (row + col * ld) * (int64_t)size_of(w) : NULL;
}

static char *in_a(const run *w, int row, int col) { return element(w, w->o->a, row, col, w->t->batch.a.ld); }

static char *in_c(const run *w, int row, int col) { return element(w, w->o->c, row, col, w->t->batch.c.ld); }

static bqr_matrix matrix_of(const void *data, int ld) {
  return (bqr_matrix){.data = (void *)data, .ld = ld, .row_stride = 1};
}

static message message_of(const run *w, const sweep *s, int number, int place) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(w->t, number);
  const int rows = s->triangle ? b.first + b.cols : b.rows;
  message x = {.data = w->t->messages[place], .ld = rows};
  x.tau = element(w, x.data, 0, b.cols, rows);
  x.info = (int *)(void *)element(w, x.tau, b.cols, 0, 0);
  x.bytes = (size_t)((char *)x.info - (char *)x.data) + sizeof *x.info;
  return x;
}

static batchqr_status launch(run *w, int number, bqr_cyclic_step step, bqr_cyclic_queue queue,
                             bqr_args args) {
  struct batchqr_columns *t = w->t;
  return bqr_routine_launch(&t->routines[number][step], &t->device, &t->queues[queue], args, w->stream,
                            &t->handle->error);
}

static batchqr_status copy(run *w, void *to, const void *from, size_t bytes) {
  return bqr_memory_copy(&w->t->device, to, from, bytes, w->stream, &w->t->handle->error);
}

/* --- factoring */

/* What the trailing columns' launches say. */
static batchqr_status explain(run *w, batchqr_status status) {
  return status
             ? bqr_fail(&w->t->handle->error, status, "trailing columns: %s", bqr_device_error(&w->t->device))
             : status;
}

/* I - V T V^H, or its adjoint, from a message, to columns c. */
static bqr_args reflecting(const message *x, void *c, int ldc) {
  return (bqr_args){.a = matrix_of(x->data, x->ld), .tau = {.data = x->tau}, .c = matrix_of(c, ldc)};
}

static batchqr_status send(run *w, int number, const message *x) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(w->t, number);
  const bqr_args args = {.a = matrix_of(in_a(w, b.first, b.local), w->t->batch.a.ld),
                         .c = matrix_of(x->data, x->ld)};
  return launch(w, number, BQR_CYCLIC_SEND, BQR_CYCLIC_AHEAD, args);
}

/* Applies the block before, whose message is in the other place, and leaves the range of A's own numbers. */
static batchqr_status apply_last(run *w, int number) {
  const struct batchqr_columns *t = w->t;
  const bqr_cyclic_block b = bqr_cyclic_block_at(t, number);
  const int lda = t->batch.a.ld, last = number - 1;
  batchqr_status status = BATCHQR_SUCCESS;
  if (!t->trailing && number > 0) {
    const sweep forward = {.backward = false};
    const message x = message_of(w, &forward, last, last % 2);
    return launch(w, last, BQR_CYCLIC_NEXT, BQR_CYCLIC_AHEAD,
                  reflecting(&x, in_a(w, b.first - t->nb, b.local), lda));
  }
  if (!t->trailing) return status;
  if (number > 0)
    status = bqr_trailing_apply(t->trailing, last % 2, BQR_TRAILING_URGENT, in_a(w, b.first - t->nb, b.local),
                                lda, b.cols, w->stream);
  if (!status) status = bqr_trailing_end(t->trailing, b.local, b.cols, in_a(w, 0, b.local), lda, w->stream);
  return explain(w, status);
}

static batchqr_status factor(run *w, int number, const message *x) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(w->t, number);
  const bqr_args args = {
      .a = matrix_of(in_a(w, b.first, b.local), w->t->batch.a.ld), .tau = {.data = x->tau}, .info = x->info};
  batchqr_status status = apply_last(w, number);
  if (!status) status = launch(w, number, BQR_CYCLIC_FACTOR, BQR_CYCLIC_AHEAD, args);
  return status ? status : send(w, number, x);
}

/* To columns first .. end-1 of a matrix; the last strip's routine is the next one's. */
static batchqr_status apply(run *w, int number, bqr_cyclic_step step, const message *x, char *c, int ldc,
                            int cols) {
  const struct batchqr_columns *t = w->t;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int at = 0; at < cols && !status; at += t->strip) {
    const bool last = cols - at < t->strip;
    status = launch(w, number, step + last, BQR_CYCLIC_BESIDE, reflecting(x, element(w, c, 0, at, ldc), ldc));
    if (last) break;
  }
  return status;
}

static batchqr_status apply_right(run *w, int number, const message *x) {
  const int first = bqr_cyclic_block_at(w->t, number).first;
  return apply(w, number, BQR_CYCLIC_RIGHT, x, in_c(w, first, 0), w->t->batch.c.ld, w->t->right);
}

static batchqr_status update(run *w, int number, const message *x) {
  const struct batchqr_columns *t = w->t;
  const bqr_cyclic_block b = bqr_cyclic_block_at(t, number);
  const int from = bqr_cyclic_own_from(t, number + 1 + (number + 1 < t->blocks));
  batchqr_status status = BATCHQR_SUCCESS;
  if (bqr_use_at(t->operation, BQR_TAU))
    status = copy(w, element(w, w->o->tau, b.first, 0, 0), x->tau, (size_t)b.reflectors * size_of(w));
  if (!status && w->o->info) status = copy(w, w->o->info + number, x->info, sizeof *x->info);
  if (!status && t->trailing)
    status = explain(w, bqr_trailing_apply(t->trailing, number % 2, BQR_TRAILING_REST, in_a(w, b.first, from),
                                           t->batch.a.ld, t->own - from, w->stream));
  else if (!status)
    status = apply(w, number, BQR_CYCLIC_REST, x, in_a(w, b.first, from), t->batch.a.ld, t->own - from);
  return status ? status : apply_right(w, number, x);
}

/* A block that has come is formed where it will be applied. */
static batchqr_status form(run *w, int number, const message *x) {
  const struct batchqr_columns *t = w->t;
  const bqr_cyclic_block b = bqr_cyclic_block_at(t, number);
  if (!t->trailing || bqr_cyclic_own_from(t, number + 1) == t->own) return BATCHQR_SUCCESS;
  return explain(
      w, bqr_trailing_form(t->trailing, number % 2, b.rows, b.reflectors, x->data, x->ld, x->tau, w->stream));
}

/* Before the first block, and behind the last one for the columns that have none. */
static batchqr_status begin_range(run *w) {
  const struct batchqr_columns *t = w->t;
  if (!t->trailing) return BATCHQR_SUCCESS;
  return explain(w, bqr_trailing_begin(t->trailing, in_a(w, 0, 0), t->batch.a.ld, w->stream));
}

static batchqr_status end_range(run *w) {
  const struct batchqr_columns *t = w->t;
  const int from = bqr_cyclic_own_from(t, t->blocks);
  if (!t->trailing || from == t->own) return BATCHQR_SUCCESS;
  return explain(
      w, bqr_trailing_end(t->trailing, from, t->own - from, in_a(w, 0, from), t->batch.a.ld, w->stream));
}

static const sweep factoring = {.produce = factor,
                                .consume = update,
                                .arrive = form,
                                .alone = true,
                                .begin = begin_range,
                                .end = end_range};

/* --- Q alone */

static batchqr_status send_vectors(run *w, int number, const message *x) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(w->t, number);
  const batchqr_status status = send(w, number, x);
  if (status) return status;
  return copy(w, x->tau, element(w, w->o->tau, b.first, 0, 0), (size_t)b.reflectors * size_of(w));
}

static const sweep applying[] = {{.produce = send_vectors, .consume = apply_right},
                                 {.produce = send_vectors, .consume = apply_right, .backward = true}};

/* --- R X = C */

static batchqr_status send_r(run *w, int number, const message *x) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(w->t, number);
  const bqr_args args = {.a = matrix_of(in_a(w, 0, b.local), w->t->batch.a.ld),
                         .c = matrix_of(x->data, x->ld)};
  return launch(w, number, BQR_CYCLIC_SEND_R, BQR_CYCLIC_AHEAD, args);
}

static batchqr_status solve(run *w, int number, const message *x) {
  const int first = bqr_cyclic_block_at(w->t, number).first, ldc = w->t->batch.c.ld;
  const bqr_matrix unknowns = matrix_of(in_c(w, first, 0), ldc);
  const bqr_args solving = {.a = matrix_of(element(w, x->data, first, 0, x->ld), x->ld), .c = unknowns};
  const bqr_args product = {
      .a = matrix_of(x->data, x->ld), .r = unknowns, .c = matrix_of(in_c(w, 0, 0), ldc)};
  const batchqr_status status = launch(w, number, BQR_CYCLIC_SOLVE, BQR_CYCLIC_BESIDE, solving);
  return status ? status : launch(w, number, BQR_CYCLIC_SUBTRACT, BQR_CYCLIC_BESIDE, product);
}

static const sweep solving = {.produce = send_r, .consume = solve, .backward = true, .triangle = true};

/* --- sweeps */

static void note(run *w, batchqr_status status) {
  if (!status || w->status) return;
  w->status = status;
  w->error = w->t->handle->error;
}

/* Without streams of its own the plan works in order on the caller's. */
static void enter(run *w, bqr_cyclic_queue queue) {
  if (w->t->streams) note(w, bqr_streams_enter(w->t->streams, (int)queue, &w->stream, &w->t->handle->error));
}

/* The same, and what is enqueued goes on behind what the other queue has been given so far. */
static void follow(run *w, bqr_cyclic_queue queue, bqr_cyclic_queue other) {
  struct batchqr_columns *t = w->t;
  if (t->streams)
    note(w, bqr_streams_follow(t->streams, (int)queue, (int)other, &w->stream, &t->handle->error));
}

static void meet(run *w) {
  if (w->t->streams)
    note(w, bqr_streams_meet(w->t->streams, BQR_CYCLIC_BESIDE, BQR_CYCLIC_AHEAD, &w->t->handle->error));
}

/* NaNs in place of the message. A failure of this, too, is the first one's consequence. */
static void spoil(run *w, const sweep *s, int number, const message *x) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(w->t, number);
  const bqr_args args = {.a = {.data = w->t->nans}, .c = matrix_of(x->data, x->ld)};
  launch(w, number, s->triangle ? BQR_CYCLIC_SEND_R : BQR_CYCLIC_SEND, BQR_CYCLIC_AHEAD, args);
  copy(w, x->tau, w->t->nans, (size_t)b.cols * size_of(w));
  copy(w, x->info, w->t->nonfinite, sizeof *x->info);
}

static bool is_own(const run *w, int number) {
  return bqr_cyclic_block_at(w->t, number).rank == w->t->communicator->rank;
}

static void produce(run *w, const sweep *s, int number, const message *x) {
  if (!is_own(w, number)) return;
  enter(w, BQR_CYCLIC_AHEAD);
  if (!w->status) note(w, s->produce(w, number, x));
  if (w->status) spoil(w, s, number, x);
}

/* What a function of the communicator says. */
static void heed(run *w, batchqr_status status) {
  const batchqr_communicator *c = w->t->communicator;
  w->others = status;
  if (status) note(w, bqr_fail(&w->t->handle->error, status, "%s", c->message(c->context)));
}

/* The same of one that sends. */
static void heed_message(run *w, batchqr_status status) {
  heed(w, status);
  if (status) w->t->abandoned = true;
}

static bqr_condition meet_first(run *w) {
  const struct batchqr_columns *t = w->t;
  bqr_condition worst;
  heed(w, bqr_meet_first(t->communicator, &t->device, w->stream, t->launched, t->said,
                         w->status ? BQR_FAILED : BQR_WELL, &worst));
  return worst;
}

static void broadcast(run *w, int number, const message *x) {
  const batchqr_communicator *c = w->t->communicator;
  const int root = bqr_cyclic_block_at(w->t, number).rank;
  enter(w, BQR_CYCLIC_AHEAD);
  meet_first(w);
  if (!w->others) heed_message(w, c->broadcast(c->context, x->data, x->bytes, root, w->stream));
  if (!w->others) heed_message(w, bqr_wait_first(c, &w->t->device, w->stream, w->t->launched));
}

static void arrive(run *w, const sweep *s, int number, const message *x) {
  if (!s->arrive || w->status) return;
  enter(w, BQR_CYCLIC_AHEAD);
  note(w, s->arrive(w, number, x));
}

static int number_of(const run *w, const sweep *s, int i) { return s->backward ? w->t->blocks - 1 - i : i; }

/* A message that the communicator waits for the stream with goes behind what is to be done beside it. */
static void sweep_blocks(run *w, const sweep *s) {
  message now = message_of(w, s, number_of(w, s, 0), 0);
  produce(w, s, number_of(w, s, 0), &now);
  broadcast(w, number_of(w, s, 0), &now);
  arrive(w, s, number_of(w, s, 0), &now);
  for (int i = 0; i < w->t->blocks && !w->others; i++) {
    const bool leads = i + 1 < w->t->blocks;
    const int next_number = leads ? number_of(w, s, i + 1) : 0;
    const message next = message_of(w, s, next_number, (i + 1) % 2);
    meet(w);
    if (leads) produce(w, s, next_number, &next);
    if (leads && s->alone && is_own(w, next_number)) follow(w, BQR_CYCLIC_BESIDE, BQR_CYCLIC_AHEAD);
    enter(w, BQR_CYCLIC_BESIDE);
    if (!w->status) note(w, s->consume(w, number_of(w, s, i), &now));
    if (leads) broadcast(w, next_number, &next);
    if (leads) arrive(w, s, next_number, &next);
    now = next;
  }
}

static void do_sweep(run *w, const sweep *s) {
  struct batchqr_columns *t = w->t;
  bqr_error *error = &t->handle->error;
  w->stream = t->handle->stream;
  if (t->blocks == 0 || w->others) return;
  bqr_finish_first(t->communicator, &t->device, w->stream, t->launched);
  if (!w->status && s->begin) note(w, s->begin(w));
  if (t->streams) note(w, bqr_streams_fork(t->streams, BQR_CYCLIC_NUM_QUEUES, w->stream, error));
  sweep_blocks(w, s);
  if (t->streams) note(w, bqr_streams_join(t->streams, error));
  w->stream = t->handle->stream;
  if (!w->status && s->end) note(w, s->end(w));
}

static void find_norms(run *w) {
  struct batchqr_columns *t = w->t;
  const batchqr_operands operands = {.c = in_c(w, t->n, 0), .norms = w->o->norms};
  note(w, batchqr_plan_execute(t->handle, t->norms, &operands, t->norms_workspace,
                               batchqr_plan_workspace(t->norms)));
}

batchqr_status bqr_cyclic_run(struct batchqr_columns *t, const batchqr_operands *operands,
                              batchqr_status status) {
  run w = {.t = t, .o = operands};
  note(&w, status);
  do_sweep(&w, t->form->applies ? &applying[t->batch.trans == BATCHQR_NO_TRANS] : &factoring);
  if (t->form->solves) {
    if (!w.status && t->norms && operands->norms) find_norms(&w);
    do_sweep(&w, &solving);
  }
  if (!w.others && meet_first(&w) == BQR_WELL && !w.others) t->launched = true;
  if (w.status) t->handle->error = w.error;
  return w.status;
}
