/* SPDX-License-Identifier: BSD-3-Clause */
/* batchqr itself. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct state {
  bench_job *job;
  batchqr_batch batch;
  batchqr_operands operands;
  batchqr_plan_t plan;
  void *workspace;
  size_t workspace_bytes;
  bool one_call;
  int forced_op; /* -1: none */
  int *sizes;    /* m, n and k of all members; NULL: uniform */
} state;

static batchqr_batch describe_batch(const bench_job *job, batchqr_layout layout) {
  const bench_case *what = &job->what;
  batchqr_batch batch = {.type = what->type, .count = what->batch};
  const bool gels = what->routine == BATCHQR_GELS;
  batch.m = what->m, batch.n = what->n, batch.k = gels ? 1 : job->k;
  batch.side = BATCHQR_LEFT, batch.trans = gels ? BATCHQR_NO_TRANS : BATCHQR_CONJ_TRANS;
  batch.a = (batchqr_storage){.layout = layout, .ld = what->m, .stride = job->size_a};
  batch.c = batch.a; /* qr writes Q over A; ormqr's C is as large as V */
  if (gels) batch.c = (batchqr_storage){.layout = layout, .ld = (int)job->size_c, .stride = job->size_c};
  batch.r = (batchqr_storage){.layout = layout, .ld = job->k, .stride = job->size_r};
  batch.tau = (batchqr_storage){.layout = layout, .stride = job->k};
  return batch;
}

/* Says the same with sizes in host arrays, which a repeated call has to compare. */
static int *make_host_sizes(batchqr_batch *batch) {
  const size_t count = (size_t)batch->count;
  int *sizes = malloc(3 * count * sizeof *sizes), *m = sizes, *n = m + count, *k = n + count;
  if (!sizes) bench_die("out of memory");
  for (size_t i = 0; i < count; i++) m[i] = batch->m, n[i] = batch->n, k[i] = batch->k;
  batch->sizes = BATCHQR_HOST_SIZES;
  batch->m_array = m, batch->n_array = n, batch->k_array = k;
  return sizes;
}

static batchqr_operands choose_operands(const bench_job *job, batchqr_layout layout) {
  bool arrays = layout == BATCHQR_POINTERS, qr = job->what.routine == BATCHQR_QR;
  batchqr_operands operands = {.a = job->a, .tau = job->tau, .c = qr ? job->a : job->c, .r = job->r};
  if (arrays) {
    operands.a = job->a_array, operands.tau = job->tau_array, operands.r = job->r_array;
    operands.c = qr ? job->a_array : job->c_array;
  }
  return operands;
}

/* Joins what the plan's steps use, in order, without repetitions: "geqrf_block+copy_r_block". */
static void describe_steps(batchqr_plan_t plan, bench_facts *facts) {
  char last[2 * BENCH_TEXT] = "", now[2 * BENCH_TEXT];
  for (int i = 0; i < bqr_plan_num_steps(plan); i++) {
    bqr_step_info step = bqr_plan_step(plan, i);
    snprintf(now, sizeof now, "%s %s", step.family, step.variant);
    if (!strcmp(now, last)) continue;
    memcpy(last, now, sizeof last);
    size_t f = strlen(facts->family), v = strlen(facts->variant);
    snprintf(facts->family + f, BENCH_TEXT - f, "%s%s", f ? "+" : "", step.family);
    snprintf(facts->variant + v, BENCH_TEXT - v, "%s%s", v ? "+" : "", step.variant);
  }
}

static bool step_uses(batchqr_plan_t plan, const char *family) {
  for (int i = 0; i < bqr_plan_num_steps(plan); i++)
    if (!strcmp(bqr_plan_step(plan, i).family, family)) return true;
  return false;
}

static bool force(state *s, const bench_choice *choice, char why[BENCH_TEXT]) {
  s->forced_op = -1;
  if (!choice->family) return true;
  const bqr_family *family = bqr_family_find(choice->family);
  if (!family) return snprintf(why, BENCH_TEXT, "there is no family '%s'", choice->family), false;
  batchqr_handle_t handle = s->job->target->handle;
  if (bqr_force(handle, family->op, choice->family, choice->variant) != BATCHQR_SUCCESS)
    return snprintf(why, BENCH_TEXT, "%s", batchqr_error_message(handle)), false;
  s->forced_op = family->op;
  return true;
}

