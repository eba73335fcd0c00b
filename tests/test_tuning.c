/* SPDX-License-Identifier: BSD-3-Clause */
/* Tuning tables: the reader, and the choice among tables. What the built-in ones say is in
 * test_tuning_rules.c. */
#define _POSIX_C_SOURCE 200809L /* mkstemp, setenv */
#include "config.h"
#include "inspect.h"
#include "plan.h"
#include "choose.h"
#include "suite.h"
#include "tuning.h"
#include <string.h>
#include <unistd.h>

/* --- families to read tables with: m x n up to rows x cols */

static bool within(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)device;
  return problem->m <= variant->rows && problem->n <= variant->cols;
}

static const bqr_variant variants[] = {{.name = "small", .rows = 32, .cols = 8},
                                       {.name = "tall.2", .rows = 1 << 30, .cols = 16}};
static const bqr_family geqrf_fake = {.name = "geqrf_fake",
                                      .op = BATCHQR_GEQRF,
                                      .types = 1 << BATCHQR_S | 1 << BATCHQR_D,
                                      .backend = BATCHQR_BACKEND_CUDA,
                                      .sm_min = 80,
                                      .variants = variants,
                                      .nvariants = 2,
                                      .supports = within};
static const bqr_family *const families[] = {&geqrf_fake, NULL};
static const char *const left_out[] = {"geqrf_absent", NULL};
static const bqr_registry registry = {families, left_out, bqr_builtin_operations};

static batchqr_status parse(const char *text, bqr_table **table, bqr_error *error) {
  return bqr_table_parse(&registry, "some/dir/x.tune", text, strlen(text), table, error);
}

START_TEST(a_table_is_read) {
  bqr_table *t;
  bqr_error error;
  batchqr_status status = parse("# a comment\n"
                                "\n"
                                "batchqr-tuning 1\n"
                                "\tgeqrf  d  1..32 8 1.. geqrf_fake small 2.95 # why\r\n"
                                "geqrf ds 0.. 1..16 100..200 geqrf_fake tall.2 .5",
                                &t, &error);
  ck_assert_msg(status == BATCHQR_SUCCESS, "%s", error.text);
  ck_assert_str_eq(t->name, "x.tune");
  ck_assert_int_eq(t->num_rules, 2);
  const bqr_rule *r = t->rules;
  ck_assert_int_eq(r[0].line, 4);
  ck_assert_int_eq(r[0].op, BATCHQR_GEQRF);
  ck_assert_uint_eq(r[0].types, 1 << BATCHQR_D);
  ck_assert_int_eq(r[0].m.first, 1);
  ck_assert_int_eq(r[0].m.last, 32);
  ck_assert_int_eq(r[0].n.first, 8);
  ck_assert_int_eq(r[0].n.last, 8);
  ck_assert_int_eq(r[0].count.first, 1);
  ck_assert_int_eq(r[0].count.last, INT64_MAX);
  ck_assert_ptr_eq(r[0].family, &geqrf_fake);
  ck_assert_int_eq(r[0].variant, 0);
  ck_assert_double_eq(r[0].gain, 2.95);
  ck_assert_int_eq(r[1].line, 5);
  ck_assert_uint_eq(r[1].types, 1 << BATCHQR_D | 1 << BATCHQR_S);
  ck_assert_int_eq(r[1].count.last, 200);
  ck_assert_int_eq(r[1].variant, 1);
  ck_assert_double_eq(r[1].gain, 0.5);
  bqr_table_free(t);
}
END_TEST

