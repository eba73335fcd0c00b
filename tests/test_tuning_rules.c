/* SPDX-License-Identifier: BSD-3-Clause */
/* The tuning tables and costs that are built in: that all numbers are there, and that what a rule promises is
 * there. */
#include "choose.h"
#include "config.h"
#include "costs.h"
#include "fakes.h"
#include "tuning.h"
#include <string.h>

START_TEST(no_cost_is_left_out) {
  static const int sms[] = {0, 80, 90, 120};
  for (int i = 0; i < 4; i++) {
    const bqr_device device = {.sm = sms[i]};
    const double *costs = (const double *)bqr_costs_of(&device);
    for (size_t j = 0; j < sizeof(bqr_costs) / sizeof *costs; j++)
      ck_assert_msg(costs[j] > 0, "number %zu for sm_%d", j + 1, sms[i]);
  }
}
END_TEST

/* --- rules */

/* What stands for the end of an open range. */
enum { LARGE_SIZE = 1 << 16, LARGE_COUNT = 1 << 20 };

static int64_t range_end(bqr_interval range, int64_t large) {
  return range.last < INT64_MAX ? range.last : range.first > large ? range.first : large;
}

/* A device of the architecture, with the shared memory of its data-centre part. */
static bqr_device device_of(int sm) {
  return (bqr_device){.backend = BATCHQR_BACKEND_CUDA,
                      .sm = sm,
                      .multiprocessors = sm < 90 ? 108 : 132,
                      .smem_per_block = sm < 90 ? 166912 : 232448,
                      .smem_per_sm = sm < 90 ? 167936 : 233472,
                      .threads = 1,
                      .types = BQR_ALL_TYPES,
                      .name = "a made-up GPU"};
}

/* The forms of a problem that the rule's family serves by this variant, a bit for each. */
static unsigned forms_served(const bqr_rule *rule, int variant, bqr_problem problem,
                             const bqr_device *device) {
  bqr_planner planner = {.registry = bqr_registry_builtin(), .device = device};
  bqr_choice choice = {.family = rule->family, .variant = &rule->family->variants[variant], .rule = rule};
  unsigned forms = 0;
  for (int i = 0; i < 8; i++) {
    problem.pointers = i & 1;
    problem.side = i & 2 ? BATCHQR_RIGHT : BATCHQR_LEFT;
    problem.uniform = i & 4;
    int most = problem.side == BATCHQR_LEFT ? problem.m : problem.n;
    if (rule->op == BATCHQR_ORGQR) problem.k = problem.n;
    if (rule->op == BATCHQR_ORMQR) problem.k = most < 64 ? most : 64;
    if (bqr_choice_serves(&planner, &choice, &problem)) forms |= 1u << i;
  }
  return forms;
}

enum { CORNERS = 8 };

static bqr_problem corner_of(const bqr_rule *r, batchqr_type type, int i) {
  return (bqr_problem){.op = r->op,
                       .type = type,
                       .m = (int)(i & 1 ? range_end(r->m, LARGE_SIZE) : r->m.first),
                       .n = (int)(i & 2 ? range_end(r->n, LARGE_SIZE) : r->n.first),
                       .count = i & 4 ? range_end(r->count, LARGE_COUNT) : r->count.first};
}

/* What a rule promises: every form, unless there are some that its family serves nowhere, whatever the
 * variant and the corner. */
static unsigned forms_promised(const bqr_rule *r, batchqr_type type, const bqr_device *device) {
  unsigned forms = 0;
  for (int i = 0; i < CORNERS; i++)
    for (int v = 0; v < r->family->nvariants; v++) forms |= forms_served(r, v, corner_of(r, type, i), device);
  return forms;
}

