/* SPDX-License-Identifier: BSD-3-Clause */
/* What a group's launch is given: the step's operands are the caller's, or temporaries in the workspace; its
 * sizes are the caller's arrays, or those that a step before wrote. */
#include "plan.h"
#include <limits.h>

/* Where the device finds what lies at `address` in the plan's image. */
static const void *resident(const struct batchqr_plan *plan, const void *address) {
  return address ? (const char *)plan->resident + ((const char *)address - (const char *)plan->image) : NULL;
}

/* An array of the batch: the caller's on the device, or a copy. */
static const int *array(const struct batchqr_plan *plan, const int *address) {
  return plan->batch.sizes == BATCHQR_HOST_SIZES ? resident(plan, address) : address;
}

typedef struct binding {
  const struct batchqr_plan *plan;
  const bqr_group *g;
  const batchqr_operands *operands;
  char *workspace;
} binding;

static const bqr_temporary *temporary(const binding *b, bqr_operand place) {
  return &b->plan->temporaries[place - BQR_NUM_OPERANDS];
}

static void *address_of(const binding *b, bqr_operand place) {
  return b->workspace + temporary(b, place)->at;
}

/* --- operands */

static bqr_matrix callers_matrix(const binding *b, bqr_operand place) {
  const struct batchqr_plan *plan = b->plan;
  if (!bqr_use_at(plan->operation, (int)place)) return (bqr_matrix){.ld = 0};
  const batchqr_storage *s = bqr_storage_at(&plan->batch, (int)place);
  const bool host = plan->batch.sizes == BATCHQR_HOST_SIZES;
  return (bqr_matrix){.data = bqr_address_at(b->operands, (int)place),
                      .ld_array = array(plan, s->ld_array),
                      .stride = s->stride,
                      .row_stride = s->row_stride,
                      .ld = s->ld,
                      .pointers = s->layout == BATCHQR_POINTERS,
                      .host_ld_array = host ? s->ld_array : NULL};
}

/* The transposed copies, columns of max(m,n). With sizes on the host, only wide members have one. */
static bqr_matrix copies(const binding *b) {
  const struct batchqr_plan *plan = b->plan;
  const bqr_temporary *t = temporary(b, BQR_WORK_A);
  const bool hidden = plan->batch.sizes == BATCHQR_DEVICE_SIZES;
  const bqr_dims largest = hidden ? bqr_member_sizes(plan->operation, &plan->batch, 0) : b->g->largest;
  const int *ld_array = t->offsets ? plan->batch.n_array : NULL;
  return (bqr_matrix){.data = t->bytes > 0 ? address_of(b, BQR_WORK_A) : NULL,
                      .ld_array = resident(plan, ld_array),
                      .stride = t->stride,
                      .row_stride = 1,
                      .ld = bqr_max(1, bqr_max(largest.m, largest.n)),
                      .offsets = resident(plan, t->offsets),
                      .host_ld_array = ld_array,
                      .host_offsets = t->offsets};
}

static bool is_of_one_size(const struct batchqr_plan *plan) {
  return plan->operation->program && plan->operation->program->one_size;
}

/* A copy of A, or of what is to become C or R, by columns; or another matrix of a program's own. */
static bqr_matrix stand_in(const binding *b, bqr_operand place) {
  const struct batchqr_plan *plan = b->plan;
  const bqr_temporary *t = temporary(b, place);
  const bool alone = is_of_one_size(plan);
  const int *array = place == BQR_WORK_R ? plan->batch.n_array : plan->batch.m_array,
            *ld_array = t->offsets && !alone ? array : NULL;
  const bqr_dims sizes = alone ? b->g->largest : bqr_member_sizes(plan->operation, &plan->batch, 0);
  return (bqr_matrix){.data = t->bytes > 0 ? address_of(b, place) : NULL,
                      .ld_array = resident(plan, ld_array),
                      .stride = t->stride,
                      .row_stride = 1,
                      .ld = bqr_max(1, bqr_temporary_rows((int)place, &plan->batch, sizes)),
                      .offsets = resident(plan, t->offsets),
                      .host_ld_array = ld_array,
                      .host_offsets = t->offsets};
}

bool bqr_plan_aliases_a(const struct batchqr_plan *plan, const batchqr_operands *operands) {
  const void *a = bqr_address_at(operands, BQR_A);
  for (const bqr_use *use = plan->operation->uses; use->place; use++)
    if ((use->access & BQR_MAY_BE_A) && bqr_address_at(operands, (int)use->place) == a) return true;
  return false;
}

