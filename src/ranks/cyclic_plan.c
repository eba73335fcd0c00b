/* SPDX-License-Identifier: BSD-3-Clause */
/* Block-cyclic columns over ranks: the routines of every block, and the plan's memory. */
#include "choose.h"
#include "cyclic.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Reflectors are applied to so many elements at once: families may want a copy of what they work on. */
static const int64_t strip_elements = (int64_t)1 << 29;

static bool is_own(const struct batchqr_columns *t, const bqr_cyclic_block *b) {
  return b->rank == t->communicator->rank;
}

/* --- problems */

static bqr_problem problem_of(const struct batchqr_columns *t, int op, int m, int n, int k) {
  return (bqr_problem){.op = op,
                       .type = t->batch.type,
                       .compute = t->handle->compute,
                       .side = BATCHQR_LEFT,
                       .uniform = true,
                       .tall = m >= n,
                       .whole = true,
                       .m = m,
                       .n = n,
                       .k = k,
                       .count = 1};
}

static bqr_problem factor_problem(const struct batchqr_columns *t, const bqr_cyclic_block *b) {
  bqr_problem problem = problem_of(t, BATCHQR_GEQRF, b->rows, b->cols, 0);
  problem.positive = t->handle->positive;
  problem.workspace_limit = SIZE_MAX; /* see geqrf_large_work.c */
  return problem;
}

/* op(Q) of a block applied to so many columns. What xLARFGP leaves may be too long for emulated products. */
static bqr_problem apply_problem(const struct batchqr_columns *t, const bqr_cyclic_block *b, int cols) {
  bqr_problem problem = problem_of(t, BATCHQR_ORMQR, b->rows, cols, b->reflectors);
  problem.trans = t->form->applies ? t->batch.trans : BATCHQR_CONJ_TRANS;
  if (t->handle->positive && !t->form->applies) problem.compute = BATCHQR_COMPUTE_NATIVE;
  return problem;
}

/* Emulated products are exact next to the lengths of R's rows, whose entries may be far apart. */
static bqr_problem subtract_problem(const struct batchqr_columns *t, const bqr_cyclic_block *b) {
  bqr_problem problem = problem_of(t, BQR_MULTIPLY, b->first, b->cols, t->right);
  problem.compute = BATCHQR_COMPUTE_NATIVE;
  problem.subtracts = true;
  return problem;
}

/* --- routines */

static batchqr_status add(struct batchqr_columns *t, int number, bqr_cyclic_step step, bqr_cyclic_queue queue,
                          bqr_problem problem) {
  if (problem.m == 0 || problem.n == 0 || (problem.k == 0 && problem.op == BQR_MULTIPLY))
    return BATCHQR_SUCCESS;
  return bqr_routine_plan(t->handle, &t->device, &problem, &t->queues[queue], &t->routines[number][step]);
}

/* For so many columns in strips. */
static batchqr_status add_strips(struct batchqr_columns *t, int number, bqr_cyclic_step step, int cols) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(t, number);
  batchqr_status status = BATCHQR_SUCCESS;
  if (cols >= t->strip) status = add(t, number, step, BQR_CYCLIC_BESIDE, apply_problem(t, &b, t->strip));
  if (status || cols % t->strip == 0) return status;
  return add(t, number, step + 1, BQR_CYCLIC_BESIDE, apply_problem(t, &b, cols % t->strip));
}

/* Where products make up for it, blocks are formed once for all columns behind them. */
static batchqr_status plan_trailing(struct batchqr_columns *t) {
  const bqr_cyclic_block first = bqr_cyclic_block_at(t, 0);
  const bqr_problem problem = apply_problem(t, &first, t->own);
  const bqr_planner planner = bqr_handle_planner(t->handle);
  bqr_choice choice;
  if (t->form->applies || t->blocks < 2 || t->own == 0 || t->nb % BQR_TRAILING_COLUMNS != 0)
    return BATCHQR_SUCCESS;
  batchqr_status status = bqr_choose(&planner, &problem, 1, &choice, &t->handle->error);
  if (status || !choice.family || !bqr_trailing_serves(choice.family, &problem)) return status;
  const int previous = bqr_device_enter(&t->device);
  status = bqr_trailing_new(&problem, &t->device, &t->trailing);
  if (status)
    bqr_fail(&t->handle->error, status, "%s: %s", choice.family->name, bqr_device_error(&t->device));
  bqr_device_leave(previous);
  return status;
}

