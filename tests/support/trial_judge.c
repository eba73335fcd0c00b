/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials judged. */
#define _GNU_SOURCE /* program_invocation_name */
#include "memory.h"
#include "residual.h"
#include "trial_parts.h"
#include "types.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const op_names[] = {"geqrf", "orgqr", "ormqr", "qr", "geqr_r", "gels"};

/* What is wrong with a member; `what` is NULL as long as nothing is. */
typedef struct verdict {
  const char *what;
  double value;
} verdict;

static void require(verdict *v, bool good, const char *what, double value) {
  if (v->what == NULL && !good) *v = (verdict){what, value};
}

static double real_number(batchqr_type type, const void *at, int part) {
  return type_is_double(type) ? ((const double *)at)[part] : ((const float *)at)[part];
}

/* Element (i, j) of a result. */
static const char *element(const trial *t, const trial_array *x, int64_t place, int ld, int i, int j) {
  (void)t;
  return guard_at(&x->g, place + (int64_t)j * ld + i);
}

static bool number_is_zero(batchqr_type type, const void *at) {
  return real_number(type, at, 0) == 0.0 && (!type_is_complex(type) || real_number(type, at, 1) == 0.0);
}

/* Where a member's R is, after a routine that factors. */
static const trial_array *r_array(const trial *t, const trial_member *x, int64_t *place, int *ld) {
  bool apart = has(t, R);
  *place = apart ? x->r : x->a;
  *ld = apart ? x->ldr : x->lda;
  return apart ? &t->r : &t->a;
}

/* R's diagonal is real, and >= 0 if asked for; info is the first zero on it. */
static void judge_diagonal(const trial *t, const trial_member *x, int info, verdict *v) {
  int64_t place;
  int ld, zero = 0;
  const trial_array *array = r_array(t, x, &place, &ld);
  for (int j = least(x->m, x->n) - 1; j >= 0; j--) {
    const void *r = element(t, array, place, ld, j, j);
    double re = real_number(t->type, r, 0);
    if (number_is_zero(t->type, r)) zero = j + 1;
    if (t->positive) require(v, re >= 0.0, "R(j,j) is not >= 0", re);
    if (type_is_complex(t->type))
      require(v, real_number(t->type, r, 1) == 0.0, "R(j,j) is not real", real_number(t->type, r, 1));
  }
  if (!t->no_info)
    require(v, info == zero, zero > 0 ? "info does not name the first zero R(j,j)" : "info is not 0", info);
}

/* Zeros below R's diagonal where R is a result of its own. */
static void judge_zeros(const trial *t, const trial_member *x, verdict *v) {
  int64_t place;
  int ld;
  const trial_array *array = r_array(t, x, &place, &ld);
  int rows = has(t, R) ? least(x->m, x->n) : x->m;
  for (int j = 0; j < x->n; j++)
    for (int i = j + 1; i < rows; i++)
      require(v, number_is_zero(t->type, element(t, array, place, ld, i, j)),
              "an entry below R's diagonal is not 0",
              real_number(t->type, element(t, array, place, ld, i, j), 0));
}

/* Columns to look at: a few where all would take too long. */
static int columns_for(const trial *t, const trial_member *x) {
  double each = (double)largest(x->m, x->n) * (largest(least(x->m, x->n), x->k) + 1.0);
  double cost = type_is_complex(t->type) ? 4.0 : 1.0;
  double columns = 2e7 / (each * cost);
  return columns >= largest(x->m, x->n) ? 0 : columns < 5.0 ? 5 : (int)columns;
}

static void judge_ratio(const trial *t, verdict *v, double ratio, const char *what) {
  require(v, ratio < (t->bound > 0.0 ? t->bound : RESIDUAL_BOUND), what, ratio);
}

