/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_gelsy() and batch_pinv(), as the planner sees fit: all kinds of members, of many sizes in every form,
 * ranks, and LAPACK's own. */
#include "inspect.h"
#include "matgen.h"
#include "suite.h"
#include "trial.h"

#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const int ops[] = {BATCHQR_GELSY, BATCHQR_PINV};

static void all_kinds(batchqr_handle_t handle, batchqr_op op, batchqr_type type, int way, int m, int n,
                      int k) {
  trial t = trial_new(op, type, MATGEN_NUM_KINDS);
  trial_fill_kinds(&t, m, n, k);
  t.reltol = way % 3 == 2 ? 1e-5 : 0;
  t.kmax = way % 5 == 1 ? 3 : 0;
  t.left_out = way % 4 == 3 ? 1u << BQR_S | 1u << BQR_JPVT : 0;
  trial_once(&t, handle, way % 4 == 1 ? TRIAL_PLAN : TRIAL_CALL);
}

START_TEST(small_sizes) {
  static const int rhs[] = {1, 3, 2, 5, 9, 0, 4, 17};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  const int step = suite_on_gpu() ? 2 : 6;
  int turn = 0;
  for (int m = 0; m <= 34; m += m < 3 ? 1 : step)
    for (int n = 0; n <= 34; n += n < 3 ? 1 : step, turn++)
      for (int op = 0; op < 2; op++) all_kinds(handle, ops[op], (batchqr_type)_i, turn, m, n, rhs[turn % 8]);
  batchqr_destroy(handle);
}
END_TEST

START_TEST(large_sizes) {
  static const int sizes[][3] = {{500, 3, 1},    {3, 500, 2},    {257, 100, 40}, {100, 257, 7},
                                 {129, 129, 33}, {300, 127, 60}, {64, 900, 10},  {200, 201, 65}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int way = 0; way < 3; way++) {
      trial t = trial_new(way == 2 ? BATCHQR_PINV : BATCHQR_GELSY, (batchqr_type)_i, 2);
      for (int i = 0; i < t.count; i++)
        t.members[i] = (trial_member){.m = sizes[s][0],
                                      .n = sizes[s][1],
                                      .k = way == 2 ? 0 : sizes[s][2],
                                      .kind = way == 1 ? MATGEN_RANK_DEFICIENT : MATGEN_WELL,
                                      .seed = s + (uint64_t)i};
      t.reltol = way == 1 ? 1e-4 : 0;
      trial_once(&t, handle, TRIAL_CALL);
    }
  batchqr_destroy(handle);
}
END_TEST

/* Sizes on host and device, both layouts, a NaN in a member, and a graph. */
START_TEST(forms) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 36; way++) {
    const bool inverts = way % 3 == 2;
    trial t = trial_new(inverts ? BATCHQR_PINV : BATCHQR_GELSY, (batchqr_type)_i, 30);
    t.sizes = (batchqr_sizes)(inverts ? way / 3 % 2 : way / 3 % 3);
    t.layout = (batchqr_layout)(way % 2);
    t.ld_vary = way % 4 == 1;
    t.reltol = way % 5 == 0 ? 1e-3 : 0;
    for (int i = 0; i < t.count; i++) {
      const uint64_t seed = (uint64_t)(way * 100 + i);
      const bool vary = t.sizes != BATCHQR_UNIFORM;
      t.members[i] = (trial_member){.m = vary ? rng_int(seed, 0, 0, 40) : 23,
                                    .n = vary ? rng_int(seed, 1, 0, 40) : 17 + way % 2 * 10,
                                    .k = inverts ? 0
                                         : vary  ? rng_int(seed, 2, 0, 9)
                                                 : 3,
                                    .kind = (matgen_kind)(i % MATGEN_NUM_KINDS),
                                    .spoil = i % 7 == 6 ? TRIAL_NAN : TRIAL_SOUND,
                                    .seed = seed};
      if (t.members[i].m == 0 || t.members[i].n == 0) t.members[i].spoil = TRIAL_SOUND;
    }
    trial_once(&t, handle, way / 9 == TRIAL_GRAPH && !suite_on_gpu() ? TRIAL_PLAN : (trial_mode)(way / 9));
  }
  batchqr_destroy(handle);
}
END_TEST

