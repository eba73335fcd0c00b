/* SPDX-License-Identifier: BSD-3-Clause */
/* What the project uses of cuBLAS, done by the host's BLAS. */
#ifndef EMULATOR_CUBLAS_V2_H
#define EMULATOR_CUBLAS_V2_H

#include "cuComplex.h"
#include "cuda_runtime_api.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cublasContext *cublasHandle_t;
typedef enum {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
} cublasStatus_t;
typedef enum { CUBLAS_OP_N, CUBLAS_OP_T, CUBLAS_OP_C } cublasOperation_t;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t bytes);

#define EMULATOR_GEMM(name, T)                                                                               \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,   \
                      int k, const T *alpha, const T *a, int lda, const T *b, int ldb, const T *beta, T *c,  \
                      int ldc)
EMULATOR_GEMM(cublasSgemm, float);
EMULATOR_GEMM(cublasDgemm, double);
EMULATOR_GEMM(cublasCgemm, cuComplex);
EMULATOR_GEMM(cublasZgemm, cuDoubleComplex);

#define EMULATOR_GEMM_STRIDED(name, T)                                                                       \
  cublasStatus_t name(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n,   \
                      int k, const T *alpha, const T *a, int lda, long long stride_a, const T *b, int ldb,   \
                      long long stride_b, const T *beta, T *c, int ldc, long long stride_c, int count)
EMULATOR_GEMM_STRIDED(cublasSgemmStridedBatched, float);
EMULATOR_GEMM_STRIDED(cublasDgemmStridedBatched, double);

#ifdef __cplusplus
}
#endif

#endif
