/* SPDX-License-Identifier: BSD-3-Clause */
/* Large members: right-looking over wide blocks of columns, each factored recursively (Elmroth and Gustavson:
 * the left half, its update of the right half, the right half, and T of both from T of each), so that all but
 * the panels of 32 columns are matrix products. These are the engine's, see gemm.h, in the arithmetic that
 * the compute mode permits, or, where they are small, those of wy.h.
 *
 * Panels leave most of the GPU idle. A lone member is worked on in two lanes: while one factors the next wide
 * block, the other applies the last one to the columns behind it. Of several members two are under way, each
 * in a lane of its own. What is computed is the same.
 *
 * How a library sums may depend on how its operands are aligned, and a member's result must not depend on its
 * place: a member whose columns are not aligned is factored in an aligned copy. */
#include "batch.h"
#include "device.h"
#include "gemm.h"
#include "steps.h"
#include "wy.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>

enum { WIDTH = BATCHQR_BLOCK_WIDTH, ALIGNMENT = 16, MOST_MEMBERS = 1024 };

/* Up to so many rows, what narrow products take is latency, and the kernels of wy.h are faster. */
enum { LOW = 32768 };

/* Panels of fewer rows are too far from orthogonal for batchqr_wy_factor(). */
enum { LEAST_ROWS = 256 };

/* Columns of a wide block. */
static const batchqr_variant variants[] = {{"cols256", {256}}, {"cols64", {64}},     {"cols128", {128}},
                                           {"cols512", {512}}, {"cols1024", {1024}}, {"cols2048", {2048}}};

static const bqr_panel_rule rule = {.rows = 0, .wide = true};

enum { LANES = 2 };

/* What a plan keeps. */
typedef struct shared {
  bqr_panel *panels;
  bqr_gemm_engine *engines[LANES];
  pthread_mutex_t lock; /* of the first lane's stream and the events */
  batchqr_stream ahead;
  cudaEvent_t events[LANES];
} shared;

/* What is done one after another, and the memory for it. */
typedef struct lane {
  batchqr_stream stream;
  bqr_gemm_engine *engine;
  cudaEvent_t event;
  char *t, *w1, *w2;
  void *gemm;
  size_t gemm_bytes;
  void *sums; /* of blocks of the kernels in wy.h */
  int *counters;
} lane;

/* One member's factorization. */
typedef struct task {
  batchqr_problem problem; /* of this member alone */
  batchqr_args args;       /* likewise */
  bqr_steps steps;
  const lane *panels, *rest; /* where wide blocks are factored, and where most of A is updated */
  size_t size;               /* of an element */
  int width, origin;         /* the wide block's columns, and its first row and column */
  char *a, *r, *t;           /* r: of all wide blocks, while V is in its place */
  int64_t lda, ldt;
  void *copy; /* of the member */
  int64_t ldcopy;
} task;

/* The whole of a launch. */
typedef struct work {
  lane lanes[LANES];
  task tasks[LANES]; /* of the members under way */
  int members;       /* so many at once */
  size_t bytes;
} work;

static bqr_gemm product(const batchqr_problem *problem, bool adjoint, int64_t m, int64_t n, int64_t k) {
  return (bqr_gemm){.type = problem->type,
                    .mode = problem->compute,
                    .adjoint_a = adjoint,
                    .m = m,
                    .n = n,
                    .k = k,
                    .alpha = 1};
}

/* For blocks of `width` columns that are applied to `cols` columns at most. */
static lane lay_out_lane(const batchqr_problem *problem, int width, int cols, bqr_arena *arena) {
  const size_t size = bqr_type_bytes(problem->type);
  lane l = {.t = bqr_arena_take(arena, width, (size_t)width * size),
            .w1 = bqr_arena_take(arena, width, (size_t)cols * size),
            .w2 = bqr_arena_take(arena, width, (size_t)cols * size),
            .sums = bqr_arena_take(arena, BATCHQR_WY_SUMS, size),
            .counters = bqr_arena_take(arena, BATCHQR_WY_COUNTERS, sizeof(int))};
  const bqr_gemm largest[] = {product(problem, true, width, cols, problem->m),
                              product(problem, false, problem->m, cols, width)};
  for (int i = 0; i < 2; i++) {
    size_t bytes = bqr_gemm_workspace(&largest[i]);
    if (bytes > l.gemm_bytes) l.gemm_bytes = bytes;
  }
  l.gemm = bqr_arena_take(arena, 1, l.gemm_bytes);
  return l;
}

