/* SPDX-License-Identifier: BSD-3-Clause */
/* Sizes on the device: the planner does not see them, so it plans for boxes of sizes, and the device sorts
 * members into these. A launch reads the list of its boxes' members. Lists are filled up with one more
 * member, which is empty, so that launches need not know how many there are. */
#include "costs.h"
#include "plan.h"
#include <limits.h>
#include <string.h>

/* Larger members are the panels' families', which deal out ranges of lists to blocks: some would get nothing
 * but the empty member. GELS beyond SMALL is done in steps that do the same. */
enum { MOST_ROWS = 1024, MOST_COLS = 256, SMALL = 64 };

/* Where boxes end, besides at the bounds: finely where both of these are small. */
static const int small_edges[] = {4, 8, 16, 24, 32};
static const int row_edges[] = {16, 32, 64, 128, 256, 512};
static const int col_edges[] = {16, 32, 128};
#define LENGTH(array) (int)(sizeof(array) / sizeof((array)[0]))

static bool is_small(const batchqr_batch *batch) { return bqr_max(batch->m, batch->n) <= SMALL; }

bool bqr_sort_pays(const bqr_operation *operation, const batchqr_batch *batch, const bqr_device *device) {
  const bqr_costs *costs = bqr_costs_of(device);
  const double count = (double)batch->count, each = (double)batch->m * batch->n * bqr_min(batch->m, batch->n);
  return operation->sorting == BQR_SORTED_SMALL ? count >= costs->sort_systems
                                                : count * each >= costs->sort_multiplications;
}

static bool sortable(const bqr_operation *operation, const batchqr_batch *batch) {
  if (batch->sizes != BATCHQR_DEVICE_SIZES || batch->count >= INT_MAX || batch->m > MOST_ROWS ||
      batch->n > MOST_COLS)
    return false;
  return operation->sorting == BQR_SORTED || (operation->sorting == BQR_SORTED_SMALL && is_small(batch));
}

static int set_edges(const int *edges, int count, int bound, int *to) {
  int n = 0;
  while (n < count && edges[n] < bound) to[n] = edges[n], n++;
  to[n] = bound;
  return n + 1;
}

int bqr_sort_boxes(const bqr_operation *operation, const batchqr_batch *batch, bqr_sort *sort) {
  *sort = (bqr_sort){.rhs = operation->k == BQR_RIGHT_HAND_SIDES};
  if (!sortable(operation, batch)) return 1;
  bool small = is_small(batch);
  const int *rows = small ? small_edges : row_edges, *cols = small ? small_edges : col_edges;
  sort->num_rows = set_edges(rows, small ? LENGTH(small_edges) : LENGTH(row_edges), batch->m, sort->rows);
  sort->num_cols = set_edges(cols, small ? LENGTH(small_edges) : LENGTH(col_edges), batch->n, sort->cols);
  return sort->num_rows * sort->num_cols;
}

bqr_dims bqr_sort_box_sizes(const batchqr_batch *batch, const bqr_sort *sort, int box) {
  return (bqr_dims){sort->rows[box / sort->num_cols], sort->cols[box % sort->num_cols], batch->k};
}

bool bqr_sort_box_is_tall(const bqr_sort *sort, int box) {
  int i = box / sort->num_cols;
  return i > 0 && sort->rows[i - 1] + 1 >= sort->cols[box % sort->num_cols];
}

/* The list of these boxes, a new one if need be; -1 if there are too many. */
static int find_list(bqr_sort *sort, uint64_t boxes) {
  for (int i = 0; i < sort->num_lists; i++)
    if (sort->boxes[i] == boxes) return i;
  if (sort->num_lists == BQR_SORT_LISTS) return -1;
  sort->boxes[sort->num_lists] = boxes;
  return sort->num_lists++;
}

bool bqr_sort_list(struct batchqr_plan *plan) {
  int boxes = plan->sort.num_rows * plan->sort.num_cols;
  uint64_t all = UINT64_MAX >> (BQR_SORT_BOXES - boxes);
  bool apart = false;
  for (int i = 0; i < plan->num_groups; i++) {
    bqr_group *g = &plan->groups[i];
    if (g->problem.op == BQR_SORT) continue;
    int list = find_list(&plan->sort, g->boxes);
    if (list < 0) return false;
    g->list = list * (plan->batch.count + 1);
    apart = apart || g->boxes != all;
  }
  return apart;
}

/* Reserves an array of ints where it is wanted. */
static bool reserve(size_t *end, bool wanted, size_t ints, size_t *at) {
  return bqr_reserve(end, wanted ? ints : 0, sizeof(int), at);
}

bool bqr_sort_size(struct batchqr_plan *plan, size_t *end) {
  const batchqr_batch *b = &plan->batch;
  bqr_sort_places *p = &plan->sort_places;
  size_t count = (size_t)b->count + 1, lists;
  return reserve(end, true, 2 * BQR_SORT_BOXES, &p->counts) && reserve(end, true, count, &p->m) &&
         reserve(end, true, count, &p->n) && reserve(end, plan->sort.rhs, count, &p->k) &&
         reserve(end, b->a.ld_array, count, &p->lda) && reserve(end, b->c.ld_array, count, &p->ldc) &&
         reserve(end, b->r.ld_array, count, &p->ldr) && reserve(end, true, count, &p->info) &&
         reserve(end, true, count, &p->box) &&
         !__builtin_mul_overflow(count, (size_t)plan->sort.num_lists, &lists) &&
         reserve(end, true, lists, &p->lists);
}

static int *ints_at(char *workspace, bool wanted, size_t at) {
  return wanted ? (int *)(void *)(workspace + at) : NULL;
}

bqr_sort bqr_sort_bind(const struct batchqr_plan *plan, bool info, char *workspace) {
  const batchqr_batch *b = &plan->batch;
  const bqr_sort_places *p = &plan->sort_places;
  bqr_sort sort = plan->sort;
  sort.counts = ints_at(workspace, true, p->counts);
  sort.m = ints_at(workspace, true, p->m);
  sort.n = ints_at(workspace, true, p->n);
  sort.k = ints_at(workspace, plan->sort.rhs, p->k);
  sort.lda = ints_at(workspace, b->a.ld_array, p->lda);
  sort.ldc = ints_at(workspace, b->c.ld_array, p->ldc);
  sort.ldr = ints_at(workspace, b->r.ld_array, p->ldr);
  sort.info = ints_at(workspace, info, p->info);
  sort.box = ints_at(workspace, true, p->box);
  sort.lists = ints_at(workspace, true, p->lists);
  return sort;
}

static void replace(const int **array, const int *callers, const int *copy) {
  if (*array && *array == callers) *array = copy;
}

void bqr_sort_apply(const struct batchqr_plan *plan, const bqr_sort *sort, const bqr_group *g,
                    bqr_args *args) {
  const batchqr_batch *b = &plan->batch;
  args->members = sort->lists + g->list;
  replace(&args->m_array, b->m_array, sort->m);
  replace(&args->n_array, b->n_array, sort->n);
  if (args->m_array == sort->m) args->k_array = sort->k; /* none of the empty one where k is one for all */
  replace(&args->a.ld_array, b->a.ld_array, sort->lda);
  replace(&args->c.ld_array, b->c.ld_array, sort->ldc);
  replace(&args->r.ld_array, b->r.ld_array, sort->ldr);
  if (args->info) args->info = sort->info;
}
