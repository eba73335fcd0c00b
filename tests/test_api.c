/* SPDX-License-Identifier: BSD-3-Clause */
/* The API: what it refuses and what it says then, what the one-call tier keeps, and that every routine gets
 * its operands. The routines' numbers have tests of their own. */
#define _POSIX_C_SOURCE 200809L /* unsetenv */
#include "config.h"
#include "handle.h"
#include "inspect.h"
#include "matgen.h"
#include "memory.h"
#include "residual.h"
#include "types.h"
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if BATCHQR_HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

static batchqr_backend backend;
static batchqr_handle_t handle;
static char *pool; /* backend memory that operands may point to */
enum { POOL_BYTES = 1 << 18 };

static void set_up(void) {
  unsetenv("BATCHQR_TUNING_FILE");
  handle = memory_handle(backend, NULL);
  pool = memory_alloc(backend, POOL_BYTES);
  memory_fill(backend, pool, 0, POOL_BYTES);
}

static void tear_down(void) {
  batchqr_destroy(handle);
  memory_free(backend, pool);
}

static void expect(batchqr_status status, batchqr_status expected, const char *text) {
  ck_assert_msg(status == expected, "%s instead of %s: %s", batchqr_status_string(status),
                batchqr_status_string(expected), batchqr_error_message(handle));
  if (text) ck_assert_str_eq(batchqr_error_message(handle), text);
}

static void expect_success(batchqr_status status) { expect(status, BATCHQR_SUCCESS, NULL); }

/* --- batches that are refused */

/* The batches below overwrite what they are about. */
#pragma GCC diagnostic ignored "-Woverride-init"
#define UNIFORM(M, N, ...)                                                                                   \
  {                                                                                                          \
    .type = BATCHQR_D, .count = 10, .m = M, .n = N, .a = {.ld = 32, .stride = 512},                          \
    .c = {.ld = 32, .stride = 512}, .r = {.ld = 32, .stride = 512}, .stride_tau = 16, __VA_ARGS__            \
  }
static const int sizes_m[] = {8, 4, 6}, sizes_n[] = {3, 4, 6}, sizes_k[] = {3, 5, 1},
                 sizes_bad[] = {3, -4, 6}, lds[] = {8, 3, 6};
#define HOST(...)                                                                                            \
  {                                                                                                          \
    .type = BATCHQR_D, .sizes = BATCHQR_HOST_SIZES, .count = 3, .m_array = sizes_m, .n_array = sizes_n,      \
    .a = {.ld = 8, .stride = 64}, .c = {.ld = 8, .stride = 64}, .r = {.ld = 8, .stride = 64},                \
    .stride_tau = 6, __VA_ARGS__                                                                             \
  }

static const struct {
  batchqr_op op;
  batchqr_batch batch;
  const char *text;
} bad_batches[] = {
    {BATCHQR_GEQRF, UNIFORM(32, 16, .type = (batchqr_type)4), "batch.type = 4 is not a batchqr_type"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .type = (batchqr_type)-1), "batch.type = -1 is not a batchqr_type"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .layout = (batchqr_layout)2), "batch.layout = 2 is not a batchqr_layout"},
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
     "batch.a.stride = 10: members of 32 x 16 with ld 32 overlap"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 32, .stride = 511}),
     "batch.a.stride = 511: members of 32 x 16 with ld 32 overlap"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 319, .stride = 32}),
     "batch.a.stride = 32: members of 32 x 16 with ld 319 overlap"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 400, .stride = 31}),
     "batch.a.stride = 31: members of 32 x 16 with ld 400 overlap"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .stride_tau = 15),
     "batch.stride_tau = 15: members of 16 elements overlap"},
    {BATCHQR_ORGQR, UNIFORM(32, 16, .stride_tau = -1), "batch.stride_tau = -1 is negative"},
    {BATCHQR_ORMQR, UNIFORM(32, 16, .c = {.ld = 32, .stride = 0}),
     "batch.c.stride = 0: members of 32 x 16 with ld 32 overlap"},
    {BATCHQR_QR, UNIFORM(16, 32, .a.ld = 16, .c = {.ld = 16, .stride = 255}),
     "batch.c.stride = 255: members of 16 x 16 with ld 16 overlap"},
    {BATCHQR_GEQR_R, UNIFORM(16, 32, .a.ld = 16, .r = {.ld = 16, .stride = 511}),
     "batch.r.stride = 511: members of 16 x 32 with ld 16 overlap"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .count = (int64_t)1 << 60),
     "batch.a.stride = 512: 1152921504606846976 members are beyond all addresses"},
    {BATCHQR_GEQRF, UNIFORM(32, 16, .count = 3, .a = {.ld = 32, .stride = (int64_t)1 << 60}),
     "batch.a.stride = 1152921504606846976: 3 members are beyond all addresses"},
    {BATCHQR_GEQRF, UNIFORM(1, 1, .count = (int64_t)1 << 62, .a = {.ld = 1, .stride = 1}),
     "batch.a.stride = 1: 4611686018427387904 members are beyond all addresses"},
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
    {BATCHQR_GEQRF, HOST(.a = {.ld = 8, .stride = 23}),
     "batch.a.stride = 23: member 0 of 8 x 3 with ld 8 overlaps the next"},
    {BATCHQR_GEQRF, HOST(.a = {.ld = 8, .stride = 24}),
     "batch.a.stride = 24: member 1 of 4 x 4 with ld 8 overlaps the next"},
    {BATCHQR_GEQRF, HOST(.stride_tau = 3), "batch.stride_tau = 3: member 1 of 4 elements overlaps the next"},
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
  void *a = pool, *c = pool + 4096, *r = pool + 8192, *tau = pool + 12288;
  batchqr_status status = BATCHQR_SUCCESS;
  switch (op) {
  case BATCHQR_GEQRF:
    status = batch_geqrf(handle, batch, a, tau, NULL);
    break;
  case BATCHQR_ORGQR:
    status = batch_orgqr(handle, batch, a, tau, NULL);
    break;
  case BATCHQR_ORMQR:
    status = batch_ormqr(handle, batch, batch->side, batch->trans, a, tau, c, NULL);
    break;
  case BATCHQR_QR:
    status = batch_qr(handle, batch, a, c, r, NULL);
    break;
  case BATCHQR_GEQR_R:
    status = batch_geqr_r(handle, batch, a, r, NULL);
    break;
  case BATCHQR_GELS:
    status = batch_gels(handle, batch, batch->trans, a, c, NULL, NULL);
    break;
  }
  bool argument = strncmp(text, "batch.side", 10) == 0 || strncmp(text, "batch.trans", 11) == 0;
  expect(status, BATCHQR_INVALID_ARGUMENT, argument ? text + strlen("batch.") : text);
  for (int i = 0; i < BQR_CACHED_PLANS; i++) ck_assert_ptr_null(handle->cache[i].plan);
}
END_TEST

/* --- batches that are right, though they look odd */

