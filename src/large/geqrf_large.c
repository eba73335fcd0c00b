/* SPDX-License-Identifier: BSD-3-Clause */
/* Large members, one after another: right-looking over wide blocks of columns, each factored recursively
 * (Elmroth and Gustavson: the left half, its update of the right half, the right half, and T of both from
 * T of each), so that all but the panels of 32 columns are matrix products. These are the engine's, see
 * gemm.h, in the arithmetic that the compute mode permits, or, where they are small, those of wy.h.
 *
 * How a library sums may depend on how its operands are aligned, and a member's result must not depend on its
 * place: a member whose columns are not aligned is factored in an aligned copy. */
#include "batch.h"
#include "gemm.h"
#include "steps.h"
#include "wy.h"
#include <stdlib.h>

enum { WIDTH = BATCHQR_BLOCK_WIDTH, ALIGNMENT = 16, MOST_MEMBERS = 1024 };

/* Up to so many rows, what narrow products take is latency, and the kernels of wy.h are faster. */
enum { LOW = 8192 };

/* Columns of a wide block. */
static const batchqr_variant variants[] = {
    {"cols256", {256}}, {"cols64", {64}}, {"cols512", {512}}, {"cols1024", {1024}}, {"cols2048", {2048}}};

static const bqr_panel_rule rule = {.rows = 0, .wide = true};

/* What a plan keeps. */
typedef struct shared {
  bqr_gemm_engine *engine;
  bqr_panel *panels;
} shared;

/* One member's factorization. */
typedef struct task {
  batchqr_problem problem; /* of this member alone */
  batchqr_args args;       /* likewise */
  bqr_steps steps;
  bqr_gemm_engine *engine;
  batchqr_stream stream;
  size_t size;       /* of an element */
  int width, origin; /* the wide block's columns, and its first row and column */
  char *a, *v, *t, *w1, *w2;
  int64_t lda, ldv, ldt;
  void *copy; /* of the member, with leading dimension ldv */
  void *gemm;
  size_t gemm_bytes;
  void *sums; /* of blocks of the kernels in wy.h */
  int *counters;
} task;

static bqr_gemm product(const task *t, bool adjoint, int64_t m, int64_t n, int64_t k) {
  return (bqr_gemm){.type = t->problem.type,
                    .mode = t->problem.compute,
                    .adjoint_a = adjoint,
                    .m = m,
                    .n = n,
                    .k = k,
                    .alpha = 1};
}

static size_t lay_out(const batchqr_problem *problem, const batchqr_variant *variant,
                      const batchqr_device *device, const bqr_panel *chosen, void *base, task *t) {
  bqr_arena arena = {base, 0};
  *t = (task){.problem = *problem, .size = bqr_type_bytes(problem->type)};
  t->problem.count = 1;
  t->width = bqr_min(variant->p[0], (bqr_min(problem->m, problem->n) + WIDTH - 1) / WIDTH * WIDTH);
  t->steps = bqr_steps_of(&t->problem, device, rule, chosen, &arena);
  t->ldv = ((int64_t)problem->m + 15) / 16 * 16;
  t->ldt = t->width;
  const int64_t wide = bqr_max(problem->n, t->width);
  t->v = bqr_arena_take(&arena, t->ldv, (size_t)t->width * t->size);
  t->t = bqr_arena_take(&arena, t->ldt, (size_t)t->width * t->size);
  t->w1 = bqr_arena_take(&arena, t->ldt, (size_t)wide * t->size);
  t->w2 = bqr_arena_take(&arena, t->ldt, (size_t)wide * t->size);
  t->sums = bqr_arena_take(&arena, BATCHQR_WY_SUMS, t->size);
  t->counters = bqr_arena_take(&arena, BATCHQR_WY_COUNTERS, sizeof(int));
  const bqr_gemm largest[] = {product(t, true, t->width, wide, problem->m),
                              product(t, false, problem->m, wide, t->width)};
  for (int i = 0; i < 2; i++) {
    size_t bytes = bqr_gemm_workspace(&largest[i]);
    if (bytes > t->gemm_bytes) t->gemm_bytes = bytes;
  }
  t->gemm = bqr_arena_take(&arena, 1, t->gemm_bytes);
  t->copy = bqr_arena_take(&arena, t->ldv, (size_t)problem->n * t->size);
  return arena.bytes;
}

