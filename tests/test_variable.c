/* SPDX-License-Identifier: BSD-3-Clause */
/* Batches whose members have sizes of their own, in all forms: sizes on the host and on the device, strided
 * and by pointers, one leading dimension and many. */
#include "inspect.h"
#include "suite.h"
#include "trial.h"

#include <string.h>

enum { LARGEST_M = 300, LARGEST_N = 200, MEMBERS = 10000, COMMON = 7, MOST_RHS = 6 };

static int64_t several(int64_t on_cpu) { return suite_on_gpu() ? 120 : on_cpu; }

/* --- sizes */

/* Most are small; the first ones are the extremes, and what is square or nearly so: some variants factor the
 * last columns of members whose last row and column are in the same 32 by themselves. */
static void choose_sizes(trial *t, int largest_m, int largest_n) {
  const int extremes[][2] = {{0, 0},         {largest_m, largest_n}, {largest_m, 0}, {0, largest_n},
                             {largest_m, 1}, {1, largest_n},         {1, 1}};
  const int squares[][2] = {{97, 97}, {128, 128}, {129, 128}, {130, 160}, {192, 200}, {200, 193}};
  for (int64_t i = 0; i < t->count; i++) {
    double u = rng_uniform(17, (uint64_t)i), v = rng_uniform(18, (uint64_t)i);
    int m = (int)(u * u * u * u * (largest_m + 1)), n = (int)(v * v * v * v * (largest_n + 1));
    if (i < 7) m = extremes[i][0], n = extremes[i][1];
    if (i > COMMON && i <= COMMON + 6)
      m = bqr_min(largest_m, squares[i - COMMON - 1][0]), n = bqr_min(largest_n, squares[i - COMMON - 1][1]);
    if (i % 20 == COMMON) m = bqr_min(largest_m, 37), n = bqr_min(largest_n, 19); /* a uniform batch's */
    trial_member *x = &t->members[i];
    *x = (trial_member){.m = m, .n = n, .kind = MATGEN_RANDOM, .seed = (uint64_t)i};
    if (t->op == BATCHQR_ORGQR && n > m) x->n = m;
    if (t->op == BATCHQR_GELS)
      x->k = i % 20 == COMMON || t->all_k ? 3 : rng_int(19, (uint64_t)i, 0, MOST_RHS);
    if (t->op != BATCHQR_ORGQR && t->op != BATCHQR_ORMQR) continue;
    int fit = t->op == BATCHQR_ORMQR && t->side == BATCHQR_LEFT ? x->m : x->n;
    bool all = t->all_k || i % 3 == 0 || i % 20 == COMMON;
    x->k = all ? fit : rng_int(19, (uint64_t)i, 0, fit);
  }
}

static bool runs_here(const bqr_family *family, const bqr_device *device, batchqr_type type) {
  return bqr_family_runs_on(family, device, type) && family->compute != BATCHQR_COMPUTE_HALF;
}

/* Whether a variant serves all members up to m x n, in whatever layout; of GELS those with so many right-hand
 * sides. */
static bool serves(const bqr_family *family, const bqr_variant *variant, const bqr_device *device,
                   const trial *t, int m, int n, int rhs) {
  for (int form = 0; form < 4; form++) {
    bqr_problem problem = {.op = family->op,
                           .type = t->type,
                           .pointers = form & 1,
                           .uniform = form >> 1,
                           .side = t->side,
                           .trans = t->trans,
                           .tall = m >= n,
                           .m = m,
                           .n = n,
                           .count = t->count};
    problem.k = family->op == BATCHQR_GELS                               ? rhs
                : family->op == BATCHQR_ORMQR && t->side == BATCHQR_LEFT ? m
                                                                         : n;
    if (!family->supports(&problem, variant, device)) return false;
  }
  return true;
}

/* A family and variant for `op` that serves all members up to m x n; false if there is none. */
static bool find(const trial *t, const bqr_device *device, int op, int m, int n, const char **family,
                 const char **variant) {
  for (int i = 0; i < bqr_num_families(); i++) {
    const bqr_family *f = bqr_family_at(i);
    if (f->op != op || !runs_here(f, device, t->type)) continue;
    for (int v = 0; v < f->nvariants; v++) {
      *family = f->name;
      *variant = f->variants[v].name;
      if (serves(f, &f->variants[v], device, t, m, n, 0)) return true;
    }
  }
  return false;
}

/* Forces all that an operation may be made of, so that neither sizes nor counts choose. */
static void force_all(batchqr_handle_t handle, const trial *t) {
  static const int gpu[] = {BATCHQR_GEQRF, BATCHQR_ORGQR, BATCHQR_ORMQR, BQR_COPY_R,
                            BQR_COPY,      BQR_TRANSPOSE, BQR_TRSM},
                   cpu[] = {BATCHQR_GEQRF, BATCHQR_ORGQR, BATCHQR_ORMQR, BQR_COPY_R, BQR_COPY, BATCHQR_GELS};
  const int *steps = suite_on_gpu() ? gpu : cpu;
  int count = (int)(suite_on_gpu() ? sizeof gpu / sizeof *gpu : sizeof cpu / sizeof *cpu);
  const char *family, *variant;
  for (int s = 0; s < count; s++) {
    ck_assert(find(t, bqr_handle_device(handle), steps[s], LARGEST_M, LARGEST_N, &family, &variant));
    ck_assert_int_eq(bqr_force(handle, steps[s], family, variant), BATCHQR_SUCCESS);
  }
}