static const struct {
  batchqr_op op;
  batchqr_batch batch;
} odd_batches[] = {
    {BATCHQR_GEQRF, UNIFORM(32, 16, .a = {.ld = 320, .stride = 32})},               /* below each other */
    {BATCHQR_GEQRF, UNIFORM(32, 16, .count = 1, .a = {.ld = 32}, .stride_tau = 0)}, /* nothing to overlap */
    {BATCHQR_GEQRF, UNIFORM(32, 16, .count = 0, .a = {.ld = 32}, .stride_tau = 0)},
    {BATCHQR_GEQRF, UNIFORM(0, 16, .a = {.ld = 1}, .stride_tau = 0)},
    {BATCHQR_GEQRF, UNIFORM(32, 1, .a = {.ld = 32, .stride = 32})},
    {BATCHQR_ORMQR, UNIFORM(32, 16, .k = 2, .a = {.ld = 32}, .stride_tau = 0)}, /* one Q for all */
    {BATCHQR_GEQRF, UNIFORM(32, 16, .side = (batchqr_side)77, .k = -1, .r = {.ld = -1}, .c = {.stride = -1})},
    {BATCHQR_GEQRF,
     UNIFORM(32, 16, .layout = BATCHQR_POINTERS, .a = {.ld = 32, .stride = -1}, .stride_tau = -1)},
    {BATCHQR_GEQRF, HOST(.a = {.ld = 24, .stride = 8})},
    {BATCHQR_GEQRF, HOST(.a = {.ld = 8, .stride = 28})}, /* the last member may be longer */
    {BATCHQR_GEQRF, HOST(.count = 0, .m_array = NULL, .n_array = NULL)},
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

/* --- operands */

static const batchqr_batch small = {.type = BATCHQR_D,
                                    .count = 2,
                                    .m = 4,
                                    .n = 3,
                                    .k = 3,
                                    .a = {.ld = 4, .stride = 12},
                                    .c = {.ld = 4, .stride = 12},
                                    .r = {.ld = 4, .stride = 12},
                                    .stride_tau = 3};

/* QR of it is done in steps, which need workspace. */
static const batchqr_batch wide = {.type = BATCHQR_D,
                                   .count = 2,
                                   .m = 3,
                                   .n = 40,
                                   .a = {.ld = 3, .stride = 120},
                                   .c = {.ld = 3, .stride = 9},
                                   .r = {.ld = 3, .stride = 120}};

START_TEST(operands_are_checked) {
  char *a = pool, *b = pool + 4096, *c = pool + 8192;
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  expect(batch_geqrf(handle, &small, NULL, b, NULL), invalid, "a is NULL");
  expect(batch_geqrf(handle, &small, a, NULL, NULL), invalid, "tau is NULL");
  expect(batch_orgqr(handle, &small, NULL, b, NULL), invalid, "a is NULL");
  expect(batch_ungqr(handle, &small, a, NULL, NULL), invalid, "tau is NULL");
  expect(batch_ormqr(handle, &small, BATCHQR_LEFT, BATCHQR_TRANS, NULL, b, c, NULL), invalid, "a is NULL");
  expect(batch_ormqr(handle, &small, BATCHQR_LEFT, BATCHQR_TRANS, a, NULL, c, NULL), invalid, "tau is NULL");
  expect(batch_unmqr(handle, &small, BATCHQR_LEFT, BATCHQR_TRANS, a, b, NULL, NULL), invalid, "c is NULL");
  expect(batch_qr(handle, &small, NULL, b, c, NULL), invalid, "a is NULL");
  expect(batch_qr(handle, &small, a, NULL, c, NULL), invalid, "q is NULL");
  expect(batch_qr(handle, &small, a, b, NULL, NULL), invalid, "r is NULL");
  expect(batch_geqr_r(handle, &small, NULL, b, NULL), invalid, "a is NULL");
  expect(batch_geqr_r(handle, &small, a, NULL, NULL), invalid, "r is NULL");
  expect(batch_ormqr(handle, &small, BATCHQR_LEFT, BATCHQR_TRANS, a, b, a, NULL), invalid,
         "c is the same address as a");
  expect(batch_qr(handle, &small, a, b, a, NULL), invalid, "r is the same address as a");
  expect(batch_qr(handle, &small, a, b, b, NULL), invalid, "r is the same address as q");
  expect(batch_qr(handle, &small, a, a, a, NULL), invalid, "r is the same address as q");
  expect(batch_gels(handle, &small, BATCHQR_TRANS, NULL, c, b, NULL), invalid, "a is NULL");
  expect(batch_gels(handle, &small, BATCHQR_TRANS, a, NULL, b, NULL), invalid, "c is NULL");
  expect(batch_gels(handle, &small, BATCHQR_TRANS, a, a, b, NULL), invalid, "c is the same address as a");
  expect(batch_gels(handle, &small, BATCHQR_TRANS, a, c, b, NULL), invalid,
         "batch.stride_norms = 0 is smaller than k = 3, and norms is not NULL");
  expect(batch_gels(handle, &small, (batchqr_trans)3, a, c, b, NULL), invalid,
         "trans = 3 is not a batchqr_trans");

  batchqr_batch other = small;
  other.c.ld = 5;
  other.c.stride = 15;
  expect(batch_qr(handle, &other, a, a, c, NULL), invalid,
         "q is a, but batch.c is not the storage of batch.a");
  other.r.stride = 13;
  expect(batch_geqr_r(handle, &other, a, a, NULL), invalid,
         "r is a, but batch.r is not the storage of batch.a");

  char expected[128];
  snprintf(expected, sizeof expected, "a = %p is not aligned to 8 bytes", (void *)(a + 4));
  expect(batch_geqrf(handle, &small, a + 4, b, NULL), invalid, expected);
  snprintf(expected, sizeof expected, "info = %p is not aligned to 4 bytes", (void *)(c + 2));
  expect(batch_geqrf(handle, &small, a, b, (int *)(c + 2)), invalid, expected);
  other = small;
  other.type = BATCHQR_Z;
  size_t align = backend == BATCHQR_BACKEND_CPU ? 8 : 16;
  snprintf(expected, sizeof expected, "tau = %p is not aligned to %zu bytes", (void *)(b + align / 2), align);
  expect(batch_geqrf(handle, &other, a, b + align / 2, NULL), invalid, expected);
  other.layout = BATCHQR_POINTERS;
  snprintf(expected, sizeof expected, "a = %p is not aligned to 8 bytes", (void *)(a + 4));
  expect(batch_geqrf(handle, &other, a + 4, b, NULL), invalid, expected);
  other = small;
  other.stride_norms = 3;
  snprintf(expected, sizeof expected, "norms = %p is not aligned to 8 bytes", (void *)(b + 4));
  expect(batch_gels(handle, &other, BATCHQR_TRANS, a, c, b + 4, NULL), invalid, expected);
}
END_TEST

START_TEST(operands_of_the_planned_tier_are_checked) {
  batchqr_plan_t plan;
  batchqr_operands operands = {.a = pool, .c = pool + 4096, .r = NULL};
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  expect_success(batchqr_plan_create(handle, BATCHQR_QR, &wide, &plan));
  size_t needed = batchqr_plan_workspace(plan);
  ck_assert_uint_ge(needed, 48);
  char *space = memory_alloc(backend, needed + 8), expected[512];
  expect(batchqr_plan_execute(handle, plan, &operands, space, needed), invalid, "operands.r is NULL");
  expect(batchqr_plan_execute(handle, plan, NULL, space, needed), invalid, "operands is NULL");
  expect(batchqr_plan_execute(handle, NULL, &operands, space, needed), invalid, "plan is NULL");
  operands.r = operands.c;
  expect(batchqr_plan_execute(handle, plan, &operands, space, needed), invalid,
         "operands.r is the same address as operands.c");
  operands.r = pool + 8192;
  snprintf(expected, sizeof expected, "workspace holds %zu bytes, %zu are needed", needed - 1, needed);
  expect(batchqr_plan_execute(handle, plan, &operands, space, needed - 1), BATCHQR_WORKSPACE_TOO_SMALL,
         expected);
  snprintf(expected, sizeof expected, "workspace is NULL, %zu bytes are needed", needed);
  expect(batchqr_plan_execute(handle, plan, &operands, NULL, needed), invalid, expected);
  snprintf(expected, sizeof expected, "workspace = %p is not aligned to 256 bytes", (void *)(space + 8));
  expect(batchqr_plan_execute(handle, plan, &operands, space + 8, needed), invalid, expected);
  expect_success(batchqr_plan_execute(handle, plan, &operands, space, needed));

  plan->device.ordinal++;
  batchqr_status status = batchqr_plan_execute(handle, plan, &operands, space, needed);
  plan->device.ordinal--;
  const char *called = backend == BATCHQR_BACKEND_CPU ? "the CPU" : handle->device.name;
  snprintf(expected, sizeof expected,
           "the plan was made for %s (device %d), and the handle works on %s (device %d)", called,
           handle->device.ordinal + 1, called, handle->device.ordinal);
  expect(status, invalid, expected);
  memory_sync(backend);
  batchqr_plan_destroy(plan);
  memory_free(backend, space);
}
END_TEST

START_TEST(nothing_to_touch_needs_no_addresses) {
  batchqr_batch batch = small;
  batch.count = 0;
  for (int layout = 0; layout < 2; layout++) {
    batch.layout = (batchqr_layout)layout;
    expect_success(batch_geqrf(handle, &batch, NULL, NULL, NULL));
    expect_success(batch_orgqr(handle, &batch, NULL, NULL, NULL));
    expect_success(batch_ormqr(handle, &batch, BATCHQR_LEFT, BATCHQR_NO_TRANS, NULL, NULL, NULL, NULL));
    expect_success(batch_qr(handle, &batch, NULL, NULL, NULL, NULL));
    expect_success(batch_geqr_r(handle, &batch, NULL, NULL, NULL));
    expect_success(batch_gels(handle, &batch, BATCHQR_NO_TRANS, NULL, NULL, NULL, NULL));
  }
  /* Members without elements still have an info. */
  int *info = (int *)pool, host[2] = {7, 7};
  batch = small;
  batch.n = batch.k = 0;
  for (int layout = 0; layout < 2; layout++) {
    batch.layout = (batchqr_layout)layout;
    for (int op = 0; op < 6; op++) {
      memory_upload(backend, info, (const int[]){7, 7}, sizeof host);
      batchqr_status status =
          op == 0   ? batch_geqrf(handle, &batch, NULL, NULL, info)
          : op == 1 ? batch_orgqr(handle, &batch, NULL, NULL, info)
          : op == 2 ? batch_ormqr(handle, &batch, BATCHQR_LEFT, BATCHQR_NO_TRANS, NULL, NULL, NULL, info)
          : op == 3 ? batch_qr(handle, &batch, NULL, NULL, NULL, info)
          : op == 4 ? batch_geqr_r(handle, &batch, NULL, NULL, info)
                    : batch_gels(handle, &batch, BATCHQR_NO_TRANS, NULL, NULL, NULL, info);
      expect_success(status);
      memory_download(backend, host, info, sizeof host);
      ck_assert_msg(host[0] == 0 && host[1] == 0, "op %d: info %d, %d", op, host[0], host[1]);
    }
  }
}
END_TEST

START_TEST(typed_wrappers_name_their_arguments) {
  double *a = (double *)pool, *tau = (double *)(pool + 4096);
  double *const *arrays = (double *const *)pool;
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  expect(batch_dgeqrf_strided(handle, -4, 3, a, 4, 12, tau, 3, 2), invalid, "m = -4 is negative");
  expect(batch_dgeqrf_strided(handle, 4, 3, a, 3, 12, tau, 3, 2), invalid,
         "lda = 3 is smaller than max(1, m) = 4");
  expect(batch_dgeqrf_strided(handle, 4, 3, a, 4, 11, tau, 3, 2), invalid,
         "stride_a = 11: members of 4 x 3 with ld 4 overlap");
  expect(batch_dgeqrf_strided(handle, 4, 3, a, 4, 12, tau, 2, 2), invalid,
         "stride_tau = 2: members of 3 elements overlap");
  expect(batch_dgeqrf_strided(handle, 4, 3, a, 4, 12, tau, 3, -2), invalid, "count = -2 is negative");
  expect(batch_dgeqrf_strided(handle, 4, 3, NULL, 4, 12, tau, 3, 2), invalid, "a is NULL");
  expect(batch_dgeqrf(handle, 4, 3, NULL, 4, arrays, 2), invalid, "a_array is NULL");
  expect(batch_dgeqrf(handle, 4, 3, arrays, 4, NULL, 2), invalid, "tau_array is NULL");
  expect(batch_dgeqrf(handle, 4, -3, arrays, 4, arrays, 2), invalid, "n = -3 is negative");
  expect(batch_dgels_strided(handle, (batchqr_trans)7, 4, 3, 1, a, 4, 12, tau, 4, 4, NULL, 2), invalid,
         "trans = 7 is not a batchqr_trans");
  expect(batch_dgels_strided(handle, BATCHQR_NO_TRANS, 4, 3, -1, a, 4, 12, tau, 4, 4, NULL, 2), invalid,
         "k = -1 is negative");
  expect(batch_dgels_strided(handle, BATCHQR_NO_TRANS, 3, 4, 1, a, 4, 16, tau, 3, 4, NULL, 2), invalid,
         "ldc = 3 is smaller than max(1, max(m, n)) = 4");
  expect(batch_dgels_strided(handle, BATCHQR_NO_TRANS, 4, 3, 2, a, 4, 12, tau, 4, 7, NULL, 2), invalid,
         "stride_c = 7: members of 4 x 2 with ld 4 overlap");
  expect(batch_dgels(handle, BATCHQR_NO_TRANS, 4, 3, 1, NULL, 4, arrays, 4, NULL, 2), invalid,
         "a_array is NULL");
  expect(batch_dgels(handle, BATCHQR_NO_TRANS, 4, 3, 1, arrays, 4, NULL, 4, NULL, 2), invalid,
         "c_array is NULL");
}
END_TEST

/* --- handles */

START_TEST(null_handles_and_arguments_are_refused) {
  batchqr_plan_t plan = (batchqr_plan_t)pool;
  double x;
  double *const p = &x;
  ck_assert_int_eq(batchqr_create(NULL, NULL), BATCHQR_INVALID_ARGUMENT);
  batchqr_destroy(NULL);
  batchqr_plan_destroy(NULL);
  const batchqr_status all[] = {
      batchqr_set_stream(NULL, NULL),
      batchqr_set_workspace(NULL, NULL, 0),
      batchqr_set_compute(NULL, BATCHQR_COMPUTE_AUTO),
      batch_geqrf(NULL, &small, &x, &x, NULL),
      batch_orgqr(NULL, &small, &x, &x, NULL),
      batch_ormqr(NULL, &small, BATCHQR_LEFT, BATCHQR_TRANS, &x, &x, &x, NULL),
      batch_qr(NULL, &small, &x, &x, &x, NULL),
      batch_geqr_r(NULL, &small, &x, &x, NULL),
      batch_gels(NULL, &small, BATCHQR_NO_TRANS, &x, &x, NULL, NULL),
      batch_dgeqrf_strided(NULL, 1, 1, &x, 1, 1, &x, 1, 1),
      batch_dgeqrf(NULL, 1, 1, &p, 1, &p, 1),
      batchqr_plan_create(NULL, BATCHQR_GEQRF, &small, &plan),
      batchqr_plan_execute(NULL, NULL, NULL, NULL, 0),
  };
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) ck_assert_int_eq(all[i], BATCHQR_INVALID_ARGUMENT);
  ck_assert_ptr_null(plan);
  ck_assert_str_eq(batchqr_error_message(NULL), "handle is NULL");
  ck_assert_str_eq(batchqr_describe(NULL), "");
  ck_assert_str_eq(batchqr_plan_describe(NULL), "");
  ck_assert_uint_eq(batchqr_plan_workspace(NULL), 0);
  ck_assert_int_eq(batchqr_plan_launches(NULL), 0);

  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  expect(batch_geqrf(handle, NULL, pool, pool, NULL), invalid, "batch is NULL");
  expect(batch_ormqr(handle, NULL, BATCHQR_LEFT, BATCHQR_TRANS, pool, pool, pool, NULL), invalid,
         "batch is NULL");
  expect(batchqr_plan_create(handle, BATCHQR_GEQRF, NULL, &plan), invalid, "batch is NULL");
  expect(batchqr_plan_create(handle, BATCHQR_GEQRF, &small, NULL), invalid, "plan is NULL");
  expect(batchqr_plan_create(handle, (batchqr_op)6, &small, &plan), invalid, "op = 6 is not a batchqr_op");
  expect(batchqr_plan_create(handle, (batchqr_op)-1, &small, &plan), invalid, "op = -1 is not a batchqr_op");
}
END_TEST

