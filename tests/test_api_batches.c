/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches that the API refuses, and what it says then; batches that are right, though they look odd. */
#include "api.h"
#include "handle.h"
#include "routines.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* The batches below overwrite what they are about. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define UNIFORM(M, N, ...)                                                                                   \
  {                                                                                                          \
    .type = BATCHQR_D, .count = 10, .m = M, .n = N, .a = {.ld = 32, .stride = 512},                          \
    .c = {.ld = 32, .stride = 512}, .r = {.ld = 32, .stride = 512}, .tau = {.stride = 16},                   \
    .range = {.stride = 2}, __VA_ARGS__                                                                      \
  }
static const int sizes_m[] = {8, 4, 6}, sizes_n[] = {3, 4, 6}, sizes_k[] = {3, 5, 1},
                 sizes_bad[] = {3, -4, 6}, sizes_none[] = {8, 0, 6}, lds[] = {8, 3, 6},
                 lds_none[] = {8, 0, 6}, lds_bad[] = {8, -1, 6};
#define HOST(...)                                                                                            \
  {                                                                                                          \
    .type = BATCHQR_D, .sizes = BATCHQR_HOST_SIZES, .count = 3, .m_array = sizes_m, .n_array = sizes_n,      \
    .a = {.ld = 8, .stride = 64}, .c = {.ld = 8, .stride = 64}, .r = {.ld = 8, .stride = 64},                \
    .tau = {.stride = 6}, .range = {.stride = 2}, __VA_ARGS__                                                \
  }

