/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials at work: in the backend's memory, by one of the ways to call a routine. */
#include "memory.h"
#include "trial_parts.h"
#include "types.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* What lies in the backend's memory during a run. */
typedef struct machine {
  trial *t;
  batchqr_backend backend;
  batchqr_handle_t handle;
  void *memory[NUM_OPERANDS];   /* the arrays */
  void *pointers[NUM_OPERANDS]; /* arrays of addresses */
  int *info, *arrays[6];
  void *norms;
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
  guard_restore(&m->t->norms);
  memory_upload(m->backend, m->norms, m->t->norms.data, guard_bytes(&m->t->norms));
}

static void download(const machine *m) {
  for (int o = 0; o < NUM_OPERANDS; o++)
    if (has(m->t, o)) transfer(m, o, false);
  memory_download(m->backend, m->t->info.data, m->info, guard_bytes(&m->t->info));
  memory_download(m->backend, m->t->norms.data, m->norms, guard_bytes(&m->t->norms));
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
  m.norms = memory_alloc(m.backend, guard_bytes(&t->norms));
  bool norms = t->op == BATCHQR_GELS && !t->no_norms;
  m.operands = (batchqr_operands){.a = operand_address(&m, A),
                                  .tau = operand_address(&m, TAU),
                                  .c = operand_address(&m, C),
                                  .r = operand_address(&m, R),
                                  .info = t->no_info ? NULL : m.info + 1,
                                  .norms = norms ? (char *)m.norms + t->norms.size : NULL};
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
  memory_free(m->backend, m->norms);
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
  case BATCHQR_GELS:
    return batch_gels(handle, batch, batch->trans, o->a, o->c, o->norms, o->info);
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
    if (m->operands.norms != NULL)
      operands.norms = (char *)m->operands.norms + i * t->stride_norms * (int64_t)t->norms.size;
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
  trial_build_sizes(m->t);
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
