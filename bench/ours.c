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
  const lab_member *x = &job->member;
  batchqr_batch batch = {.type = x->type,
                         .count = job->what.batch,
                         .m = x->m,
                         .n = x->n,
                         .k = x->k,
                         .side = x->side,
                         .trans = x->trans,
                         .power_steps = 2};
  for (const bqr_use *use = x->operation->uses; use->place; use++) {
    if (!job->now[use->place]) continue; /* not wanted */
    const int64_t each = (int64_t)bqr_kind_bytes(use->kind, x->type);
    *(batchqr_storage *)bqr_storage_at(&batch, (int)use->place) =
        (batchqr_storage){.layout = layout,
                          .ld = use->kind == BQR_MATRIX ? x->ld[use->place] : 0,
                          .stride = job->size[use->place] / each};
  }
  return batch;
}

/* Says the same with sizes in host arrays, which a repeated call has to compare. */
static int *make_host_sizes(batchqr_batch *batch) {
  const size_t count = (size_t)batch->count;
  int *sizes = memory_host(3 * count * sizeof *sizes), *m = sizes, *n = m + count, *k = n + count;
  for (size_t i = 0; i < count; i++) m[i] = batch->m, n[i] = batch->n, k[i] = batch->k;
  batch->sizes = BATCHQR_HOST_SIZES;
  batch->m_array = m, batch->n_array = n, batch->k_array = k;
  return sizes;
}

static batchqr_operands choose_operands(const bench_job *job, batchqr_layout layout) {
  batchqr_operands operands = {.info = NULL};
  for (const bqr_use *use = job->what.operation->uses; use->place; use++) {
    const int place = bench_job_is_a(job, use) ? BQR_A : (int)use->place;
    void *const *address = layout == BATCHQR_POINTERS ? &job->addresses[place] : &job->now[place];
    memcpy((char *)&operands + bqr_places[use->place].address, address, sizeof *address);
  }
  return operands;
}

/* Joins what the plan's groups use, in order, without repetitions: "geqrf_block+copy_r_block". */
static void describe_groups(batchqr_plan_t plan, bench_facts *facts) {
  char last[2 * BENCH_TEXT] = "", now[2 * BENCH_TEXT];
  for (int i = 0; i < bqr_plan_num_groups(plan); i++) {
    bqr_group_info group = bqr_plan_group(plan, i);
    snprintf(now, sizeof now, "%s %s", group.family, group.variant);
    if (!strcmp(now, last)) continue;
    memcpy(last, now, sizeof last);
    size_t f = strlen(facts->family), v = strlen(facts->variant);
    snprintf(facts->family + f, BENCH_TEXT - f, "%s%s", f ? "+" : "", group.family);
    snprintf(facts->variant + v, BENCH_TEXT - v, "%s%s", v ? "+" : "", group.variant);
  }
}

static bool plan_uses(batchqr_plan_t plan, const char *family) {
  for (int i = 0; i < bqr_plan_num_groups(plan); i++)
    if (!strcmp(bqr_plan_group(plan, i).family, family)) return true;
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
      batchqr_plan_create(target->handle, bench_op(what), &s->batch, &s->plan) != BATCHQR_SUCCESS)
    return snprintf(why, BENCH_TEXT, "%s", batchqr_error_message(target->handle)), false;
  if (choice->family && !plan_uses(s->plan, choice->family))
    return snprintf(why, BENCH_TEXT, "%s takes no part in %s", choice->family, what->operation->name), false;
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
  state *s = memory_host(sizeof *s);
  s->job = job;
  s->one_call = options->one_call && lab_routine_of(job->what.operation->op)->call;
  s->batch = describe_batch(job, options->layout);
  if (options->sizes == BATCHQR_HOST_SIZES) s->sizes = make_host_sizes(&s->batch);
  s->operands = choose_operands(job, options->layout);
  if (!force(s, &options->choice, why) || !plan(s, &options->choice, why)) return close_ours(s), NULL;
  describe_groups(s->plan, facts);
  facts->launches = batchqr_plan_launches(s->plan);
  facts->workspace = (int64_t)s->workspace_bytes;
  facts->layout = options->layout;
  facts->sizes = options->sizes;
  return s;
}

static batchqr_status call(const state *s) {
  return lab_routine_of(s->job->what.operation->op)->call(s->job->target->handle, &s->batch, &s->operands);
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
