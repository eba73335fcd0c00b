/* SPDX-License-Identifier: BSD-3-Clause */
/* Every family and variant that is registered for the backend, forced. A new family is tested without a
 * change here: its limits are found by asking supports(), and sizes around them are tried.
 * In the environment, BATCHQR_TEST_FAMILY, BATCHQR_TEST_VARIANT and BATCHQR_TEST_TYPE restrict the run to one
 * of each, BATCHQR_TEST_ELEMENTS to members of at most so many elements, and to few of them: instruments that
 * slow kernels down a thousandfold can see each of them that way.
 */
#include "direct.h"
#include "inspect.h"
#include "kernel_steps.h"
#include "residual.h"
#include "suite.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* --- trials */

/* How many matrices of a size are worth their time: few, where the environment says that kernels are slow. */
static int64_t count_for(size x) {
  int64_t work = (int64_t)x.m * x.n * bqr_max(bqr_max(bqr_min(x.m, x.n), x.k), 1);
  int64_t affordable = (subject_most_elements() < INT64_MAX ? 3000 : 3000000) / (work + 1) + 1;
  return affordable < MATGEN_NUM_KINDS ? affordable : MATGEN_NUM_KINDS;
}

/* That the plan of a trial is made of the subject. */
static void check_forced(const subject *s, const trial *t) {
  batchqr_batch batch = trial_batch(t);
  batchqr_plan_t plan;
  ck_assert_msg(batchqr_plan_create(s->handle, t->op, &batch, &plan) == BATCHQR_SUCCESS,
                "%s %s, %c, %d x %d, k = %d: %s", s->family->name, s->variant->name, type_letter(s->type),
                batch.m, batch.n, batch.k, batchqr_error_message(s->handle));
  for (int i = 0; i < bqr_plan_num_groups(plan); i++) {
    bqr_group_info group = bqr_plan_group(plan, i);
    ck_assert_str_eq(group.family, s->family->name);
    ck_assert_str_eq(group.variant, s->variant->name);
  }
  batchqr_plan_destroy(plan);
}

/* Uniform batches of all kinds of matrices. */
static void test_sizes(const subject *s, const size_list *list) {
  for (int i = 0; i < list->count; i++) {
    size x = list->x[i];
    trial t = subject_trial(s, count_for(x));
    for (int j = 0; j < t.count; j++)
      t.members[j] = (trial_member){.m = x.m,
                                    .n = x.n,
                                    .k = x.k,
                                    .seed = (uint64_t)(i * 100 + j),
                                    .kind = (matgen_kind)((i * 5 + j) % MATGEN_NUM_KINDS)};
    t.layout = (batchqr_layout)(i % 2);
    t.positive = i % 3 == 2;
    t.in_place = i / 2 % 2;
    t.tight = i % 4 == 0;
    if (subject_takes(s, &t, x)) {
      trial_build(&t);
      check_forced(s, &t);
      trial_run_and_judge(&t, t.positive ? s->positive : s->handle, i % 5 == 4 ? TRIAL_PLAN : TRIAL_CALL);
    }
    trial_free(&t);
  }
}

/* With R(j,j) >= 0 asked for: members of all kinds, the longest reflectors first, some of them spoiled. */
static void test_positive(const subject *s, const size_list *list) {
  for (int i = 0; i < list->count; i += 3) {
    const size x = list->x[i];
    const bool can = x.m > 0 && x.n > 0;
    trial t = subject_trial(s, count_for(x));
    for (int j = 0; j < t.count; j++)
      t.members[j] = (trial_member){.m = x.m,
                                    .n = x.n,
                                    .seed = (uint64_t)(i * 100 + j),
                                    .kind = (matgen_kind)((MATGEN_NEARLY_UPPER + 7 * j) % MATGEN_NUM_KINDS),
                                    .spoil = can && j % 5 == 4 ? (trial_spoil)(1 + j / 5 % 3) : TRIAL_SOUND};
    t.positive = true;
    t.layout = (batchqr_layout)(i / 3 % 2);
    if (subject_takes(s, &t, x) && t.positive) {
      trial_build(&t);
      trial_run_and_judge(&t, s->positive, i % 2 ? TRIAL_PLAN : TRIAL_CALL);
    }
    trial_free(&t);
  }
}

