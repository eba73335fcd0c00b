/* SPDX-License-Identifier: BSD-3-Clause */
/* Hermitian members of one order, as many at once as a gigabyte of workspace has room for: reduction to
 * tridiagonal form, a block or a cluster of them for each or the whole GPU for one after another
 * (sytrd/sytrd.h); divide and conquer of all tridiagonal matrices together, over the whole GPU
 * (tridiagonal/tridiagonal.h); the reflectors, by the family that the planner chooses for them. */
#include "batch.h"
#include "block_reflectors.h"
#include "costs.h"
#include "step_children.h"
#include "syevd_wide.h"
#include "sytrd/sytrd.h"
#include "tridiagonal/tridiagonal.h"

/* blocks: of a cluster; global: matrices lie in the workspace, else in shared memory. wide: the whole GPU.
 * rows: in registers and in shared memory, by one block or a cluster. */
static const bqr_variant variants[] = {{.name = "wide", .wide = true},
                                       {.name = "rows256", .rows = 256},
                                       {.name = "rows1024.blocks2", .rows = 1024, .blocks = 2},
                                       {.name = "rows1024.blocks3", .rows = 1024, .blocks = 3},
                                       {.name = "rows1024.blocks4", .rows = 1024, .blocks = 4},
                                       {.name = "rows1024.blocks8", .rows = 1024, .blocks = 8},
                                       {.name = "blocks8", .blocks = 8},
                                       {.name = "blocks4", .blocks = 4},
                                       {.name = "blocks8.global", .blocks = 8, .global = true},
                                       {.name = "blocks4.global", .blocks = 4, .global = true},
                                       {.name = "blocks1.global", .blocks = 1, .global = true}};

typedef struct layout {
  bqr_sytrd_work work;
  void *tridiagonals; /* their divide and conquer's memory; the reflectors' later */
  size_t bytes;
} layout;

static batchqr_type real_type(const bqr_problem *problem) {
  return problem->type == BATCHQR_S || problem->type == BATCHQR_C ? BATCHQR_S : BATCHQR_D;
}

static bool is_complex(const bqr_problem *problem) {
  return problem->type == BATCHQR_C || problem->type == BATCHQR_Z;
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
  l.work.tau = bqr_arena_take(&arena, rows, bqr_type_bytes(p->type));
  if (p->vectors) l.work.q = l.work.z = bqr_arena_take(&arena, rows, n * real);
  if (p->vectors && is_complex(p)) l.work.z = bqr_arena_take(&arena, rows, n * bqr_type_bytes(p->type));
  l.work.d = bqr_arena_take(&arena, rows, real);
  l.work.e = bqr_arena_take(&arena, rows, real);
  l.work.w = bqr_arena_take(&arena, rows, real);
  l.work.letters = bqr_arena_take(&arena, 1, bqr_sytrd_grid_bytes(p));
  l.work.states = bqr_arena_take(&arena, count, sizeof *l.work.states);
  l.tridiagonals = bqr_arena_take(&arena, 1, tridiagonals_bytes(p, count));
  l.bytes = arena.bytes;
  return l;
}

/* Members of one round of launches, which the reflectors' workspace must not decide: the planner asks for
 * these first. */
static int members_at_once(const bqr_problem *p) {
  const int64_t room = (int64_t)(((size_t)1 << 30) / lay_out(p, 1, NULL).bytes),
                most = ((int64_t)1 << 22) / p->n; /* of bqr_tridiagonals() */
  int64_t count = room < most ? room : most;
  if (count > p->count) count = p->count;
  return count < 1 ? 1 : (int)count;
}

/* The reflectors, of which the first is at row 1. */
static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *child) {
  (void)variant, (void)device;
  const int order = problem->n - 1;
  if (number > 0 || !problem->vectors || order < 1) return false;
  *child = (bqr_problem){.op = BATCHQR_ORMQR,
                         .type = problem->type,
                         .compute = problem->compute,
                         .side = BATCHQR_LEFT,
                         .trans = BATCHQR_NO_TRANS,
                         .uniform = true,
                         .m = order,
                         .n = problem->n,
                         .k = order,
                         .count = members_at_once(problem)};
  return true;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant;
  const int count = members_at_once(problem);
  size_t bytes = lay_out(problem, count, NULL).bytes;
  if (problem->num_children == 0) return bytes;
  const size_t used = bytes - tridiagonals_bytes(problem, count),
               reflectors = bqr_step_child_workspace(problem, 0, count, device);
  return used + reflectors > bytes ? used + reflectors : bytes;
}

static bool in_cluster_tiles(const bqr_variant *variant) { return variant->rows && variant->blocks; }

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  return variant->wide               ? bqr_sytrd_grid_supports(problem, device)
         : in_cluster_tiles(variant) ? bqr_sytrd_cluster_tiles_supports(problem, variant, device)
         : variant->rows             ? bqr_sytrd_tiles_supports(problem, device)
                                     : bqr_sytrd_supports(problem, variant, device);
}

/* Of clusters that hold members' triangles: a multiprocessor has room for some 1.6 times its shared memory.
 * More blocks than that takes, if there are multiprocessors for them and some to spare, which no cluster may
 * have, as long as each block has a few tiles. */
