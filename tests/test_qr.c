/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_qr() and batch_geqr_r(), as the planner sees fit. */
#include "suite.h"
#include "trial.h"

static const batchqr_op ops[] = {BATCHQR_QR, BATCHQR_GEQR_R};

static void all_kinds(batchqr_handle_t handle, batchqr_type type, batchqr_op op, int m, int n, bool in_place,
                      bool positive) {
  trial t = trial_new(op, type, MATGEN_NUM_KINDS);
  trial_fill_kinds(&t, m, n, 0);
  t.in_place = in_place;
  t.positive = positive;
  trial_once(&t, handle, TRIAL_CALL);
}

static bool skips(int size) {
  return !suite_on_gpu() && !(size <= 3 || size == 9 || size == 17 || size == 33 || size == 40);
}

/* All sizes on the GPU, a choice on the CPU; into A and beside it in turn. */
static void all_sizes(batchqr_type type, bool positive) {
  batchqr_options options = {.positive_diagonal = positive};
  batchqr_handle_t handle = memory_handle(memory_backend(), &options);
  for (int m = 0; m <= 40; m++)
    for (int n = 0; n <= 40; n++) {
      if (skips(m) || skips(n) || (positive && (m + n) % 4 != 1)) continue;
      for (int o = 0; o < 2; o++) all_kinds(handle, type, ops[o], m, n, (m / 2 + n + o) % 2 == 0, positive);
    }
  batchqr_destroy(handle);
}

START_TEST(small_sizes) { all_sizes((batchqr_type)_i, false); }
END_TEST

START_TEST(small_sizes_positive) { all_sizes((batchqr_type)_i, true); }
END_TEST

/* With a diagonal >= 0, v is long where alpha is the larger part of its column, and errors of tau show in Q.
 * A tau from the formula alone, with estimated reciprocals, leaves one of a thousand above the bound, up
 * to 35.
 */
START_TEST(two_rows_positive) {
  batchqr_handle_t handle = memory_handle(memory_backend(), &(batchqr_options){.positive_diagonal = true});
  trial t = trial_new(BATCHQR_QR, (batchqr_type)_i, 20000);
  trial_fill(&t, 2, 9, 0, 0);
  t.positive = true;
  t.bound = 24;
  trial_once(&t, handle, TRIAL_CALL);
  batchqr_destroy(handle);
}
END_TEST

START_TEST(large_sizes) {
  static const int sizes[][2] = {{1, 3000},  {3000, 1},  {3000, 7},   {1000, 20}, {20, 1000}, {257, 255},
                                 {200, 300}, {600, 127}, {1000, 200}, {64, 2000}, {2999, 33}, {300, 300}};
  static const matgen_kind kinds[] = {MATGEN_RANDOM, MATGEN_HUGE, MATGEN_WORST, MATGEN_SUBNORMAL};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int num_sizes = (int)(sizeof sizes / sizeof *sizes);
  for (int s = 0; s < num_sizes; s++)
    for (int o = 0; o < 2; o++) {
      int m = sizes[s][0], n = sizes[s][1];
      trial t = trial_new(ops[o], (batchqr_type)_i, m * n < 50000 ? 4 : 1);
      for (int i = 0; i < t.count; i++)
        t.members[i] = (trial_member){.m = m, .n = n, .kind = kinds[(i + s) % 4], .seed = (uint64_t)s};
      t.in_place = (s + o) % 2;
      trial_once(&t, handle, TRIAL_CALL);
    }
  batchqr_destroy(handle);
}
END_TEST

/* Lone members that are large, Q with leading dimensions of its own. */
START_TEST(lone_members) {
  static const int sizes[][2] = {{1500, 900}, {1101, 1103}, {900, 1301}};
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int s = 0; s < 6; s++) {
    trial t = trial_new(BATCHQR_QR, (batchqr_type)_i, 1);
    t.members[0] = (trial_member){.m = sizes[s % 3][0], .n = sizes[s % 3][1], .seed = (uint64_t)s};
    t.sizes = s < 3 ? BATCHQR_HOST_SIZES : BATCHQR_UNIFORM;
    t.ld_vary = s < 3;
    t.in_place = s == 4;
    trial_once(&t, handle, s % 2 ? TRIAL_GRAPH : TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(many_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int o = 0; o < 2; o++) {
    trial t = trial_new(ops[o], (batchqr_type)_i, 70000);
    for (int i = 0; i < t.count; i++)
      t.members[i] =
          (trial_member){.m = 2, .n = 2, .kind = (matgen_kind)(i % MATGEN_NUM_KINDS), .seed = (uint64_t)i};
    trial_once(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(spoiled_members) {
  static const int sizes[][2] = {{1, 1}, {3, 2}, {17, 9}, {9, 17}, {40, 33}, {300, 40}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int s = 0; s < 12; s++) {
    batchqr_op op = ops[s % 2];
    trial t = trial_new(op, (batchqr_type)_i, 20);
    trial_fill(&t, sizes[s / 2][0], sizes[s / 2][1], 0, 0);
    trial_spoil_some(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(nothing) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  batchqr_batch none = {.type = (batchqr_type)_i,
                        .m = 5,
                        .n = 3,
                        .a = {.ld = 5, .stride = 15},
                        .c = {.ld = 5, .stride = 15},
                        .r = {.ld = 3, .stride = 9}};
  batchqr_batch empty = {
      .type = (batchqr_type)_i, .count = 10, .m = 0, .n = 3, .a = {.ld = 1}, .c = {.ld = 1}, .r = {.ld = 1}};
  ck_assert_int_eq(batch_qr(handle, &none, NULL, NULL, NULL, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_qr(handle, &empty, NULL, NULL, NULL, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_geqr_r(handle, &none, NULL, NULL, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_geqr_r(handle, &empty, NULL, NULL, NULL), BATCHQR_SUCCESS);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("qr");
  suite_add(suite, small_sizes);
  suite_add(suite, small_sizes_positive);
  suite_add(suite, two_rows_positive);
  suite_add(suite, large_sizes);
  suite_add(suite, lone_members);
  suite_add(suite, many_members);
  suite_add(suite, spoiled_members);
  suite_add(suite, nothing);
  return suite_run(suite);
}
