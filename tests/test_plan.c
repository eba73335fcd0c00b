/* SPDX-License-Identifier: BSD-3-Clause */
/* The planner, with made-up families and devices: no GPU, and nothing computed. */
#include "choose.h"
#include "device.h"
#include "inspect.h"
#include "plan.h"
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- made-up families: a variant serves m <= p[0], n <= p[1], m * n <= p[2], where these are not 0 */

static bool within(const batchqr_problem *p, const batchqr_variant *v, const batchqr_device *device) {
  (void)device;
  return (v->p[0] == 0 || p->m <= v->p[0]) && (v->p[1] == 0 || p->n <= v->p[1]) &&
         (v->p[2] == 0 || (int64_t)p->m * p->n <= v->p[2]);
}

/* 10 bytes for each row of the largest member; with p[3] = 1 only. */
static size_t workspace(const batchqr_problem *p, const batchqr_variant *v, const batchqr_device *device) {
  (void)device;
  return v->p[3] == 2 ? SIZE_MAX : v->p[3] == 1 ? 10 * (size_t)p->m : 0;
}

/* What launches were given. */
enum { MOST_LAUNCHES = 64 };
static struct {
  batchqr_problem problem;
  batchqr_args args;
  const batchqr_variant *variant;
} launched[MOST_LAUNCHES];
static int num_launched, num_prepared;
static batchqr_status launch_status;

static batchqr_status launch(const batchqr_problem *p, const batchqr_variant *v, const batchqr_device *device,
                             const batchqr_args *args, batchqr_stream stream) {
  (void)device, (void)stream;
  launched[num_launched].problem = *p;
  launched[num_launched].variant = v;
  launched[num_launched++].args = *args;
  return launch_status;
}

static batchqr_status prepare(const batchqr_problem *p, const batchqr_variant *v,
                              const batchqr_device *device) {
  (void)p, (void)v, (void)device;
  num_prepared++;
  return BATCHQR_SUCCESS;
}

static const batchqr_variant small_variants[] = {{"n8", {32, 8}}, {"n16", {64, 16}}};
static const batchqr_variant area_variants[] = {{"area64", {0, 0, 64}}};
static const batchqr_variant any_variants[] = {{"any", {0}}};
static const batchqr_variant work_variants[] = {{"work", {0, 0, 0, 1}}};
static const batchqr_variant huge_variants[] = {{"huge", {0, 0, 0, 2}}};
static const batchqr_variant tiny_variants[] = {{"tiny", {4, 4}}};

#define FAKE(NAME, OP, VARIANTS)                                                                             \
  .name = NAME, .op = OP, .types = BATCHQR_ALL_TYPES, .variants = VARIANTS,                                  \
  .nvariants = sizeof VARIANTS / sizeof VARIANTS[0], .launches = 1, .supports = within,                      \
  .workspace = workspace, .launch = launch, .prepare = prepare
/* States are counted; n8 has none that can be made. */
static int states;
static batchqr_status open_state(const batchqr_problem *p, const batchqr_variant *v,
                                 const batchqr_device *device, void **state) {
  (void)p, (void)device;
  if (v == &small_variants[0]) return BATCHQR_OUT_OF_MEMORY;
  states++;
  *state = &states;
  return BATCHQR_SUCCESS;
}
static void close_state(void *state) { --*(int *)state; }

/* n16 with members that fill it, n8 with none. */
static bool prefers_wide(const batchqr_problem *p, const batchqr_variant *v, const batchqr_device *device) {
  (void)device;
  return v == &small_variants[1] && p->n > 4;
}

static batchqr_family geqrf_new = {FAKE("geqrf_new", BATCHQR_GEQRF, small_variants), .sm_min = 90};
static batchqr_family geqrf_any = {FAKE("geqrf_any", BATCHQR_GEQRF, any_variants)};
static batchqr_family geqrf_area = {FAKE("geqrf_area", BATCHQR_GEQRF, area_variants)};
static batchqr_family geqrf_huge = {FAKE("geqrf_huge", BATCHQR_GEQRF, huge_variants)};
static batchqr_family geqrf_emulated = {FAKE("geqrf_emulated", BATCHQR_GEQRF, any_variants),
                                        .compute = BATCHQR_COMPUTE_EMULATED};
static batchqr_family geqrf_half = {FAKE("geqrf_half", BATCHQR_GEQRF, any_variants),
                                    .compute = BATCHQR_COMPUTE_HALF};
static batchqr_family orgqr_any = {FAKE("orgqr_any", BATCHQR_ORGQR, work_variants)};
static batchqr_family ormqr_any = {FAKE("ormqr_any", BATCHQR_ORMQR, any_variants)};
static batchqr_family copy_r_any = {FAKE("copy_r_any", BATCHQR_COPY_R, any_variants)};
static batchqr_family copy_v_any = {FAKE("copy_v_any", BATCHQR_COPY_V, any_variants)};
static batchqr_family upright_any = {FAKE("upright_any", BATCHQR_UPRIGHT, any_variants)};
static batchqr_family trsm_any = {FAKE("trsm_any", BATCHQR_TRSM, any_variants)};
static batchqr_family qr_tiny = {FAKE("qr_tiny", BATCHQR_QR, tiny_variants)};

static batchqr_family *const all[] = {&geqrf_new, &geqrf_any,   &geqrf_area,     &geqrf_huge, &geqrf_half,
                                      &orgqr_any, &ormqr_any,   &geqrf_emulated, &copy_r_any, &copy_v_any,
                                      &qr_tiny,   &upright_any, &trsm_any};
enum { NUM_ALL = sizeof all / sizeof all[0] };

static const char *const none[] = {NULL};
static const batchqr_family *const usual_families[] = {&geqrf_new, &geqrf_any,  &orgqr_any,  &ormqr_any,
                                                       &qr_tiny,   &copy_r_any, &copy_v_any, &upright_any,
                                                       &trsm_any,  NULL};
static const bqr_registry usual = {usual_families, none};

static batchqr_device device;
static bqr_planner planner;
static bqr_forced forced[BATCHQR_NUM_OPS];
static bqr_error error;

/* An sm_90 GPU that is not there, and no table. */
static void set_up(void) {
  device = (batchqr_device){.backend = BATCHQR_BACKEND_CUDA,
                            .sm = 90,
                            .multiprocessors = 132,
                            .smem_per_block = 232448,
                            .smem_per_sm = 233472,
                            .threads = 1,
                            .name = "Made-up 90"};
  for (int i = 0; i < NUM_ALL; i++) all[i]->backend = BATCHQR_BACKEND_CUDA;
  geqrf_new.sm_min = 90;
  memset(forced, 0, sizeof forced);
  planner = (bqr_planner){.registry = &usual, .device = &device, .forced = forced};
  error.text[0] = '\0';
  num_launched = num_prepared = 0;
  launch_status = BATCHQR_SUCCESS;
}

