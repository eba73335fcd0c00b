/* SPDX-License-Identifier: BSD-3-Clause */
/* The peers from NVIDIA: cuBLAS's batched routines, and cuSOLVER called for one member after another.
 *
 * cuSOLVER's qr is what frameworks do: Xgeqrf, a copy of the top k rows for R, orgqr. Its R keeps V below the
 * diagonal: clearing that would cost the peer one more kernel for each member. */
#include "bench.h"

#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>

#if HAVE_CUBLAS
#include <cublas_v2.h>

/* Creating one takes longer than most cases. */
static cublasHandle_t cublas;

typedef struct cublas_state {
  bench_job *job;
} cublas_state;

static bool open_cublas_handle(bench_target *target, char why[BENCH_TEXT]) {
  cublasStatus_t status = cublas ? CUBLAS_STATUS_SUCCESS : cublasCreate(&cublas);
  if (status == CUBLAS_STATUS_SUCCESS) status = cublasSetStream(cublas, target->space.stream);
  if (status != CUBLAS_STATUS_SUCCESS)
    snprintf(why, BENCH_TEXT, "cuBLAS does not start: %s", cublasGetStatusString(status));
  return status == CUBLAS_STATUS_SUCCESS;
}

static void *open_cublas(bench_job *job, const bench_impl_options *options, bench_facts *facts,
                         char why[BENCH_TEXT]) {
  (void)options;
  if (bench_op(&job->what) == BATCHQR_GELS && job->what.m < job->what.n)
    return snprintf(why, BENCH_TEXT, "it solves no wide systems"), NULL;
  if (job->what.batch > INT32_MAX) return snprintf(why, BENCH_TEXT, "its batch count is an int"), NULL;
  if (!open_cublas_handle(job->target, why)) return NULL;
  if (!bench_job_pointers(job)) return snprintf(why, BENCH_TEXT, "no memory for arrays of addresses"), NULL;
  cublas_state *s = malloc(sizeof *s);
  if (!s) lab_die("out of memory");
  s->job = job;
  facts->layout = BATCHQR_POINTERS;
  return s;
}

