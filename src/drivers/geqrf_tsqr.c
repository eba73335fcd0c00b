/* SPDX-License-Identifier: BSD-3-Clause */
/* Tall and skinny members, of any number of rows: QR by trees (see kernels/tsqr/tsqr_tree.cu). Blocks of rows
 * and the triangles that they leave, level by level, are batches of the on-chip families; Q goes back down
 * the tree and becomes the members' reflectors. Variants `gram` first try what is faster and not always
 * possible (see kernels/tsqr/tsqr_gram.cu), so that only members with nearly dependent columns take the
 * trees. */
#include "arena.h"
#include "batch.h"
#include "costs.h"
#include "tsqr/tsqr.h"
#include <limits.h>

enum { WIDTH = BQR_TSQR_COLUMNS };

enum { LARGE_LEAF = 4096 };

/* Rows of a leaf, and the least rows of a chunk of a Gram matrix's sums, if any. */
static const bqr_variant variants[] = {{.name = "chunk256.rows1024", .chunk = 256, .rows = 1024},
                                       {.name = "chunk256.rows4096", .chunk = 256, .rows = 4096},
                                       {.name = "chunk1024.rows1024", .chunk = 1024, .rows = 1024},
                                       {.name = "chunk128.rows128", .chunk = 128, .rows = 128},
                                       {.name = "rows1024", .rows = 1024},
                                       {.name = "rows512", .rows = 512},
                                       {.name = "rows256", .rows = 256},
                                       {.name = "rows128", .rows = 128}};

/* The nodes of a tree as a problem of their own. What factors them must not depend on the batch. With R's
 * diagonal not negative, for which Q's first rows and signs leave no choice, a member that Cholesky factors
 * do not serve has no tree: it is one leaf. */
static bool child(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                  int number, bqr_problem *node) {
  (void)device;
  if (number > 0) return false;
  *node = *problem;
  node->role = BQR_ROLE_LEAF;
  node->pointers = true;
  node->uniform = false;
  node->m = problem->positive ? problem->m : variant->rows;
  node->n = WIDTH;
  node->count = INT_MAX;
  node->children = NULL;
  node->num_children = 0;
  return true;
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)device;
  return (!problem->positive || variant->chunk > 0) && problem->n <= WIDTH;
}

/* Whether there are several leaves, of which a member's first rows have what bqr_wy_unfold() takes. */
static bool leaves_tops(const bqr_problem *problem, const bqr_variant *variant) {
  return problem->m > variant->rows && !problem->positive;
}

/* Where there are several leaves: fewer rows are faster in one block or cluster. Many small chunks cost more
 * than they spread the work. Large leaves make a tree of two levels, whose launches all members wait for. */
static bool prefers(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const int enough = (int)(bqr_costs_of(device)->tsqr_rows / bqr_max(problem->m, 1));
  const bool many = problem->count > bqr_max(enough, 1);
  const bool high = !many && problem->m > 4 * LARGE_LEAF && problem->m <= LARGE_LEAF / WIDTH * LARGE_LEAF;
  return problem->m > 4 * variant->rows && variant->chunk == (many ? 1024 : 256) &&
         variant->rows == (high ? LARGE_LEAF : 1024);
}

