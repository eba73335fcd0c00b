/* SPDX-License-Identifier: BSD-3-Clause */
/* What a handle keeps between calls: plans and the workspace. */
#include "api.h"
#include "handle.h"
#include "plan.h"

#include <stdio.h>

static int cached_plans(void) { return handle->cache.count; }

static batchqr_plan_t plan_after(batchqr_status status) {
  expect_success(status);
  return handle->cache.newest->plan;
}

START_TEST(plans_are_kept) {
  void *a = pool, *tau = pool + 4096;
  batchqr_batch batch = small;
  batchqr_plan_t first = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  batch.k = 99; /* of no meaning */
  batch.c.ld = 77;
  batch.side = BATCHQR_RIGHT;
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &batch, a, tau, (int *)(pool + 8192))), first);
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
  others[6].tau.stride = 4;
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

START_TEST(whatever_an_operation_looks_at_makes_another_plan) {
  char *a = pool, *c = pool + POOL_PLACE, *r = pool + 2 * POOL_PLACE, *norms = pool + 3 * POOL_PLACE;
  plan_after(batch_qr(handle, &small, a, c, r, NULL));
  batchqr_batch others[4] = {small, small, small, small};
  others[0].c.ld = 5, others[0].c.stride = 15;
  others[1].c.stride = 13;
  others[2].r.ld = 3;
  others[3].r.stride = 13;
  for (int i = 0; i < 4; i++) {
    plan_after(batch_qr(handle, &others[i], a, c, r, NULL));
    ck_assert_int_eq(cached_plans(), 2 + i);
  }
  plan_after(batch_ormqr(handle, &small, BATCHQR_LEFT, BATCHQR_TRANS, a, norms, c, NULL));
  plan_after(batch_ormqr(handle, &small, BATCHQR_RIGHT, BATCHQR_TRANS, a, norms, c, NULL));
  ck_assert_int_eq(cached_plans(), 7);
  others[0] = others[1] = others[2] = small;
  others[1].k = 2;
  others[2].norms.stride = 4;
  for (int i = 0; i < 3; i++) {
    plan_after(batch_gels(handle, &others[i], BATCHQR_NO_TRANS, a, c, i == 2 ? norms : NULL, NULL));
    ck_assert_int_eq(cached_plans(), 8 + i);
  }
  plan_after(batch_gels(handle, &small, BATCHQR_TRANS, a, c, NULL, NULL));
  ck_assert_int_eq(cached_plans(), 11);
  memory_sync(backend);
}
END_TEST

static bool is_kept(int64_t stride) {
  for (const bqr_cached *c = handle->cache.newest; c; c = c->older)
    if (c->plan->batch.tau.stride == stride) return true;
  return false;
}

/* That the lists by hash and by use hold the same plans. */
static void expect_sound_cache(void) {
  const bqr_cache *cache = &handle->cache;
  int hashed = 0, used = 0;
  for (int i = 0; i < BQR_BUCKETS; i++)
    for (const bqr_cached *c = cache->buckets[i]; c; c = c->same_hash)
      hashed += c->hash % BQR_BUCKETS == (uint64_t)i;
  for (const bqr_cached *c = cache->newest; c; c = c->older) used += !c->older || c->older->newer == c;
  ck_assert(hashed == cache->count && used == cache->count);
}

START_TEST(the_plan_that_was_unused_longest_goes) {
  enum { KEPT = 40 };
  void *a = pool, *tau = pool + 4096;
  batchqr_batch batch = small;
  batchqr_plan_t plans[KEPT];
  handle->most_plans = KEPT;
  for (int i = 0; i < KEPT; i++) {
    batch.tau.stride = 3 + i;
    plans[i] = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  }
  ck_assert_int_eq(cached_plans(), KEPT);
  batch.tau.stride = 3;
  ck_assert_ptr_eq(plan_after(batch_geqrf(handle, &batch, a, tau, NULL)), plans[0]);
  batch.tau.stride = 50; /* takes the place of plan 1 */
  plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
  expect_sound_cache();
  for (int i = 0; i < KEPT; i++) ck_assert_int_eq(is_kept(3 + i), i != 1);
}
END_TEST

