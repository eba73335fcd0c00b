/* SPDX-License-Identifier: BSD-3-Clause */
/* What is done for a batch, step by step: the operation in one step for members that a family does it for,
 * else the steps of its program, and copies where operands are stored as no family takes them. */
#include "plan_build.h"
#include "children.h"
#include "device.h"
#include <stdlib.h>
#include <string.h>

void *bqr_plan_array(bqr_builder *b, int64_t n, size_t size) {
  void *array = (uint64_t)n <= SIZE_MAX / size ? calloc(n > 0 ? (size_t)n : 1, size) : NULL;
  if (!array) bqr_fail_memory(b->error, "the plan");
  return array;
}

/* --- stand-ins */

/* Whether members are sure to fit into Q's place, which has their rows and min(m, n) columns. */
static bool fits_in_q(const struct batchqr_plan *plan) {
  const batchqr_batch *batch = &plan->batch;
  const bqr_use *q = bqr_use_at(plan->operation, BQR_C);
  if (!q || (q->access & BQR_READ) || batch->sizes == BATCHQR_DEVICE_SIZES) return false;
  const int64_t members = batch->count > 0 ? bqr_visible_members(batch) : 0;
  for (int64_t i = 0; i < members; i++) {
    const bqr_dims s = bqr_member_sizes(plan->operation, batch, i);
    if (s.m < s.n) return false;
  }
  return true;
}

static bool is_by_strides(const struct batchqr_plan *plan, bqr_operand place) {
  return bqr_use_at(plan->operation, (int)place) && bqr_by_strides(bqr_storage_at(&plan->batch, (int)place));
}

static void choose_stand_ins(struct batchqr_plan *plan) {
  for (int place = 0; place < BQR_NUM_OPERANDS; place++) plan->stand_ins[place] = (bqr_operand)place;
  if (is_by_strides(plan, BQR_C)) plan->stand_ins[BQR_C] = BQR_COPY_OF_C;
  if (is_by_strides(plan, BQR_R)) plan->stand_ins[BQR_R] = BQR_COPY_OF_R;
  if (plan->batch.keep_a) plan->stand_ins[BQR_A] = fits_in_q(plan) ? plan->stand_ins[BQR_C] : BQR_COPY_OF_A;
}

static unsigned temporary_of(bqr_operand place) {
  return place < BQR_NUM_OPERANDS ? 0 : BQR_TEMPORARY(place);
}

static bqr_operand stand_in(const struct batchqr_plan *plan, bqr_operand place) {
  return place < BQR_NUM_OPERANDS ? plan->stand_ins[place] : place;
}

/* A program's step as it is done: COPY_R can write R by any strides. */
static bqr_step step_in_place(const struct batchqr_plan *plan, const bqr_step *of_program) {
  bqr_step step = *of_program;
  step.a = stand_in(plan, step.a);
  step.c = stand_in(plan, step.c);
  return step;
}

/* --- operations and programs */

/* Leaves those members for this part of the batch that are worked on in copies, or those that are not. */
static bool enter_part(bqr_builder *b, bool copied) {
  const bool apart = b->plan->operation->program->transposes_wide;
  bool any = false;
  b->copied = copied;
  for (int64_t i = 0; i < b->num_classes; i++) {
    b->classes[i].away = apart && bqr_has_copy(&b->plan->batch, b->classes[i].sizes) != copied;
    any = any || !(b->classes[i].away || b->classes[i].done);
  }
  return any;
}

/* Whether some member of this part has systems of the step's kind. With sizes on the device there may be
 * both. */
static bool has_systems(const bqr_builder *b, const bqr_step *step) {
  const batchqr_batch *batch = &b->plan->batch;
  const bool least_squares = !b->copied == !batch->trans;
  return !step->systems || batch->sizes == BATCHQR_DEVICE_SIZES ||
         least_squares == (step->systems == BQR_LEAST_SQUARES);
}

/* A is copied to where the program works on it. */
static batchqr_status plan_copy_of_a(bqr_builder *b) {
  const bqr_operand to = b->plan->stand_ins[BQR_A];
  if (to == BQR_A) return BATCHQR_SUCCESS;
  const bqr_step copy = {.op = BQR_COPY,
                         .a = BQR_A,
                         .c = to,
                         .m = BQR_M,
                         .n = BQR_N,
                         .introduces = temporary_of(to),
                         .called = "a copy of a"};
  const batchqr_status status = bqr_plan_step(b, &copy, false);
  b->temporaries |= temporary_of(to);
  b->stage++;
  return status;
}

/* Whether the step before, whose groups are those from `first` on, is a factorization that can do the step,
 * too: then it is given what it needs for that. With sizes on the device there are other steps between them.
 */