START_TEST(options_are_checked) {
  batchqr_handle_t h = (batchqr_handle_t)pool;
  ck_assert_int_eq(batchqr_create(&h, &(batchqr_options){.backend = (batchqr_backend)3}),
                   BATCHQR_INVALID_ARGUMENT);
  ck_assert_ptr_null(h);
  ck_assert_int_eq(batchqr_create(&h, &(batchqr_options){.threads = -1}), BATCHQR_INVALID_ARGUMENT);
  ck_assert_int_eq(batchqr_create(&h, &(batchqr_options){.backend = BATCHQR_BACKEND_CPU, .threads = 3}),
                   BATCHQR_SUCCESS);
  ck_assert_str_eq(batchqr_describe(h), "CPU, 3 threads; no tuning table: by heuristic");
  ck_assert_int_eq(bqr_handle_device(h)->threads, 3);
  batchqr_destroy(h);
}
END_TEST

START_TEST(auto_takes_what_is_there) {
  const char *why;
  bool cuda = memory_cuda_usable(&why);
  batchqr_handle_t h;
  ck_assert_int_eq(batchqr_create(&h, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batchqr_get_backend(h), cuda ? BATCHQR_BACKEND_CUDA : BATCHQR_BACKEND_CPU);
  ck_assert_msg(cuda || strstr(batchqr_describe(h), "(no CUDA: "), "%s", batchqr_describe(h));
  batchqr_destroy(h);
  batchqr_status status = batchqr_create(&h, &(batchqr_options){.backend = BATCHQR_BACKEND_CUDA});
  ck_assert_int_eq(status, cuda ? BATCHQR_SUCCESS : BATCHQR_UNSUPPORTED);
  ck_assert(cuda == (h != NULL));
  batchqr_destroy(h);
}
END_TEST

START_TEST(settings_are_checked) {
  char expected[128];
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  ck_assert_str_eq(batchqr_error_message(handle), "");
  ck_assert_int_eq(batchqr_get_backend(handle), backend);
  expect(batchqr_set_compute(handle, (batchqr_compute)4), invalid, "compute = 4 is not a batchqr_compute");
  expect(batchqr_set_workspace(handle, NULL, 5), invalid, "workspace is NULL, but bytes = 5");
  snprintf(expected, sizeof expected, "workspace = %p is not aligned to 256 bytes", (void *)(pool + 16));
  expect(batchqr_set_workspace(handle, pool + 16, 1024), invalid, expected);
  /* The text stays until the next failure. */
  expect_success(batchqr_set_workspace(handle, pool, 1024));
  ck_assert_str_eq(batchqr_error_message(handle), expected);
}
END_TEST

START_TEST(statuses_have_names) {
  static const char *const names[] = {"BATCHQR_SUCCESS",       "BATCHQR_INVALID_ARGUMENT",
                                      "BATCHQR_UNSUPPORTED",   "BATCHQR_WORKSPACE_TOO_SMALL",
                                      "BATCHQR_OUT_OF_MEMORY", "BATCHQR_CUDA_ERROR",
                                      "BATCHQR_TUNING_ERROR",  "BATCHQR_CAPTURE_ERROR"};
  for (int i = 0; i < 8; i++) ck_assert_str_eq(batchqr_status_string((batchqr_status)i), names[i]);
  ck_assert_ptr_nonnull(batchqr_status_string((batchqr_status)99));
  ck_assert_int_eq(batchqr_version(), BATCHQR_VERSION);
}
END_TEST

START_TEST(families_can_be_forced) {
  const batchqr_family *family = NULL;
  for (int i = 0; i < bqr_num_families() && !family; i++)
    if (bqr_family_at(i)->op == BATCHQR_GEQRF && bqr_family_at(i)->backend == backend)
      family = bqr_family_at(i);
  ck_assert_ptr_nonnull(family);
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  expect(bqr_force(handle, BATCHQR_GEQRF, "geqrf_none", NULL), invalid,
         "there is no family geqrf_none for geqrf");
  expect(bqr_force(handle, BATCHQR_ORGQR, family->name, NULL), invalid, NULL);
  expect(bqr_force(handle, BATCHQR_GEQRF, family->name, "none"), invalid, NULL);
  expect(bqr_force(handle, BATCHQR_NUM_OPS, NULL, NULL), invalid, "op = 10 is not an operation");
  expect_success(batch_geqrf(handle, &small, pool, pool + 4096, NULL));
  expect_success(bqr_force(handle, BATCHQR_GEQRF, family->name, NULL));
  ck_assert_ptr_null(handle->cache[0].plan);
  batchqr_plan_t plan;
  expect_success(batchqr_plan_create(handle, BATCHQR_GEQRF, &small, &plan));
  ck_assert_str_eq(bqr_plan_step(plan, 0).source, "forced");
  batchqr_plan_destroy(plan);
  expect_success(bqr_force(handle, BATCHQR_GEQRF, NULL, NULL));
  expect_success(batchqr_plan_create(handle, BATCHQR_GEQRF, &small, &plan));
  ck_assert_str_ne(bqr_plan_step(plan, 0).source, "forced");
  batchqr_plan_destroy(plan);
}
END_TEST

/* --- the plan cache */

static int cached_plans(void) {
  int n = 0;
  for (int i = 0; i < BQR_CACHED_PLANS; i++) n += handle->cache[i].plan != NULL;
  return n;
}

static batchqr_plan_t plan_after(batchqr_status status) {
  expect_success(status);
  return handle->latest->plan;
}

START_TEST(plans_are_kept) {
  void *a = pool, *tau = pool + 4096;
  batchqr_batch batch = small;
  batchqr_plan_t first = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  batch.k = 99; /* of no meaning */
  batch.c.ld = 77;
  batch.side = BATCHQR_RIGHT;
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &batch, a, tau, (int *)tau)), first);
  ck_assert_int_eq(cached_plans(), 1);

  /* What matters makes another plan. */
  batchqr_batch others[12];
  for (int i = 0; i < 12; i++) others[i] = small;
  others[0].type = BATCHQR_S;
  others[1].count = 1;
  others[2].m = 3;
  others[3].n = 2;
  others[4].a.ld = 5, others[4].a.stride = 100;
  others[5].a.stride = 100;
  others[6].stride_tau = 4;
  for (int i = 0; i < 7; i++) {
    ck_assert_ptr_ne(plan_after(batch_geqrf(handle, &others[i], a, tau, NULL)), first);
    ck_assert_int_eq(cached_plans(), 2 + i);
  }
  plan_after(batch_orgqr(handle, &small, a, tau, NULL));
  plan_after(batch_ormqr(handle, &small, BATCHQR_LEFT, BATCHQR_TRANS, a, tau, pool + 8192, NULL));
  plan_after(batch_ormqr(handle, &small, BATCHQR_LEFT, BATCHQR_NO_TRANS, a, tau, pool + 8192, NULL));
  ck_assert_int_eq(cached_plans(), 11);
  expect_success(batchqr_set_compute(handle, BATCHQR_COMPUTE_NATIVE));
  plan_after(batch_geqrf(handle, &small, a, tau, NULL));
  ck_assert_int_eq(cached_plans(), 12);
  expect_success(batchqr_set_compute(handle, BATCHQR_COMPUTE_AUTO));
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &small, a, tau, NULL)), first);
}
END_TEST