static const struct {
  batchqr_op op;
  batchqr_batch batch;
  const char *text;
} bad_batches[] = {
    {BATCHQR_GEQRF, UNIFORM(32, 16, .type = (batchqr_type)4), "batch.type = 4 is not a batchqr_type"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .type = (batchqr_type)-1), "batch.type = -1 is not a batchqr_type"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.layout = (batchqr_layout)2}), "batch.a.layout = 2 is not a batchqr_layout"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .sizes = (batchqr_sizes)3), "batch.sizes = 3 is not a batchqr_sizes"},
    {BATCHQR_ORMQR, UNIFORM(32, 16, .side = (batchqr_side)2), "batch.side = 2 is not a batchqr_side"},
    {BATCHQR_ORMQR, UNIFORM(32, 16, .trans = (batchqr_trans)3), "batch.trans = 3 is not a batchqr_trans"},
    {BATCHQR_ORMQR, UNIFORM(32, 16, .type = BATCHQR_Z, .trans = BATCHQR_TRANS),
     "batch.trans = BATCHQR_TRANS with a complex type: Q^H is BATCHQR_CONJ_TRANS"},
    {BATCHQR_GELS, UNIFORM(32, 16, .trans = (batchqr_trans)-1), "batch.trans = -1 is not a batchqr_trans"},
    {BATCHQR_GELS, UNIFORM(32, 16, .type = BATCHQR_C, .trans = BATCHQR_TRANS),
     "batch.trans = BATCHQR_TRANS with a complex type: A^H is BATCHQR_CONJ_TRANS"},
    {BATCHQR_GELS, UNIFORM(32, 16, .k = -2), "batch.k = -2 is negative"},
    {BATCHQR_GELS, UNIFORM(16, 32, .k = 2, .a = {.ld = 16, .stride = 512}, .c = {.ld = 31, .stride = 64}),
     "batch.c.ld = 31 is smaller than max(1, max(m, n)) = 32"},
    {BATCHQR_GELS, HOST(.k = -3, .c = {.ld = 8, .stride = 28}), "batch.k = -3 is negative"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .count = -5), "batch.count = -5 is negative"},
    {BATCHQR_GEQP3, UNIFORM(32, 16, .kmax = -1), "batch.kmax = -1 is negative"},
    {BATCHQR_GEQP3, UNIFORM(32, 16, .abstol = NAN), "batch.abstol is a NaN"},
    {BATCHQR_GELSY, UNIFORM(16, 32, .k = 2, .a = {.ld = 16, .stride = 512}, .c = {.ld = 31, .stride = 64}),
     "batch.c.ld = 31 is smaller than max(1, max(m, n)) = 32"},
    {BATCHQR_PINV, UNIFORM(16, 32, .a = {.ld = 16, .stride = 512}, .c = {.ld = 31, .stride = 512}),
     "batch.c.ld = 31 is smaller than max(1, n) = 32"},
    {BATCHQR_GESVD, UNIFORM(32, 16, .reltol = NAN), "batch.reltol is a NaN"},
    {BATCHQR_GESVDR, UNIFORM(32, 16, .k = -2), "batch.k = -2 is negative"},
    {BATCHQR_GESVDR, UNIFORM(32, 16, .oversampling = -3), "batch.oversampling = -3 is negative"},
    {BATCHQR_GESVDR, UNIFORM(32, 16, .power_steps = 101), "batch.power_steps = 101 is not between 0 and 100"},
    {BATCHQR_GEQP3, UNIFORM(32, 16, .c = {.ld = 31}), "batch.c.ld = 31 is smaller than max(1, m) = 32"},
    {BATCHQR_GESVD, UNIFORM(32, 16, .s = {.stride = 15}), "batch.s.stride = 15: members of 16 elements overlap"},
    {BATCHQR_GESVD, UNIFORM(32, 16, .s = {.stride = 16}, .u = {.ld = 32, .stride = 511}),
     "batch.u.stride = 511: members of 32 x 16 with ld 32 overlap; 512 would do"},
    {BATCHQR_GESVD, UNIFORM(32, 16, .s = {.stride = 16}, .v = {.ld = 15}),
     "batch.v.ld = 15 is smaller than max(1, n) = 16"},
    {BATCHQR_SYEVD, UNIFORM(32, 16, .s = {.stride = 16}), "batch.m = 32 is not n = 16"},
    {BATCHQR_SYEVD, HOST(.s = {.stride = 6}), "batch.m_array[0] = 8 is not n = 3"},
    {BATCHQR_TRSM, UNIFORM(16, 32, .k = 1), "batch.n = 32 is larger than m = 16"},
    {BATCHQR_TRSM, UNIFORM(32, 16, .k = -1), "batch.k = -1 is negative"},
    {BATCHQR_TRSM, UNIFORM(32, 16, .trans = (batchqr_trans)3), "batch.trans = 3 is not a batchqr_trans"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .uplo = (batchqr_uplo)2), "batch.uplo = 2 is not a batchqr_uplo"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .iu = 3), "batch.il = 0 is less than 1"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .il = 3), "batch.il = 3 is larger than batch.iu = 0"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .il = 5, .iu = 4), "batch.il = 5 is larger than batch.iu = 4"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .il = 2, .iu = 17, .s = {.stride = 16}),
     "batch.iu = 17 is larger than batch.n = 16"},
    {BATCHQR_SYEVD, HOST(.m_array = sizes_n, .il = 1, .iu = 7, .s = {.stride = 6}),
     "batch.iu = 7 is larger than the largest n = 6"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .vl = 2, .vu = 2), "batch.vl = 2 is not less than batch.vu = 2"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .vl = NAN, .vu = 2), "batch.vl is a NaN"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .il = 1, .iu = 2, .vu = 2),
     "batch.il = 1, batch.iu = 2 and batch.vl = 0, batch.vu = 2: a range is of indices or of values"},
    {BATCHQR_SYEVD, UNIFORM(16, 16, .il = 3, .iu = 9, .s = {.stride = 6}),
     "batch.s.stride = 6: members of 7 elements overlap"},
    {BATCHQR_GEQRF, UNIFORM(-1, 16, .k = 0), "batch.m = -1 is negative"},
    {BATCHQR_GEQRF, UNIFORM(32, -2, .k = 0), "batch.n = -2 is negative"},
    {BATCHQR_ORGQR, UNIFORM(32, 16, .k = -3), "batch.k = -3 is negative"},
    {BATCHQR_ORGQR, UNIFORM(8, 16, .k = 0), "batch.n = 16 is larger than m = 8"},
    {BATCHQR_ORGQR, UNIFORM(32, 16, .k = 17), "batch.k = 17 is larger than n = 16"},
    {BATCHQR_ORMQR, UNIFORM(16, 8, .k = 17), "batch.k = 17 is larger than m = 16"},
    {BATCHQR_ORMQR, UNIFORM(16, 8, .k = 9, .side = BATCHQR_RIGHT), "batch.k = 9 is larger than n = 8"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 3, .stride = 512}),
     "batch.a.ld = 3 is smaller than max(1, m) = 32"},
    {BATCHQR_GEQRF, UNIFORM(0, 16, .a = {.ld = 0}), "batch.a.ld = 0 is smaller than max(1, m) = 1"},
    {BATCHQR_GEQRF, UNIFORM(0, 0, .count = 0, .a = {.ld = -7}),
     "batch.a.ld = -7 is smaller than max(1, m) = 1"},
    {BATCHQR_QR, UNIFORM(32, 16, .c = {.ld = 31, .stride = 512}),
     "batch.c.ld = 31 is smaller than max(1, m) = 32"},
    {BATCHQR_QR, UNIFORM(32, 16, .r = {.ld = 15, .stride = 512}),
     "batch.r.ld = 15 is smaller than max(1, min(m, n)) = 16"},
    {BATCHQR_ORMQR, UNIFORM(16, 20, .side = BATCHQR_RIGHT, .k = 1, .a = {.ld = 19, .stride = 512}),
     "batch.a.ld = 19 is smaller than max(1, n) = 20"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 32, .stride = -1}), "batch.a.stride = -1 is negative"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 32, .stride = 10}),
     "batch.a.stride = 10: members of 32 x 16 with ld 32 overlap; 512 would do"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 32, .stride = 511}),
     "batch.a.stride = 511: members of 32 x 16 with ld 32 overlap; 512 would do"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 319, .stride = 32}),
     "batch.a.stride = 32: members of 32 x 16 with ld 319 overlap; 4817 would do"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 400, .stride = 31}),
     "batch.a.stride = 31: members of 32 x 16 with ld 400 overlap; 6032 would do"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .tau = {.stride = 15)},
     "batch.tau.stride = 15: members of 16 elements overlap"},
    {BATCHQR_ORGQR, UNIFORM(32, 16, .tau = {.stride = -1}), "batch.tau.stride = -1 is negative"},
    {BATCHQR_ORMQR, UNIFORM(32, 16, .c = {.ld = 32, .stride = 0}),
     "batch.c.stride = 0: members of 32 x 16 with ld 32 overlap; 512 would do"},
    {BATCHQR_QR, UNIFORM(16, 32, .a.ld = 16, .c = {.ld = 16, .stride = 255}),
     "batch.c.stride = 255: members of 16 x 16 with ld 16 overlap; 256 would do"},
    {BATCHQR_GEQR_R, UNIFORM(16, 32, .a.ld = 16, .r = {.ld = 16, .stride = 511}),
     "batch.r.stride = 511: members of 16 x 32 with ld 16 overlap; 512 would do"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .count = (int64_t)1 << 60),
     "batch.a.stride = 512: 1152921504606846976 members are beyond all addresses"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .count = 3, .a = {.ld = 32, .stride = (int64_t)1 << 60}),
     "batch.a.stride = 1152921504606846976: 3 members are beyond all addresses"},
    {BATCHQR_GEQRF, UNIFORM(1, 1, .count = (int64_t)1 << 62, .a = {.ld = 1, .stride = 1}),
     "batch.a.stride = 1: 4611686018427387904 members are beyond all addresses"},
    {BATCHQR_GEQRF, UNIFORM(2, INT_MAX, .count = 1, .a = {.ld = INT_MAX}),
     "batch.a.stride = 0: 1 members are beyond all addresses"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 32, .stride = 512, .ld_array = lds}),
     "batch.a.ld_array is not NULL, but batch.sizes is BATCHQR_UNIFORM"},
    {BATCHQR_GEQRF, HOST(.m_array = NULL), "batch.m_array is NULL"},
    {BATCHQR_GEQRF, HOST(.n_array = NULL), "batch.n_array is NULL"},
    {BATCHQR_GEQRF, HOST(.m_array = sizes_bad), "batch.m_array[1] = -4 is negative"},
    {BATCHQR_GEQRF, HOST(.n_array = sizes_bad), "batch.n_array[1] = -4 is negative"},
    {BATCHQR_ORMQR, HOST(.k_array = sizes_bad), "batch.k_array[1] = -4 is negative"},
    {BATCHQR_ORMQR, HOST(.k_array = sizes_k), "batch.k_array[1] = 5 is larger than m = 4"},
    {BATCHQR_ORGQR, HOST(.n_array = sizes_k, .k_array = sizes_k),
     "batch.n_array[1] = 5 is larger than m = 4"},
    {BATCHQR_ORGQR, HOST(.k_array = sizes_k), "batch.k_array[1] = 5 is larger than n = 4"},
    {BATCHQR_GEQRF, HOST(.a = {.ld = 7, .stride = 64}),
     "batch.a.ld = 7 is smaller than max(1, m) = 8 of member 0"},
    {BATCHQR_GEQRF, HOST(.a = {.ld_array = lds, .stride = 64}),
     "batch.a.ld_array[1] = 3 is smaller than max(1, m) = 4"},
    {BATCHQR_GEQRF, HOST(.m_array = sizes_none, .a = {.ld_array = lds_bad, .stride = 64}),
     "batch.a.ld_array[1] = -1 is smaller than max(1, m) = 1"},
    {BATCHQR_GEQRF, HOST(.a = {.ld = 8, .stride = 23}),
     "batch.a.stride = 23: member 0 of 8 x 3 with ld 8 overlaps the next; 24 would do"},
    {BATCHQR_GEQRF, HOST(.a = {.ld = 8, .stride = 24}),
     "batch.a.stride = 24: member 1 of 4 x 4 with ld 8 overlaps the next; 28 would do"},
    {BATCHQR_GEQRF, HOST(.tau = {.stride = 3}), "batch.tau.stride = 3: member 1 of 4 elements overlaps the next"},
};

