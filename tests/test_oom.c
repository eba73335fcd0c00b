/* SPDX-License-Identifier: BSD-3-Clause */
/* Host memory that runs out: every single allocation of some typical calls, and of each operation, fails
 * once, and each time the call says so, leaks nothing (the sanitizers look), writes nothing and leaves the
 * handle fit for work. The linker's --wrap leads the library's allocations here. */
#define _POSIX_C_SOURCE 200809L /* mkstemp */
#include "allocations.h"
#include "suite.h"
#include "trial.h"

#include <batchqr/ranks.h>
#include <string.h>
#include <unistd.h>

static char path[] = "/tmp/batchqr_test_XXXXXX";

static void set_up(void) {
  int file = mkstemp(path);
  ck_assert_int_ge(file, 0);
  FILE *table = fdopen(file, "w");
  fputs("batchqr-tuning 1\ngeqrf d 3 1.. 1.. geqrf_lapack omp 1\n", table);
  fclose(table);
}

static void tear_down(void) {
  unlink(path);
  memset(path + strlen(path) - 6, 'X', 6);
}

static double a[300], q[300], r[300], tau[60];
static const int m[] = {3, 0, 2, 4, 4}, n[] = {2, 4, 2, 4, 1};

static batchqr_batch mixed(void) {
  return (batchqr_batch){.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = 5,
                         .m_array = m,
                         .n_array = n,
                         .a = {.ld = 4, .stride = 16},
                         .c = {.ld = 4, .stride = 16},
                         .r = {.ld = 4, .stride = 16},
                         .tau = {.stride = 4}};
}

static batchqr_status creation(batchqr_handle_t handle) {
  (void)handle;
  batchqr_handle_t another;
  batchqr_options options = {.backend = BATCHQR_BACKEND_CPU, .tuning_file = path};
  batchqr_status status = batchqr_create(&another, &options);
  allocations_fail_after(-1); /* Check allocates too */
  ck_assert((status == BATCHQR_SUCCESS) == (another != NULL));
  batchqr_destroy(another);
  return status;
}

static batchqr_status planning(batchqr_handle_t handle) {
  batchqr_batch batch = mixed();
  batchqr_plan_t plan;
  batchqr_status status = batchqr_plan_create(handle, BATCHQR_QR, &batch, &plan);
  allocations_fail_after(-1);
  ck_assert((status == BATCHQR_SUCCESS) == (plan != NULL));
  batchqr_plan_destroy(plan);
  return status;
}

static batchqr_status one_call(batchqr_handle_t handle) {
  batchqr_batch batch = mixed();
  return batch_qr(handle, &batch, a, q, r, NULL);
}

/* Plans come and go in the cache while memory is short. */
static batchqr_status many_calls(batchqr_handle_t handle) {
  for (int count = 1; count <= 20; count++) {
    batchqr_batch batch = mixed();
    batch.sizes = BATCHQR_UNIFORM;
    batch.m = batch.n = 3;
    batch.tau.stride = 3;
    batch.a.stride = 9;
    batch.a.ld = 3;
    batch.count = count;
    batchqr_status status = batch_geqrf(handle, &batch, a, tau, NULL);
    if (status) return status;
  }
  return BATCHQR_SUCCESS;
}

/* --- plans over ranks, of which there is one */

static batchqr_status copy_all(void *context, const void *mine, void *all, size_t bytes) {
  (void)context;
  memcpy(all, mine, bytes);
  return BATCHQR_SUCCESS;
}

static batchqr_status gather(void *context, const void *mine, void *all, size_t bytes,
                             batchqr_stream stream) {
  (void)stream;
  return copy_all(context, mine, all, bytes);
}

static batchqr_status broadcast(void *context, void *data, size_t bytes, int root, batchqr_stream stream) {
  (void)context, (void)data, (void)bytes, (void)root, (void)stream;
  return BATCHQR_SUCCESS;
}

