/* SPDX-License-Identifier: BSD-3-Clause */
#include "children.h"
#include <stdlib.h>

/* Eigenvalues are a part of singular values, which are none of theirs. */
static bool is_earlier(int op, int than) {
  return op < than || (op == BATCHQR_SYEVD && than == BATCHQR_GESVD);
}

/* Roles ascend, or whole operations have parts that are earlier ones, so that the search for children's
 * children ends. */
static bool may_have(const bqr_problem *parent, const bqr_problem *child) {
  return child->role > parent->role ||
         (child->role == BQR_ROLE_STEP && parent->role == BQR_ROLE_STEP && is_earlier(child->op, parent->op));
}

static bool is_served(const bqr_planner *planner, const bqr_problem *parent, const bqr_problem *child) {
  bqr_choice choice;
  bqr_error error;
  return may_have(parent, child) && !bqr_choose(planner, child, child->count, &choice, &error) &&
         choice.family;
}

bool bqr_children_exist(const bqr_planner *planner, const bqr_choice *choice, const bqr_problem *problem) {
  const bqr_family *f = choice->family;
  if (!f->child) return true;
  bqr_role last = BQR_NUM_ROLES;
  bqr_problem child;
  for (int i = 0; f->child(problem, choice->variant, planner->device, i, &child); i++) {
    if (child.role == last) continue;
    if (!is_served(planner, problem, &child)) return false;
    last = child.role;
  }
  return true;
}

static batchqr_status plan_child(const bqr_planner *planner, bqr_child *child, bqr_error *error) {
  bqr_choice choice;
  batchqr_status status = bqr_choose(planner, &child->problem, child->problem.count, &choice, error);
  if (status) return status;
  if (!choice.family)
    return bqr_fail(error, BATCHQR_UNSUPPORTED, "no kernel family of this build does panels of %d x %d %c",
                    child->problem.m, child->problem.n, "sdcz"[child->problem.type]);
  child->family = choice.family;
  child->variant = choice.variant;
  bqr_choice_source(&choice, child->source, sizeof child->source);
  return bqr_children_plan(planner, choice.family, choice.variant, &child->problem, error);
}

batchqr_status bqr_children_plan(const bqr_planner *planner, const bqr_family *family,
                                 const bqr_variant *variant, bqr_problem *problem, bqr_error *error) {
  bqr_problem child;
  int count = 0;
  problem->children = NULL;
  problem->num_children = 0;
  while (family->child && family->child(problem, variant, planner->device, count, &child)) count++;
  if (count == 0) return BATCHQR_SUCCESS;
  bqr_child *children = calloc((size_t)count, sizeof *children);
  if (!children) return bqr_fail_memory(error, "the plan");
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < count && !status; i++) {
    family->child(problem, variant, planner->device, i, &children[i].problem);
    children[i].problem.aligned = false; /* the parent's matrices may be; a child's are parts of them */
    status = plan_child(planner, &children[i], error);
  }
  problem->children = children;
  problem->num_children = count;
  return status;
}

void bqr_children_free(bqr_problem *problem) {
  bqr_child *children = (bqr_child *)problem->children;
  for (int i = 0; i < problem->num_children; i++) bqr_children_free(&children[i].problem);
  free(children);
  problem->children = NULL;
  problem->num_children = 0;
}
