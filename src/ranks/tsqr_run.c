/* SPDX-License-Identifier: BSD-3-Clause */
/* TSQR over ranks at work: down to what is sent, the stack, and up again. While a plan is made, the same
 * functions make the plans of its steps. */
#include "tsqr.h"

static bqr_view matrix_at(const batchqr_storage *stored, void *data) {
  return (bqr_view){.data = data, .ld = stored->ld, .stride = stored->stride};
}

static bqr_view a_of(const struct batchqr_tsqr *t, const batchqr_operands *o) {
  return matrix_at(&t->batch.a, o->a);
}

static bqr_view c_of(const struct batchqr_tsqr *t, const batchqr_operands *o) {
  return matrix_at(&t->batch.c, o->c);
}

/* The rest of this rank's rows, where Q_r's vectors are: in place of A, but those of V must stay. */
static bqr_view vectors(const struct batchqr_tsqr *t, const batchqr_operands *o) {
  return t->form->keeps_v ? t->work : bqr_view_at(t, a_of(t, o), t->own.top, 0);
}

static bqr_view result_of(const struct batchqr_tsqr *t, const batchqr_operands *o) {
  const int place = (int)t->form->result;
  return matrix_at(bqr_storage_at(&t->batch, place), bqr_address_at(o, place));
}

static bool wants_u(const struct batchqr_tsqr *t) { return t->form->result == BQR_U && t->batch.u.ld > 0; }

/* Whether Q_r is applied to something in the end. */
static bool wants_result(const struct batchqr_tsqr *t) {
  return t->form->result && (t->form->result != BQR_U || wants_u(t));
}

/* Whether Q_r is of no use. */
static bool wants_r_alone(const struct batchqr_tsqr *t) { return !t->form->more && !wants_result(t); }

/* --- down */

static batchqr_status local_r(struct batchqr_tsqr *t, const batchqr_operands *o) {
  const bqr_view a = a_of(t, o);
  const batchqr_batch batch = {
      .count = t->batch.count, .m = t->own.rest, .n = t->cols, .a = bqr_stored(a), .r = bqr_stored(t->sent)};
  const batchqr_operands operands = {.a = a.data, .r = t->sent.data};
  return bqr_ranks_do(t, BQR_TSQR_LOCAL, BATCHQR_GEQR_R, &batch, &operands);
}

static batchqr_status local_qr(struct batchqr_tsqr *t, const batchqr_operands *o) {
  const bqr_view v = vectors(t, o);
  const int m = t->own.rest;
  batchqr_status status = BATCHQR_SUCCESS;
  if (t->form->keeps_v)
    status = bqr_ranks_move(t, m, t->cols, t->batch.count, bqr_view_at(t, a_of(t, o), t->own.top, 0), v);
  const batchqr_batch batch = {
      .count = t->batch.count, .m = m, .n = t->cols, .a = bqr_stored(v), .tau = {.stride = t->tau.stride}};
  const batchqr_operands operands = {.a = v.data, .tau = t->tau.data};
  if (!status) status = bqr_ranks_do(t, BQR_TSQR_LOCAL, BATCHQR_GEQRF, &batch, &operands);
  return status ? status : bqr_ranks_copy_r(t, m, t->cols, v, t->sent);
}

/* c, of the rest's rows and n columns, := Q_r c, or Q_r^H c. */
static batchqr_status apply(struct batchqr_tsqr *t, bqr_tsqr_step step, batchqr_trans trans, bqr_view v,
                            bqr_view c, int n) {
  const batchqr_batch batch = {.count = t->batch.count,
                               .m = t->own.rest,
                               .n = n,
                               .k = t->own.block,
                               .trans = trans,
                               .a = bqr_stored(v),
                               .c = bqr_stored(c),
                               .tau = {.stride = t->tau.stride}};
  const batchqr_operands operands = {.a = v.data, .tau = t->tau.data, .c = c.data};
  return n == 0 || batch.k == 0 ? BATCHQR_SUCCESS : bqr_ranks_do(t, step, BATCHQR_ORMQR, &batch, &operands);
}

