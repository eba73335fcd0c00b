/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials: sizes, storage and data. */
#include "reflectors.h"
#include "trial_parts.h"
#include "types.h"

#include <check.h>
#include <math.h>
#include <stdlib.h>

trial trial_new(batchqr_op op, batchqr_type type, int64_t count) {
  trial t = {.op = op, .type = type, .count = count};
  t.members = calloc((size_t)count + 1, sizeof *t.members);
  ck_assert_ptr_nonnull(t.members);
  return t;
}

void trial_fill(trial *t, int m, int n, int k, uint64_t seed) {
  for (int64_t i = 0; i < t->count; i++)
    t->members[i] = (trial_member){.m = m, .n = n, .k = k, .seed = seed + (uint64_t)i};
}

void trial_fill_kinds(trial *t, int m, int n, int k) {
  trial_fill(t, m, n, k, 0);
  for (int64_t i = 0; i < t->count; i++) {
    t->members[i].kind = (matgen_kind)i;
    t->members[i].seed = (uint64_t)(100 * m + n + k + i % 2);
  }
  t->layout = (m + n + k) % 3 == 0 ? BATCHQR_POINTERS : BATCHQR_STRIDED;
}

void trial_free(trial *t) {
  for (int x = 0; x < NUM_OPERANDS; x++) guard_destroy(&array_of(t, x)->g);
  for (int i = 0; i < 6; i++) free(t->arrays[i]);
  guard_destroy(&t->info);
  guard_destroy(&t->norms);
  free(t->members);
  *t = (trial){0};
}

/* A number for layout that depends on the trial alone. */
static int jitter(const trial *t, int operand, int64_t i, int low, int high) {
  if (t->tight) return 16 * low;
  return rng_int((uint64_t)t->type * 64 + (uint64_t)t->op * 8 + operand, (uint64_t)i + t->count, low, high);
}

static trial_member bounds(const trial *t) {
  return (trial_member){.m = t->bound_m, .n = t->bound_n, .k = t->bound_k};
}

static void find_bounds(trial *t) {
  for (int64_t i = 0; i < t->count; i++) {
    const trial_member *x = &t->members[i];
    t->bound_m = largest(t->bound_m, x->m);
    t->bound_n = largest(t->bound_n, x->n);
    t->bound_k = largest(t->bound_k, x->k);
  }
  if (t->sizes != BATCHQR_DEVICE_SIZES) return;
  t->bound_m += t->slack;
  t->bound_n += t->slack;
  t->bound_k += t->slack;
}

/* One leading dimension for all, or one for each. */
static void choose_lds(trial *t, int operand) {
  trial_member all = bounds(t);
  int common = largest(1, rows_of(t, &all, operand)) + jitter(t, operand, -1, 0, 3);
  for (int64_t i = 0; i < t->count; i++) {
    trial_member *x = &t->members[i];
    int own = largest(1, rows_of(t, x, operand)) + jitter(t, operand, i, 0, 3);
    *ld_of(x, operand) = t->ld_vary && t->sizes != BATCHQR_UNIFORM ? own : common;
  }
}

static bool shared(const trial *t, int operand) { return t->shared && (operand == A || operand == TAU); }

/* The distance of members, of which the largest must fit in, also that of the upper bounds. */
static int64_t choose_stride(trial *t, int operand) {
  trial_member all = bounds(t);
  int64_t stride = 0;
  if (shared(t, operand)) return 0;
  for (int64_t i = 0; i < t->count; i++) {
    int64_t own = extent_of(t, &t->members[i], operand);
    if (own > stride) stride = own;
  }
  if (t->sizes == BATCHQR_DEVICE_SIZES && t->count > 0 && !t->ld_vary) { /* checked on the host */
    int rows = rows_of(t, &all, operand), ld = ld_value(&t->members[0], operand, rows);
    int64_t bound = extent(rows, cols_of(t, &all, operand), ld);
    if (bound > stride) stride = bound;
  }
  return stride + jitter(t, operand, -2, 0, 5);
}

/* Places members on the host: at their distance; or (pointers, sparse) close-packed in a shuffled order. */
static int64_t choose_places(trial *t, int operand, const trial_array *x) {
  bool packed = t->layout == BATCHQR_POINTERS || t->sparse;
  int64_t step = t->count % 7 != 0 ? 7 : 1, end = x->lead;
  for (int64_t i = 0; i < t->count; i++) {
    int64_t k = packed ? i * step % t->count : i;
    int64_t gap = packed ? jitter(t, operand, k, 1, 7) : 0;
    int64_t at = packed ? end + gap : x->lead + k * x->stride;
    *place_of(&t->members[k], operand) = at;
    int64_t behind = at + extent_of(t, &t->members[k], operand);
    if (behind > end) end = behind;
  }
  return end + jitter(t, operand, -4, 1, 5);
}

