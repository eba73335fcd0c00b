/* SPDX-License-Identifier: BSD-3-Clause */
/* How much workspace plans take: limits, copies for matrices that are not aligned, large members. */
#include "arguments.h"
#include "fakes.h"
#include "inspect.h"

#include <stdio.h>
#include <string.h>

/* --- made-up families */

/* Bytes: `fast` 4096 for each member, its second variant a quarter, `slow` 512 in all. */
static size_t fast_workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)device;
  return (size_t)p->count * (v->cols == 1 ? 4096 : 1024);
}
static size_t slow_workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)p, (void)v, (void)device;
  return 512;
}
/* Twice as much where there have to be copies. */
static size_t copying_workspace(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)v, (void)device;
  return p->aligned ? 256 : 512;
}
static bool prefers_first(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)p, (void)device;
  return v->cols == 1;
}

static const bqr_variant two[] = {{.name = "cols1", .cols = 1}, {.name = "cols2", .cols = 2}};
static bqr_family fast, slow, copying;
static const bqr_family *const limited[] = {&slow, &fast, NULL};
static const bqr_family *const aligning[] = {&copying,       &ormqr_any, &copy_r_any,
                                             &transpose_any, &trsm_any,  NULL};
static const bqr_registry limited_registry = {limited, fake_none, bqr_builtin_operations};
static const bqr_registry aligning_registry = {aligning, fake_none, bqr_builtin_operations};

static bool never(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)p, (void)v, (void)device;
  return false;
}
static bool always(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)p, (void)v, (void)device;
  return true;
}

static void set_up(void) {
  slow = fast = copying = geqrf_any;
  fast.name = "geqrf_fast", slow.name = "geqrf_slow", copying.name = "geqrf_copying";
  fast.variants = two, fast.nvariants = 2;
  slow.variants = copying.variants = two, slow.nvariants = copying.nvariants = 1;
  fast.supports = slow.supports = copying.supports = always;
  fast.prefers = prefers_first, slow.prefers = never;
  fast.workspace = fast_workspace, slow.workspace = slow_workspace, copying.workspace = copying_workspace;
  copying.trusts_alignment = true;
  fake.planner.registry = &limited_registry;
}

/* --- limits */

START_TEST(a_limit_is_kept) {
  batchqr_batch batch = uniform(8, 8, 2);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 2 x (8x8) d: geqrf_fast cols1 by heuristic; workspace 8192 B");
  fake.planner.workspace_limit = 8192;
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 2 x (8x8) d: geqrf_fast cols1 by heuristic; workspace 8192 B");
  fake.planner.workspace_limit = 8191; /* the other variant of what is good, not what comes first */
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 2 x (8x8) d: geqrf_fast cols2 by heuristic; workspace 2048 B");
  fake.planner.workspace_limit = 2047;
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 2 x (8x8) d: geqrf_slow cols1 by heuristic; workspace 512 B");
  fake.planner.workspace_limit = 511;
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED,
                 "the limit of the workspace is 511 bytes, and this batch takes 512 at least");
}
END_TEST

/* A line of a table that takes too much is passed over. */
START_TEST(tables_keep_to_limits) {
  static const char text[] = "batchqr-tuning 1\n"
                             "geqrf d 1.. 1.. 1.. geqrf_fast cols1 1\n"
                             "geqrf d 1.. 1.. 1.. geqrf_slow cols1 1\n";
  bqr_table *table;
  ck_assert_int_eq(bqr_table_parse(&limited_registry, "t.tune", text, strlen(text), &table, &fake.error), 0);
  fake.planner.table = table;
  batchqr_batch batch = uniform(8, 8, 2);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 2 x (8x8) d: geqrf_fast cols1 from t.tune:2; workspace 8192 B");
  fake.planner.workspace_limit = 8191;
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 2 x (8x8) d: geqrf_slow cols1 from t.tune:3; workspace 512 B");
  bqr_table_free(table);
}
END_TEST

START_TEST(forced_choices_take_what_they_take) {
  batchqr_batch batch = uniform(8, 8, 2);
  fake.forced[bqr_forced_index(BATCHQR_GEQRF, BQR_ROLE_STEP)] = (bqr_forced){&fast, 0};
  fake.planner.workspace_limit = 8191;
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED,
                 "the limit of the workspace is 8191 bytes, and this batch takes 8192 at least");
}
END_TEST

/* --- alignment */

static const struct alignment_case {
  batchqr_type type;
  int ld;
  int64_t stride, count;
  int unaligned;
  bool aligned;
} cases[] = {
    {BATCHQR_D, 8, 64, 2, 0, true},  {BATCHQR_D, 9, 64, 2, 0, false},  {BATCHQR_D, 8, 65, 2, 0, false},
    {BATCHQR_D, 8, 65, 1, 0, true},  {BATCHQR_D, 8, 64, 2, 1, false},  {BATCHQR_S, 10, 64, 1, 0, false},
    {BATCHQR_S, 12, 64, 1, 0, true}, {BATCHQR_S, 12, 98, 2, 0, false}, {BATCHQR_Z, 9, 73, 2, 0, true},
    {BATCHQR_C, 9, 72, 1, 0, false},
};

START_TEST(columns_are_aligned_by_their_storage) {
  fake.planner.registry = &aligning_registry;
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    const struct alignment_case *c = &cases[i];
    batchqr_batch batch = uniform(8, 8, c->count);
    batch.type = c->type;
    batch.a.ld = c->ld, batch.a.stride = c->stride;
    batch.unaligned = c->unaligned;
    batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
    ck_assert_msg(plan->groups[0].problem.aligned == c->aligned, "case %d", (int)i);
    ck_assert(plan->aligned[BQR_A] == c->aligned && !plan->aligned[BQR_C]);
    ck_assert_uint_eq(plan->workspace_bytes, c->aligned ? 256 : 512);
    bqr_plan_free(plan);
  }
}
END_TEST

