/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls drawn at random, for every operation that has a row. Each is preceded by wrong ones, the same call
 * with one thing spoiled: these must be refused with the right status and a text that names what was spoiled,
 * and must leave every byte as it was. The right one is judged like all trials.
 *
 * BATCHQR_TEST_CALLS: how many calls (20000); BATCHQR_TEST_SECONDS: for how long, however many;
 * BATCHQR_TEST_SEED: where to begin; BATCHQR_TEST_VERBOSE: prints the seed of each call, for the case that
 * one ends the process. On the GPU operands lie in pinned memory. */
#include "inspect.h"
#include "random_call.h"
#include "suite.h"

#include <string.h>
#include <time.h>

typedef struct caller {
  dice d;
  const trial *t;
  batchqr_handle_t handle;
  int wrong;
} caller;

static uint64_t last_seed;

/* --- one call */

static void refuse(caller *c, const batchqr_batch *batch, const batchqr_operands *operands,
                   batchqr_plan_t plan) {
  wrong_call w = draw_wrong_call(&c->d, c->t, c->handle, batch, operands, plan);
  const batchqr_status status = make_wrong_call(&w);
  const char *text = batchqr_error_message(c->handle);
  ck_assert_msg(status == w.status, "%s, with an error wanted that says '%s': status %d, %s",
                c->t->operation->name, w.named, (int)status, text);
  ck_assert_msg(strstr(text, w.named), "%s, with an error wanted that says '%s': %s", c->t->operation->name,
                w.named, text);
  free_wrong_call(&w);
  c->wrong++;
}

static batchqr_status make_wrong_calls(const batchqr_batch *batch, const batchqr_operands *operands,
                                       void *context) {
  caller *c = context;
  batchqr_plan_t plan;
  const batchqr_status status = batchqr_plan_create(c->handle, c->t->op, batch, &plan);
  for (int i = roll(&c->d, 1, 4); i > 0 && !status; i--) refuse(c, batch, operands, plan);
  batchqr_plan_destroy(plan);
  return status;
}

static trial_mode draw_mode(dice *d, const trial *t) {
  if (chance(d, 8) && t->sizes != BATCHQR_DEVICE_SIZES && t->routine->call) return TRIAL_ALONE;
  return !chance(d, 3) ? TRIAL_CALL : suite_on_gpu() && chance(d, 3) ? TRIAL_GRAPH : TRIAL_PLAN;
}

/* Returns how many calls it made. */
static int make_calls(uint64_t seed, batchqr_handle_t handle, bool positive) {
  const bqr_operation *const *operations = bqr_builtin_operations;
  caller c = {.d = {.seed = seed}, .handle = handle};
  trial t = draw_trial(&c.d, operations[roll(&c.d, 0, BQR_NUM_ROUTINES - 1)]);
  c.t = &t;
  t.positive = positive && t.operation->makes_r;
  batchqr_set_compute(handle, (batchqr_compute)roll(&c.d, BATCHQR_COMPUTE_AUTO, BATCHQR_COMPUTE_EMULATED));
  bqr_sort_always(handle, chance(&c.d, 4));
  trial_build(&t);
  if (chance(&c.d, 2)) {
    const batchqr_status status = trial_run_with(&t, handle, make_wrong_calls, &c);
    ck_assert_msg(!status, "%s", batchqr_error_message(handle));
    trial_check_untouched(&t, handle);
  }
  trial_run_and_judge(&t, handle, draw_mode(&c.d, &t));
  trial_free(&t);
  return 1 + c.wrong;
}

/* --- many */

static long long setting(const char *name, long long usual) {
  const char *value = getenv(name);
  return value && *value ? atoll(value) : usual;
}

START_TEST(random_calls) {
  const long long seconds = setting("BATCHQR_TEST_SECONDS", 0), calls = setting("BATCHQR_TEST_CALLS", 20000);
  const time_t end = time(NULL) + (time_t)seconds;
  const bool verbose = setting("BATCHQR_TEST_VERBOSE", 0);
  const batchqr_options options = {.positive_diagonal = true};
  batchqr_handle_t handles[] = {memory_handle(memory_backend(), NULL),
                                memory_handle(memory_backend(), &options)};
  last_seed = (uint64_t)setting("BATCHQR_TEST_SEED", 1);
  long long made = 0;
  for (; seconds ? time(NULL) < end : made < calls; last_seed++) {
    if (verbose) fprintf(stderr, "BATCHQR_TEST_SEED=%llu\n", (unsigned long long)last_seed);
    const bool positive = last_seed % 4 == 0;
    made += make_calls(last_seed, handles[positive], positive);
  }
  printf("%lld calls\n", made);
  for (int i = 0; i < 2; i++) batchqr_destroy(handles[i]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("random_calls");
  TCase *tests = tcase_create("calls");
  tcase_add_test(tests, random_calls);
  tcase_set_timeout(tests, 0);
  suite_add_tcase(suite, tests);
  memory_pin();
  const int status = suite_run(suite);
  if (status)
    printf("the call alone: BATCHQR_TEST_SEED=%llu BATCHQR_TEST_CALLS=1\n", (unsigned long long)last_seed);
  return status;
}
