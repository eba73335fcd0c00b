/* SPDX-License-Identifier: BSD-3-Clause */
/* Singular values of tall members, for which reading A is what takes time: by the eigenvalues of A^H A where
 * these say that A is well-conditioned, see kernels/refine/tall_values.h, else by QR and the SVD of R. The
 * device decides that: all is enqueued for all members, and the way by QR finds nothing to do where the other
 * one was taken. Where U or V are to take A's place, QR works on a copy. */
#include "arena.h"
#include "batch.h"
#include "costs.h"
#include "refine/tall.h"
#include "refine/tall_values.h"
#include "step_children.h"
#include "strided_member.h"
#include "wy/wy.h"

enum { MOST_MEMBERS = 64 }; /* which are enqueued one by one */

/* The most columns. */
static const bqr_variant variants[] = {{.name = "cols1024", .cols = BQR_REFINE_BLOCK}};

/* QR and Q [W; 0], which heed a switch; A^H A's eigenvalues; signs; of many columns A Z S^-1; last the SVD of
 * R, of sizes 0 where there is none. */
enum { FACTOR, APPLY, EIGENVALUES, TURN, MULTIPLY, CORE, NUM_CHILDREN };

static bool has_product(const bqr_problem *problem) { return problem->n > BQR_TALL_VALUES_PRODUCT; }

static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  static const int ops[] = {BATCHQR_GEQRF, BATCHQR_ORMQR, BATCHQR_SYEVD,
                            BQR_TURN,      BQR_MULTIPLY,  BATCHQR_GESVD};
  (void)variant, (void)device;
  if (number >= MULTIPLY && !has_product(problem)) number++;
  if (number >= NUM_CHILDREN) return false;
  *child = (bqr_problem){.op = ops[number],
                         .role = number == CORE ? BQR_ROLE_PANEL : BQR_ROLE_STEP,
                         .type = number == EIGENVALUES ? BATCHQR_D : problem->type,
                         .compute = problem->compute,
                         .side = BATCHQR_LEFT,
                         .trans = BATCHQR_NO_TRANS,
                         .uplo = BATCHQR_UPPER,
                         .uniform = number != CORE,
                         .tall = true,
                         .vectors = number == EIGENVALUES,
                         .switched = number == FACTOR || number == APPLY,
                         .m = number == EIGENVALUES || number == CORE ? problem->n : problem->m,
                         .n = problem->n,
                         .k = number == APPLY || number == MULTIPLY ? problem->n : 0,
                         .count = 1,
                         .workspace_limit = 0};
  return true;
}

/* --- memory */

typedef struct work {
  const bqr_problem *problem;
  const bqr_device *device;
  const void *states; /* of the children, see step_children.h */
  bqr_refine refine;  /* for A^H A */
  bqr_tall_values values;
  char *copy, *tau, *children; /* children: their workspace, one after the other */
  int64_t ldcopy;
  bqr_args args; /* the member's, as if it were alone */
  batchqr_stream stream;
} work;

static size_t lay_out(const bqr_problem *problem, const bqr_device *device, void *base, work *w) {
  const size_t size = bqr_type_bytes(problem->type);
  const int64_t n = problem->n;
  bqr_arena arena = {base, 0};
  *w = (work){
      .problem = problem,
      .device = device,
      .refine = {.type = problem->type, .m = problem->m, .n = problem->n, .blocks = device->multiprocessors},
      .values = {.type = problem->type, .m = problem->m, .n = problem->n},
      .ldcopy = bqr_aligned_ld(problem->m)};
  bqr_tall_values *v = &w->values;
  v->state = w->refine.state = bqr_arena_take(&arena, 1, sizeof *v->state);
  v->failed = bqr_arena_take(&arena, 1, sizeof *v->failed);
  v->w = bqr_arena_take(&arena, n, sizeof *v->w);
  v->z = bqr_arena_take(&arena, n * n, sizeof *v->z);
  v->right = bqr_arena_take(&arena, n * n, size);
  v->wide_right = bqr_arena_take(&arena, n * n, sizeof *v->wide_right);
  v->core = bqr_arena_take(&arena, n * n, size);
  v->left = bqr_arena_take(&arena, n * n, size);
  w->tau = bqr_arena_take(&arena, n, size);
  v->ldlifted = w->ldcopy;
  v->lifted = bqr_arena_take(&arena, w->ldcopy * n, size);
  w->copy = bqr_arena_take(&arena, w->ldcopy * n, size);
  w->children = bqr_arena_take(&arena, 1, bqr_step_children_most(problem, 1, device));
  w->refine.memory = bqr_arena_take(&arena, 1, bqr_tall_bytes(&w->refine));
  return arena.bytes;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  work w;
  (void)variant;
  return lay_out(problem, device, NULL, &w);
}