START_TEST(addresses_are_what_plans_rely_on) {
  static _Alignas(16) double memory[64];
  fake.planner.registry = &aligning_registry;
  batchqr_batch batch = uniform(2, 2, 1);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  batchqr_operands at = {.a = memory, .tau = memory + 33};
  ck_assert_int_eq(bqr_check_operands(plan, &at, BQR_PLANNED, &fake.error), BATCHQR_SUCCESS);
  ck_assert(bqr_addresses_aligned(&at));
  at.a = memory + 1;
  char text[200];
  snprintf(text, sizeof text,
           "operands.a = %p is not aligned to 16 bytes: plans with batch.unaligned = 1 take such addresses",
           at.a);
  ck_assert_int_eq(bqr_check_operands(plan, &at, BQR_PLANNED, &fake.error), BATCHQR_INVALID_ARGUMENT);
  ck_assert_str_eq(fake.error.text, text);
  ck_assert(!bqr_addresses_aligned(&at));
  bqr_plan_free(plan);
  batch.unaligned = 1;
  plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_int_eq(bqr_check_operands(plan, &at, BQR_PLANNED, &fake.error), BATCHQR_SUCCESS);
  bqr_plan_free(plan);
}
END_TEST

/* Of a program: its own copies are aligned if their rows are so many, the caller's A only where it is used.
 */
START_TEST(copies_are_aligned_by_their_rows) {
  fake.planner.registry = &aligning_registry;
  batchqr_batch wide = uniform(4, 6, 1);
  wide.k = 1;
  wide.c.ld = 6;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &wide);
  for (int i = 0; i < plan->num_groups; i++)
    if (plan->groups[i].problem.op == BATCHQR_GEQRF) ck_assert(plan->groups[i].problem.aligned);
  ck_assert(!plan->aligned[BQR_A]);
  bqr_plan_free(plan);
}
END_TEST

/* --- the families of this build */

/* As multiples of the matrices, on an H200. */
static const struct bound {
  batchqr_type type;
  batchqr_compute compute;
  int m, n, count;
  double most;
} bounds[] = {
    {BATCHQR_D, BATCHQR_COMPUTE_NATIVE, 8192, 8192, 1, 0.25},
    {BATCHQR_D, BATCHQR_COMPUTE_NATIVE, 32768, 32768, 1, 0.25},
    {BATCHQR_S, BATCHQR_COMPUTE_NATIVE, 32768, 32768, 1, 0.25},
    {BATCHQR_D, BATCHQR_COMPUTE_NATIVE, 524288, 1024, 1, 0.25},
    {BATCHQR_D, BATCHQR_COMPUTE_NATIVE, 4096, 4096, 2, 0.25},
    {BATCHQR_S, BATCHQR_COMPUTE_EMULATED, 8192, 8192, 1, 1},
    {BATCHQR_S, BATCHQR_COMPUTE_EMULATED, 32768, 32768, 1, 1},
    {BATCHQR_D, BATCHQR_COMPUTE_EMULATED, 16384, 16384, 1, 1},
    {BATCHQR_D, BATCHQR_COMPUTE_EMULATED, 32768, 32768, 1, 1},
    {BATCHQR_S, BATCHQR_COMPUTE_EMULATED, 524288, 1024, 1, 1},
    {BATCHQR_S, BATCHQR_COMPUTE_HALF, 32768, 32768, 1, 1},
};

START_TEST(large_members_take_little) {
  if (!bqr_family_find("geqrf_large")) return;
  fake.planner.registry = bqr_registry_builtin();
  for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) {
    const struct bound *b = &bounds[i];
    batchqr_batch batch = batchqr_batch_packed(BATCHQR_GEQRF, b->type, b->m, b->n, 0, b->count);
    fake.planner.compute = b->compute;
    const double bytes = (double)b->m * b->n * b->count * (double)bqr_type_bytes(b->type);
    for (int part = 1; part <= 32; part *= 2) {
      fake.planner.workspace_limit = part == 1 ? 0 : (size_t)(bytes / part);
      batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
      const double most = part == 1 || b->most < 1.0 / part ? b->most : 1.0 / part;
      ck_assert_msg((double)plan->workspace_bytes <= most * bytes, "%d x %d: %zu bytes of %g", b->m, b->n,
                    plan->workspace_bytes, bytes);
      if (part <= 8) ck_assert_str_eq(plan->groups[0].family->name, "geqrf_large");
      bqr_plan_free(plan);
    }
    fake.planner.workspace_limit = 0;
    batch.unaligned = 1;
    batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
    ck_assert((double)plan->workspace_bytes > bytes / 2); /* one member's copy at least */
    bqr_plan_free(plan);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_workspace");
  TCase *tests = fake_case(suite, "workspace");
  tcase_add_checked_fixture(tests, set_up, NULL);
  tcase_add_test(tests, a_limit_is_kept);
  tcase_add_test(tests, tables_keep_to_limits);
  tcase_add_test(tests, forced_choices_take_what_they_take);
  tcase_add_test(tests, columns_are_aligned_by_their_storage);
  tcase_add_test(tests, addresses_are_what_plans_rely_on);
  tcase_add_test(tests, copies_are_aligned_by_their_rows);
  tcase_add_test(tests, large_members_take_little);
  return suite_run(suite);
}