START_TEST(a_rule_may_say_in_steps) {
  static const bqr_family qr_fake = {.name = "qr_fake",
                                     .op = BATCHQR_QR,
                                     .types = BQR_ALL_TYPES,
                                     .backend = BATCHQR_BACKEND_CUDA,
                                     .variants = variants,
                                     .nvariants = 2,
                                     .supports = within};
  static const bqr_family *const with_qr[] = {&geqrf_fake, &qr_fake, NULL};
  const bqr_registry registry_with_qr = {with_qr, left_out, bqr_builtin_operations};
  const char *text =
      "batchqr-tuning 1\nqr d 9..16 1.. 1..10 steps - 1.5\nqr d 1..32 1..8 1.. qr_fake small 2\n";
  bqr_table *t;
  bqr_error error;
  ck_assert_int_eq(bqr_table_parse(&registry_with_qr, "x.tune", text, strlen(text), &t, &error),
                   BATCHQR_SUCCESS);
  bqr_device device = {.backend = BATCHQR_BACKEND_CUDA, .sm = 90, .types = BQR_ALL_TYPES};
  bqr_planner planner = {.registry = &registry_with_qr, .device = &device, .table = t};
  static const struct {
    int m, count;
    const bqr_family *family;
  } expected[] = {{8, 1, &qr_fake}, {9, 1, NULL}, {16, 10, NULL}, {16, 11, &qr_fake}, {17, 1, &qr_fake}};
  for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
    bqr_problem problem = {
        .op = BATCHQR_QR, .type = BATCHQR_D, .m = expected[i].m, .n = 4, .count = expected[i].count};
    bqr_choice choice;
    ck_assert_int_eq(bqr_choose(&planner, &problem, problem.count, &choice, &error), BATCHQR_SUCCESS);
    ck_assert_ptr_eq(choice.family, expected[i].family);
    ck_assert_ptr_eq(choice.rule, &t->rules[expected[i].family != NULL]);
  }
  bqr_table_free(t);
}
END_TEST

START_TEST(a_table_may_be_without_rules) {
  bqr_table *t;
  bqr_error error;
  ck_assert_int_eq(parse("batchqr-tuning 1", &t, &error), BATCHQR_SUCCESS);
  ck_assert_int_eq(t->num_rules, 0);
  bqr_table_free(t);
}
END_TEST

START_TEST(rules_of_families_left_out_are_passed_over) {
  bqr_table *t;
  bqr_error error;
  ck_assert_int_eq(parse("batchqr-tuning 1\n"
                         "geqrf z 1 1 1 geqrf_absent whatever 1\n"
                         "geqrf d 1 1 1 geqrf_fake small 1\n",
                         &t, &error),
                   BATCHQR_SUCCESS);
  ck_assert_int_eq(t->num_rules, 1);
  ck_assert_int_eq(t->rules[0].line, 3);
  bqr_table_free(t);
}
END_TEST

START_TEST(many_rules_are_kept_in_order) {
  enum { RULES = 1000 };
  char *text = malloc(RULES * 64 + 64), *end = text;
  ck_assert_ptr_nonnull(text);
  end += sprintf(end, "batchqr-tuning 1\n");
  for (int i = 0; i < RULES; i++) end += sprintf(end, "geqrf d %d 1 1 geqrf_fake small 1\n", i);
  bqr_table *t;
  bqr_error error;
  ck_assert_int_eq(parse(text, &t, &error), BATCHQR_SUCCESS);
  ck_assert_int_eq(t->num_rules, RULES);
  for (int i = 0; i < RULES; i++) {
    ck_assert_int_eq(t->rules[i].m.first, i);
    ck_assert_int_eq(t->rules[i].line, i + 2);
  }
  bqr_table_free(t);
  free(text);
}
END_TEST

