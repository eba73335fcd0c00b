/* SPDX-License-Identifier: BSD-3-Clause */
#define _GNU_SOURCE /* program_invocation_name */
#include "trial.h"
#include "memory.h"
#include "reflectors.h"
#include "residual.h"
#include "types.h"

#include <check.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- operands */

enum { A, C, R, TAU, NUM_OPERANDS };

static int least(int a, int b) { return a < b ? a : b; }
static int largest(int a, int b) { return a > b ? a : b; }

static const char *const op_names[] = {"geqrf", "orgqr", "ormqr", "qr", "geqr_r"};
static bool has_k(const trial *t) { return t->op == BATCHQR_ORGQR || t->op == BATCHQR_ORMQR; }
static bool factors(const trial *t) { return !has_k(t); }

/* Whether the operand is an array of its own. */
static bool has(const trial *t, int operand) {
  switch (operand) {
  case A:
    return true;
  case C:
    return t->op == BATCHQR_ORMQR || (t->op == BATCHQR_QR && !t->in_place);
  case R:
    return t->op == BATCHQR_QR || (t->op == BATCHQR_GEQR_R && !t->in_place);
  default:
    return t->op == BATCHQR_GEQRF || has_k(t);
  }
}

static bool writes(const trial *t, int operand) {
  if (operand == A) return t->op != BATCHQR_ORMQR;
  return operand == TAU ? t->op == BATCHQR_GEQRF : has(t, operand);
}

/* Rows of V, and most reflectors that fit. */
static int reach(const trial *t, const trial_member *x) {
  return t->op == BATCHQR_ORMQR && t->side == BATCHQR_LEFT ? x->m : x->n;
}

static int rows_of(const trial *t, const trial_member *x, int operand) {
  switch (operand) {
  case A:
    return t->op == BATCHQR_ORMQR ? reach(t, x) : x->m;
  case C:
    return x->m;
  case R:
    return least(x->m, x->n);
  default:
    return has_k(t) ? x->k : least(x->m, x->n);
  }
}

static int cols_of(const trial *t, const trial_member *x, int operand) {
  switch (operand) {
  case A:
    return t->op == BATCHQR_ORMQR ? x->k : x->n;
  case C:
    return t->op == BATCHQR_ORMQR ? x->n : least(x->m, x->n);
  case R:
    return x->n;
  default:
    return 1;
  }
}

static trial_array *array_of(trial *t, int operand) {
  return operand == A ? &t->a : operand == C ? &t->c : operand == R ? &t->r : &t->tau;
}

static int64_t *place_of(trial_member *x, int operand) {
  return operand == A ? &x->a : operand == C ? &x->c : operand == R ? &x->r : &x->tau;
}

/* tau has none: it is one column. */
static int *ld_of(trial_member *x, int operand) {
  return operand == A ? &x->lda : operand == C ? &x->ldc : &x->ldr;
}

static int ld_value(trial_member *x, int operand, int rows) {
  return operand == TAU ? largest(1, rows) : *ld_of(x, operand);
}

/* Elements from a member's first to behind its last. */
static int64_t extent(int rows, int cols, int ld) {
  return rows > 0 && cols > 0 ? (int64_t)(cols - 1) * ld + rows : 0;
}

static int64_t extent_of(const trial *t, trial_member *x, int operand) {
  int rows = rows_of(t, x, operand);
  return extent(rows, cols_of(t, x, operand), ld_value(x, operand, rows));
}

/* --- building */

trial trial_new(batchqr_op op, batchqr_type type, int64_t count) {
  trial t = {.op = op, .type = type, .count = count};
  t.members = calloc((size_t)count + 1, sizeof *t.members);
  ck_assert_ptr_nonnull(t.members);
  return t;
}

void trial_free(trial *t) {
  for (int x = 0; x < NUM_OPERANDS; x++) guard_destroy(&array_of(t, x)->g);
  for (int i = 0; i < 6; i++) free(t->arrays[i]);
  guard_destroy(&t->info);
  free(t->members);
  *t = (trial){0};
}