static void judge_numbers(const trial *t, const trial_member *x, verdict *v) {
  int m = x->m, n = x->n, k = least(m, n), columns = columns_for(t, x);
  batchqr_type type = t->type;
  const void *a = guard_before(&t->a.g, x->a), *now = guard_at(&t->a.g, x->a);
  const void *tau = has(t, TAU) ? guard_at(&t->tau.g, x->tau) : NULL;
  const void *r = has(t, R) ? guard_at(&t->r.g, x->r) : now;
  const void *q = has(t, C) ? guard_at(&t->c.g, x->c) : now;
  switch (t->op) {
  case BATCHQR_GEQRF:
    judge_ratio(t, v, residual_geqrf(type, m, n, a, x->lda, now, x->lda, tau, columns), "||A - QR||");
    judge_ratio(t, v, residual_reflectors(type, m, k, k, now, x->lda, tau, columns), "||I - Q^H Q||");
    break;
  case BATCHQR_ORGQR:
    judge_ratio(t, v, residual_orgqr(type, m, n, x->k, a, x->lda, tau, now, x->lda, columns),
                "||Q - H_1 ... H_k||");
    judge_ratio(t, v, residual_orthogonality(type, m, n, now, x->lda, columns), "||I - Q^H Q||");
    break;
  case BATCHQR_ORMQR:
    judge_ratio(t, v,
                residual_ormqr(type, t->side, t->trans, m, n, x->k, a, x->lda, tau,
                               guard_before(&t->c.g, x->c), x->ldc, q, x->ldc, columns),
                "||C - op(Q) B||");
    break;
  case BATCHQR_QR:
    judge_ratio(t, v, residual_qr(type, m, n, a, x->lda, q, x->ldc, r, x->ldr, columns), "||A - QR||");
    judge_ratio(t, v, residual_projection(type, m, n, a, x->lda, q, x->ldc, r, x->ldr, columns),
                "||R - Q^H A||");
    judge_ratio(t, v, residual_orthogonality(type, m, k, q, x->ldc, columns), "||I - Q^H Q||");
    break;
  default:
    judge_ratio(t, v, residual_gram(type, m, n, a, x->lda, r, has(t, R) ? x->ldr : x->lda, columns),
                "||A^H A - R^H R||");
    break;
  }
}

/* --- GELS */

static bool one_of(matgen_kind kind, const matgen_kind *kinds, int count) {
  for (int i = 0; i < count; i++)
    if (kinds[i] == kind) return true;
  return false;
}
#define ONE_OF(kind, ...)                                                                                    \
  one_of(kind, (const matgen_kind[]){__VA_ARGS__}, sizeof((matgen_kind[]){__VA_ARGS__}) / sizeof(matgen_kind))

static const void *norms_of(const trial *t, int64_t i) {
  return t->no_norms ? NULL : guard_at(&t->norms, 1 + i * t->stride_norms);
}

/* Without a solution norms are NaN. */
static void judge_no_norms(const trial *t, int64_t i, verdict *v) {
  const char *norms = norms_of(t, i);
  for (int j = 0; j < t->members[i].k && norms != NULL; j++) {
    double value = real_number(t->type & 1 ? BATCHQR_D : BATCHQR_S, norms, j);
    require(v, value != value, "a norm of a member without a solution is not NaN", value);
  }
}

/* Whether X holds finite numbers only. */
static bool solution_finite(const trial *t, const trial_member *x) {
  for (int j = 0; j < x->k; j++)
    for (int i = 0; i < x_rows(t, x) * (type_is_complex(t->type) ? 2 : 1); i++) {
      double value = real_number(t->type, guard_at(&t->c.g, x->c + (int64_t)j * x->ldc), i);
      if (!(value - value == 0.0)) return false;
    }
  return true;
}

/* A zero column of the upright matrix, counted from 1, where R(j,j) is zero without a rounding; else 0. */
static int known_zero(const trial *t, const trial_member *x) {
  (void)t;
  int q = least(x->m, x->n);
  if (q == 0) return 0;
  if (x->kind == MATGEN_ZERO || (x->kind == MATGEN_ZERO_FIRST && x->m >= x->n)) return 1;
  return x->kind == MATGEN_ZERO_LAST && x->m >= x->n ? -q : 0; /* or an earlier one */
}

