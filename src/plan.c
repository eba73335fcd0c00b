/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of one size form a class. Each step of the operation asks for a choice for each class; classes with
 * the same choice form a group, which is one launch. */
#include "plan.h"
#include "choose.h"
#include "device.h"
#include "inspect.h"
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct size_class {
  bqr_sizes sizes;
  int64_t first, count; /* its members in builder.order; or its box, and all members */
  int64_t similar;      /* members of about this size: what tuning tables are asked with */
  int group;            /* of the plan, in the step being planned; -1: none */
  int previous;         /* the same in the step before, counted from that step's first group */
  bool tall;            /* all have m >= n, for sure */
  bool done;            /* a step that does the whole operation serves it */
  bool away;            /* not in the part of the batch that is being planned */
} size_class;

typedef struct step {
  int op;
  bool whole;  /* the operation itself: classes that no family serves are left for steps */
  bool thin;   /* see batchqr_args */
  bool beside; /* it serves other members than the step before */
  batchqr_trans trans;
} step;

typedef struct builder {
  const bqr_planner *planner;
  struct batchqr_plan *plan;
  bqr_error *error;
  size_class *classes;
  int64_t num_classes;
  int *order; /* all members, sorted into classes, the largest first; NULL: there is one class, or these are
                 boxes that the device sorts members into */
  int *lists;
  size_t num_listed;
  int group_capacity;
  int stage;      /* of the step being planned */
  bool needs_tau; /* some class is done in steps */
} builder;

/* The larger blocks of a plan: n objects, or NULL with the error set. */
static void *new_array(builder *b, int64_t n, size_t size) {
  void *array = (uint64_t)n <= SIZE_MAX / size ? calloc(n > 0 ? (size_t)n : 1, size) : NULL;
  if (!array) bqr_fail_memory(b->error, "the plan");
  return array;
}

/* --- classes */

typedef struct sized_member {
  bqr_sizes sizes;
  int index;
} sized_member;

static int descending(int x, int y) { return (x < y) - (x > y); }

static int compare_sizes(bqr_sizes x, bqr_sizes y) {
  int order = descending(x.m, y.m);
  if (!order) order = descending(x.n, y.n);
  return order ? order : descending(x.k, y.k);
}

/* Large members first: they start early, and small ones fill the machine at the end. Members of one size stay
 * in their order. */
static int compare_members(const void *x, const void *y) {
  const sized_member *a = x, *b = y;
  int order = compare_sizes(a->sizes, b->sizes);
  return order ? order : descending(b->index, a->index);
}

static batchqr_status single_class(builder *b, bqr_sizes sizes) {
  b->classes = new_array(b, 1, sizeof *b->classes);
  if (!b->classes) return BATCHQR_OUT_OF_MEMORY;
  b->num_classes = b->plan->batch.count > 0 ? 1 : 0;
  b->classes[0] =
      (size_class){.sizes = sizes, .count = b->plan->batch.count, .similar = b->plan->batch.count};
  return BATCHQR_SUCCESS;
}

static int bits(int size) {
  int n = 0;
  for (; size > 0; size >>= 1) n++;
  return n;
}

/* Tables are measured on batches of one size. A mixed batch keeps the machine about as busy with members of
 * one size as a batch of all those whose m and n have the same numbers of bits. */
static void count_similar(builder *b) {
  int64_t counts[32][32] = {{0}};
  for (int64_t i = 0; i < b->num_classes; i++) {
    const size_class *c = &b->classes[i];
    counts[bits(c->sizes.m)][bits(c->sizes.n)] += c->count;
  }
  for (int64_t i = 0; i < b->num_classes; i++) {
    size_class *c = &b->classes[i];
    c->similar = counts[bits(c->sizes.m)][bits(c->sizes.n)];
  }
}