/* Addresses of elements; V's and T's rows and columns are counted as A's. */
static char *in_a(const task *t, int i, int j) { return t->a + (size_t)(i + j * t->lda) * t->size; }
static char *in_v(const task *t, int i, int j) {
  return t->v + (size_t)(i - t->origin + (j - t->origin) * t->ldv) * t->size;
}
static char *in_t(const task *t, int i, int j) {
  return t->t + (size_t)(i - t->origin + (j - t->origin) * t->ldt) * t->size;
}

static batchqr_status multiply(const task *t, bqr_gemm g, const void *a, int64_t lda, const void *b,
                               int64_t ldb, void *c, int64_t ldc) {
  g.a = a;
  g.b = b;
  g.c = c;
  g.lda = lda;
  g.ldb = ldb;
  g.ldc = ldc;
  return bqr_gemm_enqueue(t->engine, &g, t->gemm, t->gemm_bytes, t->stream);
}

/* Products that are not the engine's. */
static bool is_narrow(int rows, int k, int n) {
  return rows <= LOW && k <= BATCHQR_WY_NARROW && n <= BATCHQR_WY_NARROW;
}

/* Reflectors of the steps s0 .. s1. */
static int reflectors(const task *t, int s0, int s1) {
  return bqr_min(s1 * WIDTH, bqr_min(t->problem.m, t->problem.n)) - s0 * WIDTH;
}

/* w2 := T^H V^H C or, where `negative`, -T V^H C. */
static batchqr_status project(const task *t, batchqr_wy_product p) {
  p.ldt = p.ldto = t->ldt;
  p.to = t->w2;
  if (is_narrow(p.rows, p.k, p.n)) return batchqr_wy_multiply(t->problem.type, &p, t->sums, t->stream);
  batchqr_status status =
      multiply(t, product(t, true, p.k, p.n, p.rows), p.v, p.ldv, p.c, p.ldc, t->w1, t->ldt);
  if (status) return status;
  bqr_gemm last = product(t, !p.negative, p.k, p.n, p.k);
  last.alpha = p.negative ? -1 : 1;
  return multiply(t, last, p.t, t->ldt, t->w1, t->ldt, t->w2, t->ldt);
}

/* Columns from .. to of A := (I - V T^H V^H) A, with the reflectors of the steps s0 .. s1. */
static batchqr_status update(const task *t, int s0, int s1, int from, int to) {
  const int first = s0 * WIDTH, k = reflectors(t, s0, s1), rows = t->problem.m - first, cols = to - from;
  if (cols <= 0) return BATCHQR_SUCCESS;
  const char *v = in_v(t, first, first);
  char *c = in_a(t, first, from);
  batchqr_status status = project(t, (batchqr_wy_product){.rows = rows,
                                                          .k = k,
                                                          .n = cols,
                                                          .v = v,
                                                          .ldv = t->ldv,
                                                          .c = c,
                                                          .ldc = t->lda,
                                                          .t = in_t(t, first, first)});
  if (status) return status;
  if (is_narrow(rows, k, cols)) {
    const batchqr_wy_update u = {rows, k, cols, v, t->w2, c, t->ldv, t->ldt, t->lda};
    return batchqr_wy_subtract(t->problem.type, &u, t->stream);
  }
  bqr_gemm last = product(t, false, rows, cols, k);
  last.alpha = -1;
  last.beta = 1;
  return multiply(t, last, v, t->ldv, t->w2, t->ldt, c, t->lda);
}

/* T of the steps s0 .. s1 from those of s0 .. mid and mid .. s1: above its diagonal -T1 (V1^H V2) T2. */
static batchqr_status merge(const task *t, int s0, int mid, int s1) {
  const int first = s0 * WIDTH, second = mid * WIDTH, rows = t->problem.m - second;
  const int k1 = reflectors(t, s0, mid), k2 = reflectors(t, mid, s1);
  batchqr_status status = project(t, (batchqr_wy_product){.rows = rows,
                                                          .k = k1,
                                                          .n = k2,
                                                          .negative = true,
                                                          .v = in_v(t, second, first),
                                                          .ldv = t->ldv,
                                                          .c = in_v(t, second, second),
                                                          .ldc = t->ldv,
                                                          .t = in_t(t, first, first)});
  if (status) return status;
  if (is_narrow(rows, k1, k2))
    return batchqr_wy_unite(t->problem.type, k1, k2, t->w2, in_t(t, second, second), in_t(t, first, second),
                            t->ldt, t->stream);
  return multiply(t, product(t, false, k1, k2, k2), t->w2, t->ldt, in_t(t, second, second), t->ldt,
                  in_t(t, first, second), t->ldt);
}