static void lay_out_task(const batchqr_problem *problem, int width, const batchqr_device *device,
                         const bqr_panel *chosen, bqr_arena *arena, task *t) {
  *t = (task){.problem = *problem, .size = bqr_type_bytes(problem->type), .width = width, .ldt = width};
  t->problem.count = 1;
  t->r = bqr_arena_take(arena, width, (size_t)bqr_min(problem->m, problem->n) * t->size);
  t->ldcopy = ((int64_t)problem->m + 15) / 16 * 16;
  t->copy = bqr_arena_take(arena, t->ldcopy, (size_t)problem->n * t->size);
  t->steps = bqr_steps_of(&t->problem, device, rule, chosen, arena);
}

static void lay_out(const batchqr_problem *problem, const batchqr_variant *variant,
                    const batchqr_device *device, const bqr_panel *chosen, void *base, work *w) {
  bqr_arena arena = {base, 0};
  const int width = bqr_min(variant->p[0], (bqr_min(problem->m, problem->n) + WIDTH - 1) / WIDTH * WIDTH);
  w->members = problem->count > 1 ? LANES : 1;
  for (int i = 0; i < LANES; i++) {
    const int cols = i < LANES - w->members ? width : bqr_max(problem->n, width);
    w->lanes[i] = lay_out_lane(problem, width, cols, &arena);
  }
  for (int i = 0; i < w->members; i++) {
    lay_out_task(problem, width, device, chosen, &arena, &w->tasks[i]);
    /* where there are more lanes than members, the last one is for the rest */
    w->tasks[i].panels = &w->lanes[i];
    w->tasks[i].rest = &w->lanes[LANES - w->members + i];
  }
  w->bytes = arena.bytes;
}

/* Addresses of elements, of V among them; T's rows and columns are counted as A's. */
static char *in_a(const task *t, int i, int j) { return t->a + (size_t)(i + j * t->lda) * t->size; }
static char *in_t(const task *t, int i, int j) {
  return t->t + (size_t)(i - t->origin + (j - t->origin) * t->ldt) * t->size;
}

static batchqr_status multiply(const lane *l, bqr_gemm g, const void *a, int64_t lda, const void *b,
                               int64_t ldb, void *c, int64_t ldc) {
  g.a = a;
  g.b = b;
  g.c = c;
  g.lda = lda;
  g.ldb = ldb;
  g.ldc = ldc;
  return bqr_gemm_enqueue(l->engine, &g, l->gemm, l->gemm_bytes, l->stream);
}

/* Products that are not the engine's. */
static bool is_narrow(int rows, int k, int n) {
  return rows <= LOW && k <= BATCHQR_WY_NARROW && n <= BATCHQR_WY_NARROW;
}

/* Reflectors of the steps s0 .. s1. */
static int reflectors(const task *t, int s0, int s1) {
  return bqr_min(s1 * WIDTH, bqr_min(t->problem.m, t->problem.n)) - s0 * WIDTH;
}

/* The lane's w2 := T^H V^H C or, where `negative`, -T V^H C. */
static batchqr_status project(const task *t, const lane *l, batchqr_wy_product p) {
  const batchqr_problem *problem = &t->problem;
  p.ldt = p.ldto = t->ldt;
  p.to = l->w2;
  if (is_narrow(p.rows, p.k, p.n)) return batchqr_wy_multiply(problem->type, &p, l->sums, l->stream);
  batchqr_status status =
      multiply(l, product(problem, true, p.k, p.n, p.rows), p.v, p.ldv, p.c, p.ldc, l->w1, t->ldt);
  if (status) return status;
  bqr_gemm last = product(problem, !p.negative, p.k, p.n, p.k);
  last.alpha = p.negative ? -1 : 1;
  return multiply(l, last, p.t, t->ldt, l->w1, t->ldt, l->w2, t->ldt);
}

