/* SPDX-License-Identifier: BSD-3-Clause */
#include "kernel_steps.h"
#include "direct.h"
#include "inspect.h"
#include "residual.h"
#include "suite.h"

#include <stdlib.h>
#include <string.h>

/* --- the copies, which are steps and no routines */

/* That entry (i, j) of the copy is that of A, or zero. */
static void check_copied(const subject *s, const trial *t, const trial_member *x) {
  const bool r = s->family->op == BQR_COPY_R;
  const int k = bqr_min(x->m, x->n), rows = r && !t->in_place ? k : x->m, cols = r ? x->n : k;
  const int place = r ? BQR_R : BQR_C, ld = x->ld[place];
  const trial_array *to = &t->operands[t->in_place ? BQR_A : place];
  static const char zero[16] = {0};
  for (int j = 0; j < cols; j++)
    for (int i = 0; i < rows; i++) {
      const int64_t at = x->at[BQR_A] + (int64_t)j * x->ld[BQR_A] + i;
      const void *from = r && i > j ? zero : guard_before(&t->operands[BQR_A].g, at);
      const void *copy = guard_at(&to->g, x->at[place] + (int64_t)j * ld + i);
      if (memcmp(copy, from, bqr_type_bytes(t->type)) == 0) continue;
      ck_abort_msg("%s %s, %c, %d x %d, ld %d -> %d, seed %llu%s: entry (%d, %d) was not copied",
                   s->family->name, s->variant->name, type_letter(t->type), x->m, x->n, x->ld[BQR_A], ld,
                   (unsigned long long)x->seed, t->in_place ? ", in place" : "", i, j);
    }
}

void test_copy(const subject *s) {
  static const int pairs[][2] = {{1, 1},   {0, 3},   {3, 0},   {5, 3},   {3, 5},
                                 {33, 32}, {32, 33}, {100, 7}, {7, 100}, {257, 130}};
  for (int i = 0; i < 60; i++) {
    const int *pair = pairs[i / 6];
    size x = {pair[0], pair[1], 0};
    trial t = trial_new(s->family->op == BQR_COPY_R ? BATCHQR_GEQR_R : BATCHQR_QR, s->type, 9);
    t.layout = (batchqr_layout)(i % 2);
    t.sizes = i % 3 == 0 ? BATCHQR_UNIFORM : BATCHQR_DEVICE_SIZES;
    t.in_place = s->family->op == BQR_COPY_R && i % 4 < 2;
    for (int j = 0; j < t.count; j++) {
      size y = t.sizes == BATCHQR_UNIFORM || j == 4 ? x : subject_smaller(s, x, (uint64_t)(i * 10 + j));
      t.members[j] = (trial_member){.m = y.m, .n = y.n, .kind = MATGEN_RANDOM, .seed = (uint64_t)j};
    }
    if (subject_takes(s, &t, x)) {
      trial_build(&t);
      direct d = {s, &t, NULL, t.count};
      ck_assert_int_eq(trial_run_with(&t, s->handle, launch_directly, &d), BATCHQR_SUCCESS);
      trial_check_guards(&t, s->handle);
      for (int j = 0; j < t.count; j++) check_copied(s, &t, &t.members[j]);
    }
    trial_free(&t);
  }
}

/* --- GELS, and its steps in GELS: the other steps are as the planner sees fit */

/* The sizes of a step for GELS's. */
static size step_size(const subject *s, size x) {
  if (s->family->op != BATCHQR_TRSM) return x;
  return (size){bqr_max(x.m, x.n), bqr_min(x.m, x.n), x.k};
}

static const int solver_sizes[][3] = {
    {1, 1, 1},     {0, 3, 2},    {3, 0, 2},     {2, 2, 0},     {5, 3, 1},     {3, 5, 4},     {32, 32, 5},
    {33, 32, 3},   {32, 33, 1},  {33, 33, 17},  {64, 31, 9},   {31, 40, 8},   {100, 65, 2},  {65, 100, 3},
    {150, 97, 40}, {129, 8, 1},  {40, 160, 33}, {8, 5, 3},     {7, 4, 4},     {32, 5, 3},    {31, 7, 1},
    {32, 9, 7},    {30, 15, 1},  {64, 9, 1},    {60, 10, 6},   {33, 1, 15},   {32, 31, 1},   {32, 16, 16},
    {17, 0, 5},    {20, 12, 0},  {64, 64, 8},   {128, 100, 2}, {200, 90, 9},  {257, 256, 3}, {512, 130, 1},
    {400, 33, 40}, {256, 64, 1}, {90, 300, 4},  {600, 40, 2},  {1500, 64, 1}, {3000, 17, 3}, {4096, 8, 1}};
enum { SOLVER_SIZES = sizeof solver_sizes / sizeof *solver_sizes };

