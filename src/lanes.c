/* SPDX-License-Identifier: BSD-3-Clause */
#include "lanes.h"
#include "config.h"

#if BQR_HAVE_CUDA
#include "device.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>

struct bqr_lanes {
  const bqr_device *device;
  pthread_mutex_t lock; /* of all that follows, from fork to join */
  int count;
  cudaStream_t own[BQR_MOST_LANES]; /* but for lane 0 */
  cudaEvent_t forked, done[BQR_MOST_LANES];

  batchqr_stream stream; /* the caller's */
  int forks;             /* lanes of the current fork */
  bool captured;
  int current; /* captured: the lane that was entered last; the ends of the others are in `done` */
};

static batchqr_status checked(cudaError_t code, bqr_error *error) {
  const batchqr_status status =
      code == cudaErrorMemoryAllocation ? BATCHQR_OUT_OF_MEMORY : BATCHQR_CUDA_ERROR;
  if (code == cudaSuccess) return BATCHQR_SUCCESS;
  if (!error) return status;
  cudaGetLastError();
  return bqr_fail(error, status, "the plan's streams: %s", cudaGetErrorString(code));
}

/* --- streams */

static cudaError_t make_streams(bqr_lanes *l) {
  cudaError_t code = cudaEventCreateWithFlags(&l->forked, cudaEventDisableTiming);
  for (int i = 0; i < l->count && code == cudaSuccess; i++) {
    if (i > 0) code = cudaStreamCreateWithFlags(&l->own[i], cudaStreamNonBlocking);
    if (code == cudaSuccess) code = cudaEventCreateWithFlags(&l->done[i], cudaEventDisableTiming);
  }
  return code;
}

batchqr_status bqr_lanes_new(const bqr_device *device, int count, bqr_lanes **lanes, bqr_error *error) {
  *lanes = NULL;
  if (count <= 1 || device->backend != BATCHQR_BACKEND_CUDA) return BATCHQR_SUCCESS;
  bqr_lanes *l = calloc(1, sizeof *l);
  if (!l) return error ? bqr_fail_memory(error, "the plan's streams") : BATCHQR_OUT_OF_MEMORY;
  *lanes = l;
  l->device = device;
  l->count = count;
  pthread_mutex_init(&l->lock, NULL);
  int previous = bqr_device_enter(device);
  batchqr_status status = checked(make_streams(l), error);
  bqr_device_leave(previous);
  return status;
}

void bqr_lanes_free(bqr_lanes *l) {
  if (!l) return;
  int previous = bqr_device_enter(l->device);
  if (l->forked) cudaEventDestroy(l->forked);
  for (int i = 0; i < l->count; i++) {
    if (l->done[i]) cudaEventDestroy(l->done[i]);
    if (l->own[i]) cudaStreamDestroy(l->own[i]);
  }
  cudaGetLastError();
  bqr_device_leave(previous);
  pthread_mutex_destroy(&l->lock);
  free(l);
}

static cudaError_t fork_streams(bqr_lanes *l) {
  cudaError_t code = cudaEventRecord(l->forked, l->stream);
  for (int i = 1; i < l->forks && code == cudaSuccess; i++)
    code = cudaStreamWaitEvent(l->own[i], l->forked, 0);
  return code;
}

static batchqr_stream stream_of(const bqr_lanes *l, int i) {
  return i == 0 || l->captured ? l->stream : l->own[i];
}

static cudaError_t follow_stream(bqr_lanes *l, int i, int j) {
  cudaError_t code = cudaEventRecord(l->done[j], stream_of(l, j));
  return code == cudaSuccess ? cudaStreamWaitEvent(stream_of(l, i), l->done[j], 0) : code;
}

/* Goes on after an error: what was enqueued must not be overtaken. */
static cudaError_t join_streams(bqr_lanes *l) {
  cudaError_t first = cudaSuccess;
  for (int i = 1; i < l->forks; i++) {
    cudaError_t code = cudaEventRecord(l->done[i], l->own[i]);
    if (code == cudaSuccess) code = cudaStreamWaitEvent(l->stream, l->done[i], 0);
    if (first == cudaSuccess) first = code;
  }
  return first;
}

