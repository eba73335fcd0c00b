/* SPDX-License-Identifier: BSD-3-Clause */
/* What a handle holds. */
#ifndef BQR_SRC_HANDLE_H
#define BQR_SRC_HANDLE_H

#include "arguments.h"
#include "device.h"
#include "plan.h"

/* A problem in numbers, but for the contents of host size arrays. */
enum { BQR_KEY_WORDS = 19, BQR_CACHED_PLANS = 16 };
typedef struct bqr_key {
  uint64_t word[BQR_KEY_WORDS];
} bqr_key;

typedef struct bqr_cached {
  bqr_key key;
  uint64_t used;                          /* the handle's clock at the last use */
  struct batchqr_plan *plan;              /* NULL: free */
  const void *seen[BQR_NUM_OPERANDS + 3]; /* addresses that were found good last; info, norms and range too */
  bool captured;                          /* a graph may hold its launches */
} bqr_cached;

typedef struct bqr_buffer {
  struct bqr_buffer *next;
  void *data;
  size_t bytes;
} bqr_buffer;

struct batchqr_handle {
  bqr_device device;
  bqr_table *table; /* NULL: none */
  bqr_forced forced[BQR_NUM_OPS];
  bool sorts_always;
  batchqr_compute compute;
  bool positive;
  batchqr_stream stream;

  void *lent; /* the caller's workspace */
  size_t lent_bytes;
  bqr_buffer *buffer; /* the handle's own; NULL: none yet */
  bool buffer_captured;

  bqr_cached cache[BQR_CACHED_PLANS];
  bqr_cached *latest;
  uint64_t clock;

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

/* cache.c: finds the handle's plan for a problem, or makes it. */
batchqr_status bqr_cache_find(struct batchqr_handle *handle, batchqr_op op, const batchqr_batch *batch,
                              const bqr_names *names, bqr_cached **cached);
void bqr_cache_clear(struct batchqr_handle *handle);
/* Enqueues a cached plan with the handle's workspace. */
batchqr_status bqr_cache_execute(struct batchqr_handle *handle, bqr_cached *cached,
                                 const batchqr_operands *operands, const bqr_names *names);
/* Releases cached plans, buffers and what is retired; waits for their users. */
void bqr_cache_free(struct batchqr_handle *handle);

/* Checks, plans and readies. */
batchqr_status bqr_make_plan(struct batchqr_handle *handle, batchqr_op op, const batchqr_batch *batch,
                             const bqr_names *names, struct batchqr_plan **plan);

#endif