/* Each line is the third of a table whose others are good. */
static const struct {
  const char *line, *message;
} bad_lines[] = {
    {"geqrf d 1 1 1 geqrf_fake small", "fewer than the 8 fields"},
    {"geqrf", "fewer than the 8 fields"},
    {"geqrf d 1 1 1 geqrf_fake small 1 2", "more than the 8 fields"},
    {"batchqr-tuning 1", "fewer than the 8 fields"},
    {"geqrx d 1 1 1 geqrf_fake small 1", "there is no operation geqrx"},
    {"GEQRF d 1 1 1 geqrf_fake small 1", "there is no operation GEQRF"},
    {"geqrf x 1 1 1 geqrf_fake small 1", "types x are not letters of sdcz"},
    {"geqrf d, 1 1 1 geqrf_fake small 1", "types d, are not letters of sdcz"},
    {"geqrf d -1 1 1 geqrf_fake small 1", "m -1 is not a range a..b, a.. or a"},
    {"geqrf d 1.5 1 1 geqrf_fake small 1", "m 1.5 is not a range"},
    {"geqrf d 1...3 1 1 geqrf_fake small 1", "m 1...3 is not a range"},
    {"geqrf d 1 3..2 1 geqrf_fake small 1", "n 3..2 is not a range"},
    {"geqrf d 1 ..2 1 geqrf_fake small 1", "n ..2 is not a range"},
    {"geqrf d 1 1 1..x geqrf_fake small 1", "count 1..x is not a range"},
    {"geqrf d 1 1 99999999999999999999 geqrf_fake small 1", "count 99999999999999999999 is not a range"},
    {"geqrf d 1 1 * geqrf_fake small 1", "count * is not a range"},
    {"geqrf d 1 1 1 geqrf_unknown small 1", "there is no family geqrf_unknown"},
    {"geqrf d 1 1 1 geqrf_fak small 1", "there is no family geqrf_fak"},
    {"orgqr d 1 1 1 geqrf_fake small 1", "geqrf_fake does geqrf, not orgqr"},
    {"geqrf dz 1 1 1 geqrf_fake small 1", "geqrf_fake does not have all the types"},
    {"geqrf d 1 1 1 geqrf_fake tall 1", "geqrf_fake has no variant tall"},
    {"geqrf d 1 1 1 steps - 1", "geqrf is not done in steps"},
    {"copy_r d 1 1 1 steps - 1", "copy_r is not done in steps"},
    {"qr d 1 1 1 steps small 1", "steps have no variant small"},
    {"qr d 1 1 1 step - 1", "there is no family step"},
    {"geqrf d 1 1 1 geqrf_fake small 0", "gain 0 is not a positive number"},
    {"geqrf d 1 1 1 geqrf_fake small -1", "gain -1 is not a positive number"},
    {"geqrf d 1 1 1 geqrf_fake small 1.2.3", "gain 1.2.3 is not a positive number"},
    {"geqrf d 1 1 1 geqrf_fake small .", "gain . is not a positive number"},
    {"geqrf d 1 1 1 geqrf_fake small nan", "gain nan is not a positive number"},
    {"geqrf z 1 1 1 geqrf_absent small 1,5", "gain 1,5 is not a positive number"},
};

START_TEST(a_bad_line_rejects_the_table) {
  char text[512];
  snprintf(text, sizeof text,
           "batchqr-tuning 1\ngeqrf d 1 1 1 geqrf_fake small 1\n%s\ngeqrf d 1 1 1 geqrf_fake small 1\n",
           bad_lines[_i].line);
  bqr_table *t = (bqr_table *)text;
  bqr_error error = {""};
  ck_assert_int_eq(parse(text, &t, &error), BATCHQR_TUNING_ERROR);
  ck_assert_ptr_null(t);
  ck_assert_msg(strncmp(error.text, "some/dir/x.tune:3: ", 19) == 0 &&
                    strncmp(error.text + 19, bad_lines[_i].message, strlen(bad_lines[_i].message)) == 0,
                "%s: %s", bad_lines[_i].line, error.text);
}
END_TEST

static const struct {
  const char *text, *message;
} bad_starts[] = {
    {"", "some/dir/x.tune:1: the line `batchqr-tuning 1` is missing"},
    {"# nothing\n\n", "some/dir/x.tune:3: the line `batchqr-tuning 1` is missing"},
    {"geqrf d 1 1 1 geqrf_fake small 1\n", "some/dir/x.tune:1: the first line must be `batchqr-tuning 1`"},
    {"\nbatchqr-tuning 2\n", "some/dir/x.tune:2: the first line must be `batchqr-tuning 1`"},
    {"batchqr-tuning 1 2\n", "some/dir/x.tune:1: the first line must be `batchqr-tuning 1`"},
    {"batchqr-tuning\n", "some/dir/x.tune:1: the first line must be `batchqr-tuning 1`"},
};

START_TEST(a_bad_start_rejects_the_table) {
  bqr_table *t;
  bqr_error error = {""};
  ck_assert_int_eq(parse(bad_starts[_i].text, &t, &error), BATCHQR_TUNING_ERROR);
  ck_assert_str_eq(error.text, bad_starts[_i].message);
}
END_TEST

START_TEST(a_zero_byte_rejects_the_table) {
  static const char text[] = "batchqr-tuning 1\n# \0\n";
  bqr_table *t;
  bqr_error error = {""};
  ck_assert_int_eq(bqr_table_parse(&registry, "x", text, sizeof text - 1, &t, &error), BATCHQR_TUNING_ERROR);
  ck_assert_str_eq(error.text, "x:2: not a text: it holds a zero byte");
}
END_TEST

