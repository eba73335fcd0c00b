/* SPDX-License-Identifier: BSD-3-Clause */
/* kblas{S,D}geqrf, tsqrf, orgqr and geqp2, _batch and _batch_strided. KBLAS takes up to 512 rows, batchqr
 * any. */
#include "adapter.h"
#include <math.h>

const char *const bqr_peer_libraries[] = {"libkblas-gpu.so", "libkblas.so", NULL};

enum { KBLAS_Success = 1, KBLAS_UnknownError = 0 };

/* KBLAS is often linked statically, where the linker alone finds this. Before version 4 the name was C++'s.
 */
extern batchqr_stream kblasGetStream(void *handle) __attribute__((weak));
extern batchqr_stream get_stream_3(void *handle) __asm__("_Z14kblasGetStreamP11KBlasHandle")
    __attribute__((weak));

/* Members at a stride, or an array of addresses. */
typedef struct operand {
  void *address;
  batchqr_storage storage;
} operand;

static operand strided(void *address, int ld, int stride) {
  return (operand){address, bqr_adapter_strided(ld, stride)};
}

static operand pointers(void *address, int ld) { return (operand){address, bqr_adapter_pointers(ld)}; }

static batchqr_handle_t handle_of(void *handle) {
  if (kblasGetStream) return bqr_adapter_handle(kblasGetStream(handle), false);
  return get_stream_3 ? bqr_adapter_handle(get_stream_3(handle), false) : NULL;
}

static batchqr_batch batch_of(batchqr_type type, int m, int n, operand a, operand tau, int count) {
  return (batchqr_batch){.type = type, .count = count, .m = m, .n = n, .a = a.storage, .tau = tau.storage};
}

static bool geqrf(batchqr_type type, void *handle, int m, int n, operand a, operand tau, int count) {
  batchqr_handle_t own = handle_of(handle);
  const batchqr_batch batch = batch_of(type, m, n, a, tau, count);
  return own && !batch_geqrf(own, &batch, a.address, tau.address, NULL);
}

/* R alone: what KBLAS leaves below it and in tau are not LAPACK's reflectors, and nothing can use them. */
static bool tsqrf(batchqr_type type, void *handle, int m, int n, operand a, operand tau, int count) {
  batchqr_handle_t own = handle_of(handle);
  batchqr_batch batch = batch_of(type, m, n, a, tau, count);
  batch.r = batch.a;
  return own && !batch_geqr_r(own, &batch, a.address, a.address, NULL);
}

/* The first min(m,n) columns, of as many reflectors. */
static bool orgqr(batchqr_type type, void *handle, int m, int n, operand a, operand tau, int count) {
  batchqr_handle_t own = handle_of(handle);
  const int columns = m < n ? m : n;
  batchqr_batch batch = batch_of(type, m, columns, a, tau, count);
  batch.k = columns;
  return own && !batch_orgqr(own, &batch, a.address, tau.address, NULL);
}

/* KBLAS stops at the first column k with |remaining part of the longest column| sqrt(n - k) < tol, which
 * bounds the Frobenius norm of what remains. A length of tol / sqrt(n) or less is surely short enough. */
static bool geqp2(batchqr_type type, void *handle, int m, int n, operand a, operand tau, operand piv,
                  int *ranks, double tol, int count) {
  batchqr_handle_t own = handle_of(handle);
  batchqr_batch batch = batch_of(type, m, n, a, tau, count);
  batch.jpvt = piv.storage;
  batch.rank = bqr_adapter_strided(0, 1);
  batch.abstol = n > 0 ? tol / sqrt(n) : 0;
  return own && !batch_geqp3(own, &batch, a.address, tau.address, piv.address, ranks, NULL, NULL);
}

/* --- with KBLAS's arguments */

typedef int batch_function(void *handle, int m, int n, void *a, int lda, void *tau, int count);
typedef int strided_function(void *handle, int m, int n, void *a, int lda, int stride_a, void *tau,
                             int stride_tau, int count);

