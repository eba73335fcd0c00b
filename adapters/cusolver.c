/* SPDX-License-Identifier: BSD-3-Clause */
/* cusolverDn<t>syevjBatched and heevjBatched, cusolverDnXsyevBatched, cusolverDn<t>gesvdjBatched. */
#include "adapter.h"
#include <limits.h>

const char *const bqr_peer_libraries[] = {"libcusolver.so.12", "libcusolver.so.11", NULL};

enum { CUSOLVER_STATUS_SUCCESS = 0, CUSOLVER_STATUS_EXECUTION_FAILED = 6, CUSOLVER_STATUS_NOT_SUPPORTED = 8 };
enum { CUSOLVER_EIG_MODE_VECTOR = 1, CUBLAS_FILL_MODE_UPPER = 1 };

/* As cuSOLVER declares them, but for the types of the elements. */
typedef int get_stream_function(void *handle, batchqr_stream *stream);
typedef int syevj_function(void *handle, int jobz, int uplo, int n, void *a, int lda, void *w, void *work,
                           int lwork, int *info, void *params, int count);
typedef int gesvdj_function(void *handle, int jobz, int m, int n, void *a, int lda, void *s, void *u, int ldu,
                            void *v, int ldv, void *work, int lwork, int *info, void *params, int count);
typedef int xsyev_function(void *handle, void *params, int jobz, int uplo, int64_t n, int type_a, void *a,
                           int64_t lda, int type_w, void *w, int compute, void *device, size_t device_bytes,
                           void *host, size_t host_bytes, int *info, int64_t count);

static batchqr_handle_t handle_of(void *handle, bool positive) {
  static bqr_peer peer = {.name = "cusolverDnGetStream"};
  get_stream_function *get_stream = (get_stream_function *)bqr_peer_find(&peer);
  batchqr_stream stream;
  return get_stream && !get_stream(handle, &stream) ? bqr_adapter_handle(stream, positive) : NULL;
}

/* --- eigenvalues, and eigenvectors in A's place */

/* On an H200 batch_syevd is the faster one up to order 512, s and d; other types are measured up to 256. */
enum { LARGEST_EIGEN = 256 };

static batchqr_status eigen(void *handle, batchqr_type type, int jobz, int uplo, int n, void *a, int lda,
                            void *w, int *info, int64_t count) {
  const bool vectors = jobz == CUSOLVER_EIG_MODE_VECTOR;
  batchqr_batch batch = {.type = type, .count = count, .m = n, .n = n};
  batch.uplo = uplo == CUBLAS_FILL_MODE_UPPER ? BATCHQR_UPPER : BATCHQR_LOWER;
  batch.a = bqr_adapter_strided(lda, (int64_t)lda * n);
  batch.s = bqr_adapter_strided(0, n);
  if (vectors) batch.v = batch.a;
  batchqr_handle_t own = n <= LARGEST_EIGEN ? handle_of(handle, false) : NULL;
  return own ? batch_syevd(own, &batch, a, w, vectors ? a : NULL, info) : BATCHQR_UNSUPPORTED;
}

static int syevj(bqr_peer *peer, batchqr_type type, void *handle, int jobz, int uplo, int n, void *a, int lda,
                 void *w, void *work, int lwork, int *info, void *params, int count) {
  if (!eigen(handle, type, jobz, uplo, n, a, lda, w, info, count)) return CUSOLVER_STATUS_SUCCESS;
  syevj_function *function = (syevj_function *)bqr_peer_find(peer);
  return function ? function(handle, jobz, uplo, n, a, lda, w, work, lwork, info, params, count)
                  : CUSOLVER_STATUS_NOT_SUPPORTED;
}

/* The type of a cudaDataType; -1 for others. */
static int type_of(int cuda_type) {
  static const int types[] = {
      [0] = BATCHQR_S, [1] = BATCHQR_D, [2] = -1, [3] = -1, [4] = BATCHQR_C, [5] = BATCHQR_Z};
  return cuda_type >= 0 && cuda_type < 6 ? types[cuda_type] : -1;
}

BQR_ADAPTER_API xsyev_function cusolverDnXsyevBatched;
int cusolverDnXsyevBatched(void *handle, void *params, int jobz, int uplo, int64_t n, int type_a, void *a,
                           int64_t lda, int type_w, void *w, int compute, void *device, size_t device_bytes,
                           void *host, size_t host_bytes, int *info, int64_t count) {
  static bqr_peer peer = {.name = "cusolverDnXsyevBatched"};
  const int type = type_of(type_a);
  const bool served = type >= 0 && compute == type_a && n <= INT_MAX && lda <= INT_MAX;
  if (served && !eigen(handle, (batchqr_type)type, jobz, uplo, (int)n, a, (int)lda, w, info, count))
    return CUSOLVER_STATUS_SUCCESS;
  xsyev_function *function = (xsyev_function *)bqr_peer_find(&peer);
  return function ? function(handle, params, jobz, uplo, n, type_a, a, lda, type_w, w, compute, device,
                             device_bytes, host, host_bytes, info, count)
                  : CUSOLVER_STATUS_NOT_SUPPORTED;
}

