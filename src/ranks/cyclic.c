/* SPDX-License-Identifier: BSD-3-Clause */
/* Block-cyclic columns over ranks: plans, and what is checked. */
#include "cyclic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- whose columns are where */

int batchqr_columns_count(int n, int nb, int rank, int size) {
  if (n < 0 || nb < 1 || size < 1 || rank < 0 || rank >= size) return 0;
  const int full = n / nb, turns = full / size, rest = full % size;
  const int last = rank == rest ? n % nb : 0;
  return (turns + (rank < rest)) * nb + last;
}

int bqr_cyclic_own_from(const struct batchqr_columns *t, int number) {
  const int64_t first = (int64_t)number * t->nb;
  const int before = first < t->n ? (int)first : t->n;
  return batchqr_columns_count(before, t->nb, t->communicator->rank, t->communicator->size);
}

bqr_cyclic_block bqr_cyclic_block_at(const struct batchqr_columns *t, int number) {
  const int size = t->communicator->size, first = number * t->nb;
  bqr_cyclic_block b = {.first = first,
                        .cols = bqr_min(t->nb, t->n - first),
                        .rows = t->m - first,
                        .rank = number % size,
                        .local = number / size * t->nb};
  b.reflectors = bqr_min(b.rows, b.cols);
  return b;
}

/* --- what is checked before a word is said */

static const bqr_cyclic_form forms[] = {
    {.op = BATCHQR_GEQRF, .cols = BQR_N},
    {.op = BATCHQR_ORMQR, .cols = BQR_K, .right = BQR_N, .applies = true},
    {.op = BATCHQR_GELS, .cols = BQR_N, .right = BQR_K, .solves = true},
};

static const bqr_cyclic_form *form_of(batchqr_op op) {
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
    if (forms[i].op == op) return &forms[i];
  return NULL;
}

/* The field of the batch that an extent is. */
static int *field_of(batchqr_batch *batch, bqr_extent extent) {
  return extent == BQR_K ? &batch->k : &batch->n;
}

static int extent(const struct batchqr_columns *t, bqr_extent of) {
  return bqr_extent_of(of, &t->batch, (bqr_dims){t->batch.m, t->batch.n, t->batch.k});
}

static batchqr_status check_form(const struct batchqr_columns *t, bqr_error *error) {
  const bqr_operation *operation = t->operation;
  const batchqr_batch *b = &t->batch;
  const int cols = extent(t, t->form->cols);
  const batchqr_status no = BATCHQR_UNSUPPORTED, invalid = BATCHQR_INVALID_ARGUMENT;
  if (b->sizes != BATCHQR_UNIFORM || b->count != 1)
    return bqr_fail(error, no, "batch.count = %lld: columns are spread of one matrix", (long long)b->count);
  if (b->a.layout != BATCHQR_STRIDED || b->c.layout != BATCHQR_STRIDED || b->tau.layout != BATCHQR_STRIDED)
    return bqr_fail(error, no, "a layout of batch: over ranks, a matrix is one address");
  if (bqr_by_strides(&b->a))
    return bqr_fail(error, no, "batch.a.row_stride: over ranks, matrices are stored by columns");
  if (b->keep_a) return bqr_fail(error, no, "batch.keep_a: over ranks, A is written");
  if (operation->transposed == 'A' && b->trans != BATCHQR_NO_TRANS)
    return bqr_fail(error, no, "batch.trans: over ranks, A is not transposed");
  if (t->form->solves && b->m < b->n)
    return bqr_fail(error, no, "batch.m = %d, batch.n = %d: over ranks, A is not wide", b->m, b->n);
  if (operation->reads_side && b->side != BATCHQR_LEFT)
    return bqr_fail(error, no, "batch.side: over ranks, Q stands on the left");
  if (t->form->applies && b->k > b->m)
    return bqr_fail(error, invalid, "batch.k = %d, but batch.m = %d", b->k, b->m);
  if (cols < 0)
    return bqr_fail(error, invalid, "batch.%c = %d is negative", t->form->cols == BQR_K ? 'k' : 'n', cols);
  if (t->nb < 1) return bqr_fail(error, invalid, "nb = %d is not positive", t->nb);
  return BATCHQR_SUCCESS;
}