/* Columns from .. to of A := (I - V T^H V^H) A, with the reflectors of the steps s0 .. s1. */
static batchqr_status update(const task *t, const lane *l, int s0, int s1, int from, int to) {
  const int first = s0 * WIDTH, k = reflectors(t, s0, s1), rows = t->problem.m - first, cols = to - from;
  if (cols <= 0) return BATCHQR_SUCCESS;
  const char *v = in_a(t, first, first);
  char *c = in_a(t, first, from);
  batchqr_status status = project(t, l,
                                  (batchqr_wy_product){.rows = rows,
                                                       .k = k,
                                                       .n = cols,
                                                       .v = v,
                                                       .ldv = t->lda,
                                                       .c = c,
                                                       .ldc = t->lda,
                                                       .t = in_t(t, first, first)});
  if (status) return status;
  if (is_narrow(rows, k, cols)) {
    const batchqr_wy_update u = {rows, k, cols, v, l->w2, c, t->lda, t->ldt, t->lda};
    return batchqr_wy_subtract(t->problem.type, &u, l->stream);
  }
  bqr_gemm last = product(&t->problem, false, rows, cols, k);
  last.alpha = -1;
  last.beta = 1;
  return multiply(l, last, v, t->lda, l->w2, t->ldt, c, t->lda);
}

/* T of the steps s0 .. s1 from those of s0 .. mid and mid .. s1: above its diagonal -T1 (V1^H V2) T2. */
static batchqr_status merge(const task *t, int s0, int mid, int s1) {
  const int first = s0 * WIDTH, second = mid * WIDTH, rows = t->problem.m - second;
  const int k1 = reflectors(t, s0, mid), k2 = reflectors(t, mid, s1);
  const lane *l = t->panels;
  batchqr_status status = project(t, l,
                                  (batchqr_wy_product){.rows = rows,
                                                       .k = k1,
                                                       .n = k2,
                                                       .negative = true,
                                                       .v = in_a(t, second, first),
                                                       .ldv = t->lda,
                                                       .c = in_a(t, second, second),
                                                       .ldc = t->lda,
                                                       .t = in_t(t, first, first)});
  if (status) return status;
  if (is_narrow(rows, k1, k2))
    return batchqr_wy_unite(t->problem.type, k1, k2, l->w2, in_t(t, second, second), in_t(t, first, second),
                            t->ldt, l->stream);
  return multiply(l, product(&t->problem, false, k1, k2, k2), l->w2, t->ldt, in_t(t, second, second), t->ldt,
                  in_t(t, first, second), t->ldt);
}

/* Whether there are columns right of a step's. */
static bool is_applied(const task *t, int step) { return (step + 1) * WIDTH < t->problem.n; }

/* Whether one launch does `panels` panels from a step on, V and T included. */
static bool is_quick(const task *t, int step, int panels) {
  const int rows = t->problem.m - step * WIDTH, width = panels * WIDTH;
  return is_applied(t, step + panels - 1) && reflectors(t, step, step + panels) == width &&
         rows >= LEAST_ROWS && rows <= batchqr_wy_factor_rows(t->problem.type, width, t->steps.device);
}

static batchqr_wy_panel panels_of(const task *t, int step, int panels) {
  const int first = step * WIDTH;
  return (batchqr_wy_panel){.rows = t->problem.m - t->origin,
                            .cols = t->width,
                            .at = first - t->origin,
                            .width = reflectors(t, step, step + panels),
                            .a = in_a(t, t->origin, t->origin),
                            .lda = t->lda,
                            .tau = (char *)t->args.tau + (size_t)first * t->size,
                            .r = t->r + (size_t)(t->origin * t->ldt) * t->size,
                            .t = t->t,
                            .ldr = t->ldt,
                            .ldt = t->ldt,
                            .sums = t->panels->sums,
                            .counters = t->panels->counters};
}