/* The first rule with a corner that its variant does not support, or NULL. */
static const bqr_rule *broken_rule(const bqr_table *table, const bqr_device *device) {
  for (const bqr_rule *r = table->rules; r < table->rules + table->num_rules; r++)
    for (int i = 0; i < CORNERS * 4; i++) {
      batchqr_type type = (batchqr_type)(i / CORNERS);
      if (!((r->types & device->types) >> type & 1) || !r->family) continue;
      bqr_problem problem = corner_of(r, type, i % CORNERS);
      bool exists = r->op != BATCHQR_ORGQR || problem.n <= problem.m;
      unsigned promised = forms_promised(r, type, device);
      if (exists && (!promised || promised & ~forms_served(r, r->variant, problem, device))) return r;
    }
  return NULL;
}

static batchqr_status parse(const char *text, bqr_table **table, bqr_error *error) {
  return bqr_table_parse(&fake_usual, "t.tune", text, strlen(text), table, error);
}

START_TEST(a_rule_too_wide_is_found) {
  bqr_table *t;
  bqr_error error;
  bqr_device device = device_of(90);
  ck_assert_int_eq(parse("batchqr-tuning 1\n"
                         "geqrf d 1..32 1..8 1.. geqrf_new n8 1\n"
                         "geqrf d 1..64 1..16 1.. geqrf_new n16 1\n",
                         &t, &error),
                   BATCHQR_SUCCESS);
  ck_assert_ptr_null(broken_rule(t, &device));
  device.sm = 75;
  ck_assert_ptr_eq(broken_rule(t, &device), t->rules);
  bqr_table_free(t);
  device.sm = 90;
  ck_assert_int_eq(parse("batchqr-tuning 1\n"
                         "geqrf d 1..32 1..8 1.. geqrf_new n8 1\n"
                         "geqrf s 1..32 1.. 1.. geqrf_new n16 1\n",
                         &t, &error),
                   BATCHQR_SUCCESS);
  ck_assert_ptr_eq(broken_rule(t, &device), &t->rules[1]);
  bqr_table_free(t);
}
END_TEST

START_TEST(built_in_tables_keep_their_promises) {
  int previous = 0;
  ck_assert_int_ge(bqr_num_builtin_tables(), 1);
  for (int i = 0; i < bqr_num_builtin_tables(); i++) {
    const char *name = bqr_builtin_table_name(i), *text = bqr_builtin_table_text(i);
    int sm = bqr_builtin_table_sm(i);
    ck_assert_int_gt(sm, previous);
    previous = sm;
    bqr_table *table;
    bqr_error error;
    batchqr_status status = bqr_table_parse(bqr_registry_builtin(), name, text, strlen(text), &table, &error);
    ck_assert_msg(status == BATCHQR_SUCCESS, "%s", error.text);
    bqr_device device = device_of(sm);
    device.types = BQR_CUDA_TYPES;
    const bqr_rule *broken = broken_rule(table, &device);
    if (broken) ck_abort_msg("%s:%d: the variant does not support a corner of its range", name, broken->line);
    bqr_table_free(table);
  }
}
END_TEST

START_TEST(a_device_gets_its_built_in_table) {
  bqr_table *table;
  bqr_error error;
  ck_assert_int_eq(bqr_table_builtin(bqr_registry_builtin(), 90, &table, &error), BATCHQR_SUCCESS);
  ck_assert_ptr_nonnull(table);
  ck_assert_str_eq(table->name, "sm_90.tune");
  ck_assert_int_eq(table->sm, 90);
  bqr_table_free(table);
  ck_assert_int_eq(bqr_table_builtin(bqr_registry_builtin(), 35, &table, &error), BATCHQR_SUCCESS);
  ck_assert_ptr_null(table);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tuning rules");
  TCase *tests = fake_case(suite, "built-in tables");
  tcase_add_test(tests, no_cost_is_left_out);
  tcase_add_test(tests, a_rule_too_wide_is_found);
  tcase_add_test(tests, built_in_tables_keep_their_promises);
  tcase_add_test(tests, a_device_gets_its_built_in_table);
  return suite_run(suite);
}
