/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches whose members have sizes of their own, in all forms: sizes on the host and on the device, strided
 * and by pointers, one leading dimension and many. */
#include "inspect.h"
#include "suite.h"
#include "trial.h"

#include <string.h>

enum { LARGEST_M = 300, LARGEST_N = 200, MEMBERS = 10000, COMMON = 7 };

/* --- sizes */

/* Most are small; the first ones are the extremes. */
static void choose_sizes(trial *t, int largest_m, int largest_n) {
  const int extremes[][2] = {{0, 0},         {largest_m, largest_n}, {largest_m, 0}, {0, largest_n},
                             {largest_m, 1}, {1, largest_n},         {1, 1}};
  for (int64_t i = 0; i < t->count; i++) {
    double u = rng_uniform(17, (uint64_t)i), v = rng_uniform(18, (uint64_t)i);
    int m = (int)(u * u * u * u * (largest_m + 1)), n = (int)(v * v * v * v * (largest_n + 1));
    if (i < 7) m = extremes[i][0], n = extremes[i][1];
    if (i % 20 == COMMON) m = 37, n = 19; /* the members of a uniform batch */
    trial_member *x = &t->members[i];
    *x = (trial_member){.m = m, .n = n, .kind = MATGEN_RANDOM, .seed = (uint64_t)i};
    if (t->op == BATCHQR_ORGQR && n > m) x->n = m;
    if (t->op != BATCHQR_ORGQR && t->op != BATCHQR_ORMQR) continue;
    int fit = t->op == BATCHQR_ORMQR && t->side == BATCHQR_LEFT ? x->m : x->n;
    bool all = t->all_k || i % 3 == 0 || i % 20 == COMMON;
    x->k = all ? fit : rng_int(19, (uint64_t)i, 0, fit);
  }
}

/* Whether a variant serves all members up to the largest, in whatever layout. */
static bool serves(const batchqr_family *family, const batchqr_variant *variant, const batchqr_device *device,
                   batchqr_type type, batchqr_side side) {
  if (family->backend != device->backend || family->sm_min > device->sm || !(family->types >> type & 1) ||
      family->compute == BATCHQR_COMPUTE_HALF)
    return false;
  for (int form = 0; form < 4; form++) {
    batchqr_problem problem = {.op = family->op,
                               .type = type,
                               .layout = (batchqr_layout)(form & 1),
                               .uniform = form >> 1,
                               .side = side,
                               .m = LARGEST_M,
                               .n = LARGEST_N,
                               .count = MEMBERS};
    problem.k = family->op == BATCHQR_ORMQR && side == BATCHQR_LEFT ? LARGEST_M : LARGEST_N;
    if (!family->supports(&problem, variant, device)) return false;
  }
  return true;
}

/* The first family that does `op`, forced if it serves all; false if there is one that does not. */
static bool force_one(batchqr_handle_t handle, int op, batchqr_type type, batchqr_side side) {
  bool none = true;
  for (int f = 0; f < bqr_num_families(); f++) {
    const batchqr_family *family = bqr_family_at(f);
    if (family->op != op) continue;
    none = false;
    for (int v = 0; v < family->nvariants; v++)
      if (serves(family, &family->variants[v], bqr_handle_device(handle), type, side))
        return bqr_force(handle, op, family->name, family->variants[v].name) == BATCHQR_SUCCESS;
  }
  return none;
}

/* Forces all that an operation may be made of, so that neither sizes nor counts choose. */
static bool force_all(batchqr_handle_t handle, batchqr_op op, batchqr_type type, batchqr_side side) {
  static const int steps[] = {BATCHQR_GEQRF, BATCHQR_ORGQR, BATCHQR_ORMQR, BATCHQR_COPY_R, BATCHQR_COPY_V};
  for (int s = 0; s < 5; s++) ck_assert(force_one(handle, steps[s], type, side));
  return force_one(handle, (int)op, type, side);
}

/* --- the same results in all forms */