/* Batches of different sizes up to one that is supported, sizes on the host and on the device; on the GPU
 * also captured. */
static void test_variable(const subject *s, const size_list *list) {
  for (int i = 0; i < list->count; i += 4) {
    size x = list->x[i];
    trial t = subject_trial(s, 20);
    for (int j = 0; j < t.count; j++) {
      size y = j == 0 ? x : subject_smaller(s, x, (uint64_t)(i * 100 + j));
      t.members[j] = (trial_member){.m = y.m,
                                    .n = y.n,
                                    .k = y.k,
                                    .kind = (matgen_kind)((i + j) % MATGEN_NUM_KINDS),
                                    .seed = (uint64_t)(i * 100 + j)};
    }
    t.layout = (batchqr_layout)(i / 4 % 2);
    t.sizes = i / 8 % 2 ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES;
    t.ld_vary = i / 16 % 2;
    if (subject_takes(s, &t, x)) {
      trial_build(&t);
      trial_run_and_judge(&t, s->handle, suite_on_gpu() && i % 3 == 0 ? TRIAL_GRAPH : TRIAL_PLAN);
    }
    trial_free(&t);
  }
}

/* The members of a test of invariance, first `first`; every third spoiled if asked for. */
static trial invariant_trial(const subject *s, size x, int64_t count, int64_t first, int step, bool spoiled) {
  trial t = subject_trial(s, count);
  t.judged = 1; /* the comparison is what counts */
  for (int64_t j = 0; j < count; j++) {
    int64_t k = first + j * step;
    t.members[j] = (trial_member){
        .m = x.m, .n = x.n, .k = x.k, .kind = (matgen_kind)(k % MATGEN_NUM_KINDS), .seed = (uint64_t)k};
    bool can = x.m > 0 && x.n > 0 && (!subject_makes_q(s) || x.k > 0);
    if (spoiled && can && j % 3 == 1) t.members[j].spoil = (trial_spoil)(1 + j / 3 % 3);
  }
  return t;
}

/* Runs such a trial and compares it with the reference, whose member first + j * step is its j-th. */
static void compare(const subject *s, trial t, size x, trial_mode mode, const trial *reference, int64_t first,
                    int step, const char *what) {
  if (subject_takes(s, &t, x)) {
    trial_build(&t);
    trial_run_and_judge(&t, s->handle, mode);
    for (int64_t j = 0; j < t.count; j++)
      if (t.members[j].spoil == TRIAL_SOUND)
        trial_check_same(&t, j, reference, first + j * step, s->handle, what);
  }
  trial_free(&t);
}

/* A member's result depends neither on the run, nor on its place, its neighbours or the batch's count. */
static void test_invariance(const subject *s, size x) {
  enum { COUNT = 31 };
  trial reference = invariant_trial(s, x, COUNT, 0, 1, false), turned;
  reference.judged = 0;
  if (!subject_takes(s, &reference, x)) {
    trial_free(&reference);
    return;
  }
  trial_build(&reference);
  trial_run_and_judge(&reference, s->handle, TRIAL_CALL);
  compare(s, invariant_trial(s, x, COUNT, 0, 1, false), x, TRIAL_CALL, &reference, 0, 1, "nothing but time");
  turned = invariant_trial(s, x, COUNT, COUNT - 1, -1, false);
  turned.layout = BATCHQR_POINTERS;
  compare(s, turned, x, TRIAL_CALL, &reference, COUNT - 1, -1, "the members' order and places");
  compare(s, invariant_trial(s, x, COUNT, 0, 1, true), x, TRIAL_CALL, &reference, 0, 1, "NaNs elsewhere");
  compare(s, invariant_trial(s, x, 3, 5, 2, false), x, TRIAL_CALL, &reference, 5, 2, "the batch's count");
  if (subject_supports_as(s, x, BATCHQR_STRIDED, true, false, 1))
    compare(s, invariant_trial(s, x, COUNT, 0, 1, false), x, TRIAL_ALONE, &reference, 0, 1,
            "the count, here 1");
  trial_free(&reference);
}