/* The step that makes the copies makes none of what is not wide. */
static bqr_matrix matrix(const binding *b, bqr_operand place) {
  if (place == BQR_NO_OPERAND) return (bqr_matrix){.ld = 0};
  if (place < BQR_NUM_OPERANDS) return callers_matrix(b, place);
  const bqr_program *program = b->plan->operation->program;
  if (place == BQR_COPY_OF_A && program && program->copies_aliased_a &&
      !bqr_plan_aliases_a(b->plan, b->operands))
    return callers_matrix(b, BQR_A);
  if (place != BQR_WORK_A) return stand_in(b, place);
  if (b->g->copied) return copies(b);
  const bool made_here = b->g->step.introduces & BQR_TEMPORARY(BQR_WORK_A);
  return made_here ? (bqr_matrix){.ld = 0} : matrix(b, b->plan->stand_ins[BQR_A]);
}

static bqr_vector vector(const binding *b, bqr_operand place) {
  const struct batchqr_plan *plan = b->plan;
  if (place == BQR_WORK_JPVT && bqr_address_at(b->operands, BQR_JPVT)) place = BQR_JPVT;
  if (place == BQR_WORK_RANK && bqr_address_at(b->operands, BQR_RANK)) place = BQR_RANK;
  if (place >= BQR_NUM_OPERANDS) {
    const bqr_temporary *t = temporary(b, place);
    return (bqr_vector){.data = t->bytes > 0 ? address_of(b, place) : NULL,
                        .stride = t->stride,
                        .offsets = resident(plan, t->offsets),
                        .host_offsets = t->offsets};
  }
  if (place == BQR_NO_OPERAND || !bqr_use_at(plan->operation, (int)place)) return (bqr_vector){.data = NULL};
  const batchqr_storage *s = bqr_storage_at(&plan->batch, (int)place);
  return (bqr_vector){.data = bqr_address_at(b->operands, (int)place),
                      .stride = s->stride,
                      .pointers = s->layout == BATCHQR_POINTERS};
}

/* What a step finds at a place. */
static bqr_operand source_of(const bqr_step *step, bqr_operand place) {
  switch (place) {
  case BQR_A:
    return step->a;
  case BQR_C:
    return step->c;
  case BQR_R:
    return step->r;
  case BQR_TAU:
    return step->tau;
  case BQR_S:
    return step->s ? step->s : place;
  case BQR_U:
    return step->u ? step->u : place;
  case BQR_V:
    return step->v ? step->v : place;
  case BQR_JPVT:
    return step->pivots ? BQR_WORK_JPVT : place;
  case BQR_RANK:
    return step->pivots ? BQR_WORK_RANK : place;
  default:
    return place; /* the operation's own */
  }
}

static void bind_operands(const binding *b, bqr_args *args) {
  for (bqr_operand place = BQR_NO_OPERAND + 1; place < BQR_NUM_OPERANDS; place++) {
    const bool unwanted = place == BQR_V && b->g->step.v && !bqr_address_at(b->operands, BQR_V);
    const bqr_operand source = unwanted ? BQR_NO_OPERAND : source_of(&b->g->step, place);
    void *argument = (char *)args + bqr_places[place].argument;
    if (bqr_places[place].is_matrix)
      *(bqr_matrix *)argument = matrix(b, source);
    else
      *(bqr_vector *)argument = vector(b, source);
  }
}

/* --- sizes */

/* Whether the group's members and sizes are what SORT has written. */
static bool reads_sorted(const binding *b) { return b->plan->sorted && b->g->problem.op != BQR_SORT; }

/* Whether n and k are min(m, n) of the caller's arrays. */
static bool is_thin(const bqr_step *step) { return step->n == BQR_MIN_MN && step->m == BQR_M; }

/* Whether the step works on members that are not wide any more, whose sizes are others than the caller's. */
static bool is_turned(const bqr_step *step) { return step->m == BQR_MAX_MN; }

/* The sizes of transposed copies as they were written: all max(m,n), all min(m,n), the right-hand sides of
 * least squares, those of least norm. */
static const int *written_sizes(const binding *b, bqr_extent extent) {
  const int *sizes = address_of(b, BQR_WORK_SIZES);
  const int64_t count = b->g->problem.count;
  const int which = extent == BQR_MAX_MN                   ? 0
                    : extent == BQR_MIN_MN                 ? 1
                    : b->g->step.systems == BQR_LEAST_NORM ? 3
                                                           : 2;
  return sizes + which * count;
}

/* The array of an extent of a turned member; NULL where all members have the same. */
static const int *turned_sizes(const binding *b, bqr_extent extent, const bqr_args *callers) {
  if (b->plan->batch.sizes == BATCHQR_DEVICE_SIZES && extent) return written_sizes(b, extent);
  const bool wide = b->g->copied;
  switch (extent) {
  case BQR_MAX_MN:
    return wide ? callers->n_array : callers->m_array;
  case BQR_MIN_MN:
    return wide ? callers->m_array : callers->n_array;
  default:
    return extent == BQR_K ? callers->k_array : NULL;
  }
}

