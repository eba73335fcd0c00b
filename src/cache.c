/* SPDX-License-Identifier: BSD-3-Clause */
/* What the one-call tier keeps between calls: plans, and a workspace. */
#include "handle.h"
#include <stdlib.h>
#include <string.h>

/* --- keys */

static bqr_key make_key(const struct batchqr_handle *handle, const bqr_operation *operation,
                        const batchqr_batch *normalized) {
  static const int some;
  bqr_key key;
  memset(&key, 0, sizeof key);
  key.operation = operation;
  key.compute = handle->compute;
  key.workspace_limit = handle->workspace_limit;
  memcpy(&key.batch, normalized, sizeof key.batch);
  if (normalized->sizes != BATCHQR_HOST_SIZES) return key;
  bqr_batch_array arrays[BQR_MOST_ARRAYS];
  const int count = bqr_batch_arrays(operation, &key.batch, arrays);
  for (int i = 0; i < count; i++)
    if (*arrays[i].at) *arrays[i].at = &some;
  return key;
}

/* FNV-1a, by words of 64 bits. */
static uint64_t hash_of(const bqr_key *key) {
  uint64_t hash = UINT64_C(14695981039346656037), word;
  _Static_assert(sizeof *key % sizeof word == 0, "a key is made of words");
  for (size_t at = 0; at < sizeof *key; at += sizeof word) {
    memcpy(&word, (const char *)key + at, sizeof word);
    hash = (hash ^ word) * UINT64_C(1099511628211);
  }
  return hash ^ hash >> 32;
}

static bool matches(const bqr_cached *cached, const bqr_key *key, const batchqr_batch *batch) {
  return memcmp(&cached->key, key, sizeof *key) == 0 && bqr_plan_same_sizes(cached->plan, batch);
}

/* --- plans */

static bqr_cached **bucket_of(bqr_cache *cache, uint64_t hash) { return &cache->buckets[hash % BQR_BUCKETS]; }

static void unlink_use(bqr_cache *cache, bqr_cached *c) {
  *(c->newer ? &c->newer->older : &cache->newest) = c->older;
  *(c->older ? &c->older->newer : &cache->oldest) = c->newer;
}

static void link_newest(bqr_cache *cache, bqr_cached *c) {
  c->newer = NULL;
  c->older = cache->newest;
  *(c->older ? &c->older->newer : &cache->oldest) = c;
  cache->newest = c;
}

static void release(struct batchqr_handle *handle, bqr_cached *cached) {
  bqr_cached **link = bucket_of(&handle->cache, cached->hash);
  while (*link != cached) link = &(*link)->same_hash;
  *link = cached->same_hash;
  unlink_use(&handle->cache, cached);
  handle->cache.count--;
  struct batchqr_plan *plan = cached->plan;
  if (cached->captured) {
    plan->next = handle->retired_plans;
    handle->retired_plans = plan;
  } else {
    if (plan->reads_image) bqr_fence_wait(&handle->device, handle->fence);
    bqr_plan_free(plan);
  }
  free(cached);
}

void bqr_cache_clear(struct batchqr_handle *handle) {
  while (handle->cache.oldest) release(handle, handle->cache.oldest);
}

static batchqr_status insert(struct batchqr_handle *handle, const bqr_key *key, uint64_t hash,
                             const batchqr_batch *normalized, bqr_caller caller, bqr_cached **cached) {
  if (bqr_stream_captured(&handle->device, handle->stream))
    return bqr_fail(&handle->error, BATCHQR_CAPTURE_ERROR,
                    "the first call for a problem allocates, and the handle's stream is being captured");
  bqr_cached *c = calloc(1, sizeof *c);
  if (!c) return bqr_fail_memory(&handle->error, "the plan");
  batchqr_status status = bqr_make_plan(handle, key->operation, normalized, caller, &c->plan);
  if (status) {
    free(c);
    return status;
  }
  if (handle->cache.count == handle->most_plans) release(handle, handle->cache.oldest);
  bqr_cached **bucket = bucket_of(&handle->cache, hash);
  memcpy(&c->key, key, sizeof *key);
  c->hash = hash;
  c->same_hash = *bucket;
  *bucket = c;
  link_newest(&handle->cache, c);
  handle->cache.count++;
  *cached = c;
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_cache_find(struct batchqr_handle *handle, int op, const batchqr_batch *batch,
                              bqr_caller caller, bqr_cached **cached) {
  const bqr_operation *operation = bqr_registry_operation(bqr_registry_builtin(), op);
  batchqr_status status = bqr_check_enums(operation, batch, caller, &handle->error);
  if (status) return status;
  const batchqr_batch normalized = bqr_batch_normalized(operation, batch);
  const bqr_key key = make_key(handle, operation, &normalized);
  const uint64_t hash = hash_of(&key);
  bqr_cached *found = *bucket_of(&handle->cache, hash);
  while (found && !(found->hash == hash && matches(found, &key, &normalized))) found = found->same_hash;
  *cached = found;
  if (!found) return insert(handle, &key, hash, &normalized, caller, cached);
  if (found == handle->cache.newest) return BATCHQR_SUCCESS;
  unlink_use(&handle->cache, found);
  link_newest(&handle->cache, found);
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
static batchqr_status check_address(struct batchqr_handle *handle, bqr_cached *cached, const bqr_use *use,
                                    const void *address, bqr_caller caller) {
  const void **seen = &cached->seen[use ? use->place : BQR_NO_OPERAND];
  if (!address || address == *seen) return BATCHQR_SUCCESS;
  if (!bqr_address_serves_device(&handle->device, address))
    return bqr_fail(&handle->error, BATCHQR_INVALID_ARGUMENT, "%s = %p is host memory that %s cannot reach",
                    bqr_operand_name(use, caller).text, address, handle->device.name);
  *seen = address;
  return BATCHQR_SUCCESS;
}

static batchqr_status check_memory(struct batchqr_handle *handle, bqr_cached *cached,
                                   const batchqr_operands *operands, bqr_caller caller) {
  const struct batchqr_plan *plan = cached->plan;
  batchqr_status status = check_address(handle, cached, NULL, operands->info, caller);
  for (const bqr_use *use = plan->operation->uses; use->place && !status; use++)
    if (plan->largest[use->place] > 0)
      status = check_address(handle, cached, use, bqr_address_at(operands, (int)use->place), caller);
  return status;
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
                                 const batchqr_operands *operands, bqr_caller caller) {
  struct batchqr_plan *plan = cached->plan;
  void *workspace;
  batchqr_status status = bqr_check_operands(plan, operands, caller, &handle->error);
  if (!status) status = check_memory(handle, cached, operands, caller);
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
  if (!status) status = bqr_launch(handle, plan, operands, workspace);
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
