/* SPDX-License-Identifier: BSD-3-Clause */
/* Trials at work: in the backend's memory, by one of the ways to call a routine. */
#include "memory.h"
#include "trial_parts.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

/* What lies in the backend's memory during a run. */
typedef struct machine {
  trial *t;
  batchqr_backend backend;
  batchqr_handle_t handle;
  void *memory[BQR_NUM_OPERANDS];   /* the arrays, by place */
  void *pointers[BQR_NUM_OPERANDS]; /* arrays of addresses */
  int *info, *arrays[TRIAL_ARRAYS];
  batchqr_batch batch;
  batchqr_operands operands;
} machine;

static void set_address(batchqr_operands *operands, int place, void *address) {
  memcpy((char *)operands + bqr_places[place].address, &address, sizeof address);
}

/* Whether members lie elsewhere on the device than on the host. */
static bool is_apart(const trial *t, const bqr_use *use) {
  return t->sparse && t->operands[use->place].layout == BATCHQR_STRIDED;
}

/* Where a member lies on the device. */
static int64_t device_place(const trial *t, const bqr_use *use, int64_t i) {
  const trial_array *x = &t->operands[use->place];
  return is_apart(t, use) ? x->lead + i * x->stride : t->members[i].at[use->place];
}

static int64_t device_elements(const trial *t, const bqr_use *use) {
  const trial_array *x = &t->operands[use->place];
  return is_apart(t, use) ? x->lead + t->count * x->stride : x->g.elements;
}

/* Copies an array to or from the device. */
static void transfer(const machine *m, const bqr_use *use, bool up) {
  trial *t = m->t;
  guard *g = &t->operands[use->place].g;
  void *memory = m->memory[use->place];
  if (!is_apart(t, use)) {
    if (up)
      memory_upload(m->backend, memory, g->data, guard_bytes(g));
    else
      memory_download(m->backend, g->data, memory, guard_bytes(g));
    return;
  }
  for (int64_t i = 0; i < t->count; i++) {
    char *there = (char *)memory + device_place(t, use, i) * (int64_t)g->size;
    void *here = guard_at(g, t->members[i].at[use->place]);
    size_t bytes = (size_t)trial_extent(t, &t->members[i], use) * g->size;
    if (up)
      memory_upload(m->backend, there, here, bytes);
    else
      memory_download(m->backend, here, there, bytes);
  }
}

static void upload(const machine *m) {
  FOR_USES(use, m->t) if (trial_has(m->t, use)) {
    guard_restore(&m->t->operands[use->place].g);
    transfer(m, use, true);
  }
  guard_restore(&m->t->info);
  memory_upload(m->backend, m->info, m->t->info.data, guard_bytes(&m->t->info));
}

static void download(const machine *m) {
  FOR_USES(use, m->t) if (trial_has(m->t, use)) transfer(m, use, false);
  memory_download(m->backend, m->t->info.data, m->info, guard_bytes(&m->t->info));
}

/* An operand's memory; its address as the library gets it. */
static void *new_operand(machine *m, const bqr_use *use) {
  const trial *t = m->t;
  const trial_array *x = &t->operands[use->place];
  void *memory = memory_alloc(m->backend, (size_t)device_elements(t, use) * x->g.size);
  m->memory[use->place] = memory;
  if (x->layout == BATCHQR_STRIDED) return (char *)memory + x->lead * (int64_t)x->g.size;
  int64_t *places = memory_host((size_t)t->count * sizeof *places);
  for (int64_t i = 0; i < t->count; i++) /* the addresses of members without elements are not looked at */
    places[i] = trial_extent(t, &t->members[i], use) > 0 ? device_place(t, use, i) : -1;
  m->pointers[use->place] = memory_pointers(m->backend, memory, x->g.size, places, t->count);
  free(places);
  return m->pointers[use->place];
}

/* Size arrays on the device. Storage that is the same stays the same array. */
static void upload_sizes(machine *m) {
  const size_t bytes = (size_t)m->t->count * sizeof(int);
  bqr_batch_array arrays[BQR_MOST_ARRAYS];
  const int count = bqr_batch_arrays(m->t->operation, &m->batch, arrays);
  for (int i = 0; i < count; i++)
    for (int a = 0; a < TRIAL_ARRAYS && *arrays[i].at; a++) {
      if (*arrays[i].at != m->t->arrays[a]) continue;
      if (!m->arrays[a]) m->arrays[a] = memory_clone(m->backend, m->t->arrays[a], bytes);
      *arrays[i].at = m->arrays[a];
    }
}

