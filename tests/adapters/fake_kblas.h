/* SPDX-License-Identifier: BSD-3-Clause */
/* What of KBLAS the test's program calls, as KBLAS declares it. */
#ifndef FAKE_KBLAS_H
#define FAKE_KBLAS_H

typedef struct KBlasHandle {
  int calls;
} * kblasHandle_t;
typedef struct CUstream_st *cudaStream_t;
enum { KBLAS_Success = 1 };

int kblasCreate(kblasHandle_t *handle);
int kblasDestroy(kblasHandle_t *handle);
cudaStream_t kblasGetStream(kblasHandle_t handle);

#define FAKE_TAU(X, routine, T)                                                                              \
  int kblas##X##routine##_batch(kblasHandle_t handle, int m, int n, T **a, int lda, T **tau, int count);     \
  int kblas##X##routine##_batch_strided(kblasHandle_t handle, int m, int n, T *a, int lda, int stride_a,     \
                                        T *tau, int stride_tau, int count);
#define FAKE(X, T)                                                                                           \
  FAKE_TAU(X, geqrf, T)                                                                                      \
  FAKE_TAU(X, tsqrf, T)                                                                                      \
  FAKE_TAU(X, orgqr, T)                                                                                      \
  int kblas##X##geqp2_batch(kblasHandle_t handle, int m, int n, T **a, int lda, T **tau, int **piv,          \
                            int *ranks, T tol, int count);                                                   \
  int kblas##X##geqp2_batch_strided(kblasHandle_t handle, int m, int n, T *a, int lda, int stride_a, T *tau, \
                                    int stride_tau, int *piv, int stride_piv, int *ranks, T tol, int count);
FAKE(S, float)
FAKE(D, double)
#undef FAKE
#undef FAKE_TAU

#endif
