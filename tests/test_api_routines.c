/* SPDX-License-Identifier: BSD-3-Clause */
/* That every routine gets its operands. The routines' numbers have tests of their own. */
#include "api.h"
#include "residual.h"

#include <stdlib.h>
#include <string.h>

START_TEST(typed_wrappers_are_geqrf) {
  batchqr_type type = (batchqr_type)_i;
  batchqr_batch batch = batch_of(type);
  operand_set plain = make_set(type), strided = make_set(type), pointers = make_set(type);
  int64_t a_offsets[COUNT], tau_offsets[COUNT];
  for (int k = 0; k < COUNT; k++) a_offsets[k] = k * STRIDE, tau_offsets[k] = k * STRIDE_TAU;
  void *a_array = memory_pointers(backend, pointers.a, bqr_type_bytes(type), a_offsets, COUNT);
  void *tau_array = memory_pointers(backend, pointers.tau, bqr_type_bytes(type), tau_offsets, COUNT);

  expect_success(batch_geqrf(handle, &batch, plain.a, plain.tau, NULL));
#define STRIDED(x)                                                                                           \
  batch_##x##geqrf_strided(handle, M, N, (void *)strided.a, LDA, STRIDE, (void *)strided.tau, STRIDE_TAU,    \
                           COUNT)
#define POINTERS(x) batch_##x##geqrf(handle, M, N, a_array, LDA, tau_array, COUNT)
  expect_success(type == BATCHQR_S   ? STRIDED(s)
                 : type == BATCHQR_D ? STRIDED(d)
                 : type == BATCHQR_C ? STRIDED(c)
                                     : STRIDED(z));
  expect_success(type == BATCHQR_S   ? POINTERS(s)
                 : type == BATCHQR_D ? POINTERS(d)
                 : type == BATCHQR_C ? POINTERS(c)
                                     : POINTERS(z));
  download(&plain);
  download(&strided);
  download(&pointers);
  for (int k = 0; k < COUNT; k++) {
    size_t at = (size_t)a_offsets[k] * bqr_type_bytes(type),
           tau_at = (size_t)tau_offsets[k] * bqr_type_bytes(type);
    double ratio = residual_geqrf(type, M, N, plain.a0 + at, LDA, plain.ah + at, LDA, plain.tauh + tau_at, 0);
    ck_assert_msg(ratio < RESIDUAL_BOUND, "member %d: ratio %g", k, ratio);
  }
  ck_assert_mem_eq(plain.ah, strided.ah, plain.bytes);
  ck_assert_mem_eq(plain.ah, pointers.ah, plain.bytes);
  ck_assert_mem_eq(plain.tauh, strided.tauh, plain.tau_bytes);
  ck_assert_mem_eq(plain.tauh, pointers.tauh, plain.tau_bytes);
  memory_free(backend, a_array);
  memory_free(backend, tau_array);
  free_set(&plain);
  free_set(&strided);
  free_set(&pointers);
}
END_TEST

/* Q and R in one call, apart and in place; R alone, apart and in place. */
START_TEST(qr_gets_its_operands) {
  batchqr_type type = (batchqr_type)_i;
  batchqr_batch batch = batch_of(type);
  operand_set apart = make_set(type), placed = make_set(type), alone = make_set(type), both = make_set(type);
  expect_success(batch_qr(handle, &batch, apart.a, apart.q, apart.r, NULL));
  expect_success(batch_qr(handle, &batch, placed.a, placed.a, placed.r, NULL));
  expect_success(batch_geqr_r(handle, &batch, alone.a, alone.r, NULL));
  expect_success(batch_geqr_r(handle, &batch, both.a, both.a, NULL));
  operand_set *const sets[] = {&apart, &placed, &alone, &both};
  static const char zeros[(M - N) * 16];
  for (int i = 0; i < 4; i++) download(sets[i]);
  for (int k = 0; k < COUNT; k++) {
    size_t at = (size_t)k * STRIDE * bqr_type_bytes(type), column = LDA * bqr_type_bytes(type);
    double ratio = residual_qr(type, M, N, apart.a0 + at, LDA, apart.qh + at, LDA, apart.rh + at, LDA, 0);
    ck_assert_msg(ratio < RESIDUAL_BOUND, "member %d: ratio %g", k, ratio);
    for (int j = 0; j < N; j++) {
      size_t from = at + (size_t)j * column;
      ck_assert_mem_eq(apart.qh + from, placed.ah + from, M * bqr_type_bytes(type));
      ck_assert_mem_eq(apart.rh + from, placed.rh + from, N * bqr_type_bytes(type));
      ck_assert_mem_eq(apart.rh + from, alone.rh + from, N * bqr_type_bytes(type));
      ck_assert_mem_eq(apart.rh + from, both.ah + from, N * bqr_type_bytes(type));
      ck_assert_mem_eq(both.ah + from + N * bqr_type_bytes(type), zeros, (M - N) * bqr_type_bytes(type));
    }
  }
  for (int i = 0; i < 4; i++) free_set(sets[i]);
}
END_TEST