static batchqr_status factor_quickly(const task *t, int step, int panels) {
  const batchqr_wy_panel panel = panels_of(t, step, panels);
  return batchqr_wy_factor(t->problem.type, &panel, t->panels->stream);
}

static batchqr_status factor_panel(const task *t, int step) {
  if (is_quick(t, step, 1)) return factor_quickly(t, step, 1);
  batchqr_status status = bqr_steps_panel(&t->steps, &t->args, step, t->panels->stream);
  if (status || !is_applied(t, step)) return status;
  batchqr_wy_panel panel = panels_of(t, step, 1);
  panel.top = bqr_steps_top(&t->steps, step);
  return panel.top ? batchqr_wy_unfold(t->problem.type, &panel, t->panels->stream)
                   : batchqr_wy_store(t->problem.type, &panel, t->panels->stream);
}

/* Factors the columns of the steps s0 .. s1 and forms their V and, if asked for, T. */
static batchqr_status factor(const task *t, int s0, int s1, bool with_t) {
  if (s1 - s0 == 1) return factor_panel(t, s0);
  if (s1 - s0 == 2 && is_quick(t, s0, 2)) return factor_quickly(t, s0, 2);
  int half = 1;
  while (2 * half < s1 - s0) half *= 2;
  const int mid = s0 + half;
  batchqr_status status = factor(t, s0, mid, true);
  if (!status) status = update(t, t->panels, s0, mid, mid * WIDTH, bqr_min(s1 * WIDTH, t->problem.n));
  if (!status) status = factor(t, mid, s1, with_t);
  return status || !with_t ? status : merge(t, s0, mid, s1);
}

static batchqr_status wait_for(const lane *waiting, const lane *l) {
  cudaError_t code = cudaEventRecord(l->event, l->stream);
  if (code == cudaSuccess) code = cudaStreamWaitEvent(waiting->stream, l->event, 0);
  return code == cudaSuccess ? BATCHQR_SUCCESS : BATCHQR_CUDA_ERROR;
}

/* Each lane goes on when both have come here. */
static batchqr_status meet(const lane *a, const lane *b) {
  if (a->stream == b->stream) return BATCHQR_SUCCESS;
  batchqr_status status = wait_for(a, b);
  return status ? status : wait_for(b, a);
}

/* Factors a wide block's columns and applies it to those behind it, the next block's first. */
static batchqr_status factor_block(task *t, int s0) {
  const int steps = t->width / WIDTH, s1 = bqr_min(s0 + steps, t->steps.count), right = s1 * WIDTH;
  const int next = s1 < t->steps.count ? bqr_min((s1 + steps) * WIDTH, t->problem.n) : right;
  const lane *home = s0 / steps % 2 == 0 ? t->panels : t->rest; /* T is read while the next one is written */
  t->origin = s0 * WIDTH;
  t->t = home->t;
  batchqr_status status = factor(t, s0, s1, right < t->problem.n);
  if (!status) status = meet(t->panels, t->rest);
  if (!status) status = update(t, t->panels, s0, s1, right, next);
  return status ? status : update(t, t->rest, s0, s1, next, t->problem.n);
}

/* The members under way, block by block in turn. */
static batchqr_status factor_blocks(work *w, int members) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int s0 = 0; s0 < w->tasks[0].steps.count && !status; s0 += w->tasks[0].width / WIDTH)
    for (int i = 0; i < members && !status; i++) status = factor_block(&w->tasks[i], s0);
  return status;
}

/* Where an entry's columns are. */
static char *first_column(const task *t, const batchqr_args *all, int64_t entry, int64_t *ld) {
  const int64_t id = all->host_members ? all->host_members[entry] : entry;
  *ld = all->host_lda ? all->host_lda[id] : all->a.ld;
  return (char *)all->a.data +
         (all->host_offsets ? all->host_offsets[id] : id * all->a.stride) * (int64_t)t->size;
}