static void judge_gels(const trial *t, int64_t i, int info, verdict *v) {
  const trial_member *x = &t->members[i];
  bool regular = ONE_OF(x->kind, MATGEN_RANDOM, MATGEN_IDENTITY, MATGEN_DIAGONAL, MATGEN_ORTHONORMAL,
                        MATGEN_WELL, MATGEN_ILL, MATGEN_OVERFLOW, MATGEN_UNDERFLOW, MATGEN_HUGE,
                        MATGEN_LARGEST, MATGEN_LARGE_POWER, MATGEN_SMALL_POWER);
  int zero = known_zero(t, x);
  if (!t->no_info) {
    require(v, info >= 0 && info <= least(x->m, x->n), "info is not a column", info);
    require(v, !regular || info == 0, "info of a regular matrix is not 0", info);
    require(v, zero <= 0 || info == zero, "info does not name the first zero R(j,j)", info);
    require(v, zero >= 0 || info > 0, "info does not name a zero R(j,j)", info);
  }
  if (t->no_info && !regular) return; /* there may be no solution */
  if (!t->no_info && info > 0) {
    judge_no_norms(t, i, v);
    return;
  }
  /* Where columns nearly depend on each other, or lie far apart, X can be out of range. */
  if (!regular && !solution_finite(t, x)) return;
  judge_ratio(t, v,
              residual_gels(t->type, t->trans, x->m, x->n, x->k, guard_before(&t->a.g, x->a), x->lda,
                            guard_before(&t->c.g, x->c), x->ldc, guard_at(&t->c.g, x->c), x->ldc,
                            norms_of(t, i), 4),
              "the residual of X");
}

/* --- members with a NaN or an Inf */

static bool finite_at(const trial *t, const trial_array *x, int64_t place, int ld, int i, int j) {
  const void *at = element(t, x, place, ld, i, j);
  double re = real_number(t->type, at, 0), im = type_is_complex(t->type) ? real_number(t->type, at, 1) : 0.0;
  return re - re == 0.0 && im - im == 0.0;
}

/* The first column of a routine's input, counted from 0, that is not finite; `cols` if there is none. */
static int bad_column(const trial *t, const guard *g, int64_t place, int ld, int rows, int cols) {
  int parts = type_is_complex(t->type) ? 2 : 1;
  for (int j = 0; j < cols; j++)
    for (int i = 0; i < rows * parts; i++) {
      double value = real_number(t->type, guard_before(g, place + (int64_t)j * ld), i);
      if (!(value - value == 0.0)) return j;
    }
  return cols;
}

/* Whether a part of a result holds a NaN or an Inf. */
static bool tells(const trial *t, const trial_array *x, int64_t place, int ld, int rows, int cols) {
  for (int j = 0; j < cols; j++)
    for (int i = 0; i < rows; i++)
      if (!finite_at(t, x, place, ld, i, j)) return true;
  return false;
}

/* R's column, and those of Q and tau, tell of the first column of A that is not finite. A reflector of one
 * row is none, whatever the row holds. */
static void judge_spoiled_factors(const trial *t, const trial_member *x, verdict *v) {
  int64_t place;
  int ld, k = least(x->m, x->n), bad = bad_column(t, &t->a.g, x->a, x->lda, x->m, x->n);
  const trial_array *r = r_array(t, x, &place, &ld);
  bool reflects_it = bad < k && x->m > bad + 1;
  const trial_array *q = has(t, C) ? &t->c : &t->a;
  require(v, tells(t, r, place + (int64_t)bad * ld, ld, least(bad + 1, k), 1),
          "this column of R does not tell of a NaN or an Inf in A", bad);
  if (t->op == BATCHQR_GEQRF && reflects_it)
    require(v, tells(t, &t->tau, x->tau, k, k, 1), "tau does not tell of a NaN or an Inf in A", bad);
  if (t->op == BATCHQR_QR && reflects_it)
    require(v, tells(t, q, has(t, C) ? x->c : x->a, has(t, C) ? x->ldc : x->lda, x->m, k),
            "Q does not tell of a NaN or an Inf in A", bad);
}

/* All lines of C tell of a NaN or an Inf in V or tau; otherwise those do that had one, and no others. */
static void judge_spoiled_lines(const trial *t, const trial_member *x, verdict *v) {
  bool left = t->side == BATCHQR_LEFT, all = bad_column(t, &t->c.g, x->c, x->ldc, x->m, x->n) == x->n;
  for (int l = 0; l < (left ? x->n : x->m); l++) {
    int i = left ? 0 : l, j = left ? l : 0, rows = left ? x->m : 1, cols = left ? 1 : x->n;
    int64_t place = x->c + i + (int64_t)j * x->ldc;
    bool bad = all || bad_column(t, &t->c.g, place, x->ldc, rows, cols) < cols;
    require(v, tells(t, &t->c, place, x->ldc, rows, cols) == bad,
            bad ? "this line of C does not tell of a NaN or an Inf" : "this line of C is not finite", l);
  }
}

