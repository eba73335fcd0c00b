/* SPDX-License-Identifier: BSD-3-Clause */
/* The typed wrappers: a batch, its operands, and the routine. */
#include "handle.h"

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

#define WRAPPERS(x, TYPE, T, org, orm)                                                                       \
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
WRAPPERS(s, BATCHQR_S, float, orgqr, ormqr)
WRAPPERS(d, BATCHQR_D, double, orgqr, ormqr)
WRAPPERS(c, BATCHQR_C, batchqr_complex_float, ungqr, unmqr)
WRAPPERS(z, BATCHQR_Z, batchqr_complex_double, ungqr, unmqr)
