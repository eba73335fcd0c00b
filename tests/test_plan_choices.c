/* SPDX-License-Identifier: BSD-3-Clause */
/* Which family serves a batch of one size: heuristic, tables, forced choices, compute modes. */
#include "fakes.h"
#include "inspect.h"

/* n16 with members that fill it, n8 with none. */
static bool prefers_wide(const bqr_problem *p, const bqr_variant *v, const bqr_device *device) {
  (void)device;
  return v == &geqrf_new.variants[1] && p->n > 4;
}

START_TEST(a_uniform_batch_is_one_group) {
  batchqr_batch batch = uniform(32, 8, 10000);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_str_eq(plan->description, "geqrf 10000 x (32x8) d: geqrf_new n8 by heuristic; workspace 0 B");
  ck_assert_int_eq(plan->num_groups, 1);
  const bqr_group *g = plan->groups;
  ck_assert(g->problem.uniform && !g->sized && g->list < 0);
  ck_assert_int_eq(g->problem.count, 10000);
  ck_assert_ptr_null(plan->image);
  ck_assert_uint_eq(batchqr_plan_workspace(plan), 0);
  ck_assert_int_eq(batchqr_plan_launches(plan), 1);
  bqr_group_info group = bqr_plan_group(plan, 0);
  ck_assert_int_eq(bqr_plan_num_groups(plan), 1);
  ck_assert_str_eq(group.family, "geqrf_new");
  ck_assert_str_eq(group.variant, "n8");
  ck_assert_str_eq(group.source, "heuristic");
  ck_assert(group.op == BATCHQR_GEQRF && group.members == 10000 && group.m == 32 && group.n == 8);
  batchqr_plan_destroy(plan);
}
END_TEST

START_TEST(the_first_that_supports_is_the_heuristic) {
  batchqr_batch batch = uniform(32, 9, 1);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x9) d: geqrf_new n16 by heuristic; workspace 0 B");
  batch = uniform(65, 9, 1);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (65x9) d: geqrf_any any by heuristic; workspace 0 B");
  fake.device.sm = 80;
  batch = uniform(32, 8, 1);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x8) d: geqrf_any any by heuristic; workspace 0 B");
}
END_TEST

START_TEST(families_say_what_they_are_good_at) {
  geqrf_new.prefers = prefers_wide;
  batchqr_batch batch = uniform(32, 5, 1);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x5) d: geqrf_new n16 by heuristic; workspace 0 B");
  batch = uniform(32, 4, 1);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x4) d: geqrf_any any by heuristic; workspace 0 B");
  geqrf_any.sm_min = 91; /* better than none */
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x4) d: geqrf_new n8 by heuristic; workspace 0 B");
  geqrf_any.sm_min = 0;
  geqrf_new.prefers = NULL;
}
END_TEST

START_TEST(types_and_backends_must_fit) {
  batchqr_batch batch = uniform(32, 8, 1);
  geqrf_new.types = 1 << BATCHQR_S;
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x8) d: geqrf_any any by heuristic; workspace 0 B");
  batch.type = BATCHQR_S;
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x8) s: geqrf_new n8 by heuristic; workspace 0 B");
  geqrf_new.types = BQR_ALL_TYPES;
  geqrf_any.backend = BATCHQR_BACKEND_CPU;
  batch = uniform(100, 8, 1);
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED,
                 "no kernel family of this build does geqrf of 100 x 8 d on Made-up 90");
  fake.device.types = 1 << BATCHQR_S | 1 << BATCHQR_Z; /* a build for these alone */
  batch = uniform(32, 8, 1);
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED,
                 "this build has no GPU kernels for type d (Meson's option types)");
  batch.type = BATCHQR_Z;
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x8) z: geqrf_new n8 by heuristic; workspace 0 B");
}
END_TEST

START_TEST(empty_batches_do_nothing) {
  batchqr_batch batch = uniform(32, 8, 0);
  for (int op = BATCHQR_GEQRF; op <= BATCHQR_GELS; op++) {
    batchqr_plan_t plan = plan_of((batchqr_op)op, &batch);
    ck_assert(plan->num_groups == 0 && plan->workspace_bytes == 0 && plan->largest[BQR_A] == 0);
    bqr_plan_free(plan);
  }
  expect_text(BATCHQR_QR, &batch, "qr of no members: nothing to do");
  batch = host_sizes(NULL, NULL, 0);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf of no members: nothing to do");
}
END_TEST

START_TEST(empty_members_are_launched) {
  batchqr_batch batch = uniform(0, 5, 7);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 7 x (0x5) d: geqrf_new n8 by heuristic; workspace 0 B");
}
END_TEST

START_TEST(ormqr_names_its_case) {
  batchqr_batch batch = uniform(32, 8, 3);
  batch.k = 5;
  expect_text(BATCHQR_ORMQR, &batch,
              "ormqr 3 x (32x8, k 5) d left: ormqr_any any by heuristic; workspace 0 B");
  batch.side = BATCHQR_RIGHT;
  batch.trans = BATCHQR_CONJ_TRANS;
  expect_text(
      BATCHQR_ORMQR, &batch,
      "ormqr 3 x (32x8, k 5) d right conjugate-transposed: ormqr_any any by heuristic; workspace 0 B");
  set_table("batchqr-tuning 1\n"
            "ormqr d 32 5 1.. ormqr_any any 1\n"
            "ormqr d 8 5 1.. ormqr_any any 1\n",
            90);
  expect_text(
      BATCHQR_ORMQR, &batch,
      "ormqr 3 x (32x8, k 5) d right conjugate-transposed: ormqr_any any from t.tune:3; workspace 0 B");
  batch.side = BATCHQR_LEFT;
  batch.trans = BATCHQR_NO_TRANS;
  expect_text(BATCHQR_ORMQR, &batch,
              "ormqr 3 x (32x8, k 5) d left: ormqr_any any from t.tune:2; workspace 0 B");
  drop_table();
}
END_TEST