static batchqr_status collect_classes(builder *b, const sized_member *members, int64_t count) {
  b->num_classes = 1;
  for (int64_t i = 1; i < count; i++)
    b->num_classes += compare_sizes(members[i].sizes, members[i - 1].sizes) != 0;
  b->order = new_array(b, count, sizeof *b->order);
  b->classes = new_array(b, b->num_classes, sizeof *b->classes);
  if (!b->order || !b->classes) return BATCHQR_OUT_OF_MEMORY;
  int64_t next = 0;
  for (int64_t i = 0; i < count; i++) {
    if (i == 0 || compare_sizes(members[i].sizes, members[i - 1].sizes) != 0)
      b->classes[next++] = (size_class){.sizes = members[i].sizes, .first = i};
    b->classes[next - 1].count++;
    b->order[i] = members[i].index;
  }
  count_similar(b);
  return BATCHQR_SUCCESS;
}

static batchqr_status sort_classes(builder *b) {
  const batchqr_batch *batch = &b->plan->batch;
  sized_member *members = new_array(b, batch->count, sizeof *members);
  if (!members) return BATCHQR_OUT_OF_MEMORY;
  for (int i = 0; i < batch->count; i++)
    members[i] = (sized_member){bqr_member_sizes(b->plan->op, batch, i), i};
  qsort(members, (size_t)batch->count, sizeof *members, compare_members);
  batchqr_status status = collect_classes(b, members, batch->count);
  free(members);
  return status;
}

/* Any of the members may be in any box, and in each there is the empty one. The largest box comes first. */
static batchqr_status box_classes(builder *b) {
  const struct batchqr_plan *plan = b->plan;
  int boxes = plan->sort.num_rows * plan->sort.num_cols;
  b->classes = new_array(b, boxes, sizeof *b->classes);
  if (!b->classes) return BATCHQR_OUT_OF_MEMORY;
  for (int box = boxes - 1; box >= 0; box--)
    b->classes[b->num_classes++] = (size_class){.sizes = bqr_sort_box_sizes(&plan->batch, &plan->sort, box),
                                                .first = box,
                                                .count = plan->batch.count + 1,
                                                .similar = plan->batch.count,
                                                .tall = bqr_sort_box_is_tall(&plan->sort, box)};
  return BATCHQR_SUCCESS;
}

static batchqr_status make_classes(builder *b) {
  const batchqr_batch *batch = &b->plan->batch;
  batchqr_op op = b->plan->op;
  if (batch->count == 0) return BATCHQR_SUCCESS;
  if (b->plan->sorted) return box_classes(b);
  bqr_sizes first = bqr_member_sizes(op, batch, 0);
  if (batch->sizes != BATCHQR_HOST_SIZES) return single_class(b, first);
  int64_t equal = 1;
  while (equal < batch->count && compare_sizes(bqr_member_sizes(op, batch, equal), first) == 0) equal++;
  return equal == batch->count ? single_class(b, first) : sort_classes(b);
}

/* --- groups */

static bqr_sizes larger(bqr_sizes x, bqr_sizes y) {
  return (bqr_sizes){bqr_max(x.m, y.m), bqr_max(x.n, y.n), bqr_max(x.k, y.k)};
}

/* The sizes that a step works with. */
static bqr_sizes step_sizes(const builder *b, const step *step, bqr_sizes s) {
  if (b->plan->op == BATCHQR_GELS) return bqr_gels_step_sizes(step->op, s);
  int min = bqr_min(s.m, s.n);
  return step->thin ? (bqr_sizes){s.m, min, min} : s;
}

static batchqr_problem step_problem(const builder *b, const step *step, const size_class *c) {
  const batchqr_batch *batch = &b->plan->batch;
  bqr_sizes sizes = step_sizes(b, step, c->sizes);
  int op = step->op;
  bool factors = op == BATCHQR_GEQRF || op == BATCHQR_QR || op == BATCHQR_GEQR_R;
  return (batchqr_problem){.op = op,
                           .type = batch->type,
                           .compute = b->planner->compute,
                           .layout = batch->layout,
                           .side = batch->side,
                           .trans = step->trans,
                           .uniform = batch->sizes != BATCHQR_DEVICE_SIZES,
                           .tall = batch->sizes == BATCHQR_DEVICE_SIZES ? c->tall : sizes.m >= sizes.n,
                           .positive = factors && b->planner->positive && b->plan->op != BATCHQR_GELS,
                           .m = sizes.m,
                           .n = sizes.n,
                           .k = sizes.k,
                           .count = c->count};
}