static batchqr_status wait_for(void *context, batchqr_stream stream) {
  (void)context, (void)stream;
  return BATCHQR_SUCCESS;
}

static const char *message(void *context) {
  (void)context;
  return "";
}

static const batchqr_communicator one_rank = {.size = 1,
                                              .backend = BATCHQR_BACKEND_CPU,
                                              .device = -1,
                                              .all_gather = gather,
                                              .broadcast = broadcast,
                                              .agree = copy_all,
                                              .wait = wait_for,
                                              .message = message};

static batchqr_status over_rows(batchqr_handle_t handle) {
  static const batchqr_op ops[] = {BATCHQR_GEQR_R, BATCHQR_GEQRF, BATCHQR_ORGQR, BATCHQR_ORMQR,
                                   BATCHQR_QR,     BATCHQR_GELS,  BATCHQR_GESVD};
  batchqr_status status = BATCHQR_SUCCESS;
  bool sound = true;
  for (int i = 0; i < 7 && !status; i++) {
    const batchqr_batch batch = batchqr_batch_packed(ops[i], BATCHQR_D, 9, 3, 3, 2);
    batchqr_communicator communicator = one_rank;
    batchqr_tsqr_t plan;
    status = batchqr_tsqr_create(handle, &communicator, ops[i], &batch, &plan);
    sound = sound && (status == BATCHQR_SUCCESS) == (plan != NULL);
    batchqr_tsqr_destroy(plan);
  }
  return sound ? status : BATCHQR_RANK_ERROR;
}

static batchqr_status over_columns(batchqr_handle_t handle) {
  static const batchqr_op ops[] = {BATCHQR_GEQRF, BATCHQR_ORMQR, BATCHQR_GELS};
  batchqr_status status = BATCHQR_SUCCESS;
  bool sound = true;
  for (int i = 0; i < 3 && !status; i++) {
    const batchqr_batch batch = batchqr_batch_packed(ops[i], BATCHQR_D, 9, 5, 5, 1);
    batchqr_communicator communicator = one_rank;
    batchqr_columns_t plan;
    status = batchqr_columns_create(handle, &communicator, ops[i], &batch, 2, &plan);
    sound = sound && (status == BATCHQR_SUCCESS) == (plan != NULL);
    batchqr_columns_destroy(plan);
  }
  return sound ? status : BATCHQR_RANK_ERROR;
}

static batchqr_status (*const scenes[])(batchqr_handle_t) = {creation,   planning,  one_call,
                                                             many_calls, over_rows, over_columns};

START_TEST(every_allocation_may_fail) {
  batchqr_options options = {.backend = BATCHQR_BACKEND_CPU, .threads = 1, .tuning_file = path};
  bool failed = true;
  int fail_at = 0;
  for (; failed; fail_at++) {
    ck_assert_int_lt(fail_at, 1000);
    batchqr_handle_t handle;
    ck_assert_int_eq(batchqr_create(&handle, &options), BATCHQR_SUCCESS);
    allocations_fail_after(fail_at);
    batchqr_status status = scenes[_i](handle);
    failed = allocations_failed() > 0;
    allocations_fail_after(-1);
    ck_assert_msg(status == (failed ? BATCHQR_OUT_OF_MEMORY : BATCHQR_SUCCESS), "allocation %d: %s", fail_at,
                  batchqr_status_string(status));
    if (failed && scenes[_i] != creation)
      ck_assert_msg(strstr(batchqr_error_message(handle), "host memory ran out for "), "%s",
                    batchqr_error_message(handle));
    ck_assert_int_eq(scenes[_i](handle), BATCHQR_SUCCESS);
    batchqr_destroy(handle);
  }
  ck_assert_int_ge(fail_at, 4); /* else nothing was wrapped */
}
END_TEST

/* --- every operation */

/* A call of which one allocation fails. */
typedef struct attempt {
  const trial *t;
  batchqr_handle_t handle;
  int fail_at;
  bool planned, failed;
} attempt;

