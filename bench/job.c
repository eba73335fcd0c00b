/* SPDX-License-Identifier: BSD-3-Clause */
/* The operands of one case, shared by all implementations that are measured on it. */
#include "bench.h"
#include "sequence.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define FOR_USES(use, job) for (const bqr_use *use = (job)->what.operation->uses; use->place; use++)

enum { FURTHER = 4000037 }; /* numbers of the random sequence from one operand to the next */

static bool is_wanted(const bench_job *job, const bqr_use *use) {
  const bool output = !(use->access & BQR_READ) && lab_routine_of(job->what.operation->op)->wants_optional &&
                      !(job->what.values && use->kind == BQR_MATRIX) &&
                      !(job->what.operation->ranges && use->place == BQR_RANK); /* all are found */
  return !(use->access & BQR_OPTIONAL) || output;
}

bool bench_job_is_a(const bench_job *job, const bqr_use *use) {
  return is_wanted(job, use) && (use->access & BQR_MAY_BE_A) &&
         use->rows == bqr_use_at(job->what.operation, BQR_A)->rows;
}

int64_t bench_job_first(const bqr_use *use) { return ((int64_t)use->place - BQR_A) * FURTHER; }

/* Whether the operand is an array of its own. */
static bool is_own(const bench_job *job, const bqr_use *use) {
  return !bench_job_is_a(job, use) && is_wanted(job, use);
}

static bool is_restored(const bqr_use *use) {
  return (use->access & BQR_READ) && (use->access & BQR_WRITTEN);
}

/* ---- sizes ---- */

static size_t bytes_of(const bench_job *job, int place) {
  return (size_t)job->size[place] * (size_t)job->what.batch;
}

static void set_sizes(bench_job *job) {
  FOR_USES(use, job) {
    const bqr_shape shape = job->shape[use->place] = lab_shape(&job->member, use);
    job->member.ld[use->place] = bqr_max(1, shape.rows);
    job->size[use->place] = bench_job_is_a(job, use) ? job->size[BQR_A]
                                                     : (int64_t)shape.rows * shape.cols *
                                                           (int64_t)bqr_kind_bytes(use->kind, job->what.type);
  }
  if (!bqr_use_at(job->what.operation, BQR_TAU))
    job->size[BQR_TAU] = (int64_t)job->k * (int64_t)bqr_type_bytes(job->what.type);
}

/* Infinite where the numbers of bytes could overflow. */
static double all_bytes(const bench_job *job) {
  const double count = (double)job->what.batch;
  double all = bqr_use_at(job->what.operation, BQR_TAU) ? 0 : (double)job->size[BQR_TAU] * count;
  FOR_USES(use, job)
  if (is_own(job, use)) all += (double)job->size[use->place] * count * (is_restored(use) ? 2 : 1);
  return all < 0x1p62 ? all : INFINITY;
}

/* ---- memory ---- */

static bool allocate_use(bench_job *job, const bqr_use *use) {
  const int place = (int)use->place;
  memory_space *space = &job->target->space;
  if (!is_own(job, use)) return true;
  if (use->access & BQR_READ) job->before[place] = space_alloc(space, bytes_of(job, place));
  job->now[place] = use->access & BQR_WRITTEN ? space_alloc(space, bytes_of(job, place)) : job->before[place];
  return job->now[place] && (job->before[place] || !(use->access & BQR_READ));
}

static bool allocate(bench_job *job) {
  FOR_USES(use, job) if (!allocate_use(job, use)) return false;
  if (!job->now[BQR_TAU]) job->now[BQR_TAU] = space_alloc(&job->target->space, bytes_of(job, BQR_TAU));
  FOR_USES(use, job) if (bench_job_is_a(job, use)) job->now[use->place] = job->now[BQR_A];
  return job->now[BQR_TAU];
}

/* ---- input ---- */

/* Every member is the same. */
static void fill_members(bench_job *job) {
  memory_space *space = &job->target->space;
  const size_t bytes = (size_t)job->size[BQR_A];
  char *a = job->before[BQR_A];
  for (int64_t i = 0; i < job->what.batch; i++)
    if (i == 0)
      space_upload(space, a, job->input, bytes);
    else
      space_copy(space, a + (size_t)i * bytes, a, bytes);
}

static void fill(bench_job *job, const bqr_use *use) {
  memory_space *space = &job->target->space;
  const batchqr_type type = use->kind == BQR_REALS ? type_real(job->what.type) : job->what.type;
  void *to = job->before[use->place];
  const size_t bytes = bytes_of(job, (int)use->place);
  if (use->place == BQR_A && job->input)
    fill_members(job);
  else if (use->kind == BQR_INTS)
    space_fill(space, to, 0, bytes);
  else
    sequence_fill(space, type, to, bench_job_first(use), (int64_t)(bytes / bqr_real_bytes(type)));
}

/* Those of the matrices in A, by the planner's own choice. */
static bool make_reflectors(bench_job *job, char why[BENCH_TEXT]) {
  const batchqr_handle_t handle = job->target->handle;
  const bqr_shape a = job->shape[BQR_A];
  batchqr_batch batch = {.type = job->what.type, .count = job->what.batch, .m = a.rows, .n = a.cols};
  batch.a = (batchqr_storage){.ld = a.rows, .stride = (int64_t)a.rows * a.cols};
  batch.tau.stride = job->k;
  batchqr_set_compute(handle, BATCHQR_COMPUTE_AUTO);
  batchqr_status status = batch_geqrf(handle, &batch, job->before[BQR_A], job->before[BQR_TAU], NULL);
  if (status == BATCHQR_SUCCESS) return true;
  snprintf(why, BENCH_TEXT, "its reflectors cannot be formed: %.400s", batchqr_error_message(handle));
  return false;
}