static batchqr_status check_problem(struct batchqr_columns *t, batchqr_op op, const batchqr_batch *batch) {
  bqr_error *error = &t->handle->error;
  t->form = form_of(op);
  if (!t->form)
    return bqr_fail(error, BATCHQR_UNSUPPORTED, "op = %d cannot be done with columns over ranks", (int)op);
  if (!batch) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  t->operation = bqr_registry_operation(bqr_registry_builtin(), (int)op);
  batchqr_status status = bqr_check_enums(t->operation, batch, BQR_PLANNED, error);
  if (status) return status;
  t->batch = bqr_batch_normalized(t->operation, batch);
  status = check_form(t, error);
  if (!status) status = bqr_check_communicator(t->handle, t->communicator, error);
  if (status) return status;
  t->m = t->batch.m;
  t->n = extent(t, t->form->cols);
  t->own = batchqr_columns_count(t->n, t->nb, t->communicator->rank, t->communicator->size);
  t->right = extent(t, t->form->right);
  t->blocks = (int)(((int64_t)bqr_min(t->m, t->n) + t->nb - 1) / t->nb);
  batchqr_batch part = t->batch; /* what this rank has */
  *field_of(&part, t->form->cols) = t->own;
  return bqr_check_batch(t->operation, &part, BQR_PLANNED, error);
}

/* --- plans */

/* A line for each step and each choice that is made for it. */
static size_t describe(const struct batchqr_columns *t, char *text, size_t size) {
  static const char *const names[] = {"factor", "send",        "next",   "rest",  "rest, last",
                                      "right",  "right, last", "send R", "solve", "subtract"};
  size_t at = (size_t)snprintf(text, size, "rank %d of %d, %d x %d, %d columns of it, blocks of %d\n",
                               t->communicator->rank, t->communicator->size, t->m, t->n, t->own, t->nb);
  if (t->trailing)
    at += (size_t)snprintf(text ? text + at : NULL, text ? size - at : 0,
                           "next, rest: I - V T V^H, formed once for each block, by products\n");
  for (int step = 0; step < BQR_CYCLIC_NUM_STEPS; step++) {
    const bqr_routine *last = NULL;
    for (int i = 0; i < t->blocks; i++) {
      const bqr_routine *r = &t->routines[i][step];
      if (!r->family || (last && last->variant == r->variant && last->family == r->family)) continue;
      at += (size_t)snprintf(text ? text + at : NULL, text ? size - at : 0,
                             "%s, from block %d on: %d x %d %c %s %s (%s)\n", names[step], i, r->problem.m,
                             r->problem.n, "sdcz"[r->problem.type], r -> family -> name, r -> variant -> name,
                             r -> source);
      last = r;
    }
  }
  return at;
}

static batchqr_status make(struct batchqr_columns *t) {
  batchqr_status status = bqr_cyclic_plan(t);
  if (status) return status;
  const size_t size = describe(t, NULL, 0) + 1;
  t->description = malloc(size);
  if (!t->description) return bqr_fail_memory(&t->handle->error, "a plan's description");
  describe(t, t->description, size);
  return BATCHQR_SUCCESS;
}

/* The common numbers: columns of C are each rank's own. */
static void propose(const struct batchqr_columns *t, bqr_collective call, batchqr_op op, bqr_proposal *mine) {
  bqr_propose(t->handle, call, op, &t->batch, mine);
  mine->common[BQR_COMMON_M] = t->batch.m;
  mine->common[BQR_COMMON_BLOCK] = t->nb;
  if (t->form && t->form->right == BQR_N) mine->common[BQR_COMMON_N] = 0;
  if (t->form && t->form->right == BQR_K) mine->common[BQR_COMMON_K] = 0;
}

