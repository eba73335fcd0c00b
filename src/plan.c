/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of one size form a class. Each step of the operation asks for a choice for each class; classes with
 * the same choice form a group, which is one launch. */
#include "plan_build.h"
#include "children.h"
#include "device.h"
#include "inspect.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *bqr_plan_array(bqr_builder *b, int64_t n, size_t size) {
  void *array = (uint64_t)n <= SIZE_MAX / size ? calloc(n > 0 ? (size_t)n : 1, size) : NULL;
  if (!array) bqr_fail_memory(b->error, "the plan");
  return array;
}

/* --- groups */

static bqr_dims larger(bqr_dims x, bqr_dims y) {
  return (bqr_dims){bqr_max(x.m, y.m), bqr_max(x.n, y.n), bqr_max(x.k, y.k)};
}

static batchqr_trans step_trans(const bqr_builder *b, const bqr_step *step) {
  if (step->trans == BQR_AS_BATCH) return b->plan->batch.trans;
  return step->trans == BQR_ADJOINT ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
}

/* The sizes that a step works with. */
static bqr_dims step_sizes(const bqr_builder *b, const bqr_step *step, bqr_dims s) {
  const batchqr_batch *batch = &b->plan->batch;
  return (bqr_dims){bqr_extent_of(step->m, batch, s), bqr_extent_of(step->n, batch, s),
                    bqr_extent_of(step->k, batch, s)};
}

static bqr_problem step_problem(const bqr_builder *b, const bqr_step *step, const bqr_size_class *c) {
  const batchqr_batch *batch = &b->plan->batch;
  const bqr_operation *operation = bqr_registry_operation(b->planner->registry, step->op);
  const bqr_dims sizes = step_sizes(b, step, c->sizes);
  const bool hidden = batch->sizes == BATCHQR_DEVICE_SIZES;
  return (bqr_problem){.op = step->op,
                       .type = batch->type,
                       .compute = b->planner->compute,
                       .side = batch->side,
                       .trans = step_trans(b, step),
                       .uplo = batch->uplo,
                       .pointers = bqr_batch_has_pointers(b->plan->operation, batch),
                       .uniform = !hidden,
                       .tall = hidden ? c->tall : sizes.m >= sizes.n,
                       .keeps_a = batch->keep_a && step->op == b->plan->operation->op && step->a == BQR_A,
                       .positive = operation->makes_r && b->plan->operation->makes_r && b->planner->positive,
                       .vectors = batch->v.ld != 0 || batch->v.ld_array,
                       .m = sizes.m,
                       .n = sizes.n,
                       .k = sizes.k,
                       .whole = step->op == b->plan->operation->op && step->m == BQR_M,
                       .aligned = bqr_plan_is_aligned(b, step, b->copied),
                       .workspace_limit = b->limit,
                       .count = c->count};
}

static bqr_problem grown_problem(bqr_problem problem, const bqr_problem *by) {
  problem.m = bqr_max(problem.m, by->m);
  problem.n = bqr_max(problem.n, by->n);
  problem.k = bqr_max(problem.k, by->k);
  problem.count += by->count;
  problem.uniform = false;
  problem.tall = problem.tall && by->tall;
  return problem;
}

/* The newest group of this step with the choice takes the class, if it still supports what it grows to. */
static bool join_group(bqr_builder *b, int first_group, const bqr_choice *choice, const bqr_problem *problem,
                       bqr_size_class *c) {
  const bqr_program *program = b->plan->operation->program;
  if (program && program->one_size) return false;
  for (int i = b->plan->num_groups - 1; i >= first_group; i--) {
    bqr_group *g = &b->plan->groups[i];
    if (g->family != choice->family || g->variant != choice->variant) continue;
    bqr_problem grown = grown_problem(g->problem, problem);
    if (b->plan->sorted) grown.count = problem->count;
    if (!bqr_choice_serves(b->planner, choice, &grown)) return false;
    g->problem = grown;
    g->largest = larger(g->largest, c->sizes);
    g->sized = true;
    if (b->plan->sorted) g->boxes |= UINT64_C(1) << c->first;
    c->group = i;
    return true;
  }
  return false;
}

static batchqr_status open_group(bqr_builder *b, const bqr_choice *choice, const bqr_problem *problem,
                                 const bqr_step *step, bqr_size_class *c) {
  struct batchqr_plan *plan = b->plan;
  if (plan->num_groups == b->group_capacity) {
    int capacity = b->group_capacity ? 2 * b->group_capacity : 8;
    bqr_group *groups = realloc(plan->groups, (size_t)capacity * sizeof *groups);
    if (!groups) return bqr_fail_memory(b->error, "the plan");
    plan->groups = groups;
    b->group_capacity = capacity;
  }
  bqr_group *g = &plan->groups[plan->num_groups];
  *g = (bqr_group){.problem = *problem,
                   .family = choice->family,
                   .variant = choice->variant,
                   .largest = c->sizes,
                   .sized = plan->batch.sizes == BATCHQR_DEVICE_SIZES,
                   .step = *step,
                   .copied = b->copied,
                   .stage = b->stage,
                   .list = -1};
  snprintf(g->label, sizeof g->label, "%.39s %.39s", choice->family->name, choice->variant->name);
  bqr_choice_source(choice, g->source, sizeof g->source);
  if (plan->sorted) g->boxes = UINT64_C(1) << c->first;
  c->group = plan->num_groups++;
  return BATCHQR_SUCCESS;
}