START_TEST(ranges_include_their_ends) {
  bqr_interval r = {2, 5};
  ck_assert(!bqr_interval_holds(r, 1) && bqr_interval_holds(r, 2) && bqr_interval_holds(r, 5) &&
            !bqr_interval_holds(r, 6));
}
END_TEST

START_TEST(the_nearest_older_table_is_taken) {
  static const int sms[] = {80, 90, 100};
  ck_assert_int_eq(bqr_nearest_table(sms, 3, 75), -1);
  ck_assert_int_eq(bqr_nearest_table(sms, 3, 80), 0);
  ck_assert_int_eq(bqr_nearest_table(sms, 3, 89), 0);
  ck_assert_int_eq(bqr_nearest_table(sms, 3, 90), 1);
  ck_assert_int_eq(bqr_nearest_table(sms, 3, 100), 2);
  ck_assert_int_eq(bqr_nearest_table(sms, 3, 121), 2);
  ck_assert_int_eq(bqr_nearest_table(sms, 0, 90), -1);
}
END_TEST

/* --- files, and how a handle comes to its table */

static char path[] = "/tmp/batchqr_test_XXXXXX";

static void write_file(const char *text) {
  FILE *file = fopen(path, "w");
  ck_assert_ptr_nonnull(file);
  ck_assert_int_ge(fputs(text, file), 0);
  ck_assert_int_eq(fclose(file), 0);
}

static void make_file(void) {
  unsetenv("BATCHQR_TUNING_FILE");
  int file = mkstemp(path);
  ck_assert_int_ge(file, 0);
  close(file);
}

static void remove_file(void) {
  unlink(path);
  memset(path + strlen(path) - 6, 'X', 6);
  unsetenv("BATCHQR_TUNING_FILE");
}

static const char cpu_table[] = "batchqr-tuning 1\n\ngeqrf sdcz 3..5 1.. 7.. geqrf_lapack omp 1.5\n";

START_TEST(a_file_is_checked) {
  char message[256];
  write_file(cpu_table);
  ck_assert_int_eq(batchqr_check_tuning_file(path, message, sizeof message), BATCHQR_SUCCESS);
  ck_assert_str_eq(message, "");

  write_file("batchqr-tuning 1\ngeqrf d 1 1 1 geqrf_lapack no_such 1\n");
  ck_assert_int_eq(batchqr_check_tuning_file(path, message, sizeof message), BATCHQR_TUNING_ERROR);
  char expected[256];
  snprintf(expected, sizeof expected, "%s:2: geqrf_lapack has no variant no_such", path);
  ck_assert_str_eq(message, expected);
  ck_assert_int_eq(batchqr_check_tuning_file(path, NULL, 0), BATCHQR_TUNING_ERROR);
  ck_assert_int_eq(batchqr_check_tuning_file(path, message, 5), BATCHQR_TUNING_ERROR);
  ck_assert_int_eq(strlen(message), 4);

  ck_assert_int_eq(batchqr_check_tuning_file("/no/such/file", message, sizeof message), BATCHQR_TUNING_ERROR);
  ck_assert_str_eq(message, "/no/such/file: No such file or directory");
  ck_assert_int_eq(batchqr_check_tuning_file("/tmp", message, sizeof message), BATCHQR_TUNING_ERROR);
  ck_assert_str_eq(message, "/tmp: Is a directory");
  ck_assert_int_eq(batchqr_check_tuning_file(NULL, message, sizeof message), BATCHQR_INVALID_ARGUMENT);
  ck_assert_str_eq(message, "path is NULL");
}
END_TEST

START_TEST(a_long_file_is_read_whole) {
  FILE *file = fopen(path, "w");
  fputs("batchqr-tuning 1\n", file);
  for (int i = 0; i < 3000; i++) fprintf(file, "geqrf d %d 1 1 geqrf_lapack omp 1\n", i);
  fputs("bad\n", file);
  fclose(file);
  char message[256], expected[256];
  ck_assert_int_eq(batchqr_check_tuning_file(path, message, sizeof message), BATCHQR_TUNING_ERROR);
  snprintf(expected, sizeof expected, "%s:3002: fewer", path);
  ck_assert_msg(strncmp(message, expected, strlen(expected)) == 0, "%s", message);
}
END_TEST