static batchqr_status plan_over(struct batchqr_columns *t, batchqr_op op, const batchqr_batch *batch,
                                bqr_proposal *all) {
  bqr_error *error = &t->handle->error;
  bqr_proposal mine;
  batchqr_status status = check_problem(t, op, batch);
  propose(t, BQR_CALL_COLUMNS_PROBLEM, op, &mine);
  status = bqr_agree(t->communicator, &mine, status, all, error);
  if (status) return status;
  status = make(t);
  propose(t, BQR_CALL_COLUMNS_PLAN, op, &mine);
  return bqr_agree(t->communicator, &mine, status, all, error);
}

batchqr_status batchqr_columns_create(batchqr_handle_t handle, const batchqr_communicator *communicator,
                                      batchqr_op op, const batchqr_batch *batch, int nb,
                                      batchqr_columns_t *plan) {
  bqr_error unheard, *error = handle ? &handle->error : &unheard;
  if (plan) *plan = NULL;
  if (!communicator) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "communicator is NULL");
  if (!handle || !plan)
    return bqr_decline(communicator,
                       bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is NULL", handle ? "plan" : "handle"),
                       error);
  const size_t size = (size_t)(communicator->size > 0 ? communicator->size : 1);
  struct batchqr_columns *t = calloc(1, sizeof *t);
  bqr_proposal *all = calloc(size, sizeof *all);
  batchqr_status status;
  if (t) t->said = calloc(size, 1);
  if (t && t->said && all) {
    t->handle = handle;
    t->device = handle->device;
    t->communicator = communicator;
    t->nb = nb;
    status = plan_over(t, op, batch, all);
  } else
    status = bqr_decline(communicator, bqr_fail_memory(error, "a plan over ranks"), error);
  free(all);
  if (status)
    batchqr_columns_destroy(t);
  else
    *plan = t;
  return status;
}

/* --- execution */

static batchqr_status check_operands(const struct batchqr_columns *t, const batchqr_operands *o) {
  struct batchqr_handle *h = t->handle;
  if (!o) return bqr_fail(&h->error, BATCHQR_INVALID_ARGUMENT, "operands is NULL");
  batchqr_status status = bqr_check_address(h, "a", o->a, (int64_t)t->m * t->own);
  if (!status && bqr_use_at(t->operation, BQR_TAU))
    status = bqr_check_address(h, "tau", o->tau, bqr_min(t->m, t->n));
  return status ? status : bqr_check_address(h, "c", o->c, (int64_t)t->m * t->right);
}

batchqr_status batchqr_columns_execute(batchqr_handle_t handle, batchqr_columns_t plan,
                                       const batchqr_operands *operands) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  if (!plan) return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "plan is NULL");
  batchqr_status status = BATCHQR_SUCCESS;
  if (plan->handle != handle)
    status = bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "the plan was made with another handle");
  if (!status) status = check_operands(plan, operands);
  const int previous = bqr_device_enter(&plan->device);
  status = bqr_cyclic_run(plan, operands, status);
  bqr_device_leave(previous);
  return status;
}

size_t batchqr_columns_memory(batchqr_columns_t plan) { return plan ? plan->memory_bytes : 0; }

const char *batchqr_columns_describe(batchqr_columns_t plan) { return plan ? plan->description : ""; }

void batchqr_columns_destroy(batchqr_columns_t plan) {
  if (!plan) return;
  for (int i = 0; plan->routines && i < plan->blocks; i++)
    for (int step = 0; step < BQR_CYCLIC_NUM_STEPS; step++) bqr_routine_free(&plan->routines[i][step]);
  bqr_trailing_free(plan->trailing);
  for (int i = 0; i < BQR_CYCLIC_NUM_QUEUES; i++) bqr_queue_free(&plan->queues[i]);
  bqr_streams_free(plan->streams);
  batchqr_plan_destroy(plan->norms);
  if (plan->memory && !plan->abandoned) bqr_memory_free(&plan->device, plan->memory);
  free(plan->routines);
  free(plan->said);
  free(plan->description);
  free(plan);
}
