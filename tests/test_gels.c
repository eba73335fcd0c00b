/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_gels(), as the planner sees fit. Batches of many sizes are test_variable's. */
#include "inspect.h"
#include "residual.h"
#include "suite.h"
#include "trial.h"

#include <math.h>
#include <string.h>

/* op(A) is A (way 0) or A^H; real types are told so in two ways. */
static trial new_trial(batchqr_type type, int64_t count, int way) {
  trial t = trial_new(BATCHQR_GELS, type, count);
  t.trans = way % 2 == 0                            ? BATCHQR_NO_TRANS
            : way % 4 == 1 || type_is_complex(type) ? BATCHQR_CONJ_TRANS
                                                    : BATCHQR_TRANS;
  return t;
}

static void all_kinds(batchqr_handle_t handle, batchqr_type type, int way, int m, int n, int k) {
  trial t = new_trial(type, MATGEN_NUM_KINDS, way);
  trial_fill_kinds(&t, m, n, k);
  t.no_optional = (m + n + k) % 4 == 0;
  trial_once(&t, handle, way % 3 == 1 ? TRIAL_PLAN : TRIAL_CALL);
}

/* All m and n from 0 to 34 on the GPU, a choice on the CPU. */
START_TEST(small_sizes) {
  static const int rhs[] = {1, 3, 2, 5, 9, 0, 4, 17};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int step = suite_on_gpu() ? 1 : 5, turn = 0;
  for (int m = 0; m <= 34; m += m < 3 ? 1 : step)
    for (int n = 0; n <= 34; n += n < 3 ? 1 : step, turn++)
      all_kinds(handle, (batchqr_type)_i, turn % 4, m, n, rhs[turn % 8]);
  batchqr_destroy(handle);
}
END_TEST

START_TEST(large_sizes) {
  static const int sizes[][3] = {{1000, 3, 1},   {3, 1000, 2},    {257, 100, 40}, {100, 257, 7},
                                 {129, 129, 33}, {600, 127, 130}, {64, 3000, 10}, {500, 300, 1},
                                 {300, 301, 65}, {1025, 33, 3},   {33000, 70, 2}, {70, 20000, 1}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int way = 0; way < 2; way++) {
      trial t = new_trial((batchqr_type)_i, 2, way);
      for (int i = 0; i < t.count; i++)
        t.members[i] = (trial_member){.m = sizes[s][0],
                                      .n = sizes[s][1],
                                      .k = sizes[s][2],
                                      .kind = MATGEN_WELL,
                                      .seed = s + (uint64_t)i};
      trial_once(&t, handle, TRIAL_CALL);
    }
  batchqr_destroy(handle);
}
END_TEST

/* With each factorization that applies Q^H to B itself. */
static void with_factorization(const bqr_family *family, batchqr_type type) {
  static const int sizes[][3] = {{600, 100, 1},  {557, 65, 3},    {1000, 33, 2},  {300, 300, 5},
                                 {4100, 96, 2},  {40000, 70, 1},  {150, 64, 140}, {1300, 1100, 1},
                                 {2000, 129, 7}, {66000, 128, 1}, {70, 600, 3},   {500, 260, 0}};
  for (int v = 0; v < family->nvariants; v++) {
    const unsigned types = family->variants[v].types; /* 0: all of the family's */
    if (types && !(types >> type & 1)) continue;
    batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GEQRF, family->name, family->variants[v].name), 0);
    for (size_t s = v % 2; s < sizeof sizes / sizeof *sizes; s += 1 + (v > 1)) {
      trial t = new_trial(type, 1 + (int64_t)s % 3, 0);
      trial_fill(&t, sizes[s][0], sizes[s][1], sizes[s][2], 0);
      t.tight = s % 4 == 0;
      trial_once(&t, handle, s % 3 == 1 && suite_on_gpu() ? TRIAL_GRAPH : TRIAL_CALL);
    }
    batchqr_destroy(handle);
  }
}

