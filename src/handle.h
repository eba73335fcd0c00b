/* SPDX-License-Identifier: BSD-3-Clause */
/* What a handle holds. */
#ifndef BQR_SRC_HANDLE_H
#define BQR_SRC_HANDLE_H

#include "arguments.h"
#include "device.h"
#include "plan.h"

/* A problem: all that a plan depends on, but for the contents of host size arrays, byte for byte. */
typedef struct bqr_key {
  const bqr_operation *operation;
  uint64_t compute, workspace_limit;
  batchqr_batch batch; /* normalized; of host size arrays only whether there are any */
} bqr_key;

/* A kept plan, in a list of those whose keys have the same hash, and in a list of all by their last use. */
typedef struct bqr_cached {
  struct bqr_cached *same_hash, *newer, *older;
  bqr_key key;
  uint64_t hash;
  struct batchqr_plan *plan;
  const void *seen[BQR_NUM_OPERANDS]; /* addresses that were found good last; info's at BQR_NO_OPERAND */
  bool captured;                      /* a graph may hold its launches */
} bqr_cached;

enum { BQR_PLANS_KEPT = 256, BQR_BUCKETS = 512 };
typedef struct bqr_cache {
  bqr_cached *buckets[BQR_BUCKETS];
  bqr_cached *newest, *oldest;
  int count;
} bqr_cache;

typedef struct bqr_buffer {
  struct bqr_buffer *next;
  void *data;
  size_t bytes;
} bqr_buffer;

struct batchqr_handle {
  bqr_device device;
  bqr_table *table;       /* NULL: none */
  bqr_table *child_table; /* NULL: none */
  bqr_forced forced[BQR_NUM_FORCED];
  bool sorts_always;
  int64_t strip_elements; /* 0: as ever, see bqr_set_strip() */
  batchqr_compute compute;
  size_t workspace_limit; /* of plans; 0: none */
  bool positive;
  bool verbose;
  batchqr_stream stream;

  void *lent; /* the caller's workspace */
  size_t lent_bytes;
  bqr_buffer *buffer; /* the handle's own; NULL: none yet */
  bool buffer_captured;

  bqr_cache cache;
  int most_plans;

  /* What graphs may still use when the handle has no use for it any more. */
  struct batchqr_plan *retired_plans;
  bqr_buffer *retired_buffers;

  /* Behind the last work that uses the buffer or a cached plan's device memory, and that work's stream. */
  bqr_fence *fence;
  batchqr_stream fence_stream;

  bqr_error error;
  char description[512];
};

bqr_planner bqr_handle_planner(const struct batchqr_handle *handle);

/* api.c: the one-call tier. */
batchqr_status bqr_call(batchqr_handle_t handle, batchqr_op op, const batchqr_batch *batch,
                        const batchqr_operands *operands, bqr_caller caller);

/* Enqueues on the handle's stream, and says so where that is wanted. Operands and workspace are checked. */
batchqr_status bqr_launch(struct batchqr_handle *handle, const struct batchqr_plan *plan,
                          const batchqr_operands *operands, void *workspace);

/* cache.c: finds the handle's plan for a problem, or makes it. */
batchqr_status bqr_cache_find(struct batchqr_handle *handle, int op, const batchqr_batch *batch,
                              bqr_caller caller, bqr_cached **cached);
void bqr_cache_clear(struct batchqr_handle *handle);
/* Enqueues a cached plan with the handle's workspace. */
batchqr_status bqr_cache_execute(struct batchqr_handle *handle, bqr_cached *cached,
                                 const batchqr_operands *operands, bqr_caller caller);
/* Releases cached plans, buffers and what is retired; waits for their users. */
void bqr_cache_free(struct batchqr_handle *handle);

/* handle.c: plans a batch whose enums are checked, given as it is normalized, and readies the plan. */
batchqr_status bqr_make_plan(struct batchqr_handle *handle, const bqr_operation *operation,
                             const batchqr_batch *normalized, bqr_caller caller, struct batchqr_plan **plan);

#endif