/* Whether there are columns right of a step's. */
static bool is_applied(const task *t, int step) { return (step + 1) * WIDTH < t->problem.n; }

static batchqr_status factor_panel(const task *t, int step) {
  const int first = step * WIDTH;
  batchqr_status status = bqr_steps_panel(&t->steps, &t->args, step, t->stream);
  if (status || !is_applied(t, step)) return status;
  batchqr_wy_panel panel = {.rows = t->problem.m - t->origin,
                            .cols = t->width,
                            .at = first - t->origin,
                            .width = reflectors(t, step, step + 1),
                            .a = in_a(t, t->origin, t->origin),
                            .lda = t->lda,
                            .tau = (const char *)t->args.tau + (size_t)first * t->size,
                            .v = t->v,
                            .t = t->t,
                            .ldv = t->ldv,
                            .ldt = t->ldt,
                            .sums = t->sums,
                            .counters = t->counters};
  return batchqr_wy_store(t->problem.type, &panel, t->stream);
}

/* Factors the columns of the steps s0 .. s1 and forms their V and, if asked for, T. */
static batchqr_status factor(const task *t, int s0, int s1, bool with_t) {
  if (s1 - s0 == 1) return factor_panel(t, s0);
  int half = 1;
  while (2 * half < s1 - s0) half *= 2;
  const int mid = s0 + half;
  batchqr_status status = factor(t, s0, mid, true);
  if (!status) status = update(t, s0, mid, mid * WIDTH, bqr_min(s1 * WIDTH, t->problem.n));
  if (!status) status = factor(t, mid, s1, with_t);
  return status || !with_t ? status : merge(t, s0, mid, s1);
}

static batchqr_status factor_blocks(task *t) {
  batchqr_status status = batchqr_wy_begin(t->counters, t->stream);
  if (!status) status = bqr_steps_begin(&t->steps, &t->args, t->stream);
  for (int s0 = 0; s0 < t->steps.count && !status; s0 += t->width / WIDTH) {
    const int s1 = bqr_min(s0 + t->width / WIDTH, t->steps.count), right = s1 * WIDTH;
    t->origin = s0 * WIDTH;
    status = factor(t, s0, s1, right < t->problem.n);
    if (!status) status = update(t, s0, s1, right, t->problem.n);
  }
  return status ? status : bqr_steps_end(&t->steps, &t->args, t->stream);
}

static batchqr_status factor_member(task *t, const batchqr_args *all, int64_t entry) {
  const int64_t id = all->host_members ? all->host_members[entry] : entry;
  const int64_t ld = all->host_lda ? all->host_lda[id] : all->a.ld;
  const int64_t at = all->host_offsets ? all->host_offsets[id] : id * all->a.stride;
  const int64_t tau_at = all->host_tau_offsets ? all->host_tau_offsets[id] : id * all->stride_tau;
  char *a = (char *)all->a.data + at * (int64_t)t->size;
  const bool in_place = ((uintptr_t)a | (uintptr_t)ld * t->size) % ALIGNMENT == 0 || t->steps.count == 0;
  const int m = t->problem.m, n = t->problem.n;
  t->a = in_place ? a : t->copy;
  t->lda = in_place ? ld : t->ldv;
  t->args = (batchqr_args){.a = {.data = t->a, .ld = (int)t->lda},
                           .tau = (char *)all->tau + tau_at * (int64_t)t->size,
                           .info = all->info ? all->info + id : NULL,
                           .m = m,
                           .n = n,
                           .count = 1};
  if (in_place) return factor_blocks(t);
  batchqr_status status = batchqr_wy_copy(t->problem.type, m, n, a, ld, t->a, t->lda, t->stream);
  if (!status) status = factor_blocks(t);
  return status ? status : batchqr_wy_copy(t->problem.type, m, n, t->a, t->lda, a, ld, t->stream);
}

static batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_device *device, const batchqr_args *args, batchqr_stream stream) {
  const shared *mine = args->state;
  task t;
  lay_out(problem, variant, device, mine->panels, args->workspace, &t);
  t.engine = mine->engine;
  t.stream = stream;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t entry = 0; entry < args->count && !status; entry++) status = factor_member(&t, args, entry);
  return status;
}

/* Members must be alike, their addresses the host's, and few enough to be enqueued one by one. */
static bool supports(const batchqr_problem *problem, const batchqr_variant *variant,
                     const batchqr_device *device) {
  (void)variant;
  return !problem->positive && problem->uniform && problem->layout == BATCHQR_STRIDED &&
         problem->count <= MOST_MEMBERS && bqr_steps_possible(problem, device, rule);
}

/* Wide blocks make products fast, those in less than the working precision above all, and their own
 * factorization slow. */
static int preferred_width(const batchqr_problem *problem) {
  const int k = bqr_min(problem->m, problem->n);
  const bool single = problem->type == BATCHQR_S || problem->type == BATCHQR_C;
  const bool native = problem->compute == BATCHQR_COMPUTE_NATIVE;
  if (k < (single && !native ? 4096 : 8192)) return 256;
  if (native || k < (single ? 8192 : 16384)) return 512;
  return single || k < 32768 ? 1024 : 2048;
}

/* Members so large that one of them fills the GPU with its products; more than one only where its panels take
 * no more time than these. */
static bool prefers(const batchqr_problem *problem, const batchqr_variant *variant,
                    const batchqr_device *device) {
  (void)device;
  const int64_t elements = (int64_t)problem->m * problem->n;
  return bqr_min(problem->m, problem->n) > WIDTH && elements >= 1 << 20 &&
         problem->count <= 1 + (elements >> 23) && variant->p[0] == preferred_width(problem);
}

static size_t workspace_bytes(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  task t;
  return lay_out(problem, variant, device, NULL, NULL, &t);
}

static batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  (void)variant, (void)device;
  batchqr_status status = batchqr_wy_prepare(problem->type);
  if (!status) status = batchqr_wy_narrow_prepare(problem->type);
  return status ? status : batchqr_larft_prepare(problem->type);
}

static void close_shared(void *state) {
  shared *mine = state;
  bqr_gemm_engine_free(mine->engine);
  free(mine->panels);
  free(mine);
}

static batchqr_status open_shared(const batchqr_problem *problem, const batchqr_variant *variant,
                                  const batchqr_device *device, void **state) {
  (void)variant;
  batchqr_problem member = *problem;
  member.count = 1;
  shared *mine = *state = calloc(1, sizeof *mine);
  if (!mine) return BATCHQR_OUT_OF_MEMORY;
  batchqr_status status = bqr_steps_open(&member, device, rule, &mine->panels);
  return status ? status : bqr_gemm_engine_new(device, &mine->engine);
}

/* Products count as one. */
static int launches_of(const task *t, int s0, int s1, bool with_t) {
  if (s1 - s0 == 1) return bqr_steps_panel_launches(&t->steps, s0) + is_applied(t, s0);
  int half = 1;
  while (2 * half < s1 - s0) half *= 2;
  return launches_of(t, s0, s0 + half, true) + 3 + launches_of(t, s0 + half, s1, with_t) + (with_t ? 3 : 0);
}

static int count_launches(const batchqr_problem *problem, const batchqr_variant *variant,
                          const batchqr_device *device) {
  task t;
  lay_out(problem, variant, device, NULL, NULL, &t);
  int launches = 0;
  for (int s0 = 0; s0 < t.steps.count; s0 += t.width / WIDTH) {
    const int s1 = bqr_min(s0 + t.width / WIDTH, t.steps.count);
    const bool trailing = s1 * WIDTH < problem->n;
    launches += launches_of(&t, s0, s1, trailing) + (trailing ? 3 : 0);
  }
  return (int)problem->count * (1 + BQR_STEPS_LAUNCHES + launches);
}

const batchqr_family batchqr_family_geqrf_large = {
    .name = "geqrf_large",
    .op = BATCHQR_GEQRF,
    .types = BATCHQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open_shared,
    .close = close_shared,
    .count_launches = count_launches,
    .prefers = prefers,
    .follows_mode = true,
};