START_TEST(wrong_batches_are_refused) {
  batchqr_op op = bad_batches[_i].op;
  const batchqr_batch *batch = &bad_batches[_i].batch;
  const char *text = bad_batches[_i].text;
  batchqr_plan_t plan = (batchqr_plan_t)pool;
  expect(batchqr_plan_create(handle, op, batch, &plan), BATCHQR_INVALID_ARGUMENT, text);
  ck_assert_ptr_null(plan);
}
END_TEST

/* The one-call tier says the same, and touches nothing. */
START_TEST(wrong_batches_are_refused_in_one_call) {
  batchqr_op op = bad_batches[_i].op;
  const batchqr_batch *batch = &bad_batches[_i].batch;
  const char *text = bad_batches[_i].text;
  char *a = pool, *c = pool + 4096, *r = pool + 8192, *tau = pool + 12288;
  const batchqr_operands operands = {
      .a = a, .c = c, .r = r, .tau = tau, .range = tau, .s = tau, .u = c, .v = r};
  const batchqr_status status = lab_routine_of((int)op)->call(handle, batch, &operands);
  bool argument = strncmp(text, "batch.side", 10) == 0 || strncmp(text, "batch.trans", 11) == 0;
  expect(status, BATCHQR_INVALID_ARGUMENT, argument ? text + strlen("batch.") : text);
  ck_assert_int_eq(handle->cache.count, 0);
}
END_TEST