/* QR, GEQR_R and GELS of some sizes may have a family of their own, which cannot be forced as it does not
 * serve all; which of its variants is taken may depend on the count. All else is forced. */
static bool is_forced(batchqr_handle_t handle, const trial *t, const trial_member *x) {
  const char *family, *variant;
  bool composed = t->op == BATCHQR_QR || t->op == BATCHQR_GEQR_R || t->op == BATCHQR_GELS;
  return !suite_on_gpu() || !composed ||
         !find(t, bqr_handle_device(handle), (int)t->op, x->m, x->n, &family, &variant);
}

/* --- the same results in all forms */

static trial new_trial(batchqr_op op, batchqr_type type, batchqr_side side, int64_t count) {
  trial t = trial_new(op, type, count);
  t.side = side;
  t.trans = (side == BATCHQR_LEFT) == (op != BATCHQR_GELS) ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
  return t;
}

/* Members far apart (strided, the largest must fit in) want memory that is not there on a small machine: the
 * CPU takes what is touched, but its system may not promise the rest. */
static int64_t members_for(batchqr_op op, batchqr_type type) {
  return op == BATCHQR_GEQRF && (suite_on_gpu() || type == BATCHQR_S) ? MEMBERS : suite_on_gpu() ? 1000 : 150;
}

/* A batch of the members of `all`, or of those that are COMMON. */
static trial new_form(const trial *all, batchqr_sizes sizes, batchqr_layout layout) {
  trial t = new_trial(all->op, all->type, all->side, all->count);
  int64_t step = sizes == BATCHQR_UNIFORM ? 20 : 1, first = sizes == BATCHQR_UNIFORM ? COMMON : 0;
  t.count = 0;
  for (int64_t i = first; i < all->count; i += step) t.members[t.count++] = all->members[i];
  t.sizes = sizes;
  t.layout = layout;
  t.sparse = layout == BATCHQR_STRIDED;
  return t;
}

/* A batch gives bitwise what its members give alone. `whole`: the operation itself is forced. */
static void compare_forms(batchqr_handle_t handle, const trial *all, batchqr_sizes sizes, bool ld_vary,
                          bool whole) {
  trial alone = new_form(all, sizes == BATCHQR_UNIFORM ? sizes : BATCHQR_HOST_SIZES, BATCHQR_POINTERS);
  alone.ld_vary = ld_vary;
  alone.judged = 100;
  trial_build(&alone);
  trial_run_and_judge(&alone, handle, TRIAL_ALONE);
  for (int layout = 0; layout < 2; layout++) {
    trial t = new_form(all, sizes, (batchqr_layout)layout);
    t.ld_vary = ld_vary && layout == 0;
    t.judged = 1;
    trial_build(&t);
    trial_run_and_judge(&t, handle, sizes == BATCHQR_HOST_SIZES ? TRIAL_CALL : TRIAL_PLAN);
    for (int64_t i = 0; i < t.count; i++)
      if (whole || is_forced(handle, &t, &t.members[i]))
        trial_check_same(&t, i, &alone, i, handle, "the form of the batch (there it was alone)");
    trial_free(&t);
  }
  trial_free(&alone);
}

/* In all forms of sizes and both layouts. OpenBLAS may choose a kernel by the leading dimension, and with it
 * the bits: on the CPU it is the same for all. */
static void check_forms(batchqr_op op, batchqr_type type, batchqr_side side) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  trial all = new_trial(op, type, side, members_for(op, type));
  choose_sizes(&all, LARGEST_M, LARGEST_N);
  force_all(handle, &all);
  for (int sizes = BATCHQR_UNIFORM; sizes <= BATCHQR_DEVICE_SIZES; sizes++)
    compare_forms(handle, &all, (batchqr_sizes)sizes, suite_on_gpu(), false);
  trial_free(&all);
  batchqr_destroy(handle);
}

/* The variant of a family that serves the largest of some sizes; NULL: there is none that serves all forms.
 */
static const bqr_variant *find_reach(const bqr_family *family, const bqr_device *device, const trial *t,
                                     int reach[2]) {
  static const int sizes[][2] = {
      {LARGEST_M, LARGEST_N}, {128, 100}, {64, 32}, {64, 16}, {32, 32}, {16, 16}, {8, 8}};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int v = 0; v < family->nvariants; v++)
      if (serves(family, &family->variants[v], device, t, sizes[s][0], sizes[s][1], MOST_RHS)) {
        memcpy(reach, sizes[s], sizeof sizes[s]);
        return &family->variants[v];
      }
  return NULL;
}

