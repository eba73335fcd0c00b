/* SPDX-License-Identifier: BSD-3-Clause */
/* cuBLAS's products, as work of streams that the host's BLAS does. */
#include "cublas_v2.h"
#include "runtime.h"
#include <cblas.h>

struct cublasContext {
  cudaStream_t stream = nullptr;
};

namespace {

CBLAS_TRANSPOSE operation(cublasOperation_t op) {
  return op == CUBLAS_OP_N ? CblasNoTrans : op == CUBLAS_OP_T ? CblasTrans : CblasConjTrans;
}

void gemm(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int m, int n, int k, float alpha, const float *x, int ldx,
          const float *y, int ldy, float beta, float *c, int ldc) {
  cblas_sgemm(CblasColMajor, a, b, m, n, k, alpha, x, ldx, y, ldy, beta, c, ldc);
}
void gemm(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int m, int n, int k, double alpha, const double *x, int ldx,
          const double *y, int ldy, double beta, double *c, int ldc) {
  cblas_dgemm(CblasColMajor, a, b, m, n, k, alpha, x, ldx, y, ldy, beta, c, ldc);
}
void gemm(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int m, int n, int k, cuComplex alpha, const cuComplex *x,
          int ldx, const cuComplex *y, int ldy, cuComplex beta, cuComplex *c, int ldc) {
  cblas_cgemm(CblasColMajor, a, b, m, n, k, &alpha, x, ldx, y, ldy, &beta, c, ldc);
}
void gemm(CBLAS_TRANSPOSE a, CBLAS_TRANSPOSE b, int m, int n, int k, cuDoubleComplex alpha,
          const cuDoubleComplex *x, int ldx, const cuDoubleComplex *y, int ldy, cuDoubleComplex beta,
          cuDoubleComplex *c, int ldc) {
  cblas_zgemm(CblasColMajor, a, b, m, n, k, &alpha, x, ldx, y, ldy, &beta, c, ldc);
}

/* Of `count` members; the scalars are the host's, and taken now. */
template <class T>
cublasStatus_t enqueue(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,
                       int k, const T *alpha, const T *a, int lda, long long stride_a, const T *b, int ldb,
                       long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int count) {
  if (m < 0 || n < 0 || k < 0 || ldc < (m > 1 ? m : 1)) return CUBLAS_STATUS_INVALID_VALUE;
  emulator::enqueue(handle->stream, [=, alpha = *alpha, beta = *beta] {
    for (int i = 0; i < count; i++)
      gemm(operation(op_a), operation(op_b), m, n, k, alpha, a + i * stride_a, lda, b + i * stride_b, ldb,
           beta, c + i * stride_c, ldc);
  });
  return CUBLAS_STATUS_SUCCESS;
}

} // namespace

extern "C" {

cublasStatus_t cublasCreate(cublasHandle_t *handle) {
  return *handle = new cublasContext, CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle) {
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream) {
  handle->stream = stream;
  return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t, void *, size_t) { return CUBLAS_STATUS_SUCCESS; }

#undef EMULATOR_GEMM
#define EMULATOR_GEMM(name, T)                                                                               \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,   \
                      int k, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c,  \
                      int ldc) {                                                                             \
    return enqueue(handle, op_a, op_b, m, n, k, alpha, a, lda, 0, b, ldb, 0, beta, c, ldc, 0, 1);            \
  }
EMULATOR_GEMM(cublasSgemm, float)
EMULATOR_GEMM(cublasDgemm, double)
EMULATOR_GEMM(cublasCgemm, cuComplex)
EMULATOR_GEMM(cublasZgemm, cuDoubleComplex)

#undef EMULATOR_GEMM_STRIDED
#define EMULATOR_GEMM_STRIDED(name, T)                                                                       \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,   \
                      int k, const T *alpha, const T *a, int lda, long long stride_a, const T *b, int ldb,   \
                      long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int count) {     \
    return enqueue(handle, op_a, op_b, m, n, k, alpha, a, lda, stride_a, b, ldb, stride_b, beta, c, ldc,     \
                   stride_c, count);                                                                         \
  }
EMULATOR_GEMM_STRIDED(cublasSgemmStridedBatched, float)
EMULATOR_GEMM_STRIDED(cublasDgemmStridedBatched, double)

} // extern "C"
