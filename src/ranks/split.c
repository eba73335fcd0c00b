/* SPDX-License-Identifier: BSD-3-Clause */
/* Deals members to ranks: the costliest first, each to the rank that has least so far (Graham's LPT rule,
 * within 4/3 of the best); members of one size in contiguous parts. */
#include "predict.h"
#include <batchqr/ranks.h>
#include <stdlib.h>

typedef struct piece {
  double seconds;
  int64_t member;
} piece;

/* Costliest first; of equals, in the order of members. */
static int compare(const void *x, const void *y) {
  const piece *a = x, *b = y;
  if (a->seconds != b->seconds) return a->seconds < b->seconds ? 1 : -1;
  return (a->member > b->member) - (a->member < b->member);
}

/* A heap of ranks by their time so far; of equals, by their number. */
typedef struct load {
  double seconds;
  int rank;
} load;

static bool is_less(const load *a, const load *b) {
  return a->seconds < b->seconds || (a->seconds == b->seconds && a->rank < b->rank);
}

static void sink(load *heap, int size) {
  for (int at = 0, child; (child = 2 * at + 1) < size; at = child) {
    if (child + 1 < size && is_less(&heap[child + 1], &heap[child])) child++;
    if (!is_less(&heap[child], &heap[at])) return;
    const load moved = heap[at];
    heap[at] = heap[child];
    heap[child] = moved;
  }
}

static void deal(const piece *pieces, int64_t count, load *heap, int size, int *rank_of) {
  for (int r = 0; r < size; r++) heap[r] = (load){0, r};
  for (int64_t i = 0; i < count; i++) {
    rank_of[pieces[i].member] = heap[0].rank;
    heap[0].seconds += pieces[i].seconds;
    sink(heap, size);
  }
}

static batchqr_status deal_by_cost(const struct batchqr_handle *h, const bqr_operation *operation,
                                   const batchqr_batch *batch, int size, int *rank_of, bqr_error *error) {
  const int64_t count = batch->count;
  piece *pieces = malloc((size_t)(count > 0 ? count : 1) * sizeof *pieces);
  load *heap = malloc((size_t)size * sizeof *heap);
  if (pieces && heap) {
    for (int64_t i = 0; i < count; i++)
      pieces[i] =
          (piece){bqr_predict(&h->device, operation, batch->type, bqr_member_sizes(operation, batch, i)), i};
    qsort(pieces, (size_t)count, sizeof *pieces, compare);
    deal(pieces, count, heap, size, rank_of);
  }
  const bool done = pieces && heap;
  free(pieces);
  free(heap);
  return done ? BATCHQR_SUCCESS : bqr_fail_memory(error, "a batch's costs");
}

static void add_up(const struct batchqr_handle *h, const bqr_operation *operation, const batchqr_batch *batch,
                   int size, const int *rank_of, double *times) {
  for (int r = 0; r < size; r++) times[r] = 0;
  for (int64_t i = 0; i < batch->count; i++)
    times[rank_of[i]] +=
        bqr_predict(&h->device, operation, batch->type, bqr_member_sizes(operation, batch, i));
}

static batchqr_status check(const bqr_operation *operation, const batchqr_batch *b, int size,
                            const int *rank_of, bqr_error *error) {
  const batchqr_status invalid = BATCHQR_INVALID_ARGUMENT;
  if (size < 1) return bqr_fail(error, invalid, "size = %d, and is to be 1 at least", size);
  if ((unsigned)b->type > BATCHQR_Z)
    return bqr_fail(error, invalid, "batch.type = %d is not a batchqr_type", (int)b->type);
  if ((unsigned)b->sizes > BATCHQR_DEVICE_SIZES)
    return bqr_fail(error, invalid, "batch.sizes = %d is not a batchqr_sizes", (int)b->sizes);
  if (b->sizes == BATCHQR_DEVICE_SIZES)
    return bqr_fail(error, BATCHQR_UNSUPPORTED, "batch.sizes: sizes on the device are not read on the host");
  if (b->count < 0) return bqr_fail(error, invalid, "batch.count = %lld is negative", (long long)b->count);
  if (b->count > 0 && !rank_of) return bqr_fail(error, invalid, "rank_of is NULL");
  if (b->count > 0 && b->sizes == BATCHQR_HOST_SIZES && (!b->m_array || !b->n_array))
    return bqr_fail(error, invalid, "batch.%s_array is NULL", b->m_array ? "n" : "m");
  const int64_t visible = b->count > 0 ? bqr_visible_members(b) : 0;
  for (int64_t i = 0; i < visible; i++) {
    const bqr_dims sizes = bqr_member_sizes(operation, b, i);
    if (sizes.m < 0 || sizes.n < 0 || sizes.k < 0)
      return bqr_fail(error, invalid, "member %lld has a negative size", (long long)i);
  }
  return BATCHQR_SUCCESS;
}

batchqr_status batchqr_split(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch, int size,
                             int *rank_of, double *times) {
  if (!handle) return BATCHQR_INVALID_ARGUMENT;
  bqr_error *error = &handle->error;
  if ((unsigned)op >= BQR_NUM_ROUTINES)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "op = %d is not a batchqr_op", (int)op);
  if (!batch) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch is NULL");
  const bqr_operation *operation = bqr_registry_operation(bqr_registry_builtin(), (int)op);
  batchqr_status status = check(operation, batch, size, rank_of, error);
  if (status) return status;
  if (batch->sizes == BATCHQR_HOST_SIZES)
    status = deal_by_cost(handle, operation, batch, size, rank_of, error);
  else /* rank r: count/size members, and one more of what is left over */
    for (int64_t i = 0; i < batch->count; i++) {
      const int64_t each = batch->count / size, over = batch->count % size, longer = over * (each + 1);
      rank_of[i] = (int)(i < longer ? i / (each + 1) : over + (i - longer) / (each > 0 ? each : 1));
    }
  if (!status && times) add_up(handle, operation, batch, size, rank_of, times);
  return status;
}