/* --- branches of a graph: an event that is recorded is the nodes that the stream's next one would depend on,
 * and waiting for it adds them to these. */

static cudaError_t fork_graph(bqr_lanes *l) {
  l->current = 0;
  cudaError_t code = cudaSuccess;
  for (int i = 1; i < l->forks && code == cudaSuccess; i++) code = cudaEventRecord(l->done[i], l->stream);
  return code;
}

static cudaError_t enter_branch(bqr_lanes *l, int i) {
  if (i == l->current) return cudaSuccess;
  cudaError_t code = cudaEventRecord(l->done[l->current], l->stream);
  if (code == cudaSuccess)
    code = cudaStreamUpdateCaptureDependencies(l->stream, NULL, NULL, 0, cudaStreamSetCaptureDependencies);
  if (code == cudaSuccess) code = cudaStreamWaitEvent(l->stream, l->done[i], 0);
  l->current = i;
  return code;
}

/* Entering another branch leaves the end of this one in `done`. */
static cudaError_t follow_branch(bqr_lanes *l, int i, int j) {
  cudaError_t code = enter_branch(l, j);
  if (code == cudaSuccess) code = enter_branch(l, i);
  return code == cudaSuccess ? cudaStreamWaitEvent(l->stream, l->done[j], 0) : code;
}

static cudaError_t join_graph(const bqr_lanes *l) {
  cudaError_t first = cudaSuccess;
  for (int i = 0; i < l->forks; i++) {
    cudaError_t code = i == l->current ? cudaSuccess : cudaStreamWaitEvent(l->stream, l->done[i], 0);
    if (first == cudaSuccess) first = code;
  }
  return first;
}

/* --- either */

batchqr_status bqr_lanes_fork(bqr_lanes *l, int count, batchqr_stream stream, bqr_error *error) {
  pthread_mutex_lock(&l->lock);
  l->stream = stream;
  l->forks = count;
  l->captured = bqr_stream_captured(l->device, stream);
  return checked(l->captured ? fork_graph(l) : fork_streams(l), error);
}

batchqr_status bqr_lanes_enter(bqr_lanes *l, int i, batchqr_stream *stream, bqr_error *error) {
  *stream = stream_of(l, i);
  return l->captured ? checked(enter_branch(l, i), error) : BATCHQR_SUCCESS;
}

batchqr_status bqr_lanes_follow(bqr_lanes *l, int i, int j, batchqr_stream *stream, bqr_error *error) {
  *stream = stream_of(l, i);
  return checked(l->captured ? follow_branch(l, i, j) : follow_stream(l, i, j), error);
}

batchqr_status bqr_lanes_join(bqr_lanes *l, bqr_error *error) {
  batchqr_status status = checked(l->captured ? join_graph(l) : join_streams(l), error);
  pthread_mutex_unlock(&l->lock);
  return status;
}

#else /* one after another */
#pragma GCC diagnostic ignored "-Wunused-parameter"

batchqr_status bqr_lanes_new(const bqr_device *device, int count, bqr_lanes **lanes, bqr_error *error) {
  *lanes = NULL;
  return BATCHQR_SUCCESS;
}

void bqr_lanes_free(bqr_lanes *lanes) {}

batchqr_status bqr_lanes_fork(bqr_lanes *lanes, int count, batchqr_stream stream, bqr_error *error) {
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_lanes_enter(bqr_lanes *lanes, int i, batchqr_stream *stream, bqr_error *error) {
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_lanes_follow(bqr_lanes *lanes, int i, int j, batchqr_stream *stream, bqr_error *error) {
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_lanes_join(bqr_lanes *lanes, bqr_error *error) { return BATCHQR_SUCCESS; }
#endif
