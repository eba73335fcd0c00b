/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps that TSQR over ranks is made of: plans of routines, and copies. */
#include "choose.h"
#include "tsqr.h"

bqr_view bqr_view_at(const struct batchqr_tsqr *t, bqr_view x, int64_t row, int64_t col) {
  const uint64_t elements = (uint64_t)(row + col * x.ld);
  if (x.data) x.data = (char *)x.data + elements * bqr_type_bytes(t->batch.type);
  return x;
}

static bqr_matrix matrix_of(bqr_view x) {
  return (bqr_matrix){.data = x.data, .ld = x.ld, .stride = x.stride, .row_stride = x.ld > 0};
}

static batchqr_status launch(struct batchqr_tsqr *t, const bqr_problem *problem, const bqr_args *args) {
  struct batchqr_handle *h = t->handle;
  const bqr_planner planner = bqr_handle_planner(h);
  bqr_choice choice;
  batchqr_status status = bqr_choose(&planner, problem, problem->count, &choice, &h->error);
  if (status) return status;
  if (!choice.family)
    return bqr_fail(&h->error, BATCHQR_UNSUPPORTED, "this build has no copies of this type");
  const int previous = bqr_device_enter(&h->device);
  if (!t->preparing)
    status = choice.family->launch(problem, choice.variant, &h->device, args, h->stream);
  else if (choice.family->prepare)
    status = choice.family->prepare(problem, choice.variant, &h->device);
  bqr_device_leave(previous);
  return status ? bqr_fail(&h->error, status, "%s: %s", choice.family->name, bqr_device_error(&h->device))
                : status;
}

batchqr_status bqr_ranks_move(struct batchqr_tsqr *t, int m, int n, int64_t count, bqr_view from,
                              bqr_view to) {
  if (m == 0 || n == 0 || count == 0) return BATCHQR_SUCCESS;
  const bqr_problem problem = {
      .op = BQR_COPY, .type = t->batch.type, .uniform = true, .m = m, .n = n, .count = count};
  const bqr_args args = {.a = matrix_of(from), .c = matrix_of(to), .m = m, .n = n, .count = count};
  return launch(t, &problem, &args);
}

batchqr_status bqr_ranks_copy_r(struct batchqr_tsqr *t, int m, int n, bqr_view from, bqr_view to) {
  const int64_t count = t->batch.count;
  if (m == 0 || n == 0 || count == 0) return BATCHQR_SUCCESS;
  const bqr_problem problem = {
      .op = BQR_COPY_R, .type = t->batch.type, .uniform = true, .m = m, .n = n, .count = count};
  const bqr_args args = {.a = matrix_of(from), .r = matrix_of(to), .m = m, .n = n, .count = count};
  return launch(t, &problem, &args);
}

static batchqr_status make(struct batchqr_tsqr *t, batchqr_op op, const batchqr_batch *batch,
                           batchqr_plan_t *plan) {
  if (*plan) return BATCHQR_SUCCESS;
  batchqr_batch any = *batch;
  any.unaligned = 1; /* operands are parts of the caller's */
  const batchqr_status status = batchqr_plan_create(t->handle, op, &any, plan);
  const size_t bytes = batchqr_plan_workspace(*plan);
  if (bytes > t->workspace_bytes) t->workspace_bytes = bytes;
  return status;
}

batchqr_status bqr_ranks_do(struct batchqr_tsqr *t, bqr_tsqr_step step, batchqr_op op,
                            const batchqr_batch *batch, const batchqr_operands *operands) {
  batchqr_batch all = *batch;
  all.type = t->batch.type;
  if (t->preparing) return make(t, op, &all, &t->steps[step]);
  return batchqr_plan_execute(t->handle, t->steps[step], operands, t->workspace, t->workspace_bytes);
}