START_TEST(hundreds_of_plans_are_kept) {
  void *a = pool, *tau = pool + 4096;
  batchqr_batch batch = small;
  batchqr_plan_t plans[BQR_PLANS_KEPT];
  for (int round = 0; round < 2; round++)
    for (int i = 0; i < BQR_PLANS_KEPT; i++) {
      batch.tau.stride = 3 + i;
      batchqr_plan_t plan = plan_after(batch_geqrf(handle, &batch, a, tau, NULL));
      if (round == 0) plans[i] = plan;
      ck_assert_ptr_eq(plan, plans[i]);
    }
  expect_sound_cache();
}
END_TEST

START_TEST(the_number_of_plans_is_an_option) {
  void *a = pool, *tau = pool + 4096;
  batchqr_handle_t few;
  expect_success(batchqr_create(&few, &(batchqr_options){.backend = backend, .plans = 2}));
  batchqr_batch batch = small;
  for (int i = 0; i < 5; i++) {
    batch.tau.stride = 3 + i;
    ck_assert_int_eq(batch_geqrf(few, &batch, a, tau, NULL), BATCHQR_SUCCESS);
    ck_assert_int_eq(few->cache.count, i < 2 ? i + 1 : 2);
  }
  batchqr_destroy(few);
  ck_assert_int_eq(batchqr_create(&few, &(batchqr_options){.backend = backend, .plans = -1}),
                   BATCHQR_INVALID_ARGUMENT);
}
END_TEST

/* The size is the plan's, and the plan is the one that calls find. */
START_TEST(workspace_sizes_come_from_the_cache) {
  void *a = pool, *q = pool + POOL_PLACE, *r = pool + 2 * POOL_PLACE;
  size_t bytes = 0;
  expect_success(batchqr_workspace_size(handle, BATCHQR_QR, &tall, &bytes));
  ck_assert_uint_gt(bytes, 0);
  ck_assert_uint_eq(bytes, handle->cache.newest->plan->workspace_bytes);
  ck_assert_ptr_null(handle->buffer);
  batchqr_plan_t plan = handle->cache.newest->plan;
  ck_assert_ptr_eq(plan_after(batch_qr(handle, &tall, a, q, r, NULL)), plan);
  ck_assert_int_eq(cached_plans(), 1);
  expect(batchqr_workspace_size(handle, BATCHQR_QR, &tall, NULL), BATCHQR_INVALID_ARGUMENT, "bytes is NULL");
  expect(batchqr_workspace_size(handle, BATCHQR_QR, NULL, &bytes), BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  expect(batchqr_workspace_size(handle, (batchqr_op)99, &tall, &bytes), BATCHQR_INVALID_ARGUMENT,
         "op = 99 is not a batchqr_op");
  ck_assert_uint_eq(bytes, 0);
  memory_sync(backend);
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
  batch.tau.stride = 4;
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
  void *a = pool, *q = pool + POOL_PLACE, *r = pool + 2 * POOL_PLACE;
  batchqr_batch batch = tall;
  ck_assert_ptr_null(handle->buffer);
  expect_success(batch_qr(handle, &batch, a, q, r, NULL));
  ck_assert_ptr_nonnull(handle->buffer);
  size_t bytes = handle->buffer->bytes;
  ck_assert_uint_eq(bytes, handle->cache.newest->plan->workspace_bytes);
  batch.count = 15;
  expect_success(batch_qr(handle, &batch, a, q, r, NULL));
  ck_assert_uint_gt(handle->buffer->bytes, bytes);
  bytes = handle->buffer->bytes;
  batch.count = 2;
  expect_success(batch_qr(handle, &batch, a, q, r, NULL));
  ck_assert_uint_eq(handle->buffer->bytes, bytes);

  char expected[128];
  size_t needed = handle->cache.newest->plan->workspace_bytes;
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

int main(void) {
  Suite *suite = api_suite("api_cache");
  TCase *cache = api_case(suite, "cache");
  tcase_add_test(cache, plans_are_kept);
  tcase_add_test(cache, whatever_an_operation_looks_at_makes_another_plan);
  tcase_add_test(cache, the_plan_that_was_unused_longest_goes);
  tcase_add_test(cache, hundreds_of_plans_are_kept);
  tcase_add_test(cache, the_number_of_plans_is_an_option);
  tcase_add_test(cache, workspace_sizes_come_from_the_cache);
  tcase_add_test(cache, host_sizes_are_compared_by_contents);
  tcase_add_test(cache, device_sizes_are_compared_by_address);
  tcase_add_test(cache, the_workspace_grows_or_is_lent);
  return suite_run(suite);
}