/* A number for layout that depends on the trial alone. */
static int jitter(const trial *t, int operand, int64_t i, int low, int high) {
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
                                       : 3;
  if (x->k == 0 && where != 3) where = 2;
  int operand = where == 0 || where == 3 ? A : where == 1 ? TAU : C;
  int rows = rows_of(t, x, operand), j = rng_int(x->seed, 2, 0, cols_of(t, x, operand) - 1);
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
  if (factors(t)) {
    matgen_fill(type, x->kind, x->seed, x->m, x->n, a, x->lda);
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
  case TRIAL_SMALL_LD:
    t->arrays[3][i] = rows_of(t, &t->members[i], A) - 1;
    break;
  default:
    break;
  }
}

static void build_arrays(trial *t) {
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
  build_arrays(t);
#pragma omp parallel for schedule(dynamic)
  for (int64_t i = 0; i < t->count; i++) fill_member(t, i);
  t->info = guard_create(sizeof(int), t->count + 2);
  guard_open(&t->info, 1, (int)t->count, 1, 1);
  for (int o = 0; o < NUM_OPERANDS; o++)
    if (has(t, o)) guard_seal(&array_of(t, o)->g);
  guard_seal(&t->info);
}

batchqr_batch trial_batch(const trial *t) {
  bool uniform = t->sizes == BATCHQR_UNIFORM, vary = t->ld_vary && !uniform;
  const trial_member *first = t->members;
  batchqr_batch b = {
      .type = t->type,
      .layout = t->layout,
      .sizes = t->sizes,
      .count = t->count,
      .side = t->side,
      .trans = t->trans,
      .a = {.ld = first->lda, .stride = t->a.stride, .ld_array = vary ? t->arrays[3] : NULL},
      .c = {.ld = first->ldc, .stride = t->c.stride, .ld_array = vary ? t->arrays[4] : NULL},
      .r = {.ld = first->ldr, .stride = t->r.stride, .ld_array = vary ? t->arrays[5] : NULL},
      .stride_tau = t->tau.stride,
  };
  if (t->sizes != BATCHQR_HOST_SIZES) b.m = t->bound_m, b.n = t->bound_n, b.k = t->bound_k;
  if (!uniform)
    b.m_array = t->arrays[0], b.n_array = t->arrays[1], b.k_array = t->all_k ? NULL : t->arrays[2];
  if (t->in_place && t->op == BATCHQR_QR) b.c = b.a;
  if (t->in_place && t->op == BATCHQR_GEQR_R) b.r = b.a;
  return b;
}

/* --- running */

/* What lies in the backend's memory during a run. */
typedef struct machine {
  trial *t;
  batchqr_backend backend;
  batchqr_handle_t handle;
  void *memory[NUM_OPERANDS];   /* the arrays */
  void *pointers[NUM_OPERANDS]; /* arrays of addresses */
  int *info, *arrays[6];
  batchqr_batch batch;
  batchqr_operands operands;
} machine;

/* Where a member lies on the device. */
static int64_t device_place(const machine *m, int operand, int64_t i) {
  const trial_array *x = array_of(m->t, operand);
  bool apart = m->t->sparse && m->t->layout == BATCHQR_STRIDED;
  return apart ? x->lead + i * x->stride : *place_of(&m->t->members[i], operand);
}

static int64_t device_elements(const machine *m, int operand) {
  const trial_array *x = array_of(m->t, operand);
  bool apart = m->t->sparse && m->t->layout == BATCHQR_STRIDED;
  return apart ? x->lead + m->t->count * x->stride : x->g.elements;
}

