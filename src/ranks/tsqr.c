/* SPDX-License-Identifier: BSD-3-Clause */
/* TSQR over ranks: plans, and what is checked. */
#include "tsqr.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- what is checked before a word is said */

/* A rank's rows alone need not be as many as an operation asks for: the rules are those of the whole. */
static batchqr_batch with_few_columns(const bqr_operation *operation, batchqr_batch batch) {
  if (batch.m < 0) return batch;
  if (operation->k == BQR_REFLECTORS) batch.k = bqr_min(batch.k, batch.m);
  if (operation->tall) batch.n = bqr_min(batch.n, batch.m);
  return batch;
}

static batchqr_status check_form(const bqr_operation *operation, const batchqr_batch *b, bqr_error *error) {
  const batchqr_status no = BATCHQR_UNSUPPORTED;
  if (b->sizes != BATCHQR_UNIFORM)
    return bqr_fail(error, no, "batch.sizes: over ranks, members have one size");
  if (bqr_batch_has_pointers(operation, b))
    return bqr_fail(error, no, "a layout of batch: over ranks, members lie at strides");
  if (bqr_by_strides(&b->a) || bqr_by_strides(&b->c) || bqr_by_strides(&b->r))
    return bqr_fail(error, no, "a row_stride of batch: over ranks, matrices are stored by columns");
  if (b->keep_a) return bqr_fail(error, no, "batch.keep_a: over ranks, A is written");
  if (operation->transposed == 'A' && b->trans != BATCHQR_NO_TRANS)
    return bqr_fail(error, no, "batch.trans: over ranks, A is not transposed");
  if (operation->reads_side && b->side != BATCHQR_LEFT)
    return bqr_fail(error, no, "batch.side: over ranks, Q stands on the left");
  return BATCHQR_SUCCESS;
}

static batchqr_status check_problem(struct batchqr_handle *h, const batchqr_communicator *c, batchqr_op op,
                                    const batchqr_batch *batch, batchqr_batch *normalized) {
  bqr_error *error = &h->error;
  if (!bqr_tsqr_form_of(op))
    return bqr_fail(error, BATCHQR_UNSUPPORTED, "op = %d cannot be done over ranks", (int)op);
  if (!batch) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  const bqr_operation *operation = bqr_registry_operation(bqr_registry_builtin(), (int)op);
  batchqr_status status = bqr_check_enums(operation, batch, BQR_PLANNED, error);
  if (status) return status;
  *normalized = bqr_batch_normalized(operation, batch);
  status = check_form(operation, normalized, error);
  const batchqr_batch part = with_few_columns(operation, *normalized);
  if (!status) status = bqr_check_batch(operation, &part, BQR_PLANNED, error);
  if (!status && (normalized->n < 0 || normalized->k < 0 || normalized->k > INT32_MAX / 2))
    status =
        bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch.n = %d, batch.k = %d", normalized->n, normalized->k);
  if (!status && operation->k == BQR_REFLECTORS && operation->tall && normalized->k > normalized->n)
    status = bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch.k = %d, but batch.n = %d", normalized->k,
                      normalized->n);
  return status ? status : bqr_check_communicator(h, c, error);
}

/* --- plans */

static uint64_t hash_of(const struct batchqr_tsqr *t) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (bqr_tsqr_step i = BQR_TSQR_COMMON; i <= BQR_TSQR_FORM; i++)
    for (const char *at = batchqr_plan_describe(t->steps[i]); *at; at++)
      hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
  return hash;
}

static batchqr_status describe(struct batchqr_tsqr *t, bqr_error *error) {
  size_t size = 256, at;
  for (int i = 0; i < BQR_TSQR_NUM_STEPS; i++) size += strlen(batchqr_plan_describe(t->steps[i])) + 1;
  t->description = malloc(size);
  if (!t->description) return bqr_fail_memory(error, "a plan's description");
  at = (size_t)snprintf(
      t->description, size, "rank %d of %d, %lld rows in all, %lld elements from each for each member\n",
      t->communicator->rank, t->communicator->size, (long long)t->total, (long long)t->sent.stride);
  for (int i = 0; i < BQR_TSQR_NUM_STEPS; i++)
    at += (size_t)snprintf(t->description + at, size - at, "%s", batchqr_plan_describe(t->steps[i]));
  return BATCHQR_SUCCESS;
}

/* Plans the steps, and readies the kernels that copy; `run` without addresses. */
static batchqr_status prepare(struct batchqr_tsqr *t, bqr_error *error) {
  const batchqr_operands none = {.a = NULL};
  t->preparing = true;
  batchqr_status status = bqr_ranks_allocate(t, error);
  if (!status) status = bqr_ranks_spoil(t);
  if (!status) status = bqr_ranks_down(t, &none);
  if (!status) status = bqr_ranks_up(t, &none);
  t->preparing = false;
  if (!status) status = bqr_ranks_allocate(t, error);
  return status ? status : describe(t, error);
}

static batchqr_status plan_over(struct batchqr_tsqr *t, bqr_proposal *mine, batchqr_status status,
                                bqr_proposal *all, bqr_error *error) {
  status = bqr_agree(t->communicator, mine, status, all, error);
  if (!status) status = bqr_ranks_layout(t, all, error);
  if (status) return status;
  if (t->form->in_steps && t->batch.r.ld < t->formed)
    status = bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch.r.ld = %d, and R has %d rows", t->batch.r.ld,
                      t->formed);
  if (!status) status = prepare(t, error);
  bqr_propose(t->handle, BQR_CALL_TSQR_PLAN, t->form->op, &t->batch, mine);
  if (!status) mine->common[BQR_COMMON_PLAN] = (int64_t)hash_of(t);
  return bqr_agree(t->communicator, mine, status, all, error);
}