/* --- a member */

static batchqr_status launch_child(const work *w, int number, bqr_args args) {
  args.workspace = w->children;
  return bqr_step_child_launch(w->problem, number, 1, w->device, args, w->states, w->stream);
}

static bqr_matrix square(void *data, int n) { return (bqr_matrix){.data = data, .row_stride = 1, .ld = n}; }

static batchqr_status begin(work *w, const bqr_args *all, int64_t entry, batchqr_stream stream) {
  const bqr_problem *p = w->problem;
  const size_t size = bqr_type_bytes(p->type);
  const int64_t id = all->host_members ? all->host_members[entry] : entry;
  w->states = all->state;
  w->stream = stream;
  w->args = (bqr_args){.a = bqr_member_matrix(&all->a, id, size),
                       .s = bqr_member_vector(&all->s, id, bqr_real_bytes(p->type)),
                       .u = bqr_member_matrix(&all->u, id, size),
                       .v = bqr_member_matrix(&all->v, id, size),
                       .tau = {.data = w->tau},
                       .rank = bqr_member_vector(&all->rank, id, sizeof(int)),
                       .info = all->info ? all->info + id : NULL,
                       .m = p->m,
                       .n = p->n,
                       .k = p->n,
                       .kmax = all->kmax,
                       .abstol = all->abstol,
                       .reltol = all->reltol};
  bqr_matrix *a = &w->args.a;
  const bool replaced = a->data == w->args.u.data || a->data == w->args.v.data,
             first = has_product(p) && a->data == w->args.u.data;
  batchqr_status status = BATCHQR_SUCCESS;
  bqr_tall_values *v = &w->values;
  if (first) status = bqr_wy_copy(p->type, p->m, p->n, a->data, a->ld, w->copy, w->ldcopy, stream);
  w->refine.a = v->a = first ? w->copy : a->data;
  w->refine.lda = v->lda = first ? w->ldcopy : a->ld;
  v->factored = replaced ? w->copy : a->data;
  v->ldfactored = replaced ? w->ldcopy : a->ld;
  v->copies = replaced && !first;
  v->s = w->args.s.data;
  v->u = w->args.u.data, v->ldu = w->args.u.ld;
  v->v = w->args.v.data, v->ldv = w->args.v.ld;
  v->rank = w->args.rank.data;
  v->kmax = all->kmax, v->abstol = all->abstol, v->reltol = all->reltol;
  return status;
}

/* S and V in the workspace, and U. */
static batchqr_status solve_by_eigenvalues(work *w) {
  const int n = w->problem->n;
  bqr_tall_values values = w->values;
  if (!values.u && !values.v) values.z = NULL;
  const bqr_args eigenvalues = {.a = square(bqr_tall_gram_of(&w->refine), BQR_REFINE_BLOCK),
                                .s = {.data = values.w},
                                .v = square(values.z, n),
                                .info = values.failed,
                                .m = n,
                                .n = n};
  batchqr_status status = bqr_tall_gram(&w->refine, w->stream);
  if (!status) status = launch_child(w, EIGENVALUES, eigenvalues);
  if (!status) status = bqr_tall_values_judge(&values, w->stream);
  if (status || !values.u) return status;
  if (!has_product(w->problem)) return bqr_tall_values_multiply(&values, w->device, w->stream);
  bqr_args multiply = w->args;
  multiply.info = NULL;
  multiply.a = (bqr_matrix){.data = (void *)w->refine.a, .row_stride = 1, .ld = (int)w->refine.lda};
  multiply.c = w->args.u;
  multiply.r = square(values.right, n);
  return launch_child(w, MULTIPLY, multiply);
}