START_TEST(the_plan_that_was_unused_longest_goes) {
  void *a = pool, *tau = pool + 4096;
  batchqr_batch batch = small;
  batchqr_plan_t plans[BQR_CACHED_PLANS];
  for (int i = 0; i < BQR_CACHED_PLANS; i++) {
    batch.stride_tau = 3 + i;
    plans[i] = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  }
  ck_assert_int_eq(cached_plans(), BQR_CACHED_PLANS);
  batch.stride_tau = 3;
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plans[0]);
  batch.stride_tau = 50; /* takes the place of plan 1 */
  plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  for (int i = 0; i < BQR_CACHED_PLANS; i++) {
    bool kept = false;
    for (int j = 0; j < BQR_CACHED_PLANS; j++)
      kept = kept || handle->cache[j].plan->batch.stride_tau == 3 + i;
    ck_assert_int_eq(kept, i != 1);
  }
}
END_TEST

START_TEST(host_sizes_are_compared_by_contents) {
  int m[] = {4, 3}, n[] = {2, 3}, copy[] = {4, 3}, ld[] = {4, 4};
  batchqr_batch batch = small;
  batch.sizes = BATCHQR_HOST_SIZES;
  batch.m_array = m;
  batch.n_array = n;
  void *a = pool, *tau = pool + 4096;
  batchqr_plan_t plan = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  batch.m_array = copy;
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plan);
  copy[1] = 4;
  ck_assert_ptr_ne(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plan);
  copy[1] = 3;
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plan);
  batch.a.ld_array = ld;
  plan = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  ck_assert_int_eq(cached_plans(), 3);
  ld[0] = 5;
  ck_assert_ptr_ne(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plan);
  copy[1] = -3;
  expect(batch_geqrf(handle, &batch, a, tau, NULL), BATCHQR_INVALID_ARGUMENT,
         "batch.m_array[1] = -3 is negative");
  memory_sync(backend);
}
END_TEST