static trial new_trial(batchqr_op op, batchqr_type type, batchqr_side side, int64_t count) {
  trial t = trial_new(op, type, count);
  t.side = side;
  t.trans = side == BATCHQR_LEFT ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
  return t;
}

/* Members far apart (strided, the largest must fit in) want memory that is not there on a small machine: the
 * CPU takes what is touched, but its system may not promise the rest. */
static int64_t members_for(batchqr_op op, batchqr_type type) {
  return op == BATCHQR_GEQRF && (suite_on_gpu() || type == BATCHQR_S) ? MEMBERS : suite_on_gpu() ? 1000 : 150;
}

/* All forms of a batch give bitwise what its members give alone. */
static void check_forms(batchqr_op op, batchqr_type type, batchqr_side side) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  if (!force_all(handle, op, type, side)) {
    printf("no family of operation %d serves all sizes: members were not compared\n", (int)op);
    batchqr_destroy(handle);
    return;
  }
  trial alone = new_trial(op, type, side, members_for(op, type));
  choose_sizes(&alone, LARGEST_M, LARGEST_N);
  alone.sizes = BATCHQR_HOST_SIZES;
  alone.layout = BATCHQR_POINTERS;
  /* OpenBLAS may choose a kernel by the leading dimension, and with it the bits. */
  bool ld_vary = suite_on_gpu();
  alone.ld_vary = ld_vary;
  alone.judged = 100;
  trial_build(&alone);
  trial_run_and_judge(&alone, handle, TRIAL_ALONE);
  for (int form = 0; form < 6; form++) {
    trial t = new_trial(op, type, side, alone.count);
    memcpy(t.members, alone.members, (size_t)t.count * sizeof *t.members);
    t.layout = (batchqr_layout)(form % 2);
    t.sizes = (batchqr_sizes)(form / 2);
    t.sparse = true;
    t.ld_vary = ld_vary && form % 3 != 0;
    t.judged = 1;
    if (t.sizes == BATCHQR_UNIFORM) {
      t.count = 0;
      for (int64_t i = COMMON; i < alone.count; i += 20) t.members[t.count++] = alone.members[i];
    }
    trial_build(&t);
    trial_run_and_judge(&t, handle, form < 4 ? TRIAL_PLAN : TRIAL_CALL);
    for (int64_t i = 0; i < t.count; i++) {
      int64_t j = t.sizes == BATCHQR_UNIFORM ? (int64_t)t.members[i].seed : i;
      trial_check_same(&t, i, &alone, j, handle, "the form of the batch (there it was alone)");
    }
    trial_free(&t);
  }
  trial_free(&alone);
  batchqr_destroy(handle);
}

START_TEST(forms_geqrf) { check_forms(BATCHQR_GEQRF, (batchqr_type)_i, BATCHQR_LEFT); }
END_TEST
START_TEST(forms_orgqr) { check_forms(BATCHQR_ORGQR, (batchqr_type)_i, BATCHQR_LEFT); }
END_TEST
START_TEST(forms_ormqr_left) { check_forms(BATCHQR_ORMQR, (batchqr_type)_i, BATCHQR_LEFT); }
END_TEST
START_TEST(forms_ormqr_right) { check_forms(BATCHQR_ORMQR, (batchqr_type)_i, BATCHQR_RIGHT); }
END_TEST
START_TEST(forms_qr) { check_forms(BATCHQR_QR, (batchqr_type)_i, BATCHQR_LEFT); }
END_TEST
START_TEST(forms_geqr_r) { check_forms(BATCHQR_GEQR_R, (batchqr_type)_i, BATCHQR_LEFT); }
END_TEST

/* --- as the planner sees fit */

static const batchqr_op all_ops[] = {BATCHQR_GEQRF, BATCHQR_ORGQR, BATCHQR_ORMQR, BATCHQR_QR, BATCHQR_GEQR_R};

