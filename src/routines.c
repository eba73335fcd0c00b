/* SPDX-License-Identifier: BSD-3-Clause */
/* The routines of the one-call tier: of a batch, and the typed wrappers, which make one. */
#include "handle.h"

/* --- of a batch */

batchqr_status batch_geqrf(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *tau,
                           int *info) {
  batchqr_operands operands = {.a = a, .tau = tau, .info = info};
  return bqr_call(handle, BATCHQR_GEQRF, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_orgqr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, const void *tau,
                           int *info) {
  batchqr_operands operands = {.a = a, .tau = (void *)tau, .info = info};
  return bqr_call(handle, BATCHQR_ORGQR, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_ungqr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, const void *tau,
                           int *info) {
  return batch_orgqr(handle, batch, a, tau, info);
}

batchqr_status batch_ormqr(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_side side,
                           batchqr_trans trans, const void *a, const void *tau, void *c, int *info) {
  batchqr_operands operands = {.a = (void *)a, .tau = (void *)tau, .c = c, .info = info};
  if (!batch) return bqr_call(handle, BATCHQR_ORMQR, NULL, &operands, BQR_ONE_CALL);
  batchqr_batch turned = *batch;
  turned.side = side;
  turned.trans = trans;
  return bqr_call(handle, BATCHQR_ORMQR, &turned, &operands, BQR_ONE_CALL);
}

batchqr_status batch_unmqr(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_side side,
                           batchqr_trans trans, const void *a, const void *tau, void *c, int *info) {
  return batch_ormqr(handle, batch, side, trans, a, tau, c, info);
}

batchqr_status batch_qr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *q, void *r,
                        int *info) {
  batchqr_operands operands = {.a = a, .c = q, .r = r, .info = info};
  return bqr_call(handle, BATCHQR_QR, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_geqr_r(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *r,
                            int *info) {
  batchqr_operands operands = {.a = a, .r = r, .info = info};
  return bqr_call(handle, BATCHQR_GEQR_R, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_gels_refined(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_trans trans,
                                  void *a, void *c, void *norms, void *iterations, void *relres, int *info) {
  batchqr_operands operands = {
      .a = a, .c = c, .info = info, .norms = norms, .iterations = iterations, .relres = relres};
  if (!batch) return bqr_call(handle, BATCHQR_GELS, NULL, &operands, BQR_ONE_CALL);
  batchqr_batch turned = *batch;
  turned.trans = trans;
  return bqr_call(handle, BATCHQR_GELS, &turned, &operands, BQR_ONE_CALL);
}

batchqr_status batch_gels(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_trans trans, void *a,
                          void *c, void *norms, int *info) {
  return batch_gels_refined(handle, batch, trans, a, c, norms, NULL, NULL, info);
}

batchqr_status batch_r_range(batchqr_handle_t handle, const batchqr_batch *batch, const void *a, void *range,
                             int *info) {
  batchqr_operands operands = {.a = (void *)a, .info = info, .range = range};
  return bqr_call(handle, BATCHQR_R_RANGE, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_trsm(batchqr_handle_t handle, const batchqr_batch *batch, batchqr_trans trans,
                          const void *a, void *c, int *info) {
  batchqr_operands operands = {.a = (void *)a, .c = c, .info = info};
  if (!batch) return bqr_call(handle, BATCHQR_TRSM, NULL, &operands, BQR_ONE_CALL);
  batchqr_batch turned = *batch;
  turned.trans = trans;
  return bqr_call(handle, BATCHQR_TRSM, &turned, &operands, BQR_ONE_CALL);
}

batchqr_status batch_geqp3(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *tau,
                           void *jpvt, void *rank, void *c, int *info) {
  batchqr_operands operands = {.a = a, .tau = tau, .jpvt = jpvt, .rank = rank, .c = c, .info = info};
  return bqr_call(handle, BATCHQR_GEQP3, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_gelsy(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *c, void *jpvt,
                           void *rank, int *info) {
  batchqr_operands operands = {.a = a, .c = c, .jpvt = jpvt, .rank = rank, .info = info};
  return bqr_call(handle, BATCHQR_GELSY, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_pinv(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *c,
                          const void *w, void *rank, int *info) {
  batchqr_operands operands = {.a = a, .c = c, .s = (void *)w, .rank = rank, .info = info};
  return bqr_call(handle, BATCHQR_PINV, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_gesvd(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *s, void *u,
                           void *v, void *rank, int *info) {
  batchqr_operands operands = {.a = a, .s = s, .u = u, .v = v, .rank = rank, .info = info};
  return bqr_call(handle, BATCHQR_GESVD, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_gesvdr(batchqr_handle_t handle, const batchqr_batch *batch, const void *a, void *s,
                            void *u, void *v, int *info) {
  batchqr_operands operands = {.a = (void *)a, .s = s, .u = u, .v = v, .info = info};
  return bqr_call(handle, BATCHQR_GESVDR, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_syevd(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *w, void *v,
                           int *info) {
  batchqr_operands operands = {.a = a, .s = w, .v = v, .info = info};
  return bqr_call(handle, BATCHQR_SYEVD, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_heevd(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *w, void *v,
                           int *info) {
  return batch_syevd(handle, batch, a, w, v, info);
}

batchqr_status batch_syevr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *w, void *v,
                           void *found, int *info) {
  batchqr_operands operands = {.a = a, .s = w, .v = v, .rank = found, .info = info};
  return bqr_call(handle, BATCHQR_SYEVD, batch, &operands, BQR_ONE_CALL);
}

batchqr_status batch_heevr(batchqr_handle_t handle, const batchqr_batch *batch, void *a, void *w, void *v,
                           void *found, int *info) {
  return batch_syevr(handle, batch, a, w, v, found, info);
}

/* --- typed wrappers */

/* One call of a wrapper: the batch and the operands that its arguments say. */
typedef struct typed {
  batchqr_batch batch;
  batchqr_operands operands;
} typed;

static typed new_call(batchqr_type type, int m, int n, int k, int64_t count) {
  return (typed){.batch = {.type = type, .count = count, .m = m, .n = n, .k = k}};
}

static batchqr_storage strided(int ld, int64_t stride) {
  return (batchqr_storage){.layout = BATCHQR_STRIDED, .ld = ld, .stride = stride};
}

static batchqr_storage pointers(int ld) { return (batchqr_storage){.layout = BATCHQR_POINTERS, .ld = ld}; }

/* Sets an operand: its storage and its address. */
#define SET(x, STORAGE, ADDRESS) (t.batch.x = (STORAGE), t.operands.x = (void *)(ADDRESS))

#define STRIDED(OP)  bqr_call(handle, OP, &t.batch, &t.operands, BQR_TYPED)
#define POINTERS(OP) bqr_call(handle, OP, &t.batch, &t.operands, BQR_TYPED_POINTERS)

#define FACTORIZATIONS(x, TYPE, T, org, orm)                                                                 \
  batchqr_status batch_##x##geqrf_strided(batchqr_handle_t handle, int m, int n, T *a, int lda,              \
                                          int64_t stride_a, T *tau, int64_t stride_tau, int64_t count) {     \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(tau, strided(0, stride_tau), tau);                                                                   \
    return STRIDED(BATCHQR_GEQRF);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##geqrf(batchqr_handle_t handle, int m, int n, T *const *a_array, int lda,         \
                                  T *const *tau_array, int64_t count) {                                      \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(tau, pointers(0), tau_array);                                                                        \
    return POINTERS(BATCHQR_GEQRF);                                                                          \
  }                                                                                                          \
  batchqr_status batch_##x##org##_strided(batchqr_handle_t handle, int m, int n, int k, T *a, int lda,       \
                                          int64_t stride_a, const T *tau, int64_t stride_tau,                \
                                          int64_t count) {                                                   \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(tau, strided(0, stride_tau), tau);                                                                   \
    return STRIDED(BATCHQR_ORGQR);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##org(batchqr_handle_t handle, int m, int n, int k, T *const *a_array, int lda,    \
                                const T *const *tau_array, int64_t count) {                                  \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(tau, pointers(0), tau_array);                                                                        \
    return POINTERS(BATCHQR_ORGQR);                                                                          \
  }                                                                                                          \
  batchqr_status batch_##x##orm##_strided(batchqr_handle_t handle, batchqr_side side, batchqr_trans trans,   \
                                          int m, int n, int k, const T *a, int lda, int64_t stride_a,        \
                                          const T *tau, int64_t stride_tau, T *c, int ldc, int64_t stride_c, \
                                          int64_t count) {                                                   \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    t.batch.side = side, t.batch.trans = trans;                                                              \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(tau, strided(0, stride_tau), tau);                                                                   \
    SET(c, strided(ldc, stride_c), c);                                                                       \
    return STRIDED(BATCHQR_ORMQR);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##orm(batchqr_handle_t handle, batchqr_side side, batchqr_trans trans, int m,      \
                                int n, int k, const T *const *a_array, int lda, const T *const *tau_array,   \
                                T *const *c_array, int ldc, int64_t count) {                                 \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    t.batch.side = side, t.batch.trans = trans;                                                              \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(tau, pointers(0), tau_array);                                                                        \
    SET(c, pointers(ldc), c_array);                                                                          \
    return POINTERS(BATCHQR_ORMQR);                                                                          \
  }                                                                                                          \
  batchqr_status batch_##x##qr_strided(batchqr_handle_t handle, int m, int n, T *a, int lda,                 \
                                       int64_t stride_a, T *q, int ldq, int64_t stride_q, T *r, int ldr,     \
                                       int64_t stride_r, int64_t count) {                                    \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(c, strided(ldq, stride_q), q);                                                                       \
    SET(r, strided(ldr, stride_r), r);                                                                       \
    return STRIDED(BATCHQR_QR);                                                                              \
  }                                                                                                          \
  batchqr_status batch_##x##qr(batchqr_handle_t handle, int m, int n, T *const *a_array, int lda,            \
                               T *const *q_array, int ldq, T *const *r_array, int ldr, int64_t count) {      \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(c, pointers(ldq), q_array);                                                                          \
    SET(r, pointers(ldr), r_array);                                                                          \
    return POINTERS(BATCHQR_QR);                                                                             \
  }                                                                                                          \
  batchqr_status batch_##x##geqr_r_strided(batchqr_handle_t handle, int m, int n, T *a, int lda,             \
                                           int64_t stride_a, T *r, int ldr, int64_t stride_r,                \
                                           int64_t count) {                                                  \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(r, strided(ldr, stride_r), r);                                                                       \
    return STRIDED(BATCHQR_GEQR_R);                                                                          \
  }                                                                                                          \
  batchqr_status batch_##x##geqr_r(batchqr_handle_t handle, int m, int n, T *const *a_array, int lda,        \
                                   T *const *r_array, int ldr, int64_t count) {                              \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(r, pointers(ldr), r_array);                                                                          \
    return POINTERS(BATCHQR_GEQR_R);                                                                         \
  }                                                                                                          \
  batchqr_status batch_##x##gels_strided(batchqr_handle_t handle, batchqr_trans trans, int m, int n, int k,  \
                                         T *a, int lda, int64_t stride_a, T *c, int ldc, int64_t stride_c,   \
                                         int *info, int64_t count) {                                         \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    t.batch.trans = trans, t.operands.info = info;                                                           \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(c, strided(ldc, stride_c), c);                                                                       \
    return STRIDED(BATCHQR_GELS);                                                                            \
  }                                                                                                          \
  batchqr_status batch_##x##gels(batchqr_handle_t handle, batchqr_trans trans, int m, int n, int k,          \
                                 T *const *a_array, int lda, T *const *c_array, int ldc, int *info,          \
                                 int64_t count) {                                                            \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    t.batch.trans = trans, t.operands.info = info;                                                           \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(c, pointers(ldc), c_array);                                                                          \
    return POINTERS(BATCHQR_GELS);                                                                           \
  }

/* A matrix that need not be there has no leading dimension then. */
#define LD(x, address) ((address) ? (x) : 0)

#define SOLUTIONS(x, TYPE, T, R, evd)                                                                        \
  batchqr_status batch_##x##trsm_strided(batchqr_handle_t handle, batchqr_trans trans, int n, int k,         \
                                         const T *a, int lda, int64_t stride_a, T *c, int ldc,               \
                                         int64_t stride_c, int *info, int64_t count) {                       \
    typed t = new_call(TYPE, n, n, k, count);                                                                \
    t.batch.trans = trans;                                                                                   \
    t.operands.info = info;                                                                                  \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(c, strided(ldc, stride_c), c);                                                                       \
    return STRIDED(BATCHQR_TRSM);                                                                            \
  }                                                                                                          \
  batchqr_status batch_##x##trsm(batchqr_handle_t handle, batchqr_trans trans, int n, int k,                 \
                                 const T *const *a_array, int lda, T *const *c_array, int ldc, int *info,    \
                                 int64_t count) {                                                            \
    typed t = new_call(TYPE, n, n, k, count);                                                                \
    t.batch.trans = trans;                                                                                   \
    t.operands.info = info;                                                                                  \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(c, pointers(ldc), c_array);                                                                          \
    return POINTERS(BATCHQR_TRSM);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##r_range_strided(batchqr_handle_t handle, int m, int n, const T *a, int lda,      \
                                            int64_t stride_a, R *range, int64_t stride_range, int *info,     \
                                            int64_t count) {                                                 \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    t.operands.info = info;                                                                                  \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(range, strided(0, stride_range), range);                                                             \
    return STRIDED(BATCHQR_R_RANGE);                                                                         \
  }                                                                                                          \
  batchqr_status batch_##x##r_range(batchqr_handle_t handle, int m, int n, const T *const *a_array, int lda, \
                                    R *const *range_array, int *info, int64_t count) {                       \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    t.operands.info = info;                                                                                  \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(range, pointers(0), range_array);                                                                    \
    return POINTERS(BATCHQR_R_RANGE);                                                                        \
  }                                                                                                          \
  batchqr_status batch_##x##geqp3_strided(batchqr_handle_t handle, int m, int n, int kmax, double abstol,    \
                                          double reltol, T *a, int lda, int64_t stride_a, int *jpvt,         \
                                          int64_t stride_jpvt, T *tau, int64_t stride_tau, int *rank,        \
                                          int64_t stride_rank, int *info, int64_t count) {                   \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    t.batch.kmax = kmax, t.batch.abstol = abstol, t.batch.reltol = reltol;                                   \
    t.operands.info = info;                                                                                  \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(jpvt, strided(0, stride_jpvt), jpvt);                                                                \
    SET(tau, strided(0, stride_tau), tau);                                                                   \
    SET(rank, strided(0, stride_rank), rank);                                                                \
    return STRIDED(BATCHQR_GEQP3);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##geqp3(batchqr_handle_t handle, int m, int n, int kmax, double abstol,            \
                                  double reltol, T *const *a_array, int lda, int *const *jpvt_array,         \
                                  T *const *tau_array, int *const *rank_array, int *info, int64_t count) {   \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    t.batch.kmax = kmax, t.batch.abstol = abstol, t.batch.reltol = reltol;                                   \
    t.operands.info = info;                                                                                  \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(jpvt, pointers(0), jpvt_array);                                                                      \
    SET(tau, pointers(0), tau_array);                                                                        \
    SET(rank, pointers(0), rank_array);                                                                      \
    return POINTERS(BATCHQR_GEQP3);                                                                          \
  }                                                                                                          \
  batchqr_status batch_##x##gelsy_strided(batchqr_handle_t handle, int m, int n, int k, double rcond, T *a,  \
                                          int lda, int64_t stride_a, T *c, int ldc, int64_t stride_c,        \
                                          int *jpvt, int64_t stride_jpvt, int *rank, int64_t stride_rank,    \
                                          int *info, int64_t count) {                                        \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    t.batch.reltol = rcond;                                                                                  \
    t.operands.info = info;                                                                                  \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(c, strided(ldc, stride_c), c);                                                                       \
    SET(jpvt, strided(0, stride_jpvt), jpvt);                                                                \
    SET(rank, strided(0, stride_rank), rank);                                                                \
    return STRIDED(BATCHQR_GELSY);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##gelsy(batchqr_handle_t handle, int m, int n, int k, double rcond,                \
                                  T *const *a_array, int lda, T *const *c_array, int ldc,                    \
                                  int *const *jpvt_array, int *const *rank_array, int *info,                 \
                                  int64_t count) {                                                           \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    t.batch.reltol = rcond;                                                                                  \
    t.operands.info = info;                                                                                  \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(c, pointers(ldc), c_array);                                                                          \
    SET(jpvt, pointers(0), jpvt_array);                                                                      \
    SET(rank, pointers(0), rank_array);                                                                      \
    return POINTERS(BATCHQR_GELSY);                                                                          \
  }                                                                                                          \
  batchqr_status batch_##x##pinv_strided(batchqr_handle_t handle, int m, int n, double rcond, T *a, int lda, \
                                         int64_t stride_a, T *c, int ldc, int64_t stride_c, const R *w,      \
                                         int64_t stride_w, int *rank, int64_t stride_rank, int *info,        \
                                         int64_t count) {                                                    \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    t.batch.reltol = rcond;                                                                                  \
    t.operands.info = info;                                                                                  \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(c, strided(ldc, stride_c), c);                                                                       \
    SET(s, strided(0, stride_w), w);                                                                         \
    SET(rank, strided(0, stride_rank), rank);                                                                \
    return STRIDED(BATCHQR_PINV);                                                                            \
  }                                                                                                          \
  batchqr_status batch_##x##pinv(batchqr_handle_t handle, int m, int n, double rcond, T *const *a_array,     \
                                 int lda, T *const *c_array, int ldc, const R *const *w_array,               \
                                 int *const *rank_array, int *info, int64_t count) {                         \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    t.batch.reltol = rcond;                                                                                  \
    t.operands.info = info;                                                                                  \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(c, pointers(ldc), c_array);                                                                          \
    SET(s, pointers(0), w_array);                                                                            \
    SET(rank, pointers(0), rank_array);                                                                      \
    return POINTERS(BATCHQR_PINV);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##gesvd_strided(                                                                   \
      batchqr_handle_t handle, int m, int n, T *a, int lda, int64_t stride_a, R *s, int64_t stride_s, T *u,  \
      int ldu, int64_t stride_u, T *v, int ldv, int64_t stride_v, int *info, int64_t count) {                \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    t.operands.info = info;                                                                                  \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(s, strided(0, stride_s), s);                                                                         \
    SET(u, strided(LD(ldu, u), stride_u), u);                                                                \
    SET(v, strided(LD(ldv, v), stride_v), v);                                                                \
    return STRIDED(BATCHQR_GESVD);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##gesvd(batchqr_handle_t handle, int m, int n, T *const *a_array, int lda,         \
                                  R *const *s_array, T *const *u_array, int ldu, T *const *v_array, int ldv, \
                                  int *info, int64_t count) {                                                \
    typed t = new_call(TYPE, m, n, 0, count);                                                                \
    t.operands.info = info;                                                                                  \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(s, pointers(0), s_array);                                                                            \
    SET(u, pointers(LD(ldu, u_array)), u_array);                                                             \
    SET(v, pointers(LD(ldv, v_array)), v_array);                                                             \
    return POINTERS(BATCHQR_GESVD);                                                                          \
  }                                                                                                          \
  batchqr_status batch_##x##gesvdr_strided(                                                                  \
      batchqr_handle_t handle, int m, int n, int k, int oversampling, int power_steps, uint64_t seed,        \
      const T *a, int lda, int64_t stride_a, R *s, int64_t stride_s, T *u, int ldu, int64_t stride_u, T *v,  \
      int ldv, int64_t stride_v, int *info, int64_t count) {                                                 \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    t.batch.oversampling = oversampling, t.batch.power_steps = power_steps, t.batch.seed = seed;             \
    t.operands.info = info;                                                                                  \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(s, strided(0, stride_s), s);                                                                         \
    SET(u, strided(ldu, stride_u), u);                                                                       \
    SET(v, strided(ldv, stride_v), v);                                                                       \
    return STRIDED(BATCHQR_GESVDR);                                                                          \
  }                                                                                                          \
  batchqr_status batch_##x##gesvdr(batchqr_handle_t handle, int m, int n, int k, int oversampling,           \
                                   int power_steps, uint64_t seed, const T *const *a_array, int lda,         \
                                   R *const *s_array, T *const *u_array, int ldu, T *const *v_array,         \
                                   int ldv, int *info, int64_t count) {                                      \
    typed t = new_call(TYPE, m, n, k, count);                                                                \
    t.batch.oversampling = oversampling, t.batch.power_steps = power_steps, t.batch.seed = seed;             \
    t.operands.info = info;                                                                                  \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(s, pointers(0), s_array);                                                                            \
    SET(u, pointers(ldu), u_array);                                                                          \
    SET(v, pointers(ldv), v_array);                                                                          \
    return POINTERS(BATCHQR_GESVDR);                                                                         \
  }                                                                                                          \
  batchqr_status batch_##x##evd##_strided(batchqr_handle_t handle, batchqr_uplo uplo, int n, T *a, int lda,  \
                                          int64_t stride_a, R *w, int64_t stride_w, T *v, int ldv,           \
                                          int64_t stride_v, int *info, int64_t count) {                      \
    typed t = new_call(TYPE, n, n, 0, count);                                                                \
    t.batch.uplo = uplo;                                                                                     \
    t.operands.info = info;                                                                                  \
    SET(a, strided(lda, stride_a), a);                                                                       \
    SET(s, strided(0, stride_w), w);                                                                         \
    SET(v, strided(LD(ldv, v), stride_v), v);                                                                \
    return STRIDED(BATCHQR_SYEVD);                                                                           \
  }                                                                                                          \
  batchqr_status batch_##x##evd(batchqr_handle_t handle, batchqr_uplo uplo, int n, T *const *a_array,        \
                                int lda, R *const *w_array, T *const *v_array, int ldv, int *info,           \
                                int64_t count) {                                                             \
    typed t = new_call(TYPE, n, n, 0, count);                                                                \
    t.batch.uplo = uplo;                                                                                     \
    t.operands.info = info;                                                                                  \
    SET(a, pointers(lda), a_array);                                                                          \
    SET(s, pointers(0), w_array);                                                                            \
    SET(v, pointers(LD(ldv, v_array)), v_array);                                                             \
    return POINTERS(BATCHQR_SYEVD);                                                                          \
  }

#define WRAPPERS(x, TYPE, T, R, org, orm, evd)                                                               \
  FACTORIZATIONS(x, TYPE, T, org, orm) SOLUTIONS(x, TYPE, T, R, evd)
WRAPPERS(s, BATCHQR_S, float, float, orgqr, ormqr, syevd)
WRAPPERS(d, BATCHQR_D, double, double, orgqr, ormqr, syevd)
WRAPPERS(c, BATCHQR_C, batchqr_complex_float, float, ungqr, unmqr, heevd)
WRAPPERS(z, BATCHQR_Z, batchqr_complex_double, double, ungqr, unmqr, heevd)
