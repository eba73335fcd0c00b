/* SPDX-License-Identifier: BSD-3-Clause */
/* The operands of one case, shared by all implementations that are measured on it. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static int reals_of(batchqr_type type) { return bench_is_complex(type) ? 2 : 1; }

static size_t bytes_of(const bench_case *what, int64_t member) {
  return (size_t)member * (size_t)what->batch * bench_type_size(what->type);
}

static bool writes_r(batchqr_op routine) { return routine == BATCHQR_QR || routine == BATCHQR_GEQR_R; }
static bool reads_reflectors(batchqr_op routine) {
  return routine == BATCHQR_ORGQR || routine == BATCHQR_ORMQR;
}

/* Of C, 0 where there is none. */
static int64_t size_of_c(const bench_case *what) {
  if (what->routine == BATCHQR_ORMQR) return (int64_t)what->m * what->n;
  return what->routine == BATCHQR_GELS ? (what->m > what->n ? what->m : what->n) : 0;
}

static size_t all_bytes(const bench_case *what) {
  int64_t k = bench_min(what->m, what->n), a = (int64_t)what->m * what->n;
  return bytes_of(what, 2 * a + 2 * size_of_c(what) + k + (writes_r(what->routine) ? k * what->n : 0));
}

/* Nothing in bytes_of() can overflow below this. */
static bool countable(const bench_case *what) {
  return 5.0 * what->m * what->n * (double)what->batch * (double)bench_type_size(what->type) < 0x1p62;
}

static bool allocate(bench_job *job) {
  const bench_target_ops *ops = job->target->ops;
  size_t bytes_a = bytes_of(&job->what, job->size_a), bytes_c = bytes_of(&job->what, job->size_c);
  job->a0 = ops->allocate(job->target, bytes_a);
  job->tau = ops->allocate(job->target, bytes_of(&job->what, job->k));
  if (!job->a0 || !job->tau) return false;
  if (bytes_c) {
    job->c0 = ops->allocate(job->target, bytes_c);
    job->c = ops->allocate(job->target, bytes_c);
    if (!job->c0 || !job->c) return false;
  }
  if (job->what.routine == BATCHQR_ORMQR) {
    job->a = job->a0;
    return true;
  }
  job->a = ops->allocate(job->target, bytes_a);
  if (writes_r(job->what.routine)) job->r = ops->allocate(job->target, bytes_of(&job->what, job->size_r));
  return job->a && (job->r || !writes_r(job->what.routine));
}

/* The input of orgqr and ormqr, by the planner's own choice. */
static bool factor_input(bench_job *job, char why[BENCH_TEXT]) {
  batchqr_batch batch = {
      .type = job->what.type, .count = job->what.batch, .m = job->what.m, .n = job->what.n};
  batch.a = (batchqr_storage){.ld = job->what.m, .stride = job->size_a};
  batch.tau.stride = job->k;
  batchqr_set_compute(job->target->handle, BATCHQR_COMPUTE_AUTO);
  batchqr_status status = batch_geqrf(job->target->handle, &batch, job->a0, job->tau, NULL);
  if (status == BATCHQR_SUCCESS) return true;
  snprintf(why, BENCH_TEXT, "its reflectors cannot be formed: %.400s",
           batchqr_error_message(job->target->handle));
  return false;
}

/* Every member is the same. */
static void fill_members(bench_job *job) {
  const bench_target_ops *ops = job->target->ops;
  const size_t bytes = (size_t)job->size_a * bench_type_size(job->what.type);
  for (int64_t i = 0; i < job->what.batch; i++)
    if (i == 0)
      ops->upload(job->target, job->a0, job->member, bytes);
    else
      ops->copy(job->target, (char *)job->a0 + (size_t)i * bytes, job->a0, bytes);
}

bool bench_job_open(bench_job *job, bench_target *target, const bench_case *what, const bench_input *input,
                    char why[BENCH_TEXT]) {
  int k = bench_min(what->m, what->n);
  *job = (bench_job){.target = target, .what = *what, .k = k};
  job->size_a = (int64_t)what->m * what->n;
  job->size_r = (int64_t)k * what->n;
  job->size_c = size_of_c(what);
  double need = countable(what) ? (double)all_bytes(what) : INFINITY;
  double have = (double)target->ops->available(target);
  if (need > have || !allocate(job)) {
    snprintf(why, BENCH_TEXT, "needs %.1f GB of memory, %.1f are free", need / 1e9, have / 1e9);
    return false;
  }
  int64_t reals = job->size_a * what->batch * reals_of(what->type);
  int64_t reals_c = job->size_c * what->batch * reals_of(what->type);
  job->member = bench_input_make(input, what->type, what->m, what->n);
  if (job->member)
    fill_members(job);
  else
    bench_data_fill(target, what->type, job->a0, 0, reals);
  if (job->c0) bench_data_fill(target, what->type, job->c0, BENCH_C_FIRST, reals_c);
  return !reads_reflectors(what->routine) || factor_input(job, why);
}

