/* SPDX-License-Identifier: BSD-3-Clause */
/* Hermitian members of one order, as many at once as a gigabyte of workspace has room for: reduction to
 * tridiagonal form, a cluster of blocks for each (sytrd/sytrd.h); divide and conquer of all tridiagonal
 * matrices together, over the whole GPU (tridiagonal/tridiagonal.h); the reflectors. */
#include "batch.h"
#include "block_reflectors.h"
#include "costs.h"
#include "sytrd/sytrd.h"
#include "tridiagonal/tridiagonal.h"

/* blocks: of a cluster; global: matrices lie in the workspace, else in shared memory. */
static const bqr_variant variants[] = {{.name = "blocks8", .blocks = 8},
                                       {.name = "blocks4", .blocks = 4},
                                       {.name = "blocks8.global", .blocks = 8, .global = true},
                                       {.name = "blocks4.global", .blocks = 4, .global = true},
                                       {.name = "blocks1.global", .blocks = 1, .global = true}};

typedef struct layout {
  bqr_sytrd_work work;
  void *tridiagonals; /* their divide and conquer's memory */
  size_t bytes;
} layout;

static batchqr_type real_type(const bqr_problem *problem) {
  return problem->type == BATCHQR_S || problem->type == BATCHQR_C ? BATCHQR_S : BATCHQR_D;
}

/* Launches may ask for values alone, too. */
static size_t tridiagonals_bytes(const bqr_problem *p, int count) {
  const size_t values = bqr_tridiagonals_bytes(real_type(p), p->n, count, false),
               vectors = p->vectors ? bqr_tridiagonals_bytes(real_type(p), p->n, count, true) : 0;
  return vectors > values ? vectors : values;
}

static layout lay_out(const bqr_problem *p, int count, void *base) {
  bqr_arena arena = {base, 0};
  const int64_t rows = (int64_t)p->n * count;
  const size_t n = (size_t)p->n, real = bqr_real_bytes(p->type);
  layout l = {.bytes = 0};
  l.work.a = bqr_arena_take(&arena, rows, n * bqr_type_bytes(p->type));
  if (p->vectors) l.work.q = bqr_arena_take(&arena, rows, n * real);
  l.work.d = bqr_arena_take(&arena, rows, real);
  l.work.e = bqr_arena_take(&arena, rows, real);
  l.work.w = bqr_arena_take(&arena, rows, real);
  l.work.states = bqr_arena_take(&arena, count, sizeof *l.work.states);
  l.tridiagonals = bqr_arena_take(&arena, 1, tridiagonals_bytes(p, count));
  l.bytes = arena.bytes;
  return l;
}

/* Members of one round of launches. */
static int members_at_once(const bqr_problem *p) {
  const int64_t room = (int64_t)(((size_t)1 << 30) / lay_out(p, 1, NULL).bytes),
                most = ((int64_t)1 << 22) / p->n; /* of bqr_tridiagonals() */
  int64_t count = room < most ? room : most;
  if (count > p->count) count = p->count;
  return count < 1 ? 1 : (int)count;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  (void)device;
  return lay_out(problem, members_at_once(problem), NULL).bytes;
}

/* As many blocks for a member as are there for all at once. A single one is worth it where members do not fit
 * into shared memory. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double n = problem->n, bytes = n * n * (double)bqr_type_bytes(problem->type);
  const int64_t share = device->multiprocessors / problem->count;
  const int blocks = share >= 8 ? 8 : share >= 4 && n >= costs->syevd.cluster4_rows ? 4 : 1;
  return n >= costs->syevd.cluster_rows && (blocks > 1 || bytes >= costs->syevd.cluster_bytes) &&
         variant->blocks == blocks;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)device;
  const batchqr_status status = bqr_sytrd_prepare(problem, variant);
  return status ? status : bqr_tridiagonal_prepare(real_type(problem));
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)device;
  const int at_once = members_at_once(problem), n = problem->n;
  const layout l = lay_out(problem, at_once, args->workspace);
  const bqr_sytrd_work *w = &l.work;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t first = 0; first < args->count && !status; first += at_once) {
    const int count = args->count - first < at_once ? (int)(args->count - first) : at_once;
    status = bqr_sytrd_reduce(problem, variant, args, first, count, w, stream);
    if (!status)
      status = bqr_tridiagonals(real_type(problem), n, count, w->d, w->e, w->w, args->v.data ? w->q : NULL, n,
                                (int64_t)n * n, l.tridiagonals, stream);
    if (!status) status = bqr_sytrd_back(problem, args, first, count, w, stream);
  }
  return status;
}

static int count_launches(const bqr_problem *p, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  (void)device;
  const int rounds = (int)((p->count - 1) / members_at_once(p) + 1), own = p->vectors ? 3 : 2;
  return rounds * (own + bqr_tridiagonals_launches(p->n, p->vectors));
}

const bqr_family bqr_family_syevd_cluster = {
    .name = "syevd_cluster",
    .op = BATCHQR_SYEVD,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 90,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = bqr_sytrd_supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .count_launches = count_launches,
    .prefers = prefers,
    .only_where_good = true,
};