/* Where a batch counts no reflectors, none may be given. */
static bool may_be_given(const trial *t, const batchqr_batch *batch, const bqr_use *use) {
  const bool counts =
      batch->sizes == BATCHQR_UNIFORM || (batch->sizes == BATCHQR_DEVICE_SIZES && !batch->k_array);
  const bool reads_k = use->rows == BQR_K || use->cols == BQR_K;
  return t->operation->k != BQR_REFLECTORS || !counts || batch->k > 0 || !reads_k;
}

static machine machine_new(trial *t, batchqr_handle_t handle) {
  machine m = {.t = t, .backend = batchqr_get_backend(handle), .handle = handle, .batch = trial_batch(t)};
  if (t->sizes == BATCHQR_DEVICE_SIZES) upload_sizes(&m);
  m.info = memory_alloc(m.backend, guard_bytes(&t->info));
  m.operands.info = t->no_info ? NULL : m.info + 1;
  FOR_USES(use, t) {
    void *address = trial_has(t, use) ? new_operand(&m, use) : NULL;
    if (may_be_given(t, &m.batch, use)) set_address(&m.operands, (int)use->place, address);
    if (trial_is_a(t, use)) set_address(&m.operands, (int)use->place, m.operands.a);
  }
  upload(&m);
  return m;
}

static void machine_free(machine *m) {
  for (int place = 0; place < BQR_NUM_OPERANDS; place++) {
    if (m->memory[place] != NULL) memory_free(m->backend, m->memory[place]);
    if (m->pointers[place] != NULL) memory_free(m->backend, m->pointers[place]);
  }
  for (int i = 0; i < TRIAL_ARRAYS; i++)
    if (m->arrays[i] != NULL) memory_free(m->backend, m->arrays[i]);
  memory_free(m->backend, m->info);
}

/* --- the planned tier */

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
  for (int i = 0; i < TRIAL_ARRAYS; i++) memset(m->t->arrays[i], 0x77, array_bytes);
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
  for (int i = 0; i < TRIAL_ARRAYS; i++) free(m->t->arrays[i]);
  trial_build_sizes(m->t);
  return status;
}

/* --- one call */

/* An operation whose routine the laboratory does not know is called by a plan. */
static batchqr_status call(const machine *m, const batchqr_batch *batch, const batchqr_operands *operands) {
  if (m->t->routine->call) return m->t->routine->call(m->handle, batch, operands);
  batchqr_plan_t plan;
  batchqr_status status = batchqr_plan_create(m->handle, m->t->op, batch, &plan);
  if (status) return status;
  const size_t bytes = batchqr_plan_workspace(plan);
  void *workspace = memory_alloc(m->backend, bytes);
  status = batchqr_plan_execute(m->handle, plan, operands, workspace, bytes);
  memory_sync(m->backend);
  memory_free(m->backend, workspace);
  batchqr_plan_destroy(plan);
  return status;
}

/* Each member as a batch of its own. */
static batchqr_status run_alone(const machine *m) {
  const trial *t = m->t;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t i = 0; i < t->count && status == BATCHQR_SUCCESS; i++) {
    const trial_member *x = &t->members[i];
    batchqr_batch batch = trial_batch(t);
    batch.sizes = BATCHQR_UNIFORM;
    batch.count = 1;
    batch.m = x->m, batch.n = x->n, batch.k = x->k;
    if (x->n > 0) batch.iu = bqr_min(batch.iu, x->n);
    batchqr_operands operands = {.info = m->operands.info != NULL ? m->operands.info + i : NULL};
    FOR_USES(use, t) {
      *trial_storage(&batch, (int)use->place) =
          (batchqr_storage){.ld = use->kind == BQR_MATRIX && !trial_left_out(t, use)
                                      ? bqr_max(x->ld[use->place], bqr_max(1, trial_shape(t, x, use).rows))
                                      : 0,
                            .stride = use->access & BQR_ANNOUNCED ? trial_shape(t, x, use).rows : 0};
      if (trial_has(t, use) && may_be_given(t, &batch, use))
        set_address(&operands, (int)use->place,
                    (char *)m->memory[use->place] +
                        device_place(t, use, i) * (int64_t)t->operands[use->place].g.size);
      if (trial_is_a(t, use)) set_address(&operands, (int)use->place, operands.a);
    }
    status = call(m, &batch, &operands);
  }
  return status;
}

batchqr_status trial_run(trial *t, batchqr_handle_t handle, trial_mode mode) {
  machine m = machine_new(t, handle);
  if (mode == TRIAL_CALL && !t->routine->call) mode = TRIAL_PLAN;
  batchqr_status status = mode == TRIAL_CALL    ? call(&m, &m.batch, &m.operands)
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