static batchqr_status fail_unsupported(const bqr_builder *b, const bqr_problem *p) {
  const bqr_device *device = b->planner->device;
  if (!(device->types >> p->type & 1))
    return bqr_fail(b->error, BATCHQR_UNSUPPORTED,
                    "this build has no GPU kernels for type %c (Meson's option types)", "sdcz"[p->type]);
  const char *where = device->backend == BATCHQR_BACKEND_CPU ? "the CPU" : device->name;
  return bqr_fail(b->error, BATCHQR_UNSUPPORTED, "no kernel family of this build does %s of %d x %d %c on %s",
                  bqr_registry_operation(b->planner->registry, p->op)->name, p->m, p->n, "sdcz"[p->type],
                  where);
}

/* Copies the members of the step's groups into lists, unless the step before has the same groups. */
static batchqr_status list_members(bqr_builder *b, int first_group) {
  struct batchqr_plan *plan = b->plan;
  size_t listed = 0;
  bool as_before = true;
  for (int64_t i = 0; i < b->num_classes; i++) {
    bqr_size_class *c = &b->classes[i];
    int relative = c->group < 0 ? -1 : c->group - first_group;
    as_before = as_before && relative == c->previous;
    c->previous = relative;
    if (relative >= 0) listed += (size_t)c->count;
  }
  int num_groups = plan->num_groups - first_group;
  if (as_before) {
    for (int g = first_group; g < plan->num_groups; g++)
      plan->groups[g].list = plan->groups[g - num_groups].list;
    return BATCHQR_SUCCESS;
  }
  int *lists = realloc(b->lists, (b->num_listed + listed + 1) * sizeof *lists);
  if (!lists) return bqr_fail_memory(b->error, "the plan");
  b->lists = lists;
  for (int g = first_group; g < plan->num_groups; g++) {
    plan->groups[g].list = (int64_t)b->num_listed;
    b->num_listed += (size_t)plan->groups[g].problem.count;
  }
  int64_t *next = bqr_plan_array(b, num_groups, sizeof *next);
  if (!next) return BATCHQR_OUT_OF_MEMORY;
  for (int64_t i = 0; i < b->num_classes; i++) {
    const bqr_size_class *c = &b->classes[i];
    if (c->group < 0) continue;
    int64_t at = plan->groups[c->group].list + next[c->group - first_group];
    memcpy(lists + at, b->order + c->first, (size_t)c->count * sizeof *lists);
    next[c->group - first_group] += c->count;
  }
  free(next);
  return BATCHQR_SUCCESS;
}

/* Whether the program is to be preferred for the class, and all of its steps can be done. */
static bool goes_by_program(bqr_builder *b, const bqr_problem *whole, const bqr_size_class *c) {
  const bqr_program *program = b->plan->operation->program;
  const bqr_planner *planner = b->planner;
  if (!program || !program->better || planner->device->backend != BATCHQR_BACKEND_CUDA || !whole->uniform)
    return false;
  if (planner->forced && planner->forced[bqr_forced_index(whole->op, BQR_ROLE_STEP)].family) return false;
  bool serves = program->better(whole);
  for (int i = 0; i < program->num_steps && serves; i++) {
    const bqr_problem problem = step_problem(b, &program->steps[i], c);
    bqr_choice choice;
    bqr_error error;
    serves = !bqr_choose(planner, &problem, c->similar, &choice, &error) && choice.family;
  }
  return serves;
}

/* Plans one step for the classes of this part of the batch that are not done. `whole`: it is the operation
 * itself, and classes that no family serves are left for the program. */
static batchqr_status plan_step(bqr_builder *b, const bqr_step *step, bool whole) {
  int first_group = b->plan->num_groups;
  for (int64_t i = 0; i < b->num_classes; i++) {
    bqr_size_class *c = &b->classes[i];
    c->group = -1;
    if (c->done || c->away) continue;
    bqr_problem problem = step_problem(b, step, c);
    bqr_choice choice;
    if (whole && goes_by_program(b, &problem, c)) continue;
    batchqr_status status = bqr_choose(b->planner, &problem, c->similar, &choice, b->error);
    if (!status && !choice.family && !whole) status = fail_unsupported(b, &problem);
    if (!status && choice.family && !join_group(b, first_group, &choice, &problem, c))
      status = open_group(b, &choice, &problem, step, c);
    if (status) return status;
  }
  return b->order && b->plan->num_groups > first_group ? list_members(b, first_group) : BATCHQR_SUCCESS;
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
  const batchqr_status status = plan_step(b, &copy, false);
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
      batchqr_status status = plan_step(b, &step, false);
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
  const batchqr_status status = any ? plan_step(b, copy, false) : BATCHQR_SUCCESS;
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

/* In one step where a family does the whole operation, else by the program. */
static batchqr_status plan_operation(bqr_builder *b) {
  const bqr_operation *operation = b->plan->operation;
  bqr_step whole = whole_step(b->plan, operation->op);
  b->stage++;
  batchqr_status status = plan_step(b, &whole, operation->program != NULL);
  if (status || !operation->program) return status;
  bool in_one_step = all_done(b);
  if (!in_one_step && b->plan->stand_ins[BQR_A] != BQR_A) {
    whole.a = b->plan->stand_ins[BQR_A];
    status = plan_copy_of_a(b);
    if (!status) status = plan_step(b, &whole, true);
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
  const bqr_problem problem = step_problem(b, &sort, &all);
  bqr_choice choice;
  batchqr_status status = bqr_choose(b->planner, &problem, plan->batch.count, &choice, b->error);
  if (status || !choice.family) return status;
  plan->sorted = true;
  status = open_group(b, &choice, &problem, &sort, &all);
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
  if (!status) bqr_plan_note_alignment(plan);
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