/* Q^H A = R, and Q formed is Q applied to the identity. */
START_TEST(ormqr_and_orgqr_get_their_operands) {
  batchqr_type type = (batchqr_type)_i;
  batchqr_batch batch = batch_of(type);
  operand_set s = make_set(type);
  char *v = malloc(s.bytes);
  expect_success(batch_geqrf(handle, &batch, s.a, s.tau, NULL));
  download(&s);
  memcpy(v, s.ah, s.bytes);
  expect_success(batch_unmqr(handle, &batch, BATCHQR_LEFT, BATCHQR_CONJ_TRANS, s.a, s.tau, s.q, NULL));
  expect_success(batch_ungqr(handle, &batch, s.a, s.tau, NULL));
  download(&s);
  for (int k = 0; k < COUNT; k++) {
    size_t at = (size_t)k * STRIDE * bqr_type_bytes(type),
           tau_at = (size_t)k * STRIDE_TAU * bqr_type_bytes(type);
    double applied = residual_ormqr(type, BATCHQR_LEFT, BATCHQR_CONJ_TRANS, M, N, N, v + at, LDA,
                                    s.tauh + tau_at, s.a0 + at, LDA, s.qh + at, LDA, 0);
    double formed = residual_orgqr(type, M, N, N, v + at, LDA, s.tauh + tau_at, s.ah + at, LDA, 0);
    ck_assert_msg(applied < RESIDUAL_BOUND && formed < RESIDUAL_BOUND, "member %d: ratios %g, %g", k, applied,
                  formed);
  }
  free(v);
  free_set(&s);
}
END_TEST

/* --- the other typed wrappers, against the routines */

/* The wrappers of one type: by strides, and by arrays of addresses. */
typedef struct wrappers {
  const char *name;
  batchqr_status (*plain)(const operand_set *s, const batchqr_batch *b);
  batchqr_status (*strided)(batchqr_type type, const operand_set *s);
  batchqr_status (*pointers)(batchqr_type type, void *a, void *q, void *r, void *tau);
} wrappers;

#define BY_TYPE(type, CALL)                                                                                  \
  ((type) == BATCHQR_S   ? CALL(s, float, orgqr, ormqr)                                                      \
   : (type) == BATCHQR_D ? CALL(d, double, orgqr, ormqr)                                                     \
   : (type) == BATCHQR_C ? CALL(c, batchqr_complex_float, ungqr, unmqr)                                      \
                         : CALL(z, batchqr_complex_double, ungqr, unmqr))

static batchqr_status plain_qr(const operand_set *s, const batchqr_batch *b) {
  return batch_qr(handle, b, s->a, s->q, s->r, NULL);
}
static batchqr_status strided_qr(batchqr_type type, const operand_set *s) {
#define CALL(x, T, org, orm)                                                                                 \
  batch_##x##qr_strided(handle, M, N, (T *)s->a, LDA, STRIDE, (T *)s->q, LDA, STRIDE, (T *)s->r, LDA,        \
                        STRIDE, COUNT)
  return BY_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_qr(batchqr_type type, void *a, void *q, void *r, void *tau) {
  (void)tau;
#define CALL(x, T, org, orm) batch_##x##qr(handle, M, N, (T **)a, LDA, (T **)q, LDA, (T **)r, LDA, COUNT)
  return BY_TYPE(type, CALL);
#undef CALL
}

