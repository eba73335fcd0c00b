/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials judged. */
#define _GNU_SOURCE /* program_invocation_name */
#include "memory.h"
#include "residual.h"
#include "trial_parts.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Columns to look at: a few where all would take too long. */
static int columns_for(const lab_member *x) {
  double each = (double)bqr_max(x->m, x->n) * (bqr_max(bqr_min(x->m, x->n), x->k) + 1.0);
  double cost = type_is_complex(x->type) ? 4.0 : 1.0;
  double columns = 2e7 / (each * cost);
  return columns >= bqr_max(x->m, x->n) ? 0 : columns < 5.0 ? 5 : (int)columns;
}

static lab_verdict judge_member(const trial *t, int64_t i) {
  const trial_member *x = &t->members[i];
  const lab_member y = trial_lab_member(t, i);
  const bool told = !t->no_info, sound = x->claim == TRIAL_TRUE && x->spoil == TRIAL_SOUND;
  const double bound = t->bound > 0.0 ? t->bound : RESIDUAL_BOUND;
  lab_verdict v = {NULL, 0.0};
  int info = *(const int *)guard_at(&t->info, i + 1);
  if (x->claim == TRIAL_LEFT_OUT) {
    lab_require(&v, info == *(const int *)guard_before(&t->info, i + 1), "info of another member was written",
                info);
    return v;
  }
  if (told && x->claim != TRIAL_TRUE)
    lab_require(&v, info == BATCHQR_INFO_SIZES, "info is not -2 (sizes)", info);
  if (told && x->claim == TRIAL_TRUE && !sound)
    lab_require(&v, info == BATCHQR_INFO_NONFINITE, "info is not -1 (NaN, Inf)", info);
  if (x->claim == TRIAL_TRUE && !sound) {
    lab_judge_without_result(&y, &v);
    if (t->routine->judge_spoiled) t->routine->judge_spoiled(&y, &v);
  }
  if (!sound || !lab_judge(t->routine, &y, &v)) return v;
  for (int r = 0; r < LAB_RATIOS; r++) {
    const lab_ratio *ratio = &t->routine->ratios[r];
    const double value = ratio->what ? ratio->of(&y, columns_for(&y)) : 0.0;
    lab_require(&v, value < bound, ratio->what, value);
  }
  return v;
}

/* --- what is told of a failure */

/* The constant of a kind: "MATGEN_ILL". */
static const char *kind_constant(matgen_kind kind, char text[64]) {
  snprintf(text, 64, "MATGEN_%s", matgen_name(kind));
  for (char *c = text; *c; c++)
    if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
  return text;
}

/* "a: ld 5, strided; tau: addresses" */
static void describe_storage(const trial *t, const trial_member *x, char text[256]) {
  int used = 0;
  FOR_USES(use, t) {
    const char *name = bqr_places[use->place].name;
    const bool strided = t->operands[use->place].layout == BATCHQR_STRIDED;
    used += snprintf(text + used, used < 256 ? 256 - (size_t)used : 0, "%s%s: ld %d, %s", used ? "; " : "",
                     name, x->ld[use->place],
                     trial_is_a(t, use) ? "a"
                     : strided          ? "strided"
                                        : "addresses");
    if (used > 255) used = 255;
  }
}

/* All that is needed to see a failure again. */
static void report(const trial *t, int64_t i, batchqr_handle_t handle, const char *what, double value) {
  static const char *const size_names[] = {"uniform", "host", "device"};
  const trial_member *x = &t->members[i];
  const char *backend = getenv("BATCHQR_TEST_BACKEND");
  batchqr_batch batch = trial_batch(t);
  batchqr_plan_t plan = NULL;
  char constant[64], storage[256] = "";
  describe_storage(t, x, storage);
  if (t->sizes != BATCHQR_DEVICE_SIZES) batchqr_plan_create(handle, t->op, &batch, &plan);
  ck_abort_msg("%c%s: %s: %.4g\n"
               "  member %lld of %lld: m = %d, n = %d, k = %d, spoil %d, claim %d\n"
               "  matrix: matgen_fill(BATCHQR_%c, %s, %llu, %d, %d, a, %d)\n"
               "  %s; %s sizes, side %d, trans %d%s%s%s%s%s\n"
               "  on %s\n"
               "  plan: %s\n"
               "  again: BATCHQR_TEST_BACKEND=%s CK_FORK=no CK_RUN_CASE='%s' %s",
               type_letter(t->type), t->operation->name, what, value, (long long)i, (long long)t->count, x->m,
               x->n, x->k, (int)x->spoil, (int)x->claim, "SDCZ"[t->type], kind_constant(x->kind, constant),
               (unsigned long long)x -> seed, x -> m, x -> n, x -> ld[BQR_A], storage, size_names[t->sizes],
               (int)t -> side, (int)t -> trans, t -> in_place ? ", in place" : "",
               t->positive ? ", positive diagonal" : "", t->ld_vary ? ", many ld" : "",
               t->shared ? ", shared V" : "", t->no_info ? ", no info" : "", batchqr_describe(handle),
               batchqr_plan_describe(plan), backend != NULL ? backend : "cpu", tcase_name(),
               program_invocation_name);
}

