/* SPDX-License-Identifier: BSD-3-Clause */
#include "gels_rungs.h"
#include "batch.h"
#include "strided_member.h"

enum { MOST_MEMBERS = 64 }; /* which are enqueued one by one */

bqr_problem bqr_rungs_child(const bqr_problem *problem, int number) {
  bqr_problem child = *problem;
  child.role = BQR_ROLE_STEP;
  child.op = BATCHQR_GEQRF;
  child.whole = child.keeps_a = false;
  child.count = 1;
  child.children = NULL;
  child.num_children = 0;
  child.switched = true;
  if (number == BQR_RUNG_APPLY) {
    child.op = BATCHQR_ORMQR;
    child.side = BATCHQR_LEFT;
    child.trans = BATCHQR_CONJ_TRANS;
    child.n = problem->k;
    child.k = problem->n;
  }
  if (number == BQR_RUNG_RANGE) child.op = BQR_TRANSPOSE;
  if (number == BQR_RUNG_SOLVE) child.op = BATCHQR_TRSM;
  /* their sizes are 0 where nothing is left to do */
  if (number == BQR_RUNG_RANGE || number == BQR_RUNG_SOLVE) child.uniform = false;
  return child;
}

/* Blocks that wait for one another, and matrix units that heed a switch, are Hopper's. */
bool bqr_rungs_possible(const bqr_problem *problem, const bqr_device *device) {
  const bool emulated =
      problem->compute == BATCHQR_COMPUTE_AUTO || problem->compute == BATCHQR_COMPUTE_EMULATED;
  return emulated && device->sm == 90 && problem->uniform && !problem->pointers &&
         problem->trans == BATCHQR_NO_TRANS && problem->m >= problem->n && problem->n > 0 && problem->k > 0 &&
         problem->count <= MOST_MEMBERS;
}

/* --- memory */

void bqr_rungs_lay_out(const bqr_problem *problem, const bqr_device *device, bqr_arena *arena, bqr_rungs *t) {
  *t = (bqr_rungs){.problem = problem,
                   .device = device,
                   .refine = {.type = problem->type,
                              .m = problem->m,
                              .n = problem->n,
                              .k = problem->k,
                              .blocks = device->multiprocessors}};
  t->refine.state = bqr_arena_take(arena, 1, sizeof *t->refine.state);
  t->scales = bqr_arena_take(arena, 2, sizeof *t->scales);
  t->tau = bqr_arena_take(arena, problem->n, bqr_type_bytes(problem->type));
  t->children = bqr_arena_take(arena, 1, bqr_step_children_most(problem, 1, device));
  t->refine.scales = t->scales;
}

/* --- a member */

batchqr_status bqr_rungs_launch_child(const bqr_rungs *t, int number, bqr_args args) {
  args.workspace = t->children;
  return bqr_step_child_launch(t->problem, number, 1, t->device, args, t->states, t->stream);
}

void bqr_rungs_begin(bqr_rungs *t, const bqr_args *all, int64_t entry, batchqr_stream stream) {
  const bqr_problem *p = t->problem;
  const bqr_strided_member e = bqr_strided_member_at(all, bqr_type_bytes(p->type), entry);
  const int64_t id = all->host_members ? all->host_members[entry] : entry;
  t->states = all->state;
  t->stream = stream;
  t->norms = bqr_member_vector(&all->norms, id, bqr_real_bytes(p->type)).data;
  t->relres = bqr_member_vector(&all->relres, id, bqr_real_bytes(p->type)).data;
  t->iterations = bqr_member_vector(&all->iterations, id, sizeof *t->iterations).data;
  t->args = (bqr_args){.a = {.data = e.a, .ld = (int)e.lda},
                       .c = {.data = e.c, .ld = (int)e.ldc},
                       .tau = {.data = t->tau},
                       .norms = {.data = t->norms},
                       .info = e.info,
                       .scales = t->scales,
                       .m = p->m,
                       .n = p->n,
                       .k = p->k,
                       .count = 1};
  t->refine.a = e.a, t->refine.lda = e.lda;
  t->refine.b = e.c, t->refine.ldb = e.ldc;
  t->refine.alone = !t->norms && !t->relres;
}

/* With the sizes of what is left to do. */
static bqr_args args_of_left(const bqr_rungs *t) {
  bqr_refine_state *state = t->refine.state;
  bqr_args args = t->args;
  args.m_array = &state->m;
  args.n_array = &state->n;
  args.k_array = &state->k;
  return args;
}

batchqr_status bqr_rungs_bring_into_range(const bqr_rungs *t, bool left) {
  return bqr_rungs_launch_child(t, BQR_RUNG_RANGE, left ? args_of_left(t) : t->args);
}

batchqr_status bqr_rungs_solve_directly(const bqr_rungs *t) {
  bqr_args args = t->args, solve = args_of_left(t);
  args.off = solve.off = &t->refine.state->off;
  batchqr_status status = bqr_rungs_launch_child(t, BQR_RUNG_FACTOR, args);
  if (!status && !t->problem->children[BQR_RUNG_FACTOR].family->applies_q) {
    bqr_args apply = args;
    apply.n = t->problem->k;
    apply.k = t->problem->n;
    apply.info = NULL;
    status = bqr_rungs_launch_child(t, BQR_RUNG_APPLY, apply);
  }
  return status ? status : bqr_rungs_launch_child(t, BQR_RUNG_SOLVE, solve);
}

/* --- the children of a plan */

batchqr_status bqr_rungs_open(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device, void **state) {
  (void)variant;
  return bqr_step_children_open(problem, 1, device, state);
}

int bqr_rungs_launches(const bqr_problem *problem, const bqr_device *device) {
  int launches = 0;
  for (int i = 0; i < problem->num_children; i++) {
    if (i == BQR_RUNG_APPLY && problem->children[BQR_RUNG_FACTOR].family->applies_q) continue;
    launches += bqr_step_child_launches(problem, i, 1, device);
  }
  return launches;
}