START_TEST(device_sizes_are_compared_by_address) {
  static const int sizes[] = {4, 3, 4, 3};
  memory_upload(backend, pool, sizes, sizeof sizes);
  batchqr_batch batch = small;
  batch.sizes = BATCHQR_DEVICE_SIZES;
  batch.m_array = (int *)pool;
  batch.n_array = (int *)pool + 1;
  batch.n = 4;
  batch.a.stride = 16;
  batch.stride_tau = 4;
  void *a = pool + 2048, *tau = pool + 4096;
  batchqr_plan_t plan = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plan);
  batch.m_array = (int *)pool + 2;
  ck_assert_ptr_ne(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plan);
  batch.a.ld_array = (int *)pool;
  plan = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  batch.a.ld = 77; /* not looked at then */
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plan);
  memory_sync(backend);
}
END_TEST

START_TEST(the_workspace_grows_or_is_lent) {
  void *a = pool, *q = pool + 16384, *r = pool + 32768;
  batchqr_batch batch = wide;
  ck_assert_ptr_null(handle->buffer);
  expect_success(batch_qr(handle, &batch, a, q, r, NULL));
  ck_assert_ptr_nonnull(handle->buffer);
  size_t bytes = handle->buffer->bytes;
  ck_assert_uint_eq(bytes, handle->latest->plan->workspace_bytes);
  batch.count = 15;
  expect_success(batch_qr(handle, &batch, a, q, r, NULL));
  ck_assert_uint_gt(handle->buffer->bytes, bytes);
  bytes = handle->buffer->bytes;
  batch.count = 2;
  expect_success(batch_qr(handle, &batch, a, q, r, NULL));
  ck_assert_uint_eq(handle->buffer->bytes, bytes);

  char expected[128];
  size_t needed = handle->latest->plan->workspace_bytes;
  void *lent = memory_alloc(backend, needed);
  expect_success(batchqr_set_workspace(handle, lent, needed - 1));
  snprintf(expected, sizeof expected, "workspace holds %zu bytes, %zu are needed", needed - 1, needed);
  expect(batch_qr(handle, &batch, a, q, r, NULL), BATCHQR_WORKSPACE_TOO_SMALL, expected);
  expect_success(batchqr_set_workspace(handle, lent, needed));
  expect_success(batch_qr(handle, &batch, a, q, r, NULL));
  expect_success(batchqr_set_workspace(handle, NULL, 0));
  expect_success(batch_qr(handle, &batch, a, q, r, NULL));
  memory_sync(backend);
  memory_free(backend, lent);
}
END_TEST