/* Mixed sizes and kinds, every operation, form and mode, nothing forced. */
START_TEST(mixed) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int round = 0; round < 40; round++) {
    trial t = new_trial(all_ops[round % 5], (batchqr_type)_i, (batchqr_side)(round / 5 % 2),
                        suite_on_gpu() ? 120 : 50);
    t.all_k = round % 7 == 3;
    choose_sizes(&t, round % 3 == 0 ? 150 : 40, round % 4 == 0 ? 90 : 40);
    for (int64_t i = 0; i < t.count; i++) t.members[i].kind = (matgen_kind)((i + round) % MATGEN_NUM_KINDS);
    t.layout = (batchqr_layout)(round / 2 % 2);
    t.sizes = round / 4 % 2 ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES;
    t.ld_vary = round % 3 == 1;
    t.in_place = round / 3 % 2;
    t.no_info = round == 11;
    t.slack = round % 5;
    trial_build(&t);
    trial_run_and_judge(&t, handle, round % 2 ? TRIAL_PLAN : TRIAL_CALL);
    trial_free(&t);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Plans of variable sizes can be captured. */
START_TEST(captured) {
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int round = 0; round < 10; round++) {
    trial t = new_trial(all_ops[round % 5], (batchqr_type)_i, BATCHQR_LEFT, 100);
    choose_sizes(&t, 60, 40);
    t.layout = (batchqr_layout)(round % 2);
    t.sizes = round < 5 ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES;
    t.ld_vary = true;
    trial_build(&t);
    trial_run_and_judge(&t, handle, TRIAL_GRAPH);
    trial_free(&t);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Sizes on the device that are wrong are told by info; their members keep every bit, the others do not
 * notice. */
START_TEST(wrong_sizes) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int round = 0; round < 20; round++) {
    trial right = new_trial(all_ops[round % 5], (batchqr_type)_i, (batchqr_side)(round / 5 % 2), 60);
    trial wrong = new_trial(right.op, right.type, right.side, right.count);
    bool has_k = right.op == BATCHQR_ORGQR || right.op == BATCHQR_ORMQR;
    choose_sizes(&right, 50, 40);
    choose_sizes(&wrong, 50, 40);
    for (int64_t i = 0; i < wrong.count; i++)
      if (i % 5 == 2) wrong.members[i].claim = (trial_claim)(1 + i / 5 % TRIAL_SMALL_LD);
    for (int64_t i = 0; i < wrong.count; i++) /* what the operation has not, or cannot see */
      if ((wrong.members[i].claim == TRIAL_LARGE_K && !has_k) ||
          (wrong.members[i].claim == TRIAL_SMALL_LD && wrong.members[i].m * wrong.members[i].n == 0))
        wrong.members[i].claim = TRIAL_NEGATIVE_M;
    trial *both[] = {&right, &wrong};
    for (int b = 0; b < 2; b++) {
      both[b]->sizes = BATCHQR_DEVICE_SIZES;
      both[b]->layout = (batchqr_layout)(round / 2 % 2);
      both[b]->ld_vary = true;
      both[b]->slack = round % 3;
      both[b]->in_place = round / 3 % 2;
      trial_build(both[b]);
      trial_run_and_judge(both[b], handle, round % 2 ? TRIAL_PLAN : TRIAL_CALL);
    }
    for (int64_t i = 0; i < wrong.count; i++)
      if (wrong.members[i].claim == TRIAL_TRUE)
        trial_check_same(&wrong, i, &right, i, handle, "wrong sizes of other members");
    trial_free(&right);
    trial_free(&wrong);
  }
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("variable");
  suite_add(suite, forms_geqrf);
  suite_add(suite, forms_orgqr);
  suite_add(suite, forms_ormqr_left);
  suite_add(suite, forms_ormqr_right);
  suite_add(suite, forms_qr);
  suite_add(suite, forms_geqr_r);
  suite_add(suite, mixed);
  suite_add(suite, captured);
  suite_add(suite, wrong_sizes);
  return suite_run(suite);
}