/* The lengths of what a column of c has below the block's rows: of matrices of one column. */
static batchqr_status lengths(struct batchqr_tsqr *t, bqr_view c) {
  const int64_t count = t->batch.count;
  const bool by_columns = count < t->more; /* which of both are the members of a call */
  batchqr_batch batch = {.count = by_columns ? t->more : count,
                         .m = t->own.rest - t->own.block,
                         .n = 1,
                         .a = {.ld = c.ld, .stride = by_columns ? c.ld : c.stride},
                         .r = {.ld = 1, .stride = by_columns ? t->sent.ld : t->sent.stride}};
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t i = 0; i < (by_columns ? count : t->more) && batch.m > 0 && !status; i++) {
    bqr_view from = bqr_view_at(t, c, t->own.block, by_columns ? 0 : i);
    bqr_view to = bqr_view_at(t, t->sent, t->sent_rows - 1, t->cols + (by_columns ? 0 : i));
    const bqr_view none = {.ld = 1};
    if (by_columns) { /* member i */
      from = bqr_view_at(t, (bqr_view){from.data, .ld = none.ld}, i * c.stride, 0);
      to = bqr_view_at(t, (bqr_view){to.data, .ld = none.ld}, i * t->sent.stride, 0);
    }
    const batchqr_operands operands = {.a = from.data, .r = to.data};
    status = bqr_ranks_do(t, BQR_TSQR_NORMS, BATCHQR_GEQR_R, &batch, &operands);
  }
  return status;
}

/* The first rows of Q_r^H C_r, beside R_r. */
static batchqr_status down_c(struct batchqr_tsqr *t, const batchqr_operands *o) {
  const bqr_view c = bqr_view_at(t, c_of(t, o), t->own.top, 0);
  batchqr_status status = apply(t, BQR_TSQR_DOWN, BATCHQR_CONJ_TRANS, vectors(t, o), c, t->more);
  if (!status)
    status = bqr_ranks_move(t, t->own.block, t->more, t->batch.count, c, bqr_view_at(t, t->sent, 0, t->cols));
  return status || !t->form->solves ? status : lengths(t, c);
}

static batchqr_status down_tops(struct batchqr_tsqr *t, const batchqr_operands *o) {
  const int64_t count = t->batch.count;
  const bqr_view to = bqr_view_at(t, t->sent, t->blocks, 0);
  const batchqr_status status = bqr_ranks_move(t, t->own.top, t->cols, count, a_of(t, o), to);
  if (status || !t->form->more) return status;
  return bqr_ranks_move(t, t->own.top, t->more, count, c_of(t, o), bqr_view_at(t, to, 0, t->cols));
}

batchqr_status bqr_ranks_down(struct batchqr_tsqr *t, const batchqr_operands *o) {
  batchqr_status status = BATCHQR_SUCCESS;
  if (t->form->solves)
    status = bqr_ranks_move(t, t->sent_rows, t->cols + t->more, t->batch.count, t->zero, t->sent);
  if (!status && t->own.block > 0) status = wants_r_alone(t) ? local_r(t, o) : local_qr(t, o);
  if (!status && t->more > 0 && t->own.rest > 0) status = down_c(t, o);
  return status ? status : down_tops(t, o);
}

batchqr_status bqr_ranks_spoil(struct batchqr_tsqr *t) {
  return bqr_ranks_move(t, t->sent_rows, t->cols + t->more, t->batch.count, t->nan, t->sent);
}

/* What a function of the communicator says. */
static batchqr_status heed(struct batchqr_tsqr *t, batchqr_status status) {
  const batchqr_communicator *c = t->communicator;
  if (!status) return status;
  t->parted = true;
  return bqr_fail(&t->handle->error, status, "%s", c->message(c->context));
}

/* The same of one that sends. */
static batchqr_status heed_message(struct batchqr_tsqr *t, batchqr_status status) {
  if (status) t->abandoned = true;
  return heed(t, status);
}

static batchqr_status meet_first(struct batchqr_tsqr *t, bqr_condition mine, bqr_condition *worst) {
  return heed(
      t, bqr_meet_first(t->communicator, &t->device, t->handle->stream, t->launched, t->said, mine, worst));
}

batchqr_status bqr_ranks_end_first(struct batchqr_tsqr *t, batchqr_status status) {
  const bqr_error first = t->handle->error;
  bqr_condition worst = BQR_FAILED;
  const batchqr_status met =
      t->parted ? BATCHQR_SUCCESS : meet_first(t, status ? BQR_FAILED : BQR_WELL, &worst);
  t->launched = t->launched || (!met && worst == BQR_WELL);
  if (!status) return met;
  t->handle->error = first;
  return status;
}