/* The same families on the CPU, where plans can be executed. */
static void move_to_cpu(void) {
  bqr_device_cpu(&device, 3);
  for (int i = 0; i < NUM_ALL; i++) all[i]->backend = BATCHQR_BACKEND_CPU;
  geqrf_new.sm_min = 0;
}

static batchqr_plan_t plan_of(batchqr_op op, const batchqr_batch *batch) {
  batchqr_plan_t plan;
  batchqr_status status = bqr_plan_new(&planner, op, batch, &plan, &error);
  ck_assert_msg(status == BATCHQR_SUCCESS, "%s", error.text);
  return plan;
}

static void expect_failure(batchqr_op op, const batchqr_batch *batch, batchqr_status status,
                           const char *text) {
  batchqr_plan_t plan;
  ck_assert_int_eq(bqr_plan_new(&planner, op, batch, &plan, &error), status);
  ck_assert_ptr_null(plan);
  ck_assert_str_eq(error.text, text);
}

static void expect_text(batchqr_op op, const batchqr_batch *batch, const char *text) {
  batchqr_plan_t plan = plan_of(op, batch);
  ck_assert_str_eq(plan->description, text);
  bqr_plan_free(plan);
}

static batchqr_batch uniform(int m, int n, int64_t count) {
  return (batchqr_batch){.type = BATCHQR_D,
                         .count = count,
                         .m = m,
                         .n = n,
                         .a = {.ld = m, .stride = (int64_t)m * n},
                         .c = {.ld = m, .stride = (int64_t)m * n},
                         .r = {.ld = n, .stride = (int64_t)n * n},
                         .stride_tau = n};
}

static batchqr_batch host_sizes(const int *m, const int *n, int64_t count) {
  return (batchqr_batch){.type = BATCHQR_D,
                         .layout = BATCHQR_POINTERS,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = count,
                         .m_array = m,
                         .n_array = n,
                         .a = {.ld = 1000},
                         .c = {.ld = 1000},
                         .r = {.ld = 1000}};
}

/* --- one size */

START_TEST(a_uniform_batch_is_one_group) {
  batchqr_batch batch = uniform(32, 8, 10000);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_str_eq(plan->description, "geqrf 10000 x (32x8) d: geqrf_new n8 by heuristic; workspace 0 B");
  ck_assert_int_eq(plan->num_groups, 1);
  const bqr_group *g = plan->groups;
  ck_assert(g->problem.uniform && !g->sized && !g->thin && g->list < 0);
  ck_assert_int_eq(g->problem.count, 10000);
  ck_assert_ptr_null(plan->image);
  ck_assert_uint_eq(batchqr_plan_workspace(plan), 0);
  ck_assert_int_eq(batchqr_plan_launches(plan), 1);
  bqr_step_info step = bqr_plan_step(plan, 0);
  ck_assert_int_eq(bqr_plan_num_steps(plan), 1);
  ck_assert_str_eq(step.family, "geqrf_new");
  ck_assert_str_eq(step.variant, "n8");
  ck_assert_str_eq(step.source, "heuristic");
  ck_assert(step.op == BATCHQR_GEQRF && step.members == 10000 && step.m == 32 && step.n == 8);
  batchqr_plan_destroy(plan);
}
END_TEST

START_TEST(the_first_that_supports_is_the_heuristic) {
  batchqr_batch batch = uniform(32, 9, 1);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (32x9) d: geqrf_new n16 by heuristic; workspace 0 B");
  batch = uniform(65, 9, 1);
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 1 x (65x9) d: geqrf_any any by heuristic; workspace 0 B");
  device.sm = 80;
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
  geqrf_new.types = BATCHQR_ALL_TYPES;
  geqrf_any.backend = BATCHQR_BACKEND_CPU;
  batch = uniform(100, 8, 1);
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED,
                 "no kernel family of this build does geqrf of 100 x 8 d on Made-up 90");
}
END_TEST

START_TEST(empty_batches_do_nothing) {
  batchqr_batch batch = uniform(32, 8, 0);
  for (int op = BATCHQR_GEQRF; op <= BATCHQR_GELS; op++) {
    batchqr_plan_t plan = plan_of((batchqr_op)op, &batch);
    ck_assert(plan->num_groups == 0 && plan->workspace_bytes == 0 && !plan->touches[BQR_A]);
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
}
END_TEST

/* --- tables, forced choices, compute modes */

static void set_table(const char *text, int sm) {
  bqr_table *table;
  batchqr_status status = bqr_table_parse(&usual, "t.tune", text, strlen(text), &table, &error);
  ck_assert_msg(status == BATCHQR_SUCCESS, "%s", error.text);
  table->sm = sm;
  planner.table = table;
}

static void drop_table(void) { bqr_table_free((bqr_table *)planner.table); }

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
  forced[BATCHQR_GEQRF] = (bqr_forced){&geqrf_new, 1};
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 100 x (32x8) d: geqrf_new n16, forced; workspace 0 B");
  forced[BATCHQR_GEQRF].variant = -1;
  expect_text(BATCHQR_GEQRF, &batch, "geqrf 100 x (32x8) d: geqrf_new n8, forced; workspace 0 B");
  batch = uniform(65, 8, 100);
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED,
                 "geqrf_new was forced and does not support geqrf of 65 x 8");
  forced[BATCHQR_GEQRF].variant = 0;
  expect_failure(BATCHQR_QR, &batch, BATCHQR_UNSUPPORTED,
                 "geqrf_new n8 was forced and does not support geqrf of 65 x 8");
  forced[BATCHQR_QR] = (bqr_forced){&qr_tiny, -1};
  expect_failure(BATCHQR_QR, &batch, BATCHQR_UNSUPPORTED,
                 "qr_tiny was forced and does not support qr of 65 x 8");
  drop_table();
}
END_TEST

START_TEST(compute_modes_permit_and_do_not_oblige) {
  static const batchqr_family *const families[] = {&geqrf_half, &geqrf_emulated, &geqrf_any, NULL};
  static const bqr_registry modes = {families, none};
  static const char *const chosen[] = {"geqrf_emulated", "geqrf_any", "geqrf_emulated", "geqrf_half"};
  planner.registry = &modes;
  batchqr_batch batch = uniform(32, 8, 1);
  for (int mode = 0; mode < 4; mode++) {
    planner.compute = (batchqr_compute)mode;
    batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
    ck_assert_str_eq(plan->groups[0].family->name, chosen[mode]);
    ck_assert_int_eq(plan->groups[0].problem.compute, mode);
    bqr_plan_free(plan);
  }
  planner.registry = &usual;
  planner.compute = BATCHQR_COMPUTE_EMULATED;
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 1 x (32x8) d: geqrf_new n8 by heuristic, native, not emulated; workspace 0 B");
  planner.compute = BATCHQR_COMPUTE_HALF;
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 1 x (32x8) d: geqrf_new n8 by heuristic, native, not half; workspace 0 B");
}
END_TEST

