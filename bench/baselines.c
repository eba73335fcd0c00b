/* SPDX-License-Identifier: BSD-3-Clause */
/* The peers, and those of them that run on the CPU.
 *
 * `lapack` is what a program without a batched library does: one LAPACK call after another, on one thread,
 * or on BLAS's own threads where there is but one member. `lapack_omp` is what a careful one does: an OpenMP
 * loop over the members, one thread for each call. Both call LAPACKE's _work layer, which neither looks for
 * NaNs nor allocates. */
#include "bench.h"
#include "config.h"

#include <complex.h>
#define lapack_complex_float  float _Complex
#define lapack_complex_double double _Complex
#include <lapacke.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const bench_impl *const bench_peers[] = {
    &bench_lapack,
    &bench_lapack_omp,
#if BQR_HAVE_CUDA && HAVE_CUBLAS
    &bench_cublas,
#endif
#if BQR_HAVE_CUDA && HAVE_CUSOLVER
    &bench_cusolver,
    &bench_cusolver_gesvdr,
    &bench_cusolver_syevd,
#endif
#if BQR_HAVE_CUDA && HAVE_MAGMA
    &bench_magma,
#endif
    NULL,
};

typedef struct state {
  bench_job *job;
  void *work; /* work_bytes for each thread */
  size_t work_bytes;
  int lwork, threads;
} state;

/* One member's operands. */
typedef struct member {
  int m, n, k;
  void *a, *tau, *r, *c, *work;
  int lwork;
} member;

/* The LAPACK calls of one type. lwork -1 asks for the size of the workspace. */
typedef struct calls {
  int (*geqrf)(const member *);
  int (*orgqr)(const member *);
  int (*ormqr)(const member *);
  int (*gels)(const member *);
} calls;

#define DEFINE_CALLS(geqrf, orgqr, ormqr, gels, transpose)                                                   \
  static int call_##geqrf(const member *x) {                                                                 \
    return (int)LAPACKE_##geqrf##_work(LAPACK_COL_MAJOR, x->m, x->n, x->a, x->m, x->tau, x->work, x->lwork); \
  }                                                                                                          \
  static int call_##orgqr(const member *x) {                                                                 \
    return (int)LAPACKE_##orgqr##_work(LAPACK_COL_MAJOR, x->m, x->k, x->k, x->a, x->m, x->tau, x->work,      \
                                       x->lwork);                                                            \
  }                                                                                                          \
  static int call_##ormqr(const member *x) {                                                                 \
    return (int)LAPACKE_##ormqr##_work(LAPACK_COL_MAJOR, 'L', transpose, x->m, x->n, x->k, x->a, x->m,       \
                                       x->tau, x->c, x->m, x->work, x->lwork);                               \
  }                                                                                                          \
  static int call_##gels(const member *x) {                                                                  \
    return (int)LAPACKE_##gels##_work(LAPACK_COL_MAJOR, 'N', x->m, x->n, 1, x->a, x->m, x->c,                \
                                      x->m > x->n ? x->m : x->n, x->work, x->lwork);                         \
  }
DEFINE_CALLS(sgeqrf, sorgqr, sormqr, sgels, 'T')
DEFINE_CALLS(dgeqrf, dorgqr, dormqr, dgels, 'T')
DEFINE_CALLS(cgeqrf, cungqr, cunmqr, cgels, 'C')
DEFINE_CALLS(zgeqrf, zungqr, zunmqr, zgels, 'C')

static const calls calls_of[] = {
    [BATCHQR_S] = {call_sgeqrf, call_sorgqr, call_sormqr, call_sgels},
    [BATCHQR_D] = {call_dgeqrf, call_dorgqr, call_dormqr, call_dgels},
    [BATCHQR_C] = {call_cgeqrf, call_cungqr, call_cunmqr, call_cgels},
    [BATCHQR_Z] = {call_zgeqrf, call_zungqr, call_zunmqr, call_zgels},
};

static void copy_r(const member *x, size_t size) {
  for (int j = 0; j < x->n; j++) {
    size_t rows = (size_t)bqr_min(j + 1, x->k), k = (size_t)x->k;
    char *to = (char *)x->r + (size_t)j * k * size;
    memcpy(to, (const char *)x->a + (size_t)j * (size_t)x->m * size, rows * size);
    memset(to + rows * size, 0, (k - rows) * size);
  }
}