/* ---- the whole ---- */

bool bench_job_open(bench_job *job, bench_target *target, const bench_case *what, const bench_input *input,
                    char why[BENCH_TEXT]) {
  *job = (bench_job){
      .target = target, .what = *what, .k = bqr_min(what->m, what->n), .member = bench_member(what)};
  set_sizes(job);
  const double need = all_bytes(job), have = (double)space_available(&target->space);
  if (need > have || !allocate(job)) {
    snprintf(why, BENCH_TEXT, "needs %.1f GB of memory, %.1f are free", need / 1e9, have / 1e9);
    return false;
  }
  job->input = input_make(input->kind, input->condition, what->type, what->m, what->n);
  FOR_USES(use, job) if (job->before[use->place]) fill(job, use);
  return what->operation->k != BQR_REFLECTORS || make_reflectors(job, why);
}

void bench_job_close(bench_job *job) {
  memory_space *space = &job->target->space;
  FOR_USES(use, job) if (bench_job_is_a(job, use)) job->now[use->place] = NULL;
  for (int place = 0; place < BQR_NUM_OPERANDS; place++) {
    if (job->now[place] != job->before[place]) space_release(space, job->now[place]);
    space_release(space, job->before[place]);
    space_release(space, job->addresses[place]);
  }
  space_release(space, job->workspace);
  free(job->input);
}

/* All bits set: every number is a NaN. */
void bench_job_poison(bench_job *job) {
  for (int place = 0; place < BQR_NUM_OPERANDS; place++)
    if (job->now[place] && !job->before[place] && job->size[place] > 0)
      space_fill(&job->target->space, job->now[place], 0xff, bytes_of(job, place));
}

bool bench_job_restore(bench_job *job) {
  FOR_USES(use, job)
  if (is_own(job, use) && is_restored(use))
    space_copy(&job->target->space, job->now[use->place], job->before[use->place],
               bytes_of(job, (int)use->place));
  return true;
}

void *bench_job_workspace(bench_job *job, size_t bytes) {
  if (bytes <= job->workspace_bytes) return job->workspace;
  space_release(&job->target->space, job->workspace);
  job->workspace = space_alloc(&job->target->space, bytes);
  job->workspace_bytes = job->workspace ? bytes : 0;
  return job->workspace;
}

void *bench_job_member(const bench_job *job, int place, int64_t i) {
  const bool own = job->now[place] && (place == BQR_A || job->now[place] != job->now[BQR_A]);
  return own ? (char *)job->now[place] + i * job->size[place] : NULL;
}

bool bench_job_late(bench_job *job) { return job->given_up = bench_now_ms() > job->end_ms; }

/* ---- spoiling ---- */

/* One entry of a result. */
typedef struct entry {
  const bqr_use *use; /* NULL: there is none */
  int i, j;
} entry;

/* Where R, V and Q are: R in an operand of its own, or over A, with V below; Q in C, or over A. */
static entry find(const bench_job *job, bench_spoil what) {
  const bqr_operation *operation = job->what.operation;
  const bqr_use *a = bqr_use_at(operation, BQR_A), *c = bqr_use_at(operation, BQR_C),
                *r = bqr_use_at(operation, BQR_R), *tau = bqr_use_at(operation, BQR_TAU);
  const bool factored = operation->makes_r && !r, q_in_c = c && !(c->access & BQR_READ);
  const int m = job->what.m, n = job->what.n;
  switch (what) {
  case BENCH_SPOIL_R:
    return (entry){r ? r : factored ? a : NULL, 0, n - 1};
  case BENCH_SPOIL_V:
    return (entry){factored ? a : NULL, m - 1, 0};
  case BENCH_SPOIL_TAU:
    return (entry){factored ? tau : NULL, job->k / 2, 0};
  case BENCH_SPOIL_Q:
    return (entry){q_in_c ? c : operation->tall ? a : NULL, m / 2, 0};
  default:
    return (entry){c && !q_in_c ? c : NULL, (operation->k == BQR_RIGHT_HAND_SIDES ? n : m) / 2, 0};
  }
}

bool bench_job_spoil(bench_job *job, bench_spoil what) {
  const entry e = find(job, what);
  if (!e.use || !(e.use->access & BQR_WRITTEN)) return false;
  const int place = (int)e.use->place;
  const size_t size = bqr_kind_bytes(e.use->kind, job->what.type);
  char *at = (char *)job->now[place] + (job->what.batch - 1) * job->size[place] +
             ((size_t)e.j * (size_t)job->shape[place].rows + (size_t)e.i) * size;
  union {
    float s;
    double d;
    char bytes[16];
  } element;
  space_download(&job->target->space, &element, at, size);
  if (type_is_double(job->what.type))
    element.d += 1;
  else
    element.s += 1;
  space_upload(&job->target->space, at, &element, size);
  return true;
}

/* ---- arrays of addresses ---- */

static bool make_array(bench_job *job, int place) {
  if (!job->now[place] || job->addresses[place]) return true;
  const size_t count = (size_t)job->what.batch;
  job->addresses[place] = space_alloc(&job->target->space, count * sizeof(void *));
  char **addresses = memory_host(count * sizeof *addresses);
  for (size_t i = 0; i < count; i++) addresses[i] = (char *)job->now[place] + i * (size_t)job->size[place];
  if (job->addresses[place])
    space_upload(&job->target->space, job->addresses[place], addresses, count * sizeof *addresses);
  free(addresses);
  return job->addresses[place];
}

bool bench_job_pointers(bench_job *job) {
  for (int place = 0; place < BQR_NUM_OPERANDS; place++)
    if (!make_array(job, place)) return false;
  return true;
}
