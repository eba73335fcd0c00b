/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with one thing wrong, drawn at random. */
#include "wrong_call.h"
#include "suite.h"

#include <stdarg.h>

bool names(const spoiling *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(s->w->named, sizeof s->w->named, format, args);
  va_end(args);
  return true;
}

static int count(const spoiler *spoilers) {
  int n = 0;
  while (spoilers[n]) n++;
  return n;
}

static spoiler draw_spoiler(dice *d) {
  const int storages = count(wrong_storages), which = roll(d, 0, storages + count(wrong_batches) - 1);
  return which < storages ? wrong_storages[which] : wrong_batches[which - storages];
}

wrong_call draw_wrong_call(dice *d, const trial *t, batchqr_handle_t handle, const batchqr_batch *batch,
                           const batchqr_operands *operands, const struct batchqr_plan *plan) {
  for (;;) {
    wrong_call w = {.t = t,
                    .handle = handle,
                    .caller = t->routine->call && chance(d, 2) ? BQR_ONE_CALL : BQR_PLANNED,
                    .op = t->op,
                    .batch = *batch,
                    .operands = *operands,
                    .status = BATCHQR_INVALID_ARGUMENT};
    const spoiling s = {d, t->operation, plan, &w};
    if (draw_spoiler(d)(&s)) return w;
    free_wrong_call(&w);
  }
}

static batchqr_status execute(const wrong_call *w, batchqr_plan_t plan) {
  const batchqr_backend backend = batchqr_get_backend(w->handle);
  const size_t bytes = batchqr_plan_workspace(plan);
  char *workspace = memory_alloc(backend, bytes + 256);
  const batchqr_status status = batchqr_plan_execute(
      w->handle, w->no_plan ? NULL : plan, w->no_operands ? NULL : &w->operands,
      w->no_workspace ? NULL : workspace + w->workspace_off, bytes - (size_t)w->workspace_short);
  memory_sync(backend);
  memory_free(backend, workspace);
  return status;
}

batchqr_status make_wrong_call(const wrong_call *w) {
  const batchqr_batch *batch = w->no_batch ? NULL : &w->batch;
  if (w->caller == BQR_ONE_CALL) {
    const batchqr_status status = w->t->routine->call(w->handle, batch, &w->operands);
    memory_sync(batchqr_get_backend(w->handle));
    return status;
  }
  batchqr_plan_t plan;
  batchqr_status status = batchqr_plan_create(w->handle, w->op, batch, &plan);
  if (!status) status = execute(w, plan);
  batchqr_plan_destroy(plan);
  return status;
}

void free_wrong_call(wrong_call *w) {
  free(w->array);
  w->array = NULL;
}
