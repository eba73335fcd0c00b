/* SPDX-License-Identifier: BSD-3-Clause */
/* What of cuBLAS the test's program calls, as cuBLAS declares it, but for host memory. */
#ifndef FAKE_CUBLAS_H
#define FAKE_CUBLAS_H

#include <complex.h>

typedef struct fake_handle *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;
typedef enum { CUBLAS_STATUS_SUCCESS } cublasStatus_t;
typedef enum { CUBLAS_OP_N } cublasOperation_t;

#define cublasCreate  cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
cublasStatus_t cublasCreate_v2(cublasHandle_t *handle);
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle);
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream);

#define FAKE(X, T)                                                                                           \
  cublasStatus_t cublas##X##geqrfBatched(cublasHandle_t handle, int m, int n, T *const a[], int lda,         \
                                         T *const tau[], int *info, int count);                              \
  cublasStatus_t cublas##X##gelsBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n,        \
                                        int nrhs, T *const a[], int lda, T *const c[], int ldc, int *info,   \
                                        int *dev_info, int count);
FAKE(S, float)
FAKE(D, double)
FAKE(C, float complex)
FAKE(Z, double complex)
#undef FAKE

#endif
