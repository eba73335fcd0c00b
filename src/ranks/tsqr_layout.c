/* SPDX-License-Identifier: BSD-3-Clause */
/* What TSQR over ranks has where: the rows of each rank, what is sent, the plan's memory. */
#include "tsqr.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static int least(int64_t a, int64_t b) { return (int)(a < b ? a : b); }
static int most(int a, int b) { return a > b ? a : b; }

static const bqr_tsqr_form forms[] = {
    {.op = BATCHQR_GEQR_R, .cols = BQR_N, .stack_cols = BQR_N},
    {.op = BATCHQR_GEQRF,
     .cols = BQR_N,
     .height = BQR_MIN_MN,
     .stack_cols = BQR_N,
     .formed = BQR_MIN_MN,
     .result = BQR_A},
    {.op = BATCHQR_ORGQR,
     .cols = BQR_K,
     .height = BQR_N,
     .stack_cols = BQR_N,
     .formed = BQR_N,
     .least_rows = BQR_N,
     .result = BQR_A},
    {.op = BATCHQR_ORMQR,
     .cols = BQR_K,
     .more = BQR_N,
     .height = BQR_K,
     .stack_cols = BQR_K,
     .least_rows = BQR_K,
     .result = BQR_C,
     .keeps_v = true},
    {.op = BATCHQR_QR,
     .cols = BQR_N,
     .stack_cols = BQR_N,
     .formed = BQR_MIN_MN,
     .result = BQR_C,
     .in_steps = true},
    {.op = BATCHQR_GELS,
     .cols = BQR_N,
     .more = BQR_K,
     .stack_cols = BQR_N,
     .least_rows = BQR_N,
     .solves = true},
    {.op = BATCHQR_GESVD, .cols = BQR_N, .stack_cols = BQR_N, .formed = BQR_MIN_MN, .result = BQR_U},
};

const bqr_tsqr_form *bqr_tsqr_form_of(batchqr_op op) {
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++)
    if (forms[i].op == op) return &forms[i];
  return NULL;
}

static int extent(const struct batchqr_tsqr *t, bqr_extent of) {
  const bqr_dims whole = {least(t->total, INT_MAX), t->batch.n, t->batch.k};
  return bqr_extent_of(of, &t->batch, whole);
}

static void set_sizes(struct batchqr_tsqr *t) {
  const bqr_tsqr_form *form = t->form;
  t->cols = extent(t, form->cols);
  t->more = extent(t, form->more);
  t->height = extent(t, form->height);
  t->stack_cols = extent(t, form->stack_cols);
  t->formed = extent(t, form->formed);
}

/* The rules that speak of the whole matrix. */
static batchqr_status check_total(const struct batchqr_tsqr *t, bqr_error *error) {
  const int least_rows = extent(t, t->form->least_rows);
  if (t->total < least_rows)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "the ranks have %lld rows in all, and %d are needed",
                    (long long)t->total, least_rows);
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_ranks_layout(struct batchqr_tsqr *t, const bqr_proposal *all, bqr_error *error) {
  const int size = t->communicator->size;
  for (int r = 0; r < size; r++) t->total += all[r].m;
  set_sizes(t);
  batchqr_status status = check_total(t, error);
  if (status) return status;
  int64_t at = 0, stacked = t->height;
  for (int r = 0; r < size; at += all[r++].m) {
    bqr_rank_rows *rows = &t->rows[r];
    rows->top = at < t->height ? least(t->height - at, all[r].m) : 0;
    rows->rest = (int)all[r].m - rows->top;
    rows->block = least(rows->rest, t->cols);
    rows->top_at = least(at, t->height);
    rows->block_at = (int)stacked;
    stacked += rows->block;
    t->blocks = most(t->blocks, rows->block);
    t->tops = most(t->tops, rows->top);
    if (stacked > INT_MAX / 2)
      return bqr_fail(error, BATCHQR_UNSUPPORTED, "%d ranks are too many for %d columns", size, t->cols);
  }
  t->own = t->rows[t->communicator->rank];
  t->sent_rows = t->blocks + t->tops + t->form->solves;
  /* GELS takes rows of zeros in the stack, for which all ranks send equally many. */
  if (t->form->solves) stacked = (int64_t)size * t->sent_rows;
  if (stacked > INT_MAX / 2)
    return bqr_fail(error, BATCHQR_UNSUPPORTED, "%d ranks are too many for %d columns", size, t->cols);
  t->stack_rows = (int)stacked;
  return BATCHQR_SUCCESS;
}

