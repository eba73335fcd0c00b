/* SPDX-License-Identifier: BSD-3-Clause */
#include "choose.h"
#include "children.h"
#include "inspect.h"
#include <stdint.h>
#include <stdio.h>

/* Emulated products keep the working precision's bounds, half ones do not. */
static bool mode_permits(batchqr_compute mode, batchqr_compute arithmetic) {
  switch (arithmetic) {
  case BATCHQR_COMPUTE_EMULATED:
    return mode != BATCHQR_COMPUTE_NATIVE;
  case BATCHQR_COMPUTE_HALF:
    return mode == BATCHQR_COMPUTE_HALF;
  default:
    return true;
  }
}

/* What a family of a child may have, see bqr_role. */
static bool role_permits(bqr_role role, const bqr_family *f) {
  if (role == BQR_ROLE_STEP) return true;
  return !f->open && (role != BQR_ROLE_LEAF || (!f->workspace && !f->child));
}

bool bqr_choice_serves(const bqr_planner *planner, const bqr_choice *choice, const bqr_problem *problem) {
  const bqr_family *f = choice->family;
  const bqr_device *device = planner->device;
  return f->op == problem->op && role_permits(problem->role, f) &&
         bqr_family_runs_on(f, device, problem->type) && (f->keeps_a || !problem->keeps_a) &&
         mode_permits(problem->compute, f->compute) && f->supports(problem, choice->variant, device) &&
         bqr_children_exist(planner, choice, problem);
}

/* Bytes of workspace, once the children are chosen. */
static size_t bytes_of(const bqr_planner *planner, const bqr_choice *choice, const bqr_problem *problem) {
  const bqr_family *f = choice->family;
  bqr_problem planned = *problem;
  bqr_error error;
  if (!f->workspace) return 0;
  const batchqr_status status = bqr_children_plan(planner, f, choice->variant, &planned, &error);
  const size_t bytes = status ? SIZE_MAX : f->workspace(&planned, choice->variant, planner->device);
  bqr_children_free(&planned);
  return bytes;
}

/* Children's workspaces are part of their parent's. */
static bool fits(const bqr_planner *planner, const bqr_choice *choice, const bqr_problem *problem) {
  return !problem->workspace_limit || problem->role != BQR_ROLE_STEP ||
         bytes_of(planner, choice, problem) <= problem->workspace_limit;
}

/* Sets the family's first variant that serves and fits; with `good`, of those that say they are good at it.
 */
static bool choose_variant(const bqr_planner *planner, const bqr_problem *problem, bool good,
                           bqr_choice *choice) {
  const bqr_family *f = choice->family;
  for (int i = 0; i < f->nvariants; i++) {
    choice->variant = &f->variants[i];
    if (bqr_choice_serves(planner, choice, problem) &&
        (!good || !f->prefers || f->prefers(problem, choice->variant, planner->device)) &&
        fits(planner, choice, problem))
      return true;
  }
  return false;
}

static batchqr_status choose_forced(const bqr_planner *planner, const bqr_problem *problem,
                                    const bqr_forced *forced, bqr_choice *choice, bqr_error *error) {
  *choice = (bqr_choice){.family = forced->family, .forced = true};
  if (forced->variant >= 0) choice->variant = &forced->family->variants[forced->variant];
  bool serves = choice->variant ? bqr_choice_serves(planner, choice, problem)
                                : choose_variant(planner, problem, false, choice);
  if (serves) return BATCHQR_SUCCESS;
  return bqr_fail(error, BATCHQR_UNSUPPORTED, "%s%s%s was forced and does not support %s of %d x %d",
                  forced->family->name, forced->variant >= 0 ? " " : "",
                  forced->variant >= 0 ? choice->variant->name : "",
                  bqr_registry_operation(planner->registry, problem->op)->name, problem->m, problem->n);
}

/* What a table is asked with: where Q is applied, the length and the number of its reflectors, not the sizes
 * of what they are applied to. */
