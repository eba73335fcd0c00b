/* SPDX-License-Identifier: BSD-3-Clause */
/* Each step of the operation asks for a choice for each class of members; classes with the same choice form a
 * group, which is one launch. */
#include "plan_build.h"
#include "choose.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

bqr_problem bqr_plan_problem(const bqr_builder *b, const bqr_step *step, const bqr_size_class *c) {
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
                       .range = step->v ? 0 : bqr_batch_range(batch),
                       .il = batch->il,
                       .iu = batch->iu,
                       .vectors = batch->v.ld != 0 || batch->v.ld_array,
                       .gram_schmidt = step->op == b->plan->operation->op ? batch->gram_schmidt : 0,
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
    if (b->plan->sorted) g->boxes |= UINT64_C(1) << c->box;
    c->group = i;
    return true;
  }
  return false;
}

batchqr_status bqr_plan_open_group(bqr_builder *b, const bqr_choice *choice, const bqr_problem *problem,
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
  if (plan->sorted) g->boxes = UINT64_C(1) << c->box;
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

/* Whether the program is to be preferred for the class, and all of its steps can be done. A family that
 * drives others has been preferred to it by saying that it is good. */
static bool goes_by_program(bqr_builder *b, const bqr_problem *whole, const bqr_size_class *c) {
  const bqr_program *program = b->plan->operation->program;
  const bqr_planner *planner = b->planner;
  if (!program || !program->better || planner->device->backend != BATCHQR_BACKEND_CUDA || !whole->uniform)
    return false;
  if (planner->forced && planner->forced[bqr_forced_index(whole->op, BQR_ROLE_STEP)].family) return false;
  bool serves = program->better(whole);
  bqr_choice direct;
  bqr_error none;
  if (serves && !bqr_choose(planner, whole, c->similar, &direct, &none) && direct.family &&
      direct.family->child)
    return false;
  for (int i = 0; i < program->num_steps && serves; i++) {
    const bqr_problem problem = bqr_plan_problem(b, &program->steps[i], c);
    bqr_choice choice;
    bqr_error error;
    serves = !bqr_choose(planner, &problem, c->similar, &choice, &error) && choice.family;
  }
  return serves;
}

batchqr_status bqr_plan_step(bqr_builder *b, const bqr_step *step, bool whole) {
  int first_group = b->plan->num_groups;
  for (int64_t i = 0; i < b->num_classes; i++) {
    bqr_size_class *c = &b->classes[i];
    c->group = -1;
    if (c->done || c->away) continue;
    bqr_problem problem = bqr_plan_problem(b, step, c);
    bqr_choice choice;
    if (whole && goes_by_program(b, &problem, c)) continue;
    batchqr_status status = bqr_choose(b->planner, &problem, c->similar, &choice, b->error);
    if (!status && whole && choice.family && (problem.range & ~choice.family->ranges)) continue;
    if (!status && !choice.family && !whole) status = fail_unsupported(b, &problem);
    if (!status && choice.family && !join_group(b, first_group, &choice, &problem, c))
      status = bqr_plan_open_group(b, &choice, &problem, step, c);
    if (status) return status;
  }
  return b->order && b->plan->num_groups > first_group ? list_members(b, first_group) : BATCHQR_SUCCESS;
}
