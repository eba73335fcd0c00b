/* SPDX-License-Identifier: BSD-3-Clause */
/* An operation that the library does not have: a row and a family in a registry of this test's. Argument
 * checks, plans, execution, descriptions, the laboratory and the cases of `bench` take it as it is; what is
 * its own is here. CONTRIBUTING.md has the list of what a real one needs. */
#include "../bench/bench.h"
#include "arguments.h"
#include "inspect.h"
#include "residual.h"
#include "suite.h"
#include "trial_parts.h"

#include <math.h>
#include <string.h>

/* --- the row: the 2-norms of A's columns */

enum { COLUMN_NORMS = BQR_MOST_OPS - 1 };

static double norms_flops(double m, double n, double k) { return (void)k, 2 * m * n; }

static const bqr_operation column_norms = {
    .op = COLUMN_NORMS,
    .name = "column_norms",
    .uses = {{BQR_A, BQR_MATRIX, BQR_M, BQR_N, BQR_READ},
             {BQR_NORMS, BQR_REALS, BQR_N, BQR_ONE, BQR_WRITTEN}},
    .flops = norms_flops,
};

/* --- the family */

static int size_of(const int *array, int all, int64_t id) { return array ? array[id] : all; }

static const char *matrix_of(const bqr_matrix *x, size_t bytes, int64_t id) {
  return x->pointers ? ((const char *const *)x->data)[id]
                     : (const char *)x->data + id * x->stride * (int64_t)bytes;
}

static char *vector_of(const bqr_vector *x, size_t bytes, int64_t id) {
  return x->pointers ? ((char *const *)x->data)[id] : (char *)x->data + id * x->stride * (int64_t)bytes;
}

static double number(batchqr_type type, const void *at, int i) {
  return type_is_double(type) ? ((const double *)at)[i] : ((const float *)at)[i];
}

static void set_number(batchqr_type type, void *at, int i, double value) {
  if (type_is_double(type))
    ((double *)at)[i] = value;
  else
    ((float *)at)[i] = (float)value;
}

/* Of so many real numbers. No square leaves the range of long double. */
static long double norm(batchqr_type type, const char *x, int reals) {
  long double sum = 0;
  for (int i = 0; i < reals; i++) sum += (long double)number(type, x, i) * number(type, x, i);
  return sqrtl(sum);
}

static bool is_finite(batchqr_type type, const char *x, int reals) {
  for (int i = 0; i < reals; i++)
    if (!isfinite(number(type, x, i))) return false;
  return true;
}

static double flaw; /* what every norm is wrong by, relatively */

static void do_member(const bqr_problem *problem, const bqr_args *args, int64_t id) {
  const batchqr_type type = problem->type;
  const size_t bytes = bqr_type_bytes(type);
  const int m = size_of(args->m_array, args->m, id), n = size_of(args->n_array, args->n, id),
            ld = size_of(args->a.ld_array, args->a.ld, id), reals = m * (type_is_complex(type) ? 2 : 1);
  const char *a = n > 0 ? matrix_of(&args->a, bytes, id) : NULL;
  bool finite = true;
  for (int j = 0; j < n; j++) finite = finite && is_finite(type, a + (size_t)j * (size_t)ld * bytes, reals);
  for (int j = 0; j < n; j++) {
    const double length = (double)norm(type, a + (size_t)j * (size_t)ld * bytes, reals) * (1 + flaw);
    set_number(type, vector_of(&args->norms, bqr_real_bytes(type), id), j, finite ? length : NAN);
  }
  if (args->info) args->info[id] = finite ? 0 : BATCHQR_INFO_NONFINITE;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)problem, (void)variant, (void)device;
  return true;
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)device, (void)stream;
  for (int64_t i = 0; i < args->count; i++) do_member(problem, args, args->members ? args->members[i] : i);
  return BATCHQR_SUCCESS;
}

static const bqr_variant plain = {.name = "plain"};
static const bqr_family column_norms_host = {.name = "column_norms_host",
                                             .op = COLUMN_NORMS,
                                             .types = BQR_ALL_TYPES,
                                             .backend = BATCHQR_BACKEND_CPU,
                                             .variants = &plain,
                                             .nvariants = 1,
                                             .launches = 1,
                                             .supports = supports,
                                             .launch = launch};