static bool joins_geqrf(bqr_builder *b, const bqr_step *step, int first) {
  struct batchqr_plan *plan = b->plan;
  if (!step->joins_geqrf || plan->batch.sizes == BATCHQR_DEVICE_SIZES) return false;
  for (int i = first; i < plan->num_groups; i++)
    if (!plan->groups[i].family->applies_q) return false;
  for (int i = first; i < plan->num_groups; i++) {
    bqr_group *g = &plan->groups[i];
    g->step.c = step->c;
    g->problem.k = bqr_extent_of(step->n, &plan->batch, g->largest);
    g->problem.aligned = bqr_plan_is_aligned(b, &g->step, g->copied);
  }
  return true;
}

/* The step to be planned after step i. rounds: how often the repeated ones are still to be done. */
static int next_step(const bqr_program *program, int i, int *rounds) {
  const bqr_step *steps = program->steps;
  const bool last = steps[i].repeated && !(i + 1 < program->num_steps && steps[i + 1].repeated);
  if (!last || *rounds == 0 || --*rounds == 0) return i + 1;
  while (i > 0 && steps[i - 1].repeated) i--;
  return i;
}

/* The first steps of the parts serve different members, and need nothing of one another. */
static batchqr_status plan_program(bqr_builder *b) {
  const bqr_program *program = b->plan->operation->program;
  b->temporaries |= program->temporaries;
  for (int copied = 0; copied <= (program->transposes_wide ? 1 : 0); copied++) {
    if (!enter_part(b, copied)) continue;
    int before = b->plan->num_groups; /* the groups of the last step begin with this one */
    int rounds = b->plan->batch.power_steps;
    for (int i = 0; i < program->num_steps; i = next_step(program, i, &rounds)) {
      if (program->steps[i].repeated && rounds == 0) continue;
      const bqr_step step = step_in_place(b->plan, &program->steps[i]);
      if (!has_systems(b, &step) || (step.skipped_in_place && step.a == step.c)) continue;
      if (joins_geqrf(b, &step, before)) continue;
      if (i > 0) b->stage++;
      before = b->plan->num_groups;
      batchqr_status status = bqr_plan_step(b, &step, false);
      if (status) return status;
    }
  }
  return BATCHQR_SUCCESS;
}

static bool all_done(bqr_builder *b) {
  bool all = true;
  for (int64_t i = 0; i < b->num_classes; i++) {
    b->classes[i].done = b->classes[i].done || b->classes[i].group >= 0;
    all = all && b->classes[i].done;
  }
  return all;
}

/* The operation as one step, whose operands and sizes are its own. */
static bqr_step whole_step(const struct batchqr_plan *plan, int op) {
  return (bqr_step){.op = op,
                    .a = BQR_A,
                    .c = plan->stand_ins[BQR_C],
                    .r = plan->stand_ins[BQR_R],
                    .tau = BQR_TAU,
                    .m = BQR_M,
                    .n = BQR_N,
                    .k = BQR_K,
                    .trans = BQR_AS_BATCH,
                    .tells_info = true};
}

/* Plans a step for the members that were `done` in one step, or for all. */
static batchqr_status plan_copy_out(bqr_builder *b, const bqr_step *copy, bool of_done) {
  bool any = false;
  for (int64_t i = 0; i < b->num_classes; i++) {
    bqr_size_class *c = &b->classes[i];
    c->away = of_done && !c->done;
    any = any || !c->away;
    c->left_out = c->done;
    c->done = false;
  }
  const batchqr_status status = any ? bqr_plan_step(b, copy, false) : BATCHQR_SUCCESS;
  for (int64_t i = 0; i < b->num_classes; i++) b->classes[i].done = b->classes[i].left_out;
  return status;
}

/* Q and R go where they are wanted. The program has written R there itself. */
static batchqr_status plan_copies_out(bqr_builder *b) {
  const struct batchqr_plan *plan = b->plan;
  batchqr_status status = BATCHQR_SUCCESS;
  b->stage++;
  if (plan->stand_ins[BQR_C] != BQR_C) {
    const bqr_step copy = {.op = BQR_COPY, .a = BQR_COPY_OF_C, .c = BQR_C, .m = BQR_M, .n = BQR_MIN_MN};
    b->temporaries |= BQR_TEMPORARY(BQR_COPY_OF_C);
    status = plan_copy_out(b, &copy, false);
  }
  if (!status && plan->stand_ins[BQR_R] != BQR_R) {
    const bqr_step copy = {.op = BQR_COPY_R, .a = BQR_COPY_OF_R, .r = BQR_R, .m = BQR_M, .n = BQR_N};
    b->temporaries |= BQR_TEMPORARY(BQR_COPY_OF_R);
    status = plan_copy_out(b, &copy, true);
  }
  return status;
}

