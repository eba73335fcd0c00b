/* SPDX-License-Identifier: BSD-3-Clause */
/* What the one-call tier keeps between calls: plans, and a workspace. */
#include "handle.h"
#include <stdlib.h>
#include <string.h>

/* --- keys */

/* Addresses where they are what matters, else whether there are any. */
static uint64_t array_word(const batchqr_batch *b, const int *array) {
  return b->sizes == BATCHQR_HOST_SIZES ? array != NULL : (uint64_t)(uintptr_t)array;
}

static uint64_t pair(int high, int low) { return (uint64_t)(uint32_t)high << 32 | (uint32_t)low; }

static bqr_key make_key(const struct batchqr_handle *handle, batchqr_op op, const batchqr_batch *b) {
  return (bqr_key){{
      pair((int)op, (int)b->type),
      pair((int)b->layout, (int)b->sizes),
      pair((int)b->side, (int)b->trans),
      pair((int)handle->compute, b->k),
      pair(b->m, b->n),
      (uint64_t)b->count,
      array_word(b, b->m_array),
      array_word(b, b->n_array),
      array_word(b, b->k_array),
      array_word(b, b->a.ld_array),
      array_word(b, b->c.ld_array),
      array_word(b, b->r.ld_array),
      pair(b->a.ld, b->c.ld),
      pair(b->r.ld, 0),
      (uint64_t)b->a.stride,
      (uint64_t)b->c.stride,
      (uint64_t)b->r.stride,
      (uint64_t)b->stride_tau,
      (uint64_t)b->stride_norms,
  }};
}

static bool matches(const bqr_cached *cached, const bqr_key *key, const batchqr_batch *batch) {
  return cached->plan && memcmp(&cached->key, key, sizeof *key) == 0 &&
         bqr_plan_same_sizes(cached->plan, batch);
}

/* --- plans */

static void release(struct batchqr_handle *handle, bqr_cached *cached) {
  struct batchqr_plan *plan = cached->plan;
  if (plan && cached->captured) {
    plan->next = handle->retired_plans;
    handle->retired_plans = plan;
  } else if (plan) {
    if (plan->reads_image) bqr_fence_wait(&handle->device, handle->fence);
    bqr_plan_free(plan);
  }
  *cached = (bqr_cached){.plan = NULL};
}

void bqr_cache_clear(struct batchqr_handle *handle) {
  for (int i = 0; i < BQR_CACHED_PLANS; i++) release(handle, &handle->cache[i]);
  handle->latest = NULL;
}

/* A free entry, or the one that was not used for the longest time. */
static bqr_cached *oldest(struct batchqr_handle *handle) {
  bqr_cached *found = &handle->cache[0];
  for (int i = 1; i < BQR_CACHED_PLANS; i++)
    if (handle->cache[i].used < found->used) found = &handle->cache[i];
  return found;
}

static batchqr_status insert(struct batchqr_handle *handle, batchqr_op op, const batchqr_batch *batch,
                             const bqr_names *names, const bqr_key *key, bqr_cached **cached) {
  if (bqr_stream_captured(&handle->device, handle->stream))
    return bqr_fail(&handle->error, BATCHQR_CAPTURE_ERROR,
                    "the first call for a problem allocates, and the handle's stream is being captured");
  struct batchqr_plan *plan;
  batchqr_status status = bqr_make_plan(handle, op, batch, names, &plan);
  if (status) return status;
  *cached = oldest(handle);
  release(handle, *cached);
  (*cached)->key = *key;
  (*cached)->plan = plan;
  return BATCHQR_SUCCESS;
}

/* Whether a key can be made, which looks at what these say. */
static bool has_known_layout(const batchqr_batch *b) {
  return (unsigned)b->layout <= BATCHQR_POINTERS && (unsigned)b->sizes <= BATCHQR_DEVICE_SIZES;
}

batchqr_status bqr_cache_find(struct batchqr_handle *handle, batchqr_op op, const batchqr_batch *batch,
                              const bqr_names *names, bqr_cached **cached) {
  if (!has_known_layout(batch)) return bqr_check_enums(op, batch, names, &handle->error);
  batchqr_batch normalized = bqr_batch_normalized(op, batch);
  bqr_key key = make_key(handle, op, &normalized);
  bqr_cached *found = handle->latest;
  if (!found || !matches(found, &key, &normalized)) {
    bqr_cached *end = handle->cache + BQR_CACHED_PLANS;
    for (found = handle->cache; found < end && !matches(found, &key, &normalized);) found++;
    batchqr_status status = found < end ? BATCHQR_SUCCESS : insert(handle, op, batch, names, &key, &found);
    if (status) return status;
  }
  found->used = ++handle->clock;
  handle->latest = *cached = found;
  return BATCHQR_SUCCESS;
}

/* --- workspace */

static void free_buffer(struct batchqr_handle *handle, bqr_buffer *buffer) {
  if (buffer) bqr_memory_free(&handle->device, buffer->data);
  free(buffer);
}

static void release_buffer(struct batchqr_handle *handle) {
  bqr_buffer *buffer = handle->buffer;
  if (buffer && handle->buffer_captured) {
    buffer->next = handle->retired_buffers;
    handle->retired_buffers = buffer;
  } else if (buffer) {
    bqr_fence_wait(&handle->device, handle->fence);
    free_buffer(handle, buffer);
  }
  handle->buffer = NULL;
  handle->buffer_captured = false;
}