static batchqr_problem grown_problem(batchqr_problem problem, const batchqr_problem *by) {
  problem.m = bqr_max(problem.m, by->m);
  problem.n = bqr_max(problem.n, by->n);
  problem.k = bqr_max(problem.k, by->k);
  problem.count += by->count;
  problem.uniform = false;
  problem.tall = problem.tall && by->tall;
  return problem;
}

/* The newest group of this step with the choice takes the class, if it still supports what it grows to. */
static bool join_group(builder *b, int first_group, const bqr_choice *choice, const batchqr_problem *problem,
                       size_class *c) {
  for (int i = b->plan->num_groups - 1; i >= first_group; i--) {
    bqr_group *g = &b->plan->groups[i];
    if (g->family != choice->family || g->variant != choice->variant) continue;
    batchqr_problem grown = grown_problem(g->problem, problem);
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

static void name_source(bqr_group *g, const bqr_choice *choice, const bqr_table *table) {
  if (choice->rule)
    snprintf(g->source, sizeof g->source, "%.60s:%d", table->name, choice->rule->line);
  else
    snprintf(g->source, sizeof g->source, "%s", choice->forced ? "forced" : "heuristic");
}

static batchqr_status open_group(builder *b, const bqr_choice *choice, const batchqr_problem *problem,
                                 bool thin, size_class *c) {
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
                   .thin = thin,
                   .stage = b->stage,
                   .list = -1};
  snprintf(g->label, sizeof g->label, "%.39s %.39s", choice->family->name, choice->variant->name);
  name_source(g, choice, b->planner->table);
  if (plan->sorted) g->boxes = UINT64_C(1) << c->first;
  c->group = plan->num_groups++;
  return BATCHQR_SUCCESS;
}

static batchqr_status fail_unsupported(const builder *b, const batchqr_problem *p) {
  const batchqr_device *device = b->planner->device;
  return bqr_fail(b->error, BATCHQR_UNSUPPORTED, "no kernel family of this build does %s of %d x %d %c on %s",
                  bqr_op_name(p->op), p->m, p->n, "sdcz"[p->type],
                  device -> backend == BATCHQR_BACKEND_CPU ? "the CPU" : device->name);
}

/* Copies the members of the step's groups into lists, unless the step before has the same groups. */
static batchqr_status list_members(builder *b, int first_group) {
  struct batchqr_plan *plan = b->plan;
  size_t listed = 0;
  bool as_before = true;
  for (int64_t i = 0; i < b->num_classes; i++) {
    size_class *c = &b->classes[i];
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
  int64_t *next = new_array(b, num_groups, sizeof *next);
  if (!next) return BATCHQR_OUT_OF_MEMORY;
  for (int64_t i = 0; i < b->num_classes; i++) {
    const size_class *c = &b->classes[i];
    if (c->group < 0) continue;
    int64_t at = plan->groups[c->group].list + next[c->group - first_group];
    memcpy(lists + at, b->order + c->first, (size_t)c->count * sizeof *lists);
    next[c->group - first_group] += c->count;
  }
  free(next);
  return BATCHQR_SUCCESS;
}

/* Plans one step for the classes of this part of the batch that are not done. */
static batchqr_status plan_step(builder *b, step step) {
  int first_group = b->plan->num_groups;
  if (!step.beside) b->stage++;
  for (int64_t i = 0; i < b->num_classes; i++) {
    size_class *c = &b->classes[i];
    c->group = -1;
    if (c->done || c->away) continue;
    batchqr_problem problem = step_problem(b, &step, c);
    bqr_choice choice;
    batchqr_status status = bqr_choose(b->planner, &problem, c->similar, &choice, b->error);
    if (!status && !choice.family && !step.whole) status = fail_unsupported(b, &problem);
    if (!status && choice.family && !join_group(b, first_group, &choice, &problem, c))
      status = open_group(b, &choice, &problem, step.thin, c);
    if (status) return status;
  }
  return b->order && b->plan->num_groups > first_group ? list_members(b, first_group) : BATCHQR_SUCCESS;
}

static bool all_done(builder *b) {
  bool all = true;
  for (int64_t i = 0; i < b->num_classes; i++) {
    b->classes[i].done = b->classes[i].group >= 0;
    all = all && b->classes[i].done;
  }
  return all;
}

static batchqr_status plan_steps(builder *b, const step *steps, int count) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < count && !status; i++) status = plan_step(b, steps[i]);
  return status;
}

