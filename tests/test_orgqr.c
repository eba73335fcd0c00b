/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_orgqr(), as the planner sees fit. */
#include "suite.h"
#include "trial.h"

/* Reflectors of every kind of matrix. */
static void all_kinds(batchqr_handle_t handle, batchqr_type type, int m, int n, int k) {
  trial t = trial_new(BATCHQR_ORGQR, type, MATGEN_NUM_KINDS);
  trial_fill_kinds(&t, m, n, k);
  trial_once(&t, handle, TRIAL_CALL);
}

/* All m >= n up to 40 on the GPU, a choice on the CPU; k = n, half of it, 0 in turn. */
START_TEST(small_sizes) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int step = suite_on_gpu() ? 1 : 5, turn = 0;
  for (int m = 0; m <= 40; m += m < 4 ? 1 : step)
    for (int n = 0; n <= m; n += n < 4 ? 1 : step, turn++)
      all_kinds(handle, (batchqr_type)_i, m, n,
                turn % 4 < 2    ? n
                : turn % 4 == 2 ? n / 2
                : turn % 8 == 3 ? 0
                                : n - n / 3);
  batchqr_destroy(handle);
}
END_TEST

START_TEST(large_sizes) {
  static const int sizes[][3] = {{3000, 1, 1},    {3000, 7, 7},     {1000, 20, 9},   {257, 255, 255},
                                 {600, 127, 127}, {1000, 200, 150}, {513, 511, 256}, {2999, 33, 32},
                                 {129, 128, 1},   {300, 300, 300}};
  static const int largest[SUITE_TYPES][3] = {
      {3000, 3000, 3000}, {3000, 2000, 2000}, {1500, 1500, 700}, {2000, 700, 700}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int num_sizes = (int)(sizeof sizes / sizeof *sizes);
  for (int s = 0; s <= num_sizes; s++) {
    const int *size = s < num_sizes ? sizes[s] : largest[_i];
    if (s == num_sizes && !suite_on_gpu()) continue;
    trial t = trial_new(BATCHQR_ORGQR, (batchqr_type)_i, size[0] * size[1] < 100000 ? 4 : 1);
    trial_fill(&t, size[0], size[1], size[2], (uint64_t)s);
    trial_once(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Lone members that are large: reflectors in wide blocks, some of which are not full, and leading dimensions
 * that are the members' own. */
START_TEST(lone_members) {
  static const matgen_kind kinds[] = {MATGEN_RANDOM,         MATGEN_ILL,          MATGEN_WORST,
                                      MATGEN_RANK_DEFICIENT, MATGEN_ZERO_COLUMNS, MATGEN_SUBNORMAL};
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++) {
    trial t = trial_new(BATCHQR_ORGQR, (batchqr_type)_i, 1);
    t.members[0] = (trial_member){
        .m = 1500 + i, .n = 900 - i, .k = 895 - i % 3 * 123, .kind = kinds[i], .seed = (uint64_t)i};
    t.sizes = i % 2 == 0 ? BATCHQR_UNIFORM : BATCHQR_HOST_SIZES;
    t.ld_vary = i % 2 != 0;
    trial_once(&t, handle, i == 0 ? TRIAL_GRAPH : i % 3 == 1 ? TRIAL_PLAN : TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(many_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  trial t = trial_new(BATCHQR_ORGQR, (batchqr_type)_i, 70000);
  trial_fill(&t, 2, 2, 2, 0);
  trial_once(&t, handle, TRIAL_CALL);
  batchqr_destroy(handle);
}
END_TEST

/* A NaN or an Inf in V or tau spoils its own member alone. */
START_TEST(spoiled_members) {
  static const int sizes[][3] = {{1, 1, 1},     {3, 2, 1}, {17, 9, 9}, {40, 33, 20},
                                 {300, 40, 40}, {2, 2, 2}, {9, 9, 9}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    trial t = trial_new(BATCHQR_ORGQR, (batchqr_type)_i, 20);
    trial_fill(&t, sizes[s][0], sizes[s][1], sizes[s][2], 0);
    trial_spoil_some(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(nothing) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  batchqr_batch none = {
      .type = (batchqr_type)_i, .m = 5, .n = 3, .k = 3, .a = {.ld = 5, .stride = 15}, .tau = {.stride = 3}};
  batchqr_batch empty = {.type = (batchqr_type)_i, .count = 10, .m = 4, .n = 0, .a = {.ld = 4}};
  ck_assert_int_eq(batch_orgqr(handle, &none, NULL, NULL, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_orgqr(handle, &empty, NULL, NULL, NULL), BATCHQR_SUCCESS);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("orgqr");
  suite_add(suite, small_sizes);
  suite_add(suite, large_sizes);
  suite_add(suite, lone_members);
  suite_add(suite, many_members);
  suite_add(suite, spoiled_members);
  suite_add(suite, nothing);
  return suite_run(suite);
}