/* --- that operands arrive: problems of all types, of a size that QR is done in steps for */

enum { M = 70, N = 40, COUNT = 3, LDA = 71, STRIDE = 2860, STRIDE_TAU = 41 };

typedef struct operand_set {
  size_t bytes, tau_bytes;
  char *a, *q, *r, *tau;          /* in the backend's memory */
  char *a0, *ah, *qh, *rh, *tauh; /* on the host; a0 is A */
} operand_set;

static operand_set make_set_of(batchqr_type type, uint64_t seed) {
  operand_set s = {.bytes = COUNT * STRIDE * type_size(type),
                   .tau_bytes = COUNT * STRIDE_TAU * type_size(type)};
  s.a0 = calloc(1, s.bytes);
  s.ah = malloc(s.bytes);
  s.qh = malloc(s.bytes);
  s.rh = malloc(s.bytes);
  s.tauh = malloc(s.tau_bytes);
  for (int k = 0; k < COUNT; k++)
    matgen_fill(type, MATGEN_RANDOM, seed + (uint64_t)k, M, N, s.a0 + (size_t)k * STRIDE * type_size(type),
                LDA);
  s.a = memory_clone(backend, s.a0, s.bytes);
  s.q = memory_clone(backend, s.a0, s.bytes);
  s.r = memory_clone(backend, s.a0, s.bytes);
  s.tau = memory_alloc(backend, s.tau_bytes);
  memory_fill(backend, s.tau, 0, s.tau_bytes);
  return s;
}

static operand_set make_set(batchqr_type type) { return make_set_of(type, 0); }

static void download(operand_set *s) {
  memory_download(backend, s->ah, s->a, s->bytes);
  memory_download(backend, s->qh, s->q, s->bytes);
  memory_download(backend, s->rh, s->r, s->bytes);
  memory_download(backend, s->tauh, s->tau, s->tau_bytes);
}

static void free_set(operand_set *s) {
  char *const device[] = {s->a, s->q, s->r, s->tau}, *const host[] = {s->a0, s->ah, s->qh, s->rh, s->tauh};
  for (int i = 0; i < 4; i++) memory_free(backend, device[i]);
  for (int i = 0; i < 5; i++) free(host[i]);
}

static batchqr_batch batch_of(batchqr_type type) {
  return (batchqr_batch){.type = type,
                         .count = COUNT,
                         .m = M,
                         .n = N,
                         .k = N,
                         .a = {.ld = LDA, .stride = STRIDE},
                         .c = {.ld = LDA, .stride = STRIDE},
                         .r = {.ld = LDA, .stride = STRIDE},
                         .stride_tau = STRIDE_TAU};
}