static batchqr_status plan_qr(builder *b) {
  static const step steps[] = {{.op = BATCHQR_GEQRF, .beside = true},
                               {.op = BATCHQR_COPY_R},
                               {.op = BATCHQR_COPY_V},
                               {.op = BATCHQR_ORGQR, .thin = true}};
  return plan_steps(b, steps, b->plan->op == BATCHQR_GEQR_R ? 2 : 4);
}

/* Leaves those members for this part of the batch that are worked on in copies, or those that are not. */
static bool enter_part(builder *b, bool copied) {
  bool any = false;
  for (int64_t i = 0; i < b->num_classes; i++) {
    b->classes[i].away = bqr_gels_copies(&b->plan->batch, b->classes[i].sizes) != copied;
    any = any || !(b->classes[i].away || b->classes[i].done);
  }
  return any;
}

/* See gels.c. Tall and wide members are of different kinds; with sizes on the device there may be both. */
static batchqr_status plan_gels(builder *b) {
  static const step first[] = {{.op = BATCHQR_UPRIGHT, .beside = true}, {.op = BATCHQR_GEQRF}};
  static const step least_norm[] = {{.op = BATCHQR_TRSM, .trans = BATCHQR_CONJ_TRANS}, {.op = BATCHQR_ORMQR}};
  static const step least_squares[] = {{.op = BATCHQR_ORMQR, .trans = BATCHQR_CONJ_TRANS},
                                       {.op = BATCHQR_TRSM}};
  const batchqr_batch *batch = &b->plan->batch;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int copied = 0; copied < 2; copied++) {
    bool both = batch->sizes == BATCHQR_DEVICE_SIZES, tall_system = !copied == !batch->trans;
    if (!enter_part(b, copied)) continue;
    step upright = first[0];
    upright.trans = batch->trans;
    status = plan_step(b, upright);
    if (!status) status = plan_step(b, first[1]);
    if (!status && (both || !tall_system)) status = plan_steps(b, least_norm, 2);
    if (!status && (both || tall_system)) status = plan_steps(b, least_squares, 2);
    if (status) return status;
  }
  return status;
}

/* In one step where a family does the whole operation, else in several. */
static batchqr_status plan_composed(builder *b) {
  batchqr_op op = b->plan->op;
  batchqr_status status = plan_step(b, (step){.op = (int)op, .whole = true, .trans = b->plan->batch.trans});
  if (status || all_done(b)) return status;
  b->needs_tau = true;
  return op == BATCHQR_GELS ? plan_gels(b) : plan_qr(b);
}

/* --- memory */

static batchqr_status fail_uncountable(const builder *b) {
  return bqr_fail(b->error, BATCHQR_UNSUPPORTED, "the workspace would need more bytes than can be counted");
}

bool bqr_reserve(size_t *end, size_t n, size_t size, size_t *at) {
  size_t bytes;
  *at = *end;
  if (__builtin_mul_overflow(n, size, &bytes) || __builtin_add_overflow(bytes, BQR_ALIGNMENT - 1, &bytes))
    return false;
  return !__builtin_add_overflow(*end, bytes - bytes % BQR_ALIGNMENT, end);
}

/* One tau for each member that is done in steps: at even distances with one size for all, else close-packed,
 * since one large member among many small ones must not multiply the space. */
