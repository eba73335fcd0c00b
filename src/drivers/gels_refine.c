/* SPDX-License-Identifier: BSD-3-Clause */
/* Least squares of large members that are not wide: R is made in arithmetic that is faster than the working
 * precision's, and CGLS with it as preconditioner brings X to what QR in the working precision would give
 * (kernels/refine/refine.h, decision 32). A member for which it does not is solved as ever: that way is
 * enqueued, too, behind a switch on the device (bqr_args.off).
 *
 * Variants: how many rungs there are, the last of them the direct way; before it R from FP16 products, and,
 * of double precision, from single precision's. */
#include "arena.h"
#include "batch.h"
#include "costs.h"
#include "refine/refine.h"
#include "strided_member.h"
#include <math.h>
#include <stdlib.h>

enum { MOST_MEMBERS = 64, MOST_STEPS = 100, LEAST_STEPS = 12 };

static const bqr_variant variants[] = {{.name = "by2", .by = 2}, {.name = "by3", .by = 3}};

/* --- children: the first one must be there for a variant to serve */

enum { DIRECT, APPLY, SOLVE, RANGE, HALF, SINGLE, NUM_CHILDREN };

static batchqr_type single_of(batchqr_type type) { return type == BATCHQR_D ? BATCHQR_S : type; }

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  (void)device;
  if (number > (variant->by == 3 ? SINGLE : HALF)) return false;
  *child = *problem;
  child->role = BQR_ROLE_STEP;
  child->whole = child->keeps_a = false;
  child->count = 1;
  child->children = NULL;
  child->num_children = 0;
  switch (number) {
  case DIRECT:
    child->op = BATCHQR_GEQRF;
    child->switched = true;
    break;
  case APPLY:
    child->op = BATCHQR_ORMQR;
    child->side = BATCHQR_LEFT;
    child->trans = BATCHQR_CONJ_TRANS;
    child->n = problem->k;
    child->k = problem->n;
    break;
  case SOLVE: /* its sizes are 0 where nothing is left to do */
    child->op = BATCHQR_TRSM;
    child->uniform = false;
    break;
  case RANGE:
    child->op = BQR_TRANSPOSE;
    break;
  default:
    child->op = BATCHQR_GEQRF;
    child->type = single_of(problem->type);
    child->compute = number == HALF ? BATCHQR_COMPUTE_HALF : problem->compute;
    child->switched = number == SINGLE;
    child->k = 0;
  }
  return true;
}

/* --- a launch */

typedef struct work {
  bqr_refine refine;
  double *scales;
  void *tau, *low_tau, *children; /* children: their workspace, one after the other */
  size_t bytes;
} work;

static size_t children_bytes(const bqr_problem *problem, const bqr_device *device) {
  size_t most = 0;
  for (int i = 0; i < problem->num_children; i++) {
    const bqr_child *c = &problem->children[i];
    const size_t bytes = c->family->workspace ? c->family->workspace(&c->problem, c->variant, device) : 0;
    if (bytes > most) most = bytes;
  }
  return most;
}

static void lay_out(const bqr_problem *problem, const bqr_device *device, void *base, work *w) {
  bqr_arena arena = {base, 0};
  const size_t low = bqr_type_bytes(single_of(problem->type));
  *w = (work){.refine = {.type = problem->type,
                         .m = problem->m,
                         .n = problem->n,
                         .k = problem->k,
                         .blocks = device->multiprocessors,
                         .ldcopy = bqr_aligned_ld(problem->m)}};
  bqr_refine *r = &w->refine;
  r->state = bqr_arena_take(&arena, 1, sizeof *r->state);
  w->scales = bqr_arena_take(&arena, 2, sizeof *w->scales);
  w->tau = bqr_arena_take(&arena, problem->n, bqr_type_bytes(problem->type));
  w->low_tau = bqr_arena_take(&arena, problem->n, low);
  r->copy = bqr_arena_take(&arena, r->ldcopy, (size_t)problem->n * low);
  r->memory = bqr_arena_take(&arena, 1, bqr_refine_bytes(r));
  w->children = bqr_arena_take(&arena, 1, children_bytes(problem, device));
  r->scales = w->scales;
  w->bytes = arena.bytes;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  work w;
  (void)variant;
  lay_out(problem, device, NULL, &w);
  return w.bytes;
}