/* --- singular values: cuSOLVER's U is m x m and its V n x n */

/* The orthonormal columns that make Q, rows x columns, square. Q = Q R with R = I, so that the reflectors of
 * that factorization, with a diagonal that is not negative, form Q again and what is missing. */
static batchqr_status complete(batchqr_handle_t own, batchqr_type type, int rows, int columns, void *q,
                               int ld, void *tau, int64_t count) {
  batchqr_batch batch = {.type = type, .count = count, .m = rows, .n = columns, .k = columns};
  batch.a = bqr_adapter_strided(ld, (int64_t)ld * rows);
  batch.tau = bqr_adapter_strided(0, columns);
  const batchqr_status status = batch_geqrf(own, &batch, q, tau, NULL);
  batch.n = rows;
  return status ? status : batch_orgqr(own, &batch, q, tau, NULL);
}

static int gesvdj(bqr_peer *peer, batchqr_type type, void *handle, int jobz, int m, int n, void *a, int lda,
                  void *s, void *u, int ldu, void *v, int ldv, void *work, int lwork, int *info, void *params,
                  int count) {
  const bool vectors = jobz == CUSOLVER_EIG_MODE_VECTOR, square = m == n || !vectors;
  const int least = m < n ? m : n, most = m < n ? n : m;
  batchqr_batch batch = {.type = type, .count = count, .m = m, .n = n};
  batch.a = bqr_adapter_strided(lda, (int64_t)lda * n);
  batch.s = bqr_adapter_strided(0, least);
  if (vectors) {
    batch.u = bqr_adapter_strided(ldu, (int64_t)ldu * m);
    batch.v = bqr_adapter_strided(ldv, (int64_t)ldv * n);
  }
  /* tau finds room in the caller's workspace. */
  const bool served = square || (int64_t)least * count <= lwork;
  batchqr_handle_t own = served ? handle_of(handle, true) : NULL;
  if (own && !batch_gesvd(own, &batch, a, s, vectors ? u : NULL, vectors ? v : NULL, NULL, info)) {
    if (square) return CUSOLVER_STATUS_SUCCESS;
    return complete(own, type, most, least, m > n ? u : v, m > n ? ldu : ldv, work, count)
               ? CUSOLVER_STATUS_EXECUTION_FAILED
               : CUSOLVER_STATUS_SUCCESS;
  }
  gesvdj_function *function = (gesvdj_function *)bqr_peer_find(peer);
  return function ? function(handle, jobz, m, n, a, lda, s, u, ldu, v, ldv, work, lwork, info, params, count)
                  : CUSOLVER_STATUS_NOT_SUPPORTED;
}

#define ADAPTERS(X, syev, TYPE)                                                                              \
  BQR_ADAPTER_API syevj_function cusolverDn##X##syev##jBatched;                                              \
  int cusolverDn##X##syev##jBatched(void *handle, int jobz, int uplo, int n, void *a, int lda, void *w,      \
                                    void *work, int lwork, int *info, void *params, int count) {             \
    static bqr_peer peer = {.name = "cusolverDn" #X #syev "jBatched"};                                       \
    return syevj(&peer, TYPE, handle, jobz, uplo, n, a, lda, w, work, lwork, info, params, count);           \
  }                                                                                                          \
  BQR_ADAPTER_API gesvdj_function cusolverDn##X##gesvdjBatched;                                              \
  int cusolverDn##X##gesvdjBatched(void *handle, int jobz, int m, int n, void *a, int lda, void *s, void *u, \
                                   int ldu, void *v, int ldv, void *work, int lwork, int *info,              \
                                   void *params, int count) {                                                \
    static bqr_peer peer = {.name = "cusolverDn" #X "gesvdjBatched"};                                        \
    return gesvdj(&peer, TYPE, handle, jobz, m, n, a, lda, s, u, ldu, v, ldv, work, lwork, info, params,     \
                  count);                                                                                    \
  }
ADAPTERS(S, syev, BATCHQR_S)
ADAPTERS(D, syev, BATCHQR_D)
ADAPTERS(C, heev, BATCHQR_C)
ADAPTERS(Z, heev, BATCHQR_Z)