static batchqr_status begin_member(task *t, const batchqr_args *all, int64_t entry) {
  const int64_t id = all->host_members ? all->host_members[entry] : entry;
  const int64_t tau_at = all->host_tau_offsets ? all->host_tau_offsets[id] : id * all->stride_tau;
  const int m = t->problem.m, n = t->problem.n;
  batchqr_stream stream = t->rest->stream;
  int64_t ld;
  char *a = first_column(t, all, entry, &ld);
  const bool in_place = ((uintptr_t)a | (uintptr_t)ld * t->size) % ALIGNMENT == 0 || t->steps.count == 0;
  t->a = in_place ? a : t->copy;
  t->lda = in_place ? ld : t->ldcopy;
  t->args = (batchqr_args){.a = {.data = t->a, .ld = (int)t->lda},
                           .tau = (char *)all->tau + tau_at * (int64_t)t->size,
                           .info = all->info ? all->info + id : NULL,
                           .m = m,
                           .n = n,
                           .count = 1};
  batchqr_status status = batchqr_wy_begin(t->panels->counters, stream);
  if (!status && !in_place) status = batchqr_wy_copy(t->problem.type, m, n, a, ld, t->a, t->lda, stream);
  return status ? status : bqr_steps_begin(&t->steps, &t->args, stream);
}

static batchqr_status end_member(const task *t, const batchqr_args *all, int64_t entry) {
  batchqr_stream stream = t->rest->stream;
  int64_t ld;
  char *a = first_column(t, all, entry, &ld);
  int stored = 0;
  while (stored < t->steps.count && is_applied(t, stored)) stored++;
  batchqr_status status = BATCHQR_SUCCESS;
  if (stored > 0)
    status = batchqr_wy_restore(t->problem.type, t->width, reflectors(t, 0, stored), t->r, t->ldt, t->a,
                                t->lda, stream);
  if (!status) status = bqr_steps_end(&t->steps, &t->args, stream);
  if (status || t->a == a) return status;
  return batchqr_wy_copy(t->problem.type, t->problem.m, t->problem.n, t->a, t->lda, a, ld, stream);
}

/* The entries from `entry` on that are under way at once. */
static batchqr_status factor_members(work *w, const batchqr_args *args, int64_t entry, int members) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < members && !status; i++) status = begin_member(&w->tasks[i], args, entry + i);
  if (!status) status = meet(w->tasks[0].panels, w->tasks[0].rest);
  if (!status) status = factor_blocks(w, members);
  if (!status) status = meet(w->tasks[0].panels, w->tasks[0].rest);
  for (int i = 0; i < members && !status; i++) status = end_member(&w->tasks[i], args, entry + i);
  return status;
}

/* The last lane's stream is the caller's. A capture, which may outlive the call, must not hold the other. */
static batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_device *device, const batchqr_args *args, batchqr_stream stream) {
  shared *mine = args->state;
  work w;
  lay_out(problem, variant, device, mine->panels, args->workspace, &w);
  const bool alone = bqr_stream_captured(device, stream);
  for (int i = 0; i < LANES; i++) {
    w.lanes[i].engine = mine->engines[i];
    w.lanes[i].event = mine->events[i];
    w.lanes[i].stream = i == LANES - 1 || alone ? stream : mine->ahead;
  }
  pthread_mutex_lock(&mine->lock);
  batchqr_status status = meet(&w.lanes[0], &w.lanes[1]);
  for (int64_t entry = 0; entry < args->count && !status; entry += w.members)
    status = factor_members(&w, args, entry, (int)bqr_min(w.members, args->count - entry));
  const batchqr_status last = meet(&w.lanes[0], &w.lanes[1]); /* also after a failure */
  pthread_mutex_unlock(&mine->lock);
  return status ? status : last;
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
  if (problem->m / 4 > k) return 256;
  if (k < 8192) return k <= 4096 ? 64 : 128;
  if (native || k < (single ? 32768 : 16384)) return 512;
  return single || k < 32768 ? 1024 : 2048;
}

/* Members so large that one of them fills the GPU with its products; more than one only where its panels take
 * no more time than these. A smaller one alone, where that is not tall, for its quick panels. */
