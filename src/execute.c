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
  if (!status) status = bqr_lanes_new(&plan->device, plan->num_lanes, &plan->lanes, error);
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

const void *bqr_plan_resident(const struct batchqr_plan *plan, const void *address) {
  return address ? (const char *)plan->resident + ((const char *)address - (const char *)plan->image) : NULL;
}

/* An array of the batch: the caller's on the device, or a copy. */
static const int *array(const struct batchqr_plan *plan, const int *address) {
  return plan->batch.sizes == BATCHQR_HOST_SIZES ? bqr_plan_resident(plan, address) : address;
}

static bqr_matrix matrix(const struct batchqr_plan *plan, int operand, const batchqr_operands *operands) {
  const batchqr_storage *s = bqr_batch_storage(&plan->batch, operand);
  if (!bqr_op_uses(plan->op, operand)) return (bqr_matrix){.ld = 0};
  return (bqr_matrix){.data = (void *)bqr_operand(operands, operand),
                      .ld_array = array(plan, s->ld_array),
                      .stride = s->stride,
                      .ld = s->ld};
}

/* Whether the group's members and sizes are what SORT has written. */
static bool reads_sorted(const struct batchqr_plan *plan, const bqr_group *g) {
  return plan->sorted && g->problem.op != BQR_SORT;
}

/* The group's members and their sizes. */
static bqr_args group_args(const struct batchqr_plan *plan, const bqr_group *g) {
  const batchqr_batch *b = &plan->batch;
  bqr_args args = {.m = g->largest.m, .n = g->largest.n, .k = g->largest.k, .count = g->problem.count};
  if (b->sizes == BATCHQR_DEVICE_SIZES && !reads_sorted(plan, g)) {
    args.m = b->m;
    args.n = b->n;
    args.k = b->k;
    args.untrusted = true;
  }
  if (g->sized) {
    args.m_array = array(plan, b->m_array);
    args.n_array = array(plan, b->n_array);
    args.k_array = array(plan, b->k_array);
  }
  if (g->list >= 0 && !plan->sorted) {
    args.host_members = plan->lists + g->list;
    args.members = bqr_plan_resident(plan, args.host_members);
  }
  if (b->sizes == BATCHQR_HOST_SIZES) {
    args.host_lda = b->a.ld_array;
    args.host_ldc = b->c.ld_array;
  }
  args.thin = g->thin;
  if (g->thin) args.k = bqr_min(args.m, args.n);
  return args;
}

static void bind_tau(const struct batchqr_plan *plan, const batchqr_operands *operands, void *workspace,
                     bqr_args *args) {
  if (bqr_op_uses(plan->op, BQR_TAU)) {
    args->tau = operands->tau;
    args->stride_tau = plan->batch.stride_tau;
    args->tau_pointers = plan->batch.layout == BATCHQR_POINTERS;
  } else if (plan->tau_bytes > 0) {
    args->tau = workspace;
    args->stride_tau = plan->stride_tau;
    args->tau_offsets = bqr_plan_resident(plan, plan->tau_offsets);
    args->host_tau_offsets = plan->tau_offsets;
  }
}

static bqr_args bind(const struct batchqr_plan *plan, const bqr_group *g, const batchqr_operands *operands,
                     char *workspace, bqr_sort *sort) {
  bqr_args args = group_args(plan, g);
  args.a = matrix(plan, BQR_A, operands);
  args.c = matrix(plan, BQR_C, operands);
  args.r = matrix(plan, BQR_R, operands);
  args.pointers = plan->batch.layout == BATCHQR_POINTERS;
  bind_tau(plan, operands, workspace, &args);
  args.workspace = workspace + g->workspace_at;
  args.state = g->problem.op == BQR_SORT ? sort : g->state;
  /* Of the steps of an operation, the factorization knows what is in the numbers, and TRSM what is in B. */
  if (g->problem.op == (int)plan->op || g->problem.op == BATCHQR_GEQRF || g->problem.op == BQR_TRSM)
    args.info = operands->info;
  if (plan->op == BATCHQR_GELS) bqr_gels_bind(plan, g, operands, workspace, &args);
  if (plan->op == BATCHQR_R_RANGE) args.norms = operands->range, args.stride_norms = 2;
  if (reads_sorted(plan, g)) bqr_sort_apply(plan, sort, g, &args);
  if (plan->op == BATCHQR_QR && g->problem.op == BATCHQR_ORGQR) {
    bqr_matrix q = args.c;
    args.c = args.a;
    args.a = q;
    args.host_lda = args.host_ldc;
  }
  return args;
}

/* What the groups of one execute have in common. */
typedef struct work {
  const struct batchqr_plan *plan;
  const batchqr_operands *operands;
  void *workspace;
  bqr_sort sort;
  bqr_error *error;
} work;

static batchqr_status launch_group(work *w, const bqr_group *g, batchqr_stream stream) {
  const struct batchqr_plan *plan = w->plan;
  bqr_args args = bind(plan, g, w->operands, w->workspace, &w->sort);
  bqr_profile_begin(&plan->device, g->label);
  batchqr_status status = g->family->launch(&g->problem, g->variant, &plan->device, &args, stream);
  bqr_profile_end(&plan->device);
  return status ? fail_group(plan, g, status, w->error) : BATCHQR_SUCCESS;
}

/* The groups first .. end-1: a stage of several, in lanes. */
static batchqr_status launch_beside(work *w, int first, int end, batchqr_stream stream) {
  const struct batchqr_plan *plan = w->plan;
  bqr_error second;
  batchqr_status status =
      bqr_lanes_fork(plan->lanes, bqr_min(end - first, plan->num_lanes), stream, w->error);
  for (int i = first; i < end && !status; i++) {
    const bqr_group *g = &plan->groups[i];
    batchqr_stream lane;
    status = bqr_lanes_enter(plan->lanes, g->lane, &lane, w->error);
    if (!status) status = launch_group(w, g, lane);
  }
  batchqr_status joined = bqr_lanes_join(plan->lanes, status ? &second : w->error);
  return status ? status : joined;
}

static batchqr_status launch_stage(work *w, int first, int end, batchqr_stream stream) {
  const struct batchqr_plan *plan = w->plan;
  bool in_place = plan->groups[first].problem.op == BQR_COPY_V && w->operands->c == w->operands->a;
  if (in_place) return BATCHQR_SUCCESS; /* V is there */
  if (plan->lanes && end - first > 1) return launch_beside(w, first, end, stream);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = first; i < end && !status; i++) status = launch_group(w, &plan->groups[i], stream);
  return status;
}

batchqr_status bqr_plan_launch(const struct batchqr_plan *plan, const batchqr_operands *operands,
                               void *workspace, batchqr_stream stream, bqr_error *error) {
  batchqr_status status = BATCHQR_SUCCESS;
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