START_TEST(factorizations_that_apply_q) {
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
    const bool runs = bqr_family_runs_on(family, bqr_handle_device(handle), (batchqr_type)_i);
    batchqr_destroy(handle);
    if (family->applies_q && runs) with_factorization(family, (batchqr_type)_i);
  }
}
END_TEST

/* With R of less precision and steps to the working precision's, behind which the direct way is turned off,
 * in kernels that heed that and in others. */
static void by_refinement(const bqr_family *family, batchqr_type type, const char *factorization) {
  static const int sizes[][3] = {{300, 100, 1}, {300, 97, 3},  {70, 70, 1},    {2500, 33, 4},
                                 {64, 1, 2},    {9000, 40, 1}, {1500, 1100, 2}};
  const bool tall = !strcmp(family->name, "gels_tall");
  for (int v = 0; v < family->nvariants; v++) {
    batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
    if (family->variants[v].by > 2 && type == BATCHQR_S) continue;
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GELS, family->name, family->variants[v].name), 0);
    if (factorization) ck_assert_int_eq(bqr_force(handle, BATCHQR_GEQRF, factorization, NULL), 0);
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes - tall; s++) {
      trial t = new_trial(type, s < 6 ? MATGEN_NUM_KINDS : 2, 0);
      trial_fill_kinds(&t, sizes[s][0], sizes[s][1], sizes[s][2]);
      t.layout = BATCHQR_STRIDED;
      t.own_layouts = false;
      t.tight = s % 3 == 0;
      trial_once(&t, handle, s % 3 == 1 ? TRIAL_GRAPH : s % 3 == 2 ? TRIAL_PLAN : TRIAL_CALL);
    }
    trial t = new_trial(type, 20, 0);
    trial_fill(&t, 150, 60, 2, 0);
    trial_spoil_some(&t, handle, TRIAL_CALL);
    batchqr_destroy(handle);
  }
}

START_TEST(refined) {
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
    const bool runs = (!strcmp(family->name, "gels_refine") || !strcmp(family->name, "gels_tall")) &&
                      bqr_family_runs_on(family, bqr_handle_device(handle), (batchqr_type)_i);
    batchqr_destroy(handle);
    if (!runs) continue;
    by_refinement(family, (batchqr_type)_i, NULL);
    by_refinement(family, (batchqr_type)_i, "geqrf_large");
  }
}
END_TEST

/* What a member of 400 x 64 tells, by a family that is forced: steps where they help, and where columns
 * depend on one another or there is a NaN, that they have not. */
static void expect_refined(const char *family, batchqr_type type, matgen_kind kind, trial_spoil spoil,
                           bool steps_help) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  ck_assert_int_eq(bqr_force(handle, BATCHQR_GELS, family, NULL), 0);
  trial t = new_trial(type, 1, 0);
  trial_fill(&t, 400, 64, 2, 7);
  t.members->kind = kind;
  t.members->spoil = spoil;
  t.layout = BATCHQR_STRIDED;
  t.own_layouts = false;
  trial_build(&t);
  trial_run_and_judge(&t, handle, TRIAL_CALL);
  const int *iterations = guard_at(&t.operands[BQR_ITERATIONS].g, t.members->at[BQR_ITERATIONS]);
  for (int j = 0; j < 2; j++)
    ck_assert_msg(steps_help ? iterations[j] > 0 : iterations[j] < 0, "%s, %s: %d iterations", family,
                  matgen_name(kind), iterations[j]);
  trial_free(&t);
  batchqr_destroy(handle);
}

/* gels_tall gives up on doubles whose products are beyond its range. */
static void expect_rungs(const char *family, batchqr_type type) {
  const bool in_range = strcmp(family, "gels_tall") != 0 || type == BATCHQR_S;
  expect_refined(family, type, MATGEN_WELL, TRIAL_SOUND, true);
  expect_refined(family, type, MATGEN_RANDOM, TRIAL_SOUND, true);
  expect_refined(family, type, MATGEN_HUGE, TRIAL_SOUND, in_range);
  expect_refined(family, type, MATGEN_ZERO_LAST, TRIAL_SOUND, false);
  expect_refined(family, type, MATGEN_ZERO, TRIAL_SOUND, false);
  expect_refined(family, type, MATGEN_WELL, TRIAL_NAN, false);
}