void test_gels(const subject *s) {
  for (int i = 0; i < 6 * SOLVER_SIZES; i++) {
    const int *sizes = solver_sizes[i / 6];
    size x = {sizes[0], sizes[1], sizes[2]};
    /* On the GPU these are families for tall members alone, whose sizes are known. */
    bool whole = s->family->op == BATCHQR_GELS && s->family->backend == BATCHQR_BACKEND_CUDA;
    trial t = trial_new(BATCHQR_GELS, s->type, whole ? 40 : 9);
    t.trans = i % 2 && !whole ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
    t.layout = (batchqr_layout)(i / 2 % 2);
    t.sizes = (batchqr_sizes)(i % (whole ? 2 : 3));
    t.ld_vary = i % 5 == 0;
    for (int j = 0; j < t.count; j++) {
      uint64_t seed = (uint64_t)(i * 10 + j);
      bool vary = t.sizes != BATCHQR_UNIFORM && j != 4;
      t.members[j] = (trial_member){.m = vary ? rng_int(seed, 0, 0, x.m) : x.m,
                                    .n = vary ? rng_int(seed, 1, 0, x.n) : x.n,
                                    .k = vary ? rng_int(seed, 2, 0, x.k) : x.k,
                                    .kind = (matgen_kind)(seed % MATGEN_NUM_KINDS),
                                    .seed = seed};
      if (whole) t.members[j].n = bqr_min(t.members[j].n, t.members[j].m);
    }
    if (subject_supports(s, step_size(s, x))) {
      trial_build(&t);
      trial_run_and_judge(&t, s->handle, i % 4 == 3 ? TRIAL_PLAN : TRIAL_CALL);
    }
    trial_free(&t);
  }
}

/* --- the last step of GELSY and PINV, in these; PINV, which does not take sizes on the device */

void test_solve(const subject *s) {
  for (int i = 0; i < 6 * SOLVER_SIZES; i++) {
    const int *sizes = solver_sizes[i / 6];
    const bool inverts = i % 6 > 3;
    const size x = {sizes[0], sizes[1], inverts ? 0 : sizes[2]};
    if (!subject_supports(s, x) || (inverts && bqr_max(x.m, x.n) > 65)) continue;
    if (x.m * x.n > 8000 && i % 6 != i / 6 % 4) continue; /* they are judged in long double */
    trial t = trial_new(inverts ? BATCHQR_PINV : BATCHQR_GELSY, s->type, MATGEN_NUM_KINDS);
    trial_fill_kinds(&t, x.m, x.n, x.k);
    t.layout = (batchqr_layout)(i / 2 % 2);
    t.sizes = (batchqr_sizes)(inverts ? i % 2 : i % 3);
    t.ld_vary = i % 5 == 0;
    t.reltol = i % 4 == 1 ? 1e-4 : 0;
    t.kmax = i % 5 == 2 ? 3 : 0;
    for (int j = 0; j < t.count && t.sizes != BATCHQR_UNIFORM; j++) {
      trial_member *y = &t.members[j];
      y->m = rng_int((uint64_t)(i * 100 + j), 0, 0, x.m);
      y->n = rng_int((uint64_t)(i * 100 + j), 1, 0, x.n);
      y->k = rng_int((uint64_t)(i * 100 + j), 2, 0, x.k);
    }
    trial_once(&t, s->handle, i % 4 == 3 ? TRIAL_PLAN : TRIAL_CALL);
  }
}

/* --- TRSM */

void test_trsm(const subject *step) {
  subject routine = *step;
  const subject *s = &routine;
  routine.whole = true;
  for (int i = 0; i < 6 * SOLVER_SIZES; i++) {
    const int *sizes = solver_sizes[i / 6];
    const size x = step_size(s, (size){sizes[0], sizes[1], sizes[2]});
    if (!subject_supports(s, x)) continue;
    trial t = trial_new(BATCHQR_TRSM, s->type, MATGEN_NUM_KINDS);
    trial_fill_kinds(&t, x.m, x.n, x.k);
    t.trans = i % 2 ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
    t.layout = (batchqr_layout)(i / 2 % 2);
    t.sizes = (batchqr_sizes)(i % 3);
    t.ld_vary = i % 5 == 0;
    for (int j = 0; j < t.count && t.sizes != BATCHQR_UNIFORM; j++) {
      trial_member *y = &t.members[j];
      y->n = rng_int((uint64_t)(i * 100 + j), 0, 0, x.n);
      y->m = rng_int((uint64_t)(i * 100 + j), 1, y->n, x.m);
      y->k = rng_int((uint64_t)(i * 100 + j), 2, 0, x.k);
    }
    trial_once(&t, s->handle, i % 4 == 3 ? TRIAL_PLAN : TRIAL_CALL);
  }
}