/* Copies an array to or from the device. */
static void transfer(const machine *m, int operand, bool up) {
  trial *t = m->t;
  guard *g = &array_of(t, operand)->g;
  size_t size = g->size;
  if (!t->sparse || t->layout == BATCHQR_POINTERS) {
    if (up)
      memory_upload(m->backend, m->memory[operand], g->data, guard_bytes(g));
    else
      memory_download(m->backend, g->data, m->memory[operand], guard_bytes(g));
    return;
  }
  for (int64_t i = 0; i < t->count; i++) {
    char *there = (char *)m->memory[operand] + device_place(m, operand, i) * (int64_t)size;
    void *here = guard_at(g, *place_of(&t->members[i], operand));
    size_t bytes = (size_t)extent_of(t, &t->members[i], operand) * size;
    if (up)
      memory_upload(m->backend, there, here, bytes);
    else
      memory_download(m->backend, here, there, bytes);
  }
}

static void upload(const machine *m) {
  for (int o = 0; o < NUM_OPERANDS; o++)
    if (has(m->t, o)) {
      guard_restore(&array_of(m->t, o)->g);
      transfer(m, o, true);
    }
  guard_restore(&m->t->info);
  memory_upload(m->backend, m->info, m->t->info.data, guard_bytes(&m->t->info));
}

static void download(const machine *m) {
  for (int o = 0; o < NUM_OPERANDS; o++)
    if (has(m->t, o)) transfer(m, o, false);
  memory_download(m->backend, m->t->info.data, m->info, guard_bytes(&m->t->info));
}

/* An operand as the library gets it. */
static void *operand_address(machine *m, int operand) {
  trial *t = m->t;
  size_t size = type_size(t->type);
  if (!has(t, operand)) return NULL;
  m->memory[operand] = memory_alloc(m->backend, (size_t)device_elements(m, operand) * size);
  if (t->layout == BATCHQR_STRIDED)
    return (char *)m->memory[operand] + array_of(t, operand)->lead * (int64_t)size;
  int64_t *places = malloc((size_t)(t->count + 1) * sizeof *places);
  ck_assert_ptr_nonnull(places);
  for (int64_t i = 0; i < t->count; i++) /* the addresses of members without elements are not looked at */
    places[i] = extent_of(t, &t->members[i], operand) > 0 ? device_place(m, operand, i) : -1;
  m->pointers[operand] = memory_pointers(m->backend, m->memory[operand], size, places, t->count);
  free(places);
  return m->pointers[operand];
}

/* Size arrays on the device. */
static void upload_sizes(machine *m) {
  const int **arrays[6] = {&m->batch.m_array,    &m->batch.n_array,    &m->batch.k_array,
                           &m->batch.a.ld_array, &m->batch.c.ld_array, &m->batch.r.ld_array};
  for (int i = 0; i < 6; i++)
    if (*arrays[i] != NULL)
      *arrays[i] = m->arrays[i] = memory_clone(m->backend, *arrays[i], (size_t)m->t->count * sizeof(int));
  /* Storage that is the same must stay the same array. */
  if (m->t->in_place && m->t->op == BATCHQR_QR) m->batch.c.ld_array = m->batch.a.ld_array;
  if (m->t->in_place && m->t->op == BATCHQR_GEQR_R) m->batch.r.ld_array = m->batch.a.ld_array;
}

static machine machine_new(trial *t, batchqr_handle_t handle) {
  machine m = {.t = t, .backend = batchqr_get_backend(handle), .handle = handle, .batch = trial_batch(t)};
  if (t->sizes == BATCHQR_DEVICE_SIZES) upload_sizes(&m);
  m.info = memory_alloc(m.backend, guard_bytes(&t->info));
  m.operands = (batchqr_operands){.a = operand_address(&m, A),
                                  .tau = operand_address(&m, TAU),
                                  .c = operand_address(&m, C),
                                  .r = operand_address(&m, R),
                                  .info = t->no_info ? NULL : m.info + 1};
  if (t->in_place && t->op == BATCHQR_QR) m.operands.c = m.operands.a;
  if (t->in_place && t->op == BATCHQR_GEQR_R) m.operands.r = m.operands.a;
  upload(&m);
  return m;
}