/* What is left of a member with a NaN or an Inf: no result that depends on it is finite. */
static void judge_spoiled(const trial *t, int64_t i, verdict *v) {
  trial_member *x = &t->members[i];
  switch (t->op) {
  case BATCHQR_ORGQR:
    require(v, tells(t, &t->a, x->a, x->lda, x->m, x->n), "Q does not tell of a NaN or an Inf in V or tau",
            0);
    break;
  case BATCHQR_ORMQR:
    judge_spoiled_lines(t, x, v);
    break;
  case BATCHQR_GELS:
    judge_no_norms(t, i, v);
    for (int j = 0; j < x->k; j++)
      for (int row = 0; row < x_rows(t, x); row++)
        require(v, !finite_at(t, &t->c, x->c, x->ldc, row, j), "X of a member without a solution is finite",
                j);
    break;
  default:
    judge_spoiled_factors(t, x, v);
  }
}

static verdict judge_member(const trial *t, int64_t i) {
  const trial_member *x = &t->members[i];
  verdict v = {NULL, 0.0};
  int info = *(const int *)guard_at(&t->info, i + 1);
  if (x->claim == TRIAL_LEFT_OUT) {
    require(&v, info == *(const int *)guard_before(&t->info, i + 1), "info of another member was written",
            info);
    return v;
  }
  if (x->claim != TRIAL_TRUE || x->spoil != TRIAL_SOUND) {
    int expected = x->claim != TRIAL_TRUE ? BATCHQR_INFO_SIZES : BATCHQR_INFO_NONFINITE;
    if (!t->no_info)
      require(&v, info == expected, expected == -1 ? "info is not -1 (NaN, Inf)" : "info is not -2 (sizes)",
              info);
    if (x->claim == TRIAL_TRUE) judge_spoiled(t, i, &v);
    return v;
  }
  if (t->op == BATCHQR_GELS) {
    judge_gels(t, i, info, &v);
    return v;
  }
  if (reflects(t) && !t->no_info) require(&v, info == 0, "info is not 0", info);
  if (x->m == 0 || x->n == 0) {
    if (!t->no_info) require(&v, info == 0, "info is not 0", info);
    return v;
  }
  if (!reflects(t)) judge_diagonal(t, x, info, &v);
  if (t->op == BATCHQR_QR || t->op == BATCHQR_GEQR_R) judge_zeros(t, x, &v);
  judge_numbers(t, x, &v);
  return v;
}

/* The constant of a kind: "MATGEN_ILL". */
static const char *kind_constant(matgen_kind kind, char text[64]) {
  snprintf(text, 64, "MATGEN_%s", matgen_name(kind));
  for (char *c = text; *c; c++)
    if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
  return text;
}

/* All that is needed to see a failure again. */
static void report(const trial *t, int64_t i, batchqr_handle_t handle, const char *what, double value) {
  static const char *const size_names[] = {"uniform", "host", "device"};
  const trial_member *x = &t->members[i];
  const char *backend = getenv("BATCHQR_TEST_BACKEND");
  batchqr_batch batch = trial_batch(t);
  batchqr_plan_t plan = NULL;
  char constant[64];
  if (t->sizes != BATCHQR_DEVICE_SIZES) batchqr_plan_create(handle, t->op, &batch, &plan);
  ck_abort_msg(
      "%c%s: %s: %.4g\n"
      "  member %lld of %lld: m = %d, n = %d, k = %d, lda = %d, ldc = %d, ldr = %d, spoil %d, claim %d\n"
      "  matrix: matgen_fill(BATCHQR_%c, %s, %llu, %d, %d, a, %d)\n"
      "  %s layout, %s sizes, side %d, trans %d%s%s%s%s%s\n"
      "  on %s\n"
      "  plan: %s\n"
      "  again: BATCHQR_TEST_BACKEND=%s CK_FORK=no CK_RUN_CASE='%s' %s",
      type_letter(t->type), op_names[t->op], what, value, (long long)i, (long long)t->count, x->m, x->n, x->k,
      x->lda, x->ldc, x->ldr, x->spoil, x->claim, "SDCZ"[t->type], kind_constant(x->kind, constant),
      (unsigned long long)x -> seed, x -> m, x -> n, x -> lda,
      t -> layout == BATCHQR_STRIDED ? "strided" : "pointer", size_names[t->sizes], t->side, t->trans,
      t->in_place ? ", in place" : "", t->positive ? ", positive diagonal" : "",
      t->ld_vary ? ", many ld" : "", t->shared ? ", shared V" : "", t->no_info ? ", no info" : "",
      batchqr_describe(handle), batchqr_plan_describe(plan), backend != NULL ? backend : "cpu", tcase_name(),
      program_invocation_name);
}