static bool plan(state *s, const bench_choice *choice, char why[BENCH_TEXT]) {
  bench_target *target = s->job->target;
  const bench_case *what = &s->job->what;
  if (batchqr_set_compute(target->handle, what->compute) != BATCHQR_SUCCESS ||
      batchqr_plan_create(target->handle, what->routine, &s->batch, &s->plan) != BATCHQR_SUCCESS)
    return snprintf(why, BENCH_TEXT, "%s", batchqr_error_message(target->handle)), false;
  if (choice->family && !step_uses(s->plan, choice->family))
    return snprintf(why, BENCH_TEXT, "%s takes no part in %s", choice->family,
                    bench_routine_name(what->routine)),
           false;
  s->workspace_bytes = batchqr_plan_workspace(s->plan);
  if (s->workspace_bytes && !s->one_call) {
    s->workspace = bench_job_workspace(s->job, s->workspace_bytes);
    if (!s->workspace)
      return snprintf(why, BENCH_TEXT, "no memory for %zu bytes of workspace", s->workspace_bytes), false;
  }
  return true;
}

static void close_ours(void *context) {
  state *s = context;
  bench_target *target = s->job->target;
  batchqr_plan_destroy(s->plan);
  if (s->forced_op >= 0) bqr_force(target->handle, s->forced_op, NULL, NULL);
  free(s->sizes);
  free(s);
}

static void *open_ours(bench_job *job, const bench_impl_options *options, bench_facts *facts,
                       char why[BENCH_TEXT]) {
  if (options->layout == BATCHQR_POINTERS && !bench_job_pointers(job))
    return snprintf(why, BENCH_TEXT, "no memory for the arrays of addresses"), NULL;
  state *s = calloc(1, sizeof *s);
  if (!s) bench_die("out of memory");
  s->job = job;
  s->one_call = options->one_call;
  s->batch = describe_batch(job, options->layout);
  if (options->sizes == BATCHQR_HOST_SIZES) s->sizes = make_host_sizes(&s->batch);
  s->operands = choose_operands(job, options->layout);
  if (!force(s, &options->choice, why) || !plan(s, &options->choice, why)) return close_ours(s), NULL;
  describe_steps(s->plan, facts);
  facts->launches = batchqr_plan_launches(s->plan);
  facts->workspace = (int64_t)s->workspace_bytes;
  facts->layout = options->layout;
  facts->sizes = options->sizes;
  return s;
}

static batchqr_status call(const state *s) {
  batchqr_handle_t handle = s->job->target->handle;
  const batchqr_operands *o = &s->operands;
  switch (s->job->what.routine) {
  case BATCHQR_GEQRF:
    return batch_geqrf(handle, &s->batch, o->a, o->tau, NULL);
  case BATCHQR_ORGQR:
    return batch_orgqr(handle, &s->batch, o->a, o->tau, NULL);
  case BATCHQR_ORMQR:
    return batch_ormqr(handle, &s->batch, s->batch.side, s->batch.trans, o->a, o->tau, o->c, NULL);
  case BATCHQR_QR:
    return batch_qr(handle, &s->batch, o->a, o->c, o->r, NULL);
  case BATCHQR_GELS:
    return batch_gels(handle, &s->batch, s->batch.trans, o->a, o->c, NULL, NULL);
  case BATCHQR_GEQR_R:
    return batch_geqr_r(handle, &s->batch, o->a, o->r, NULL);
  default: /* no case is made of the others */
    return BATCHQR_UNSUPPORTED;
  }
}

static bool run_ours(void *context) {
  const state *s = context;
  batchqr_handle_t handle = s->job->target->handle;
  batchqr_status status =
      s->one_call ? call(s)
                  : batchqr_plan_execute(handle, s->plan, &s->operands, s->workspace, s->workspace_bytes);
  if (status == BATCHQR_SUCCESS) return true;
  fprintf(stderr, "bench: batchqr: %s: %s\n", batchqr_status_string(status), batchqr_error_message(handle));
  return false;
}

const bench_impl bench_ours = {
    .name = "batchqr", .routines = ~0u, .open = open_ours, .run = run_ours, .close = close_ours};