/* --- batches that are right, though they look odd */

static const struct {
  batchqr_op op;
  batchqr_batch batch;
} odd_batches[] = {
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 320, .stride = 32})}, /* below each other */
    {BATCHQR_GEQRF,
     UNIFORM(32, 16, .count = 1, .a = {.ld = 32}, .tau = {.stride = 0})}, /* nothing to overlap */
    {BATCHQR_GEQRF, UNIFORM(32, 16, .count = 0, .a = {.ld = 32}, .tau = {.stride = 0})},
    {BATCHQR_GEQRF, UNIFORM(0, 16, .a = {.ld = 1}, .tau = {.stride = 0})},
    {BATCHQR_GEQRF, UNIFORM(32, 1, .a = {.ld = 32, .stride = 32})},
    {BATCHQR_ORMQR, UNIFORM(32, 16, .k = 2, .a = {.ld = 32}, .tau = {.stride = 0})}, /* one Q for all */
    {BATCHQR_GEQRF, UNIFORM(32, 16, .side = (batchqr_side)77, .k = -1, .r = {.ld = -1}, .c = {.stride = -1})},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.layout = BATCHQR_POINTERS, .ld = 32, .stride = -1},
                            .tau = {.layout = BATCHQR_POINTERS, .stride = -1})},
    {BATCHQR_GEQRF, HOST(.a = {.ld = 24, .stride = 8})},
    {BATCHQR_GEQRF, HOST(.m_array = sizes_n, .a = {.ld = 16, .stride = 5})}, /* the last may be longer */
    {BATCHQR_GEQRF, HOST(.a = {.ld = 8, .stride = 28})}, /* the last member may be longer */
    {BATCHQR_GEQRF, HOST(.count = 0, .m_array = NULL, .n_array = NULL)},
    {BATCHQR_GEQRF, HOST(.m_array = sizes_none, .a = {.ld_array = sizes_none, .stride = 64})}, /* no rows */
    {BATCHQR_GEQRF, HOST(.n_array = sizes_none, .tau = {.stride = 8},
                         .a = {.ld_array = lds_none, .stride = 64})}, /* no columns */
    {BATCHQR_GEQRF, HOST(.m = -1, .n = -1)},
};

