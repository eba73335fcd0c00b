/* SPDX-License-Identifier: BSD-3-Clause */
/* Handles: what makes them, their settings, what they say. */
#define _POSIX_C_SOURCE 200809L /* dup(), setenv() */
#include "api.h"
#include "handle.h"
#include "inspect.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
  expect(batchqr_plan_create(handle, (batchqr_op)99, &small, &plan), invalid, "op = 99 is not a batchqr_op");
  expect(batchqr_plan_create(handle, (batchqr_op)-1, &small, &plan), invalid, "op = -1 is not a batchqr_op");
}
END_TEST

START_TEST(options_are_checked) {
  batchqr_handle_t h = (batchqr_handle_t)pool;
  ck_assert_int_eq(batchqr_create(&h, &(batchqr_options){.backend = (batchqr_backend)3}),
                   BATCHQR_INVALID_ARGUMENT);
  ck_assert_ptr_null(h);
  ck_assert_int_eq(batchqr_create(&h, &(batchqr_options){.threads = -1}), BATCHQR_INVALID_ARGUMENT);
  ck_assert_int_eq(batchqr_create(&h, &(batchqr_options){.threads = 4097}), BATCHQR_INVALID_ARGUMENT);
  ck_assert_int_eq(batchqr_create(&h, &(batchqr_options){.backend = BATCHQR_BACKEND_CPU, .threads = 3}),
                   BATCHQR_SUCCESS);
  ck_assert_str_eq(batchqr_describe(h), "CPU, 3 threads; no tuning table: by heuristic");
  ck_assert_int_eq(bqr_handle_device(h)->threads, 3);
  ck_assert(!h->positive);
  batchqr_destroy(h);
  ck_assert_int_eq(batchqr_create(&h, &(batchqr_options){.positive_diagonal = -2}), BATCHQR_SUCCESS);
  ck_assert(h->positive);
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
                                      "BATCHQR_TUNING_ERROR",  "BATCHQR_CAPTURE_ERROR",
                                      "BATCHQR_RANK_ERROR"};
  for (int i = 0; i < 9; i++) ck_assert_str_eq(batchqr_status_string((batchqr_status)i), names[i]);
  ck_assert_ptr_nonnull(batchqr_status_string((batchqr_status)99));
  ck_assert_int_eq(batchqr_version(), BATCHQR_VERSION);
}
END_TEST

START_TEST(families_can_be_forced) {
  char text[64];
  const bqr_family *family = NULL;
  for (int i = 0; i < bqr_num_families() && !family; i++)
    if (bqr_family_at(i)->op == BATCHQR_GEQRF && bqr_family_at(i)->backend == backend)
      family = bqr_family_at(i);
  ck_assert_ptr_nonnull(family);
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  expect(bqr_force(handle, BATCHQR_GEQRF, "geqrf_none", NULL), invalid,
         "there is no family geqrf_none for geqrf");
  expect(bqr_force(handle, BATCHQR_ORGQR, family->name, NULL), invalid, NULL);
  expect(bqr_force(handle, BATCHQR_GEQRF, family->name, "none"), invalid, NULL);
  snprintf(text, sizeof text, "op = %d is not an operation", (int)BQR_NUM_OPS);
  expect(bqr_force(handle, BQR_NUM_OPS, NULL, NULL), invalid, text);
  expect_success(batch_geqrf(handle, &small, pool, pool + 4096, NULL));
  expect_success(bqr_force(handle, BATCHQR_GEQRF, family->name, NULL));
  ck_assert_int_eq(handle->cache.count, 0);
  batchqr_plan_t plan;
  expect_success(batchqr_plan_create(handle, BATCHQR_GEQRF, &small, &plan));
  ck_assert_str_eq(bqr_plan_group(plan, 0).source, "forced");
  batchqr_plan_destroy(plan);
  expect_success(bqr_force(handle, BATCHQR_GEQRF, NULL, NULL));
  expect_success(batchqr_plan_create(handle, BATCHQR_GEQRF, &small, &plan));
  ck_assert_str_ne(bqr_plan_group(plan, 0).source, "forced");
  batchqr_plan_destroy(plan);
}
END_TEST

