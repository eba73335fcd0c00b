/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_r_range(): layouts, kinds of sizes, what is on a diagonal, arguments. */
#include "suite.h"
#include "trial.h"

#include <string.h>

/* Diagonals of every kind of matrix, a NaN or an Inf on some. */
START_TEST(all_ways) {
  static const int sizes[][2] = {{1, 1}, {0, 3},   {3, 0},   {4, 4},    {8, 7},  {7, 9},
                                 {9, 9}, {32, 32}, {33, 40}, {100, 70}, {300, 2}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 12; way++)
    for (int s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++) {
      trial t = trial_new(BATCHQR_R_RANGE, (batchqr_type)_i, MATGEN_NUM_KINDS);
      trial_fill_kinds(&t, sizes[s][0], sizes[s][1], 0);
      t.layout = (batchqr_layout)(way % 2);
      t.own_layouts = way == 5;
      t.sizes = (batchqr_sizes)(way / 2 % 3);
      t.ld_vary = way >= 6;
      for (int64_t i = 0; i < t.count; i++) {
        trial_member *x = &t.members[i];
        if (i % 4 == 1) x->spoil = (trial_spoil)(1 + i / 4 % 3);
        if (t.sizes == BATCHQR_UNIFORM || i == 0) continue;
        x->m = rng_int((uint64_t)i, 0, 0, x->m);
        x->n = rng_int((uint64_t)i, 1, 0, x->n);
      }
      trial_once(&t, handle, s % 2 ? TRIAL_CALL : suite_on_gpu() && s % 4 ? TRIAL_GRAPH : TRIAL_PLAN);
    }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(spoiled) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int n = 1; n < 40; n += 6) {
    trial t = trial_new(BATCHQR_R_RANGE, (batchqr_type)_i, 37);
    trial_fill(&t, n + 2, n, 0, (uint64_t)n);
    trial_spoil_some(&t, handle, TRIAL_PLAN);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(many_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  trial t = trial_new(BATCHQR_R_RANGE, (batchqr_type)_i, 70001);
  trial_fill(&t, 5, 3, 0, 1);
  trial_once(&t, handle, TRIAL_CALL);
  batchqr_destroy(handle);
}
END_TEST

/* Sizes on the device that do not fit: the member is left alone. */
START_TEST(wrong_sizes) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  trial t = trial_new(BATCHQR_R_RANGE, (batchqr_type)_i, 20);
  trial_fill(&t, 4, 3, 0, 1);
  t.sizes = BATCHQR_DEVICE_SIZES;
  t.ld_vary = true;
  trial_claim_wrongly(&t);
  trial_once(&t, handle, TRIAL_CALL);
  batchqr_destroy(handle);
}
END_TEST

/* What batch_geqrf() leaves, on the handle's stream: the largest and the smallest |R(j,j)| of diag(2, 1, 3).
 */
START_TEST(of_a_factorization) {
  const batchqr_type type = (batchqr_type)_i;
  const batchqr_backend backend = memory_backend();
  batchqr_handle_t handle = memory_handle(backend, NULL);
  const size_t size = bqr_type_bytes(type), real = bqr_real_bytes(type);
  char host[9 * 16] = {0};
  union {
    float s[2];
    double d[2];
  } got;
  for (int j = 0; j < 3; j++) {
    const double value = (const double[]){2, 1, 3}[j];
    if (type_is_double(type))
      memcpy(host + (size_t)(4 * j) * size, &value, real);
    else
      memcpy(host + (size_t)(4 * j) * size, &(float){(float)value}, real);
  }
  char *a = memory_clone(backend, host, 9 * size), *tau = memory_alloc(backend, 3 * size),
       *range = memory_alloc(backend, 2 * real);
  const batchqr_batch batch = {.type = type, .count = 1, .m = 3, .n = 3, .a = {.ld = 3}};
  ck_assert_int_eq(batch_geqrf(handle, &batch, a, tau, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_r_range(handle, &batch, a, range, NULL), BATCHQR_SUCCESS);
  memory_download(backend, &got, range, 2 * real);
  ck_assert_double_eq_tol(type_is_double(type) ? got.d[0] : got.s[0], 1, 1e-6);
  ck_assert_double_eq_tol(type_is_double(type) ? got.d[1] : got.s[1], 3, 1e-6);
  memory_free(backend, a);
  memory_free(backend, tau);
  memory_free(backend, range);
  batchqr_destroy(handle);
}
END_TEST

/* --- arguments */

static void expect(batchqr_handle_t handle, batchqr_status got, const char *text) {
  ck_assert_int_eq(got, BATCHQR_INVALID_ARGUMENT);
  ck_assert_str_eq(batchqr_error_message(handle), text);
}

START_TEST(arguments) {
  batchqr_backend backend = memory_backend();
  batchqr_handle_t handle = memory_handle(backend, NULL);
  char *a = memory_alloc(backend, 4096), *range = a + 2048, text[100];
  memory_fill(backend, a, 0, 4096);
  batchqr_batch batch = {.type = (batchqr_type)_i,
                         .count = 2,
                         .m = 4,
                         .n = 3,
                         .a = {.ld = 4, .stride = 12},
                         .range = {.stride = 2}};
  ck_assert_int_eq(batch_r_range(NULL, &batch, a, range, NULL), BATCHQR_INVALID_ARGUMENT);
  expect(handle, batch_r_range(handle, NULL, a, range, NULL), "batch is NULL");
  expect(handle, batch_r_range(handle, &batch, NULL, range, NULL), "a is NULL");
  expect(handle, batch_r_range(handle, &batch, a, NULL, NULL), "range is NULL");
  snprintf(text, sizeof text, "range = %p is not aligned to %zu bytes", (void *)(range + 2),
           bqr_real_bytes(batch.type));
  expect(handle, batch_r_range(handle, &batch, a, range + 2, NULL), text);
  batch.a.ld = 3;
  expect(handle, batch_r_range(handle, &batch, a, range, NULL),
         "batch.a.ld = 3 is smaller than max(1, m) = 4");
  batch.a = (batchqr_storage){.ld = 4, .stride = 0}; /* members may share what is not written */
  ck_assert_int_eq(batch_r_range(handle, &batch, a, range, NULL), BATCHQR_SUCCESS);
  batchqr_plan_t plan;
  batchqr_operands operands = {.a = a};
  ck_assert_int_eq(batchqr_plan_create(handle, BATCHQR_R_RANGE, &batch, &plan), BATCHQR_SUCCESS);
  expect(handle, batchqr_plan_execute(handle, plan, &operands, NULL, 0), "operands.range is NULL");
  batch.count = 0;
  ck_assert_int_eq(batch_r_range(handle, &batch, NULL, NULL, NULL), BATCHQR_SUCCESS);
  memory_sync(backend);
  batchqr_plan_destroy(plan);
  memory_free(backend, a);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("r_range");
  suite_add(suite, all_ways);
  suite_add(suite, spoiled);
  suite_add(suite, many_members);
  suite_add(suite, wrong_sizes);
  suite_add(suite, of_a_factorization);
  suite_add(suite, arguments);
  return suite_run(suite);
}