START_TEST(typed_wrappers_are_geqrf) {
  batchqr_type type = (batchqr_type)_i;
  batchqr_batch batch = batch_of(type);
  operand_set plain = make_set(type), strided = make_set(type), pointers = make_set(type);
  int64_t a_offsets[COUNT], tau_offsets[COUNT];
  for (int k = 0; k < COUNT; k++) a_offsets[k] = k * STRIDE, tau_offsets[k] = k * STRIDE_TAU;
  void *a_array = memory_pointers(backend, pointers.a, type_size(type), a_offsets, COUNT);
  void *tau_array = memory_pointers(backend, pointers.tau, type_size(type), tau_offsets, COUNT);

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
    size_t at = (size_t)a_offsets[k] * type_size(type), tau_at = (size_t)tau_offsets[k] * type_size(type);
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
    size_t at = (size_t)k * STRIDE * type_size(type), column = LDA * type_size(type);
    double ratio = residual_qr(type, M, N, apart.a0 + at, LDA, apart.qh + at, LDA, apart.rh + at, LDA, 0);
    ck_assert_msg(ratio < RESIDUAL_BOUND, "member %d: ratio %g", k, ratio);
    for (int j = 0; j < N; j++) {
      size_t from = at + (size_t)j * column;
      ck_assert_mem_eq(apart.qh + from, placed.ah + from, M * type_size(type));
      ck_assert_mem_eq(apart.rh + from, placed.rh + from, N * type_size(type));
      ck_assert_mem_eq(apart.rh + from, alone.rh + from, N * type_size(type));
      ck_assert_mem_eq(apart.rh + from, both.ah + from, N * type_size(type));
      ck_assert_mem_eq(both.ah + from + N * type_size(type), zeros, (M - N) * type_size(type));
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
    size_t at = (size_t)k * STRIDE * type_size(type), tau_at = (size_t)k * STRIDE_TAU * type_size(type);
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

/* --- several handles at once */

enum { WORKERS = 4, TURNS = 20 };

/* A thread with a handle and a stream of its own, its own type and data. The plan is everyone's. */
typedef struct worker {
  pthread_t thread;
  batchqr_type type;
  batchqr_plan_t plan;
  batchqr_stream stream; /* NULL on the CPU */
  batchqr_handle_t handle;
  void *workspace;
  operand_set called[TURNS + 1], planned[TURNS + 1]; /* the last ones before the others began */
  batchqr_status status;                             /* of the first call that failed */
} worker;

static void take_turn(worker *w, int i) {
  const operand_set *s = &w->planned[i];
  batchqr_batch batch = batch_of(w->type);
  batchqr_operands operands = {.a = s->a, .c = s->q, .r = s->r};
  if (!w->status)
    w->status = batch_qr(w->handle, &batch, w->called[i].a, w->called[i].q, w->called[i].r, NULL);
  if (!w->status)
    w->status =
        batchqr_plan_execute(w->handle, w->plan, &operands, w->workspace, batchqr_plan_workspace(w->plan));
}

/* Without assertions: Check's way out of a test is not for threads. */
static void *work(void *context) {
  for (int i = 0; i < TURNS; i++) take_turn(context, i);
  return NULL;
}

static void hire(worker *w, int number, batchqr_plan_t plan) {
  *w = (worker){.type = (batchqr_type)number, .plan = plan, .handle = memory_handle(backend, NULL)};
  if (backend == BATCHQR_BACKEND_CUDA) w->stream = memory_stream_new();
  expect_success(batchqr_set_stream(w->handle, w->stream));
  w->workspace = memory_alloc(backend, batchqr_plan_workspace(plan));
  for (int i = 0; i <= TURNS; i++) {
    w->called[i] = make_set_of(w->type, 10 * (uint64_t)number);
    w->planned[i] = make_set_of(BATCHQR_D, 10 * (uint64_t)number);
  }
  take_turn(w, TURNS);
}

static void expect_alike(operand_set *s, const operand_set *alone) {
  download(s);
  ck_assert_mem_eq(s->qh, alone->qh, s->bytes);
  ck_assert_mem_eq(s->rh, alone->rh, s->bytes);
}

static void dismiss(worker *w) {
  expect_success(w->status);
  download(&w->called[TURNS]);
  download(&w->planned[TURNS]);
  for (int i = 0; i < TURNS; i++) {
    expect_alike(&w->called[i], &w->called[TURNS]);
    expect_alike(&w->planned[i], &w->planned[TURNS]);
  }
  for (int i = 0; i <= TURNS; i++) {
    free_set(&w->called[i]);
    free_set(&w->planned[i]);
  }
  batchqr_destroy(w->handle);
  memory_free(backend, w->workspace);
  if (w->stream) memory_stream_free(w->stream);
}

/* Handles in threads of their own, on streams of their own, give bitwise what each gives alone. */
START_TEST(handles_work_side_by_side) {
  static worker workers[WORKERS];
  batchqr_plan_t plan;
  batchqr_batch batch = batch_of(BATCHQR_D);
  expect_success(batchqr_plan_create(handle, BATCHQR_QR, &batch, &plan));
  for (int i = 0; i < WORKERS; i++) hire(&workers[i], i, plan);
  memory_sync(backend);
  for (int i = 0; i < WORKERS; i++)
    ck_assert_int_eq(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  for (int i = 0; i < WORKERS; i++) ck_assert_int_eq(pthread_join(workers[i].thread, NULL), 0);
  memory_sync(backend);
  for (int i = 0; i < WORKERS; i++) dismiss(&workers[i]);
  batchqr_plan_destroy(plan);
}
END_TEST

#if BATCHQR_HAVE_CUDA

/* --- CUDA: host addresses, capture, streams */

static void cuda(cudaError_t code) { ck_assert_msg(code == cudaSuccess, "%s", cudaGetErrorString(code)); }

START_TEST(host_addresses_are_refused) {
  int pageable;
  cuda(cudaDeviceGetAttribute(&pageable, cudaDevAttrPageableMemoryAccess, handle->device.ordinal));
  if (pageable) return;
  char expected[256], *host = aligned_alloc(256, 4096);
  snprintf(expected, sizeof expected, "tau = %p is host memory that %s cannot reach", (void *)host,
           handle->device.name);
  expect(batch_geqrf(handle, &small, pool, host, NULL), BATCHQR_INVALID_ARGUMENT, expected);
  snprintf(expected, sizeof expected, "info = %p is host memory that %s cannot reach", (void *)host,
           handle->device.name);
  expect(batch_geqrf(handle, &small, pool, pool + 4096, (int *)host), BATCHQR_INVALID_ARGUMENT, expected);
  snprintf(expected, sizeof expected, "workspace = %p is host memory that %s cannot reach", (void *)host,
           handle->device.name);
  expect(batchqr_set_workspace(handle, host, 4096), BATCHQR_INVALID_ARGUMENT, expected);
  batchqr_batch batch = small;
  batch.sizes = BATCHQR_DEVICE_SIZES;
  batch.m_array = batch.n_array = (int *)host;
  snprintf(expected, sizeof expected,
           "batch.m_array = %p is host memory, but batch.sizes is BATCHQR_DEVICE_SIZES", (void *)host);
  expect(batch_geqrf(handle, &batch, pool, pool + 4096, NULL), BATCHQR_INVALID_ARGUMENT, expected);
  batch.sizes = BATCHQR_HOST_SIZES;
  batch.m_array = (int *)pool;
  snprintf(expected, sizeof expected,
           "batch.m_array = %p is device memory, but batch.sizes is BATCHQR_HOST_SIZES", (void *)pool);
  expect(batch_geqrf(handle, &batch, pool, pool + 4096, NULL), BATCHQR_INVALID_ARGUMENT, expected);
  expect_success(batch_geqrf(handle, &small, pool, pool + 4096, NULL));
  free(host);
}
END_TEST

/* Replays `graph` on fresh data and compares with what an uncaptured call gave. */
static void expect_same_when_replayed(memory_graph *graph, batchqr_stream stream, operand_set *s) {
  download(s);
  char *q = malloc(s->bytes), *r = malloc(s->bytes);
  memcpy(q, s->qh, s->bytes);
  memcpy(r, s->rh, s->bytes);
  for (int run = 0; run < 2; run++) {
    memory_upload(backend, s->a, s->a0, s->bytes);
    memory_upload(backend, s->q, s->a0, s->bytes);
    memory_upload(backend, s->r, s->a0, s->bytes);
    memory_graph_launch(graph, stream);
    memory_sync(backend);
    download(s);
    ck_assert_mem_eq(s->qh, q, s->bytes);
    ck_assert_mem_eq(s->rh, r, s->bytes);
  }
  free(q);
  free(r);
}

static batchqr_status captured_qr(const batchqr_batch *batch, const operand_set *s, batchqr_stream stream,
                                  memory_graph **graph) {
  memory_capture_begin(stream);
  batchqr_status status = batch_qr(handle, batch, s->a, s->q, s->r, NULL);
  *graph = memory_capture_end(stream);
  return status;
}

/* First calls, and calls for which the workspace would have to grow, are refused and leave the capture whole.
 */
START_TEST(one_call_tier_is_captured) {
  static const int m[] = {70, 50, 36}, n[] = {40, 40, 35};
  batchqr_stream stream = memory_stream_new();
  memory_graph *graph;
  operand_set s = make_set(BATCHQR_D);
  batchqr_batch batch = batch_of(BATCHQR_D);
  if (_i == 1) {
    batch.sizes = BATCHQR_HOST_SIZES;
    batch.m_array = m;
    batch.n_array = n;
  }
  expect_success(batchqr_set_stream(handle, stream));
  expect(captured_qr(&batch, &s, stream, &graph), BATCHQR_CAPTURE_ERROR,
         "the first call for a problem allocates, and the handle's stream is being captured");
  memory_graph_free(graph);

  expect_success(batchqr_set_stream(handle, NULL)); /* another stream than the captured one */
  expect_success(batch_qr(handle, &batch, s.a, s.q, s.r, NULL));
  expect_success(batchqr_set_stream(handle, stream));
  expect_success(captured_qr(&batch, &s, stream, &graph));

  /* Everything that the graph uses outlives its time in the handle. */
  size_t bytes = handle->buffer->bytes;
  enum { MANY = 8000, PLACE = MANY * 120 * 8 };
  batchqr_batch large = wide;
  large.count = MANY;
  char *memory = memory_alloc(backend, 3 * PLACE);
  expect_success(batch_qr(handle, &large, memory, memory + PLACE, memory + 2 * PLACE, NULL));
  ck_assert_uint_gt(handle->buffer->bytes, bytes);
  ck_assert_ptr_nonnull(handle->retired_buffers);
  expect_success(bqr_force(handle, BATCHQR_GEQRF, NULL, NULL)); /* empties the cache */
  ck_assert_ptr_nonnull(handle->retired_plans);
  expect_same_when_replayed(graph, stream, &s);
  memory_graph_free(graph);
  memory_free(backend, memory);
  free_set(&s);
  expect_success(batchqr_set_stream(handle, NULL));
  memory_stream_free(stream);
}
END_TEST

START_TEST(workspace_does_not_grow_under_capture) {
  batchqr_stream stream = memory_stream_new();
  memory_graph *graph;
  operand_set s = make_set(BATCHQR_D);
  batchqr_batch batch = batch_of(BATCHQR_D);
  expect_success(batchqr_set_stream(handle, stream));
  expect_success(batchqr_set_workspace(handle, pool, POOL_BYTES));
  expect_success(batch_qr(handle, &batch, s.a, s.q, s.r, NULL));
  expect_success(batchqr_set_workspace(handle, NULL, 0));
  ck_assert_int_eq(captured_qr(&batch, &s, stream, &graph), BATCHQR_CAPTURE_ERROR);
  ck_assert_msg(strstr(batchqr_error_message(handle), "workspace would have to grow"), "%s",
                batchqr_error_message(handle));
  memory_graph_free(graph);
  free_set(&s);
  expect_success(batchqr_set_stream(handle, NULL));
  memory_stream_free(stream);
}
END_TEST

START_TEST(planned_tier_is_captured) {
  batchqr_stream stream = memory_stream_new();
  memory_graph *graph;
  operand_set s = make_set(BATCHQR_Z);
  batchqr_batch batch = batch_of(BATCHQR_Z);
  batchqr_plan_t plan, refused;
  expect_success(batchqr_plan_create(handle, BATCHQR_QR, &batch, &plan));
  size_t bytes = batchqr_plan_workspace(plan);
  void *space = memory_alloc(backend, bytes);
  batchqr_operands operands = {.a = s.a, .c = s.q, .r = s.r};
  expect_success(batchqr_plan_execute(handle, plan, &operands, space, bytes));
  expect_success(batchqr_set_stream(handle, stream));
  memory_capture_begin(stream);
  batchqr_status create = batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &refused);
  batchqr_status execute = batchqr_plan_execute(handle, plan, &operands, space, bytes);
  graph = memory_capture_end(stream);
  ck_assert_int_eq(create, BATCHQR_CAPTURE_ERROR);
  ck_assert_ptr_null(refused);
  expect_success(execute);
  expect_same_when_replayed(graph, stream, &s);
  memory_graph_free(graph);
  batchqr_plan_destroy(plan);
  memory_free(backend, space);
  free_set(&s);
  expect_success(batchqr_set_stream(handle, NULL));
  memory_stream_free(stream);
}
END_TEST

/* Calls on two streams by turns share the handle's workspace; none may see the other's tau. */
START_TEST(streams_take_turns) {
  enum { CALLS = 50 };
  batchqr_stream streams[] = {memory_stream_new(), memory_stream_new()};
  operand_set expected = make_set(BATCHQR_D), sets[CALLS];
  batchqr_batch batch = batch_of(BATCHQR_D);
  expect_success(batch_qr(handle, &batch, expected.a, expected.q, expected.r, NULL));
  download(&expected);
  for (int i = 0; i < CALLS; i++) sets[i] = make_set(BATCHQR_D);
  for (int i = 0; i < CALLS; i++) {
    expect_success(batchqr_set_stream(handle, streams[i % 2]));
    expect_success(batch_qr(handle, &batch, sets[i].a, sets[i].q, sets[i].r, NULL));
  }
  memory_sync(backend);
  for (int i = 0; i < CALLS; i++) {
    download(&sets[i]);
    ck_assert_mem_eq(sets[i].qh, expected.qh, expected.bytes);
    ck_assert_mem_eq(sets[i].rh, expected.rh, expected.bytes);
    free_set(&sets[i]);
  }
  free_set(&expected);
  for (int i = 0; i < 2; i++) memory_stream_free(streams[i]);
  expect_success(batchqr_set_stream(handle, NULL)); /* after work on a stream that is gone */
  expect_success(batch_qr(handle, &wide, pool, pool + 16384, pool + 32768, NULL));
}
END_TEST

START_TEST(no_error_is_left_behind) {
  expect(batch_geqrf(handle, &small, pool, NULL, NULL), BATCHQR_INVALID_ARGUMENT, "tau is NULL");
  batchqr_batch batch = wide;
  batch.count = (int64_t)1 << 45; /* more workspace than there is */
  ck_assert_int_eq(batch_qr(handle, &batch, pool, pool + 16384, pool + 32768, NULL), BATCHQR_OUT_OF_MEMORY);
  cuda(cudaPeekAtLastError());
  expect_success(batch_qr(handle, &wide, pool, pool + 16384, pool + 32768, NULL));
}
END_TEST

static void add_cuda_tests(Suite *suite) {
  TCase *tests = tcase_create("cuda");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, host_addresses_are_refused);
  tcase_add_loop_test(tests, one_call_tier_is_captured, 0, 2);
  tcase_add_test(tests, workspace_does_not_grow_under_capture);
  tcase_add_test(tests, planned_tier_is_captured);
  tcase_add_test(tests, streams_take_turns);
  tcase_add_test(tests, no_error_is_left_behind);
  suite_add_tcase(suite, tests);
}
#endif

int main(void) {
  backend = memory_backend();
  Suite *suite = suite_create("api");
  TCase *checks = tcase_create("checks");
  tcase_add_checked_fixture(checks, set_up, tear_down);
  int num_bad = sizeof bad_batches / sizeof bad_batches[0];
  tcase_add_loop_test(checks, wrong_batches_are_refused, 0, num_bad);
  tcase_add_loop_test(checks, wrong_batches_are_refused_in_one_call, 0, num_bad);
  tcase_add_loop_test(checks, odd_batches_are_planned, 0, sizeof odd_batches / sizeof odd_batches[0]);
  tcase_add_test(checks, device_sizes_are_checked_as_bounds);
  tcase_add_test(checks, operands_are_checked);
  tcase_add_test(checks, operands_of_the_planned_tier_are_checked);
  tcase_add_test(checks, nothing_to_touch_needs_no_addresses);
  tcase_add_test(checks, typed_wrappers_name_their_arguments);
  suite_add_tcase(suite, checks);

  TCase *handles = tcase_create("handles");
  tcase_add_checked_fixture(handles, set_up, tear_down);
  tcase_add_test(handles, null_handles_and_arguments_are_refused);
  tcase_add_test(handles, options_are_checked);
  tcase_add_test(handles, auto_takes_what_is_there);
  tcase_add_test(handles, settings_are_checked);
  tcase_add_test(handles, statuses_have_names);
  tcase_add_test(handles, families_can_be_forced);
  tcase_add_test(handles, plans_are_kept);
  tcase_add_test(handles, the_plan_that_was_unused_longest_goes);
  tcase_add_test(handles, host_sizes_are_compared_by_contents);
  tcase_add_test(handles, device_sizes_are_compared_by_address);
  tcase_add_test(handles, the_workspace_grows_or_is_lent);
  suite_add_tcase(suite, handles);

  TCase *routines = tcase_create("routines");
  tcase_add_checked_fixture(routines, set_up, tear_down);
  tcase_add_loop_test(routines, typed_wrappers_are_geqrf, 0, 4);
  tcase_add_loop_test(routines, qr_gets_its_operands, 0, 4);
  tcase_add_loop_test(routines, ormqr_and_orgqr_get_their_operands, 0, 4);
  tcase_add_test(routines, diagonals_can_be_positive);
  tcase_add_test(routines, handles_work_side_by_side);
  suite_add_tcase(suite, routines);

#if BATCHQR_HAVE_CUDA
  if (backend == BATCHQR_BACKEND_CUDA) add_cuda_tests(suite);
#endif
  SRunner *runner = srunner_create(suite);
  srunner_set_fork_status(runner, CK_NOFORK);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