static void build_array(trial *t, int operand) {
  trial_array *x = array_of(t, operand);
  if (operand != TAU) choose_lds(t, operand);
  x->stride = t->layout == BATCHQR_STRIDED ? choose_stride(t, operand) : 0;
  x->lead = jitter(t, operand, -3, 1, 3);
  x->g = guard_create(type_size(t->type), choose_places(t, operand, x));
}

static void share_places(trial *t) {
  for (int64_t i = 0; i < t->count && t->in_place; i++) {
    trial_member *x = &t->members[i];
    if (t->op == BATCHQR_QR) x->c = x->a, x->ldc = x->lda;
    if (t->op == BATCHQR_GEQR_R) x->r = x->a, x->ldr = x->lda;
  }
}

static void set_number(batchqr_type type, void *at, double value) {
  if (type_is_double(type))
    *(double *)at = value;
  else
    *(float *)at = (float)value;
}

/* Puts a NaN or an Inf into an entry of the input, chosen by the member's seed. */
static void spoil(trial *t, trial_member *x) {
  static const double values[] = {0.0, NAN, INFINITY, -INFINITY};
  int parts = type_is_complex(t->type) ? 2 : 1;
  int where = t->op == BATCHQR_ORMQR   ? rng_int(x->seed, 1, 0, 2)
              : t->op == BATCHQR_ORGQR ? rng_int(x->seed, 1, 0, 1)
              : t->op == BATCHQR_GELS  ? rng_int(x->seed, 1, 2, 3)
                                       : 3;
  if (x->k == 0 && reflects(t)) where = 2;
  if (x->k == 0 && t->op == BATCHQR_GELS) where = 3;
  int operand = where == 0 || where == 3 ? A : where == 1 ? TAU : C;
  int rows = rows_of(t, x, operand), j = rng_int(x->seed, 2, 0, cols_of(t, x, operand) - 1);
  if (t->op == BATCHQR_GELS && operand == C) rows = b_rows(t, x);
  if (where == 0) j = rng_int(x->seed, 2, 0, least(x->k, rows) - 1);
  int i = rng_int(x->seed, 3, where == 0 ? least(j + 1, rows - 1) : 0, rows - 1);
  if (where == 0 && i <= j) { /* the last row has no v below its diagonal */
    operand = TAU;
    i = j;
    j = 0;
  }
  int64_t at = *place_of(x, operand) + (int64_t)j * ld_value(x, operand, rows) + i;
  char *number = guard_at(&array_of(t, operand)->g, at);
  set_number(t->type, number + type_real_size(t->type) * (size_t)rng_int(x->seed, 4, 0, parts - 1),
             values[x->spoil]);
}

static void fill_member(trial *t, int64_t i) {
  trial_member *x = &t->members[i];
  batchqr_type type = t->type;
  void *a = guard_at(&t->a.g, x->a);
  if (!reflects(t)) {
    matgen_fill(type, x->kind, x->seed, x->m, x->n, a, x->lda);
    if (t->op == BATCHQR_GELS)
      matgen_fill(type, x->kind, x->seed + 1, b_rows(t, x), x->k, guard_at(&t->c.g, x->c), x->ldc);
  } else {
    void *tau = guard_at(&t->tau.g, x->tau);
    if (!t->shared || i == 0) reflectors_fill(type, x->kind, x->seed, rows_of(t, x, A), x->k, a, x->lda, tau);
    if (t->op == BATCHQR_ORMQR)
      matgen_fill(type, x->kind, x->seed + 1, x->m, x->n, guard_at(&t->c.g, x->c), x->ldc);
  }
  if (x->spoil != TRIAL_SOUND) spoil(t, x);
  for (int o = 0; o < NUM_OPERANDS && x->claim == TRIAL_TRUE; o++)
    if (has(t, o) && writes(t, o)) {
      int rows = rows_of(t, x, o);
      guard_open(&array_of(t, o)->g, *place_of(x, o), rows, cols_of(t, x, o), ld_value(x, o, rows));
    }
}

/* Residual norms, a gap after each member's. */
static void build_norms(trial *t) {
  t->stride_norms = t->bound_k + 2;
  t->norms =
      guard_create(type_real_size(t->type), t->op == BATCHQR_GELS ? t->count * t->stride_norms + 1 : 1);
  for (int64_t i = 0; i < t->count && t->op == BATCHQR_GELS && !t->no_norms; i++)
    if (t->members[i].claim == TRIAL_TRUE)
      guard_open(&t->norms, 1 + i * t->stride_norms, t->members[i].k, 1, largest(1, t->members[i].k));
  guard_seal(&t->norms);
}