#define WITH_TAU(X, routine, TYPE)                                                                           \
  BQR_ADAPTER_API batch_function kblas##X##routine##_batch;                                                  \
  int kblas##X##routine##_batch(void *handle, int m, int n, void *a, int lda, void *tau, int count) {        \
    static bqr_peer peer = {.name = "kblas" #X #routine "_batch"};                                           \
    if (routine(TYPE, handle, m, n, pointers(a, lda), pointers(tau, 0), count)) return KBLAS_Success;        \
    batch_function *function = (batch_function *)bqr_peer_find(&peer);                                       \
    return function ? function(handle, m, n, a, lda, tau, count) : KBLAS_UnknownError;                       \
  }                                                                                                          \
  BQR_ADAPTER_API strided_function kblas##X##routine##_batch_strided;                                        \
  int kblas##X##routine##_batch_strided(void *handle, int m, int n, void *a, int lda, int stride_a,          \
                                        void *tau, int stride_tau, int count) {                              \
    static bqr_peer peer = {.name = "kblas" #X #routine "_batch_strided"};                                   \
    if (routine(TYPE, handle, m, n, strided(a, lda, stride_a), strided(tau, 0, stride_tau), count))          \
      return KBLAS_Success;                                                                                  \
    strided_function *function = (strided_function *)bqr_peer_find(&peer);                                   \
    return function ? function(handle, m, n, a, lda, stride_a, tau, stride_tau, count) : KBLAS_UnknownError; \
  }

#define PIVOTED(X, T, TYPE)                                                                                  \
  typedef int X##geqp2_function(void *handle, int m, int n, void *a, int lda, void *tau, void *piv,          \
                                int *ranks, T tol, int count);                                               \
  typedef int X##geqp2_strided_function(void *handle, int m, int n, void *a, int lda, int stride_a,          \
                                        void *tau, int stride_tau, void *piv, int stride_piv, int *ranks,    \
                                        T tol, int count);                                                   \
  BQR_ADAPTER_API X##geqp2_function kblas##X##geqp2_batch;                                                   \
  int kblas##X##geqp2_batch(void *handle, int m, int n, void *a, int lda, void *tau, void *piv, int *ranks,  \
                            T tol, int count) {                                                              \
    static bqr_peer peer = {.name = "kblas" #X "geqp2_batch"};                                               \
    if (geqp2(TYPE, handle, m, n, pointers(a, lda), pointers(tau, 0), pointers(piv, 0), ranks, tol, count))  \
      return KBLAS_Success;                                                                                  \
    X##geqp2_function *function = (X##geqp2_function *)bqr_peer_find(&peer);                                 \
    return function ? function(handle, m, n, a, lda, tau, piv, ranks, tol, count) : KBLAS_UnknownError;      \
  }                                                                                                          \
  BQR_ADAPTER_API X##geqp2_strided_function kblas##X##geqp2_batch_strided;                                   \
  int kblas##X##geqp2_batch_strided(void *handle, int m, int n, void *a, int lda, int stride_a, void *tau,   \
                                    int stride_tau, void *piv, int stride_piv, int *ranks, T tol,            \
                                    int count) {                                                             \
    static bqr_peer peer = {.name = "kblas" #X "geqp2_batch_strided"};                                       \
    if (geqp2(TYPE, handle, m, n, strided(a, lda, stride_a), strided(tau, 0, stride_tau),                    \
              strided(piv, 0, stride_piv), ranks, tol, count))                                               \
      return KBLAS_Success;                                                                                  \
    X##geqp2_strided_function *function = (X##geqp2_strided_function *)bqr_peer_find(&peer);                 \
    return function ? function(handle, m, n, a, lda, stride_a, tau, stride_tau, piv, stride_piv, ranks, tol, \
                               count)                                                                        \
                    : KBLAS_UnknownError;                                                                    \
  }

#define ADAPTERS(X, T, TYPE)                                                                                 \
  WITH_TAU(X, geqrf, TYPE)                                                                                   \
  WITH_TAU(X, tsqrf, TYPE)                                                                                   \
  WITH_TAU(X, orgqr, TYPE)                                                                                   \
  PIVOTED(X, T, TYPE)
ADAPTERS(S, float, BATCHQR_S)
ADAPTERS(D, double, BATCHQR_D)