static void machine_free(machine *m) {
  for (int o = 0; o < NUM_OPERANDS; o++) {
    if (m->memory[o] != NULL) memory_free(m->backend, m->memory[o]);
    if (m->pointers[o] != NULL) memory_free(m->backend, m->pointers[o]);
  }
  for (int i = 0; i < 6; i++)
    if (m->arrays[i] != NULL) memory_free(m->backend, m->arrays[i]);
  memory_free(m->backend, m->info);
}

static batchqr_status call(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                           const batchqr_operands *o) {
  bool other_name = type_is_complex(batch->type);
  switch (op) {
  case BATCHQR_GEQRF:
    return batch_geqrf(handle, batch, o->a, o->tau, o->info);
  case BATCHQR_ORGQR:
    return (other_name ? batch_ungqr : batch_orgqr)(handle, batch, o->a, o->tau, o->info);
  case BATCHQR_ORMQR:
    return (other_name ? batch_unmqr : batch_ormqr)(handle, batch, batch->side, batch->trans, o->a, o->tau,
                                                    o->c, o->info);
  case BATCHQR_QR:
    return batch_qr(handle, batch, o->a, o->c, o->r, o->info);
  default:
    return batch_geqr_r(handle, batch, o->a, o->r, o->info);
  }
}

/* Each member as a batch of its own. */
static batchqr_status run_alone(const machine *m) {
  const trial *t = m->t;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t i = 0; i < t->count && status == BATCHQR_SUCCESS; i++) {
    trial_member *x = &t->members[i];
    batchqr_batch batch = {.type = t->type,
                           .count = 1,
                           .m = x->m,
                           .n = x->n,
                           .k = x->k,
                           .side = t->side,
                           .trans = t->trans,
                           .a = {.ld = x->lda},
                           .c = {.ld = x->ldc},
                           .r = {.ld = x->ldr}};
    void *at[NUM_OPERANDS];
    for (int o = 0; o < NUM_OPERANDS; o++)
      at[o] = has(t, o) ? (char *)m->memory[o] + device_place(m, o, i) * (int64_t)type_size(t->type) : NULL;
    batchqr_operands operands = {.a = at[A],
                                 .tau = at[TAU],
                                 .c = at[C],
                                 .r = at[R],
                                 .info = m->operands.info != NULL ? m->operands.info + i : NULL};
    if (t->in_place && t->op == BATCHQR_QR) operands.c = operands.a;
    if (t->in_place && t->op == BATCHQR_GEQR_R) operands.r = operands.a;
    status = call(m->handle, t->op, &batch, &operands);
  }
  return status;
}

static batchqr_status run_graph(const machine *m, batchqr_plan_t plan, void *workspace, size_t bytes) {
  batchqr_stream stream = memory_stream_new();
  batchqr_set_stream(m->handle, stream);
  memory_capture_begin(stream);
  batchqr_status status = batchqr_plan_execute(m->handle, plan, &m->operands, workspace, bytes);
  memory_graph *graph = memory_capture_end(stream);
  for (int i = 0; i < 2 && status == BATCHQR_SUCCESS; i++) {
    upload(m);
    memory_graph_launch(graph, stream);
  }
  memory_graph_free(graph);
  batchqr_set_stream(m->handle, NULL);
  memory_stream_free(stream);
  return status;
}

/* A workspace starts as NaNs; what lies behind it must stay so. */
enum { WORKSPACE_BYTE = 0xff, WORKSPACE_TAIL = 1024 };