/* --- guards */

/* The last member that starts before an element. */
static int64_t member_before(const trial *t, const bqr_use *use, int64_t at) {
  int64_t member = 0;
  for (int64_t i = 0; i < t->count; i++) {
    int64_t place = t->members[i].at[use->place], best = t->members[member].at[use->place];
    if (place <= at && (best > at || place >= best)) member = i;
  }
  return member;
}

void trial_check_guards(const trial *t, batchqr_handle_t handle) {
  FOR_USES(use, t) {
    int64_t at = trial_has(t, use) ? guard_check(&t->operands[use->place].g) : -1;
    if (at < 0) continue;
    int64_t member = member_before(t, use, at);
    char text[128];
    snprintf(text, sizeof text,
             "%s was written outside of its members, at this element after the member's first",
             bqr_places[use->place].name);
    report(t, member, handle, text, (double)(at - t->members[member].at[use->place]));
  }
  ck_assert_msg(guard_check(&t->info) < 0, "info was written outside of its array");
  if (t->no_info)
    ck_assert_msg(memcmp(t->info.data, t->info.before, guard_bytes(&t->info)) == 0, "info was written");
}

void trial_check_untouched(const trial *t, batchqr_handle_t handle) {
  FOR_USES(use, t) {
    const guard *g = &t->operands[use->place].g;
    if (trial_has(t, use) && memcmp(g->data, g->before, guard_bytes(g)) != 0)
      report(t, 0, handle, "a call that is an error has written", use->place);
  }
  if (memcmp(t->info.data, t->info.before, guard_bytes(&t->info)) != 0)
    report(t, 0, handle, "a call that is an error has written info", 0);
}

void trial_judge(const trial *t, batchqr_handle_t handle) {
  trial_check_guards(t, handle);
  int64_t judged = t->judged > 0 && t->judged < t->count ? t->judged : t->count, worst = -1;
  lab_verdict found = {NULL, 0.0};
#pragma omp parallel for schedule(dynamic)
  for (int64_t s = 0; s < judged; s++) {
    int64_t i = judged > 1 ? s * (t->count - 1) / (judged - 1) : 0;
    lab_verdict v = judge_member(t, i);
    if (v.what == NULL) continue;
#pragma omp critical(batchqr_trial)
    if (worst < 0 || i < worst) worst = i, found = v;
  }
  if (worst >= 0) report(t, worst, handle, found.what, found.value);
}

void trial_run_and_judge(trial *t, batchqr_handle_t handle, trial_mode mode) {
  batchqr_status status = trial_run(t, handle, mode);
  if (status != BATCHQR_SUCCESS) {
    char text[512];
    snprintf(text, sizeof text, "%s (%s)", batchqr_status_string(status), batchqr_error_message(handle));
    report(t, 0, handle, text, status);
  }
  trial_judge(t, handle);
}

/* --- the same results */

/* Whether an operand's contents are results. */
static bool is_result(const trial *t, const bqr_use *use) {
  const bool destroyed = use->place == BQR_A && (t->routine->destroys_a || t->keep_a);
  return (use->access & BQR_WRITTEN) && !destroyed;
}

static bool same_operand(const lab_routine *routine, const lab_member *x, const lab_member *y,
                         const bqr_use *use) {
  const bqr_shape shape = lab_part(routine, x, use, true);
  const int64_t bytes = (int64_t)bqr_kind_bytes(use->kind, x->type);
  const char *a = x->now[use->place], *b = y->now[use->place];
  for (int j = 0; j < shape.cols && shape.rows > 0 && a && b; j++)
    if (memcmp(a + (int64_t)j * x->ld[use->place] * bytes, b + (int64_t)j * y->ld[use->place] * bytes,
               (size_t)(shape.rows * bytes)) != 0)
      return false;
  return true;
}

static bool same(const trial *t, const lab_member *x, const lab_member *y) {
  if (x->info && y->info && *x->info != *y->info) return false;
  if (t->routine->solved && !t->routine->solved(x)) return true;
  FOR_USES(use, t) if (is_result(t, use) && !same_operand(t->routine, x, y, use)) return false;
  return true;
}

void trial_check_same(const trial *t, int64_t i, const trial *u, int64_t j, batchqr_handle_t handle,
                      const char *what) {
  const lab_member x = trial_lab_member(t, i), y = trial_lab_member(u, j);
  char text[128];
  if (same(t, &x, &y)) return;
  snprintf(text, sizeof text,
           "results are not bitwise those of another run, which differs in %s; there member", what);
  report(t, i, handle, text, (double)j);
}