static batchqr_status plain_geqr_r(const operand_set *s, const batchqr_batch *b) {
  return batch_geqr_r(handle, b, s->a, s->r, NULL);
}
static batchqr_status strided_geqr_r(batchqr_type type, const operand_set *s) {
#define CALL(x, T, org, orm)                                                                                 \
  batch_##x##geqr_r_strided(handle, M, N, (T *)s->a, LDA, STRIDE, (T *)s->r, LDA, STRIDE, COUNT)
  return BY_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_geqr_r(batchqr_type type, void *a, void *q, void *r, void *tau) {
  (void)q, (void)tau;
#define CALL(x, T, org, orm) batch_##x##geqr_r(handle, M, N, (T **)a, LDA, (T **)r, LDA, COUNT)
  return BY_TYPE(type, CALL);
#undef CALL
}

/* Of what the members are before they are factored: any numbers are vectors V. */
static batchqr_status plain_orgqr(const operand_set *s, const batchqr_batch *b) {
  return batch_orgqr(handle, b, s->a, s->tau, NULL);
}
static batchqr_status strided_orgqr(batchqr_type type, const operand_set *s) {
#define CALL(x, T, org, orm)                                                                                 \
  batch_##x##org##_strided(handle, M, N, N, (T *)s->a, LDA, STRIDE, (T *)s->tau, STRIDE_TAU, COUNT)
  return BY_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_orgqr(batchqr_type type, void *a, void *q, void *r, void *tau) {
  (void)q, (void)r;
#define CALL(x, T, org, orm) batch_##x##org(handle, M, N, N, (T **)a, LDA, (const T **)tau, COUNT)
  return BY_TYPE(type, CALL);
#undef CALL
}

static batchqr_status plain_ormqr(const operand_set *s, const batchqr_batch *b) {
  return batch_ormqr(handle, b, BATCHQR_LEFT, BATCHQR_CONJ_TRANS, s->a, s->tau, s->q, NULL);
}
static batchqr_status strided_ormqr(batchqr_type type, const operand_set *s) {
#define CALL(x, T, org, orm)                                                                                 \
  batch_##x##orm##_strided(handle, BATCHQR_LEFT, BATCHQR_CONJ_TRANS, M, N, N, (T *)s->a, LDA, STRIDE,        \
                           (T *)s->tau, STRIDE_TAU, (T *)s->q, LDA, STRIDE, COUNT)
  return BY_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_ormqr(batchqr_type type, void *a, void *q, void *r, void *tau) {
  (void)r;
#define CALL(x, T, org, orm)                                                                                 \
  batch_##x##orm(handle, BATCHQR_LEFT, BATCHQR_CONJ_TRANS, M, N, N, (const T **)a, LDA, (const T **)tau,     \
                 (T **)q, LDA, COUNT)
  return BY_TYPE(type, CALL);
#undef CALL
}

/* What is not of the operands' type lies in their memory: B, U and V in q and r, real numbers in tau, ints in
 * r and tau. Strides count these. */
static int64_t reals(batchqr_type type) { return (int64_t)(bqr_type_bytes(type) / bqr_real_bytes(type)); }
static int64_t ints(batchqr_type type) { return (int64_t)(bqr_type_bytes(type) / sizeof(int)); }

#define BY_REAL_TYPE(type, CALL)                                                                             \
  ((type) == BATCHQR_S   ? CALL(s, float, float, syevd)                                                      \
   : (type) == BATCHQR_D ? CALL(d, double, double, syevd)                                                    \
   : (type) == BATCHQR_C ? CALL(c, batchqr_complex_float, float, heevd)                                      \
                         : CALL(z, batchqr_complex_double, double, heevd))

static batchqr_status plain_trsm(const operand_set *s, const batchqr_batch *b) {
  batchqr_batch square = *b;
  square.m = N, square.k = 2;
  return batch_trsm(handle, &square, BATCHQR_CONJ_TRANS, s->a, s->q, NULL);
}
static batchqr_status strided_trsm(batchqr_type type, const operand_set *s) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##trsm_strided(handle, BATCHQR_CONJ_TRANS, N, 2, (T *)s->a, LDA, STRIDE, (T *)s->q, LDA, STRIDE,  \
                          NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_trsm(batchqr_type type, void *a, void *q, void *r, void *tau) {
  (void)r, (void)tau;
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##trsm(handle, BATCHQR_CONJ_TRANS, N, 2, (const T **)a, LDA, (T **)q, LDA, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}

static batchqr_status plain_r_range(const operand_set *s, const batchqr_batch *b) {
  batchqr_batch batch = *b;
  batch.range.stride = STRIDE_TAU * reals(b->type);
  return batch_r_range(handle, &batch, s->a, s->tau, NULL);
}
static batchqr_status strided_r_range(batchqr_type type, const operand_set *s) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##r_range_strided(handle, M, N, (T *)s->a, LDA, STRIDE, (R *)s->tau, STRIDE_TAU *reals(type),     \
                             NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_r_range(batchqr_type type, void *a, void *q, void *r, void *tau) {
  (void)q, (void)r;
#define CALL(x, T, R, evd) batch_##x##r_range(handle, M, N, (const T **)a, LDA, (R **)tau, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}

static batchqr_status plain_geqp3(const operand_set *s, const batchqr_batch *b) {
  batchqr_batch batch = *b;
  batch.k = 0, batch.c = (batchqr_storage){.ld = 0};
  batch.jpvt.stride = batch.rank.stride = STRIDE * ints(b->type);
  batch.kmax = 7, batch.abstol = 1e-30, batch.reltol = 1e-6;
  return batch_geqp3(handle, &batch, s->a, s->tau, s->r, s->q, NULL, NULL);
}
static batchqr_status strided_geqp3(batchqr_type type, const operand_set *s) {
  const int64_t stride = STRIDE * ints(type);
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##geqp3_strided(handle, M, N, 7, 1e-30, 1e-6, (T *)s->a, LDA, STRIDE, (int *)s->r, stride,        \
                           (T *)s->tau, STRIDE_TAU, (int *)s->q, stride, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_geqp3(batchqr_type type, void *a, void *q, void *r, void *tau) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##geqp3(handle, M, N, 7, 1e-30, 1e-6, (T **)a, LDA, (int **)r, (T **)tau, (int **)q, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}

static batchqr_status plain_gelsy(const operand_set *s, const batchqr_batch *b) {
  batchqr_batch batch = *b;
  batch.k = 2, batch.reltol = 0.9;
  batch.jpvt.stride = STRIDE * ints(b->type), batch.rank.stride = STRIDE_TAU * ints(b->type);
  return batch_gelsy(handle, &batch, s->a, s->q, s->r, s->tau, NULL);
}
static batchqr_status strided_gelsy(batchqr_type type, const operand_set *s) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##gelsy_strided(handle, M, N, 2, 0.9, (T *)s->a, LDA, STRIDE, (T *)s->q, LDA, STRIDE,             \
                           (int *)s->r, STRIDE *ints(type), (int *)s->tau, STRIDE_TAU *ints(type), NULL,     \
                           COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_gelsy(batchqr_type type, void *a, void *q, void *r, void *tau) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##gelsy(handle, M, N, 2, 0.9, (T **)a, LDA, (T **)q, LDA, (int **)r, (int **)tau, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}

/* Of square members, so that the result has room. */
static batchqr_status plain_pinv(const operand_set *s, const batchqr_batch *b) {
  batchqr_batch batch = *b;
  batch.m = N, batch.k = 0, batch.reltol = 0.9;
  batch.s.stride = STRIDE_TAU * reals(b->type), batch.rank.stride = STRIDE * ints(b->type);
  return batch_pinv(handle, &batch, s->a, s->q, s->tau, s->r, NULL);
}
static batchqr_status strided_pinv(batchqr_type type, const operand_set *s) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##pinv_strided(handle, N, N, 0.9, (T *)s->a, LDA, STRIDE, (T *)s->q, LDA, STRIDE, (R *)s->tau,    \
                          STRIDE_TAU *reals(type), (int *)s->r, STRIDE *ints(type), NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_pinv(batchqr_type type, void *a, void *q, void *r, void *tau) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##pinv(handle, N, N, 0.9, (T **)a, LDA, (T **)q, LDA, (const R **)tau, (int **)r, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}

static batchqr_status plain_gesvd(const operand_set *s, const batchqr_batch *b) {
  batchqr_batch batch = *b;
  batch.s.stride = STRIDE_TAU * reals(b->type);
  batch.u = batch.v = batch.a;
  return batch_gesvd(handle, &batch, s->a, s->tau, s->q, s->r, NULL, NULL);
}
static batchqr_status strided_gesvd(batchqr_type type, const operand_set *s) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##gesvd_strided(handle, M, N, (T *)s->a, LDA, STRIDE, (R *)s->tau, STRIDE_TAU *reals(type),       \
                           (T *)s->q, LDA, STRIDE, (T *)s->r, LDA, STRIDE, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_gesvd(batchqr_type type, void *a, void *q, void *r, void *tau) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##gesvd(handle, M, N, (T **)a, LDA, (R **)tau, (T **)q, LDA, (T **)r, LDA, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}

static batchqr_status plain_gesvdr(const operand_set *s, const batchqr_batch *b) {
  batchqr_batch batch = *b;
  batch.k = 5, batch.oversampling = 3, batch.power_steps = 1, batch.seed = 9;
  batch.s.stride = STRIDE_TAU * reals(b->type);
  batch.u = batch.v = batch.a;
  return batch_gesvdr(handle, &batch, s->a, s->tau, s->q, s->r, NULL);
}
static batchqr_status strided_gesvdr(batchqr_type type, const operand_set *s) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##gesvdr_strided(handle, M, N, 5, 3, 1, 9, (T *)s->a, LDA, STRIDE, (R *)s->tau,                   \
                            STRIDE_TAU *reals(type), (T *)s->q, LDA, STRIDE, (T *)s->r, LDA, STRIDE, NULL,   \
                            COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_gesvdr(batchqr_type type, void *a, void *q, void *r, void *tau) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##gesvdr(handle, M, N, 5, 3, 1, 9, (const T **)a, LDA, (R **)tau, (T **)q, LDA, (T **)r, LDA,     \
                    NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}

static batchqr_status plain_syevd(const operand_set *s, const batchqr_batch *b) {
  batchqr_batch batch = *b;
  batch.m = N, batch.uplo = BATCHQR_UPPER;
  batch.s.stride = STRIDE_TAU * reals(b->type);
  return batch_syevd(handle, &batch, s->a, s->tau, NULL, NULL);
}
static batchqr_status strided_syevd(batchqr_type type, const operand_set *s) {
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##evd##_strided(handle, BATCHQR_UPPER, N, (T *)s->a, LDA, STRIDE, (R *)s->tau,                    \
                           STRIDE_TAU *reals(type), NULL, LDA, STRIDE, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}
static batchqr_status pointers_syevd(batchqr_type type, void *a, void *q, void *r, void *tau) {
  (void)q, (void)r;
#define CALL(x, T, R, evd)                                                                                   \
  batch_##x##evd(handle, BATCHQR_UPPER, N, (T **)a, LDA, (R **)tau, NULL, 0, NULL, COUNT)
  return BY_REAL_TYPE(type, CALL);
#undef CALL
}

static const wrappers all_wrappers[] = {{"qr", plain_qr, strided_qr, pointers_qr},
                                        {"geqr_r", plain_geqr_r, strided_geqr_r, pointers_geqr_r},
                                        {"orgqr", plain_orgqr, strided_orgqr, pointers_orgqr},
                                        {"ormqr", plain_ormqr, strided_ormqr, pointers_ormqr},
                                        {"trsm", plain_trsm, strided_trsm, pointers_trsm},
                                        {"r_range", plain_r_range, strided_r_range, pointers_r_range},
                                        {"geqp3", plain_geqp3, strided_geqp3, pointers_geqp3},
                                        {"gelsy", plain_gelsy, strided_gelsy, pointers_gelsy},
                                        {"pinv", plain_pinv, strided_pinv, pointers_pinv},
                                        {"gesvd", plain_gesvd, strided_gesvd, pointers_gesvd},
                                        {"gesvdr", plain_gesvdr, strided_gesvdr, pointers_gesvdr},
                                        {"syevd", plain_syevd, strided_syevd, pointers_syevd}};
enum { NUM_WRAPPERS = sizeof all_wrappers / sizeof all_wrappers[0] };

static void expect_same(const operand_set *x, const operand_set *y, const char *name) {
  ck_assert_msg(memcmp(x->ah, y->ah, x->bytes) == 0 && memcmp(x->qh, y->qh, x->bytes) == 0 &&
                    memcmp(x->rh, y->rh, x->bytes) == 0 && memcmp(x->tauh, y->tauh, x->tau_bytes) == 0,
                "%s", name);
}

START_TEST(typed_wrappers_are_the_routines) {
  const wrappers *w = &all_wrappers[_i / SUITE_TYPES];
  const batchqr_type type = (batchqr_type)(_i % SUITE_TYPES);
  const batchqr_batch batch = batch_of(type);
  operand_set plain = make_set(type), strided = make_set(type), pointers = make_set(type);
  operand_set *const sets[] = {&plain, &strided, &pointers};
  int64_t offsets[COUNT], tau_offsets[COUNT];
  for (int k = 0; k < COUNT; k++) offsets[k] = k * STRIDE, tau_offsets[k] = k * STRIDE_TAU;
  void *arrays[4], *const of[] = {pointers.a, pointers.q, pointers.r, pointers.tau};
  for (int i = 0; i < 4; i++)
    arrays[i] = memory_pointers(backend, of[i], bqr_type_bytes(type), i < 3 ? offsets : tau_offsets, COUNT);
  for (int i = 0; i < 3; i++) expect_success(batch_geqrf(handle, &batch, sets[i]->a, sets[i]->tau, NULL));
  expect_success(w->plain(&plain, &batch));
  expect_success(w->strided(type, &strided));
  expect_success(w->pointers(type, arrays[0], arrays[1], arrays[2], arrays[3]));
  for (int i = 0; i < 3; i++) download(sets[i]);
  expect_same(&plain, &strided, w->name);
  expect_same(&plain, &pointers, w->name);
  for (int i = 0; i < 4; i++) memory_free(backend, arrays[i]);
  for (int i = 0; i < 3; i++) free_set(sets[i]);
}
END_TEST

START_TEST(diagonals_can_be_positive) {
  batchqr_options options = {.positive_diagonal = 1};
  batchqr_handle_t positive = memory_handle(backend, &options);
  batchqr_batch batch = batch_of(BATCHQR_D);
  operand_set s = make_set(BATCHQR_D);
  bool negative = false;
  expect_success(batch_geqr_r(handle, &batch, s.a, s.r, NULL));
  download(&s);
  const double *r = (const double *)s.rh;
  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++) negative = negative || r[k * STRIDE + j * LDA + j] < 0;
  ck_assert(negative); /* else this test shows nothing */
  memory_upload(backend, s.a, s.a0, s.bytes);
  expect_success(batch_geqr_r(positive, &batch, s.a, s.r, NULL));
  download(&s);
  for (int k = 0; k < COUNT; k++)
    for (int j = 0; j < N; j++) ck_assert_double_gt(r[k * STRIDE + j * LDA + j], 0);
  free_set(&s);
  batchqr_destroy(positive);
}
END_TEST

int main(void) {
  Suite *suite = api_suite("api_routines");
  TCase *routines = api_case(suite, "routines");
  tcase_add_loop_test(routines, typed_wrappers_are_geqrf, 0, SUITE_TYPES);
  tcase_add_loop_test(routines, qr_gets_its_operands, 0, SUITE_TYPES);
  tcase_add_loop_test(routines, ormqr_and_orgqr_get_their_operands, 0, SUITE_TYPES);
  tcase_add_loop_test(routines, typed_wrappers_are_the_routines, 0, NUM_WRAPPERS * SUITE_TYPES);
  tcase_add_test(routines, diagonals_can_be_positive);
  return suite_run(suite);
}