/* Nor does it depend on gaps: small members without them, more than a warp has lanes, NaNs among them.
 * LAPACK's results depend on what is aligned. */
static void test_tight(const subject *s, size x) {
  enum { COUNT = 69, MOST_ELEMENTS = 4096 };
  if (x.m * x.n > MOST_ELEMENTS || !suite_on_gpu()) return;
  trial reference = invariant_trial(s, x, COUNT, 0, 1, false), tight;
  if (subject_takes(s, &reference, x)) {
    trial_build(&reference);
    trial_run_and_judge(&reference, s->handle, TRIAL_CALL);
    tight = invariant_trial(s, x, COUNT, 0, 1, true);
    tight.tight = true;
    compare(s, tight, x, TRIAL_CALL, &reference, 0, 1, "gaps");
  }
  trial_free(&reference);
}

/* What a variant does not support is refused where it is forced, before anything is done. */
static void test_refusal(const subject *s, size x) {
  if (!subject_is_legal(s, x) || subject_supports_as(s, x, BATCHQR_STRIDED, true, false, 1)) return;
  trial t = subject_trial(s, 1);
  t.members[0] = (trial_member){.m = x.m, .n = x.n, .k = x.k};
  trial_build(&t);
  ck_assert_int_eq(trial_run(&t, s->handle, TRIAL_CALL), BATCHQR_UNSUPPORTED);
  trial_free(&t);
}

static void test_refusals(const subject *s) {
  int other = subject_applies_q(s) ? 3 : 0, most = subject_limit(s, 0, 1, true, other);
  test_refusal(s, subject_size(s, most + 1, 1, other));
  test_refusal(s, subject_size(s, most, subject_limit(s, most, 0, false, other) + 1, other));
}

/* --- a launch without a planner */

/* A launch on some of `count` members of different sizes, last ones first, leaves the others alone. */
static void test_list(const subject *s, size x, int64_t count) {
  int *members = malloc((size_t)count * sizeof *members), listed = 0;
  ck_assert_ptr_nonnull(members);
  trial t = subject_trial(s, count);
  t.judged = 20;
  for (int j = (int)count - 1; j >= 0; j--) {
    size y = j == 0 ? x : subject_smaller(s, x, (uint64_t)j);
    t.members[j] = (trial_member){.m = y.m, .n = y.n, .k = y.k, .seed = (uint64_t)j};
    if (j % 3 == 1)
      t.members[j].claim = TRIAL_LEFT_OUT;
    else
      members[listed++] = j;
  }
  t.sizes = BATCHQR_DEVICE_SIZES;
  t.ld_vary = true;
  if (subject_takes(s, &t, x)) {
    trial_build(&t);
    direct d = {s, &t, members, listed};
    ck_assert_int_eq(trial_run_with(&t, s->handle, launch_directly, &d), BATCHQR_SUCCESS);
    trial_judge(&t, s->handle);
  }
  trial_free(&t);
  free(members);
}

/* --- more members than the device has multiprocessors: families may divide them */

static int64_t many(const subject *s) { return bqr_handle_device(s->handle)->multiprocessors + 7; }

/* Each is what it is among few, in whatever way they are given. */
static void test_many_alike(const subject *s, size x, int64_t count) {
  enum { FEW = 3 };
  trial reference = invariant_trial(s, x, FEW, 0, 1, false);
  trial_build(&reference);
  trial_run_and_judge(&reference, s->handle, TRIAL_CALL);
  for (int way = 0; way < 4; way++) {
    trial t = invariant_trial(s, x, count, FEW - 1, 0, false);
    t.layout = (batchqr_layout)(way % 2);
    t.sizes = way < 2 ? BATCHQR_UNIFORM : way == 2 ? BATCHQR_HOST_SIZES : BATCHQR_DEVICE_SIZES;
    t.ld_vary = way >= 2;
    trial_mode mode = way % 3 == 0 || !suite_on_gpu() ? TRIAL_PLAN : TRIAL_GRAPH;
    compare(s, t, x, mode, &reference, FEW - 1, 0, "there being many");
  }
  trial_free(&reference);
}

