/* SPDX-License-Identifier: BSD-3-Clause */
/* The peer MAGMA (2.8 or later): geqrf_batched with the workspace allocated outside the timing. */
#include "bench.h"

#include <cuda_runtime_api.h>
#include <magma_v2.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct state {
  bench_job *job;
  magma_queue_t queue;
  magma_int_t *info;
  void *work;
  magma_int_t work_bytes;
} state;

static magma_int_t geqrf(const state *s, magma_int_t *work_bytes) {
  const bench_job *job = s->job;
  magma_int_t m = job->what.m, n = job->what.n, count = (magma_int_t)job->what.batch;
  void *a = job->addresses[BQR_A], *tau = job->addresses[BQR_TAU];
  switch (job->what.type) {
  case BATCHQR_S:
    return magma_sgeqrf_batched_work(m, n, a, m, tau, s->info, s->work, work_bytes, count, s->queue);
  case BATCHQR_D:
    return magma_dgeqrf_batched_work(m, n, a, m, tau, s->info, s->work, work_bytes, count, s->queue);
  case BATCHQR_C:
    return magma_cgeqrf_batched_work(m, n, a, m, tau, s->info, s->work, work_bytes, count, s->queue);
  case BATCHQR_Z:
    return magma_zgeqrf_batched_work(m, n, a, m, tau, s->info, s->work, work_bytes, count, s->queue);
  }
  return -1;
}

static void close_magma(void *context) {
  state *s = context;
  memory_space *space = &s->job->target->space;
  space_release(space, s->info);
  space_release(space, s->work);
  if (s->queue) magma_queue_destroy(s->queue);
  magma_finalize();
  free(s);
}

static bool allocate(state *s) {
  memory_space *space = &s->job->target->space;
  s->info = space_alloc(space, (size_t)s->job->what.batch * sizeof *s->info);
  if (!s->info || !bench_job_pointers(s->job)) return false;
  s->work_bytes = -1; /* asks */
  geqrf(s, &s->work_bytes);
  if (s->work_bytes < 0) return false;
  s->work = space_alloc(space, (size_t)s->work_bytes);
  return s->work;
}

static void *open_magma(bench_job *job, const bench_impl_options *options, bench_facts *facts,
                        char why[BENCH_TEXT]) {
  (void)options;
  if (job->what.batch > INT32_MAX) return snprintf(why, BENCH_TEXT, "its batch count is an int"), NULL;
  if (magma_init() != MAGMA_SUCCESS) return snprintf(why, BENCH_TEXT, "MAGMA does not start"), NULL;
  state *s = calloc(1, sizeof *s);
  if (!s) lab_die("out of memory");
  s->job = job;
  magma_queue_create_from_cuda(job->target->device->ordinal, job->target->space.stream, NULL, NULL,
                               &s->queue);
  if (!s->queue || !allocate(s))
    return snprintf(why, BENCH_TEXT, "no memory for its workspace, or more than 2 GiB of it"), close_magma(s),
           NULL;
  facts->workspace = s->work_bytes;
  facts->layout = BATCHQR_POINTERS;
  return s;
}

static bool run_magma(void *context) {
  const state *s = context;
  magma_int_t work_bytes = s->work_bytes, status = geqrf(s, &work_bytes);
  if (status == MAGMA_SUCCESS) return true;
  fprintf(stderr, "bench: magma: %s\n", magma_strerror(status));
  return false;
}

const bench_impl bench_magma = {
    "magma", BATCHQR_BACKEND_CUDA, 1u << BATCHQR_GEQRF, open_magma, run_magma, close_magma, true, 0};