START_TEST(iterations_tell_the_rung) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  const bqr_device device = *bqr_handle_device(handle);
  batchqr_destroy(handle);
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    if ((!strcmp(family->name, "gels_refine") || !strcmp(family->name, "gels_tall")) &&
        bqr_family_runs_on(family, &device, (batchqr_type)_i))
      expect_rungs(family->name, (batchqr_type)_i);
  }
}
END_TEST

START_TEST(many_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 2; way++) {
    trial t = new_trial((batchqr_type)_i, 70000, way);
    trial_fill(&t, 3, 2, 1, 0);
    t.judged = 5000;
    trial_once(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Members that get drivers of their own, which find them by the host's numbers, beside small ones. */
START_TEST(large_among_small) {
  static const int sizes[][2] = {{5, 3}, {1100, 1000}, {3, 7}, {1000, 1100}, {40, 20}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  trial t = new_trial((batchqr_type)_i, 5, 0);
  for (int i = 0; i < 5; i++)
    t.members[i] = (trial_member){
        .m = sizes[i][0], .n = sizes[i][1], .k = 2, .kind = MATGEN_RANDOM, .seed = (uint64_t)i};
  t.sizes = BATCHQR_HOST_SIZES;
  trial_once(&t, handle, TRIAL_PLAN);
  batchqr_destroy(handle);
}
END_TEST

/* A NaN or an Inf in A or in B spoils its own member alone. */
START_TEST(spoiled_members) {
  static const int sizes[][3] = {{1, 1, 1}, {7, 3, 2}, {3, 7, 1}, {40, 33, 5}, {20, 100, 9}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int s = 0; s < 5; s++)
    for (int way = 0; way < 2; way++) {
      trial t = new_trial((batchqr_type)_i, 40, way);
      trial_fill(&t, sizes[s][0], sizes[s][1], sizes[s][2], 0);
      trial_spoil_some(&t, handle, s % 2 ? TRIAL_PLAN : TRIAL_CALL);
    }
  batchqr_destroy(handle);
}
END_TEST

/* The place in the batch and its count do not matter. */
START_TEST(places) {
  static const int sizes[][3] = {{12, 5, 3}, {5, 12, 2}, {70, 40, 5}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int s = 0; s < 3; s++)
    for (int way = 0; way < 2; way++) {
      trial forward = new_trial((batchqr_type)_i, 50, way), backward = new_trial((batchqr_type)_i, 50, way);
      for (int i = 0; i < 50; i++) {
        forward.members[i] =
            (trial_member){.m = sizes[s][0], .n = sizes[s][1], .k = sizes[s][2], .seed = (uint64_t)i};
        backward.members[49 - i] = forward.members[i];
      }
      backward.layout = BATCHQR_POINTERS;
      trial_build(&forward);
      trial_build(&backward);
      trial_run_and_judge(&forward, handle, TRIAL_CALL);
      trial_run_and_judge(&backward, handle, TRIAL_CALL);
      for (int i = 0; i < 50; i++)
        trial_check_same(&forward, i, &backward, 49 - i, handle, "the members' order");
      trial_free(&forward);
      trial_free(&backward);
    }
  batchqr_destroy(handle);
}
END_TEST

/* Captured into a graph, and replayed on fresh data. */
START_TEST(captured) {
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 4; way++) {
    trial t = new_trial((batchqr_type)_i, 30, way);
    trial_fill(&t, way < 2 ? 20 : 6, 9, 2, 0);
    trial_once(&t, handle, TRIAL_GRAPH);
  }
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gels");
  suite_add(suite, small_sizes);
  suite_add(suite, large_sizes);
  suite_add(suite, factorizations_that_apply_q);
  suite_add(suite, refined);
  suite_add(suite, iterations_tell_the_rung);
  suite_add(suite, large_among_small);
  suite_add(suite, many_members);
  suite_add(suite, spoiled_members);
  suite_add(suite, places);
  suite_add(suite, captured);
  return suite_run(suite);
}
