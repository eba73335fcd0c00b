/* SPDX-License-Identifier: BSD-3-Clause */
/* cublas<t>geqrfBatched and cublas<t>gelsBatched. */
#include "adapter.h"
#include <stdlib.h>

const char *const bqr_peer_libraries[] = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", NULL};

enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_EXECUTION_FAILED = 13, CUBLAS_STATUS_NOT_SUPPORTED = 15 };
enum { CUBLAS_OP_N = 0 };

/* As cuBLAS declares them, but for the types of the elements. */
typedef int get_stream_function(void *handle, batchqr_stream *stream);
typedef int geqrf_function(void *handle, int m, int n, void *a, int lda, void *tau, int *info, int count);
typedef int gels_function(void *handle, int trans, int m, int n, int nrhs, void *a, int lda, void *c, int ldc,
                          int *info, int *dev_info, int count);

static batchqr_handle_t handle_of(void *handle) {
  static bqr_peer peer = {.name = "cublasGetStream_v2"};
  get_stream_function *get_stream = (get_stream_function *)bqr_peer_find(&peer);
  batchqr_stream stream;
  return get_stream && !get_stream(handle, &stream) ? bqr_adapter_handle(stream, false) : NULL;
}

static int geqrf(bqr_peer *peer, batchqr_type type, void *handle, int m, int n, void *a, int lda, void *tau,
                 int *info, int count) {
  const batchqr_batch batch = {.type = type,
                               .count = count,
                               .m = m,
                               .n = n,
                               .a = bqr_adapter_pointers(lda),
                               .tau = bqr_adapter_pointers(0)};
  batchqr_handle_t own = info ? handle_of(handle) : NULL;
  if (own && !batch_geqrf(own, &batch, a, tau, NULL)) {
    *info = 0;
    return CUBLAS_STATUS_SUCCESS;
  }
  geqrf_function *function = (geqrf_function *)bqr_peer_find(peer);
  return function ? function(handle, m, n, a, lda, tau, info, count) : CUBLAS_STATUS_NOT_SUPPORTED;
}

/* Whether A may hold anything afterwards. cuBLAS leaves the QR factorization there, of which R is of use
 * without tau, and batch_gels() nothing: R then takes a second call. */
static bool may_scratch_a(void) {
  const char *scratch = getenv("BATCHQR_ADAPTERS_SCRATCH_A");
  return scratch && *scratch == '1';
}

static int gels(bqr_peer *peer, batchqr_type type, void *handle, int trans, int m, int n, int nrhs, void *a,
                int lda, void *c, int ldc, int *info, int *dev_info, int count) {
  batchqr_batch batch = {.type = type,
                         .count = count,
                         .m = m,
                         .n = n,
                         .k = nrhs,
                         .a = bqr_adapter_pointers(lda),
                         .c = bqr_adapter_pointers(ldc)};
  batchqr_handle_t own = info && trans == CUBLAS_OP_N && m >= n ? handle_of(handle) : NULL;
  batch.keep_a = !may_scratch_a();
  if (own && !batch_gels(own, &batch, BATCHQR_NO_TRANS, a, c, NULL, dev_info)) {
    const bool with_r = batch.keep_a;
    batch.keep_a = 0;
    batch.r = batch.a;
    *info = 0;
    return with_r && batch_geqr_r(own, &batch, a, a, NULL) ? CUBLAS_STATUS_EXECUTION_FAILED
                                                           : CUBLAS_STATUS_SUCCESS;
  }
  gels_function *function = (gels_function *)bqr_peer_find(peer);
  return function ? function(handle, trans, m, n, nrhs, a, lda, c, ldc, info, dev_info, count)
                  : CUBLAS_STATUS_NOT_SUPPORTED;
}

#define ADAPTERS(X, TYPE)                                                                                    \
  BQR_ADAPTER_API geqrf_function cublas##X##geqrfBatched;                                                    \
  int cublas##X##geqrfBatched(void *handle, int m, int n, void *a, int lda, void *tau, int *info,            \
                              int count) {                                                                   \
    static bqr_peer peer = {.name = "cublas" #X "geqrfBatched"};                                             \
    return geqrf(&peer, TYPE, handle, m, n, a, lda, tau, info, count);                                       \
  }                                                                                                          \
  BQR_ADAPTER_API gels_function cublas##X##gelsBatched;                                                      \
  int cublas##X##gelsBatched(void *handle, int trans, int m, int n, int nrhs, void *a, int lda, void *c,     \
                             int ldc, int *info, int *dev_info, int count) {                                 \
    static bqr_peer peer = {.name = "cublas" #X "gelsBatched"};                                              \
    return gels(&peer, TYPE, handle, trans, m, n, nrhs, a, lda, c, ldc, info, dev_info, count);              \
  }
ADAPTERS(S, BATCHQR_S)
ADAPTERS(D, BATCHQR_D)
ADAPTERS(C, BATCHQR_C)
ADAPTERS(Z, BATCHQR_Z)