bool trial_sees_claim(const trial *t, const trial_member *x) {
  if (x->claim == TRIAL_LARGE_K) return has_k(t);
  if (x->claim == TRIAL_FEW_ROWS) return t->op == BATCHQR_ORGQR && x->n > 0;
  if (x->claim < TRIAL_SMALL_LDA || x->claim > TRIAL_SMALL_LDR) return true;
  return has(t, A + (int)(x->claim - TRIAL_SMALL_LDA));
}

static void apply_claim(const trial *t, int64_t i) {
  int reached = reach(t, &t->members[i]);
  switch (t->members[i].claim) {
  case TRIAL_NEGATIVE_M:
    t->arrays[0][i] = -1;
    break;
  case TRIAL_NEGATIVE_N:
    t->arrays[1][i] = -3;
    break;
  case TRIAL_LARGE_M:
    t->arrays[0][i] = t->bound_m + 1;
    break;
  case TRIAL_LARGE_N:
    t->arrays[1][i] = t->bound_n + 100000;
    break;
  case TRIAL_LARGE_K:
    t->arrays[2][i] = largest(t->bound_k, reached) + 1;
    break;
  case TRIAL_FEW_ROWS:
    t->arrays[0][i] = t->members[i].n - 1;
    break;
  case TRIAL_SMALL_LDA:
  case TRIAL_SMALL_LDC:
  case TRIAL_SMALL_LDR: {
    int operand = A + (int)(t->members[i].claim - TRIAL_SMALL_LDA);
    t->arrays[3 + operand][i] = rows_of(t, &t->members[i], operand) - 1;
    break;
  }
  default:
    break;
  }
}

void trial_build_sizes(trial *t) {
  for (int a = 0; a < 6; a++) {
    t->arrays[a] = calloc((size_t)t->count + 1, sizeof(int));
    ck_assert_ptr_nonnull(t->arrays[a]);
  }
  for (int64_t i = 0; i < t->count; i++) {
    const trial_member *x = &t->members[i];
    int values[6] = {x->m, x->n, x->k, x->lda, x->ldc, x->ldr};
    for (int a = 0; a < 6; a++) t->arrays[a][i] = values[a];
    apply_claim(t, i);
  }
}

void trial_build(trial *t) {
  find_bounds(t);
  for (int o = 0; o < NUM_OPERANDS; o++)
    if (has(t, o)) build_array(t, o);
  share_places(t);
  trial_build_sizes(t);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < t->count; i++) fill_member(t, i);
  t->info = guard_create(sizeof(int), t->count + 2);
  guard_open(&t->info, 1, (int)t->count, 1, 1);
  for (int o = 0; o < NUM_OPERANDS; o++)
    if (has(t, o)) guard_seal(&array_of(t, o)->g);
  guard_seal(&t->info);
  build_norms(t);
}

batchqr_batch trial_batch(const trial *t) {
  bool uniform = t->sizes == BATCHQR_UNIFORM, vary = t->ld_vary && !uniform;
  const trial_member *first = t->members;
  batchqr_batch b = {
      .type = t->type,
      .sizes = t->sizes,
      .count = t->count,
      .side = t->side,
      .trans = t->trans,
      .a = {.ld = first->lda, .stride = t->a.stride, .ld_array = vary ? t->arrays[3] : NULL},
      .c = {.ld = first->ldc, .stride = t->c.stride, .ld_array = vary ? t->arrays[4] : NULL},
      .r = {.ld = first->ldr, .stride = t->r.stride, .ld_array = vary ? t->arrays[5] : NULL},
      .tau = {.stride = t->tau.stride},
      .norms = {.stride = t->op == BATCHQR_GELS && !t->no_norms ? t->stride_norms : 0},
  };
  set_layouts(&b, t->layout);
  if (t->sizes != BATCHQR_HOST_SIZES) b.m = t->bound_m, b.n = t->bound_n, b.k = t->bound_k;
  if (!uniform)
    b.m_array = t->arrays[0], b.n_array = t->arrays[1], b.k_array = t->all_k ? NULL : t->arrays[2];
  if (t->op == BATCHQR_GELS && t->all_k) b.k = t->bound_k;
  if (t->in_place && t->op == BATCHQR_QR) b.c = b.a;
  if (t->in_place && t->op == BATCHQR_GEQR_R) b.r = b.a;
  return b;
}
