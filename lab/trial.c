/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials: sizes, storage and data. */
#include "memory.h"
#include "registry.h"
#include "trial_parts.h"

#include <math.h>
#include <stdlib.h>

trial trial_of(const bqr_operation *operation, const lab_routine *routine, batchqr_type type, int64_t count) {
  return (trial){.operation = operation,
                 .routine = routine,
                 .op = (batchqr_op)operation->op,
                 .type = type,
                 .count = count,
                 .members = memory_host((size_t)(count + 1) * sizeof(trial_member))};
}

trial trial_new(batchqr_op op, batchqr_type type, int64_t count) {
  return trial_of(bqr_registry_operation(bqr_registry_builtin(), (int)op), lab_routine_of((int)op), type,
                  count);
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
  t->own_layouts = (m + n + k) % 3 == 1;
}

void trial_free(trial *t) {
  for (int place = 0; place < BQR_NUM_OPERANDS; place++) guard_destroy(&t->operands[place].g);
  for (int i = 0; i < TRIAL_ARRAYS; i++) free(t->arrays[i]);
  guard_destroy(&t->info);
  free(t->members);
  *t = (trial){0};
}

/* A number for storage that depends on the trial alone. */
static int jitter(const trial *t, int place, int64_t i, int low, int high) {
  if (t->tight) return 16 * low;
  return rng_int((uint64_t)t->type * 64 + (uint64_t)t->op * 8 + (uint64_t)place, (uint64_t)(i + t->count),
                 low, high);
}

static trial_member bounds(const trial *t) {
  return (trial_member){.m = t->bound_m, .n = t->bound_n, .k = t->bound_k};
}

static void find_bounds(trial *t) {
  for (int64_t i = 0; i < t->count; i++) {
    const trial_member *x = &t->members[i];
    t->bound_m = bqr_max(t->bound_m, x->m);
    t->bound_n = bqr_max(t->bound_n, x->n);
    t->bound_k = bqr_max(t->bound_k, x->k);
  }
  if (t->sizes != BATCHQR_DEVICE_SIZES) return;
  t->bound_m += t->slack;
  t->bound_n += t->slack;
  t->bound_k += t->slack;
}

/* --- storage */

static batchqr_layout choose_layout(const trial *t, const bqr_use *use) {
  if (!t->own_layouts) return t->layout;
  const uint64_t bits = rng_bits(23, (uint64_t)(t->count + 100 * t->members->m + t->members->n));
  return (batchqr_layout)(bits >> use->place & 1);
}

/* One leading dimension for all, or one for each, 0 where every other member has no elements; vectors have
 * none, which is that of a lone column. */
static void choose_lds(trial *t, const bqr_use *use) {
  const trial_member all = bounds(t);
  const int common = bqr_max(1, trial_shape(t, &all, use).rows) + jitter(t, use->place, -1, 0, 3);
  for (int64_t i = 0; i == 0 || i < t->count;
       i++) { /* the first member's is the batch's, even if there is none */
    trial_member *x = &t->members[i];
    const bqr_shape shape = trial_shape(t, x, use);
    const int rows = bqr_max(1, shape.rows);
    const bool none = i % 2 == 0 && (shape.rows == 0 || shape.cols == 0);
    const int own = none ? 0 : rows + jitter(t, use->place, i, 0, 3);
    x->ld[use->place] = use->kind != BQR_MATRIX                     ? rows
                        : t->ld_vary && t->sizes != BATCHQR_UNIFORM ? own
                                                                    : common;
  }
}

/* The distance of members, of which the largest must fit in; and the upper bounds, where the host checks. */
static int64_t choose_stride(const trial *t, const bqr_use *use) {
  const trial_member all = bounds(t);
  const bool matrix = use->kind == BQR_MATRIX;
  int64_t stride = 0;
  if (t->shared && (use->place == BQR_A || use->place == BQR_TAU)) return 0;
  for (int64_t i = 0; i < t->count; i++) {
    const int64_t own = trial_extent(t, &t->members[i], use);
    if (own > stride) stride = own;
  }
  if (t->sizes == BATCHQR_DEVICE_SIZES && t->count > 0 && !(t->ld_vary && matrix)) {
    const bqr_shape shape = trial_shape(t, &all, use);
    const int64_t bound = lab_extent(shape, matrix ? t->members->ld[use->place] : bqr_max(1, shape.rows));
    if (bound > stride) stride = bound;
  }
  return stride + jitter(t, use->place, -2, 0, 5);
}

/* Places members on the host: at their distance; or (pointers, sparse) close-packed in a shuffled order. */
static int64_t choose_places(trial *t, const bqr_use *use, const trial_array *array) {
  const bool packed = array->layout == BATCHQR_POINTERS || t->sparse;
  const int64_t step = t->count % 7 != 0 ? 7 : 1;
  int64_t end = array->lead;
  for (int64_t i = 0; i < t->count; i++) {
    const int64_t k = packed ? i * step % t->count : i;
    const int64_t gap = packed ? jitter(t, use->place, k, 1, 7) : 0;
    const int64_t at = packed ? end + gap : array->lead + k * array->stride;
    t->members[k].at[use->place] = at;
    const int64_t behind = at + trial_extent(t, &t->members[k], use);
    if (behind > end) end = behind;
  }
  return end + jitter(t, use->place, -4, 1, 5);
}

