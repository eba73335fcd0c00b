/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether results are right: LAPACK's test ratios of sampled members. */
#include "bench.h"
#include "probe.h"
#include "residual.h"
#include "sequence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More multiply-adds than this for one member, and it is probed with random vectors instead. */
static const double exact_work = 2e7;
/* The same where checking has to be quick. */
static const double exact_work_quick = 1e5;
/* Columns to look at where there is no probe. */
enum { FEW = 5 };
/* FP16's unit roundoff, which the compute mode `half` is measured by. */
static const double half_eps = 0x1p-11;

bool bench_errors_pass(const bench_errors *errors) {
  return errors->residual < RESIDUAL_BOUND && errors->orthogonality < RESIDUAL_BOUND;
}

static int64_t entries(const bench_job *job, const bqr_use *use) {
  return (int64_t)job->shape[use->place].rows * job->shape[use->place].cols;
}

/* Whether an operand's input is of the random sequence, or the job's own: reflectors are made of that. */
static bool is_known(const bench_job *job, const bqr_use *use) {
  const bool made =
      job->what.operation->k == BQR_REFLECTORS && (use->place == BQR_A || use->place == BQR_TAU);
  return use->kind != BQR_INTS && use->kind != BQR_REALS && !made;
}

/* Where a member's input is known from. */
static lab_source source_before(const bench_job *job, const bqr_use *use, int64_t index) {
  const bqr_shape shape = job->shape[use->place];
  const int64_t reals = entries(job, use) * (type_is_complex(job->what.type) ? 2 : 1);
  lab_source x = {.first = bench_job_first(use) + index * reals, .rows = shape.rows, .cols = shape.cols};
  if (!is_known(job, use))
    x.data = (const char *)job->before[use->place] + index * job->size[use->place];
  else if (use->place == BQR_A)
    x.host = job->input;
  return x;
}

static lab_source source_now(const bench_job *job, const bqr_use *use, int64_t index) {
  const bqr_shape shape = job->shape[use->place];
  return (lab_source){.data = (const char *)job->now[use->place] + index * job->size[use->place],
                      .rows = shape.rows,
                      .cols = shape.cols};
}

/* ---- exactly ---- */

/* A copy in host memory. */
static void *fetch(const bench_job *job, const bqr_use *use, const lab_source *from) {
  const size_t bytes = (size_t)job->size[use->place];
  void *copy = memory_host(bytes);
  if (from->data)
    space_download(&job->target->space, copy, from->data, bytes);
  else if (from->host)
    memcpy(copy, from->host, bytes);
  else
    sequence_get(job->what.type, copy, from->first,
                 entries(job, use) * (type_is_complex(job->what.type) ? 2 : 1));
  return copy;
}

static void clear_below(const lab_member *x) {
  const size_t size = bqr_type_bytes(x->type), ld = (size_t)x->ld[BQR_R], k = (size_t)bqr_min(x->m, x->n);
  for (size_t j = 0; j + 1 < k; j++)
    memset((char *)x->now[BQR_R] + (j * ld + j + 1) * size, 0, (k - j - 1) * size);
}

static lab_member take(const bench_job *job, int64_t index, bool strict_r) {
  lab_member x = job->member;
  for (const bqr_use *use = job->what.operation->uses; use->place; use++) {
    if (!job->now[use->place]) continue;
    const lab_source before = source_before(job, use, index), now = source_now(job, use, index);
    if (use->access & BQR_READ) x.before[use->place] = fetch(job, use, &before);
    x.now[use->place] = fetch(job, use, &now);
  }
  if (x.now[BQR_R] && !strict_r) clear_below(&x);
  return x;
}

static void put_back(lab_member *x) {
  for (int place = 0; place < BQR_NUM_OPERANDS; place++) {
    free((void *)x->before[place]);
    free(x->now[place]);
  }
}

static double ratio(const lab_routine *routine, const lab_member *x, int which, int columns) {
  return routine->ratios[which].what ? routine->ratios[which].of(x, columns) : -1;
}

/* `columns`: see lab_ratio. */
static bench_errors exact(const bench_job *job, int64_t index, bool strict_r, int columns) {
  const lab_routine *routine = lab_routine_of(job->what.operation->op);
  lab_member x = take(job, index, strict_r);
  bench_errors found = {ratio(routine, &x, LAB_RESIDUAL, columns),
                        ratio(routine, &x, LAB_ORTHOGONALITY, columns)};
  put_back(&x);
  return found;
}

/* ---- by random vectors ---- */

static bench_errors probe(const bench_job *job, int64_t index, bool strict_r) {
  lab_probed x = {.space = &job->target->space,
                  .type = job->what.type,
                  .m = job->what.m,
                  .n = job->what.n,
                  .strict_r = strict_r};
  for (const bqr_use *use = job->what.operation->uses; use->place; use++) {
    if (!job->now[use->place]) continue;
    if (use->access & BQR_READ) x.before[use->place] = source_before(job, use, index);
    x.now[use->place] = source_now(job, use, index);
  }
  return lab_routine_of(job->what.operation->op)->probe(&x);
}

/* ---- which members ---- */

/* The larger one; a NaN wins. */
static double worse(double a, double b) { return isnan(a) || a > b ? a : b; }

/* First, last, middle and two scattered members; fewer of large ones. */
static int choose(const bench_job *job, int64_t members[5]) {
  int64_t last = job->what.batch - 1;
  const int64_t wanted[5] = {0, last, last / 2, (int64_t)(0.317 * (double)last),
                             (int64_t)(0.731 * (double)last)};
  const double size = (double)job->what.m * job->what.n;
  int most = size > 1e7 ? 2 : size > 1e6 ? 3 : 5, count = 0;
  for (int i = 0; i < most; i++) {
    bool known = false;
    for (int j = 0; j < count; j++) known |= members[j] == wanted[i];
    if (!known) members[count++] = wanted[i];
  }
  return count;
}

bench_errors bench_check(const bench_job *job, bool strict_r, bool quick) {
  bench_errors worst = {-1, -1};
  double work = (double)job->what.m * job->what.n * job->k, scale = 1;
  if (job->what.compute == BATCHQR_COMPUTE_HALF) scale = type_eps(job->what.type) / half_eps;
  const bool can_probe = lab_routine_of(job->what.operation->op)->probe;
  const double most = quick ? exact_work_quick : exact_work;
  int64_t members[5];
  int count = choose(job, members);
  for (int i = 0; i < count; i++) {
    bench_errors found = work > most && can_probe ? probe(job, members[i], strict_r)
                                                  : exact(job, members[i], strict_r, work > most ? FEW : 0);
    worst.residual = worse(found.residual * scale, worst.residual);
    worst.orthogonality = worse(found.orthogonality * scale, worst.orthogonality);
  }
  return worst;
}