batchqr_status batchqr_tsqr_create(batchqr_handle_t handle, const batchqr_communicator *communicator,
                                   batchqr_op op, const batchqr_batch *batch, batchqr_tsqr_t *plan) {
  bqr_error unheard, *error = handle ? &handle->error : &unheard;
  if (plan) *plan = NULL;
  if (!communicator) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "communicator is NULL");
  batchqr_status status = BATCHQR_SUCCESS;
  if (!handle || !plan)
    return bqr_decline(communicator,
                       bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is NULL", handle ? "plan" : "handle"),
                       error);
  batchqr_batch normalized = {.m = 0};
  status = check_problem(handle, communicator, op, batch, &normalized);
  const size_t size = (size_t)(communicator->size > 0 ? communicator->size : 1);
  struct batchqr_tsqr *t = calloc(1, sizeof *t);
  bqr_proposal mine, *all = calloc(size, sizeof *all);
  if (t) t->rows = calloc(size, sizeof *t->rows), t->said = calloc(size, 1);
  if (!t || !all || !t->rows || !t->said) {
    batchqr_tsqr_destroy(t);
    free(all);
    return bqr_decline(communicator, status ? status : bqr_fail_memory(error, "a plan over ranks"), error);
  }
  t->handle = handle;
  t->device = handle->device;
  t->communicator = communicator;
  t->form = bqr_tsqr_form_of(op);
  t->batch = normalized;
  bqr_propose(handle, BQR_CALL_TSQR_PROBLEM, op, &normalized, &mine);
  status = plan_over(t, &mine, status, all, error);
  free(all);
  if (status)
    batchqr_tsqr_destroy(t);
  else
    *plan = t;
  return status;
}

/* --- execution */

/* The shape of an operand on this rank; tau, R, s and V have that of the whole matrix. */
static int64_t elements_of(const struct batchqr_tsqr *t, const bqr_use *use) {
  const bool whole =
      use->place == BQR_TAU || use->place == BQR_R || use->place == BQR_S || use->place == BQR_V;
  bqr_dims sizes = {t->batch.m, t->batch.n, t->batch.k};
  if (whole) sizes.m = (int)(t->total < INT32_MAX ? t->total : INT32_MAX);
  const bqr_shape shape = bqr_shape_of(use, &t->batch, sizes);
  return (int64_t)shape.rows * shape.cols;
}

static batchqr_status check_operands(const struct batchqr_tsqr *t, const batchqr_operands *o) {
  bqr_error *error = &t->handle->error;
  if (!o) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "operands is NULL");
  const bqr_operation *operation = bqr_registry_operation(bqr_registry_builtin(), (int)t->form->op);
  batchqr_status status = BATCHQR_SUCCESS;
  for (const bqr_use *use = operation->uses; use->place && !status; use++) {
    const bool wanted = !(use->access & BQR_OPTIONAL) || (use->place == BQR_U && t->batch.u.ld > 0);
    if (wanted)
      status = bqr_check_address(t->handle, bqr_places[use->place].name, bqr_address_at(o, (int)use->place),
                                 t->batch.count > 0 ? elements_of(t, use) : 0);
  }
  const int result = (int)t->form->result;
  const bqr_use *use = status ? NULL : bqr_use_at(operation, result);
  if (!use || !(use->access & BQR_MAY_BE_A)) return status;
  const batchqr_storage *a = &t->batch.a, *other = bqr_storage_at(&t->batch, result);
  const void *address = bqr_address_at(o, result);
  if (address && address == o->a && (other->ld != a->ld || other->stride != a->stride))
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "operands.%s is operands.a, and stored otherwise",
                    bqr_places[result].name);
  return status;
}

static batchqr_status execute(struct batchqr_tsqr *t, const batchqr_operands *operands,
                              batchqr_status status) {
  if (!status) status = bqr_ranks_down(t, operands);
  if (status) {
    /* The others are not to wait in vain; the text stays that of the first error. */
    const bqr_error first = t->handle->error;
    bqr_ranks_gather(t, bqr_ranks_spoil(t) ? BQR_SPEECHLESS : BQR_FAILED);
    t->handle->error = first;
    return status;
  }
  status = bqr_ranks_gather(t, BQR_WELL);
  return status ? status : bqr_ranks_up(t, operands);
}

batchqr_status batchqr_tsqr_execute(batchqr_handle_t handle, batchqr_tsqr_t plan,
                                    const batchqr_operands *operands) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  if (!plan) return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "plan is NULL");
  batchqr_status status = BATCHQR_SUCCESS;
  if (plan->handle != handle)
    status = bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "the plan was made with another handle");
  if (!status) status = check_operands(plan, operands);
  plan->parted = false;
  bqr_finish_first(plan->communicator, &plan->device, plan->handle->stream, plan->launched);
  return bqr_ranks_end_first(plan, execute(plan, operands, status));
}

size_t batchqr_tsqr_memory(batchqr_tsqr_t plan) { return plan ? plan->memory_bytes : 0; }

const char *batchqr_tsqr_describe(batchqr_tsqr_t plan) { return plan ? plan->description : ""; }

void batchqr_tsqr_destroy(batchqr_tsqr_t plan) {
  if (!plan) return;
  for (int i = 0; i < BQR_TSQR_NUM_STEPS; i++) batchqr_plan_destroy(plan->steps[i]);
  if (plan->memory && !plan->abandoned) bqr_memory_free(&plan->device, plan->memory);
  free(plan->rows);
  free(plan->said);
  free(plan->description);
  free(plan);
}