/* The description of a plan for 10 matrices of 4 x 3. */
static void describe_plan(const batchqr_options *options, char *text, size_t size) {
  batchqr_handle_t handle;
  ck_assert_int_eq(batchqr_create(&handle, options), BATCHQR_SUCCESS);
  batchqr_batch batch = {
      .type = BATCHQR_D, .count = 10, .m = 4, .n = 3, .a = {.ld = 4, .stride = 12}, .tau = {.stride = 3}};
  batchqr_plan_t plan;
  ck_assert_int_eq(batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan), BATCHQR_SUCCESS);
  snprintf(text, size, "%s", batchqr_plan_describe(plan));
  batchqr_plan_destroy(plan);
  batchqr_destroy(handle);
}

START_TEST(a_handle_takes_its_table_from_options_or_environment) {
  char text[512], expected[128];
  batchqr_options options = {.backend = BATCHQR_BACKEND_CPU};
  describe_plan(&options, text, sizeof text);
  ck_assert_msg(strstr(text, "geqrf_lapack omp by heuristic;") != NULL, "%s", text);

  write_file(cpu_table);
  snprintf(expected, sizeof expected, "geqrf_lapack omp from %s:3;", strrchr(path, '/') + 1);
  setenv("BATCHQR_TUNING_FILE", path, 1);
  describe_plan(&options, text, sizeof text);
  ck_assert_msg(strstr(text, expected) != NULL, "%s", text);

  setenv("BATCHQR_TUNING_FILE", "/no/such/file", 1);
  options.tuning_file = path;
  describe_plan(&options, text, sizeof text);
  ck_assert_msg(strstr(text, expected) != NULL, "%s", text);

  setenv("BATCHQR_TUNING_FILE", "", 1);
  options.tuning_file = NULL;
  describe_plan(&options, text, sizeof text);
  ck_assert_msg(strstr(text, "by heuristic") != NULL, "%s", text);
}
END_TEST

START_TEST(a_handle_needs_a_good_table) {
  batchqr_handle_t handle = (batchqr_handle_t)path;
  batchqr_options options = {.backend = BATCHQR_BACKEND_CPU, .tuning_file = "/no/such/file"};
  ck_assert_int_eq(batchqr_create(&handle, &options), BATCHQR_TUNING_ERROR);
  ck_assert_ptr_null(handle);
  write_file("batchqr-tuning 3\n");
  setenv("BATCHQR_TUNING_FILE", path, 1);
  options.tuning_file = NULL;
  ck_assert_int_eq(batchqr_create(&handle, &options), BATCHQR_TUNING_ERROR);
  options.tuning_file = "";
  ck_assert_int_eq(batchqr_create(&handle, &options), BATCHQR_TUNING_ERROR);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tuning");
  TCase *tests = tcase_create("reader");
  tcase_add_test(tests, a_table_is_read);
  tcase_add_test(tests, a_rule_may_say_in_steps);
  tcase_add_test(tests, a_table_may_be_without_rules);
  tcase_add_test(tests, rules_of_families_left_out_are_passed_over);
  tcase_add_test(tests, many_rules_are_kept_in_order);
  tcase_add_loop_test(tests, a_bad_line_rejects_the_table, 0, sizeof bad_lines / sizeof bad_lines[0]);
  tcase_add_loop_test(tests, a_bad_start_rejects_the_table, 0, sizeof bad_starts / sizeof bad_starts[0]);
  tcase_add_test(tests, a_zero_byte_rejects_the_table);
  tcase_add_test(tests, ranges_include_their_ends);
  tcase_add_test(tests, the_nearest_older_table_is_taken);
  suite_add_tcase(suite, tests);

  TCase *files = tcase_create("files");
  tcase_add_checked_fixture(files, make_file, remove_file);
  tcase_add_test(files, a_file_is_checked);
  tcase_add_test(files, a_long_file_is_read_whole);
  tcase_add_test(files, a_handle_takes_its_table_from_options_or_environment);
  tcase_add_test(files, a_handle_needs_a_good_table);
  suite_add_tcase(suite, files);

  return suite_run(suite);
}
