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

/* A temporary has a part for each member: at even distances with one size for all, else close-packed, since
 * one large member among many small ones must not multiply the space. */
static bool size_temporary(bqr_builder *b, int place, size_t *end) {
  struct batchqr_plan *plan = b->plan;
  bqr_temporary *temporary = &plan->temporaries[place - BQR_NUM_OPERANDS];
  int64_t elements = 0;
  for (int64_t i = 0; i < b->num_classes; i++) {
    const bqr_size_class *c = &b->classes[i];
    if (plan->sorted && i > 0) break; /* all members might be in the largest box */
    int64_t each = bqr_temporary_elements(place, &plan->batch, c->sizes), more;
    if (each > 0) temporary->stride = each;
    if (__builtin_mul_overflow(c->count, each, &more) || __builtin_add_overflow(elements, more, &elements))
      return false;
  }
  const size_t size = bqr_temporary_bytes(place, plan->batch.type);
  return !__builtin_mul_overflow((size_t)elements, size, &temporary->bytes) &&
         bqr_reserve(end, temporary->bytes, 1, &temporary->at);
}

static bool size_temporaries(bqr_builder *b, size_t *end) {
  for (int place = BQR_NUM_OPERANDS; place < BQR_NUM_SOURCES; place++)
    if ((b->temporaries & BQR_TEMPORARY(place)) && !size_temporary(b, place, end)) return false;
  return true;
}

/* The families' workspaces, one for each stream. */
static bool size_families(struct batchqr_plan *plan, size_t *end) {
  size_t largest[BQR_MOST_STREAMS] = {0}, at[BQR_MOST_STREAMS];
  for (int i = 0; i < plan->num_groups; i++) {
    bqr_group *g = &plan->groups[i];
    if (g->family->workspace) g->workspace = g->family->workspace(&g->problem, g->variant, &plan->device);
    if (g->workspace > largest[g->stream]) largest[g->stream] = g->workspace;
  }
  const size_t start = *end;
  for (int i = 0; i < plan->num_streams; i++)
    if (!bqr_reserve(end, largest[i], 1, &at[i])) return false;
  plan->families_bytes = *end - start;
  for (int i = 0; i < plan->num_groups; i++) plan->groups[i].workspace_at = at[plan->groups[i].stream];
  return true;
}

batchqr_status bqr_plan_size_workspace(bqr_builder *b) {
  struct batchqr_plan *plan = b->plan;
  size_t *end = &plan->workspace_bytes;
  const bool counted =
      size_temporaries(b, end) && (!plan->sorted || bqr_sort_size(plan, end)) && size_families(plan, end);
  return counted ? BATCHQR_SUCCESS : fail_uncountable(b);
}

/* --- the image */

/* Whether members' parts of a temporary are found by offsets. */
static bool has_offsets(const bqr_builder *b, int place) {
  return b->order && bqr_temporary_varies(place) && (b->temporaries & BQR_TEMPORARY(place));
}

static void fill_offsets(const struct batchqr_plan *plan, int place, int64_t *offsets) {
  const batchqr_batch *batch = &plan->batch;
  int64_t next = 0;
  for (int64_t i = 0; i < batch->count; i++) {
    offsets[i] = next;
    next += bqr_temporary_elements(place, batch, bqr_member_sizes(plan->operation, batch, i));
  }
}

batchqr_status bqr_plan_make_image(bqr_builder *b) {
  struct batchqr_plan *plan = b->plan;
  batchqr_batch *batch = &plan->batch;
  if (batch->sizes != BATCHQR_HOST_SIZES || batch->count == 0) return BATCHQR_SUCCESS;
  bqr_batch_array arrays[BQR_MOST_ARRAYS];
  const int num_arrays = bqr_batch_arrays(plan->operation, batch, arrays);
  size_t count = (size_t)batch->count, ints = b->num_listed, offsets = 0;
  for (int i = 0; i < num_arrays; i++) ints += *arrays[i].at ? count : 0;
  for (int place = BQR_NUM_OPERANDS; place < BQR_NUM_SOURCES; place++)
    offsets += has_offsets(b, place) ? count : 0;
  plan->image_bytes = offsets * sizeof(int64_t) + ints * sizeof(int);
  plan->image = bqr_plan_array(b, 1, plan->image_bytes);
  if (!plan->image) return BATCHQR_OUT_OF_MEMORY;

  int64_t *next_offsets = plan->image;
  for (int place = BQR_NUM_OPERANDS; place < BQR_NUM_SOURCES; place++) {
    if (!has_offsets(b, place)) continue;
    fill_offsets(plan, place, next_offsets);
    plan->temporaries[place - BQR_NUM_OPERANDS].offsets = next_offsets;
    next_offsets += count;
  }
  int *next = (int *)next_offsets;
  plan->reads_image = b->order != NULL;
  for (int i = 0; i < num_arrays; i++) {
    if (!*arrays[i].at) continue;
    if (arrays[i].owner) plan->reads_image = true;
    *arrays[i].at = memcpy(next, *arrays[i].at, count * sizeof(int));
    next += count;
  }
  if (b->num_listed > 0) memcpy(next, b->lists, b->num_listed * sizeof(int));
  plan->lists = next;
  return BATCHQR_SUCCESS;
}

bool bqr_plan_same_sizes(const struct batchqr_plan *plan, const batchqr_batch *batch) {
  if (batch->sizes != BATCHQR_HOST_SIZES || batch->count == 0) return true;
  batchqr_batch mine = plan->batch, other = *batch;
  bqr_batch_array x[BQR_MOST_ARRAYS], y[BQR_MOST_ARRAYS];
  const int num_arrays = bqr_batch_arrays(plan->operation, &mine, x);
  bqr_batch_arrays(plan->operation, &other, y);
  for (int i = 0; i < num_arrays; i++)
    if (*x[i].at && memcmp(*x[i].at, *y[i].at, (size_t)batch->count * sizeof(int)) != 0) return false;
  return true;
}