/* --- ranks, and solutions of LAPACK's */

enum { COUNT = 20, MOST = 32 };

/* m x n of a rank, in double precision: products of random matrices, with singular values near 1. */
static void fill_of_rank(int m, int n, int rank, uint64_t seed, double *a) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      double sum = 0;
      for (int l = 0; l < rank; l++)
        sum += (rng_int(seed, (uint64_t)(i * MOST + l), -1000, 1000) + (i == l ? 3000 : 0)) * 1e-3 *
               (rng_int(seed + 1, (uint64_t)(j * MOST + l), -1000, 1000) + (j == l ? 3000 : 0)) * 1e-3;
      a[j * m + i] = sum;
    }
}

/* X is xGELSY's to roundings, and the rank the one that A was made with, in the same call for all ranks. */
START_TEST(like_lapack) {
  static const int sizes[][2] = {{30, 20}, {20, 30}, {24, 24}, {32, 5}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
    const int m = sizes[s][0], n = sizes[s][1], most = bqr_max(m, n), least = bqr_min(m, n), k = 3;
    const size_t of_a = (size_t)m * (size_t)n, of_c = (size_t)most * (size_t)k;
    batchqr_batch batch = batchqr_batch_packed(BATCHQR_GELSY, BATCHQR_D, m, n, k, COUNT);
    double *a = calloc(COUNT * of_a, sizeof *a), *c = calloc(COUNT * of_c, sizeof *c);
    double *x = calloc(COUNT * of_c, sizeof *x), copy[MOST * MOST], right[MOST * 3];
    int ranks[COUNT], infos[COUNT];
    batch.reltol = 1e-10;
    for (int i = 0; i < COUNT; i++) {
      fill_of_rank(m, n, i % (least + 1), (uint64_t)(i + 7), a + (size_t)i * of_a);
      for (int j = 0; j < k; j++)
        for (int l = 0; l < m; l++)
          c[(size_t)i * of_c + (size_t)(j * most + l)] =
              rng_int((uint64_t)i, (uint64_t)(j * MOST + l), -9, 9);
    }
    const batchqr_backend backend = memory_backend();
    void *da = memory_clone(backend, a, COUNT * of_a * sizeof *a),
         *dc = memory_clone(backend, c, COUNT * of_c * sizeof *c);
    int *dranks = memory_alloc(backend, sizeof ranks), *dinfos = memory_alloc(backend, sizeof infos);
    ck_assert_int_eq(batch_gelsy(handle, &batch, da, dc, NULL, dranks, dinfos), BATCHQR_SUCCESS);
    memory_download(backend, x, dc, COUNT * of_c * sizeof *x);
    memory_download(backend, ranks, dranks, sizeof ranks);
    memory_download(backend, infos, dinfos, sizeof infos);
    for (int i = 0; i < COUNT; i++) {
      int jpvt[MOST] = {0}, rank = -1;
      memcpy(copy, a + (size_t)i * of_a, of_a * sizeof *a);
      memcpy(right, c + (size_t)i * of_c, of_c * sizeof *c);
      LAPACKE_dgelsy(LAPACK_COL_MAJOR, m, n, k, copy, m, right, most, jpvt, 1e-10, &rank);
      ck_assert_int_eq(infos[i], 0);
      ck_assert_int_eq(ranks[i], i % (least + 1));
      ck_assert_int_eq(ranks[i], rank);
      for (int j = 0; j < k; j++)
        for (int l = 0; l < n; l++) {
          const double got = x[(size_t)i * of_c + (size_t)(j * most + l)], expected = right[j * most + l];
          ck_assert_msg(fabs(got - expected) < 1e-9, "%d x %d, rank %d, X(%d,%d): %g, not %g", m, n, rank, l,
                        j, got, expected);
        }
    }
    memory_free(backend, da), memory_free(backend, dc), memory_free(backend, dranks),
        memory_free(backend, dinfos);
    free(a), free(c), free(x);
  }
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gelsy");
  suite_add(suite, small_sizes);
  suite_add(suite, large_sizes);
  suite_add(suite, forms);
  TCase *tcase = tcase_create("like_lapack");
  tcase_set_timeout(tcase, 0);
  tcase_add_test(tcase, like_lapack);
  suite_add_tcase(suite, tcase);
  return suite_run(suite);
}