/* --- many sizes */

/* Whether the group's members are those of the sizes, in this order. */
static void expect_members(batchqr_plan_t plan, int group, const int *members, int count) {
  const bqr_group *g = &plan->groups[group];
  ck_assert_int_eq(g->problem.count, count);
  ck_assert_int_ge(g->list, 0);
  for (int i = 0; i < count; i++) ck_assert_int_eq(plan->lists[g->list + i], members[i]);
}

START_TEST(members_of_one_choice_are_one_group) {
  static const int m[] = {3, 65, 32, 3, 64, 100, 3, 65}, n[] = {3, 1, 8, 2, 16, 70, 3, 1};
  batchqr_batch batch = host_sizes(m, n, 8);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_str_eq(plan->description, "geqrf 3 x (<=100x70) d: geqrf_any any by heuristic; workspace 0 B\n"
                                      "geqrf 1 x (64x16) d: geqrf_new n16 by heuristic; workspace 0 B\n"
                                      "geqrf 4 x (<=32x8) d: geqrf_new n8 by heuristic; workspace 0 B");
  expect_members(plan, 0, (const int[]){5, 1, 7}, 3);
  expect_members(plan, 1, (const int[]){4}, 1);
  expect_members(plan, 2, (const int[]){2, 0, 6, 3}, 4);
  ck_assert(plan->groups[0].sized && !plan->groups[1].sized && plan->groups[2].sized);
  ck_assert(!plan->groups[0].problem.uniform && plan->groups[1].problem.uniform);
  ck_assert(plan->reads_image);
  ck_assert_int_eq(batchqr_plan_launches(plan), 3);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(a_group_is_split_where_it_would_grow_too_large) {
  static const batchqr_family *const families[] = {&geqrf_area, NULL};
  static const bqr_registry area = {families, none};
  planner.registry = &area;
  static const int m[] = {4, 32, 16, 2, 8}, n[] = {16, 2, 4, 32, 8};
  batchqr_batch batch = host_sizes(m, n, 5);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_int_eq(plan->num_groups, 5);
  bqr_plan_free(plan);
  static const int m2[] = {4, 32, 30, 2, 8}, n2[] = {8, 2, 1, 32, 8};
  batch = host_sizes(m2, n2, 5);
  plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_str_eq(plan->description, "geqrf 2 x (<=32x2) d: geqrf_area area64 by heuristic; workspace 0 B\n"
                                      "geqrf 2 x (<=8x8) d: geqrf_area area64 by heuristic; workspace 0 B\n"
                                      "geqrf 1 x (2x32) d: geqrf_area area64 by heuristic; workspace 0 B");
  bqr_plan_free(plan);
}
END_TEST

START_TEST(host_arrays_of_one_size_are_a_uniform_batch) {
  static const int m[] = {5, 5, 5}, n[] = {4, 4, 4}, ld[] = {5, 6, 7};
  batchqr_batch batch = host_sizes(m, n, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  for (int g = 0; g < plan->num_groups; g++)
    ck_assert(plan->groups[g].list < 0 && !plan->groups[g].sized && plan->groups[g].problem.uniform);
  ck_assert(!plan->reads_image && !plan->tau_offsets);
  bqr_plan_free(plan);
  batch.a.ld_array = ld;
  plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert(plan->reads_image);
  ck_assert_ptr_ne(plan->batch.a.ld_array, ld);
  ck_assert_mem_eq(plan->batch.a.ld_array, ld, sizeof ld);
  bqr_plan_free(plan);
}
END_TEST

/* Tables are asked with the number of members of similar size, not with that of the batch. */
START_TEST(rules_see_how_many_members_are_similar) {
  set_table("batchqr-tuning 1\n"
            "geqrf d 1.. 1.. 4.. geqrf_any any 1\n"
            "geqrf d 1.. 1.. 1..3 geqrf_new n16 1\n",
            90);
  static const int m[] = {33, 40, 50, 63, 20, 21, 31}, n[] = {9, 10, 11, 15, 9, 9, 9};
  batchqr_batch batch = host_sizes(m, n, 7);
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 4 x (<=63x15) d: geqrf_any any from t.tune:2; workspace 0 B\n"
              "geqrf 3 x (<=31x9) d: geqrf_new n16 from t.tune:3; workspace 0 B");
  drop_table();
}
END_TEST

static unsigned next_random(unsigned *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

/* Each member is in exactly one group of each step, and every group supports its members. */
static void expect_partition(batchqr_plan_t plan, int op) {
  int64_t count = plan->batch.count;
  char *found = calloc((size_t)count, 1);
  ck_assert_ptr_nonnull(found);
  for (int g = 0; g < plan->num_groups; g++) {
    const bqr_group *group = &plan->groups[g];
    if (group->problem.op != op) continue;
    bqr_choice choice = {group->family, group->variant, NULL, false};
    ck_assert(bqr_choice_serves(&planner, &choice, &group->problem));
    for (int64_t i = 0; i < group->problem.count; i++) {
      int member = plan->lists[group->list + i];
      ck_assert_int_eq(found[member]++, 0);
      ck_assert_int_le(plan->batch.m_array[member], group->largest.m);
      ck_assert_int_le(plan->batch.n_array[member], group->largest.n);
    }
  }
  for (int64_t i = 0; i < count; i++) ck_assert_int_eq(found[i], 1);
  free(found);
}

START_TEST(groups_are_a_partition) {
  enum { COUNT = 5000 };
  static int m[COUNT], n[COUNT];
  unsigned state = (unsigned)_i;
  static const batchqr_family *const families[] = {&geqrf_new,  &geqrf_area, &geqrf_any, &orgqr_any,
                                                   &copy_r_any, &copy_v_any, NULL};
  static const bqr_registry several = {families, none};
  planner.registry = &several;
  for (int i = 0; i < COUNT; i++) {
    m[i] = (int)(next_random(&state) % 301);
    n[i] = (int)(next_random(&state) % (i % 2 ? 201 : 5));
  }
  batchqr_batch batch = host_sizes(m, n, COUNT);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  ck_assert_int_ge(plan->num_groups, 7);
  static const int steps[] = {BATCHQR_GEQRF, BATCHQR_COPY_R, BATCHQR_COPY_V, BATCHQR_ORGQR};
  for (int s = 0; s < 4; s++) expect_partition(plan, steps[s]);
  ck_assert_mem_eq(plan->batch.m_array, m, sizeof m);
  ck_assert_mem_eq(plan->batch.n_array, n, sizeof n);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(missing_k_means_as_many_as_fit) {
  static const int m[] = {5, 9}, n[] = {4, 6}, k[] = {3, 2};
  batchqr_batch batch = host_sizes(m, n, 2);
  batchqr_plan_t plan = plan_of(BATCHQR_ORGQR, &batch);
  ck_assert_int_eq(plan->groups[0].problem.k, 6);
  bqr_plan_free(plan);
  plan = plan_of(BATCHQR_ORMQR, &batch);
  ck_assert_int_eq(plan->groups[0].problem.k, 9);
  bqr_plan_free(plan);
  batch.side = BATCHQR_RIGHT;
  plan = plan_of(BATCHQR_ORMQR, &batch);
  ck_assert_int_eq(plan->groups[0].problem.k, 6);
  bqr_plan_free(plan);
  batch.k_array = k;
  plan = plan_of(BATCHQR_ORMQR, &batch);
  ck_assert_int_eq(plan->groups[0].problem.k, 3);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(host_sizes_are_limited) {
  batchqr_batch batch = host_sizes(NULL, NULL, (int64_t)1 << 31);
  static const int five = 5;
  batch.m_array = batch.n_array = &five;
  batchqr_plan_t plan = NULL;
  /* Must be refused before the arrays are read. */
  ck_assert_int_eq(bqr_plan_new(&planner, BATCHQR_GEQRF, &batch, &plan, &error), BATCHQR_UNSUPPORTED);
  ck_assert_str_eq(error.text,
                   "batch.count = 2147483648: sizes in host arrays are limited to 2147483647 members");
}
END_TEST

START_TEST(sizes_on_the_device_are_one_group) {
  static const int somewhere[1]; /* must not be read */
  batchqr_batch batch = {.type = BATCHQR_Z,
                         .layout = BATCHQR_POINTERS,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = 10,
                         .m = 30,
                         .n = 40,
                         .k = 50,
                         .m_array = somewhere,
                         .n_array = somewhere,
                         .a = {.ld = 30}};
  batchqr_plan_t plan = plan_of(BATCHQR_ORGQR, &batch);
  ck_assert_str_eq(plan->description,
                   "orgqr 10 x (<=30x30, k <= 30) z: orgqr_any work by heuristic; workspace 300 B");
  ck_assert(plan->groups[0].sized && !plan->groups[0].problem.uniform && plan->groups[0].list < 0);
  ck_assert_ptr_null(plan->image);
  ck_assert_ptr_eq(plan->batch.m_array, somewhere);
  bqr_plan_free(plan);
}
END_TEST

/* --- execution, by families that note what they get */

static void execute(batchqr_plan_t plan, const batchqr_operands *operands, void *space) {
  ck_assert_int_eq(bqr_plan_prepare(plan, &error), BATCHQR_SUCCESS);
  num_launched = 0;
  batchqr_status status = bqr_plan_launch(plan, operands, space, NULL, &error);
  ck_assert_msg(status == launch_status, "%s", error.text);
}

/* Addresses to recognize; nothing is read there. */
static double a_data, c_data, r_data, tau_data, norms_data;
static int info_data;
static const batchqr_operands operands = {&a_data, &tau_data, &c_data, &r_data, &info_data, &norms_data};
static _Alignas(256) char space[1024];

/* --- workspace */

START_TEST(workspace_is_tau_and_the_largest) {
  batchqr_batch batch = uniform(20, 10, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  /* 3 x 10 tau of 8 bytes: 256 with their alignment; ORGQR's 200 bytes: 256. */
  ck_assert_uint_eq(plan->tau_bytes, 240);
  ck_assert_uint_eq(batchqr_plan_workspace(plan), 512);
  ck_assert_int_eq(plan->stride_tau, 10);
  ck_assert_str_eq(plan->description,
                   "geqrf 3 x (20x10) d: geqrf_new n16 by heuristic; workspace 0 B and 240 B for tau\n"
                   "copy_r 3 x (20x10) d: copy_r_any any by heuristic; workspace 0 B\n"
                   "copy_v 3 x (20x10) d: copy_v_any any by heuristic; workspace 0 B\n"
                   "orgqr 3 x (20x10, k 10) d: orgqr_any work by heuristic; workspace 200 B");
  bqr_plan_free(plan);
  plan = plan_of(BATCHQR_GEQR_R, &batch);
  ck_assert_uint_eq(batchqr_plan_workspace(plan), 256);
  bqr_plan_free(plan);
}
END_TEST

/* One large member must not make every small one as dear. */
START_TEST(tau_of_mixed_sizes_is_close_packed) {
  static const int m[] = {2, 100, 0, 3}, n[] = {5, 60, 4, 1};
  batchqr_batch batch = host_sizes(m, n, 4);
  batch.type = BATCHQR_C;
  batchqr_plan_t plan = plan_of(BATCHQR_GEQR_R, &batch);
  static const int64_t offsets[] = {0, 2, 62, 62};
  ck_assert_mem_eq(plan->tau_offsets, offsets, sizeof offsets);
  ck_assert_uint_eq(plan->tau_bytes, 63 * 8);
  bqr_plan_free(plan);

  move_to_cpu();
  plan = plan_of(BATCHQR_GEQR_R, &batch);
  execute(plan, &operands, space);
  ck_assert_int_ge(num_launched, 3);
  for (int i = 0; i < num_launched; i++) {
    ck_assert_mem_eq(launched[i].args.tau_offsets, offsets, sizeof offsets);
    ck_assert_mem_eq(launched[i].args.host_tau_offsets, offsets, sizeof offsets);
    ck_assert_ptr_eq(launched[i].args.tau, space);
    ck_assert_ptr_eq(launched[i].args.workspace, space + 512);
  }
  bqr_plan_free(plan);
}
END_TEST

START_TEST(workspaces_beyond_counting_are_unsupported) {
  static const char text[] = "the workspace would need more bytes than can be counted";
  static const batchqr_family *const families[] = {&geqrf_huge, NULL};
  static const bqr_registry huge = {families, none};
  batchqr_batch batch = uniform(5, 5, INT64_MAX / 4);
  expect_failure(BATCHQR_GEQR_R, &batch, BATCHQR_UNSUPPORTED, text);
  batch = uniform(5, 5, (int64_t)1 << 60);
  expect_failure(BATCHQR_GEQR_R, &batch, BATCHQR_UNSUPPORTED, text);
  planner.registry = &huge;
  batch = uniform(5, 5, 1);
  expect_failure(BATCHQR_GEQRF, &batch, BATCHQR_UNSUPPORTED, text);
}
END_TEST

/* --- composed operations */

START_TEST(qr_is_composed) {
  move_to_cpu();
  planner.positive = true;
  batchqr_batch batch = uniform(20, 10, 3);
  batch.c.stride = 300;
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  execute(plan, &operands, space);
  ck_assert_int_eq(num_prepared, 4);
  ck_assert_int_eq(num_launched, 4);
  static const int steps[] = {BATCHQR_GEQRF, BATCHQR_COPY_R, BATCHQR_COPY_V, BATCHQR_ORGQR};
  for (int i = 0; i < 4; i++) {
    const batchqr_args *args = &launched[i].args;
    bool orgqr = steps[i] == BATCHQR_ORGQR;
    ck_assert_int_eq(launched[i].problem.op, steps[i]);
    ck_assert_int_eq(launched[i].problem.positive, i == 0);
    ck_assert_ptr_eq(args->a.data, orgqr ? &c_data : &a_data);
    ck_assert_ptr_eq(args->c.data, orgqr ? &a_data : &c_data);
    ck_assert_int_eq(args->a.stride, orgqr ? 300 : 200);
    ck_assert_int_eq(args->c.stride, orgqr ? 200 : 300);
    ck_assert_ptr_eq(args->r.data, &r_data);
    ck_assert_ptr_eq(args->tau, space);
    ck_assert_int_eq(args->stride_tau, 10);
    ck_assert_ptr_eq(args->workspace, space + 256);
    ck_assert_ptr_eq(args->info, i == 0 ? &info_data : NULL);
    ck_assert(args->thin == orgqr && !args->untrusted && !args->pointers && !args->tau_pointers);
    ck_assert(args->m == 20 && args->n == 10 && args->k == (orgqr ? 10 : 0) && args->count == 3);
    ck_assert(!args->m_array && !args->members && !args->tau_offsets);
  }
  ck_assert(launched[3].problem.n == 10 && launched[3].problem.k == 10);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(qr_in_place_copies_no_vectors) {
  move_to_cpu();
  batchqr_batch batch = uniform(10, 20, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  ck_assert_int_eq(plan->groups[3].problem.n, 10);
  ck_assert_int_eq(plan->groups[3].problem.k, 10);
  batchqr_operands in_place = operands;
  in_place.c = in_place.a;
  execute(plan, &in_place, space);
  ck_assert_int_eq(num_launched, 3);
  ck_assert_int_eq(launched[2].problem.op, BATCHQR_ORGQR);
  ck_assert_ptr_eq(launched[2].args.a.data, &a_data);
  ck_assert(launched[2].args.n == 20 && launched[2].args.k == 10 && launched[2].args.thin);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(geqr_r_is_composed) {
  move_to_cpu();
  batchqr_batch batch = uniform(20, 10, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQR_R, &batch);
  execute(plan, &operands, space);
  ck_assert_int_eq(num_launched, 2);
  ck_assert_int_eq(launched[0].problem.op, BATCHQR_GEQRF);
  ck_assert_int_eq(launched[1].problem.op, BATCHQR_COPY_R);
  ck_assert_ptr_eq(launched[1].args.r.data, &r_data);
  ck_assert_ptr_null(launched[1].args.c.data);
  bqr_plan_free(plan);
}
END_TEST

/* --- GELS */

static void expect_steps(const int (*steps)[2], int count) {
  ck_assert_int_eq(num_launched, count);
  for (int i = 0; i < count; i++) {
    ck_assert_int_eq(launched[i].problem.op, steps[i][0]);
    ck_assert_int_eq((int)launched[i].problem.trans, steps[i][1]);
  }
}

static void expect_sizes(int i, int m, int n, int k) {
  const batchqr_problem *p = &launched[i].problem;
  const batchqr_args *args = &launched[i].args;
  ck_assert_msg(p->m == m && p->n == n && p->k == k, "step %d: %d x %d, %d", i, p->m, p->n, p->k);
  ck_assert_msg(args->m == m && args->n == n && args->k == k, "step %d: %d x %d, %d", i, args->m, args->n,
                args->k);
}

/* Least squares: Q^H, then R^-1, with A where it is. */
START_TEST(gels_is_composed) {
  static const int steps[][2] = {
      {BATCHQR_UPRIGHT, 0}, {BATCHQR_GEQRF, 0}, {BATCHQR_ORMQR, BATCHQR_CONJ_TRANS}, {BATCHQR_TRSM, 0}};
  move_to_cpu();
  planner.positive = true;
  batchqr_batch batch = uniform(20, 10, 3);
  batch.k = 2;
  batch.stride_norms = 5;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  ck_assert_int_eq(plan->most_rhs, 2);
  /* 3 x 10 tau of 8 bytes; 3 x 2 scales of 8 bytes */
  ck_assert_uint_eq(plan->workspace_bytes, 256 + 256);
  execute(plan, &operands, space);
  expect_steps(steps, 4);
  expect_sizes(0, 20, 10, 2);
  expect_sizes(1, 20, 10, 0);
  expect_sizes(2, 20, 2, 10);
  expect_sizes(3, 20, 10, 2);
  for (int i = 0; i < 4; i++) {
    const batchqr_args *args = &launched[i].args;
    ck_assert_ptr_eq(args->a.data, &a_data);
    ck_assert_ptr_eq(args->c.data, i == 1 ? NULL : &c_data);
    ck_assert_ptr_null(args->r.data);
    ck_assert_ptr_eq(args->tau, space);
    ck_assert_ptr_eq(args->scales, space + 256);
    ck_assert_ptr_eq(args->norms, &norms_data);
    ck_assert_int_eq(args->stride_norms, 5);
    ck_assert_ptr_eq(args->workspace, space + 512);
    ck_assert_ptr_eq(args->info, i % 2 ? &info_data : NULL); /* of GEQRF and TRSM */
    ck_assert(!launched[i].problem.positive && !args->m_array && !args->upright_sizes);
  }
  bqr_plan_free(plan);
}
END_TEST

/* Least norm: R^-H, then Q, with an upright copy of A^H. */
START_TEST(gels_of_wide_members_works_on_copies) {
  static const int steps[][2] = {
      {BATCHQR_UPRIGHT, 0}, {BATCHQR_GEQRF, 0}, {BATCHQR_TRSM, BATCHQR_CONJ_TRANS}, {BATCHQR_ORMQR, 0}};
  move_to_cpu();
  batchqr_batch batch = uniform(2, 6, 3);
  batch.layout = BATCHQR_POINTERS;
  batch.k = 4;
  batch.c.ld = 6;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  ck_assert_uint_eq(plan->workspace_bytes, 256 + 256 + 512); /* copies of 3 x 12 x 8 bytes */
  execute(plan, &operands, space);
  expect_steps(steps, 4);
  expect_sizes(0, 2, 6, 4);
  expect_sizes(1, 6, 2, 0);
  expect_sizes(2, 6, 2, 4);
  expect_sizes(3, 6, 4, 2);
  ck_assert_ptr_eq(launched[0].args.a.data, &a_data);
  for (int i = 0; i < 4; i++) {
    const batchqr_args *args = &launched[i].args;
    const batchqr_matrix *copy = i == 0 ? &args->r : &args->a;
    ck_assert_ptr_eq(copy->data, space + 512);
    ck_assert(copy->packed && copy->ld == 6 && copy->stride == 12 && !copy->offsets);
    ck_assert(args->pointers == (i != 1));
  }
  bqr_plan_free(plan);
}
END_TEST

/* Tall and wide members are of different kinds, whose steps follow each other. */
START_TEST(gels_of_mixed_members_is_in_two_parts) {
  static const int steps[][2] = {{BATCHQR_UPRIGHT, BATCHQR_CONJ_TRANS}, {BATCHQR_GEQRF, 0},
                                 {BATCHQR_TRSM, BATCHQR_CONJ_TRANS},    {BATCHQR_ORMQR, 0},
                                 {BATCHQR_UPRIGHT, BATCHQR_CONJ_TRANS}, {BATCHQR_GEQRF, 0},
                                 {BATCHQR_ORMQR, BATCHQR_CONJ_TRANS},   {BATCHQR_TRSM, 0}};
  static const int m[] = {9, 3, 5, 2}, n[] = {4, 7, 5, 4}, k[] = {1, 2, 3, 4};
  static const int64_t offsets[] = {0, 0, 21, 21};
  move_to_cpu();
  batchqr_batch batch = host_sizes(m, n, 4);
  batch.k_array = k;
  batch.trans = BATCHQR_CONJ_TRANS;
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  execute(plan, &operands, space);
  expect_steps(steps, 8);
  for (int i = 0; i < 4; i++) expect_members(plan, i, (const int[]){0, 2}, 2);
  for (int i = 4; i < 8; i++) expect_members(plan, i, (const int[]){1, 3}, 2);
  expect_sizes(1, 9, 5, 0);
  expect_sizes(3, 9, 3, 5);
  expect_sizes(5, 7, 3, 0);
  expect_sizes(6, 7, 4, 3);
  ck_assert_mem_eq(launched[3].args.m_array, m, sizeof m);
  ck_assert_mem_eq(launched[3].args.n_array, k, sizeof k);
  ck_assert_mem_eq(launched[3].args.k_array, n, sizeof n);
  ck_assert_mem_eq(launched[7].args.m_array, n, sizeof n);
  ck_assert_mem_eq(launched[7].args.n_array, m, sizeof m);
  ck_assert_mem_eq(launched[7].args.k_array, k, sizeof k);
  ck_assert_mem_eq(launched[7].args.a.ld_array, n, sizeof n);
  ck_assert_mem_eq(launched[7].args.a.offsets, offsets, sizeof offsets);
  ck_assert_mem_eq(launched[7].args.host_offsets, offsets, sizeof offsets);
  ck_assert_ptr_null(launched[3].args.host_offsets);
  ck_assert(!launched[3].args.a.packed && launched[7].args.a.packed);
  bqr_plan_free(plan);

  batch.k_array = NULL; /* one number for all */
  batch.k = 6;
  plan = plan_of(BATCHQR_GELS, &batch);
  execute(plan, &operands, space);
  ck_assert(launched[6].args.n == 6 && !launched[6].args.n_array && launched[7].args.k == 6);
  bqr_plan_free(plan);
}
END_TEST

/* With sizes on the device all steps of both kinds are there, and their sizes are written beside the copies.
 */
START_TEST(gels_with_sizes_on_the_device_does_both) {
  static const int steps[][2] = {{BATCHQR_UPRIGHT, 0}, {BATCHQR_GEQRF, 0}, {BATCHQR_TRSM, 2},
                                 {BATCHQR_ORMQR, 0},   {BATCHQR_ORMQR, 2}, {BATCHQR_TRSM, 0}};
  static const int m[2], n[2];
  move_to_cpu();
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = 2,
                         .m = 4,
                         .n = 5,
                         .k = 3,
                         .m_array = m,
                         .n_array = n,
                         .a = {.ld = 4, .stride = 20},
                         .c = {.ld = 5, .stride = 15}};
  batchqr_plan_t plan = plan_of(BATCHQR_GELS, &batch);
  execute(plan, &operands, space);
  expect_steps(steps, 6);
  int *sizes = launched[0].args.upright_sizes;
  ck_assert_ptr_eq(sizes, space + 512);
  for (int i = 1; i < 6; i++) {
    const batchqr_args *args = &launched[i].args;
    bool ormqr = steps[i][0] == BATCHQR_ORMQR, squares = i > 3;
    ck_assert_ptr_eq(args->m_array, sizes);
    ck_assert_ptr_eq(ormqr ? args->k_array : args->n_array, sizes + 2);
    if (i > 1) ck_assert_ptr_eq(ormqr ? args->n_array : args->k_array, sizes + (squares ? 4 : 6));
    ck_assert(args->untrusted && args->a.packed && args->a.ld == 5 && args->a.stride == 20);
  }
  bqr_plan_free(plan);
}
END_TEST

/* --- whole operations */

START_TEST(a_whole_operation_is_preferred_where_there_is_one) {
  move_to_cpu();
  static const int m[] = {4, 30, 2, 5}, n[] = {4, 2, 3, 1};
  batchqr_batch batch = host_sizes(m, n, 4);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  execute(plan, &operands, space);
  ck_assert_int_eq(num_launched, 5);
  ck_assert_int_eq(launched[0].problem.op, BATCHQR_QR);
  ck_assert_int_eq(launched[0].args.count, 2);
  ck_assert_ptr_eq(launched[0].args.info, &info_data);
  ck_assert_ptr_eq(launched[0].args.c.data, &c_data);
  expect_members(plan, 0, (const int[]){0, 2}, 2);
  for (int g = 1; g < 5; g++) expect_members(plan, g, (const int[]){1, 3}, 2);
  ck_assert_int_eq(plan->groups[1].list, plan->groups[4].list);
  bqr_plan_free(plan);

  batch = uniform(4, 4, 10);
  plan = plan_of(BATCHQR_QR, &batch);
  ck_assert(plan->num_groups == 1 && plan->workspace_bytes == 0);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(arguments_of_mixed_sizes_lie_in_the_image) {
  move_to_cpu();
  int m[] = {4, 30, 100}, n[] = {4, 2, 60}, k[] = {1, 2, 3}, lda[] = {5, 31, 101}, ldc[] = {6, 32, 102};
  batchqr_batch batch = host_sizes(m, n, 3);
  batch.k_array = k;
  batch.a.ld_array = lda;
  batch.c.ld_array = ldc;
  batchqr_plan_t plan = plan_of(BATCHQR_ORMQR, &batch);
  memset(m, 0, sizeof m); /* the plan has its own */
  execute(plan, &operands, space);
  ck_assert_int_eq(num_launched, 1);
  const batchqr_args *args = &launched[0].args;
  static const int m_was[] = {4, 30, 100}, members[] = {2, 1, 0};
  ck_assert_mem_eq(args->m_array, m_was, sizeof m_was);
  ck_assert_mem_eq(args->n_array, n, sizeof n);
  ck_assert_mem_eq(args->k_array, k, sizeof k);
  ck_assert_mem_eq(args->a.ld_array, lda, sizeof lda);
  ck_assert_mem_eq(args->c.ld_array, ldc, sizeof ldc);
  ck_assert_mem_eq(args->members, members, sizeof members);
  ck_assert(args->pointers && args->tau_pointers && !args->untrusted);
  ck_assert(args->m == 100 && args->n == 60 && args->k == 3);
  ck_assert_ptr_eq(args->tau, &tau_data);
  ck_assert_ptr_null(args->r.data);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(sizes_on_the_device_are_not_trusted) {
  move_to_cpu();
  static const int m[2], n[2], ld[2];
  batchqr_batch batch = {.type = BATCHQR_D,
                         .layout = BATCHQR_POINTERS,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = 2,
                         .m = 30,
                         .n = 40,
                         .k = 99,
                         .m_array = m,
                         .n_array = n,
                         .a = {.ld_array = ld},
                         .c = {.ld = 30},
                         .r = {.ld = 30}};
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  execute(plan, &operands, space);
  for (int i = 0; i < 4; i++) {
    const batchqr_args *args = &launched[i].args;
    ck_assert(args->untrusted && args->m == 30 && args->n == 40);
    ck_assert(args->m_array == m && args->n_array == n && !args->members);
    ck_assert_ptr_eq(launched[i].problem.op == BATCHQR_ORGQR ? args->c.ld_array : args->a.ld_array, ld);
  }
  ck_assert(launched[3].args.thin && launched[3].args.k == 30);
  ck_assert_uint_eq(plan->tau_bytes, 2 * 30 * 8);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(a_launch_that_fails_ends_the_execute) {
  move_to_cpu();
  batchqr_batch batch = uniform(20, 10, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  launch_status = BATCHQR_OUT_OF_MEMORY;
  execute(plan, &operands, space);
  ck_assert_int_eq(num_launched, 1);
  ck_assert_str_eq(error.text, "geqrf_new n16: BATCHQR_OUT_OF_MEMORY");
  bqr_plan_free(plan);
}
END_TEST

/* --- facts for the checks of operands */

START_TEST(plans_own_what_families_open) {
  move_to_cpu();
  geqrf_new.open = open_state;
  geqrf_new.close = close_state;
  batchqr_batch batch = uniform(32, 9, 1);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_int_eq(bqr_plan_prepare(plan, &error), BATCHQR_SUCCESS);
  ck_assert_int_eq(states, 1);
  double a[32 * 9], tau[9];
  batchqr_operands operands = {.a = a, .tau = tau};
  ck_assert_int_eq(bqr_plan_launch(plan, &operands, NULL, NULL, &error), BATCHQR_SUCCESS);
  ck_assert_ptr_eq(launched[0].args.state, &states);
  bqr_plan_free(plan);
  ck_assert_int_eq(states, 0);
  batch = uniform(32, 8, 1);
  plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_int_eq(bqr_plan_prepare(plan, &error), BATCHQR_OUT_OF_MEMORY);
  bqr_plan_free(plan);
  ck_assert_int_eq(states, 0);
  geqrf_new.open = NULL;
  geqrf_new.close = NULL;
}
END_TEST

START_TEST(touched_operands_are_known) {
  static const struct {
    batchqr_op op;
    int m, n, k;
    bool a, tau, c, r;
  } cases[] = {
      {BATCHQR_GEQRF, 3, 2, 0, true, true, false, false},
      {BATCHQR_GEQRF, 0, 2, 0, false, false, false, false},
      {BATCHQR_ORGQR, 3, 2, 0, true, false, false, false},
      {BATCHQR_ORGQR, 3, 0, 0, false, false, false, false},
      {BATCHQR_ORMQR, 3, 2, 0, false, false, true, false},
      {BATCHQR_ORMQR, 3, 2, 1, true, true, true, false},
      {BATCHQR_ORMQR, 3, 0, 2, true, true, false, false},
      {BATCHQR_QR, 3, 2, 0, true, false, true, true},
      {BATCHQR_QR, 0, 2, 0, false, false, false, false},
      {BATCHQR_GEQR_R, 3, 2, 0, true, false, false, true},
      {BATCHQR_GELS, 3, 2, 1, true, false, true, false},
      {BATCHQR_GELS, 3, 2, 0, true, false, false, false},
      {BATCHQR_GELS, 3, 0, 1, false, false, true, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    batchqr_batch batch = uniform(cases[i].m, cases[i].n, 2);
    batch.k = cases[i].k;
    batchqr_plan_t plan = plan_of(cases[i].op, &batch);
    ck_assert(plan->touches[BQR_A] == cases[i].a && plan->touches[BQR_TAU] == cases[i].tau &&
              plan->touches[BQR_C] == cases[i].c && plan->touches[BQR_R] == cases[i].r);
    bqr_plan_free(plan);
  }
}
END_TEST

START_TEST(storages_are_compared) {
  static const int m[] = {5, 5}, n[] = {3, 4}, ld[] = {7, 7}, other[] = {7, 8};
  batchqr_batch batch = host_sizes(m, n, 2);
  struct {
    batchqr_storage a, c;
    batchqr_layout layout;
    bool alike;
  } cases[] = {
      {{.ld = 7, .stride = 50}, {.ld = 7, .stride = 50}, BATCHQR_STRIDED, true},
      {{.ld = 7, .stride = 50}, {.ld = 7, .stride = 60}, BATCHQR_STRIDED, false},
      {{.ld = 7, .stride = 50}, {.ld = 7, .stride = 60}, BATCHQR_POINTERS, true},
      {{.ld = 7, .stride = 50}, {.ld = 8, .stride = 50}, BATCHQR_STRIDED, false},
      {{.ld = 7}, {.ld_array = ld}, BATCHQR_POINTERS, true},
      {{.ld = 7}, {.ld_array = other}, BATCHQR_POINTERS, false},
      {{.ld_array = ld}, {.ld_array = other}, BATCHQR_POINTERS, false},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    batch.layout = cases[i].layout;
    batch.a = cases[i].a;
    batch.c = cases[i].c;
    batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
    ck_assert_msg(plan->a_and_c_alike == cases[i].alike, "case %d", (int)i);
    bqr_plan_free(plan);
  }
}
END_TEST

/* --- this build's own families */

START_TEST(every_operation_is_planned_for_a_device) {
  planner.registry = bqr_registry_builtin();
  bool has_cuda = false;
  for (int i = 0; i < bqr_num_families(); i++)
    has_cuda = has_cuda ||
               (bqr_family_at(i)->backend == BATCHQR_BACKEND_CUDA && bqr_family_at(i)->op == BATCHQR_GEQRF);
  if (!has_cuda || _i == 1) bqr_device_cpu(&device, 2);
  static const int m[] = {0, 5, 300, 5}, n[] = {3, 4, 200, 5};
  for (int type = 0; type < 4; type++)
    for (int op = BATCHQR_GEQRF; op <= BATCHQR_GELS; op++) {
      batchqr_batch batch = uniform(70000, 3000, 2);
      batch.type = (batchqr_type)type;
      batch.k = 3;
      batchqr_plan_t plan = plan_of((batchqr_op)op, &batch);
      ck_assert_int_ge(plan->num_groups, 1);
      bqr_plan_free(plan);
      batch = host_sizes(m, n, op == BATCHQR_ORGQR ? 1 : 4);
      if (op == BATCHQR_ORGQR) batch.m_array = batch.n_array = m + 1;
      batch.type = (batchqr_type)type;
      plan = plan_of((batchqr_op)op, &batch);
      ck_assert_int_ge(plan->num_groups, 1);
      bqr_plan_free(plan);
    }
}
END_TEST

START_TEST(the_registry_is_sound) {
  for (int i = 0; i < bqr_num_families(); i++) {
    const batchqr_family *f = bqr_family_at(i);
    ck_assert_ptr_eq(bqr_family_find(f->name), f); /* names differ */
    ck_assert(f->op >= 0 && f->op < BATCHQR_NUM_OPS && f->types != 0 && f->nvariants >= 1);
    ck_assert(f->supports && f->launch && (f->launches >= 1) != (f->count_launches != NULL));
    const char *op = bqr_op_name(f->op);
    ck_assert_msg(strncmp(f->name, op, strlen(op)) == 0 && f->name[strlen(op)] == '_', "%s", f->name);
    for (int v = 0; v < f->nvariants; v++) {
      ck_assert_int_eq(bqr_variant_find(f, f->variants[v].name), v);
      ck_assert_int_eq(strcspn(f->variants[v].name, " #"), strlen(f->variants[v].name));
    }
  }
  ck_assert_ptr_null(bqr_family_at(-1));
  ck_assert_ptr_null(bqr_family_at(bqr_num_families()));
  ck_assert_ptr_null(bqr_family_find("geqrf"));
  ck_assert_str_eq(bqr_op_name(BATCHQR_COPY_V), "copy_v");
}
END_TEST

START_TEST(compiled_architectures_run_where_they_can) {
  ck_assert(bqr_archs_run_on("90a", 90));
  ck_assert(!bqr_archs_run_on("90a", 100));
  ck_assert(!bqr_archs_run_on("90a", 80));
  ck_assert(bqr_archs_run_on("80", 80));
  ck_assert(bqr_archs_run_on("80", 89));
  ck_assert(bqr_archs_run_on("80", 90)); /* as PTX */
  ck_assert(!bqr_archs_run_on("80", 75));
  ck_assert(bqr_archs_run_on("90a,80", 120));
  ck_assert(bqr_archs_run_on("80,90a,100", 90));
  ck_assert(bqr_archs_run_on("100f", 103));
  ck_assert(!bqr_archs_run_on("100f", 120));
  ck_assert(!bqr_archs_run_on("", 90));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan");
  TCase *tcase = tcase_create("planner");
  tcase_add_checked_fixture(tcase, set_up, NULL);
  tcase_add_test(tcase, a_uniform_batch_is_one_group);
  tcase_add_test(tcase, the_first_that_supports_is_the_heuristic);
  tcase_add_test(tcase, families_say_what_they_are_good_at);
  tcase_add_test(tcase, types_and_backends_must_fit);
  tcase_add_test(tcase, empty_batches_do_nothing);
  tcase_add_test(tcase, empty_members_are_launched);
  tcase_add_test(tcase, ormqr_names_its_case);
  tcase_add_test(tcase, the_first_rule_that_fits_wins);
  tcase_add_test(tcase, a_table_of_another_architecture_is_named);
  tcase_add_test(tcase, a_forced_choice_beats_the_table);
  tcase_add_test(tcase, compute_modes_permit_and_do_not_oblige);
  tcase_add_test(tcase, members_of_one_choice_are_one_group);
  tcase_add_test(tcase, a_group_is_split_where_it_would_grow_too_large);
  tcase_add_test(tcase, host_arrays_of_one_size_are_a_uniform_batch);
  tcase_add_test(tcase, rules_see_how_many_members_are_similar);
  tcase_add_test(tcase, missing_k_means_as_many_as_fit);
  tcase_add_test(tcase, host_sizes_are_limited);
  tcase_add_test(tcase, sizes_on_the_device_are_one_group);
  tcase_add_test(tcase, workspace_is_tau_and_the_largest);
  tcase_add_test(tcase, tau_of_mixed_sizes_is_close_packed);
  tcase_add_test(tcase, workspaces_beyond_counting_are_unsupported);
  tcase_add_test(tcase, qr_is_composed);
  tcase_add_test(tcase, qr_in_place_copies_no_vectors);
  tcase_add_test(tcase, geqr_r_is_composed);
  tcase_add_test(tcase, gels_is_composed);
  tcase_add_test(tcase, gels_of_wide_members_works_on_copies);
  tcase_add_test(tcase, gels_of_mixed_members_is_in_two_parts);
  tcase_add_test(tcase, gels_with_sizes_on_the_device_does_both);
  tcase_add_test(tcase, a_whole_operation_is_preferred_where_there_is_one);
  tcase_add_test(tcase, arguments_of_mixed_sizes_lie_in_the_image);
  tcase_add_test(tcase, sizes_on_the_device_are_not_trusted);
  tcase_add_test(tcase, a_launch_that_fails_ends_the_execute);
  tcase_add_test(tcase, plans_own_what_families_open);
  tcase_add_test(tcase, touched_operands_are_known);
  tcase_add_test(tcase, storages_are_compared);
  tcase_add_test(tcase, the_registry_is_sound);
  tcase_add_test(tcase, compiled_architectures_run_where_they_can);
  tcase_add_loop_test(tcase, groups_are_a_partition, 1, 6);
  tcase_add_loop_test(tcase, every_operation_is_planned_for_a_device, 0, 2);
  suite_add_tcase(suite, tcase);
  SRunner *runner = srunner_create(suite);
  srunner_set_fork_status(runner, CK_NOFORK);
  srunner_run_all(runner, CK_ENV);
  int failed = srunner_ntests_failed(runner);
  srunner_free(runner);
  return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