static batchqr_status execute_plan(batchqr_handle_t h, batchqr_plan_t plan,
                                   const batchqr_operands *operands) {
  const size_t bytes = batchqr_plan_workspace(plan);
  void *workspace = bytes > 0 ? memory_alloc(BATCHQR_BACKEND_CPU, bytes) : NULL;
  const batchqr_status status = batchqr_plan_execute(h, plan, operands, workspace, bytes);
  memory_free(BATCHQR_BACKEND_CPU, workspace);
  return status;
}

static batchqr_status make_call(const batchqr_batch *batch, const batchqr_operands *their, void *context) {
  attempt *c = context;
  batchqr_plan_t plan = NULL;
  allocations_fail_after(c->fail_at);
  const batchqr_status status = c->planned ? batchqr_plan_create(c->handle, c->t->op, batch, &plan)
                                           : c->t->routine->call(c->handle, batch, their);
  c->failed = allocations_failed() > 0;
  allocations_fail_after(-1);
  const batchqr_status executed = plan ? execute_plan(c->handle, plan, their) : BATCHQR_SUCCESS;
  batchqr_plan_destroy(plan);
  return status ? status : executed;
}

/* Whether an allocation failed; then nothing was written, and the next call is as good as any. */
static bool fails(trial *t, bool planned, int fail_at) {
  attempt c = {.t = t,
               .handle = memory_handle(BATCHQR_BACKEND_CPU, &(batchqr_options){.threads = 1}),
               .fail_at = fail_at,
               .planned = planned};
  const batchqr_status status = trial_run_with(t, c.handle, make_call, &c);
  ck_assert_msg(status == (c.failed ? BATCHQR_OUT_OF_MEMORY : BATCHQR_SUCCESS), "%s, allocation %d: %s",
                t->operation->name, fail_at, batchqr_status_string(status));
  if (c.failed) {
    ck_assert_msg(strstr(batchqr_error_message(c.handle), "host memory ran out for "), "%s",
                  batchqr_error_message(c.handle));
    trial_check_untouched(t, c.handle);
    trial_run_and_judge(t, c.handle, TRIAL_CALL);
  }
  batchqr_destroy(c.handle);
  return c.failed;
}

static void fail_each(const bqr_operation *operation, batchqr_sizes sizes, bool planned) {
  trial t = trial_new((batchqr_op)operation->op, BATCHQR_Z, 4);
  t.sizes = sizes;
  t.slack = 2;
  const bool varies = sizes != BATCHQR_UNIFORM;
  for (int i = 0; i < 4; i++) {
    const int n = 3 + (varies ? i % 3 : 0), m = operation->square ? n : n + 2;
    t.members[i] = (trial_member){.m = m, .n = n, .k = 2, .seed = (uint64_t)i + 1};
  }
  trial_build(&t);
  int fail_at = 0;
  while (fails(&t, planned, fail_at)) ck_assert_int_lt(fail_at++, 1000);
  ck_assert_int_ge(fail_at, 3); /* else nothing was wrapped */
  trial_free(&t);
}

START_TEST(no_operation_is_half_done) {
  const bqr_operation *operation = bqr_builtin_operations[_i];
  const int kinds = operation->host_sizes ? BATCHQR_HOST_SIZES : BATCHQR_DEVICE_SIZES;
  for (int sizes = BATCHQR_UNIFORM; sizes <= kinds; sizes++) {
    fail_each(operation, (batchqr_sizes)sizes, true);
    fail_each(operation, (batchqr_sizes)sizes, false);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("oom");
  TCase *tests = tcase_create("host memory");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_loop_test(tests, every_allocation_may_fail, 0, sizeof scenes / sizeof scenes[0]);
  tcase_add_loop_test(tests, no_operation_is_half_done, 0, BQR_NUM_ROUTINES);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
