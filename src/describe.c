/* SPDX-License-Identifier: BSD-3-Clause */
/* Plans in words, for users and for tests. */
#include "inspect.h"
#include "plan.h"
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that grows; after a failure it is NULL and stays so. */
typedef struct text {
  char *start;
  size_t length, capacity;
  bool failed;
} text;

__attribute__((format(printf, 2, 3))) static void add(text *t, const char *format, ...) {
  char piece[512];
  va_list args;
  va_start(args, format);
  int printed = vsnprintf(piece, sizeof piece, format, args);
  va_end(args);
  size_t more = printed < 0 ? 0 : (size_t)printed < sizeof piece ? (size_t)printed : sizeof piece - 1;
  if (t->length + more + 1 > t->capacity && !t->failed) {
    size_t capacity = 2 * t->capacity + sizeof piece;
    char *start = realloc(t->start, capacity);
    t->failed = !start;
    if (!start) return;
    t->start = start;
    t->capacity = capacity;
  }
  if (t->failed) return;
  memcpy(t->start + t->length, piece, more);
  t->length += more;
  t->start[t->length] = '\0';
}

static void add_source(text *t, const char *source) {
  const bool by_table = strchr(source, ':'), forced = strcmp(source, "forced") == 0;
  add(t, "%s%s", by_table ? " from " : forced ? ", " : " by ", source);
}

static void add_sizes(text *t, const bqr_operation *operation, const bqr_problem *p, bool sorted) {
  add(t, "%s%lld x (%s%dx%d", sorted ? "<=" : "", (long long)p->count - sorted, p->uniform ? "" : "<=", p->m,
      p->n);
  if (operation->k) add(t, ", k %s%d", p->uniform ? "" : "<= ", p->k);
  add(t, ") %c", "sdcz"[p->type]);
  static const char *const trans[] = {"", " transposed", " conjugate-transposed"};
  if (operation->reads_side) add(t, " %s", p->side == BATCHQR_LEFT ? "left" : "right");
  if (operation->reads_trans) add(t, "%s", trans[p->trans]);
  if (operation->reads_uplo) add(t, " %s", p->uplo == BATCHQR_LOWER ? "lower" : "upper");
}

/* A line for each run of children with one choice: what the first of them, the largest, was chosen for. */
static void add_children(text *t, const bqr_problem *p, const bqr_planner *planner, int depth) {
  for (int i = 0, end; i < p->num_children; i = end) {
    const bqr_child *c = &p->children[i];
    for (end = i + 1; end < p->num_children; end++) {
      const bqr_child *next = &p->children[end];
      if (next->problem.role != c->problem.role || next->variant != c->variant ||
          strcmp(next->source, c->source) != 0)
        break;
    }
    const bqr_operation *operation = bqr_registry_operation(planner->registry, c->problem.op);
    add(t, "\n%*s%d x %s%s ", 2 * depth, "", end - i, operation->name, bqr_role_suffix(c->problem.role));
    if (c->problem.m < INT_MAX) add(t, "<=%d", c->problem.m);
    add(t, "x%d: %s %s", c->problem.n, c->family->name, c->variant->name);
    add_source(t, c->source);
    add_children(t, &c->problem, planner, depth + 1);
  }
}

/* What the mode asked for and this family does not have. */
static const char *native_note(const bqr_group *g) {
  batchqr_compute mode = g->problem.compute, arithmetic = g->family->compute;
  bool native = arithmetic == BATCHQR_COMPUTE_AUTO || arithmetic == BATCHQR_COMPUTE_NATIVE;
  if (!native || g->family->follows_mode || mode == BATCHQR_COMPUTE_AUTO || mode == BATCHQR_COMPUTE_NATIVE)
    return "";
  return mode == BATCHQR_COMPUTE_HALF ? ", native, not half" : ", native, not emulated";
}

static void add_group(text *t, const bqr_group *g, bool sorted, const bqr_planner *planner) {
  const bqr_operation *operation = bqr_registry_operation(planner->registry, g->problem.op);
  const bqr_table *table = planner->table;
  const bqr_device *device = planner->device;
  add(t, "%s ", operation->name);
  add_sizes(t, operation, &g->problem, sorted && g->problem.op != BQR_SORT);
  bool by_table = strchr(g->source, ':');
  add(t, ": %s", g->label);
  add_source(t, g->source);
  if (by_table && table && table->sm && table->sm != device->sm)
    add(t, " (there is no table for sm_%d)", device->sm);
  add(t, "%s; workspace %zu B", native_note(g), g->workspace);
}

/* Those that the step is the first to use. */
static void add_temporaries(text *t, const struct batchqr_plan *plan, const bqr_step *step) {
  size_t bytes = 0;
  for (int place = BQR_NUM_OPERANDS; place < BQR_NUM_SOURCES; place++)
    if (step->introduces & BQR_TEMPORARY(place)) bytes += plan->temporaries[place - BQR_NUM_OPERANDS].bytes;
  if (bytes > 0) add(t, " and %zu B for %s", bytes, step->called);
}

batchqr_status bqr_plan_describe(const bqr_planner *planner, struct batchqr_plan *plan, bqr_error *error) {
  text t = {.length = 0};
  if (plan->num_groups == 0) add(&t, "%s of no members: nothing to do", plan->operation->name);
  for (int i = 0; i < plan->num_groups; i++) {
    if (i > 0) add(&t, "\n");
    add_group(&t, &plan->groups[i], plan->sorted, planner);
    add_temporaries(&t, plan, &plan->groups[i].step);
    add_children(&t, &plan->groups[i].problem, planner, 1);
  }
  plan->description = t.start;
  return t.failed ? bqr_fail_memory(error, "the plan's description") : BATCHQR_SUCCESS;
}

int bqr_plan_num_groups(batchqr_plan_t plan) { return plan->num_groups; }

bqr_group_info bqr_plan_group(batchqr_plan_t plan, int i) {
  const bqr_group *g = &plan->groups[i];
  return (bqr_group_info){.op = g->problem.op,
                          .family = g->family->name,
                          .variant = g->variant->name,
                          .source = g->source,
                          .members = g->problem.count,
                          .m = g->problem.m,
                          .n = g->problem.n,
                          .k = g->problem.k};
}
