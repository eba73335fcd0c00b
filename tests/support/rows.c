/* SPDX-License-Identifier: BSD-3-Clause */
#include "rows.h"
#include "batch.h"
#include "memory.h"
#include "registry.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static bqr_dims sizes_of(const rows_call *c, int64_t i) { return (bqr_dims){c->m[i], c->n[i], c->k[i]}; }

static batchqr_storage *storage(rows_call *c, int place) {
  return (batchqr_storage *)(void *)((char *)&c->batch + bqr_places[place].storage);
}

static int *copy_ints(const int *from, int64_t count) {
  int *to = calloc((size_t)count + 1, sizeof *to);
  if (from) memcpy(to, from, (size_t)count * sizeof *to);
  return to;
}

static void new_operand(rows_call *c, const bqr_use *use) {
  rows_operand *x = &c->operands[use->place];
  const int64_t count = c->batch.count;
  const bool uniform = c->batch.sizes == BATCHQR_UNIFORM;
  int64_t elements = 0;
  x->wanted = true;
  x->at = calloc((size_t)count + 1, sizeof *x->at);
  x->ld = calloc((size_t)count + 1, sizeof *x->ld);
  for (int64_t i = 0; i < count; i++) {
    const bqr_shape shape = bqr_shape_of(use, &c->batch, sizes_of(c, i));
    x->ld[i] =
        use->kind == BQR_MATRIX ? shape.rows + (uniform ? 1 : 1 + (int)(i % 3)) : bqr_max(1, shape.rows);
    x->at[i] = elements;
    elements += (int64_t)x->ld[i] * shape.cols + 1;
  }
  x->data = guard_create(bqr_kind_bytes(use->kind, c->batch.type), elements);
  for (int64_t i = 0; i < count && (use->access & BQR_WRITTEN); i++) {
    const bqr_shape shape = bqr_shape_of(use, &c->batch, sizes_of(c, i));
    guard_open(&x->data, x->at[i], shape.rows, shape.cols, x->ld[i]);
  }
  *storage(c, (int)use->place) = (batchqr_storage){.layout = c->layout,
                                                   .ld = use->kind == BQR_MATRIX && count > 0 ? x->ld[0] : 0,
                                                   .stride = uniform && count > 1 ? x->at[1] : 0};
}

static bool among(const int *places, int place) {
  for (; places && *places; places++)
    if (*places == place) return true;
  return false;
}

/* Whether the operand counts what a range has, of a batch without one. */
static bool counts_all(const rows_call *c, const bqr_use *use) {
  return c->operation->ranges && use->place == BQR_RANK && !bqr_batch_range(&c->batch);
}

rows_call rows_new(int op, batchqr_type type, batchqr_sizes kind, batchqr_layout layout, int64_t count,
                   const int *m, const int *n, const int *k, const int *unwanted) {
  return rows_new_range(&(batchqr_batch){.type = type, .sizes = kind, .count = count}, op, layout, m, n, k,
                        unwanted);
}

rows_call rows_new_range(const batchqr_batch *batch, int op, batchqr_layout layout, const int *m,
                         const int *n, const int *k, const int *unwanted) {
  const int64_t count = batch->count;
  rows_call c = {.operation = bqr_registry_operation(bqr_registry_builtin(), op),
                 .batch = *batch,
                 .layout = layout,
                 .m = copy_ints(m, count),
                 .n = copy_ints(n, count),
                 .k = copy_ints(k, count),
                 .info = malloc((size_t)(count + 1) * sizeof(int))};
  for (int64_t i = 0; i < count; i++) {
    c.batch.m = bqr_max(c.batch.m, c.m[i]);
    c.batch.n = bqr_max(c.batch.n, c.n[i]);
    c.batch.k = bqr_max(c.batch.k, c.k[i]);
  }
  for (const bqr_use *use = c.operation->uses; use->place; use++)
    if (!among(unwanted, (int)use->place) && !counts_all(&c, use)) new_operand(&c, use);
  return c;
}