START_TEST(odd_batches_are_planned) {
  batchqr_plan_t plan;
  expect_success(batchqr_plan_create(handle, odd_batches[_i].op, &odd_batches[_i].batch, &plan));
  batchqr_plan_destroy(plan);
}
END_TEST

START_TEST(device_sizes_are_checked_as_bounds) {
  int *sizes = (int *)pool;
  batchqr_batch batch = UNIFORM(32, 16, .sizes = BATCHQR_DEVICE_SIZES, .m_array = sizes, .n_array = sizes);
  batchqr_plan_t plan;
  expect_success(batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan));
  batchqr_plan_destroy(plan);
  batch.m = 33;
  expect(batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan), BATCHQR_INVALID_ARGUMENT,
         "batch.a.ld = 32 is smaller than max(1, m) = 33");
  batch.a.ld_array = sizes; /* looked at on the device */
  expect_success(batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan));
  batchqr_plan_destroy(plan);
  batch.m = -1;
  expect(batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan), BATCHQR_INVALID_ARGUMENT,
         "batch.m = -1 is negative");
  batch.m = 3;
  batch.n_array = NULL;
  expect(batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan), BATCHQR_INVALID_ARGUMENT,
         "batch.n_array is NULL");
}
END_TEST

/* They must not be read: there is one int. */
START_TEST(host_sizes_are_limited) {
  static const int one = 5;
  batchqr_batch batch = HOST(.count = (int64_t)1 << 31, .m_array = &one, .n_array = &one);
  batchqr_plan_t plan = (batchqr_plan_t)pool;
  const char *text = "batch.count = 2147483648: sizes in host arrays are limited to 2147483647 members";
  expect(batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan), BATCHQR_UNSUPPORTED, text);
  ck_assert_ptr_null(plan);
  expect(batch_geqrf(handle, &batch, pool, pool, NULL), BATCHQR_UNSUPPORTED, text);
}
END_TEST

