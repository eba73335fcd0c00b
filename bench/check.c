/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether results are right: LAPACK's test ratios of sampled members. */
#include "bench.h"
#include "residual.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* More multiply-adds than this for one member, and it is probed with random vectors instead. */
static const double exact_work = 2e7;
/* The same where checking has to be quick. */
static const double exact_work_quick = 1e5;
/* FP16's unit roundoff, which the compute mode `half` is measured by. */
static const double half_eps = 0x1p-11;

/* One member's operands in host memory, named as in bench_job. */
typedef struct sample {
  bench_case what;
  int k;
  void *a0, *a, *tau, *r, *c0, *c;
} sample;

bool bench_errors_pass(const bench_errors *errors) {
  return errors->residual < RESIDUAL_BOUND && errors->orthogonality < RESIDUAL_BOUND;
}

/* Member `index` of an operand of the target's, copied to the host; NULL stays NULL. */
static void *fetch(const bench_job *job, const void *operand, int64_t elements, int64_t index) {
  if (!operand) return NULL;
  size_t bytes = (size_t)elements * bench_type_size(job->what.type);
  void *copy = malloc(bytes + 1);
  if (!copy) bench_die("out of memory for checking results");
  job->target->ops->download(job->target, copy, (const char *)operand + (size_t)index * bytes, bytes);
  return copy;
}

/* The same of an operand that came from the input sequence. */
static void *recall(const bench_job *job, int64_t first, int64_t elements, int64_t index) {
  int64_t reals = elements * (bench_is_complex(job->what.type) ? 2 : 1);
  void *copy = malloc((size_t)elements * bench_type_size(job->what.type) + 1);
  if (!copy) bench_die("out of memory for checking results");
  if (first == 0 && job->member)
    memcpy(copy, job->member, (size_t)elements * bench_type_size(job->what.type));
  else
    bench_data_get(job->what.type, copy, first + index * reals, reals);
  return copy;
}

static void clear_below(const sample *s) {
  size_t size = bench_type_size(s->what.type), k = (size_t)s->k;
  for (size_t j = 0; j + 1 < k; j++) memset((char *)s->r + (j * k + j + 1) * size, 0, (k - j - 1) * size);
}

static sample take(const bench_job *job, int64_t index, bool strict_r) {
  bool given = job->what.routine == BATCHQR_ORGQR || job->what.routine == BATCHQR_ORMQR;
  sample s = {.what = job->what, .k = job->k};
  s.a0 = given ? fetch(job, job->a0, job->size_a, index) : recall(job, 0, job->size_a, index);
  bool a_counts = job->what.routine != BATCHQR_ORMQR && job->what.routine != BATCHQR_GELS;
  s.a = fetch(job, a_counts ? job->a : NULL, job->size_a, index);
  s.tau = fetch(job, job->tau, job->k, index);
  s.r = fetch(job, job->r, job->size_r, index);
  s.c0 = job->c0 ? recall(job, BENCH_C_FIRST, job->size_c, index) : NULL;
  s.c = fetch(job, job->c, job->size_c, index);
  if (s.r && !strict_r) clear_below(&s);
  return s;
}

static void put_back(sample *s) {
  void *const all[] = {s->a0, s->a, s->tau, s->r, s->c0, s->c};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

static bench_errors ratios(const sample *s) {
  batchqr_type type = s->what.type;
  int m = s->what.m, n = s->what.n, k = s->k;
  switch (s->what.routine) {
  case BATCHQR_ORGQR:
    return (bench_errors){residual_orgqr(type, m, k, k, s->a0, m, s->tau, s->a, m, 0),
                          residual_orthogonality(type, m, k, s->a, m, 0)};
  case BATCHQR_ORMQR:
    return (bench_errors){residual_ormqr(type, BATCHQR_LEFT, BATCHQR_CONJ_TRANS, m, n, k, s->a0, m, s->tau,
                                         s->c0, m, s->c, m, 0),
                          -1};
  case BATCHQR_QR:
    return (bench_errors){residual_qr(type, m, n, s->a0, m, s->a, m, s->r, k, 0),
                          residual_orthogonality(type, m, k, s->a, m, 0)};
  case BATCHQR_GELS:
    return (bench_errors){
        residual_gels(type, BATCHQR_NO_TRANS, m, n, 1, s->a0, m, s->c0, m, s->c, n, NULL, 0), -1};
  case BATCHQR_GEQR_R:
    return (bench_errors){residual_gram(type, m, n, s->a0, m, s->r, k, 0), -1};
  default:
    return (bench_errors){residual_geqrf(type, m, n, s->a0, m, s->a, m, s->tau, 0),
                          residual_reflectors(type, m, k, k, s->a, m, s->tau, 0)};
  }
}

static bench_errors exact(const bench_job *job, int64_t index, bool strict_r) {
  sample s = take(job, index, strict_r);
  bench_errors found = ratios(&s);
  put_back(&s);
  return found;
}

/* The larger one; a NaN wins. */
static double worse(double a, double b) { return isnan(a) || a > b ? a : b; }

/* First, last, middle and two scattered members; fewer of large ones. */
static int choose(const bench_job *job, int64_t members[5]) {
  int64_t last = job->what.batch - 1;
  const int64_t wanted[5] = {0, last, last / 2, (int64_t)(0.317 * (double)last),
                             (int64_t)(0.731 * (double)last)};
  int most = job->size_a > 10000000 ? 2 : job->size_a > 1000000 ? 3 : 5, count = 0;
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
  double most = job->what.routine == BATCHQR_GELS ? INFINITY /* a few products */
                : quick                           ? exact_work_quick
                                                  : exact_work;
  int64_t members[5];
  int count = choose(job, members);
  for (int i = 0; i < count; i++) {
    bench_errors found =
        work > most ? bench_probe(job, members[i], strict_r) : exact(job, members[i], strict_r);
    worst.residual = worse(found.residual * scale, worst.residual);
    worst.orthogonality = worse(found.orthogonality * scale, worst.orthogonality);
  }
  return worst;
}