static batchqr_status size_tau(builder *b) {
  struct batchqr_plan *plan = b->plan;
  int64_t elements = 0;
  for (int64_t i = 0; i < b->num_classes; i++) {
    const size_class *c = &b->classes[i];
    if (plan->sorted && i > 0) break; /* all members might be in the largest box */
    plan->stride_tau = bqr_min(c->sizes.m, c->sizes.n);
    int64_t more;
    if (__builtin_mul_overflow(c->count, plan->stride_tau, &more) ||
        __builtin_add_overflow(elements, more, &elements))
      return fail_uncountable(b);
  }
  if (__builtin_mul_overflow((size_t)elements, bqr_type_bytes(plan->batch.type), &plan->tau_bytes))
    return fail_uncountable(b);
  return BATCHQR_SUCCESS;
}

/* The upright copies of GELS, like tau. */
static bool size_gels(builder *b, size_t *end) {
  struct batchqr_plan *plan = b->plan;
  int64_t elements = 0;
  for (int64_t i = 0; i < b->num_classes; i++) {
    const size_class *c = &b->classes[i];
    int64_t more, each = (int64_t)c->sizes.m * c->sizes.n;
    if (plan->sorted && i > 0) break;
    if (!bqr_gels_copies(&plan->batch, c->sizes)) continue;
    plan->gels.stride = each;
    if (__builtin_mul_overflow(c->count, each, &more) || __builtin_add_overflow(elements, more, &elements))
      return false;
  }
  return bqr_gels_size(plan, elements, end);
}

/* Deals each stage's groups out to lanes, in their order, to the one that has least to do so far. What a
 * group takes is about its columns, one after another, and a launch. */
static void assign_lanes(struct batchqr_plan *plan) {
  enum { LAUNCH = 16 };
  const int most = plan->device.backend == BATCHQR_BACKEND_CUDA ? BQR_MOST_LANES : 1;
  int64_t loads[BQR_MOST_LANES] = {0};
  plan->num_lanes = 1;
  for (int i = 0; i < plan->num_groups; i++) {
    bqr_group *g = &plan->groups[i];
    if (i > 0 && g->stage != g[-1].stage) memset(loads, 0, sizeof loads);
    for (int lane = 1; lane < most; lane++)
      if (loads[lane] < loads[g->lane]) g->lane = lane;
    loads[g->lane] += LAUNCH + bqr_min(g->problem.m, g->problem.n);
    plan->num_lanes = bqr_max(plan->num_lanes, g->lane + 1);
  }
}

/* The families' workspaces, one for each lane. */
static bool size_families(struct batchqr_plan *plan, size_t *end) {
  size_t largest[BQR_MOST_LANES] = {0}, at[BQR_MOST_LANES];
  for (int i = 0; i < plan->num_groups; i++) {
    bqr_group *g = &plan->groups[i];
    if (g->family->workspace) g->workspace = g->family->workspace(&g->problem, g->variant, &plan->device);
    if (g->workspace > largest[g->lane]) largest[g->lane] = g->workspace;
  }
  for (int lane = 0; lane < plan->num_lanes; lane++)
    if (!bqr_reserve(end, largest[lane], 1, &at[lane])) return false;
  for (int i = 0; i < plan->num_groups; i++) plan->groups[i].workspace_at = at[plan->groups[i].lane];
  return true;
}

static batchqr_status size_workspace(builder *b) {
  struct batchqr_plan *plan = b->plan;
  batchqr_status status = b->needs_tau ? size_tau(b) : BATCHQR_SUCCESS;
  if (status) return status;
  size_t *end = &plan->workspace_bytes, start;
  bool gels = plan->op == BATCHQR_GELS && b->needs_tau;
  if (!bqr_reserve(end, plan->tau_bytes, 1, &start) || (gels && !size_gels(b, end)) ||
      (plan->sorted && !bqr_sort_size(plan, end)) || !size_families(plan, end))
    return fail_uncountable(b);
  return BATCHQR_SUCCESS;
}

/* The batch's arrays over members, by the places that point to them. */
enum { NUM_ARRAYS = 6 };
static void batch_arrays(batchqr_batch *batch, const int **arrays[NUM_ARRAYS]) {
  const int **const all[NUM_ARRAYS] = {&batch->m_array,    &batch->n_array,    &batch->k_array,
                                       &batch->a.ld_array, &batch->c.ld_array, &batch->r.ld_array};
  memcpy(arrays, all, sizeof all);
}