static void expect_no_handle(const batchqr_options *options, batchqr_status status, const char *text) {
  batchqr_handle_t h = (batchqr_handle_t)pool;
  ck_assert_int_eq(batchqr_create(&h, options), status);
  ck_assert_ptr_null(h);
  ck_assert_str_eq(batchqr_error_message(NULL), text);
}

START_TEST(a_failed_creation_says_why) {
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  expect_no_handle(&(batchqr_options){.backend = (batchqr_backend)3}, invalid,
                   "options.backend = 3 is not a batchqr_backend");
  expect_no_handle(&(batchqr_options){.threads = 4097}, invalid,
                   "options.threads = 4097 is not in 0 .. 4096");
  expect_no_handle(&(batchqr_options){.plans = -1}, invalid, "options.plans = -1 is negative");
  expect_no_handle(&(batchqr_options){.reserved = {[2] = 7}}, invalid,
                   "options.reserved[2] = 7: the options were not initialized, or ask for what this version "
                   "of batchqr does not have");
  expect_no_handle(&(batchqr_options){.backend = BATCHQR_BACKEND_CPU, .tuning_file = "/nonexistent"},
                   BATCHQR_TUNING_ERROR, "/nonexistent: No such file or directory");
}
END_TEST

/* --- BATCHQR_VERBOSE */

/* What a new handle prints of a call, of an execute, and of a call that is refused, in this environment. */
static void printed(const char *verbose, char *text, size_t size) {
  FILE *file = tmpfile();
  const int error_output = dup(STDERR_FILENO);
  batchqr_handle_t h;
  batchqr_plan_t plan;
  ck_assert(file && error_output >= 0);
  fflush(stderr);
  dup2(fileno(file), STDERR_FILENO);
  setenv("BATCHQR_VERBOSE", verbose, 1);
  batchqr_create(&h, &(batchqr_options){.backend = backend});
  unsetenv("BATCHQR_VERBOSE");
  batch_geqr_r(h, &small, pool, pool, NULL);
  batchqr_plan_create(h, BATCHQR_GEQRF, &small, &plan);
  const size_t bytes = batchqr_plan_workspace(plan);
  void *space = memory_alloc(backend, bytes);
  batchqr_plan_execute(h, plan, &(batchqr_operands){.a = pool, .tau = pool + POOL_PLACE}, space, bytes);
  memory_free(backend, space);
  batch_geqrf(h, &small, NULL, NULL, NULL);
  batchqr_plan_destroy(plan);
  batchqr_destroy(h);
  fflush(stderr);
  dup2(error_output, STDERR_FILENO);
  close(error_output);
  rewind(file);
  text[fread(text, 1, size - 1, file)] = 0;
  fclose(file);
}

START_TEST(calls_are_printed_if_asked_for) {
  char text[4096];
  printed("0", text, sizeof text);
  ck_assert_str_eq(text, "");
  printed("1", text, sizeof text);
  char *second = strstr(text, "batchqr: geqrf, ");
  ck_assert_msg(strncmp(text, "batchqr: geqr_r, ", 17) == 0 && second, "%s", text);
  ck_assert_msg(strstr(second, " ms\ngeqrf 2 x (4x3) d: geqrf_"), "%s", text);
  *second = 0;
  ck_assert_msg(strstr(text, " ms\ngeq") && strstr(text, " 2 x (4x3) d: "), "%s", text);
  ck_assert(!strstr(second + 1, "batchqr: "));
}
END_TEST

int main(void) {
  Suite *suite = api_suite("api_handles");
  TCase *handles = api_case(suite, "handles");
  tcase_add_test(handles, null_handles_and_arguments_are_refused);
  tcase_add_test(handles, options_are_checked);
  tcase_add_test(handles, auto_takes_what_is_there);
  tcase_add_test(handles, settings_are_checked);
  tcase_add_test(handles, statuses_have_names);
  tcase_add_test(handles, families_can_be_forced);
  tcase_add_test(handles, a_failed_creation_says_why);
  tcase_add_test(handles, calls_are_printed_if_asked_for);
  return suite_run(suite);
}
