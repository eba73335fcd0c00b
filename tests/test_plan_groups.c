/* SPDX-License-Identifier: BSD-3-Clause */
/* How the members of a batch of many sizes are put into groups. */
#include "choose.h"
#include "fakes.h"

#include <limits.h>
#include <stdlib.h>

START_TEST(members_of_one_choice_are_one_group) {
  static const int m[] = {3, 65, 32, 2, 64, 100, 3, 65}, n[] = {3, 1, 8, 3, 16, 70, 3, 1};
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
  ck_assert(plan->groups[0].problem.tall && plan->groups[1].problem.tall && !plan->groups[2].problem.tall);
  ck_assert(plan->reads_image);
  ck_assert_int_eq(batchqr_plan_launches(plan), 3);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(a_group_is_split_where_it_would_grow_too_large) {
  static const bqr_family *const families[] = {&geqrf_area, NULL};
  static const bqr_registry area = {families, fake_none, bqr_builtin_operations};
  fake.planner.registry = &area;
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

/* Groups that need nothing of each other are a stage, and each stream has its own workspace. */
START_TEST(groups_of_a_stage_have_streams) {
  bqr_family rest = geqrf_any;
  rest.workspace = orgqr_any.workspace; /* 10 bytes for each row */
  const bqr_family *families[] = {&qr_tiny, &geqrf_new, &rest, &orgqr_any, &copy_r_any, &copy_any, NULL};
  const bqr_registry registry = {families, fake_none, bqr_builtin_operations};
  fake.planner.registry = &registry;
  static const int m[] = {100, 64, 32, 4}, n[] = {70, 9, 8, 4};
  batchqr_batch batch = host_sizes(m, n, 4);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  static const int ops[] = {BATCHQR_QR, BATCHQR_GEQRF, BATCHQR_GEQRF, BATCHQR_GEQRF,
                            BQR_COPY_R, BQR_COPY,      BATCHQR_ORGQR};
  static const int streams[] = {0, 1, 2, 3, 0, 0, 0};
  ck_assert(plan->num_groups == 7 && plan->num_streams == 4);
  for (int g = 0; g < 7; g++) {
    const bqr_group *group = &plan->groups[g];
    ck_assert_int_eq(group->problem.op, ops[g]);
    ck_assert_int_eq(group->stream, streams[g]);
    ck_assert_int_eq(group->stage - plan->groups[0].stage, g < 4 ? 0 : g - 3);
  }
  /* Stream 0 has ORGQR's 1000 bytes, stream 1 those of the first factorization. */
  ck_assert_uint_eq(plan->groups[1].workspace_at - plan->groups[6].workspace_at, 1024);
  ck_assert_uint_eq(plan->workspace_bytes - plan->groups[1].workspace_at, 1024);
  bqr_plan_free(plan);
}
END_TEST

/* A launch counts as much as 16 columns do. The first group, of 8 columns, and 15 others, of one column: the
 * last one gets to the stream of the first, where the others already have two launches. */
START_TEST(streams_have_about_as_much_to_do) {
  enum { GROUPS = 16 };
  bqr_variant variants[GROUPS];
  int m[GROUPS], n[GROUPS];
  for (int i = 0; i < GROUPS; i++) {
    m[i] = i + 1;
    n[i] = i == GROUPS - 1 ? 8 : 1;
    variants[i] = (bqr_variant){.name = "v", .rows = m[i], .cols = n[i]};
  }
  bqr_family family = geqrf_any;
  family.variants = variants;
  family.nvariants = GROUPS;
  const bqr_family *families[] = {&family, NULL};
  const bqr_registry registry = {families, fake_none, bqr_builtin_operations};
  fake.planner.registry = &registry;
  batchqr_batch batch = host_sizes(m, n, GROUPS);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  static const int streams[GROUPS] = {0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 6, 7, 0};
  ck_assert(plan->num_groups == GROUPS && plan->num_streams == 8);
  for (int g = 0; g < GROUPS; g++) ck_assert_int_eq(plan->groups[g].stream, streams[g]);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(host_arrays_of_one_size_are_a_uniform_batch) {
  static const int m[] = {5, 5, 5}, n[] = {4, 4, 4}, ld[] = {5, 6, 7};
  batchqr_batch batch = host_sizes(m, n, 3);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  for (int g = 0; g < plan->num_groups; g++)
    ck_assert(plan->groups[g].list < 0 && !plan->groups[g].sized && plan->groups[g].problem.uniform);
  ck_assert(!plan->reads_image && !plan->temporaries[0].offsets);
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
  static const int m[] = {33, 33, 50, 63, 20, 21, 31}, n[] = {9, 9, 11, 15, 9, 9, 9};
  batchqr_batch batch = host_sizes(m, n, 7);
  expect_text(BATCHQR_GEQRF, &batch,
              "geqrf 4 x (<=63x15) d: geqrf_any any from t.tune:2; workspace 0 B\n"
              "geqrf 3 x (<=31x9) d: geqrf_new n16 from t.tune:3; workspace 0 B");
  drop_table();
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

/* The sums of what lanes have to do must not overflow. */
START_TEST(the_largest_sizes_are_planned) {
  batchqr_batch batch = uniform(2147483647, 2147483647, 1);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_int_eq(plan->num_streams, 1);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(sizes_on_the_device_are_one_group) {
  static const int somewhere[1]; /* must not be read */
  batchqr_batch batch = {.type = BATCHQR_Z,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = 10,
                         .m = 30,
                         .n = 40,
                         .k = 50,
                         .m_array = somewhere,
                         .n_array = somewhere,
                         .a = {.layout = BATCHQR_POINTERS, .ld = 30}};
  batchqr_plan_t plan = plan_of(BATCHQR_ORGQR, &batch);
  ck_assert_str_eq(plan->description,
                   "orgqr 10 x (<=30x30, k <= 30) z: orgqr_any work by heuristic; workspace 300 B");
  ck_assert(plan->groups[0].sized && !plan->groups[0].problem.uniform && plan->groups[0].list < 0);
  ck_assert_ptr_null(plan->image);
  ck_assert_ptr_eq(plan->batch.m_array, somewhere);
  bqr_plan_free(plan);
}
END_TEST

static batchqr_batch device_sizes(int m, int n, int64_t count) {
  static const int somewhere[1]; /* must not be read */
  return (batchqr_batch){.type = BATCHQR_D,
                         .sizes = BATCHQR_DEVICE_SIZES,
                         .count = count,
                         .m = m,
                         .n = n,
                         .k = n,
                         .m_array = somewhere,
                         .n_array = somewhere,
                         .k_array = somewhere,
                         .a = {.layout = BATCHQR_POINTERS, .ld = 1000},
                         .c = {.ld = 1000},
                         .r = {.ld = 1000}};
}

/* Boxes are rows 16, 32, 64, 100 by columns 16, 32, 40; the first column's up to 64 rows are another's. */
START_TEST(sizes_on_the_device_are_sorted_into_boxes) {
  fake.planner.registry = &fake_sorting;
  batchqr_batch batch = device_sizes(100, 40, 30000);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &batch);
  ck_assert_str_eq(plan->description,
                   "sort 30000 x (<=100x40) d: sort_any any by heuristic; workspace 0 B\n"
                   "geqrf <=30000 x (<=100x40) d: geqrf_any any by heuristic; workspace 0 B\n"
                   "geqrf <=30000 x (<=64x16) d: geqrf_new n16 by heuristic; workspace 0 B");
  ck_assert(plan->sort.num_rows == 4 && plan->sort.num_cols == 3 && plan->sort.num_lists == 2);
  ck_assert_mem_eq(plan->sort.rows, ((int[]){16, 32, 64, 100}), 4 * sizeof(int));
  ck_assert_mem_eq(plan->sort.cols, ((int[]){16, 32, 40}), 3 * sizeof(int));
  ck_assert_uint_eq(plan->sort.boxes[0], 0xfff & ~0x49);
  ck_assert_uint_eq(plan->sort.boxes[1], 0x49); /* 0, 3 and 6 */
  bqr_sort sort;
  batchqr_batch powers = device_sizes(128, 32, 5000), small = device_sizes(64, 32, 5000);
  ck_assert_int_eq(bqr_sort_boxes(plan->operation, &powers, &sort), 4 * 2);
  ck_assert_int_eq(bqr_sort_boxes(plan->operation, &small, &sort), 6 * 5);
  ck_assert(plan->groups[1].list == 0 && plan->groups[2].list == 30001 && !plan->image);
  bqr_plan_free(plan);
}
END_TEST

/* Rows 4, 8, 16, 24, 32, 64 by columns 4, 8, 16 and the bound: of the boxes of 17 to 24 rows. */
START_TEST(boxes_know_whether_all_their_members_are_tall) {
  bqr_sort sort;
  batchqr_batch batch = device_sizes(64, 17, 5000);
  ck_assert_int_eq(bqr_sort_boxes(bqr_registry_operation(&fake_usual, BATCHQR_GELS), &batch, &sort), 6 * 4);
  bqr_dims sizes = bqr_sort_box_sizes(&batch, &sort, 3 * 4 + 3);
  ck_assert(sizes.m == 24 && sizes.n == 17 && bqr_sort_box_is_tall(&sort, 3 * 4 + 3));
  ck_assert(!bqr_sort_box_is_tall(&sort, 2 * 4 + 3));
  batch.n = 18;
  ck_assert_int_eq(bqr_sort_boxes(bqr_registry_operation(&fake_usual, BATCHQR_GELS), &batch, &sort), 6 * 4);
  ck_assert(bqr_sort_box_is_tall(&sort, 3 * 4 + 2) && !bqr_sort_box_is_tall(&sort, 3 * 4 + 3));
  ck_assert(!bqr_sort_box_is_tall(&sort, 0));
}
END_TEST

/* Steps share lists: of what a whole operation serves, of all the rest, and of parts of that. */
START_TEST(sorted_members_are_worked_on_in_steps) {
  const bqr_variant sixteen = {.name = "sixteen", .rows = 16, .cols = 16};
  bqr_family whole = qr_tiny;
  whole.op = BATCHQR_GEQR_R;
  whole.variants = &sixteen;
  const bqr_family *families[] = {&sort_any, &geqrf_new, &geqrf_any, &copy_r_any, &whole, NULL};
  const bqr_registry registry = {families, fake_none, bqr_builtin_operations};
  fake.planner.registry = &registry;
  batchqr_batch batch = device_sizes(100, 40, 30000);
  batchqr_plan_t plan = plan_of(BATCHQR_GEQR_R, &batch);
  static const int lists[] = {-1, 0, 1, 2, 3};
  static const uint64_t boxes[] = {0x1, 0xfff & ~0x49, 0x48, 0xffe};
  ck_assert(plan->num_groups == 5 && plan->sort.num_lists == 4);
  for (int g = 1; g < 5; g++) ck_assert_int_eq(plan->groups[g].list, 30001 * lists[g]);
  ck_assert_mem_eq(plan->sort.boxes, boxes, sizeof boxes);
  ck_assert(plan->temporaries[0].stride == 40 && plan->temporaries[0].bytes == 30001 * 40 * 8);
  bqr_plan_free(plan);
}
END_TEST

START_TEST(members_are_not_sorted_where_that_is_no_use) {
  fake.planner.registry = &fake_sorting;
  batchqr_batch few = device_sizes(100, 40, 26843), small = device_sizes(4, 4, 50000000),
                high = device_sizes(1025, 40, 30000), wide = device_sizes(100, 257, 30000),
                endless = device_sizes(100, 40, INT_MAX), tall = device_sizes(100, 40, 30000);
  const struct {
    batchqr_op op;
    const batchqr_batch *batch;
  } cases[] = {{BATCHQR_GEQRF, &few},  {BATCHQR_GEQRF, &small},   {BATCHQR_GEQRF, &high},
               {BATCHQR_GEQRF, &wide}, {BATCHQR_GEQRF, &endless}, {BATCHQR_ORGQR, &tall}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    batchqr_plan_t plan = plan_of(cases[i].op, cases[i].batch);
    ck_assert(!plan->sorted && plan->num_groups == 1 && plan->groups[0].list < 0);
    ck_assert_int_eq(plan->groups[0].problem.count, cases[i].batch->count);
    bqr_plan_free(plan);
  }
  fake.forced[BATCHQR_GEQRF] = (bqr_forced){&geqrf_any, 0};
  batchqr_plan_t plan = plan_of(BATCHQR_GEQRF, &tall);
  ck_assert(!plan->sorted && plan->num_groups == 1);
  bqr_plan_free(plan);
  fake.forced[BATCHQR_GEQRF] = (bqr_forced){NULL, 0};
  fake.planner.registry = &fake_usual; /* nothing sorts */
  plan = plan_of(BATCHQR_GEQRF, &tall);
  ck_assert(!plan->sorted && plan->num_groups == 1);
  bqr_plan_free(plan);
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
    bqr_choice choice = {.family = group->family, .variant = group->variant};
    ck_assert(bqr_choice_serves(&fake.planner, &choice, &group->problem));
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
  static const bqr_family *const families[] = {&geqrf_new,  &geqrf_area, &geqrf_any, &orgqr_any,
                                               &copy_r_any, &copy_any,   NULL};
  static const bqr_registry several = {families, fake_none, bqr_builtin_operations};
  fake.planner.registry = &several;
  for (int i = 0; i < COUNT; i++) {
    m[i] = (int)(next_random(&state) % 301);
    n[i] = (int)(next_random(&state) % (i % 2 ? 201 : 5));
  }
  batchqr_batch batch = host_sizes(m, n, COUNT);
  batchqr_plan_t plan = plan_of(BATCHQR_QR, &batch);
  ck_assert_int_ge(plan->num_groups, 7);
  static const int steps[] = {BATCHQR_GEQRF, BQR_COPY_R, BQR_COPY, BATCHQR_ORGQR};
  for (int s = 0; s < 4; s++) expect_partition(plan, steps[s]);
  ck_assert_mem_eq(plan->batch.m_array, m, sizeof m);
  ck_assert_mem_eq(plan->batch.n_array, n, sizeof n);
  bqr_plan_free(plan);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("plan_groups");
  TCase *tests = fake_case(suite, "groups");
  tcase_add_test(tests, members_of_one_choice_are_one_group);
  tcase_add_test(tests, a_group_is_split_where_it_would_grow_too_large);
  tcase_add_test(tests, groups_of_a_stage_have_streams);
  tcase_add_test(tests, streams_have_about_as_much_to_do);
  tcase_add_test(tests, host_arrays_of_one_size_are_a_uniform_batch);
  tcase_add_test(tests, rules_see_how_many_members_are_similar);
  tcase_add_test(tests, missing_k_means_as_many_as_fit);
  tcase_add_test(tests, the_largest_sizes_are_planned);
  tcase_add_test(tests, sizes_on_the_device_are_one_group);
  tcase_add_test(tests, sizes_on_the_device_are_sorted_into_boxes);
  tcase_add_test(tests, boxes_know_whether_all_their_members_are_tall);
  tcase_add_test(tests, sorted_members_are_worked_on_in_steps);
  tcase_add_test(tests, members_are_not_sorted_where_that_is_no_use);
  tcase_add_loop_test(tests, groups_are_a_partition, 1, 6);
  return suite_run(suite);
}