void bench_job_close(bench_job *job) {
  void *const all[] = {job->a0,       job->a == job->a0 ? NULL : job->a,
                       job->tau,      job->r,
                       job->c0,       job->c,
                       job->a_array,  job->tau_array,
                       job->r_array,  job->c_array,
                       job->workspace};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) job->target->ops->release(job->target, all[i]);
  free(job->member);
}

void bench_job_poison(bench_job *job) {
  const bench_target_ops *ops = job->target->ops;
  if (!reads_reflectors(job->what.routine)) ops->poison(job->target, job->tau, bytes_of(&job->what, job->k));
  if (job->r) ops->poison(job->target, job->r, bytes_of(&job->what, job->size_r));
}

bool bench_job_restore(bench_job *job) {
  const bench_target_ops *ops = job->target->ops;
  if (job->a != job->a0) ops->copy(job->target, job->a, job->a0, bytes_of(&job->what, job->size_a));
  if (job->c) ops->copy(job->target, job->c, job->c0, bytes_of(&job->what, job->size_c));
  return true;
}

void *bench_job_workspace(bench_job *job, size_t bytes) {
  if (bytes <= job->workspace_bytes) return job->workspace;
  job->target->ops->release(job->target, job->workspace);
  job->workspace = job->target->ops->allocate(job->target, bytes);
  job->workspace_bytes = job->workspace ? bytes : 0;
  return job->workspace;
}

bool bench_job_late(bench_job *job) { return job->given_up = bench_now_ms() > job->end_ms; }

/* One element of an operand: the last member's. */
typedef struct place {
  void *all;
  int64_t member, at;
} place;

static place find(const bench_job *job, bench_spoil what) {
  const batchqr_op routine = job->what.routine;
  const int64_t m = job->what.m, last = job->what.n - 1;
  const bool makes_q = routine == BATCHQR_QR || routine == BATCHQR_ORGQR, makes_v = routine == BATCHQR_GEQRF;
  switch (what) {
  case BENCH_SPOIL_R:
    return job->r ? (place){job->r, job->size_r, last * job->k}
                  : (place){makes_v ? job->a : NULL, job->size_a, last * m};
  case BENCH_SPOIL_V:
    return (place){makes_v ? job->a : NULL, job->size_a, m - 1};
  case BENCH_SPOIL_TAU:
    return (place){makes_v ? job->tau : NULL, job->k, job->k / 2};
  case BENCH_SPOIL_Q:
    return (place){makes_q ? job->a : NULL, job->size_a, m / 2};
  default:
    return (place){job->c, job->size_c, (routine == BATCHQR_GELS ? job->what.n : m) / 2};
  }
}

bool bench_job_spoil(bench_job *job, bench_spoil what) {
  const bench_target_ops *ops = job->target->ops;
  const size_t size = bench_type_size(job->what.type);
  place p = find(job, what);
  if (!p.all) return false;
  char *at = (char *)p.all + (size_t)((job->what.batch - 1) * p.member + p.at) * size;
  union {
    float s;
    double d;
    char bytes[16];
  } element;
  ops->download(job->target, &element, at, size);
  if (job->what.type == BATCHQR_D || job->what.type == BATCHQR_Z)
    element.d += 1;
  else
    element.s += 1;
  ops->upload(job->target, at, &element, size);
  return true;
}

static bool make_array(bench_job *job, void **array, void *data, int64_t member) {
  if (!data || *array) return true;
  size_t count = (size_t)job->what.batch, step = (size_t)member * bench_type_size(job->what.type);
  *array = job->target->ops->allocate(job->target, count * sizeof(void *));
  char **addresses = malloc(count * sizeof *addresses);
  if (!*array || !addresses) return free(addresses), false;
  for (size_t i = 0; i < count; i++) addresses[i] = (char *)data + i * step;
  job->target->ops->upload(job->target, *array, addresses, count * sizeof *addresses);
  free(addresses);
  return true;
}

bool bench_job_pointers(bench_job *job) {
  return make_array(job, &job->a_array, job->a, job->size_a) &&
         make_array(job, &job->tau_array, job->tau, job->k) &&
         make_array(job, &job->r_array, job->r, job->size_r) &&
         make_array(job, &job->c_array, job->c, job->size_c);
}
