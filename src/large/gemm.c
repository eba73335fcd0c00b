/* SPDX-License-Identifier: BSD-3-Clause */
#include "gemm.h"
#include <cublas_v2.h>
#include <cuComplex.h>
#include <pthread.h>
#include <stdlib.h>

/* What cuBLAS wants on Hopper for its fastest kernels; without it, it would allocate its own. */
static const size_t cublas_bytes = (size_t)32 << 20;

struct bqr_gemm_engine {
  cublasHandle_t cublas;
  pthread_mutex_t lock; /* stream and workspace are the handle's, not a call's */
};

static batchqr_status status_of(cublasStatus_t status) {
  switch (status) {
  case CUBLAS_STATUS_SUCCESS:
    return BATCHQR_SUCCESS;
  case CUBLAS_STATUS_ALLOC_FAILED:
    return BATCHQR_OUT_OF_MEMORY;
  default:
    return BATCHQR_CUDA_ERROR;
  }
}

batchqr_status bqr_gemm_engine_new(const batchqr_device *device, bqr_gemm_engine **engine) {
  (void)device;
  *engine = calloc(1, sizeof **engine);
  if (!*engine) return BATCHQR_OUT_OF_MEMORY;
  batchqr_status status = status_of(cublasCreate(&(*engine)->cublas));
  if (!status && pthread_mutex_init(&(*engine)->lock, NULL) == 0) return BATCHQR_SUCCESS;
  if (!status) cublasDestroy((*engine)->cublas);
  free(*engine);
  *engine = NULL;
  return status ? status : BATCHQR_OUT_OF_MEMORY;
}

void bqr_gemm_engine_free(bqr_gemm_engine *engine) {
  if (!engine) return;
  cublasDestroy(engine->cublas);
  pthread_mutex_destroy(&engine->lock);
  free(engine);
}

static cublasStatus_t native(cublasHandle_t cublas, const bqr_gemm *g) {
  const cublasOperation_t op = g->adjoint_a ? CUBLAS_OP_C : CUBLAS_OP_N;
  const int m = (int)g->m, n = (int)g->n, k = (int)g->k;
  const int lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
  const float sa = (float)g->alpha, sb = (float)g->beta;
  const double da = g->alpha, db = g->beta;
  const cuComplex ca = {sa, 0}, cb = {sb, 0};
  const cuDoubleComplex za = {da, 0}, zb = {db, 0};
  switch (g->type) {
  case BATCHQR_S:
    return cublasSgemm(cublas, op, CUBLAS_OP_N, m, n, k, &sa, g->a, lda, g->b, ldb, &sb, g->c, ldc);
  case BATCHQR_D:
    return cublasDgemm(cublas, op, CUBLAS_OP_N, m, n, k, &da, g->a, lda, g->b, ldb, &db, g->c, ldc);
  case BATCHQR_C:
    return cublasCgemm(cublas, op, CUBLAS_OP_N, m, n, k, &ca, g->a, lda, g->b, ldb, &cb, g->c, ldc);
  default:
    return cublasZgemm(cublas, op, CUBLAS_OP_N, m, n, k, &za, g->a, lda, g->b, ldb, &zb, g->c, ldc);
  }
}

size_t bqr_gemm_workspace(const bqr_gemm *sizes) {
  (void)sizes;
  return cublas_bytes;
}

batchqr_status bqr_gemm_enqueue(bqr_gemm_engine *engine, const bqr_gemm *gemm, void *workspace, size_t bytes,
                                batchqr_stream stream) {
  if (gemm->m == 0 || gemm->n == 0) return BATCHQR_SUCCESS;
  if (bytes < bqr_gemm_workspace(gemm)) return BATCHQR_WORKSPACE_TOO_SMALL;
  pthread_mutex_lock(&engine->lock);
  cublasStatus_t status = cublasSetStream(engine->cublas, stream); /* takes the workspace away */
  if (!status) status = cublasSetWorkspace(engine->cublas, workspace, cublas_bytes);
  if (!status) status = native(engine->cublas, gemm);
  pthread_mutex_unlock(&engine->lock);
  return status_of(status);
}