static size_t lay_out(const bqr_problem *problem, const bqr_variant *variant, void *base, bqr_tsqr *tree) {
  bqr_arena arena = {base, 0};
  const size_t size = bqr_type_bytes(problem->type);
  *tree = (bqr_tsqr){.rows = variant->rows, .whole = problem->positive, .columns = bqr_max(problem->n, 1)};
  int64_t nodes = problem->positive ? 1 : bqr_max(problem->m - 1, 0) / tree->rows + 1;
  do {
    tree->first[tree->levels] = tree->total;
    tree->nodes[tree->levels++] = nodes;
    tree->total += problem->count * nodes;
    nodes = (nodes - 1) / (tree->rows / WIDTH) + 1;
  } while (tree->nodes[tree->levels - 1] > 1);
  const int64_t leaves = problem->count * tree->nodes[0], columns = tree->columns;
  tree->tops = bqr_arena_take(&arena, problem->count, BQR_TSQR_TOP * size); /* first: see leaves_tops() */
  tree->a = bqr_arena_take(&arena, tree->total, sizeof(void *));
  tree->tau = bqr_arena_take(&arena, tree->total, sizeof(void *));
  tree->m = bqr_arena_take(&arena, tree->total, sizeof(int));
  tree->n = bqr_arena_take(&arena, tree->total, sizeof(int));
  tree->ld = bqr_arena_take(&arena, tree->total, sizeof(int));
  tree->info = bqr_arena_take(&arena, leaves, sizeof(int));
  tree->taus = bqr_arena_take(&arena, tree->total, columns * size);
  tree->stacks = bqr_arena_take(&arena, tree->total - leaves, tree->rows * columns * size);
  const bool gram = variant->chunk && problem->m > tree->rows;
  if (gram) {
    const size_t wide = WIDTH * columns * (size / bqr_real_bytes(problem->type)) * sizeof(double);
    tree->chunk = variant->chunk;
    tree->chunks = bqr_min((problem->m - 1) / tree->chunk + 1, BQR_TSQR_CHUNKS);
    tree->partials = bqr_arena_take(&arena, problem->count * tree->chunks, wide);
    tree->factors = bqr_arena_take(&arena, problem->count, BQR_TSQR_FACTORS * size);
    tree->method = bqr_arena_take(&arena, problem->count, sizeof(int));
  }
  tree->counters = bqr_arena_take(&arena, problem->count, BQR_TSQR_COUNTERS * sizeof(int));
  tree->parts = tree->chunks > tree->nodes[0] ? tree->chunks : tree->nodes[0];
  tree->norms = bqr_arena_take(&arena, problem->count * tree->parts, WIDTH * sizeof(double));
  return arena.bytes;
}

static size_t workspace_bytes(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)device;
  bqr_tsqr tree;
  return lay_out(problem, variant, NULL, &tree);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)device;
  bqr_tsqr tree;
  lay_out(problem, variant, NULL, &tree);
  return (tree.chunks ? BQR_TSQR_GRAM_LAUNCHES : 1) + tree.levels * problem->children->family->launches +
         2 * (tree.levels - 1) + 1;
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  const bqr_child *node = problem->children;
  batchqr_status status = bqr_tsqr_prepare(problem->type);
  if (!status && variant->chunk) status = bqr_tsqr_gram_prepare(problem->type);
  if (status || !node->family->prepare) return status;
  return node->family->prepare(&node->problem, node->variant, device);
}

/* The nodes of a level as a batch. */
static bqr_args level_args(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                           int level) {
  const int64_t first = tree->first[level];
  return (bqr_args){.a = {.data = tree->a + first, .ld_array = tree->ld + first, .pointers = true},
                    .tau = {.data = tree->tau + first, .pointers = true},
                    .info = level == 0 ? tree->info : NULL,
                    .m_array = tree->m + first,
                    .n_array = tree->n + first,
                    .m = tree->whole ? problem->m : tree->rows,
                    .n = problem->n,
                    .count = args->count * tree->nodes[level]};
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  bqr_tsqr tree;
  const bqr_child *node = problem->children;
  lay_out(problem, variant, args->workspace, &tree);
  batchqr_status status =
      tree.chunks ? bqr_tsqr_gram(problem, args, &tree, stream) : bqr_tsqr_fill(problem, args, &tree, stream);
  for (int level = 0; level < tree.levels && !status; level++) {
    bqr_args nodes = level_args(problem, args, &tree, level);
    status = node->family->launch(&node->problem, node->variant, device, &nodes, stream);
    if (!status && level + 1 < tree.levels) status = bqr_tsqr_gather(problem, args, &tree, level, stream);
  }
  for (int level = tree.levels - 1; level > 0 && !status; level--)
    status = bqr_tsqr_push(problem, args, &tree, level, stream);
  return status ? status : bqr_tsqr_leaves(problem, args, &tree, stream);
}

const bqr_family bqr_family_geqrf_tsqr = {
    .name = "geqrf_tsqr",
    .op = BATCHQR_GEQRF,
    .types = BQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CUDA,
    .sm_min = 80,
    .variants = variants,
    .nvariants = sizeof variants / sizeof variants[0],
    .supports = supports,
    .workspace = workspace_bytes,
    .prepare = prepare,
    .launch = launch,
    .count_launches = count_launches,
    .prefers = prefers,
    .child = child,
    .leaves_tops = leaves_tops,
};