/* --- the registry */

static const bqr_family *const families[] = {&column_norms_host, NULL};
static const bqr_operation *const operations[] = {&column_norms, NULL};
static const char *const none[] = {NULL};
static const bqr_registry registry = {families, none, operations};

/* --- the residual: in units of roundoff, of the most that is wrong */

static double norms_residual(const lab_member *x, int columns) {
  double worst = 0;
  (void)columns;
  for (int j = 0; j < x->n; j++) {
    const char *column =
        (const char *)x->before[BQR_A] + (size_t)j * (size_t)x->ld[BQR_A] * bqr_type_bytes(x->type);
    double expected = 0;
    for (int i = 0; i < x->m * (type_is_complex(x->type) ? 2 : 1); i++)
      expected = hypot(expected, number(x->type, column, i));
    const double got = number(x->type, x->now[BQR_NORMS], j);
    if (expected > 0.9 * type_max(x->type)) continue;
    const double error =
        fabs(got - expected) / (bqr_max(x->m, 1) * (expected * type_eps(x->type) + type_eta(x->type)));
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

static const lab_routine norms_routine = {.op = COLUMN_NORMS,
                                          .ratios = {{"the columns' norms", norms_residual}}};

/* --- as a caller would: checks, plan, execution */

static struct {
  batchqr_handle_t handle;
  bqr_planner planner;
  bqr_error error;
} context;

static void set_up(void) {
  context.handle = memory_handle(BATCHQR_BACKEND_CPU, NULL);
  context.planner = (bqr_planner){.registry = &registry, .device = bqr_handle_device(context.handle)};
  flaw = 0;
}

static void tear_down(void) { batchqr_destroy(context.handle); }

static batchqr_status make_plan(const batchqr_batch *batch, batchqr_plan_t *plan) {
  *plan = NULL;
  batchqr_status status = bqr_check_enums(&column_norms, batch, BQR_PLANNED, &context.error);
  if (status) return status;
  const batchqr_batch normalized = bqr_batch_normalized(&column_norms, batch);
  status = bqr_check_batch(&column_norms, &normalized, BQR_PLANNED, &context.error);
  return status ? status : bqr_plan_new(&context.planner, COLUMN_NORMS, &normalized, plan, &context.error);
}

static batchqr_status run(const batchqr_batch *batch, const batchqr_operands *operands, void *unused) {
  batchqr_plan_t plan;
  (void)unused;
  batchqr_status status = make_plan(batch, &plan);
  if (!status) status = bqr_check_operands(plan, operands, BQR_PLANNED, &context.error);
  if (!status) status = bqr_plan_prepare(plan, &context.error);
  if (!status) {
    void *workspace = memory_host(plan->workspace_bytes);
    status = bqr_plan_launch(plan, operands, workspace, NULL, &context.error);
    free(workspace);
  }
  bqr_plan_free(plan);
  return status;
}

/* --- tests */

static batchqr_batch small_batch(void) {
  return (batchqr_batch){
      .type = BATCHQR_D, .count = 7, .m = 5, .n = 3, .a = {.ld = 5, .stride = 15}, .norms = {.stride = 3}};
}

static void expect(batchqr_batch batch, const batchqr_operands *operands, const char *text) {
  ck_assert_int_eq(run(&batch, operands, NULL), BATCHQR_INVALID_ARGUMENT);
  ck_assert_str_eq(context.error.text, text);
}

START_TEST(arguments) {
  double a[105], norms[21];
  const batchqr_operands good = {.a = a, .norms = norms}, no_norms = {.a = a}, same = {.a = a, .norms = a};
  batchqr_batch batch = small_batch();
  expect(batch, &no_norms, "operands.norms is NULL");
  expect(batch, &same, "operands.norms is the same address as operands.a");
  batch.a.ld = 4;
  expect(batch, &good, "batch.a.ld = 4 is smaller than max(1, m) = 5");
  batch = small_batch();
  batch.norms.stride = 2;
  expect(batch, &good, "batch.norms.stride = 2: members of 3 elements overlap");
  batch = small_batch();
  batch.norms.layout = (batchqr_layout)2;
  expect(batch, &good, "batch.norms.layout = 2 is not a batchqr_layout");
}
END_TEST

START_TEST(described) {
  const batchqr_batch batch = small_batch();
  batchqr_plan_t plan;
  ck_assert_int_eq(make_plan(&batch, &plan), BATCHQR_SUCCESS);
  ck_assert_str_eq(batchqr_plan_describe(plan),
                   "column_norms 7 x (5x3) d: column_norms_host plain by heuristic; workspace 0 B");
  bqr_plan_free(plan);
}
END_TEST

static trial new_trial(batchqr_type type, int seed) {
  trial t = trial_of(&column_norms, &norms_routine, type, MATGEN_NUM_KINDS);
  t.sizes = seed % 2 ? BATCHQR_HOST_SIZES : BATCHQR_UNIFORM;
  t.layout = seed / 2 % 2 ? BATCHQR_POINTERS : BATCHQR_STRIDED;
  t.own_layouts = seed % 5 == 0;
  t.ld_vary = seed % 3 == 0;
  for (int i = 0; i < t.count; i++) {
    const uint64_t key = (uint64_t)(t.sizes == BATCHQR_UNIFORM ? seed : 100 * seed + i);
    t.members[i] = (trial_member){.m = rng_int(key, 0, 0, 20),
                                  .n = rng_int(key, 1, 0, 20),
                                  .kind = (matgen_kind)i,
                                  .seed = (uint64_t)(100 * seed + i),
                                  .spoil = (trial_spoil)(i % 7 == 3 ? 1 + i % 3 : 0)};
  }
  return t;
}

START_TEST(judged) {
  for (int seed = 0; seed < 30; seed++) {
    trial t = new_trial((batchqr_type)_i, seed);
    trial_build(&t);
    ck_assert_int_eq(trial_run_with(&t, context.handle, run, NULL), BATCHQR_SUCCESS);
    trial_judge(&t, context.handle);
    trial_free(&t);
  }
}
END_TEST

/* A wrong result is seen. */
START_TEST(judged_wrong) {
  trial t = trial_of(&column_norms, &norms_routine, (batchqr_type)_i, 1);
  trial_fill(&t, 4, 3, 0, 1);
  trial_build(&t);
  flaw = 300 * type_eps((batchqr_type)_i);
  ck_assert_int_eq(trial_run_with(&t, context.handle, run, NULL), BATCHQR_SUCCESS);
  const lab_member x = trial_lab_member(&t, 0);
  ck_assert_double_gt(norms_residual(&x, 0), RESIDUAL_BOUND);
  trial_free(&t);
}
END_TEST

START_TEST(measured) {
  bench_cases cases = {.operations = operations};
  char error[BENCH_TEXT];
  ck_assert(bench_cases_line(&cases, "column_norms sz 5 3 10", error));
  ck_assert_int_eq(cases.count, 2);
  ck_assert_ptr_eq(cases.at[1].operation, &column_norms);
  ck_assert_int_eq(cases.at[1].type, BATCHQR_Z);
  ck_assert_double_eq(bench_bytes(&cases.at[1]), 16.0 * 5 * 3 * 10);
  ck_assert_double_eq(bench_flops(&cases.at[1]), 4.0 * 2 * 5 * 3 * 10);
  ck_assert(bench_cases_sweep(&cases, "column_norms d 1..4 square 10", error));
  ck_assert_int_eq(cases.count, 6);
  ck_assert(!bench_cases_line(&cases, "geqrf d 5 3 10", error));
  ck_assert_str_eq(error, "routine is 'geqrf', expected column_norms");
  bench_cases_free(&cases);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("new operation");
  TCase *tests = tcase_create("column_norms");
  tcase_add_checked_fixture(tests, set_up, tear_down);
  tcase_add_test(tests, arguments);
  tcase_add_test(tests, described);
  tcase_add_loop_test(tests, judged, 0, SUITE_TYPES);
  tcase_add_loop_test(tests, judged_wrong, 0, SUITE_TYPES);
  tcase_add_test(tests, measured);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