static bool announces(const struct batchqr_plan *plan) {
  bool any = false;
  for (const bqr_use *use = plan->operation->uses; use->place; use++)
    any = any ||
          ((use->access & BQR_ANNOUNCED) && bqr_is_announced(bqr_storage_at(&plan->batch, (int)use->place)));
  return any;
}

/* In one step where a family does the whole operation, else by the program. */
static batchqr_status plan_operation(bqr_builder *b) {
  const bqr_operation *operation = b->plan->operation;
  bqr_step whole = whole_step(b->plan, operation->op);
  batchqr_status status = BATCHQR_SUCCESS;
  b->stage++;
  if (announces(b->plan)) {
    const bqr_step preset = step_in_place(b->plan, operation->preset);
    status = bqr_plan_step(b, &preset, false);
    b->stage++;
  }
  if (!status) status = bqr_plan_step(b, &whole, operation->program != NULL);
  if (status || !operation->program) return status;
  bool in_one_step = all_done(b);
  if (!in_one_step && b->plan->stand_ins[BQR_A] != BQR_A) {
    whole.a = b->plan->stand_ins[BQR_A];
    status = plan_copy_of_a(b);
    if (!status) status = bqr_plan_step(b, &whole, true);
    in_one_step = all_done(b);
  }
  if (!status && !in_one_step) status = plan_program(b);
  return status ? status : plan_copies_out(b);
}

/* --- streams */

/* Deals each stage's groups out to streams, in their order, to the one that has least to do so far. What a
 * group takes is about its columns, one after another, and a launch. */
static void assign_streams(struct batchqr_plan *plan) {
  enum { LAUNCH = 16 };
  const int most = plan->device.backend == BATCHQR_BACKEND_CUDA ? BQR_MOST_STREAMS : 1;
  int64_t loads[BQR_MOST_STREAMS] = {0};
  plan->num_streams = 1;
  for (int i = 0; i < plan->num_groups; i++) {
    bqr_group *g = &plan->groups[i];
    if (i > 0 && g->stage != g[-1].stage) memset(loads, 0, sizeof loads);
    for (int s = 1; s < most; s++)
      if (loads[s] < loads[g->stream]) g->stream = s;
    loads[g->stream] += (int64_t)LAUNCH + bqr_min(g->problem.m, g->problem.n);
    plan->num_streams = bqr_max(plan->num_streams, g->stream + 1);
  }
}

/* --- facts that an execute checks its operands against */

static void note_largest(struct batchqr_plan *plan) {
  const int64_t members = plan->batch.count > 0 ? bqr_visible_members(&plan->batch) : 0;
  for (int64_t i = 0; i < members; i++) {
    const bqr_dims sizes = bqr_member_sizes(plan->operation, &plan->batch, i);
    for (const bqr_use *use = plan->operation->uses; use->place; use++) {
      const bqr_shape shape = bqr_shape_of(use, &plan->batch, sizes);
      const int64_t elements = (int64_t)shape.rows * shape.cols;
      if (elements > plan->largest[use->place]) plan->largest[use->place] = elements;
    }
  }
}

static bool stored_alike(const batchqr_batch *batch, const batchqr_storage *x, const batchqr_storage *y) {
  if (x->layout != y->layout || (batch->count > 1 && x->stride != y->stride) ||
      x->row_stride != y->row_stride)
    return false;
  if (x->ld_array == y->ld_array) return x->ld_array || x->ld == y->ld;
  if (batch->sizes != BATCHQR_HOST_SIZES) return false;
  for (int64_t i = 0; i < batch->count; i++)
    if ((x->ld_array ? x->ld_array[i] : x->ld) != (y->ld_array ? y->ld_array[i] : y->ld)) return false;
  return true;
}

/* --- the whole */

static batchqr_status plan_members(bqr_builder *b) {
  batchqr_status status = bqr_plan_classes(b);
  for (int64_t i = 0; i < b->num_classes && !status; i++) b->classes[i].previous = -2;
  return status ? status : plan_operation(b);
}

/* Sizes on the device: the first group sorts the members, where there are kernels for that, and where boxes
 * get different choices. Otherwise nothing is planned here. */
static batchqr_status plan_sorted(bqr_builder *b) {
  struct batchqr_plan *plan = b->plan;
  if (bqr_sort_boxes(plan->operation, &plan->batch, &plan->sort) == 1 || plan->batch.keep_a ||
      plan->stand_ins[BQR_R] != BQR_R)
    return BATCHQR_SUCCESS;
  if (!b->planner->sorts_always && !bqr_sort_pays(plan->operation, &plan->batch, &plan->device))
    return BATCHQR_SUCCESS;
  bqr_size_class all = {.sizes = bqr_member_sizes(plan->operation, &plan->batch, 0),
                        .count = plan->batch.count};
  const bqr_step sort = whole_step(plan, BQR_SORT);
  const bqr_problem problem = bqr_plan_problem(b, &sort, &all);
  bqr_choice choice;
  batchqr_status status = bqr_choose(b->planner, &problem, plan->batch.count, &choice, b->error);
  if (status || !choice.family) return status;
  plan->sorted = true;
  status = bqr_plan_open_group(b, &choice, &problem, &sort, &all);
  if (!status) status = plan_members(b);
  if (status == BATCHQR_OUT_OF_MEMORY || (!status && bqr_sort_list(plan))) return status;
  plan->sorted = false;
  b->temporaries = 0;
  plan->num_groups = 0;
  free(b->classes);
  b->classes = NULL;
  b->num_classes = 0;
  return BATCHQR_SUCCESS;
}