void rows_free(rows_call *c) {
  for (int place = 0; place < BQR_NUM_OPERANDS; place++) {
    rows_operand *x = &c->operands[place];
    if (x->wanted) guard_destroy(&x->data);
    free(x->at);
    free(x->ld);
  }
  free(c->m);
  free(c->n);
  free(c->k);
  free(c->info);
}

void *rows_at(const rows_call *c, int place, int64_t i) {
  return guard_at(&c->operands[place].data, c->operands[place].at[i]);
}
const void *rows_before(const rows_call *c, int place, int64_t i) {
  return guard_before(&c->operands[place].data, c->operands[place].at[i]);
}
int rows_ld(const rows_call *c, int place, int64_t i) { return c->operands[place].ld[i]; }

/* What a run has in the backend's memory, to be freed. */
typedef struct residents {
  void *all[4 * BQR_NUM_OPERANDS + 8];
  int count;
} residents;

static void *keep(residents *r, void *p) { return r->all[r->count++] = p; }

static const int *resident_ints(const rows_call *c, residents *r, const int *ints) {
  if (c->batch.sizes == BATCHQR_HOST_SIZES) return ints;
  return keep(r, memory_clone(memory_backend(), ints, (size_t)(c->batch.count + 1) * sizeof(int)));
}

static void bring(rows_call *c, residents *r, void *device[BQR_NUM_OPERANDS], batchqr_operands *operands) {
  const batchqr_backend backend = memory_backend();
  const bool sized = c->batch.sizes != BATCHQR_UNIFORM;
  for (const bqr_use *use = c->operation->uses; use->place; use++) {
    rows_operand *x = &c->operands[use->place];
    if (!x->wanted) continue;
    guard_seal(&x->data);
    device[use->place] = keep(r, memory_clone(backend, x->data.data, guard_bytes(&x->data)));
    void *address = device[use->place];
    if (c->layout == BATCHQR_POINTERS)
      address = keep(r, memory_pointers(backend, address, x->data.size, x->at, c->batch.count));
    memcpy((char *)operands + bqr_places[use->place].address, &address, sizeof address);
    if (sized && use->kind == BQR_MATRIX) storage(c, (int)use->place)->ld_array = resident_ints(c, r, x->ld);
  }
  if (!sized) return;
  c->batch.m_array = resident_ints(c, r, c->m);
  c->batch.n_array = resident_ints(c, r, c->n);
  c->batch.k_array = resident_ints(c, r, c->k);
}

static void bring_back(rows_call *c, void *const device[BQR_NUM_OPERANDS]) {
  for (const bqr_use *use = c->operation->uses; use->place; use++) {
    rows_operand *x = &c->operands[use->place];
    if (!x->wanted) continue;
    memory_download(memory_backend(), x->data.data, device[use->place], guard_bytes(&x->data));
    const int64_t spoilt = guard_check(&x->data);
    ck_assert_msg(spoilt == -1, "%s: element %lld of %s was written", c->operation->name, (long long)spoilt,
                  bqr_places[use->place].name);
  }
}

batchqr_status rows_run(rows_call *c, batchqr_handle_t handle) {
  const batchqr_backend backend = memory_backend();
  residents r = {.count = 0};
  void *device[BQR_NUM_OPERANDS] = {NULL};
  batchqr_operands operands = {.a = NULL};
  batchqr_plan_t plan;
  bring(c, &r, device, &operands);
  operands.info = keep(&r, memory_clone(backend, c->info, (size_t)(c->batch.count + 1) * sizeof(int)));
  const batchqr_status status = batchqr_plan_create(handle, (batchqr_op)c->operation->op, &c->batch, &plan);
  if (!status) {
    const size_t bytes = batchqr_plan_workspace(plan);
    void *space = keep(&r, memory_alloc(backend, bytes));
    memory_fill(backend, space, 0xff, bytes);
    ck_assert_msg(batchqr_plan_execute(handle, plan, &operands, space, bytes) == BATCHQR_SUCCESS, "%s",
                  batchqr_error_message(handle));
    bring_back(c, device);
    memory_download(backend, c->info, operands.info, (size_t)c->batch.count * sizeof(int));
    batchqr_plan_destroy(plan);
  }
  for (int i = 0; i < r.count; i++) memory_free(backend, r.all[i]);
  return status;
}