/* A matrix of m x n for each of `count` members at the end of the memory: *at is its place. */
static bool place(const struct batchqr_tsqr *t, size_t *end, int m, int n, int64_t count, bqr_view *x,
                  size_t *at) {
  const size_t size = bqr_type_bytes(t->batch.type);
  *x = (bqr_view){.ld = most(1, m), .stride = (int64_t)most(1, m) * n};
  if (x->stride > 0 && (size_t)count > SIZE_MAX / size / (size_t)x->stride) return false;
  return bqr_reserve(end, (size_t)x->stride * (size_t)count, size, at);
}

enum { CONSTANTS, SENT, GATHERED, STACK, STACK_C, TAU, COMMON_TAU, WORK, STEPS, NUM_PLACES };

/* Columns of a copy of this rank's rest: of V where that must stay, of the result where it may be in A's
 * place. */
static int work_cols(const struct batchqr_tsqr *t) {
  if (t->form->keeps_v) return t->cols;
  if (!t->form->result) return 0;
  const batchqr_storage *a = &t->batch.a, *result = bqr_storage_at(&t->batch, (int)t->form->result);
  return result->ld == a->ld && result->stride == a->stride ? t->formed : 0;
}

static batchqr_status fill_constants(struct batchqr_tsqr *t, bqr_error *error) {
  const batchqr_type type = t->batch.type;
  char bytes[2 * BQR_ALIGNMENT] = {0};
  float nans = NAN;
  double nan = NAN;
  if (type == BATCHQR_S || type == BATCHQR_C)
    memcpy(bytes + BQR_ALIGNMENT, &nans, sizeof nans);
  else
    memcpy(bytes + BQR_ALIGNMENT, &nan, sizeof nan);
  if (t->handle->device.backend == BATCHQR_BACKEND_CUDA)
    return bqr_memory_fill(&t->handle->device, t->zero.data, bytes, sizeof bytes, error);
  memcpy(t->zero.data, bytes, sizeof bytes);
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_ranks_allocate(struct batchqr_tsqr *t, bqr_error *error) {
  const int64_t count = t->batch.count, size = t->communicator->size;
  const bool of_u = t->form->result == BQR_U;
  size_t end = 0, at[NUM_PLACES];
  bool fits =
      bqr_reserve(&end, 2, BQR_ALIGNMENT, &at[CONSTANTS]) &&
      place(t, &end, t->sent_rows, t->cols + t->more, count, &t->sent, &at[SENT]) &&
      place(t, &end, t->sent_rows, t->cols + t->more, size * count, &t->gathered, &at[GATHERED]) &&
      place(t, &end, t->stack_rows, t->stack_cols, count, &t->stack, &at[STACK]) &&
      place(t, &end, t->stack_rows, most(t->more, of_u ? t->formed : 0), count, &t->stack_c, &at[STACK_C]) &&
      place(t, &end, most(1, t->own.block), 1, count, &t->tau, &at[TAU]) &&
      place(t, &end, most(1, t->cols), 1, count, &t->common_tau, &at[COMMON_TAU]) &&
      place(t, &end, t->own.rest, work_cols(t), count, &t->work, &at[WORK]) &&
      bqr_reserve(&end, t->workspace_bytes, 1, &at[STEPS]);
  if (!fits) return bqr_fail(error, BATCHQR_OUT_OF_MEMORY, "the plan needs more memory than can be counted");
  if (t->preparing) return BATCHQR_SUCCESS;
  batchqr_status status = bqr_memory_new(&t->handle->device, end, &t->memory, error);
  if (status) return status;
  char *memory = t->memory;
  t->memory_bytes = end;
  t->zero = (bqr_view){.data = memory};
  t->nan = (bqr_view){.data = memory + BQR_ALIGNMENT};
  bqr_view *views[] = {NULL,        &t->sent, &t->gathered,   &t->stack,
                       &t->stack_c, &t->tau,  &t->common_tau, &t->work};
  for (int i = SENT; i < STEPS; i++) views[i]->data = memory + at[i];
  t->workspace = t->workspace_bytes ? memory + at[STEPS] : NULL;
  return fill_constants(t, error);
}