static batchqr_status plan_factoring(struct batchqr_columns *t, int number) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(t, number);
  const bool leads = number + 1 < t->blocks;
  batchqr_status status = BATCHQR_SUCCESS;
  if (is_own(t, &b)) status = add(t, number, BQR_CYCLIC_FACTOR, BQR_CYCLIC_AHEAD, factor_problem(t, &b));
  if (status || t->trailing) return status;
  if (leads) {
    const bqr_cyclic_block next = bqr_cyclic_block_at(t, number + 1);
    if (is_own(t, &next))
      status = add(t, number, BQR_CYCLIC_NEXT, BQR_CYCLIC_AHEAD, apply_problem(t, &b, next.cols));
  }
  const int rest = t->own - bqr_cyclic_own_from(t, number + 1 + leads);
  return status ? status : add_strips(t, number, BQR_CYCLIC_REST, rest);
}

static batchqr_status plan_solving(struct batchqr_columns *t, int number) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(t, number);
  const bqr_problem copy = problem_of(t, BQR_COPY, b.first + b.cols, b.cols, 0);
  batchqr_status status = BATCHQR_SUCCESS;
  if (is_own(t, &b)) status = add(t, number, BQR_CYCLIC_SEND_R, BQR_CYCLIC_AHEAD, copy);
  if (status || t->right == 0) return status;
  status = add(t, number, BQR_CYCLIC_SOLVE, BQR_CYCLIC_BESIDE,
               problem_of(t, BATCHQR_TRSM, b.cols, b.cols, t->right));
  return status ? status : add(t, number, BQR_CYCLIC_SUBTRACT, BQR_CYCLIC_BESIDE, subtract_problem(t, &b));
}

static batchqr_status plan_block(struct batchqr_columns *t, int number) {
  const bqr_cyclic_block b = bqr_cyclic_block_at(t, number);
  batchqr_status status = BATCHQR_SUCCESS;
  if (is_own(t, &b))
    status = add(t, number, BQR_CYCLIC_SEND, BQR_CYCLIC_AHEAD, problem_of(t, BQR_COPY, b.rows, b.cols, 0));
  if (!status && !t->form->applies) status = plan_factoring(t, number);
  if (!status) status = add_strips(t, number, BQR_CYCLIC_RIGHT, t->right);
  return status || !t->form->solves ? status : plan_solving(t, number);
}

/* The norms of columns are those of the residuals of systems without unknowns. */
static batchqr_status plan_norms(struct batchqr_columns *t) {
  const batchqr_batch batch = {.type = t->batch.type,
                               .count = 1,
                               .m = t->m - t->n,
                               .k = t->right,
                               .a = {.ld = bqr_max(1, t->m - t->n)},
                               .c = {.ld = t->batch.c.ld},
                               .norms = t->batch.norms};
  if (!t->form->solves || t->right == 0) return BATCHQR_SUCCESS;
  return batchqr_plan_create(t->handle, BATCHQR_GELS, &batch, &t->norms);
}

/* --- memory */