/* Of all groups, once their problems are what they stay. */
static batchqr_status plan_children(bqr_builder *b) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < b->plan->num_groups && !status; i++) {
    bqr_group *g = &b->plan->groups[i];
    status = bqr_children_plan(b->planner, g->family, g->variant, &g->problem, b->error);
  }
  return status;
}

static batchqr_status build(bqr_builder *b) {
  struct batchqr_plan *plan = b->plan;
  choose_stand_ins(plan);
  note_largest(plan);
  for (const bqr_use *use = plan->operation->uses; use->place; use++)
    plan->stored_as_a[use->place] =
        stored_alike(&plan->batch, &plan->batch.a, bqr_storage_at(&plan->batch, (int)use->place));
  batchqr_status status = plan_sorted(b);
  if (!status && !plan->sorted) status = plan_members(b);
  assign_streams(plan);
  if (!status) status = plan_children(b);
  if (!status) bqr_plan_note_alignment(b);
  if (!status) status = bqr_plan_size_workspace(b);
  if (!status) status = bqr_plan_make_image(b);
  return status ? status : bqr_plan_describe(b->planner, plan, b->error);
}

/* A plan whose groups keep to a limit each, if they can. */
static batchqr_status new_plan(const bqr_planner *planner, int op, const batchqr_batch *batch, size_t limit,
                               struct batchqr_plan **plan, bqr_error *error) {
  *plan = NULL;
  struct batchqr_plan *p = calloc(1, sizeof *p);
  if (!p) return bqr_fail_memory(error, "the plan");
  p->operation = bqr_registry_operation(planner->registry, op);
  p->batch = bqr_batch_normalized(p->operation, batch);
  p->device = *planner->device;
  bqr_builder b = {.planner = planner, .plan = p, .limit = limit, .error = error};
  batchqr_status status = build(&b);
  free(b.classes);
  free(b.order);
  free(b.lists);
  if (status) {
    bqr_plan_free(p);
    return status;
  }
  *plan = p;
  return BATCHQR_SUCCESS;
}

static bool is_over(const bqr_planner *planner, const struct batchqr_plan *plan) {
  return planner->workspace_limit > 0 && plan->workspace_bytes > planner->workspace_limit;
}

/* What is left to a group of a plan that takes too much: the limit less the temporaries, shared by streams.
 */
static size_t left_to_groups(const bqr_planner *planner, const struct batchqr_plan *plan) {
  const size_t others = plan->workspace_bytes - plan->families_bytes, limit = planner->workspace_limit;
  if (limit <= others) return 0;
  return (limit - others) / (size_t)plan->num_streams / BQR_ALIGNMENT * BQR_ALIGNMENT;
}

/* Without a limit first; then with what it leaves; at last with as little as there can be. */
batchqr_status bqr_plan_new(const bqr_planner *planner, int op, const batchqr_batch *batch,
                            struct batchqr_plan **plan, bqr_error *error) {
  batchqr_status status = new_plan(planner, op, batch, 0, plan, error);
  for (int attempt = 0; attempt < 2 && !status && is_over(planner, *plan); attempt++) {
    const size_t left = attempt == 0 ? left_to_groups(planner, *plan) : 0;
    bqr_plan_free(*plan);
    status = new_plan(planner, op, batch, left > 0 ? left : 1, plan, error);
  }
  if (status || !is_over(planner, *plan)) return status;
  const size_t least = (*plan)->workspace_bytes;
  bqr_plan_free(*plan);
  *plan = NULL;
  return bqr_fail(error, BATCHQR_UNSUPPORTED,
                  "the limit of the workspace is %zu bytes, and this batch takes %zu at least",
                  planner->workspace_limit, least);
}

void bqr_plan_free(struct batchqr_plan *plan) {
  if (!plan) return;
  for (int i = 0; i < plan->num_groups; i++) {
    bqr_group *g = &plan->groups[i];
    if (g->state) g->family->close(g->state);
    bqr_children_free(&g->problem);
  }
  bqr_streams_free(plan->streams);
  if (plan->resident != plan->image) bqr_memory_free(&plan->device, plan->resident);
  free(plan->image);
  free(plan->groups);
  free(plan->description);
  free(plan);
}