static void build_array(trial *t, const bqr_use *use) {
  trial_array *array = &t->operands[use->place];
  array->layout = choose_layout(t, use);
  choose_lds(t, use);
  array->stride = array->layout == BATCHQR_STRIDED ? choose_stride(t, use) : 0;
  array->lead = jitter(t, use->place, -3, 1, 3);
  array->g = guard_create(bqr_kind_bytes(use->kind, t->type), choose_places(t, use, array));
}

static void share_places(trial *t, const bqr_use *use) {
  for (int64_t i = 0; i < t->count; i++) {
    trial_member *x = &t->members[i];
    x->at[use->place] = x->at[BQR_A];
    x->ld[use->place] = x->ld[BQR_A];
  }
}

/* --- data */

lab_member trial_lab_member(const trial *t, int64_t i) {
  const trial_member *x = &t->members[i];
  lab_member y = {.operation = t->operation,
                  .type = t->type,
                  .side = t->side,
                  .trans = t->trans,
                  .uplo = t->uplo,
                  .kmax = t->kmax,
                  .abstol = t->abstol,
                  .reltol = t->reltol,
                  .il = t->il,
                  .iu = t->iu,
                  .vl = t->vl,
                  .vu = t->vu,
                  .m = x->m,
                  .n = x->n,
                  .k = x->k,
                  .kind = x->kind,
                  .positive = t->positive,
                  .info = t->no_info ? NULL : guard_at(&t->info, i + 1)};
  FOR_USES(use, t) {
    const trial_array *array = &t->operands[trial_is_a(t, use) ? BQR_A : use->place];
    if (!array->g.data) continue;
    y.before[use->place] = guard_before(&array->g, x->at[use->place]);
    y.now[use->place] = guard_at(&array->g, x->at[use->place]);
    y.ld[use->place] = x->ld[use->place];
  }
  return y;
}

static void set_number(batchqr_type type, void *at, double value) {
  if (type_is_double(type))
    *(double *)at = value;
  else
    *(float *)at = (float)value;
}

/* The entry to spoil; every third time on the diagonal, below which there may be zeros alone. */
static int spoiled_entry(uint64_t seed, bqr_shape shape) {
  const int diagonal = bqr_min(shape.rows, shape.cols);
  if (diagonal == 0) return 0;
  return rng_int(seed, 3, 0, 2) ? rng_int(seed, 2, 0, shape.rows * shape.cols - 1)
                                : rng_int(seed, 2, 0, diagonal - 1) * (shape.rows + 1);
}

/* Puts a NaN or an Inf into an entry of an operand that is read; false if there is none. */
static bool spoil_operand(const trial *t, const trial_member *x, const lab_member *y, const bqr_use *use) {
  static const double values[] = {0.0, NAN, INFINITY, -INFINITY};
  const int parts = type_is_complex(t->type) && !t->routine->diagonal_only && use->kind != BQR_REALS ? 2 : 1;
  const bqr_shape shape = lab_shape(y, use);
  const int entries = shape.rows * shape.cols, first = spoiled_entry(x->seed, shape);
  for (int e = 0; e < entries && y->now[use->place]; e++) {
    const int i = (first + e) % entries % shape.rows, j = (first + e) % entries / shape.rows;
    if (!lab_reads(t->routine, y, use, i, j)) continue;
    char *number = (char *)y->now[use->place] +
                   ((int64_t)j * y->ld[use->place] + i) * (int64_t)bqr_kind_bytes(use->kind, t->type);
    set_number(t->type, number + bqr_real_bytes(t->type) * (size_t)rng_int(x->seed, 4, 0, parts - 1),
               values[x->spoil]);
    return true;
  }
  return false;
}

/* Spoils one of the operands, chosen by the member's seed; a member without input stays sound. */
static void spoil(const trial *t, trial_member *x, const lab_member *y) {
  int uses = 0;
  FOR_USES(use, t) uses++;
  const int first = rng_int(x->seed, 1, 0, uses - 1);
  for (int u = 0; u < uses; u++)
    if (spoil_operand(t, x, y, &t->operation->uses[(first + u) % uses])) return;
  x->spoil = TRIAL_SOUND;
}

static void fill_member(trial *t, int64_t i) {
  trial_member *x = &t->members[i];
  lab_member y = trial_lab_member(t, i);
  if (t->shared && i > 0) y.now[BQR_A] = y.now[BQR_TAU] = NULL;
  lab_fill(t->routine, &y, x->seed);
  if (x->spoil != TRIAL_SOUND) spoil(t, x, &y);
  FOR_USES(use, t) {
    const bqr_shape shape = trial_shape(t, x, use);
    const bool kept = t->keep_a && use->place == BQR_A;
    if (trial_has(t, use) && (use->access & BQR_WRITTEN) && !kept && x->claim == TRIAL_TRUE)
      guard_open(&t->operands[use->place].g, x->at[use->place], shape.rows, shape.cols, x->ld[use->place]);
  }
}