batchqr_status bqr_ranks_gather(struct batchqr_tsqr *t, bqr_condition mine) {
  const batchqr_communicator *c = t->communicator;
  const size_t bytes = (size_t)t->sent.stride * (size_t)t->batch.count * bqr_type_bytes(t->batch.type);
  if (bytes == 0) return BATCHQR_SUCCESS;
  bqr_condition worst;
  batchqr_status status = meet_first(t, mine, &worst);
  if (status) return status;
  if (worst == BQR_SPEECHLESS)
    return bqr_fail(&t->handle->error, BATCHQR_RANK_ERROR, "a rank could not send its part");
  status =
      heed_message(t, c->all_gather(c->context, t->sent.data, t->gathered.data, bytes, t->handle->stream));
  return status ? status : heed_message(t, bqr_wait_first(c, &t->device, t->handle->stream, t->launched));
}

/* --- the stack */

static bool blocks_are_equal(const struct batchqr_tsqr *t) {
  for (int r = 0; r < t->communicator->size; r++)
    if (t->rows[r].block != t->blocks) return false;
  return true;
}

/* What rank r has sent of member i. */
static bqr_view sent_by(const struct batchqr_tsqr *t, int r, int64_t i) {
  const bqr_view column = {.data = t->gathered.data, .ld = 1};
  bqr_view x = t->gathered;
  x.data = bqr_view_at(t, column, (r * t->batch.count + i) * t->sent.stride, 0).data;
  return x;
}

/* Equal blocks of `rows` rows of one member lie at even distances, as members of a batch do. */
static batchqr_status stack_evenly(struct batchqr_tsqr *t, int rows, int col, int cols, bqr_view to) {
  const int64_t count = t->batch.count;
  const bqr_view column = {.data = to.data, .ld = 1};
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t i = 0; i < count && !status; i++) {
    bqr_view from = bqr_view_at(t, sent_by(t, 0, i), 0, col), member = to;
    from.stride = count * t->sent.stride;
    member.data = bqr_view_at(t, column, i * to.stride, 0).data;
    member.stride = rows;
    status = bqr_ranks_move(t, rows, cols, t->communicator->size, from, member);
  }
  return status;
}

/* Puts the columns col .. col+cols-1 of what all have sent on top of one another. */
static batchqr_status stack(struct batchqr_tsqr *t, int col, int cols, bqr_view to) {
  const int64_t count = t->batch.count;
  const int size = t->communicator->size;
  if (cols == 0) return BATCHQR_SUCCESS;
  if (t->form->solves) return stack_evenly(t, t->sent_rows, col, cols, to);
  const bool evenly = count < size && blocks_are_equal(t);
  batchqr_status status = BATCHQR_SUCCESS;
  if (evenly) status = stack_evenly(t, t->blocks, col, cols, bqr_view_at(t, to, t->height, 0));
  for (int r = 0; r < size && !status; r++) {
    const bqr_rank_rows *rows = &t->rows[r];
    const bqr_view from = bqr_view_at(t, sent_by(t, r, 0), 0, col);
    if (!evenly)
      status = bqr_ranks_move(t, rows->block, cols, count, from, bqr_view_at(t, to, rows->block_at, 0));
    if (!status)
      status = bqr_ranks_move(t, rows->top, cols, count, bqr_view_at(t, from, t->blocks, 0),
                              bqr_view_at(t, to, rows->top_at, 0));
  }
  return status;
}

/* The batch of the whole matrix, with the stack in its place. */
static batchqr_batch stacked(const struct batchqr_tsqr *t) {
  batchqr_batch batch = t->batch;
  batch.m = t->stack_rows;
  batch.a = bqr_stored(t->stack);
  return batch;
}

static batchqr_status common_qr(struct batchqr_tsqr *t, const batchqr_operands *o) {
  const int m = t->stack_rows, n = t->batch.n;
  batchqr_batch batch = stacked(t);
  batch.tau = (batchqr_storage){.stride = t->common_tau.stride};
  const batchqr_operands operands = {.a = t->stack.data, .tau = t->common_tau.data, .info = o->info};
  batchqr_status status = bqr_ranks_do(t, BQR_TSQR_COMMON, BATCHQR_GEQRF, &batch, &operands);
  if (!status) status = bqr_ranks_copy_r(t, m, n, t->stack, matrix_at(&t->batch.r, o->r));
  batch.n = batch.k = t->formed;
  return status ? status : bqr_ranks_do(t, BQR_TSQR_FORM, BATCHQR_ORGQR, &batch, &operands);
}