/* What one member's launches have in common. */
typedef struct task {
  const bqr_problem *problem;
  const bqr_device *device;
  void **states; /* of the children */
  work w;
  bqr_args args; /* the member's, as if it were alone */
  int most;      /* steps */
  batchqr_stream stream;
} task;

static batchqr_status launch_child(const task *t, int number, bqr_args args) {
  const bqr_child *c = &t->problem->children[number];
  args.workspace = t->w.children;
  args.state = t->states[number];
  return c->family->launch(&c->problem, c->variant, t->device, &args, t->stream);
}

/* The copy of A becomes R. */
static batchqr_status climb(const task *t, int rung) {
  const bqr_refine *r = &t->w.refine;
  const bqr_args copy = {.a = {.data = r->copy, .ld = (int)r->ldcopy},
                         .tau = {.data = t->w.low_tau},
                         .m = r->m,
                         .n = r->n,
                         .count = 1,
                         .off = rung == SINGLE ? &r->state->off : NULL};
  batchqr_status status = bqr_refine_begin(r, rung == SINGLE, t->stream);
  if (!status) status = launch_child(t, rung, copy);
  if (!status) status = bqr_refine_invert(r, t->stream);
  if (!status) status = bqr_refine_iterate(r, t->most, t->stream);
  return status ? status : bqr_refine_judge(r, t->stream);
}

static batchqr_status solve_directly(const task *t) {
  bqr_refine_state *state = t->w.refine.state;
  bqr_args args = t->args;
  args.off = &state->off;
  batchqr_status status = launch_child(t, DIRECT, args);
  if (!status && !t->problem->children[DIRECT].family->applies_q) {
    bqr_args apply = args;
    apply.n = t->problem->k;
    apply.k = t->problem->n;
    apply.info = NULL;
    status = launch_child(t, APPLY, apply);
  }
  args.m_array = &state->m;
  args.n_array = &state->n;
  args.k_array = &state->k;
  return status ? status : launch_child(t, SOLVE, args);
}

static void *element_of(const bqr_vector *x, int64_t id, size_t size) {
  return x->data ? (char *)x->data + id * x->stride * (int64_t)size : NULL;
}

static batchqr_status solve_member(task *t, const bqr_args *all, int64_t entry) {
  const bqr_problem *p = t->problem;
  const bqr_strided_member e = bqr_strided_member_at(all, bqr_type_bytes(p->type), entry);
  const int64_t id = all->host_members ? all->host_members[entry] : entry;
  void *norms = element_of(&all->norms, id, bqr_real_bytes(p->type));
  t->args = (bqr_args){.a = {.data = e.a, .ld = (int)e.lda},
                       .c = {.data = e.c, .ld = (int)e.ldc},
                       .tau = {.data = t->w.tau},
                       .norms = {.data = norms},
                       .info = e.info,
                       .scales = t->w.scales,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .count = 1};
  bqr_refine *r = &t->w.refine;
  r->a = e.a, r->lda = e.lda;
  r->b = e.c, r->ldb = e.ldc;
  batchqr_status status = launch_child(t, RANGE, t->args);
  for (int rung = HALF; rung < p->num_children && !status; rung++) status = climb(t, rung);
  if (!status) status = solve_directly(t);
  return status ? status : bqr_refine_end(r, e.c, norms, e.info, NULL, NULL, t->stream);
}