static bool prefers(const batchqr_problem *problem, const batchqr_variant *variant,
                    const batchqr_device *device) {
  const int64_t elements = (int64_t)problem->m * problem->n;
  const int k = bqr_min(problem->m, problem->n), width = preferred_width(problem);
  const bool quick = problem->count == 1 && width == 64 && k >= LEAST_ROWS &&
                     batchqr_wy_factor_rows(problem->type, 2 * WIDTH, device) >= problem->m;
  return k > WIDTH && elements >= (quick ? 1 << 18 : 1 << 20) && problem->count <= 1 + (elements >> 23) &&
         variant->p[0] == width;
}

static size_t workspace_bytes(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  work w;
  lay_out(problem, variant, device, NULL, NULL, &w);
  return w.bytes;
}

static batchqr_status prepare(const batchqr_problem *problem, const batchqr_variant *variant,
                              const batchqr_device *device) {
  (void)variant;
  batchqr_status status = batchqr_wy_prepare(problem->type);
  if (!status) status = batchqr_wy_factor_prepare(problem->type, device);
  if (!status) status = batchqr_wy_narrow_prepare(problem->type);
  return status ? status : batchqr_larft_prepare(problem->type);
}

static void close_shared(void *state) {
  shared *mine = state;
  for (int i = 0; i < LANES; i++) {
    bqr_gemm_engine_free(mine->engines[i]);
    if (mine->events[i]) cudaEventDestroy(mine->events[i]);
  }
  if (mine->ahead) cudaStreamDestroy(mine->ahead);
  pthread_mutex_destroy(&mine->lock);
  free(mine->panels);
  free(mine);
}

/* Panels come before the rest wherever the GPU can choose. */
static batchqr_status open_lanes(const batchqr_device *device, shared *mine) {
  int least, greatest;
  cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (code == cudaSuccess) code = cudaStreamCreateWithPriority(&mine->ahead, cudaStreamNonBlocking, greatest);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < LANES && code == cudaSuccess && !status; i++) {
    code = cudaEventCreateWithFlags(&mine->events[i], cudaEventDisableTiming);
    status = bqr_gemm_engine_new(device, &mine->engines[i]);
  }
  return code == cudaSuccess ? status : BATCHQR_CUDA_ERROR;
}

static batchqr_status open_shared(const batchqr_problem *problem, const batchqr_variant *variant,
                                  const batchqr_device *device, void **state) {
  (void)variant;
  batchqr_problem member = *problem;
  member.count = 1;
  shared *mine = calloc(1, sizeof *mine);
  if (!mine) return BATCHQR_OUT_OF_MEMORY;
  if (pthread_mutex_init(&mine->lock, NULL) != 0) {
    free(mine);
    return BATCHQR_OUT_OF_MEMORY;
  }
  *state = mine;
  batchqr_status status = bqr_steps_open(&member, device, rule, &mine->panels);
  return status ? status : open_lanes(device, mine);
}

/* Products count as one. */
static int launches_of(const task *t, int s0, int s1, bool with_t) {
  if (s1 - s0 <= 2 && is_quick(t, s0, s1 - s0)) return 1;
  if (s1 - s0 == 1) return bqr_steps_panel_launches(&t->steps, s0) + is_applied(t, s0);
  int half = 1;
  while (2 * half < s1 - s0) half *= 2;
  return launches_of(t, s0, s0 + half, true) + 3 + launches_of(t, s0 + half, s1, with_t) + (with_t ? 3 : 0);
}

static int count_launches(const batchqr_problem *problem, const batchqr_variant *variant,
                          const batchqr_device *device) {
  work w;
  lay_out(problem, variant, device, NULL, NULL, &w);
  const task *t = &w.tasks[0];
  const int steps = t->width / WIDTH;
  int launches = 0;
  for (int s0 = 0; s0 < t->steps.count; s0 += steps) {
    const int s1 = bqr_min(s0 + steps, t->steps.count), right = s1 * WIDTH;
    const bool next = s1 < t->steps.count, behind = next ? right + t->width < problem->n : right < problem->n;
    launches += launches_of(t, s0, s1, right < problem->n) + (next ? 3 : 0) + (behind ? 3 : 0);
  }
  return (int)problem->count * (2 + BQR_STEPS_LAUNCHES + launches);
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