/* A is destroyed, and info written, in any case. */
static batchqr_status solve_by_qr(work *w) {
  bqr_refine_state *state = w->values.state;
  bqr_args factor = w->args, core = w->args, apply = w->args;
  factor.off = apply.off = &state->off;
  factor.a = apply.a =
      (bqr_matrix){.data = w->values.factored, .row_stride = 1, .ld = (int)w->values.ldfactored};
  factor.info = apply.info = NULL;
  core.a = square(w->values.core, w->problem->n);
  core.u = square(w->values.u ? w->values.left : NULL, w->problem->n);
  core.m_array = &state->m;
  core.n_array = &state->n;
  core.m = w->problem->n;
  apply.c = (bqr_matrix){.data = w->values.lifted, .row_stride = 1, .ld = (int)w->values.ldlifted};
  batchqr_status status = w->values.copies ? bqr_tall_values_copy(&w->values, w->stream) : BATCHQR_SUCCESS;
  if (!status) status = launch_child(w, FACTOR, factor);
  if (!status) status = bqr_tall_values_core(&w->values, w->stream);
  if (!status) status = launch_child(w, w->problem->num_children - 1, core);
  if (status || !w->values.u) return status;
  status = bqr_tall_values_lift(&w->values, w->stream);
  if (!status) status = launch_child(w, APPLY, apply);
  return status ? status : bqr_tall_values_store(&w->values, w->stream);
}

static batchqr_status solve_member(work *w, const bqr_args *all, int64_t entry, batchqr_stream stream) {
  batchqr_status status = begin(w, all, entry, stream);
  if (!status) status = solve_by_eigenvalues(w);
  if (!status) status = solve_by_qr(w);
  if (!status) status = bqr_tall_values_end(&w->values, stream);
  if (status || !w->values.u || w->values.v) return status;
  bqr_args turn = w->args;
  turn.c = w->args.u;
  return launch_child(w, TURN, turn);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  work w;
  (void)variant;
  lay_out(problem, device, args->workspace, &w);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t entry = 0; entry < args->count && !status; entry++)
    status = solve_member(&w, args, entry, stream);
  return status;
}

/* --- the family */

/* Products that heed a switch are emulated ones, on Hopper's matrix units. */
static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bool emulated =
      problem->compute == BATCHQR_COMPUTE_AUTO || problem->compute == BATCHQR_COMPUTE_EMULATED;
  return emulated && device->sm == 90 && (device->types >> BATCHQR_D & 1) && problem->role == BQR_ROLE_STEP &&
         problem->uniform && !problem->pointers && problem->n > 0 && problem->n <= variant->cols &&
         problem->m >= 4 * problem->n && problem->count <= MOST_MEMBERS;
}

enum { LEAST_COLS = 64, LEAST_ELEMENTS = 1 << 22 };

/* Where columns are so high that launches do not count. What this saves of the time of QR and the SVD of R on
 * an NVIDIA H200: s / d 1048576 x 128 3.7 / 3.2, 262144 x 256 3.2 / 3.2, 524288 x 1024 3.5 / 2.8, 65536 x
 * 64 1.13 / 1.3; s 131072 x 100 2.0; but d 131072 x 128 of condition number 1e10 takes 1.44 times as long. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return problem->n >= LEAST_COLS && problem->m >= bqr_costs_of(device)->refine.tall_rows &&
         (double)problem->m * problem->n >= LEAST_ELEMENTS;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  batchqr_status status = bqr_tall_gram_prepare(problem->type);
  if (!status) status = bqr_tall_values_prepare(problem->type);
  if (!status) status = bqr_wy_prepare(problem->type);
  return status ? status : bqr_step_children_prepare(problem, 1, device);
}

static batchqr_status open_states(const bqr_problem *problem, const bqr_variant *variant,
                                  const bqr_device *device, void **state) {
  (void)variant;
  return bqr_step_children_open(problem, 1, device, state);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  int launches = bqr_tall_gram_launches(problem->n) + BQR_TALL_VALUES_LAUNCHES;
  (void)variant;
  for (int i = 0; i < problem->num_children; i++) launches += bqr_step_child_launches(problem, i, 1, device);
  return (int)problem->count * launches;
}

const bqr_family bqr_family_gesvd_tall = {
    .name = "gesvd_tall",
    .op = BATCHQR_GESVD,
    .types = 1 << BATCHQR_S | 1 << BATCHQR_D,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_states,
    .close = bqr_step_children_close,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
    .follows_mode = true,
    .only_where_good = true,
};
