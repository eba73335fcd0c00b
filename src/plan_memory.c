/* SPDX-License-Identifier: BSD-3-Clause */
/* The memory of a plan: what its workspace holds, and its image, the copies of the caller's size arrays. */
#include "device.h"
#include "plan_build.h"
#include <string.h>

static batchqr_status fail_uncountable(const bqr_builder *b) {
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
static batchqr_status size_tau(bqr_builder *b) {
  struct batchqr_plan *plan = b->plan;
  int64_t elements = 0;
  for (int64_t i = 0; i < b->num_classes; i++) {
    const bqr_size_class *c = &b->classes[i];
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
static bool size_gels(bqr_builder *b, size_t *end) {
  struct batchqr_plan *plan = b->plan;
  int64_t elements = 0;
  for (int64_t i = 0; i < b->num_classes; i++) {
    const bqr_size_class *c = &b->classes[i];
    int64_t more, each = (int64_t)c->sizes.m * c->sizes.n;
    if (plan->sorted && i > 0) break;
    if (!bqr_gels_copies(&plan->batch, c->sizes)) continue;
    plan->gels.stride = each;
    if (__builtin_mul_overflow(c->count, each, &more) || __builtin_add_overflow(elements, more, &elements))
      return false;
  }
  return bqr_gels_size(plan, elements, end);
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

batchqr_status bqr_plan_size_workspace(bqr_builder *b) {
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

static int64_t *fill_tau_offsets(const bqr_builder *b, int64_t *offsets) {
  const batchqr_batch *batch = &b->plan->batch;
  int64_t next = 0;
  for (int64_t i = 0; i < batch->count; i++) {
    offsets[i] = next;
    next += bqr_min(batch->m_array[i], batch->n_array[i]);
  }
  return offsets;
}

batchqr_status bqr_plan_make_image(bqr_builder *b) {
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
  plan->image = bqr_plan_array(b, 1, plan->image_bytes);
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