/* --- what members claim */

/* Most reflectors that fit. */
static int fitting(const trial *t, const trial_member *x) {
  return t->operation->reads_side && t->side == BATCHQR_LEFT ? x->m : x->n;
}

bool trial_sees_claim(const trial *t, const trial_member *x) {
  if (x->claim == TRIAL_LARGE_K) return t->operation->k != BQR_NO_K;
  if (x->claim == TRIAL_FEW_ROWS) return t->operation->tall && x->n > 0;
  if (x->claim < TRIAL_SMALL_LDA || x->claim > TRIAL_SMALL_LDR) return true;
  const bqr_use *use = bqr_use_at(t->operation, BQR_A + (int)(x->claim - TRIAL_SMALL_LDA));
  return use && trial_has(t, use);
}

void trial_claim_wrongly(trial *t) {
  for (int64_t i = 0; i < t->count; i++) {
    trial_member *x = &t->members[i];
    x->claim = (trial_claim)(i % TRIAL_LEFT_OUT);
    if (!trial_sees_claim(t, x)) x->claim = TRIAL_TRUE;
  }
}

static void apply_claim(const trial *t, int64_t i) {
  const trial_member *x = &t->members[i];
  const int place = BQR_A + (int)x->claim - (int)TRIAL_SMALL_LDA;
  switch (x->claim) {
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
    t->arrays[2][i] = bqr_max(t->bound_k, fitting(t, x)) + 1;
    break;
  case TRIAL_FEW_ROWS:
    t->arrays[0][i] = x->n - 1;
    break;
  case TRIAL_SMALL_LDA:
  case TRIAL_SMALL_LDC:
  case TRIAL_SMALL_LDR:
    t->arrays[3 + place][i] = trial_shape(t, x, bqr_use_at(t->operation, place)).rows - 1;
    break;
  default:
    break;
  }
}

void trial_build_sizes(trial *t) {
  for (int a = 0; a < TRIAL_ARRAYS; a++) t->arrays[a] = memory_host((size_t)(t->count + 1) * sizeof(int));
  for (int64_t i = 0; i < t->count; i++) {
    const trial_member *x = &t->members[i];
    t->arrays[0][i] = x->m;
    t->arrays[1][i] = x->n;
    t->arrays[2][i] = x->k;
    for (int place = 0; place < BQR_NUM_OPERANDS; place++) t->arrays[3 + place][i] = x->ld[place];
    apply_claim(t, i);
  }
}

/* --- the whole */

void trial_build(trial *t) {
  find_bounds(t);
  FOR_USES(use, t) {
    if (trial_has(t, use)) build_array(t, use);
    if (trial_is_a(t, use)) share_places(t, use);
  }
  trial_build_sizes(t);
  t->info = guard_create(sizeof(int), t->count + 2);
  guard_open(&t->info, 1, (int)t->count, 1, 1);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < t->count; i++) fill_member(t, i);
  FOR_USES(use, t) if (trial_has(t, use)) guard_seal(&t->operands[use->place].g);
  guard_seal(&t->info);
}

batchqr_batch trial_batch(const trial *t) {
  const bool uniform = t->sizes == BATCHQR_UNIFORM, vary = t->ld_vary && !uniform;
  batchqr_batch b = {.type = t->type,
                     .sizes = t->sizes,
                     .count = t->count,
                     .side = t->side,
                     .trans = t->trans,
                     .uplo = t->uplo,
                     .kmax = t->kmax,
                     .keep_a = t->keep_a,
                     .unaligned = !t->tight,
                     .abstol = t->abstol,
                     .reltol = t->reltol,
                     .il = t->il,
                     .iu = t->iu,
                     .vl = t->vl,
                     .vu = t->vu,
                     .oversampling = t->oversampling,
                     .power_steps = t->power_steps};
  FOR_USES(use, t) {
    const trial_array *array = &t->operands[use->place];
    batchqr_storage *storage = trial_storage(&b, (int)use->place);
    storage->layout = array->layout;
    storage->stride = array->stride;
    if (use->kind != BQR_MATRIX || trial_left_out(t, use)) continue;
    storage->ld = t->members->ld[use->place];
    storage->ld_array = vary ? t->arrays[3 + use->place] : NULL;
  }
  FOR_USES(use, t) if (trial_is_a(t, use)) * trial_storage(&b, (int)use->place) = b.a;
  if (t->sizes != BATCHQR_HOST_SIZES) b.m = t->bound_m, b.n = t->bound_n, b.k = t->bound_k;
  if (!uniform)
    b.m_array = t->arrays[0], b.n_array = t->arrays[1], b.k_array = t->all_k ? NULL : t->arrays[2];
  if (t->operation->k == BQR_RIGHT_HAND_SIDES && t->all_k) b.k = t->bound_k;
  return b;
}
