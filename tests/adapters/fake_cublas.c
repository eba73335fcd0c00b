/* SPDX-License-Identifier: BSD-3-Clause */
/* A library in cuBLAS's place that computes by LAPACK, and says so. */
#include "fake_cublas.h"
#include <lapacke.h>
#include <stdatomic.h>
#include <stdio.h>

struct fake_handle {
  atomic_int calls;
};
static struct fake_handle only;

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle) { return *handle = &only, CUBLAS_STATUS_SUCCESS; }
cublasStatus_t cublasDestroy_v2(cublasHandle_t handle) {
  printf("the peer computed %d times\n", handle->calls);
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, cudaStream_t *stream) {
  (void)handle;
  return *stream = NULL, CUBLAS_STATUS_SUCCESS;
}

#define FAKE(X, x, T)                                                                                        \
  cublasStatus_t cublas##X##geqrfBatched(cublasHandle_t handle, int m, int n, T *const a[], int lda,         \
                                         T *const tau[], int *info, int count) {                             \
    *info = 0, handle->calls++;                                                                              \
    for (int k = 0; k < count; k++) LAPACKE_##x##geqrf(LAPACK_COL_MAJOR, m, n, a[k], lda, tau[k]);           \
    return CUBLAS_STATUS_SUCCESS;                                                                            \
  }                                                                                                          \
  cublasStatus_t cublas##X##gelsBatched(cublasHandle_t handle, cublasOperation_t trans, int m, int n,        \
                                        int nrhs, T *const a[], int lda, T *const c[], int ldc, int *info,   \
                                        int *dev_info, int count) {                                          \
    (void)trans;                                                                                             \
    *info = 0, handle->calls++;                                                                              \
    for (int k = 0; k < count; k++)                                                                          \
      dev_info[k] = LAPACKE_##x##gels(LAPACK_COL_MAJOR, 'N', m, n, nrhs, a[k], lda, c[k], ldc);              \
    return CUBLAS_STATUS_SUCCESS;                                                                            \
  }
FAKE(S, s, float)
FAKE(D, d, double)
FAKE(C, c, float complex)
FAKE(Z, z, double complex)