static int run_member(const bench_case *what, const member *x) {
  const calls *call = &calls_of[what->type];
  const batchqr_op routine = bench_op(what);
  if (routine == BATCHQR_ORGQR) return call->orgqr(x);
  if (routine == BATCHQR_ORMQR) return call->ormqr(x);
  if (routine == BATCHQR_GELS) return call->gels(x);
  int status = call->geqrf(x);
  if (status || routine == BATCHQR_GEQRF) return status;
  copy_r(x, bqr_type_bytes(what->type));
  return routine == BATCHQR_QR ? call->orgqr(x) : 0;
}

static member member_of(const state *s, int64_t index, int thread) {
  const bench_job *job = s->job;
  return (member){.m = job->what.m,
                  .n = job->what.n,
                  .k = job->k,
                  .lwork = s->lwork,
                  .a = bench_job_member(job, BQR_A, index),
                  .tau = bench_job_member(job, BQR_TAU, index),
                  .r = bench_job_member(job, BQR_R, index),
                  .c = bench_job_member(job, BQR_C, index),
                  .work = (char *)s->work + (size_t)thread * s->work_bytes};
}

static bool run_loop(void *context) {
  const state *s = context;
  int threads = omp_get_max_threads(), failed = 0;
  /* Threads inside small members would cost far more than they bring. */
  if (s->job->what.batch > 1) omp_set_num_threads(1);
  for (int64_t i = 0; i < s->job->what.batch && !failed; i++) {
    member x = member_of(s, i, 0);
    failed = run_member(&s->job->what, &x) != 0 || (i % 256 == 255 && bench_job_late(s->job));
  }
  omp_set_num_threads(threads);
  return !failed;
}

static bool run_omp(void *context) {
  const state *s = context;
  int failed = 0;
#pragma omp parallel for schedule(static) num_threads(s->threads) reduction(| : failed)
  for (int64_t i = 0; i < s->job->what.batch; i++) {
    member x = member_of(s, i, omp_get_thread_num());
    failed |= run_member(&s->job->what, &x) != 0;
  }
  return !failed;
}

/* The largest workspace of the routine's calls, in elements. */
static int query_work(const state *s) {
  const bench_case *what = &s->job->what;
  const calls *call = &calls_of[what->type];
  int (*const all[])(const member *) = {call->geqrf, call->orgqr, call->ormqr, call->gels};
  const batchqr_op routine = bench_op(what);
  const bool used[] = {routine != BATCHQR_ORGQR && routine != BATCHQR_ORMQR && routine != BATCHQR_GELS,
                       routine == BATCHQR_ORGQR || routine == BATCHQR_QR, routine == BATCHQR_ORMQR,
                       routine == BATCHQR_GELS};
  double most = 1;
  for (int i = 0; i < 4; i++) {
    union {
      float s;
      double d;
      lapack_complex_double widest;
    } answer = {0};
    member x = member_of(s, 0, 0);
    x.work = &answer, x.lwork = -1;
    if (!used[i] || all[i](&x)) continue;
    bool wide = what->type == BATCHQR_D || what->type == BATCHQR_Z;
    double size = wide ? answer.d : (double)answer.s;
    if (size > most) most = size;
  }
  return (int)most;
}

static void close_lapack(void *context) {
  state *s = context;
  free(s->work);
  free(s);
}

static void *open_lapack(bench_job *job, const bench_impl_options *options, bench_facts *facts,
                         char why[BENCH_TEXT]) {
  (void)options;
  state *s = memory_host(sizeof *s);
  s->job = job;
  s->threads = job->target->device->threads > 0 ? job->target->device->threads : omp_get_max_threads();
  s->lwork = query_work(s);
  /* A cache line apart, so that threads do not share one. */
  s->work_bytes = ((size_t)s->lwork * bqr_type_bytes(job->what.type) + 127) / 64 * 64;
  s->work = malloc((size_t)s->threads * s->work_bytes);
  if (!s->work) return snprintf(why, BENCH_TEXT, "no memory for its workspace"), close_lapack(s), NULL;
  facts->workspace = (int64_t)((size_t)s->threads * s->work_bytes);
  return s;
}

enum {
  ROUTINES = 1 << BATCHQR_GEQRF | 1 << BATCHQR_ORGQR | 1 << BATCHQR_ORMQR | 1 << BATCHQR_QR |
             1 << BATCHQR_GEQR_R | 1 << BATCHQR_GELS
};
const bench_impl bench_lapack = {"lapack", BATCHQR_BACKEND_CPU, ROUTINES, open_lapack,
                                 run_loop, close_lapack,        false,    0};
const bench_impl bench_lapack_omp = {"lapack_omp", BATCHQR_BACKEND_CPU, ROUTINES, open_lapack,
                                     run_omp,      close_lapack,        false,    0};