static cublasStatus_t geqrf_batched(const bench_job *job, int *info) {
  int m = job->what.m, n = job->what.n, count = (int)job->what.batch;
  void *a = job->addresses[BQR_A], *tau = job->addresses[BQR_TAU];
  switch (job->what.type) {
  case BATCHQR_S:
    return cublasSgeqrfBatched(cublas, m, n, a, m, tau, info, count);
  case BATCHQR_D:
    return cublasDgeqrfBatched(cublas, m, n, a, m, tau, info, count);
  case BATCHQR_C:
    return cublasCgeqrfBatched(cublas, m, n, a, m, tau, info, count);
  case BATCHQR_Z:
    return cublasZgeqrfBatched(cublas, m, n, a, m, tau, info, count);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t gels_batched(const bench_job *job, int *info) {
  const cublasOperation_t op = CUBLAS_OP_N;
  int m = job->what.m, n = job->what.n, count = (int)job->what.batch;
  void *a = job->addresses[BQR_A], *c = job->addresses[BQR_C];
  switch (job->what.type) {
  case BATCHQR_S:
    return cublasSgelsBatched(cublas, op, m, n, 1, a, m, c, m, info, NULL, count);
  case BATCHQR_D:
    return cublasDgelsBatched(cublas, op, m, n, 1, a, m, c, m, info, NULL, count);
  case BATCHQR_C:
    return cublasCgelsBatched(cublas, op, m, n, 1, a, m, c, m, info, NULL, count);
  case BATCHQR_Z:
    return cublasZgelsBatched(cublas, op, m, n, 1, a, m, c, m, info, NULL, count);
  }
  return CUBLAS_STATUS_NOT_SUPPORTED;
}

static bool run_cublas(void *context) {
  int info = 0;
  const bench_job *job = ((const cublas_state *)context)->job;
  const bool gels = bench_op(&job->what) == BATCHQR_GELS;
  cublasStatus_t status = gels ? gels_batched(job, &info) : geqrf_batched(job, &info);
  if (status == CUBLAS_STATUS_SUCCESS && !info) return true;
  fprintf(stderr, "bench: cublas<t>%sBatched: %s, info %d\n", gels ? "gels" : "geqrf",
          cublasGetStatusString(status), info);
  return false;
}

static void close_cublas(void *context) { free(context); }

const bench_impl bench_cublas = {"cublas",
                                 BATCHQR_BACKEND_CUDA,
                                 1u << BATCHQR_GEQRF | 1u << BATCHQR_GELS,
                                 open_cublas,
                                 run_cublas,
                                 close_cublas,
                                 true,
                                 2}; /* 18 s for 8 of 2048 x 2048 */
#endif

#if HAVE_CUSOLVER
#include <cusolverDn.h>

static cusolverDnHandle_t cusolver;
static cusolverDnParams_t params;

typedef struct cusolver_state {
  bench_job *job;
  void *device_work, *host_work; /* of Xgeqrf; device_work also of orgqr and ormqr */
  size_t device_bytes, host_bytes;
  int lwork; /* elements at device_work for orgqr and ormqr */
  int *info;
} cusolver_state;

static cudaDataType data_type(batchqr_type type) {
  static const cudaDataType types[] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
  return types[type];
}

/* orgqr (c NULL) or ormqr of one member; with work NULL, its workspace in *lwork. */
#define APPLY(T, orgqr, ormqr, op)                                                                           \
  (!c ? !work ? orgqr##_bufferSize(cusolver, m, k, k, (T *)a, m, (T *)tau, lwork)                            \
              : orgqr(cusolver, m, k, k, (T *)a, m, (T *)tau, (T *)work, *lwork, info)                       \
   : !work                                                                                                   \
       ? ormqr##_bufferSize(cusolver, CUBLAS_SIDE_LEFT, op, m, n, k, (T *)a, m, (T *)tau, (T *)c, m, lwork)  \
       : ormqr(cusolver, CUBLAS_SIDE_LEFT, op, m, n, k, (T *)a, m, (T *)tau, (T *)c, m, (T *)work, *lwork,   \
               info))

static cusolverStatus_t apply(const bench_job *job, void *a, void *tau, void *c, void *work, int *lwork,
                              int *info) {
  int m = job->what.m, n = job->what.n, k = job->k;
  switch (job->what.type) {
  case BATCHQR_S:
    return APPLY(float, cusolverDnSorgqr, cusolverDnSormqr, CUBLAS_OP_T);
  case BATCHQR_D:
    return APPLY(double, cusolverDnDorgqr, cusolverDnDormqr, CUBLAS_OP_T);
  case BATCHQR_C:
    return APPLY(cuComplex, cusolverDnCungqr, cusolverDnCunmqr, CUBLAS_OP_C);
  case BATCHQR_Z:
    return APPLY(cuDoubleComplex, cusolverDnZungqr, cusolverDnZunmqr, CUBLAS_OP_C);
  }
  return CUSOLVER_STATUS_NOT_SUPPORTED;
}

static bool needs_geqrf(batchqr_op routine) { return routine != BATCHQR_ORGQR && routine != BATCHQR_ORMQR; }
static bool needs_apply(batchqr_op routine) { return routine != BATCHQR_GEQRF && routine != BATCHQR_GEQR_R; }

static cusolverStatus_t query(cusolver_state *s) {
  bench_job *job = s->job;
  cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
  cudaDataType type = data_type(job->what.type);
  if (needs_geqrf(bench_op(&job->what)))
    status = cusolverDnXgeqrf_bufferSize(cusolver, params, job->what.m, job->what.n, type, job->now[BQR_A],
                                         job->what.m, type, job->now[BQR_TAU], type, &s->device_bytes,
                                         &s->host_bytes);
  if (status != CUSOLVER_STATUS_SUCCESS || !needs_apply(bench_op(&job->what))) return status;
  status =
      apply(job, job->now[BQR_A], job->now[BQR_TAU], bench_job_member(job, BQR_C, 0), NULL, &s->lwork, NULL);
  size_t bytes = (size_t)s->lwork * bqr_type_bytes(job->what.type);
  if (bytes > s->device_bytes) s->device_bytes = bytes;
  return status;
}

static cusolverStatus_t open_cusolver_handle(bench_target *target) {
  cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
  if (!cusolver) status = cusolverDnCreate(&cusolver);
  if (status == CUSOLVER_STATUS_SUCCESS && !params) status = cusolverDnCreateParams(&params);
  return status == CUSOLVER_STATUS_SUCCESS ? cusolverDnSetStream(cusolver, target->space.stream) : status;
}

static void close_cusolver(void *context) {
  cusolver_state *s = context;
  memory_space *space = &s->job->target->space;
  space_release(space, s->device_work);
  space_release(space, s->info);
  free(s->host_work);
  free(s);
}

static bool allocate_work(cusolver_state *s) {
  memory_space *space = &s->job->target->space;
  /* Never empty: a NULL workspace means a query to apply(). */
  s->device_work = space_alloc(space, s->device_bytes + 256);
  s->host_work = malloc(s->host_bytes + 1);
  s->info = space_alloc(space, sizeof *s->info);
  return s->device_work && s->host_work && s->info;
}

static void *open_cusolver(bench_job *job, const bench_impl_options *options, bench_facts *facts,
                           char why[BENCH_TEXT]) {
  (void)options;
  cusolver_state *s = calloc(1, sizeof *s);
  if (!s) lab_die("out of memory");
  s->job = job;
  cusolverStatus_t status = open_cusolver_handle(job->target);
  if (status == CUSOLVER_STATUS_SUCCESS) status = query(s);
  if (status != CUSOLVER_STATUS_SUCCESS)
    return snprintf(why, BENCH_TEXT, "cuSOLVER does not start: status %d", (int)status), close_cusolver(s),
           NULL;
  if (!allocate_work(s))
    return snprintf(why, BENCH_TEXT, "no memory for %zu bytes of workspace", s->device_bytes),
           close_cusolver(s), NULL;
  facts->workspace = (int64_t)(s->device_bytes + s->host_bytes);
  return s;
}

static cudaError_t copy_r(const bench_job *job, void *r, const void *a) {
  size_t size = bqr_type_bytes(job->what.type), rows = (size_t)job->k * size;
  return cudaMemcpy2DAsync(r, rows, a, (size_t)job->what.m * size, rows, (size_t)job->what.n,
                           cudaMemcpyDeviceToDevice, job->target->space.stream);
}

static cusolverStatus_t run_member(cusolver_state *s, int64_t index) {
  bench_job *job = s->job;
  batchqr_op routine = bench_op(&job->what);
  void *a = bench_job_member(job, BQR_A, index), *tau = bench_job_member(job, BQR_TAU, index);
  void *r = bench_job_member(job, BQR_R, index), *c = bench_job_member(job, BQR_C, index);
  cudaDataType type = data_type(job->what.type);
  cusolverStatus_t status = CUSOLVER_STATUS_SUCCESS;
  if (needs_geqrf(routine))
    status = cusolverDnXgeqrf(cusolver, params, job->what.m, job->what.n, type, a, job->what.m, type, tau,
                              type, s->device_work, s->device_bytes, s->host_work, s->host_bytes, s->info);
  if (status == CUSOLVER_STATUS_SUCCESS && r && copy_r(job, r, a) != cudaSuccess)
    return CUSOLVER_STATUS_INTERNAL_ERROR;
  if (status != CUSOLVER_STATUS_SUCCESS || !needs_apply(routine)) return status;
  return apply(job, a, tau, c, s->device_work, &s->lwork, s->info);
}

/* The loop is hardly ahead of the device: few calls fit into its queue. */
static bool run_cusolver(void *context) {
  cusolver_state *s = context;
  for (int64_t i = 0; i < s->job->what.batch; i++) {
    if (bench_job_late(s->job)) return false;
    cusolverStatus_t status = run_member(s, i);
    if (status == CUSOLVER_STATUS_SUCCESS) continue;
    fprintf(stderr, "bench: cusolver: status %d at member %lld\n", (int)status, (long long)i);
    return false;
  }
  return true;
}

const bench_impl bench_cusolver = {"cusolver",
                                   BATCHQR_BACKEND_CUDA,
                                   (1u << BATCHQR_GEQRF | 1u << BATCHQR_ORGQR | 1u << BATCHQR_ORMQR |
                                    1u << BATCHQR_QR | 1u << BATCHQR_GEQR_R),
                                   open_cusolver,
                                   run_cusolver,
                                   close_cusolver,
                                   false,
                                   0};
#endif

void bench_baselines_cuda_close(void) {
#if HAVE_CUSOLVER
  if (params) cusolverDnDestroyParams(params);
  if (cusolver) cusolverDnDestroy(cusolver);
#endif
#if HAVE_CUBLAS
  if (cublas) cublasDestroy(cublas);
#endif
}
