/* SPDX-License-Identifier: BSD-3-Clause */
/* A library in KBLAS's place that computes by LAPACK, on the host, and counts it. */
#include "fake_kblas.h"
#include <lapacke.h>
#include <math.h>
#include <string.h>

static int least(int m, int n) { return m < n ? m : n; }

#define FAKE_TAU(X, x, routine, T, ...)                                                                      \
  int kblas##X##routine##_batch(kblasHandle_t handle, int m, int n, T **a, int lda, T **tau, int count) {    \
    handle->calls++;                                                                                         \
    for (int k = 0; k < count; k++) {                                                                        \
      T *a_k = a[k], *tau_k = tau[k];                                                                        \
      __VA_ARGS__;                                                                                           \
    }                                                                                                        \
    return KBLAS_Success;                                                                                    \
  }                                                                                                          \
  int kblas##X##routine##_batch_strided(kblasHandle_t handle, int m, int n, T *a, int lda, int stride_a,     \
                                        T *tau, int stride_tau, int count) {                                 \
    handle->calls++;                                                                                         \
    for (int k = 0; k < count; k++) {                                                                        \
      T *a_k = a + (size_t)k * stride_a, *tau_k = tau + (size_t)k * stride_tau;                              \
      __VA_ARGS__;                                                                                           \
    }                                                                                                        \
    return KBLAS_Success;                                                                                    \
  }

/* Counts R's rows down to the tolerance. */
#define FAKE(X, x, T)                                                                                        \
  FAKE_TAU(X, x, geqrf, T, LAPACKE_##x##geqrf(LAPACK_COL_MAJOR, m, n, a_k, lda, tau_k))                      \
  FAKE_TAU(X, x, tsqrf, T, LAPACKE_##x##geqrf(LAPACK_COL_MAJOR, m, n, a_k, lda, tau_k))                      \
  FAKE_TAU(X, x, orgqr, T,                                                                                   \
           LAPACKE_##x##orgqr(LAPACK_COL_MAJOR, m, least(m, n), least(m, n), a_k, lda, tau_k))               \
  static int X##geqp2(int m, int n, T *a, int lda, T *tau, int *piv, T tol) {                                \
    memset(piv, 0, n * sizeof *piv);                                                                         \
    LAPACKE_##x##geqp3(LAPACK_COL_MAJOR, m, n, a, lda, piv, tau);                                            \
    for (int j = 0; j < n; j++) piv[j]--;                                                                    \
    int rank = 0;                                                                                            \
    while (rank < least(m, n) && fabs(a[rank + (size_t)rank * lda]) * sqrt(n - rank) >= tol) rank++;         \
    return rank;                                                                                             \
  }                                                                                                          \
  int kblas##X##geqp2_batch(kblasHandle_t handle, int m, int n, T **a, int lda, T **tau, int **piv,          \
                            int *ranks, T tol, int count) {                                                  \
    handle->calls++;                                                                                         \
    for (int k = 0; k < count; k++) ranks[k] = X##geqp2(m, n, a[k], lda, tau[k], piv[k], tol);               \
    return KBLAS_Success;                                                                                    \
  }                                                                                                          \
  int kblas##X##geqp2_batch_strided(kblasHandle_t handle, int m, int n, T *a, int lda, int stride_a, T *tau, \
                                    int stride_tau, int *piv, int stride_piv, int *ranks, T tol,             \
                                    int count) {                                                             \
    handle->calls++;                                                                                         \
    for (int k = 0; k < count; k++)                                                                          \
      ranks[k] = X##geqp2(m, n, a + (size_t)k * stride_a, lda, tau + (size_t)k * stride_tau,                 \
                          piv + (size_t)k * stride_piv, tol);                                                \
    return KBLAS_Success;                                                                                    \
  }
FAKE(S, s, float)
FAKE(D, d, double)