static int64_t *fill_tau_offsets(const builder *b, int64_t *offsets) {
  const batchqr_batch *batch = &b->plan->batch;
  int64_t next = 0;
  for (int64_t i = 0; i < batch->count; i++) {
    offsets[i] = next;
    next += bqr_min(batch->m_array[i], batch->n_array[i]);
  }
  return offsets;
}

/* Gathers all that execution and comparison need of the caller's size arrays. */
static batchqr_status make_image(builder *b) {
  struct batchqr_plan *plan = b->plan;
  batchqr_batch *batch = &plan->batch;
  if (batch->sizes != BATCHQR_HOST_SIZES || batch->count == 0) return BATCHQR_SUCCESS;
  const int **arrays[NUM_ARRAYS];
  batch_arrays(batch, arrays);
  size_t count = (size_t)batch->count, ints = b->num_listed;
  for (int i = 0; i < NUM_ARRAYS; i++) ints += *arrays[i] ? count : 0;
  bool offset = b->needs_tau && b->order, gels = offset && plan->op == BATCHQR_GELS;
  size_t offsets = gels ? 2 * count : offset ? count : 0;
  plan->image_bytes = offsets * sizeof(int64_t) + ints * sizeof(int);
  plan->image = new_array(b, 1, plan->image_bytes);
  if (!plan->image) return BATCHQR_OUT_OF_MEMORY;

  int *next = (int *)((int64_t *)plan->image + offsets);
  plan->reads_image = b->order || batch->a.ld_array || batch->c.ld_array || batch->r.ld_array;
  if (offset) plan->tau_offsets = fill_tau_offsets(b, plan->image);
  for (int i = 0; i < NUM_ARRAYS; i++) {
    if (!*arrays[i]) continue;
    *arrays[i] = memcpy(next, *arrays[i], count * sizeof(int));
    next += count;
  }
  if (gels) {
    int64_t *copies = (int64_t *)plan->image + count;
    bqr_gels_place(batch, copies);
    plan->gels.offsets = copies;
  }
  if (b->num_listed > 0) memcpy(next, b->lists, b->num_listed * sizeof(int));
  plan->lists = next;
  return BATCHQR_SUCCESS;
}

/* --- facts that an execute checks its operands against */

static void note_touched(struct batchqr_plan *plan) {
  int64_t members = plan->batch.count > 0 ? bqr_visible_members(&plan->batch) : 0;
  for (int64_t i = 0; i < members; i++)
    for (int x = 0; x < BQR_NUM_OPERANDS; x++) {
      bqr_sizes sizes = bqr_member_sizes(plan->op, &plan->batch, i);
      bqr_shape shape = bqr_operand_shape(plan->op, &plan->batch, x, sizes);
      if (bqr_op_uses(plan->op, x) && shape.rows > 0 && shape.cols > 0) plan->touches[x] = true;
      if (plan->op == BATCHQR_GELS) plan->most_rhs = bqr_max(plan->most_rhs, sizes.k);
    }
}

static bool stored_alike(const batchqr_batch *batch, const batchqr_storage *x, const batchqr_storage *y) {
  if (batch->count > 1 && x->stride != y->stride) return false;
  if (x->ld_array == y->ld_array) return x->ld_array || x->ld == y->ld;
  if (batch->sizes != BATCHQR_HOST_SIZES) return false;
  for (int64_t i = 0; i < batch->count; i++)
    if ((x->ld_array ? x->ld_array[i] : x->ld) != (y->ld_array ? y->ld_array[i] : y->ld)) return false;
  return true;
}

/* --- the whole */

static batchqr_status plan_members(builder *b) {
  struct batchqr_plan *plan = b->plan;
  batchqr_status status = make_classes(b);
  for (int64_t i = 0; i < b->num_classes && !status; i++) b->classes[i].previous = -2;
  bool composed = plan->op == BATCHQR_QR || plan->op == BATCHQR_GEQR_R || plan->op == BATCHQR_GELS;
  if (status) return status;
  return composed ? plan_composed(b) : plan_step(b, (step){.op = (int)plan->op, .trans = plan->batch.trans});
}