static void bind_callers_sizes(const binding *b, bqr_args *args) {
  const struct batchqr_plan *plan = b->plan;
  const batchqr_batch *batch = &plan->batch;
  const bqr_group *g = b->g;
  args->m = g->largest.m;
  args->n = g->largest.n;
  args->k = g->largest.k;
  if (batch->sizes == BATCHQR_DEVICE_SIZES && !reads_sorted(b)) {
    args->m = batch->m;
    args->n = batch->n;
    args->k = batch->k;
    args->untrusted = true;
  }
  if (!g->sized) return;
  args->m_array = array(plan, batch->m_array);
  args->n_array = array(plan, batch->n_array);
  args->k_array = array(plan, batch->k_array);
}

static void bind_turned_sizes(const binding *b, bqr_args *args) {
  const bqr_step *step = &b->g->step;
  const bqr_args callers = *args;
  args->m = b->g->problem.m;
  args->n = b->g->problem.n;
  args->k = b->g->problem.k;
  args->m_array = turned_sizes(b, step->m, &callers);
  args->n_array = turned_sizes(b, step->n, &callers);
  args->k_array = turned_sizes(b, step->k, &callers);
}

static void bind_sizes(const binding *b, bqr_args *args) {
  if (is_of_one_size(b->plan)) {
    args->m = b->g->problem.m;
    args->n = b->g->problem.n;
    args->k = b->g->problem.k;
    return;
  }
  bind_callers_sizes(b, args);
  if (is_turned(&b->g->step)) bind_turned_sizes(b, args);
  if (b->g->step.m == BQR_N) { /* of R */
    args->m = args->n;
    args->m_array = args->n_array;
  }
  args->thin = is_thin(&b->g->step);
  if (args->thin) args->k = bqr_min(args->m, args->n);
}

/* --- the whole */

static void bind_members(const binding *b, bqr_args *args) {
  const struct batchqr_plan *plan = b->plan;
  args->count = b->g->problem.count;
  if (b->g->list < 0 || plan->sorted) return;
  args->host_members = plan->lists + b->g->list;
  args->members = resident(plan, args->host_members);
}

static void bind_temporaries(const binding *b, bqr_args *args) {
  const unsigned own = b->plan->operation->program ? b->plan->operation->program->temporaries : 0;
  if ((own & BQR_TEMPORARY(BQR_WORK_SCALES)) && !b->g->step.unscaled)
    args->scales = address_of(b, BQR_WORK_SCALES);
  if ((own & BQR_TEMPORARY(BQR_WORK_SIZES)) && b->plan->batch.sizes == BATCHQR_DEVICE_SIZES &&
      (b->g->step.introduces & BQR_TEMPORARY(BQR_WORK_SIZES)))
    args->tall_sizes = address_of(b, BQR_WORK_SIZES);
}

/* Whether every step finds C with max(m, n) rows: the program does not work on transposed copies. */
static bool has_tall_c(const bqr_operation *operation) {
  const bqr_use *c = bqr_use_at(operation, BQR_C);
  return c && c->rows == BQR_MAX_MN && operation->program && !operation->program->transposes_wide;
}

bqr_args bqr_plan_bind(const struct batchqr_plan *plan, const bqr_group *g, const batchqr_operands *operands,
                       char *workspace, bqr_sort *sort) {
  const binding b = {plan, g, operands, workspace};
  const bqr_step *step = &g->step;
  bqr_args args = {.seed = plan->batch.seed,
                   .kmax = plan->batch.kmax > 0 ? plan->batch.kmax : INT_MAX,
                   .abstol = step->no_abstol ? 0 : plan->batch.abstol,
                   .reltol = plan->batch.reltol,
                   .il = plan->batch.il,
                   .iu = plan->batch.iu,
                   .vl = plan->batch.vl,
                   .vu = plan->batch.vu,
                   .iterations = vector(&b, BQR_ITERATIONS),
                   .relres = vector(&b, BQR_RELRES),
                   .tall_c = has_tall_c(plan->operation),
                   .info = step->tells_info ? operands->info : NULL,
                   .workspace = workspace + g->workspace_at,
                   .state = g->problem.op == BQR_SORT ? sort : g->state};
  bind_operands(&b, &args);
  bind_members(&b, &args);
  bind_sizes(&b, &args);
  bind_temporaries(&b, &args);
  if (reads_sorted(&b)) bqr_sort_apply(plan, sort, g, &args);
  return args;
}
