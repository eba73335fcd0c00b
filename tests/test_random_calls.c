/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls drawn at random, for every operation that has a row. Each is preceded by wrong ones, the same call
 * with one thing spoiled: these must be refused with the right status and a text that names what was spoiled,
 * and must leave every byte as it was. The right one is judged like all trials.
 *
 *   test_random_calls [--calls N] [--seconds N] [--seed N] [--verbose]
 *
 * --calls: how many (20000); --seconds: for how long, however many; --seed: where to begin (1); --verbose:
 * the seed of each call, for the case that one ends the process. On the GPU operands lie in pinned memory. */
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

/* What the program was told. */
static struct {
  long long calls, seconds, seed;
  bool verbose;
} told = {.calls = 20000, .seed = 1};

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

/* Whether this build has it on the backend: not all types are in each. */
static bool is_done(batchqr_handle_t handle, const bqr_operation *operation, batchqr_type type) {
  const bqr_device *device = bqr_handle_device(handle);
  bool done = operation->program && (device->types >> type & 1);
  for (int f = 0; f < bqr_num_families() && !done; f++)
    done = bqr_family_at(f)->op == operation->op && bqr_family_runs_on(bqr_family_at(f), device, type);
  return done;
}

/* Returns how many calls it made. */
static int make_calls(uint64_t seed, batchqr_handle_t handle, bool positive) {
  const bqr_operation *const *operations = bqr_builtin_operations;
  caller c = {.d = {.seed = seed}, .handle = handle};
  trial t = draw_trial(&c.d, operations[roll(&c.d, 0, BQR_NUM_ROUTINES - 1)]);
  c.t = &t;
  if (!is_done(handle, t.operation, t.type)) {
    trial_free(&t);
    return 0;
  }
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

START_TEST(random_calls) {
  const time_t end = time(NULL) + (time_t)told.seconds;
  const batchqr_options options = {.positive_diagonal = true};
  batchqr_handle_t handles[] = {memory_handle(memory_backend(), NULL),
                                memory_handle(memory_backend(), &options)};
  last_seed = (uint64_t)told.seed;
  long long made = 0;
  for (; told.seconds ? time(NULL) < end : made < told.calls; last_seed++) {
    if (told.verbose) fprintf(stderr, "--seed %llu\n", (unsigned long long)last_seed);
    const bool positive = last_seed % 4 == 0;
    made += make_calls(last_seed, handles[positive], positive);
  }
  printf("%lld calls\n", made);
  for (int i = 0; i < 2; i++) batchqr_destroy(handles[i]);
}
END_TEST

/* Whether the program understands what it is told. */
static bool read_options(int argc, char **argv) {
  static const struct {
    const char *name;
    long long *value;
  } options[] = {{"--calls", &told.calls}, {"--seconds", &told.seconds}, {"--seed", &told.seed}};
  for (int i = 1; i < argc; i++) {
    size_t o = 0;
    if (strcmp(argv[i], "--verbose") == 0) {
      told.verbose = true;
      continue;
    }
    while (o < 3 && strcmp(argv[i], options[o].name) != 0) o++;
    char *end = NULL;
    if (o == 3 || ++i == argc) return false;
    *options[o].value = strtoll(argv[i], &end, 10);
    if (end == argv[i] || *end || *options[o].value < 0) return false;
  }
  return true;
}

int main(int argc, char **argv) {
  if (!read_options(argc, argv)) {
    fprintf(stderr, "usage: %s [--calls N] [--seconds N] [--seed N] [--verbose]\n", argv[0]);
    return 2;
  }
  Suite *suite = suite_create("random_calls");
  TCase *tests = tcase_create("calls");
  tcase_add_test(tests, random_calls);
  tcase_set_timeout(tests, 0);
  suite_add_tcase(suite, tests);
  memory_pin();
  const int status = suite_run(suite);
  if (status) printf("the call alone: %s --seed %llu --calls 1\n", argv[0], (unsigned long long)last_seed);
  fflush(stdout); /* a sanitizer that finds what a failure has left behind ends the process at exit */
  return status;
}