static bqr_dims asked_with(const bqr_planner *planner, const bqr_problem *problem) {
  const bqr_operation *operation = bqr_registry_operation(planner->registry, problem->op);
  if (!operation->reads_side) return (bqr_dims){problem->m, problem->n, 0};
  return (bqr_dims){problem->side == BATCHQR_RIGHT ? problem->n : problem->m, problem->k, 0};
}

static bool rule_holds(const bqr_rule *rule, const bqr_problem *problem, bqr_dims sizes, int64_t count) {
  return rule->op == problem->op && rule->role == problem->role && (rule->types >> problem->type & 1) &&
         bqr_interval_holds(rule->m, sizes.m) && bqr_interval_holds(rule->n, sizes.n) &&
         bqr_interval_holds(rule->count, count);
}

static bool choose_by_table(const bqr_planner *planner, const bqr_table *table, const bqr_problem *problem,
                            int64_t count, bqr_choice *choice) {
  const bqr_dims sizes = asked_with(planner, problem);
  for (int i = 0; table && i < table->num_rules; i++) {
    const bqr_rule *rule = &table->rules[i];
    if (!rule_holds(rule, problem, sizes, count)) continue;
    *choice = (bqr_choice){.rule = rule, .table = table};
    if (!rule->family) return true;
    choice->family = rule->family;
    choice->variant = &rule->family->variants[rule->variant];
    if (bqr_choice_serves(planner, choice, problem) && fits(planner, choice, problem)) return true;
  }
  return false;
}

/* What serves with the least workspace, where nothing fits. */
static void choose_smallest(const bqr_planner *planner, const bqr_problem *problem, bqr_choice *choice) {
  size_t least = SIZE_MAX;
  for (const bqr_family *const *f = planner->registry->families; *f; f++)
    for (int i = 0; i < (*f)->nvariants && !(*f)->only_where_good; i++) {
      const bqr_choice other = {.family = *f, .variant = &(*f)->variants[i]};
      if (!bqr_choice_serves(planner, &other, problem)) continue;
      const size_t bytes = bytes_of(planner, &other, problem);
      if (bytes < least) *choice = other, least = bytes;
    }
}

/* Whether a variant that takes too much workspace would be a good choice: then another one of its family is.
 */
static bool is_good(const bqr_planner *planner, const bqr_problem *problem, const bqr_family *f) {
  bqr_problem unlimited = *problem;
  unlimited.workspace_limit = 0;
  bqr_choice any = {.family = f};
  return problem->workspace_limit && choose_variant(planner, &unlimited, true, &any);
}

static bool choose_family(const bqr_planner *planner, const bqr_problem *problem, bool good,
                          bqr_choice *choice) {
  for (const bqr_family *const *f = planner->registry->families; *f; f++) {
    *choice = (bqr_choice){.family = *f};
    if (!good && (*f)->only_where_good) continue;
    if (choose_variant(planner, problem, good, choice)) return true;
    if (good && is_good(planner, problem, *f) && choose_variant(planner, problem, false, choice)) return true;
  }
  *choice = (bqr_choice){.family = NULL};
  return false;
}

batchqr_status bqr_choose(const bqr_planner *planner, const bqr_problem *problem, int64_t count,
                          bqr_choice *choice, bqr_error *error) {
  const bqr_forced *forced =
      planner->forced ? &planner->forced[bqr_forced_index(problem->op, problem->role)] : NULL;
  if (forced && forced->family) return choose_forced(planner, problem, forced, choice, error);
  if (choose_by_table(planner, planner->table, problem, count, choice) ||
      choose_by_table(planner, planner->child_table, problem, count, choice))
    return BATCHQR_SUCCESS;
  if (choose_family(planner, problem, true, choice) || choose_family(planner, problem, false, choice))
    return BATCHQR_SUCCESS;
  if (problem->workspace_limit) choose_smallest(planner, problem, choice);
  return BATCHQR_SUCCESS;
}

void bqr_choice_source(const bqr_choice *choice, char *text, size_t size) {
  if (choice->rule)
    snprintf(text, size, "%.60s:%d", choice->table->name, choice->rule->line);
  else
    snprintf(text, size, "%s", choice->forced ? "forced" : "heuristic");
}
