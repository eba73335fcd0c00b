/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans at work: brought to their device once, enqueued often. */
#include "device.h"
#include "plan.h"

static batchqr_status make_resident(struct batchqr_plan *plan, bqr_error *error) {
  if (!plan->reads_image || plan->device.backend == BATCHQR_BACKEND_CPU) {
    plan->resident = plan->image;
    return BATCHQR_SUCCESS;
  }
  batchqr_status status = bqr_memory_new(&plan->device, plan->image_bytes, &plan->resident, error);
  if (status) return status;
  return bqr_memory_fill(&plan->device, plan->resident, plan->image, plan->image_bytes, error);
}

static batchqr_status fail_group(const struct batchqr_plan *plan, const bqr_group *g, batchqr_status status,
                                 bqr_error *error) {
  const char *cuda = bqr_device_error(&plan->device);
  return bqr_fail(error, status, "%s: %s", g->label,
                  status == BATCHQR_CUDA_ERROR ? cuda : batchqr_status_string(status));
}

batchqr_status bqr_plan_prepare(struct batchqr_plan *plan, bqr_error *error) {
  batchqr_status status = make_resident(plan, error);
  if (!status) status = bqr_streams_new(&plan->device, plan->num_streams, false, &plan->streams, error);
  int previous = bqr_device_enter(&plan->device);
  for (int i = 0; i < plan->num_groups && !status; i++) {
    bqr_group *g = &plan->groups[i];
    const bqr_family *f = g->family;
    if (f->prepare) status = f->prepare(&g->problem, g->variant, &plan->device);
    if (!status && f->open) status = f->open(&g->problem, g->variant, &plan->device, &g->state);
    if (status) fail_group(plan, g, status, error);
  }
  bqr_device_leave(previous);
  return status;
}

/* What the groups of one execute have in common. */
typedef struct work {
  const struct batchqr_plan *plan;
  const batchqr_operands *operands;
  void *workspace;
  bqr_sort sort;
  bqr_error *error;
} work;

/* Whether the operands that the call has make the group's step needless. */
static bool is_needless(const work *w, const bqr_step *step) {
  const bool given = (step->needs && bqr_address_at(w->operands, (int)step->needs)) ||
                     (step->or_needs && bqr_address_at(w->operands, (int)step->or_needs));
  return (step->needs && !given) || (step->unless && bqr_address_at(w->operands, (int)step->unless)) ||
         (step->if_aliased && !bqr_plan_aliases_a(w->plan, w->operands));
}

static batchqr_status launch_group(work *w, const bqr_group *g, batchqr_stream stream) {
  const struct batchqr_plan *plan = w->plan;
  if (is_needless(w, &g->step)) return BATCHQR_SUCCESS;
  const bqr_args args = bqr_plan_bind(plan, g, w->operands, w->workspace, &w->sort);
  bqr_profile_begin(&plan->device, g->label);
  batchqr_status status = g->family->launch(&g->problem, g->variant, &plan->device, &args, stream);
  bqr_profile_end(&plan->device);
  return status ? fail_group(plan, g, status, w->error) : BATCHQR_SUCCESS;
}

/* The groups first .. end-1: a stage of several, in streams of the plan. */
static batchqr_status launch_beside(work *w, int first, int end, batchqr_stream stream) {
  const struct batchqr_plan *plan = w->plan;
  bqr_error second;
  batchqr_status status =
      bqr_streams_fork(plan->streams, bqr_min(end - first, plan->num_streams), stream, w->error);
  for (int i = first; i < end && !status; i++) {
    const bqr_group *g = &plan->groups[i];
    batchqr_stream own;
    status = bqr_streams_enter(plan->streams, g->stream, &own, w->error);
    if (!status) status = launch_group(w, g, own);
  }
  batchqr_status joined = bqr_streams_join(plan->streams, status ? &second : w->error);
  return status ? status : joined;
}

static batchqr_status launch_stage(work *w, int first, int end, batchqr_stream stream) {
  const struct batchqr_plan *plan = w->plan;
  const bqr_step *step = &plan->groups[first].step;
  if (step->skipped_in_place && step->c < BQR_NUM_OPERANDS && step->a < BQR_NUM_OPERANDS &&
      bqr_address_at(w->operands, (int)step->c) == bqr_address_at(w->operands, (int)step->a))
    return BATCHQR_SUCCESS;
  if (plan->streams && end - first > 1) return launch_beside(w, first, end, stream);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = first; i < end && !status; i++) status = launch_group(w, &plan->groups[i], stream);
  return status;
}

/* Whether the call has nothing to read or write. */
static bool touches_nothing(const struct batchqr_plan *plan, const batchqr_operands *operands) {
  for (const bqr_use *use = plan->operation->uses; use->place; use++)
    if (plan->largest[use->place] > 0 && bqr_address_at(operands, (int)use->place)) return false;
  return !operands->info;
}

batchqr_status bqr_plan_launch(const struct batchqr_plan *plan, const batchqr_operands *operands,
                               void *workspace, batchqr_stream stream, bqr_error *error) {
  batchqr_status status = BATCHQR_SUCCESS;
  if (touches_nothing(plan, operands)) return status;
  work w = {.plan = plan, .operands = operands, .workspace = workspace, .error = error};
  if (plan->sorted) w.sort = bqr_sort_bind(plan, operands->info, workspace);
  int previous = bqr_device_enter(&plan->device);
  for (int first = 0, end; first < plan->num_groups && !status; first = end) {
    end = first + 1;
    while (end < plan->num_groups && plan->groups[end].stage == plan->groups[first].stage) end++;
    status = launch_stage(&w, first, end, stream);
  }
  if (!status && w.sort.info) /* the empty member's is left behind */
    status = bqr_memory_copy(&plan->device, operands->info, w.sort.info,
                             (size_t)plan->batch.count * sizeof *w.sort.info, stream, error);
  bqr_device_leave(previous);
  return status;
}