static void test_many(const subject *s) {
  static const int sizes[][2] = {{150, 140}, {40, 36}, {20, 12}, {9, 4}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    size x = subject_size(s, sizes[i][0], sizes[i][1], 20);
    if ((int64_t)x.m * x.n > subject_most_elements()) continue;
    if (!subject_supports_as(s, x, BATCHQR_STRIDED, true, false, many(s))) continue;
    test_many_alike(s, x, many(s));
    test_list(s, x, many(s) + many(s) / 2);
    return;
  }
}

/* --- fewer, whose panels are factored beside updates of the columns behind them */

static void test_few_beside(const subject *s) {
  const int64_t count = bqr_handle_device(s->handle)->multiprocessors / 8;
  const int rows = s->variant->rows < 450 ? s->variant->rows - 3 : 450;
  const size x = subject_size(s, rows, 430, 0);
  if (s->family->op != BATCHQR_GEQRF || s->variant->by == 0 || count < 2) return;
  if (s->variant->rows > 1024 || (int64_t)x.m * x.n > subject_most_elements()) return;
  if (subject_supports_as(s, x, BATCHQR_STRIDED, true, false, count)) test_many_alike(s, x, count);
}

/* --- all of them */

static bool supports_another_type_or_side(const subject *s) {
  bool any = false;
  for (int type = BATCHQR_S; type <= BATCHQR_Z; type++)
    for (int side = BATCHQR_LEFT; side <= BATCHQR_RIGHT; side++) {
      subject other = *s;
      other.type = (batchqr_type)type;
      other.side = (batchqr_side)side;
      any |= !(bqr_handle_device(s->handle)->types >> type & 1) || /* left out of this build */
             ((s->family->types & 1u << type) && subject_supports(&other, subject_size(&other, 4, 4, 4)));
    }
  return any;
}

static void test_subject(const subject *s) {
  switch (s->family->op) {
  case BATCHQR_GELSY: /* test_gelsy's */
  case BATCHQR_PINV:
  case BQR_SORT:   /* test_variable's */
  case BQR_SKETCH: /* test_gesvdr's */
  case BQR_MULTIPLY:
  case BQR_COPY_S:
    return;
  default:
    break;
  }
  if (s->family->op == BQR_COPY_R || s->family->op == BQR_COPY) {
    test_copy(s);
    return;
  }
  const int op = s->family->op;
  if (op == BQR_SOLVE) {
    test_solve(s);
    return;
  }
  if (op == BQR_PRESET) {
    test_gels(s);
    return;
  }
  if (op == BATCHQR_TRSM) test_trsm(s);
  if (op == BATCHQR_GELS || op == BQR_TRANSPOSE || (op == BATCHQR_TRSM && suite_on_gpu())) test_gels(s);
  if (op == BATCHQR_GELS || op == BQR_TRANSPOSE || op == BATCHQR_TRSM) return;
  size_list list = subject_sizes(s);
  if (list.count == 0) { /* a variant may be compiled for some types only, or for one side */
    ck_assert_msg(supports_another_type_or_side(s), "%s %s supports nothing", s->family->name,
                  s->variant->name);
    return;
  }
  test_sizes(s, &list);
  if (subject_operation(s)->makes_r) test_positive(s, &list);
  test_variable(s, &list);
  for (int i = 2; i < list.count; i += list.count / 3 + 1) test_invariance(s, list.x[i]);
  for (int i = 0; i < list.count; i += 2) test_tight(s, list.x[i]);
  for (int i = 1; i < list.count; i += list.count / 3 + 1) test_list(s, list.x[i], 20);
  test_many(s);
  test_few_beside(s);
  test_refusals(s);
}

/* A handle with the variant forced. */
static batchqr_handle_t forced_handle(const subject *s, bool positive) {
  batchqr_options options = {.positive_diagonal = positive};
  batchqr_handle_t handle = memory_handle(memory_backend(), &options);
  batchqr_set_compute(handle, s->compute);
  ck_assert_int_eq(bqr_force(handle, s->family->op, s->family->name, s->variant->name), BATCHQR_SUCCESS);
  return handle;
}