/* All forms that one variant of a family serves. Of GELS tall members, whose sizes the host knows. */
static void check_family(const bqr_family *family, batchqr_type type) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  bool gels = family->op == BATCHQR_GELS;
  trial all = new_trial((batchqr_op)family->op, type, BATCHQR_LEFT, several(60));
  int reach[2];
  const bqr_device *device = bqr_handle_device(handle);
  const bqr_variant *variant =
      runs_here(family, device, type) ? find_reach(family, device, &all, reach) : NULL;
  if (variant) {
    choose_sizes(&all, reach[0], reach[1]);
    for (int64_t i = 0; i < all.count && gels; i++) {
      trial_member *x = &all.members[i];
      int n = bqr_min(x->m, x->n);
      x->m += x->n - n;
      x->n = n;
    }
    ck_assert_int_eq(bqr_force(handle, family->op, family->name, variant->name), BATCHQR_SUCCESS);
    for (int sizes = BATCHQR_UNIFORM; sizes <= (gels ? BATCHQR_HOST_SIZES : BATCHQR_DEVICE_SIZES); sizes++)
      compare_forms(handle, &all, (batchqr_sizes)sizes, suite_on_gpu(), true);
  }
  trial_free(&all);
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
START_TEST(forms_gels) { check_forms(BATCHQR_GELS, (batchqr_type)_i, BATCHQR_LEFT); }
END_TEST
START_TEST(forms_gels_transposed) { check_forms(BATCHQR_GELS, (batchqr_type)_i, BATCHQR_RIGHT); }
END_TEST

START_TEST(forms_of_every_family) {
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    if (family->op <= BATCHQR_GELS) check_family(family, (batchqr_type)_i);
  }
}
END_TEST

/* --- as the planner sees fit */

enum { OPS = 6 };
static const batchqr_op all_ops[OPS] = {BATCHQR_GEQRF, BATCHQR_ORGQR,  BATCHQR_ORMQR,
                                        BATCHQR_QR,    BATCHQR_GEQR_R, BATCHQR_GELS};

/* Mixed sizes and kinds, every operation, form and mode, nothing forced. */
START_TEST(mixed) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int round = 0; round < 48; round++) {
    batchqr_sizes sizes = round / 4 % 2 ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES;
    trial t = new_trial(all_ops[round % OPS], (batchqr_type)_i, (batchqr_side)(round / OPS % 2), several(50));
    t.all_k = round % 7 == 3;
    choose_sizes(&t, round % 3 == 0 ? 150 : 40, round % 4 == 0 ? 90 : 40);
    for (int64_t i = 0; i < t.count; i++) t.members[i].kind = (matgen_kind)((i + round) % MATGEN_NUM_KINDS);
    t.layout = (batchqr_layout)(round / 2 % 2);
    t.sizes = sizes;
    t.ld_vary = round % 3 == 1;
    t.in_place = round / 3 % 2;
    t.no_info = round == 11;
    t.slack = round % 5;
    bqr_sort_always(handle, round >= 24);
    trial_once(&t, handle, round % 2 ? TRIAL_PLAN : TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Plans of variable sizes can be captured. */
START_TEST(captured) {
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  bqr_sort_always(handle, true);
  for (int round = 0; round < 2 * OPS; round++) {
    batchqr_sizes sizes = round < OPS ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES;
    trial t = new_trial(all_ops[round % OPS], (batchqr_type)_i, BATCHQR_LEFT, 120);
    choose_sizes(&t, 60, 40);
    t.layout = (batchqr_layout)(round % 2);
    t.sizes = sizes;
    t.ld_vary = true;
    trial_once(&t, handle, TRIAL_GRAPH);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Sizes on the device that are wrong are told by info; their members keep every bit, the others do not
 * notice. */
START_TEST(wrong_sizes) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int round = 0; round < 4 * OPS; round++) {
    trial right =
        new_trial(all_ops[round % OPS], (batchqr_type)_i, (batchqr_side)(round / OPS % 2), several(60));
    trial wrong = new_trial(right.op, right.type, right.side, right.count);
    choose_sizes(&right, 50, 40);
    choose_sizes(&wrong, 50, 40);
    trial *both[] = {&right, &wrong};
    bqr_sort_always(handle, round >= 2 * OPS);
    for (int b = 0; b < 2; b++) {
      both[b]->sizes = BATCHQR_DEVICE_SIZES;
      both[b]->layout = (batchqr_layout)(round / 2 % 2);
      both[b]->ld_vary = true;
      both[b]->slack = round % 3;
      both[b]->in_place = round / 3 % 2;
      for (int64_t i = 2; i < both[b]->count && both[b] == &wrong; i += 5) {
        trial_member *x = &wrong.members[i];
        x->claim = (trial_claim)(1 + i / 5 % TRIAL_SMALL_LDR);
        if (!trial_sees_claim(&wrong, x)) x->claim = TRIAL_NEGATIVE_M;
      }
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
  suite_add(suite, forms_gels);
  suite_add(suite, forms_gels_transposed);
  suite_add(suite, forms_of_every_family);
  suite_add(suite, mixed);
  suite_add(suite, captured);
  suite_add(suite, wrong_sizes);
  return suite_run(suite);
}