static int tile_blocks(const bqr_problem *problem, const bqr_device *device) {
  static const int counts[] = {2, 3, 4, 8};
  const double n = problem->n, triangle = 0.5 * n * n * (double)bqr_type_bytes(problem->type),
               room = 1.6 * device->smem_per_block;
  int blocks = counts[0];
  for (int i = 1; i < 4; i++) {
    const bool idle = device->multiprocessors >= (counts[i] + 1) * problem->count && n > 64 * (counts[i] - 1);
    if (idle || triangle > room * blocks) blocks = counts[i];
  }
  return blocks;
}

/* Members of more than half as many rows as a block holds go there, unless there are more than are at work
 * at once: these, and smaller ones, are syevd_tridiagonal's. Larger real ones are a cluster's, which holds
 * them; of complex ones, as many blocks for a member as are there for all at once. A single one is worth it
 * where members do not fit into shared memory. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const bool wide = bqr_syevd_prefers_wide(problem, device);
  if (variant->wide || wide) return variant->wide && wide;
  if (bqr_sytrd_tiles_supports(problem, device))
    return variant->rows == 256 && 2 * problem->n > variant->rows &&
           problem->count <= device->multiprocessors;
  const double n = problem->n, bytes = n * n * (double)bqr_type_bytes(problem->type);
  if (!is_complex(problem))
    return in_cluster_tiles(variant) && variant->blocks == tile_blocks(problem, device);
  if (variant->rows) return false;
  const int64_t share = device->multiprocessors / problem->count;
  const int blocks = share >= 8 ? 8 : share >= 4 && n >= costs->syevd.cluster4_rows ? 4 : 1;
  return n >= costs->syevd.cluster_rows && (blocks > 1 || bytes >= costs->syevd.cluster_bytes) &&
         variant->blocks == blocks;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  batchqr_status status = variant->wide ? bqr_sytrd_grid_prepare(problem)
                          : in_cluster_tiles(variant)
                              ? bqr_sytrd_cluster_tiles_prepare(problem, variant, device)
                          : variant->rows ? bqr_sytrd_tiles_prepare(problem)
                                          : bqr_sytrd_prepare(problem, variant);
  if (!status) status = bqr_sytrd_prepare_back(problem);
  if (!status) status = bqr_tridiagonal_prepare(real_type(problem));
  return status ? status : bqr_step_children_prepare(problem, members_at_once(problem), device);
}

static batchqr_status open(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                           void **state) {
  (void)variant;
  return bqr_step_children_open(problem, members_at_once(problem), device, state);
}

static batchqr_status find_vectors(const bqr_problem *problem, const bqr_device *device, const bqr_args *args,
                                   int64_t first, int count, const layout *l, batchqr_stream stream) {
  const bqr_sytrd_work *w = &l->work;
  const int n = problem->n;
  const int64_t stride = (int64_t)n * n;
  const size_t size = bqr_type_bytes(problem->type);
  batchqr_status status = is_complex(problem) ? bqr_sytrd_widen(problem, count, w, stream) : BATCHQR_SUCCESS;
  if (!status && problem->num_children > 0) {
    const bqr_args back = {
        .a = {.data = (char *)w->a + size, .ld = n, .stride = stride, .row_stride = 1},
        .c = {.data = (char *)w->z + size, .ld = n, .stride = stride, .row_stride = 1},
        .tau = {.data = w->tau, .stride = n},
        .m = n - 1,
        .n = n,
        .k = n - 1,
        .workspace = l->tridiagonals,
    };
    status = bqr_step_child_launch(problem, 0, count, device, back, args->state, stream);
  }
  return status ? status : bqr_sytrd_vectors(problem, args, first, count, w, stream);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  const int at_once = members_at_once(problem), n = problem->n;
  const layout l = lay_out(problem, at_once, args->workspace);
  const bqr_sytrd_work *w = &l.work;
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t first = 0; first < args->count && !status; first += at_once) {
    const int count = args->count - first < at_once ? (int)(args->count - first) : at_once;
    status = variant->wide ? bqr_sytrd_grid_reduce(problem, device, args, first, count, w, stream)
             : in_cluster_tiles(variant)
                 ? bqr_sytrd_cluster_tiles_reduce(problem, variant, device, args, first, count, w, stream)
             : variant->rows ? bqr_sytrd_tiles_reduce(problem, args, first, count, w, stream)
                             : bqr_sytrd_reduce(problem, variant, args, first, count, w, stream);
    if (!status)
      status = bqr_tridiagonals(real_type(problem), n, count, w->d, w->e, w->w, args->v.data ? w->q : NULL, n,
                                (int64_t)n * n, l.tridiagonals, stream);
    if (!status) status = bqr_sytrd_values(problem, args, first, count, w, stream);
    if (!status && args->v.data) status = find_vectors(problem, device, args, first, count, &l, stream);
  }
  return status;
}

static int count_launches(const bqr_problem *p, const bqr_variant *variant, const bqr_device *device) {
  const int at_once = members_at_once(p), rounds = (int)((p->count - 1) / at_once + 1);
  int own = 2 + (p->vectors ? 1 + is_complex(p) : 0);
  if (variant->wide) own += 2 * at_once - 1;
  if (p->num_children > 0) own += bqr_step_child_launches(p, 0, at_once, device);
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
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .open = open,
    .close = bqr_step_children_close,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
    .only_where_good = true,
};
