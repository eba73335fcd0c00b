/* SPDX-License-Identifier: BSD-3-Clause */
/* Operands that the API refuses, and what it says then. */
#include "api.h"
#include "handle.h"
#include "plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that any call that is not refused would change. */
static void fill_pool(void) {
  char *bytes = malloc(POOL_BYTES);
  ck_assert_ptr_nonnull(bytes);
  memset(bytes, 0x3f, POOL_BYTES);
  memory_upload(backend, pool, bytes, POOL_BYTES);
  free(bytes);
}

static void expect_pool_untouched(void) {
  char *bytes = malloc(POOL_BYTES);
  ck_assert_ptr_nonnull(bytes);
  memory_sync(backend);
  memory_download(backend, bytes, pool, POOL_BYTES);
  for (int i = 0; i < POOL_BYTES; i++) ck_assert_msg(bytes[i] == 0x3f, "byte %d was written", i);
  free(bytes);
}

START_TEST(operands_are_checked) {
  fill_pool();
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
  expect(batch_gels(handle, &small, BATCHQR_TRANS, NULL, c, b, NULL), invalid, "a is NULL");
  expect(batch_gels(handle, &small, BATCHQR_TRANS, a, NULL, b, NULL), invalid, "c is NULL");
  expect(batch_gels(handle, &small, BATCHQR_TRANS, a, c, b, NULL), invalid,
         "batch.norms.stride = 0: members of up to 3 elements overlap");
  expect(batch_gels(handle, &small, (batchqr_trans)3, a, c, b, NULL), invalid,
         "trans = 3 is not a batchqr_trans");

  char expected[128];
  snprintf(expected, sizeof expected, "a = %p is not aligned to 8 bytes", (void *)(a + 4));
  expect(batch_geqrf(handle, &small, a + 4, b, NULL), invalid, expected);
  snprintf(expected, sizeof expected, "info = %p is not aligned to 4 bytes", (void *)(c + 2));
  expect(batch_geqrf(handle, &small, a, b, (int *)(c + 2)), invalid, expected);
  batchqr_batch other = small;
  other.type = BATCHQR_Z;
  size_t align = backend == BATCHQR_BACKEND_CPU ? 8 : 16;
  snprintf(expected, sizeof expected, "tau = %p is not aligned to %zu bytes", (void *)(b + align / 2), align);
  expect(batch_geqrf(handle, &other, a, b + align / 2, NULL), invalid, expected);
  set_layouts(&other, BATCHQR_POINTERS);
  snprintf(expected, sizeof expected, "a = %p is not aligned to 8 bytes", (void *)(a + 4));
  expect(batch_geqrf(handle, &other, a + 4, b, NULL), invalid, expected);
  other = small;
  other.norms.stride = 3;
  snprintf(expected, sizeof expected, "norms = %p is not aligned to 8 bytes", (void *)(b + 4));
  expect(batch_gels(handle, &other, BATCHQR_TRANS, a, c, b + 4, NULL), invalid, expected);
  other.norms.stride = INT64_MAX / 4;
  expect(batch_gels(handle, &other, BATCHQR_TRANS, a, c, b, NULL), invalid,
         "batch.norms.stride = 2305843009213693951: 2 members are beyond all addresses");
  expect_pool_untouched();
}
END_TEST

START_TEST(operands_that_are_one_another_are_refused) {
  fill_pool();
  char *a = pool, *b = pool + 4096, *c = pool + 8192;
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  batchqr_batch normed = small;
  normed.norms.stride = 3;
  expect(batch_geqrf(handle, &small, a, a, NULL), invalid, "tau is the same address as a");
  expect(batch_geqrf(handle, &small, a, b, (int *)a), invalid, "info is the same address as a");
  expect(batch_geqrf(handle, &small, a, b, (int *)b), invalid, "info is the same address as tau");
  expect(batch_orgqr(handle, &small, a, a, NULL), invalid, "tau is the same address as a");
  expect(batch_ormqr(handle, &small, BATCHQR_LEFT, BATCHQR_TRANS, a, b, a, NULL), invalid,
         "c is the same address as a");
  expect(batch_qr(handle, &small, a, b, a, NULL), invalid, "r is the same address as a");
  expect(batch_qr(handle, &small, a, b, b, NULL), invalid, "r is the same address as q");
  expect(batch_qr(handle, &small, a, a, a, NULL), invalid, "r is the same address as q");
  expect(batch_ormqr(handle, &small, BATCHQR_LEFT, BATCHQR_TRANS, a, b, b, NULL), invalid,
         "tau is the same address as c");
  expect(batch_qr(handle, &small, a, b, c, (int *)c), invalid, "info is the same address as r");
  expect(batch_gels(handle, &small, BATCHQR_TRANS, a, a, b, NULL), invalid, "c is the same address as a");
  expect(batch_gels(handle, &normed, BATCHQR_TRANS, a, b, b, NULL), invalid,
         "norms is the same address as c");
  expect(batch_gels(handle, &normed, BATCHQR_TRANS, a, b, c, (int *)c), invalid,
         "info is the same address as norms");
  expect(batch_r_range(handle, &small, a, a, NULL), invalid, "range is the same address as a");
  expect(batch_r_range(handle, &small, a, NULL, NULL), invalid, "range is NULL");
  batchqr_batch spectrum = batchqr_batch_packed(BATCHQR_SYEVD, BATCHQR_D, 3, 3, 0, 2);
  expect(batch_syevr(handle, &spectrum, a, b, NULL, c, NULL), invalid,
         "found is not NULL, but the batch chooses no eigenvalues by il and iu or by vl and vu");
  spectrum.il = 1, spectrum.iu = 2;
  expect(batch_syevr(handle, &spectrum, a, b, NULL, b, NULL), invalid, "found is the same address as w");
  batchqr_batch other = small;
  other.c.ld = 5;
  other.c.stride = 15;
  expect(batch_qr(handle, &other, a, a, c, NULL), invalid,
         "q is a, but batch.c is not the storage of batch.a");
  other.r.stride = 13;
  expect(batch_geqr_r(handle, &other, a, a, NULL), invalid,
         "r is a, but batch.r is not the storage of batch.a");
  other = small;
  other.s.stride = 3;
  other.jpvt.stride = other.rank.stride = 1;
  expect(batch_geqp3(handle, &small, a, b, NULL, NULL, a, NULL), invalid, "c is the same address as a");
  expect(batch_geqp3(handle, &other, a, b, c, NULL, NULL, NULL), invalid,
         "batch.jpvt.stride = 1: members of up to 3 elements overlap");
  expect(batch_geqp3(handle, &other, a, b, NULL, b, NULL, NULL), invalid, "rank is the same address as tau");
  expect(batch_gesvd(handle, &other, a, b, c, NULL, NULL, NULL), invalid,
         "u is not NULL, but batch.u.ld is 0");
  other.u = other.v = other.a;
  expect(batch_gesvd(handle, &other, a, NULL, NULL, NULL, NULL, NULL), invalid, "s is NULL");
  expect(batch_gesvd(handle, &other, a, b, a, a, NULL, NULL), invalid, "v is the same address as u");
  other.u.ld = 5;
  other.u.stride = 15;
  expect(batch_gesvd(handle, &other, a, b, a, NULL, NULL, NULL), invalid,
         "u is a, but batch.u is not the storage of batch.a");
  other.m = 3;
  expect(batch_syevd(handle, &other, a, NULL, NULL, NULL), invalid, "w is NULL");
  expect_pool_untouched();
}
END_TEST

