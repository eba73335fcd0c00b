/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of one size form a class. */
#include "plan_build.h"
#include <stdlib.h>

typedef struct sized_member {
  bqr_dims sizes;
  int index;
} sized_member;

static int descending(int x, int y) { return (x < y) - (x > y); }

static int compare_sizes(bqr_dims x, bqr_dims y) {
  int order = descending(x.m, y.m);
  if (!order) order = descending(x.n, y.n);
  return order ? order : descending(x.k, y.k);
}

/* Large members first: they start early, and small ones fill the machine at the end. Members of one size stay
 * in their order. */
static int compare_members(const void *x, const void *y) {
  const sized_member *a = x, *b = y;
  int order = compare_sizes(a->sizes, b->sizes);
  return order ? order : descending(b->index, a->index);
}

static batchqr_status single_class(bqr_builder *b, bqr_dims sizes) {
  b->classes = bqr_plan_array(b, 1, sizeof *b->classes);
  if (!b->classes) return BATCHQR_OUT_OF_MEMORY;
  b->num_classes = b->plan->batch.count > 0 ? 1 : 0;
  b->classes[0] =
      (bqr_size_class){.sizes = sizes, .count = b->plan->batch.count, .similar = b->plan->batch.count};
  return BATCHQR_SUCCESS;
}

static int bits(int size) {
  int n = 0;
  for (; size > 0; size >>= 1) n++;
  return n;
}

/* Tables are measured on batches of one size. A mixed batch keeps the machine about as busy with members of
 * one size as a batch of all those whose m and n have the same numbers of bits. */
static void count_similar(bqr_builder *b) {
  int64_t counts[32][32] = {{0}};
  for (int64_t i = 0; i < b->num_classes; i++) {
    const bqr_size_class *c = &b->classes[i];
    counts[bits(c->sizes.m)][bits(c->sizes.n)] += c->count;
  }
  for (int64_t i = 0; i < b->num_classes; i++) {
    bqr_size_class *c = &b->classes[i];
    c->similar = counts[bits(c->sizes.m)][bits(c->sizes.n)];
  }
}

static batchqr_status collect_classes(bqr_builder *b, const sized_member *members, int64_t count) {
  b->num_classes = 1;
  for (int64_t i = 1; i < count; i++)
    b->num_classes += compare_sizes(members[i].sizes, members[i - 1].sizes) != 0;
  b->order = bqr_plan_array(b, count, sizeof *b->order);
  b->classes = bqr_plan_array(b, b->num_classes, sizeof *b->classes);
  if (!b->order || !b->classes) return BATCHQR_OUT_OF_MEMORY;
  int64_t next = 0;
  for (int64_t i = 0; i < count; i++) {
    if (i == 0 || compare_sizes(members[i].sizes, members[i - 1].sizes) != 0)
      b->classes[next++] = (bqr_size_class){.sizes = members[i].sizes, .first = i};
    b->classes[next - 1].count++;
    b->order[i] = members[i].index;
  }
  count_similar(b);
  return BATCHQR_SUCCESS;
}

static batchqr_status sort_classes(bqr_builder *b) {
  const batchqr_batch *batch = &b->plan->batch;
  sized_member *members = bqr_plan_array(b, batch->count, sizeof *members);
  if (!members) return BATCHQR_OUT_OF_MEMORY;
  for (int i = 0; i < batch->count; i++)
    members[i] = (sized_member){bqr_member_sizes(b->plan->operation, batch, i), i};
  qsort(members, (size_t)batch->count, sizeof *members, compare_members);
  batchqr_status status = collect_classes(b, members, batch->count);
  free(members);
  return status;
}

/* Any of the members may be in any box, and in each there is the empty one. The largest box comes first. */
static batchqr_status box_classes(bqr_builder *b) {
  const struct batchqr_plan *plan = b->plan;
  int boxes = plan->sort.num_rows * plan->sort.num_cols;
  b->classes = bqr_plan_array(b, boxes, sizeof *b->classes);
  if (!b->classes) return BATCHQR_OUT_OF_MEMORY;
  for (int box = boxes - 1; box >= 0; box--)
    b->classes[b->num_classes++] =
        (bqr_size_class){.sizes = bqr_sort_box_sizes(&plan->batch, &plan->sort, box),
                         .box = box,
                         .count = plan->batch.count + 1,
                         .similar = plan->batch.count,
                         .tall = bqr_sort_box_is_tall(&plan->sort, box)};
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_plan_classes(bqr_builder *b) {
  const batchqr_batch *batch = &b->plan->batch;
  const bqr_operation *operation = b->plan->operation;
  if (batch->count == 0) return BATCHQR_SUCCESS;
  if (b->plan->sorted) return box_classes(b);
  bqr_dims first = bqr_member_sizes(operation, batch, 0);
  if (batch->sizes != BATCHQR_HOST_SIZES) return single_class(b, first);
  int64_t equal = 1;
  while (equal < batch->count && compare_sizes(bqr_member_sizes(operation, batch, equal), first) == 0)
    equal++;
  return equal == batch->count ? single_class(b, first) : sort_classes(b);
}