void trial_check_guards(const trial *t, batchqr_handle_t handle) {
  static const char *const names[] = {"a", "c", "r", "tau"};
  const trial_array *arrays[] = {&t->a, &t->c, &t->r, &t->tau};
  for (int o = 0; o < NUM_OPERANDS; o++) {
    int64_t at = has(t, o) ? guard_check(&arrays[o]->g) : -1;
    if (at < 0) continue;
    int64_t member = 0; /* the last one that starts before it */
    for (int64_t i = 0; i < t->count; i++) {
      int64_t place = *place_of(&t->members[i], o), best = *place_of(&t->members[member], o);
      if (place <= at && (best > at || place >= best)) member = i;
    }
    char text[128];
    snprintf(text, sizeof text,
             "%s was written outside of its members, at this element after the member's first", names[o]);
    report(t, member, handle, text, (double)(at - *place_of(&t->members[member], o)));
  }
  ck_assert_msg(guard_check(&t->info) < 0, "info was written outside of its array");
  ck_assert_msg(guard_check(&t->norms) < 0, "norms were written outside of their members");
  if (t->no_info)
    ck_assert_msg(memcmp(t->info.data, t->info.before, guard_bytes(&t->info)) == 0, "info was written");
}

void trial_judge(const trial *t, batchqr_handle_t handle) {
  trial_check_guards(t, handle);
  int64_t judged = t->judged > 0 && t->judged < t->count ? t->judged : t->count, worst = -1;
  verdict found = {NULL, 0.0};
#pragma omp parallel for schedule(dynamic)
  for (int64_t s = 0; s < judged; s++) {
    int64_t i = judged > 1 ? s * (t->count - 1) / (judged - 1) : 0;
    verdict v = judge_member(t, i);
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

/* Whether GELS solved the member. */
static bool has_solution(const trial *t, int64_t i) {
  return !t->no_info && *(const int *)guard_at(&t->info, i + 1) == 0;
}

/* Bitwise, where there is a solution. */
static bool same_norms(const trial *t, int64_t i, const trial *u, int64_t j) {
  if (t->op != BATCHQR_GELS || t->no_norms || u->no_norms || !has_solution(t, i)) return true;
  return memcmp(norms_of(t, i), norms_of(u, j), (size_t)t->members[i].k * t->norms.size) == 0;
}

static bool same(const trial *t, int64_t i, const trial *u, int64_t j) {
  trial *both[2] = {(trial *)t, (trial *)u};
  trial_member *members[2] = {&t->members[i], &u->members[j]};
  for (int o = 0; o < NUM_OPERANDS; o++) {
    if (!has(t, o) || !writes(t, o)) continue;
    /* what QR and GEQR_R leave of A is undefined */
    if (o == A && (t->op == BATCHQR_QR || t->op == BATCHQR_GEQR_R) && !t->in_place) continue;
    if (o == A && t->op == BATCHQR_GELS) continue;
    int rows = rows_of(t, members[0], o), cols = cols_of(t, members[0], o);
    if (o == C && t->op == BATCHQR_GELS) rows = has_solution(t, i) ? x_rows(t, members[0]) : 0;
    if (o == A && t->op == BATCHQR_QR) cols = least(members[0]->m, members[0]->n);
    for (int c = 0; c < cols && rows > 0; c++) {
      const void *column[2];
      for (int b = 0; b < 2; b++)
        column[b] = guard_at(&array_of(both[b], o)->g,
                             *place_of(members[b], o) + (int64_t)c * ld_value(members[b], o, rows));
      if (memcmp(column[0], column[1], (size_t)rows * type_size(t->type)) != 0) return false;
    }
  }
  if (!same_norms(t, i, u, j)) return false;
  if (t->no_info || u->no_info) return true;
  return memcmp(guard_at(&t->info, i + 1), guard_at(&u->info, j + 1), sizeof(int)) == 0;
}

void trial_check_same(const trial *t, int64_t i, const trial *u, int64_t j, batchqr_handle_t handle,
                      const char *what) {
  char text[128];
  if (same(t, i, u, j)) return;
  snprintf(text, sizeof text,
           "results are not bitwise those of another run, which differs in %s; there member", what);
  report(t, i, handle, text, (double)j);
}