/* Days, if each were visited. */
START_TEST(members_without_elements_cost_nothing) {
  batchqr_batch batch = {.type = BATCHQR_D, .count = (int64_t)1 << 40, .n = 4, .a = {.ld = 1}};
  batch.c = batch.r = batch.a;
  expect_success(batch_geqrf(handle, &batch, NULL, NULL, NULL));
  expect_success(batch_geqr_r(handle, &batch, NULL, NULL, NULL));
  expect_success(batch_qr(handle, &batch, NULL, NULL, NULL, NULL));
}
END_TEST

START_TEST(packed_batches_have_the_least_strides) {
  batchqr_batch b = batchqr_batch_packed(BATCHQR_QR, BATCHQR_Z, 5, 3, 99, 7);
  ck_assert(b.type == BATCHQR_Z && b.count == 7 && b.m == 5 && b.n == 3 && b.sizes == BATCHQR_UNIFORM);
  ck_assert(b.a.ld == 5 && b.a.stride == 15 && b.c.ld == 5 && b.c.stride == 15 && b.r.ld == 3 &&
            b.r.stride == 9);
  b = batchqr_batch_packed(BATCHQR_GELS, BATCHQR_D, 3, 8, 2, 7);
  ck_assert(b.a.ld == 3 && b.a.stride == 24 && b.c.ld == 8 && b.c.stride == 16 && b.norms.stride == 2 &&
            b.k == 2);
  b = batchqr_batch_packed(BATCHQR_GEQRF, BATCHQR_D, 0, 8, 0, 7);
  ck_assert(b.a.ld == 1 && b.a.stride == 0 && b.tau.stride == 0);
  for (int op = BATCHQR_GEQRF; op <= BATCHQR_TRSM; op++) {
    batchqr_plan_t plan;
    b = batchqr_batch_packed((batchqr_op)op, BATCHQR_D, op == BATCHQR_SYEVD ? 4 : 6, 4, 3, 5);
    expect_success(batchqr_plan_create(handle, (batchqr_op)op, &b, &plan));
    batchqr_plan_destroy(plan);
  }
}
END_TEST

START_TEST(what_is_reserved_must_be_zero) {
  batchqr_batch batch = small;
  batch.reserved[2] = 1;
  expect(batch_geqrf(handle, &batch, pool, pool + 4096, NULL), BATCHQR_INVALID_ARGUMENT,
         "batch.reserved[2] = 1: the batch was not initialized, or asks for what this version of batchqr "
         "does not have");
}
END_TEST

int main(void) {
  Suite *suite = api_suite("api_batches");
  TCase *batches = api_case(suite, "batches");
  tcase_add_loop_test(batches, wrong_batches_are_refused, 0, sizeof bad_batches / sizeof *bad_batches);
  tcase_add_loop_test(batches, wrong_batches_are_refused_in_one_call, 0,
                      sizeof bad_batches / sizeof *bad_batches);
  tcase_add_loop_test(batches, odd_batches_are_planned, 0, sizeof odd_batches / sizeof *odd_batches);
  tcase_add_test(batches, device_sizes_are_checked_as_bounds);
  tcase_add_test(batches, host_sizes_are_limited);
  tcase_add_test(batches, members_without_elements_cost_nothing);
  tcase_add_test(batches, packed_batches_have_the_least_strides);
  tcase_add_test(batches, what_is_reserved_must_be_zero);
  return suite_run(suite);
}