/* Sizes on the device: the first group sorts the members, where there are kernels for that, and where boxes
 * get different choices. Otherwise nothing is planned here. */
static batchqr_status plan_sorted(builder *b) {
  struct batchqr_plan *plan = b->plan;
  if (bqr_sort_boxes(plan->op, &plan->batch, &plan->sort) == 1) return BATCHQR_SUCCESS;
  if (!b->planner->sorts_always && !bqr_sort_pays(plan->op, &plan->batch)) return BATCHQR_SUCCESS;
  size_class all = {.sizes = bqr_member_sizes(plan->op, &plan->batch, 0), .count = plan->batch.count};
  batchqr_problem problem = step_problem(b, &(step){.op = BATCHQR_SORT}, &all);
  bqr_choice choice;
  batchqr_status status = bqr_choose(b->planner, &problem, plan->batch.count, &choice, b->error);
  if (status || !choice.family) return status;
  plan->sorted = true;
  status = open_group(b, &choice, &problem, false, &all);
  if (!status) status = plan_members(b);
  if (status == BATCHQR_OUT_OF_MEMORY || (!status && bqr_sort_list(plan))) return status;
  plan->sorted = b->needs_tau = false;
  plan->num_groups = 0;
  free(b->classes);
  b->classes = NULL;
  b->num_classes = 0;
  return BATCHQR_SUCCESS;
}

static batchqr_status build(builder *b) {
  struct batchqr_plan *plan = b->plan;
  if (plan->batch.sizes == BATCHQR_HOST_SIZES && plan->batch.count > INT_MAX)
    return bqr_fail(b->error, BATCHQR_UNSUPPORTED,
                    "batch.count = %lld: sizes in host arrays are limited to %d members",
                    (long long)plan->batch.count, INT_MAX);
  note_touched(plan);
  plan->a_and_c_alike = stored_alike(&plan->batch, &plan->batch.a, &plan->batch.c);
  plan->a_and_r_alike = stored_alike(&plan->batch, &plan->batch.a, &plan->batch.r);
  batchqr_status status = plan_sorted(b);
  if (!status && !plan->sorted) status = plan_members(b);
  assign_lanes(plan);
  if (!status) status = size_workspace(b);
  if (!status) status = make_image(b);
  return status ? status : bqr_plan_describe(b->planner, plan, b->error);
}

batchqr_status bqr_plan_new(const bqr_planner *planner, batchqr_op op, const batchqr_batch *batch,
                            struct batchqr_plan **plan, bqr_error *error) {
  *plan = NULL;
  struct batchqr_plan *p = calloc(1, sizeof *p);
  if (!p) return bqr_fail_memory(error, "the plan");
  p->op = op;
  p->batch = bqr_batch_normalized(op, batch);
  p->device = *planner->device;
  builder b = {.planner = planner, .plan = p, .error = error};
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

void bqr_plan_free(struct batchqr_plan *plan) {
  if (!plan) return;
  for (int i = 0; i < plan->num_groups; i++)
    if (plan->groups[i].state) plan->groups[i].family->close(plan->groups[i].state);
  bqr_lanes_free(plan->lanes);
  if (plan->resident != plan->image) bqr_memory_free(&plan->device, plan->resident);
  free(plan->image);
  free(plan->groups);
  free(plan->description);
  free(plan);
}

bool bqr_plan_same_sizes(const struct batchqr_plan *plan, const batchqr_batch *batch) {
  if (batch->sizes != BATCHQR_HOST_SIZES || batch->count == 0) return true;
  batchqr_batch mine = plan->batch, other = *batch;
  const int **x[NUM_ARRAYS], **y[NUM_ARRAYS];
  batch_arrays(&mine, x);
  batch_arrays(&other, y);
  for (int i = 0; i < NUM_ARRAYS; i++)
    if (*x[i] && memcmp(*x[i], *y[i], (size_t)batch->count * sizeof(int)) != 0) return false;
  return true;
}