static batchqr_status fill_constants(struct batchqr_columns *t, size_t bytes) {
  const size_t size = bqr_type_bytes(t->batch.type), real = bqr_real_bytes(t->batch.type);
  const double nan = NAN;
  const float nanf = NAN;
  const int nonfinite = BATCHQR_INFO_NONFINITE;
  char *host = malloc(bytes);
  if (!host) return bqr_fail_memory(&t->handle->error, "a plan's constants");
  for (size_t at = 0; at < bytes - size; at += real)
    memcpy(host + at, real == sizeof nan ? (const void *)&nan : (const void *)&nanf, real);
  memcpy(host + bytes - size, &nonfinite, sizeof nonfinite);
  batchqr_status status = BATCHQR_SUCCESS;
  if (t->device.backend == BATCHQR_BACKEND_CUDA)
    status = bqr_memory_fill(&t->device, t->nans, host, bytes, &t->handle->error);
  else
    memcpy(t->nans, host, bytes);
  free(host);
  return status;
}

static batchqr_status allocate(struct batchqr_columns *t) {
  const size_t size = bqr_type_bytes(t->batch.type), cols = (size_t)bqr_min(t->nb, bqr_max(t->n, 1));
  const size_t constants = (cols + 1) * size, norms = batchqr_plan_workspace(t->norms);
  size_t end = 0, at_nans, at_messages[2], at_queues[BQR_CYCLIC_NUM_QUEUES], at_norms, at_trailing;
  bqr_error *error = &t->handle->error;
  /* A message: a block's rows, tau, and info. */
  t->message_bytes = (((size_t)t->m + 1) * cols + 1) * size;
  bool fits = bqr_reserve(&end, constants, 1, &at_nans);
  for (int i = 0; i < 2; i++) fits = fits && bqr_reserve(&end, t->message_bytes, 1, &at_messages[i]);
  for (int i = 0; i < BQR_CYCLIC_NUM_QUEUES; i++)
    fits = fits && bqr_reserve(&end, t->queues[i].workspace_bytes, 1, &at_queues[i]);
  fits = fits && bqr_reserve(&end, norms, 1, &at_norms);
  fits = fits && bqr_reserve(&end, t->trailing ? bqr_trailing_bytes(t->trailing) : 0, 1, &at_trailing);
  if (!fits) return bqr_fail(error, BATCHQR_OUT_OF_MEMORY, "the plan needs more memory than can be counted");
  void *memory;
  const batchqr_status status = bqr_memory_new(&t->device, end, &memory, error);
  if (status) return status;
  t->memory = memory;
  t->memory_bytes = end;
  t->nans = t->memory + at_nans;
  t->nonfinite = (int *)(void *)(t->memory + at_nans + cols * size);
  for (int i = 0; i < 2; i++) t->messages[i] = t->memory + at_messages[i];
  for (int i = 0; i < BQR_CYCLIC_NUM_QUEUES; i++)
    t->queues[i].workspace = t->queues[i].workspace_bytes > 0 ? t->memory + at_queues[i] : NULL;
  if (t->trailing) bqr_trailing_place(t->trailing, t->memory + at_trailing);
  t->norms_workspace = norms > 0 ? t->memory + at_norms : NULL;
  return fill_constants(t, constants);
}

batchqr_status bqr_cyclic_plan(struct batchqr_columns *t) {
  bqr_error *error = &t->handle->error;
  const int64_t most = t->handle->strip_elements ? t->handle->strip_elements : strip_elements;
  const int64_t strip = most / bqr_max(t->m, 1) / t->nb * t->nb;
  t->strip = (int)(strip < t->nb ? t->nb : strip < INT32_MAX ? strip : INT32_MAX);
  t->routines = calloc((size_t)bqr_max(t->blocks, 1), sizeof *t->routines);
  if (!t->routines) return bqr_fail_memory(error, "a plan over ranks");
  batchqr_status status = BATCHQR_SUCCESS;
  if (t->blocks > 0) status = plan_trailing(t);
  for (int i = 0; i < t->blocks && !status; i++) status = plan_block(t, i);
  if (!status) status = plan_norms(t);
  if (!status) status = bqr_streams_new(&t->device, BQR_CYCLIC_NUM_QUEUES, true, &t->streams, error);
  return status ? status : allocate(t);
}