/* The routine itself, on the stack. */
static batchqr_status common_routine(struct batchqr_tsqr *t, const batchqr_operands *o) {
  batchqr_batch batch = stacked(t);
  batchqr_operands operands = *o;
  operands.a = t->form->keeps_v && t->cols == 0 ? NULL : t->stack.data; /* as batch_ormqr() wants it */
  if (t->more > 0) {
    batch.c = bqr_stored(t->stack_c);
    operands.c = t->stack_c.data;
  }
  if (wants_u(t)) {
    batch.u = bqr_stored(t->stack_c);
    operands.u = t->stack_c.data;
  }
  const batchqr_status status = bqr_ranks_do(t, BQR_TSQR_COMMON, t->form->op, &batch, &operands);
  if (status || !t->form->solves) return status;
  return bqr_ranks_move(t, t->batch.n, t->batch.k, t->batch.count, t->stack_c, c_of(t, o));
}

/* --- up */

/* The rest's rows of what is formed: Q_r times the rank's rows of the stack's. */
static batchqr_status form_result(struct batchqr_tsqr *t, const batchqr_operands *o, bqr_view from,
                                  bqr_view to, bool in_place) {
  const int m = t->own.rest, n = t->formed, block = t->own.block;
  const int64_t count = t->batch.count;
  const bqr_view x = in_place ? t->work : to;
  batchqr_status status = bqr_ranks_move(t, block, n, count, from, x);
  if (!status) status = bqr_ranks_move(t, m - block, n, count, t->zero, bqr_view_at(t, x, block, 0));
  if (!status)
    status = apply(t, in_place ? BQR_TSQR_UP_WORK : BQR_TSQR_UP, BATCHQR_NO_TRANS, vectors(t, o), x, n);
  return status || !in_place ? status : bqr_ranks_move(t, m, n, count, x, to);
}

static batchqr_status up_c(struct batchqr_tsqr *t, const batchqr_operands *o, bqr_view from) {
  const bqr_view c = bqr_view_at(t, c_of(t, o), t->own.top, 0);
  const batchqr_status status = bqr_ranks_move(t, t->own.block, t->more, t->batch.count, from, c);
  if (status) return status;
  return apply(t, BQR_TSQR_UP, BATCHQR_NO_TRANS, vectors(t, o), c, t->more);
}

/* Into another matrix, or in place of A. */
static batchqr_status up_other(struct batchqr_tsqr *t, const batchqr_operands *o, bqr_view from,
                               bqr_view to) {
  const bool may_be_a = to.ld == t->batch.a.ld && to.stride == t->batch.a.stride;
  batchqr_status status = BATCHQR_SUCCESS;
  if (t->preparing || to.data != o->a) status = form_result(t, o, from, to, false);
  if (!status && (t->preparing ? may_be_a : to.data == o->a)) status = form_result(t, o, from, to, true);
  return status;
}

static batchqr_status up(struct batchqr_tsqr *t, const batchqr_operands *o) {
  const bqr_tsqr_form *form = t->form;
  const bqr_view from = form->result == BQR_A || form->in_steps ? t->stack : t->stack_c,
                 block = bqr_view_at(t, from, t->own.block_at, 0), to = result_of(t, o);
  const batchqr_status status =
      bqr_ranks_move(t, t->own.top, t->batch.n, t->batch.count, bqr_view_at(t, from, t->own.top_at, 0), to);
  if (status || t->own.rest == 0) return status;
  if (form->more) return up_c(t, o, block);
  if (form->result != BQR_A) return up_other(t, o, block, to);
  return form_result(t, o, block, bqr_view_at(t, to, t->own.top, 0), true);
}

batchqr_status bqr_ranks_up(struct batchqr_tsqr *t, const batchqr_operands *o) {
  batchqr_status status = stack(t, 0, t->cols, t->stack);
  if (!status) status = stack(t, t->cols, t->more, t->stack_c);
  if (!status) status = t->form->in_steps ? common_qr(t, o) : common_routine(t, o);
  return status || !wants_result(t) ? status : up(t, o);
}