START_TEST(operands_of_the_planned_tier_are_checked) {
  batchqr_plan_t plan;
  batchqr_operands operands = {.a = pool, .c = pool + POOL_PLACE, .r = NULL};
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  expect_success(batchqr_plan_create(handle, BATCHQR_QR, &tall, &plan));
  size_t needed = batchqr_plan_workspace(plan);
  ck_assert_uint_ge(needed, 48);
  char *space = memory_alloc(backend, needed + 8), expected[512];
  expect(batchqr_plan_execute(handle, plan, &operands, space, needed), invalid, "operands.r is NULL");
  expect(batchqr_plan_execute(handle, plan, NULL, space, needed), invalid, "operands is NULL");
  expect(batchqr_plan_execute(handle, NULL, &operands, space, needed), invalid, "plan is NULL");
  operands.r = operands.c;
  expect(batchqr_plan_execute(handle, plan, &operands, space, needed), invalid,
         "operands.r is the same address as operands.c");
  operands.r = pool + 2 * POOL_PLACE;
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

/* GEQRF's batch, whose k is 0, would make Q the identity. */
START_TEST(forgotten_reflectors_are_refused) {
  fill_pool();
  char *a = pool, *tau = pool + 4096, *c = pool + 8192;
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  batchqr_batch batch = small, lone = small;
  batch.k = 0;
  lone.k = 0, lone.count = 0;
  const char *text = "batch.k = 0 counts no reflectors, but tau is not NULL",
             *text_a = "batch.k = 0 counts no reflectors, but a is not NULL";
  expect(batch_orgqr(handle, &batch, a, tau, NULL), invalid, text);
  expect(batch_ormqr(handle, &batch, BATCHQR_LEFT, BATCHQR_NO_TRANS, a, tau, c, NULL), invalid, text_a);
  expect(batch_ormqr(handle, &batch, BATCHQR_RIGHT, BATCHQR_NO_TRANS, NULL, tau, c, NULL), invalid, text);
  expect_pool_untouched();
  expect_success(batch_orgqr(handle, &lone, a, tau, NULL));
  expect_success(batch_ormqr(handle, &batch, BATCHQR_LEFT, BATCHQR_NO_TRANS, NULL, NULL, c, NULL));
  expect_success(batch_dorgqr_strided(handle, 4, 3, 0, (double *)a, 4, 12, (double *)tau, 0, 2));
  expect_success(batch_orgqr(handle, &batch, a, NULL, NULL));
}
END_TEST

START_TEST(nothing_to_touch_needs_no_addresses) {
  batchqr_batch batch = small;
  batch.count = 0;
  for (int layout = 0; layout < 2; layout++) {
    set_layouts(&batch, (batchqr_layout)layout);
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
    set_layouts(&batch, (batchqr_layout)layout);
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
         "stride_a = 11: members of 4 x 3 with ld 4 overlap; 12 would do");
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
         "stride_c = 7: members of 4 x 2 with ld 4 overlap; 8 would do");
  expect(batch_dgels(handle, BATCHQR_NO_TRANS, 4, 3, 1, NULL, 4, arrays, 4, NULL, 2), invalid,
         "a_array is NULL");
  expect(batch_dgels(handle, BATCHQR_NO_TRANS, 4, 3, 1, arrays, 4, NULL, 4, NULL, 2), invalid,
         "c_array is NULL");
}
END_TEST

int main(void) {
  Suite *suite = api_suite("api_operands");
  TCase *operands = api_case(suite, "operands");
  tcase_add_test(operands, operands_are_checked);
  tcase_add_test(operands, operands_that_are_one_another_are_refused);
  tcase_add_test(operands, operands_of_the_planned_tier_are_checked);
  tcase_add_test(operands, forgotten_reflectors_are_refused);
  tcase_add_test(operands, nothing_to_touch_needs_no_addresses);
  tcase_add_test(operands, typed_wrappers_name_their_arguments);
  return suite_run(suite);
}
