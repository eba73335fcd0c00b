/* SPDX-License-Identifier: BSD-3-Clause */
/* cuSOLVER's eigenvalue problems, one member after another. */
#include "bench.h"

#include <cusolverDn.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct state {
  bench_job *job;
  cusolverDnHandle_t cusolver;
  cusolverDnParams_t params;
  void *device_work, *host_work;
  size_t device_bytes, host_bytes;
  int *info;
} state;

/* More members are what no one would solve so. */
enum { MOST_MEMBERS = 16 };

static cudaDataType data_type(batchqr_type type) {
  static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
  return types[type];
}

static cudaDataType real_type(batchqr_type type) {
  return type == BATCHQR_S || type == BATCHQR_C ? CUDA_R_32F : CUDA_R_64F;
}

static void close_syevd(void *context) {
  state *s = context;
  memory_space *space = &s->job->target->space;
  space_release(space, s->device_work);
  space_release(space, s->info);
  if (s->params) cusolverDnDestroyParams(s->params);
  if (s->cusolver) cusolverDnDestroy(s->cusolver);
  free(s->host_work);
  free(s);
}

static cusolverEigMode_t mode_of(const bench_job *job) {
  return job->what.values ? CUSOLVER_EIG_MODE_NOVECTOR : CUSOLVER_EIG_MODE_VECTOR;
}

static cusolverStatus_t start(state *s) {
  const bench_job *job = s->job;
  const batchqr_type type = job->what.type;
  cusolverStatus_t status = cusolverDnCreate(&s->cusolver);
  if (!status) status = cusolverDnCreateParams(&s->params);
  if (!status) status = cusolverDnSetStream(s->cusolver, job->target->space.stream);
  if (status) return status;
  return cusolverDnXsyevd_bufferSize(s->cusolver, s->params, mode_of(job), CUBLAS_FILL_MODE_LOWER,
                                     job->what.n, data_type(type), job->now[BQR_A], job->what.n,
                                     real_type(type), job->now[BQR_S], data_type(type), &s->device_bytes,
                                     &s->host_bytes);
}

static bool allocate_work(state *s) {
  memory_space *space = &s->job->target->space;
  s->device_work = space_alloc(space, s->device_bytes + 1);
  s->host_work = malloc(s->host_bytes + 1);
  s->info = space_alloc(space, sizeof *s->info);
  return s->device_work && s->host_work && s->info;
}

static void *open_syevd(bench_job *job, const bench_impl_options *options, bench_facts *facts,
                        char why[BENCH_TEXT]) {
  (void)options;
  if (job->what.batch > MOST_MEMBERS)
    return snprintf(why, BENCH_TEXT, "one call for each of %lld members", (long long)job->what.batch), NULL;
  state *s = calloc(1, sizeof *s);
  if (!s) lab_die("out of memory");
  s->job = job;
  const cusolverStatus_t status = start(s);
  if (status)
    return snprintf(why, BENCH_TEXT, "cuSOLVER does not start: status %d", (int)status), close_syevd(s), NULL;
  if (!allocate_work(s))
    return snprintf(why, BENCH_TEXT, "no memory for %zu bytes of workspace", s->device_bytes), close_syevd(s),
           NULL;
  facts->workspace = (int64_t)(s->device_bytes + s->host_bytes);
  return s;
}

static cusolverStatus_t run_member(const state *s, int64_t index) {
  const bench_job *job = s->job;
  const batchqr_type type = job->what.type;
  return cusolverDnXsyevd(s->cusolver, s->params, mode_of(job), CUBLAS_FILL_MODE_LOWER, job->what.n,
                          data_type(type), bench_job_member(job, BQR_A, index), job->what.n, real_type(type),
                          bench_job_member(job, BQR_S, index), data_type(type), s->device_work,
                          s->device_bytes, s->host_work, s->host_bytes, s->info);
}

static bool run_syevd(void *context) {
  const state *s = context;
  for (int64_t i = 0; i < s->job->what.batch; i++) {
    if (bench_job_late(s->job)) return false;
    const cusolverStatus_t status = run_member(s, i);
    if (!status) continue;
    fprintf(stderr, "bench: cusolver_syevd: status %d at member %lld\n", (int)status, (long long)i);
    return false;
  }
  return true;
}

const bench_impl bench_cusolver_syevd = {"cusolver_syevd",
                                         BATCHQR_BACKEND_CUDA,
                                         1u << BATCHQR_SYEVD,
                                         open_syevd,
                                         run_syevd,
                                         close_syevd,
                                         false,
                                         0};