static void test_variant(subject s) {
  s.handle = forced_handle(&s, false);
  s.positive = forced_handle(&s, true);
  test_subject(&s);
  batchqr_destroy(s.handle);
  batchqr_destroy(s.positive);
}

static void test_ways(subject s) {
  bool ormqr = subject_applies_q(&s);
  for (int way = 0; way < (ormqr ? 4 : 1); way++) {
    s.side = way < 2 ? BATCHQR_LEFT : BATCHQR_RIGHT;
    s.trans = way % 2 ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
    test_variant(s);
  }
}

/* Whether a mode makes a difference to the family: all do where its products follow it, else that of its own
 * arithmetic and, for emulated products, auto. */
static bool takes_mode(const bqr_family *family, batchqr_compute mode) {
  return family->follows_mode || mode == family->compute ||
         (mode == BATCHQR_COMPUTE_AUTO && family->compute == BATCHQR_COMPUTE_EMULATED);
}

/* Whether a variable of the environment asks for something else. */
static bool left_out(const char *variable, const char *name) {
  const char *only = getenv(variable);
  return only != NULL && *only != '\0' && strcmp(only, name) != 0;
}

static void test_family(const bqr_family *family, batchqr_type type) {
  static const batchqr_compute modes[] = {BATCHQR_COMPUTE_AUTO, BATCHQR_COMPUTE_NATIVE,
                                          BATCHQR_COMPUTE_EMULATED, BATCHQR_COMPUTE_HALF};
  for (int v = 0; v < family->nvariants; v++)
    for (int i = 0; i < 4; i++)
      if (takes_mode(family, modes[i]) && !left_out("BATCHQR_TEST_VARIANT", family->variants[v].name))
        test_ways(
            (subject){.family = family, .variant = &family->variants[v], .type = type, .compute = modes[i]});
}

static bool runs_here(const bqr_family *family, batchqr_type type) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  const bqr_device *device = bqr_handle_device(handle);
  bool runs = bqr_family_runs_on(family, device, type) && !left_out("BATCHQR_TEST_FAMILY", family->name) &&
              !left_out("BATCHQR_TEST_TYPE", (char[]){type_letter(type), '\0'});
  batchqr_destroy(handle);
  return runs;
}

START_TEST(families) {
  for (int f = 0; f < bqr_num_families(); f++)
    if (runs_here(bqr_family_at(f), (batchqr_type)_i)) test_family(bqr_family_at(f), (batchqr_type)_i);
}
END_TEST

static bool is_done(int op, batchqr_type type) {
  for (int f = 0; f < bqr_num_families(); f++)
    if (bqr_family_at(f)->op == op && runs_here(bqr_family_at(f), type)) return true;
  return false;
}

/* GELS's own step is not needed where a family does all of it; nothing needs to be sorted. */
static bool is_needed(int op, batchqr_type type) {
  const bool done_without = (op == BQR_TRANSPOSE && is_done(BATCHQR_GELS, type)) ||
                            (op == BQR_SOLVE && is_done(BATCHQR_GELSY, type)) ||
                            (op == BQR_TURN && is_done(BATCHQR_GESVD, type)) ||
                            (op == BQR_SELECT && is_done(BATCHQR_SYEVD, type));
  return op != BQR_SORT && (suite_on_gpu() || !done_without);
}

/* Every operation that is no program can be done on the backend at all: else the test above would be empty.
 */
START_TEST(complete) {
  if (getenv("BATCHQR_TEST_FAMILY") != NULL) return;
  for (const bqr_operation *const *o = bqr_builtin_operations; *o; o++)
    ck_assert_msg((*o)->program || !is_needed((*o)->op, (batchqr_type)_i) ||
                      is_done((*o)->op, (batchqr_type)_i),
                  "no family does %s", (*o)->name);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("kernels");
  suite_add(suite, complete);
  suite_add(suite, families);
  return suite_run(suite);
}