/* Plans, spoils the caller's size arrays (the plan has its own), executes. */
static batchqr_status run_plan(const machine *m, bool graph) {
  batchqr_plan_t plan;
  batchqr_status status = batchqr_plan_create(m->handle, m->t->op, &m->batch, &plan);
  if (status != BATCHQR_SUCCESS) return status;
  size_t array_bytes = (size_t)m->t->count * sizeof(int), bytes = batchqr_plan_workspace(plan);
  for (int i = 0; i < 6; i++) memset(m->t->arrays[i], 0x77, array_bytes);
  char *workspace = memory_alloc(m->backend, bytes + WORKSPACE_TAIL), tail[WORKSPACE_TAIL];
  memory_fill(m->backend, workspace, WORKSPACE_BYTE, bytes + WORKSPACE_TAIL);
  if (graph)
    status = run_graph(m, plan, workspace, bytes);
  else
    status = batchqr_plan_execute(m->handle, plan, &m->operands, workspace, bytes);
  memory_download(m->backend, tail, workspace + bytes, WORKSPACE_TAIL);
  memory_free(m->backend, workspace);
  for (int i = 0; i < WORKSPACE_TAIL; i++) /* an assertion for each byte would take its time */
    if (tail[i] != (char)WORKSPACE_BYTE)
      ck_abort_msg("%s wrote behind its workspace of %zu bytes", batchqr_plan_describe(plan), bytes);
  batchqr_plan_destroy(plan);
  for (int i = 0; i < 6; i++) free(m->t->arrays[i]);
  build_arrays(m->t);
  return status;
}

batchqr_status trial_run(trial *t, batchqr_handle_t handle, trial_mode mode) {
  machine m = machine_new(t, handle);
  batchqr_status status = mode == TRIAL_CALL    ? call(handle, t->op, &m.batch, &m.operands)
                          : mode == TRIAL_ALONE ? run_alone(&m)
                                                : run_plan(&m, mode == TRIAL_GRAPH);
  memory_sync(m.backend);
  download(&m);
  machine_free(&m);
  return status;
}

batchqr_status trial_run_with(trial *t, batchqr_handle_t handle, trial_function function, void *context) {
  machine m = machine_new(t, handle);
  batchqr_status status = function(&m.batch, &m.operands, context);
  memory_sync(m.backend);
  download(&m);
  machine_free(&m);
  return status;
}

/* --- judging */

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
    return v;
  }
  if (!factors(t) && !t->no_info) require(&v, info == 0, "info is not 0", info);
  if (x->m == 0 || x->n == 0) {
    if (!t->no_info) require(&v, info == 0, "info is not 0", info);
    return v;
  }
  if (factors(t)) judge_diagonal(t, x, info, &v);
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

bool trial_same(const trial *t, int64_t i, const trial *u, int64_t j) {
  trial *both[2] = {(trial *)t, (trial *)u};
  trial_member *members[2] = {&t->members[i], &u->members[j]};
  for (int o = 0; o < NUM_OPERANDS; o++) {
    if (!has(t, o) || !writes(t, o)) continue;
    /* what QR and GEQR_R leave of A is undefined */
    if (o == A && (t->op == BATCHQR_QR || t->op == BATCHQR_GEQR_R) && !t->in_place) continue;
    int rows = rows_of(t, members[0], o), cols = cols_of(t, members[0], o);
    if (o == A && t->op == BATCHQR_QR) cols = least(members[0]->m, members[0]->n);
    for (int c = 0; c < cols && rows > 0; c++) {
      const void *column[2];
      for (int b = 0; b < 2; b++)
        column[b] = guard_at(&array_of(both[b], o)->g,
                             *place_of(members[b], o) + (int64_t)c * ld_value(members[b], o, rows));
      if (memcmp(column[0], column[1], (size_t)rows * type_size(t->type)) != 0) return false;
    }
  }
  if (t->no_info || u->no_info) return true;
  return memcmp(guard_at(&t->info, i + 1), guard_at(&u->info, j + 1), sizeof(int)) == 0;
}

void trial_check_same(const trial *t, int64_t i, const trial *u, int64_t j, batchqr_handle_t handle,
                      const char *what) {
  char text[128];
  if (trial_same(t, i, u, j)) return;
  snprintf(text, sizeof text,
           "results are not bitwise those of another run, which differs in %s; there member", what);
  report(t, i, handle, text, (double)j);
}