static batchqr_status grow_buffer(struct batchqr_handle *handle, size_t bytes) {
  if (bqr_stream_captured(&handle->device, handle->stream))
    return bqr_fail(
        &handle->error, BATCHQR_CAPTURE_ERROR,
        "the handle's workspace would have to grow to %zu bytes while its stream is being captured", bytes);
  release_buffer(handle);
  bqr_buffer *buffer = calloc(1, sizeof *buffer);
  if (!buffer) return bqr_fail_memory(&handle->error, "the handle's workspace");
  batchqr_status status = bqr_memory_new(&handle->device, bytes, &buffer->data, &handle->error);
  if (status) {
    free(buffer);
    return status;
  }
  buffer->bytes = bytes;
  handle->buffer = buffer;
  return BATCHQR_SUCCESS;
}

static batchqr_status find_workspace(struct batchqr_handle *handle, const struct batchqr_plan *plan,
                                     void **workspace) {
  *workspace = handle->lent;
  if (handle->lent) return bqr_check_workspace(plan, handle->lent, handle->lent_bytes, &handle->error);
  size_t needed = plan->workspace_bytes;
  if (needed > (handle->buffer ? handle->buffer->bytes : 0)) {
    batchqr_status status = grow_buffer(handle, needed);
    if (status) return status;
  }
  *workspace = needed > 0 ? handle->buffer->data : NULL;
  return BATCHQR_SUCCESS;
}

/* --- execution */

/* A host address given to a kernel would be the end of the CUDA context, so it is worth a look. */
static batchqr_status check_memory(struct batchqr_handle *handle, bqr_cached *cached,
                                   const batchqr_operands *operands, const bqr_names *names) {
  enum { INFO = BQR_NUM_OPERANDS, NORMS, RANGE };
  for (int x = 0; x <= RANGE; x++) {
    if (x < INFO && !cached->plan->touches[x]) continue;
    const void *address = x == RANGE   ? operands->range
                          : x == NORMS ? operands->norms
                          : x == INFO  ? operands->info
                                       : bqr_operand(operands, x);
    if (!address || address == cached->seen[x]) continue;
    if (!bqr_address_serves_device(&handle->device, address))
      return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "%s = %p is host memory that %s cannot reach",
                      x == RANGE   ? names->range
                      : x == NORMS ? names->norms
                      : x == INFO  ? names->info
                                   : names->operand[x],
                      address, handle->device.name);
    cached->seen[x] = address;
  }
  return BATCHQR_SUCCESS;
}

/* Work on another stream than the last one may use the same memory: it waits its turn. */
static batchqr_status begin_turn(struct batchqr_handle *handle, bool captured) {
  if (handle->fence_stream == handle->stream) return BATCHQR_SUCCESS;
  if (!captured) return bqr_fence_order(&handle->device, handle->fence, handle->stream, &handle->error);
  bqr_fence_wait(&handle->device, handle->fence);
  return BATCHQR_SUCCESS;
}

static batchqr_status end_turn(struct batchqr_handle *handle, bqr_error *error) {
  handle->fence_stream = handle->stream;
  return bqr_fence_record(&handle->device, &handle->fence, handle->stream, error);
}

batchqr_status bqr_cache_execute(struct batchqr_handle *handle, bqr_cached *cached,
                                 const batchqr_operands *operands, const bqr_names *names) {
  struct batchqr_plan *plan = cached->plan;
  void *workspace;
  batchqr_status status = bqr_check_operands(plan, operands, names, &handle->error);
  if (!status) status = check_memory(handle, cached, operands, names);
  if (!status) status = find_workspace(handle, plan, &workspace);
  if (status) return status;

  bool uses_buffer = plan->workspace_bytes > 0 && !handle->lent;
  bool own = handle->device.backend == BATCHQR_BACKEND_CUDA && (uses_buffer || plan->reads_image);
  bool captured = own && bqr_stream_captured(&handle->device, handle->stream);
  if (captured) {
    cached->captured = true;
    handle->buffer_captured = handle->buffer_captured || uses_buffer;
  }
  if (own) status = begin_turn(handle, captured);
  if (!status) status = bqr_plan_launch(plan, operands, workspace, handle->stream, &handle->error);
  if (own && !captured) { /* what was enqueued before a failure counts too */
    bqr_error second;
    batchqr_status recorded = end_turn(handle, status ? &second : &handle->error);
    if (!status) status = recorded;
  }
  return status;
}

void bqr_cache_free(struct batchqr_handle *handle) {
  bqr_fence_wait(&handle->device, handle->fence);
  bqr_cache_clear(handle);
  release_buffer(handle);
  while (handle->retired_plans) {
    struct batchqr_plan *plan = handle->retired_plans;
    handle->retired_plans = plan->next;
    bqr_plan_free(plan);
  }
  while (handle->retired_buffers) {
    bqr_buffer *buffer = handle->retired_buffers;
    handle->retired_buffers = buffer->next;
    free_buffer(handle, buffer);
  }
  bqr_fence_free(&handle->device, handle->fence);
}
