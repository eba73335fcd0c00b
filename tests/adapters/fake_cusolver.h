/* SPDX-License-Identifier: BSD-3-Clause */
/* What of cuSOLVER the test's program calls, as cuSOLVER declares it, but for host memory. */
#ifndef FAKE_CUSOLVER_H
#define FAKE_CUSOLVER_H

#include <complex.h>
#include <stddef.h>
#include <stdint.h>

typedef struct fake_handle *cusolverDnHandle_t;
typedef struct CUstream_st *cudaStream_t;
typedef void *syevjInfo_t, *gesvdjInfo_t, *cusolverDnParams_t;
typedef enum { CUSOLVER_STATUS_SUCCESS } cusolverStatus_t;
typedef enum { CUSOLVER_EIG_MODE_NOVECTOR, CUSOLVER_EIG_MODE_VECTOR } cusolverEigMode_t;
typedef enum { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER } cublasFillMode_t;
typedef enum { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_C_32F = 4, CUDA_C_64F = 5 } cudaDataType;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnGetStream(cusolverDnHandle_t handle, cudaStream_t *stream);
cusolverStatus_t cusolverDnCreateSyevjInfo(syevjInfo_t *info);
cusolverStatus_t cusolverDnCreateGesvdjInfo(gesvdjInfo_t *info);
cusolverStatus_t cusolverDnCreateParams(cusolverDnParams_t *params);

#define FAKE(X, syev, T, R)                                                                                  \
  cusolverStatus_t cusolverDn##X##syev##jBatched_bufferSize(                                                 \
      cusolverDnHandle_t handle, cusolverEigMode_t jobz, cublasFillMode_t uplo, int n, const T *a, int lda,  \
      const R *w, int *lwork, syevjInfo_t params, int count);                                                \
  cusolverStatus_t cusolverDn##X##syev##jBatched(cusolverDnHandle_t handle, cusolverEigMode_t jobz,          \
                                                 cublasFillMode_t uplo, int n, T *a, int lda, R *w, T *work, \
                                                 int lwork, int *info, syevjInfo_t params, int count);       \
  cusolverStatus_t cusolverDn##X##gesvdjBatched_bufferSize(                                                  \
      cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, const T *a, int lda, const R *s,      \
      const T *u, int ldu, const T *v, int ldv, int *lwork, gesvdjInfo_t params, int count);                 \
  cusolverStatus_t cusolverDn##X##gesvdjBatched(                                                             \
      cusolverDnHandle_t handle, cusolverEigMode_t jobz, int m, int n, T *a, int lda, R *s, T *u, int ldu,   \
      T *v, int ldv, T *work, int lwork, int *info, gesvdjInfo_t params, int count);
FAKE(S, syev, float, float)
FAKE(D, syev, double, double)
FAKE(C, heev, float complex, float)
FAKE(Z, heev, double complex, double)
#undef FAKE

cusolverStatus_t cusolverDnXsyevBatched_bufferSize(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                                   cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                                   cudaDataType type_a, const void *a, int64_t lda,
                                                   cudaDataType type_w, const void *w, cudaDataType compute,
                                                   size_t *device_bytes, size_t *host_bytes, int64_t count);
cusolverStatus_t cusolverDnXsyevBatched(cusolverDnHandle_t handle, cusolverDnParams_t params,
                                        cusolverEigMode_t jobz, cublasFillMode_t uplo, int64_t n,
                                        cudaDataType type_a, void *a, int64_t lda, cudaDataType type_w,
                                        void *w, cudaDataType compute, void *device, size_t device_bytes,
                                        void *host, size_t host_bytes, int *info, int64_t count);

#endif