/* So many that they take half of the time of the direct way. */
static int most_steps(const bqr_problem *problem, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double m = problem->m, n = problem->n;
  const double ps = problem->type == BATCHQR_D ? costs->native.double_ps : costs->native.single_ps;
  const double direct_us = n * n * (m - n / 3) * ps * 1e-6;
  const double bytes = 2 * m * n * (double)bqr_type_bytes(problem->type);
  const double step_us =
      costs->refine.step_us + costs->refine.column_ns * 1e-3 * n + bytes * costs->members.byte_ps * 1e-6;
  const double steps = direct_us / 2 / step_us;
  return steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : (int)steps;
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant;
  task t = {.problem = problem,
            .device = device,
            .states = args->state,
            .most = most_steps(problem, device),
            .stream = stream};
  lay_out(problem, device, args->workspace, &t.w);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t entry = 0; entry < args->count && !status; entry++) status = solve_member(&t, args, entry);
  return status;
}

/* --- the family */

/* Whose operands have addresses on the host. Blocks that wait for one another and FP16 units that heed a
 * switch are Hopper's. */
static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bool real = problem->type == BATCHQR_S || problem->type == BATCHQR_D;
  const bool emulated =
      problem->compute == BATCHQR_COMPUTE_AUTO || problem->compute == BATCHQR_COMPUTE_EMULATED;
  return real && emulated && device->sm == 90 && (device->types >> single_of(problem->type) & 1) &&
         problem->uniform && !problem->pointers && problem->trans == BATCHQR_NO_TRANS &&
         problem->m >= problem->n && problem->n > 0 && problem->k > 0 && problem->k <= BQR_REFINE_MOST &&
         problem->count <= MOST_MEMBERS && (variant->by == 2 || problem->type == BATCHQR_D);
}

/* Where R from FP16 products and a few steps take less time than the direct way. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double least = problem->type == BATCHQR_D ? costs->refine.double_cols : costs->refine.single_cols;
  return problem->n >= least && problem->m <= costs->refine.rows_per_col * problem->n &&
         problem->k <= BQR_REFINE_COLUMNS &&
         variant->by == (problem->type == BATCHQR_D && problem->n >= costs->refine.by3_cols ? 3 : 2);
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  batchqr_status status = bqr_refine_prepare(problem->type, problem->k);
  for (int i = 0; i < problem->num_children && !status; i++) {
    const bqr_child *c = &problem->children[i];
    if (c->family->prepare) status = c->family->prepare(&c->problem, c->variant, device);
  }
  return status;
}

/* The children's states, and behind them what closes them. */
typedef struct states {
  void *of[NUM_CHILDREN];
  void (*close[NUM_CHILDREN])(void *);
} states;

static void close_children(void *state) {
  states *all = state;
  for (int i = 0; all && i < NUM_CHILDREN; i++)
    if (all->of[i]) all->close[i](all->of[i]);
  free(all);
}

static batchqr_status open_children(const bqr_problem *problem, const bqr_variant *variant,
                                    const bqr_device *device, void **state) {
  (void)variant;
  states *all = calloc(1, sizeof *all);
  *state = all;
  if (!all) return BATCHQR_OUT_OF_MEMORY;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < problem->num_children && !status; i++) {
    const bqr_child *c = &problem->children[i];
    all->close[i] = c->family->close;
    if (c->family->open) status = c->family->open(&c->problem, c->variant, device, &all->of[i]);
  }
  return status;
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  work w;
  lay_out(problem, device, NULL, &w);
  int launches = bqr_refine_launches(&w.refine, variant->by - 1);
  for (int i = 0; i < problem->num_children; i++) {
    const bqr_child *c = &problem->children[i];
    if (i == APPLY && problem->children[DIRECT].family->applies_q) continue;
    launches += c->family->count_launches ? c->family->count_launches(&c->problem, c->variant, device)
                                          : c->family->launches;
  }
  return (int)problem->count * launches;
}

const bqr_family bqr_family_gels_refine = {
    .name = "gels_refine",
    .op = BATCHQR_GELS,
    .types = 1 << BATCHQR_S | 1 << BATCHQR_D,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_children,
    .close = close_children,
    .count_launches = count_launches,
    .prefers = prefers,
    .follows_mode = true,
    .child = child,
    .only_where_good = true,
};