START_TEST(the_first_rule_that_fits_wins) {
  set_table("batchqr-tuning 1\n"
            "geqrf s 1.. 1.. 1.. geqrf_new n8 1\n"
            "geqrf d 1.. 1.. 1.. geqrf_new n8 1\n" /* does not support all that it matches */
            "geqrf d 33..40 1..8 100.. geqrf_any any 1\n"
            "geqrf d 33.. 1..8 1.. geqrf_new n16 1\n",
            90);
  batchqr_batch batch = uniform(32, 8, 100);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 100 x (32x8) d: geqrf_new n8 from t.tune:3; workspace 0 B");
  batch = uniform(33, 8, 100);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 100 x (33x8) d: geqrf_any any from t.tune:4; workspace 0 B");
  batch = uniform(33, 8, 99);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 99 x (33x8) d: geqrf_new n16 from t.tune:5; workspace 0 B");
  batch = uniform(41, 8, 100);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 100 x (41x8) d: geqrf_new n16 from t.tune:5; workspace 0 B");
  batch = uniform(41, 9, 100);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 100 x (41x9) d: geqrf_new n16 by heuristic; workspace 0 B");
  drop_table();
}
END_TEST

START_TEST(a_table_of_another_architecture_is_named) {
  set_table("batchqr-tuning 1\ngeqrf d 1.. 1.. 1.. geqrf_any any 1\n", 80);
  batchqr_batch batch = uniform(32, 8, 100);
  expect_text(
      BATCHQR_GEQRF, &batch,
      "geqrf 100 x (32x8) d: geqrf_any any from t.tune:2 (there is no table for sm_90); workspace 0 B");
  drop_table();
}
END_TEST

START_TEST(a_forced_choice_beats_the_table) {
  set_table("batchqr-tuning 1\ngeqrf d 1.. 1.. 1.. geqrf_any any 1\n", 90);
  batchqr_batch batch = uniform(32, 8, 100);
  fake.forced[BATCHQR_GEQRF] = (bqr_forced){&geqrf_new, 1};
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 100 x (32x8) d: geqrf_new n16, forced; workspace 0 B");
  fake.forced[BATCHQR_GEQRF].variant = -1;
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 100 x (32x8) d: geqrf_new n8, forced; workspace 0 B");
  batch = uniform(65, 8, 100);
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED,
                 "geqrf_new was forced and does not support geqrf of 65 x 8");
  fake.forced[BATCHQR_GEQRF].variant = 0;
  expect_failure(BATCHQR_QR, &batch, BATCHQR_UNSUPPORTED,
                 "geqrf_new n8 was forced and does not support geqrf of 65 x 8");
  fake.forced[BATCHQR_QR] = (bqr_forced){&qr_tiny, -1};
  expect_failure(BATCHQR_QR, &batch, BATCHQR_UNSUPPORTED,
                 "qr_tiny was forced and does not support qr of 65 x 8");
  drop_table();
}
END_TEST

START_TEST(compute_modes_permit_and_do_not_oblige) {
  static const bqr_family *const families[] = {&geqrf_half, &geqrf_emulated, &geqrf_any, NULL};
  static const bqr_registry modes = {families, fake_none, bqr_builtin_operations};
  static const char *const chosen[] = {"geqrf_emulated", "geqrf_any", "geqrf_emulated", "geqrf_half"};
  fake.planner.registry = &modes;
  batchqr_batch batch = uniform(32, 8, 1);
  for (int mode = 0; mode < 4; mode++) {
    fake.planner.compute = (batchqr_compute)mode;
    batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
    ck_assert_str_eq(plan->groups[0].family->name, chosen[mode]);
    ck_assert_int_eq(plan->groups[0].problem.compute, mode);
    bqr_plan_free(plan);
  }
  fake.planner.registry = &fake_usual;
  fake.planner.compute = BATCHQR_COMPUTE_EMULATED;
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 1 x (32x8) d: geqrf_new n8 by heuristic, native, not emulated; workspace 0 B");
  fake.planner.compute = BATCHQR_COMPUTE_HALF;
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 1 x (32x8) d: geqrf_new n8 by heuristic, native, not half; workspace 0 B");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_choices");
  TCase *tests = fake_case(suite, "choices");
  tcase_add_test(tests, a_uniform_batch_is_one_group);
  tcase_add_test(tests, the_first_that_supports_is_the_heuristic);
  tcase_add_test(tests, families_say_what_they_are_good_at);
  tcase_add_test(tests, types_and_backends_must_fit);
  tcase_add_test(tests, empty_batches_do_nothing);
  tcase_add_test(tests, empty_members_are_launched);
  tcase_add_test(tests, ormqr_names_its_case);
  tcase_add_test(tests, the_first_rule_that_fits_wins);
  tcase_add_test(tests, a_table_of_another_architecture_is_named);
  tcase_add_test(tests, a_forced_choice_beats_the_table);
  tcase_add_test(tests, compute_modes_permit_and_do_not_oblige);
  return suite_run(suite);
}
