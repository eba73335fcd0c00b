/* SPDX-License-Identifier: BSD-3-Clause */
/* A library in cuSOLVER's place that computes by LAPACK, and says so. */
#include "fake_cusolver.h"
#include <lapacke.h>
#include <stdio.h>
#include <stdlib.h>

struct fake_handle {
  int calls;
};
static struct fake_handle only;
static const cusolverStatus_t OK = CUSOLVER_STATUS_SUCCESS;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle) { return *handle = &only, OK; }
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle) {
  printf("the peer computed %d times\n", handle->calls);
  return OK;
}
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream) {
  (void)handle;
  return *stream = NULL, OK;
}
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t *info) { return *info = &only, OK; }
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t *info) { return *info = &only, OK; }
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *params) { return *params = &only, OK; }

static char job(cusolverEigMode_t jobz) { return jobz == CUSOLVER_EIG_MODE_VECTOR ? 'V' : 'N'; }
static char triangle(cublasFillMode_t uplo) { return uplo == CUBLAS_FILL_MODE_UPPER ? 'U' : 'L'; }

/* V = (V^H)^H, in place. */
#define CONJUGATE_TRANSPOSE(T, conjugate)                                                                    \
  for (int j = 0; j < n; j++)                                                                                \
    for (int i = 0; i <= j; i++) {                                                                           \
      const T t = v_k[i + (size_t)j * ldv];                                                                  \
      v_k[i + (size_t)j * ldv] = conjugate(v_k[j + (size_t)i * ldv]);                                        \
      v_k[j + (size_t)i * ldv] = conjugate(t);                                                               \
    }

#define FAKE(X, x, sy, T, R, conjugate)                                                                      \
  cusolverStatus_t cusolverDn##X##sy##evjBatched_bufferSize(                                                 \
      cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, const T *a, int lda,  \
      const R *w, int *lwork, syevjInfo_t params, int count) {                                               \
    (void)handle, (void)jobz, (void)uplo, (void)n, (void)a, (void)lda, (void)w, (void)params, (void)count;   \
    return *lwork = 1, OK;                                                                                   \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##X##sy##evjBatched(cusolverDnHandle_t handle, cusolverEigMode_t jobz,          \
                                                 cublasFillMode_t uplo, int n, T *a, int lda, R *w, T *work, \
                                                 int lwork, int *info, syevjInfo_t params, int count) {      \
    (void)work, (void)lwork, (void)params;                                                                   \
    handle->calls++;                                                                                         \
    for (int k = 0; k < count; k++)                                                                          \
      info[k] = LAPACKE_##x##sy##evd(LAPACK_COL_MAJOR, job(jobz), triangle(uplo), n,                         \
                                     a + (size_t)k * lda * n, lda, w + (size_t)k * n);                       \
    return OK;                                                                                               \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##X##gesvdjBatched_bufferSize(                                                  \
      cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, const T *a, int lda, const R *s,      \
      const T *u, int ldu, const T *v, int ldv, int *lwork, gesvdjInfo_t params, int count) {                \
    (void)handle, (void)jobz, (void)a, (void)lda, (void)s, (void)u, (void)ldu, (void)v, (void)ldv;           \
    (void)params;                                                                                            \
    return *lwork = (m + n) * count, OK;                                                                     \
  }                                                                                                          \
  cusolverStatus_t cusolverDn##X##gesvdjBatched(                                                             \
      cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, T *a, int lda, R *s, T *u, int ldu,   \
      T *v, int ldv, T *work, int lwork, int *info, gesvdjInfo_t params, int count) {                        \
    (void)work, (void)lwork, (void)params;                                                                   \
    const char wanted = jobz == CUSOLVER_EIG_MODE_VECTOR ? 'A' : 'N';                                        \
    const int least = m < n ? m : n;                                                                         \
    handle->calls++;                                                                                         \
    for (int k = 0; k < count; k++) {                                                                        \
      T *v_k = v + (size_t)k * ldv * n;                                                                      \
      info[k] = LAPACKE_##x##gesdd(LAPACK_COL_MAJOR, wanted, m, n, a + (size_t)k * lda * n, lda,             \
                                   s + (size_t)k * least, u + (size_t)k * ldu * m, ldu, v_k, ldv);           \
      if (wanted == 'A') CONJUGATE_TRANSPOSE(T, conjugate)                                                   \
    }                                                                                                        \
    return OK;                                                                                               \
  }
FAKE(S, s, sy, float, float, )
FAKE(D, d, sy, double, double, )
FAKE(C, c, he, float complex, float, conjf)
FAKE(Z, z, he, double complex, double, conj)

cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                   cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                                   cudaDataType type_a, const void *a, int64_t lda,
                                                   cudaDataType type_w, const void *w, cudaDataType compute,
                                                   size_t *device_bytes, size_t *host_bytes, int64_t count) {
  (void)handle, (void)params, (void)jobz, (void)uplo, (void)n, (void)type_a, (void)a, (void)lda, (void)type_w;
  (void)w, (void)compute, (void)count;
  return *device_bytes = *host_bytes = 8, OK;
}

cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                        cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                        cudaDataType type_a, void *a, int64_t lda, cudaDataType type_w,
                                        void *w, cudaDataType compute, void *device, size_t device_bytes,
                                        void *host, size_t host_bytes, int *info, int64_t count) {
  (void)type_w, (void)compute, (void)device, (void)device_bytes, (void)host, (void)host_bytes;
  const int n_int = (int)n, lda_int = (int)lda, count_int = (int)count;
  switch (type_a) {
  case CUDA_R_32F:
    return cusolverDnSsyevjBatched(handle, jobz, uplo, n_int, a, lda_int, w, NULL, 0, info, params,
                                   count_int);
  case CUDA_R_64F:
    return cusolverDnDsyevjBatched(handle, jobz, uplo, n_int, a, lda_int, w, NULL, 0, info, params,
                                   count_int);
  case CUDA_C_32F:
    return cusolverDnCheevjBatched(handle, jobz, uplo, n_int, a, lda_int, w, NULL, 0, info, params,
                                   count_int);
  default:
    return cusolverDnZheevjBatched(handle, jobz, uplo, n_int, a, lda_int, w, NULL, 0, info, params,
                                   count_int);
  }
}
