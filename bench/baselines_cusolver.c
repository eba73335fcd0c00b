/* SPDX-License-Identifier: BSD-3-Clause */
/* cuSOLVER's routines for one matrix, called for one member after another: the randomised SVD, eigenvalue
 * problems. */
#include "bench.h"

#include <cusolverDn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct state {
  const struct routine *routine;
  bench_job *job;
  cudaDataType data, real; /* of elements, and of the real numbers that they are made of */
  cusolverDnHandle_t cusolver;
  cusolverDnParams_t params;
  void *device_work, *host_work;
  size_t device_bytes, host_bytes;
  int *info;
} state;

typedef struct routine {
  const char *name;
  int64_t most_members;               /* more are what no one would solve so; 0: any */
  cusolverStatus_t (*size)(state *s); /* sets the bytes of work */
  cusolverStatus_t (*run)(const state *s, int64_t member);
} routine;

/* --- the randomised SVD */

enum { POWER_STEPS = 2 }; /* as ours.c has it */

static cusolverStatus_t size_gesvdr(state *s) {
  const bench_job *job = s->job;
  const int64_t m = job->what.m, n = job->what.n;
  return cusolverDnXgesvdr_bufferSize(s->cusolver, s->params, 'S', 'S', m, n, job->member.k, 0, POWER_STEPS,
                                      s->data, job->now[BQR_A], m, s->real, job->now[BQR_S], s->data,
                                      job->now[BQR_U], m, s->data, job->now[BQR_V], n, s->data,
                                      &s->device_bytes, &s->host_bytes);
}

static cusolverStatus_t run_gesvdr(const state *s, int64_t index) {
  const bench_job *job = s->job;
  const int64_t m = job->what.m, n = job->what.n;
  return cusolverDnXgesvdr(s->cusolver, s->params, 'S', 'S', m, n, job->member.k, 0, POWER_STEPS, s->data,
                           bench_job_member(job, BQR_A, index), m, s->real,
                           bench_job_member(job, BQR_S, index), s->data, bench_job_member(job, BQR_U, index),
                           m, s->data, bench_job_member(job, BQR_V, index), n, s->data, s->device_work,
                           s->device_bytes, s->host_work, s->host_bytes, s->info);
}

static const routine gesvdr = {"cusolver_gesvdr", 0, size_gesvdr, run_gesvdr};

/* --- eigenvalue problems */

static cusolverEigMode_t mode_of(const bench_job *job) {
  return job->what.values ? CUSOLVER_EIG_MODE_NOVECTOR : CUSOLVER_EIG_MODE_VECTOR;
}

static cusolverStatus_t size_syevd(state *s) {
  const bench_job *job = s->job;
  return cusolverDnXsyevd_bufferSize(s->cusolver, s->params, mode_of(job), CUBLAS_FILL_MODE_LOWER,
                                     job->what.n, s->data, job->now[BQR_A], job->what.n, s->real,
                                     job->now[BQR_S], s->data, &s->device_bytes, &s->host_bytes);
}

static cusolverStatus_t run_syevd(const state *s, int64_t index) {
  const bench_job *job = s->job;
  return cusolverDnXsyevd(s->cusolver, s->params, mode_of(job), CUBLAS_FILL_MODE_LOWER, job->what.n, s->data,
                          bench_job_member(job, BQR_A, index), job->what.n, s->real,
                          bench_job_member(job, BQR_S, index), s->data, s->device_work, s->device_bytes,
                          s->host_work, s->host_bytes, s->info);
}

static const routine syevd = {"cusolver_syevd", 16, size_syevd, run_syevd};

/* --- either */

static void close_routine(void *context) {
  state *s = context;
  memory_space *space = &s->job->target->space;
  space_release(space, s->device_work);
  space_release(space, s->info);
  if (s->params) cusolverDnDestroyParams(s->params);
  if (s->cusolver) cusolverDnDestroy(s->cusolver);
  free(s->host_work);
  free(s);
}

static state *new_state(const routine *r, bench_job *job) {
  static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
  state *s = calloc(1, sizeof *s);
  if (!s) lab_die("out of memory");
  s->routine = r;
  s->job = job;
  s->data = types[job->what.type];
  s->real = types[type_real(job->what.type)];
  return s;
}

static cusolverStatus_t start(state *s) {
  cusolverStatus_t status = cusolverDnCreate(&s->cusolver);
  if (!status) status = cusolverDnCreateParams(&s->params);
  if (!status) status = cusolverDnSetStream(s->cusolver, s->job->target->space.stream);
  return status ? status : s->routine->size(s);
}

static bool allocate_work(state *s) {
  memory_space *space = &s->job->target->space;
  s->device_work = space_alloc(space, s->device_bytes + 1);
  s->host_work = malloc(s->host_bytes + 1);
  s->info = space_alloc(space, sizeof *s->info);
  return s->device_work && s->host_work && s->info;
}

static void *open_routine(const routine *r, bench_job *job, bench_facts *facts, char why[BENCH_TEXT]) {
  if (r->most_members > 0 && job->what.batch > r->most_members)
    return snprintf(why, BENCH_TEXT, "one call for each of %lld members", (long long)job->what.batch), NULL;
  state *s = new_state(r, job);
  const cusolverStatus_t status = start(s);
  if (status)
    return snprintf(why, BENCH_TEXT, "cuSOLVER does not start: status %d", (int)status), close_routine(s),
           NULL;
  if (!allocate_work(s))
    return snprintf(why, BENCH_TEXT, "no memory for %zu bytes of workspace", s->device_bytes),
           close_routine(s), NULL;
  facts->workspace = (int64_t)(s->device_bytes + s->host_bytes);
  return s;
}

static void *open_gesvdr(bench_job *job, const bench_impl_options *options, bench_facts *facts,
                         char why[BENCH_TEXT]) {
  (void)options;
  return open_routine(&gesvdr, job, facts, why);
}

static void *open_syevd(bench_job *job, const bench_impl_options *options, bench_facts *facts,
                        char why[BENCH_TEXT]) {
  (void)options;
  return open_routine(&syevd, job, facts, why);
}

static bool run_routine(void *context) {
  const state *s = context;
  for (int64_t i = 0; i < s->job->what.batch; i++) {
    if (bench_job_late(s->job)) return false;
    const cusolverStatus_t status = s->routine->run(s, i);
    if (!status) continue;
    fprintf(stderr, "bench: %s: status %d at member %lld\n", s->routine->name, (int)status, (long long)i);
    return false;
  }
  return true;
}

const bench_impl bench_cusolver_gesvdr = {"cusolver_gesvdr",
                                          BATCHQR_BACKEND_CUDA,
                                          1u << BATCHQR_GESVDR,
                                          open_gesvdr,
                                          run_routine,
                                          close_routine,
                                          false,
                                          0};
const bench_impl bench_cusolver_syevd = {"cusolver_syevd",
                                         BATCHQR_BACKEND_CUDA,
                                         1u << BATCHQR_SYEVD,
                                         open_syevd,
                                         run_routine,
                                         close_routine,
                                         false,
                                         0};
