/* SPDX-License-Identifier: BSD-3-Clause */
#include "routine.h"
#include "children.h"

/* The queue's state of a family whose states serve all problems. */
static batchqr_status state_of_queue(const bqr_device *device, const bqr_routine *r, bqr_queue *queue,
                                     void **state) {
  int i = 0;
  while (i < BQR_QUEUE_STATES && queue->states[i].family && queue->states[i].family != r->family) i++;
  if (i == BQR_QUEUE_STATES) return BATCHQR_UNSUPPORTED;
  batchqr_status status = BATCHQR_SUCCESS;
  if (!queue->states[i].family) {
    queue->states[i].family = r->family;
    status = r->family->open(&r->problem, r->variant, device, &queue->states[i].state);
  }
  *state = queue->states[i].state;
  return status;
}

static batchqr_status ready(const bqr_device *device, bqr_queue *queue, bqr_routine *r) {
  const bqr_family *f = r->family;
  batchqr_status status = f->prepare ? f->prepare(&r->problem, r->variant, device) : BATCHQR_SUCCESS;
  if (status || !f->open) return status;
  if (f->one_state) return state_of_queue(device, r, queue, &r->state);
  r->owns_state = true;
  return f->open(&r->problem, r->variant, device, &r->state);
}

static batchqr_status fail(const bqr_routine *r, const bqr_device *device, batchqr_status status,
                           bqr_error *error) {
  return bqr_fail(error, status, "%s: %s", r->family->name,
                  status == BATCHQR_CUDA_ERROR ? bqr_device_error(device) : batchqr_status_string(status));
}

batchqr_status bqr_routine_plan(struct batchqr_handle *handle, const bqr_device *device,
                                const bqr_problem *problem, bqr_queue *queue, bqr_routine *routine) {
  bqr_error *error = &handle->error;
  const bqr_planner planner = bqr_handle_planner(handle);
  bqr_choice choice;
  *routine = (bqr_routine){.problem = *problem};
  batchqr_status status = bqr_choose(&planner, problem, problem->count, &choice, error);
  if (status) return status;
  if (!choice.family)
    return bqr_fail(error, BATCHQR_UNSUPPORTED, "no kernel family of this build does %s of %d x %d %c",
                    bqr_registry_operation(planner.registry, problem->op)->name, problem->m, problem->n,
                    "sdcz"[problem->type]);
  routine->family = choice.family;
  routine->variant = choice.variant;
  bqr_choice_source(&choice, routine->source, sizeof routine->source);
  status = bqr_children_plan(&planner, choice.family, choice.variant, &routine->problem, error);
  if (status) return status;
  const size_t bytes =
      choice.family->workspace ? choice.family->workspace(&routine->problem, choice.variant, device) : 0;
  if (bytes > queue->workspace_bytes) queue->workspace_bytes = bytes;
  const int previous = bqr_device_enter(device);
  status = ready(device, queue, routine);
  if (status) fail(routine, device, status, error);
  bqr_device_leave(previous);
  return status;
}

batchqr_status bqr_routine_launch(const bqr_routine *routine, const bqr_device *device,
                                  const bqr_queue *queue, bqr_args args, batchqr_stream stream,
                                  bqr_error *error) {
  const bqr_problem *problem = &routine->problem;
  if (!routine->family) return BATCHQR_SUCCESS;
  args.m = problem->m;
  args.n = problem->n;
  args.k = problem->k;
  args.count = 1;
  args.workspace = queue->workspace;
  args.state = routine->state;
  bqr_profile_begin(device, routine->family->name);
  const batchqr_status status = routine->family->launch(problem, routine->variant, device, &args, stream);
  bqr_profile_end(device);
  return status ? fail(routine, device, status, error) : status;
}

void bqr_routine_free(bqr_routine *routine) {
  if (routine->owns_state && routine->state) routine->family->close(routine->state);
  bqr_children_free(&routine->problem);
}

void bqr_queue_free(bqr_queue *queue) {
  for (int i = 0; i < BQR_QUEUE_STATES; i++)
    if (queue->states[i].state) queue->states[i].family->close(queue->states[i].state);
}
