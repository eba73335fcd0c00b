/* SPDX-License-Identifier: BSD-3-Clause */
#include "streams.h"
#include "config.h"

#if BQR_HAVE_CUDA
#include "device.h"
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdlib.h>

struct bqr_streams {
  const bqr_device *device;
  bool urgent;
  pthread_mutex_t lock; /* of all that follows, from fork to join */
  int count;
  cudaStream_t own[BQR_MOST_STREAMS]; /* but for stream 0 */
  cudaEvent_t forked, done[BQR_MOST_STREAMS];

  batchqr_stream stream; /* the caller's */
  int forks;             /* streams of the current fork */
  bool captured;
  int current; /* captured: the branch that was entered last; the ends of the others are in `done` */
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

static cudaError_t make_streams(bqr_streams *s) {
  int least = 0, greatest = 0;
  cudaError_t code = cudaEventCreateWithFlags(&s->forked, cudaEventDisableTiming);
  if (code == cudaSuccess) code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  const int priority = s->urgent ? greatest : least;
  for (int i = 0; i < s->count && code == cudaSuccess; i++) {
    if (i > 0) code = cudaStreamCreateWithPriority(&s->own[i], cudaStreamNonBlocking, priority);
    if (code == cudaSuccess) code = cudaEventCreateWithFlags(&s->done[i], cudaEventDisableTiming);
  }
  return code;
}

batchqr_status bqr_streams_new(const bqr_device *device, int count, bool urgent, bqr_streams **streams,
                               bqr_error *error) {
  *streams = NULL;
  if (count <= 1 || device->backend != BATCHQR_BACKEND_CUDA) return BATCHQR_SUCCESS;
  bqr_streams *s = calloc(1, sizeof *s);
  if (!s) return error ? bqr_fail_memory(error, "the plan's streams") : BATCHQR_OUT_OF_MEMORY;
  *streams = s;
  s->device = device;
  s->urgent = urgent;
  s->count = count;
  pthread_mutex_init(&s->lock, NULL);
  int previous = bqr_device_enter(device);
  batchqr_status status = checked(make_streams(s), error);
  bqr_device_leave(previous);
  return status;
}

void bqr_streams_free(bqr_streams *s) {
  if (!s) return;
  int previous = bqr_device_enter(s->device);
  if (s->forked) cudaEventDestroy(s->forked);
  for (int i = 0; i < s->count; i++) {
    if (s->done[i]) cudaEventDestroy(s->done[i]);
    if (s->own[i]) cudaStreamDestroy(s->own[i]);
  }
  cudaGetLastError();
  bqr_device_leave(previous);
  pthread_mutex_destroy(&s->lock);
  free(s);
}

static cudaError_t fork_streams(bqr_streams *s) {
  cudaError_t code = cudaEventRecord(s->forked, s->stream);
  for (int i = 1; i < s->forks && code == cudaSuccess; i++)
    code = cudaStreamWaitEvent(s->own[i], s->forked, 0);
  return code;
}

static batchqr_stream stream_of(const bqr_streams *s, int i) {
  return i == 0 || s->captured ? s->stream : s->own[i];
}

static cudaError_t follow_stream(bqr_streams *s, int i, int j) {
  cudaError_t code = cudaEventRecord(s->done[j], stream_of(s, j));
  return code == cudaSuccess ? cudaStreamWaitEvent(stream_of(s, i), s->done[j], 0) : code;
}

/* Goes on after an error: what was enqueued must not be overtaken. */
static cudaError_t join_streams(bqr_streams *s) {
  cudaError_t first = cudaSuccess;
  for (int i = 1; i < s->forks; i++) {
    cudaError_t code = cudaEventRecord(s->done[i], s->own[i]);
    if (code == cudaSuccess) code = cudaStreamWaitEvent(s->stream, s->done[i], 0);
    if (first == cudaSuccess) first = code;
  }
  return first;
}

/* --- branches of a graph: an event that is recorded is the nodes that the stream's next one would depend on,
 * and waiting for it adds them to these. */

static cudaError_t fork_graph(bqr_streams *s) {
  s->current = 0;
  cudaError_t code = cudaSuccess;
  for (int i = 1; i < s->forks && code == cudaSuccess; i++) code = cudaEventRecord(s->done[i], s->stream);
  return code;
}

static cudaError_t enter_branch(bqr_streams *s, int i) {
  if (i == s->current) return cudaSuccess;
  cudaError_t code = cudaEventRecord(s->done[s->current], s->stream);
  if (code == cudaSuccess)
    code = cudaStreamUpdateCaptureDependencies(s->stream, NULL, NULL, 0, cudaStreamSetCaptureDependencies);
  if (code == cudaSuccess) code = cudaStreamWaitEvent(s->stream, s->done[i], 0);
  s->current = i;
  return code;
}

/* Entering another branch leaves the end of this one in `done`. */
static cudaError_t follow_branch(bqr_streams *s, int i, int j) {
  cudaError_t code = enter_branch(s, j);
  if (code == cudaSuccess) code = enter_branch(s, i);
  return code == cudaSuccess ? cudaStreamWaitEvent(s->stream, s->done[j], 0) : code;
}

static cudaError_t join_graph(const bqr_streams *s) {
  cudaError_t first = cudaSuccess;
  for (int i = 0; i < s->forks; i++) {
    cudaError_t code = i == s->current ? cudaSuccess : cudaStreamWaitEvent(s->stream, s->done[i], 0);
    if (first == cudaSuccess) first = code;
  }
  return first;
}

/* --- either */

batchqr_status bqr_streams_fork(bqr_streams *s, int count, batchqr_stream stream, bqr_error *error) {
  pthread_mutex_lock(&s->lock);
  s->stream = stream;
  s->forks = count;
  s->captured = bqr_stream_captured(s->device, stream);
  return checked(s->captured ? fork_graph(s) : fork_streams(s), error);
}

batchqr_status bqr_streams_enter(bqr_streams *s, int i, batchqr_stream *stream, bqr_error *error) {
  *stream = stream_of(s, i);
  return s->captured ? checked(enter_branch(s, i), error) : BATCHQR_SUCCESS;
}

batchqr_status bqr_streams_follow(bqr_streams *s, int i, int j, batchqr_stream *stream, bqr_error *error) {
  *stream = stream_of(s, i);
  return checked(s->captured ? follow_branch(s, i, j) : follow_stream(s, i, j), error);
}

batchqr_status bqr_streams_meet(bqr_streams *s, int i, int j, bqr_error *error) {
  batchqr_stream stream;
  batchqr_status status = bqr_streams_follow(s, i, j, &stream, error);
  return status ? status : bqr_streams_follow(s, j, i, &stream, error);
}

bool bqr_streams_captured(const bqr_streams *s) { return s->captured; }

batchqr_status bqr_streams_join(bqr_streams *s, bqr_error *error) {
  batchqr_status status = checked(s->captured ? join_graph(s) : join_streams(s), error);
  pthread_mutex_unlock(&s->lock);
  return status;
}

#else /* one after another */
#pragma GCC diagnostic ignored "-Wunused-parameter"

batchqr_status bqr_streams_new(const bqr_device *device, int count, bool urgent, bqr_streams **streams,
                               bqr_error *error) {
  *streams = NULL;
  return BATCHQR_SUCCESS;
}

void bqr_streams_free(bqr_streams *streams) {}

batchqr_status bqr_streams_fork(bqr_streams *streams, int count, batchqr_stream stream, bqr_error *error) {
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_streams_enter(bqr_streams *streams, int i, batchqr_stream *stream, bqr_error *error) {
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_streams_follow(bqr_streams *streams, int i, int j, batchqr_stream *stream,
                                  bqr_error *error) {
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_streams_meet(bqr_streams *streams, int i, int j, bqr_error *error) {
  return BATCHQR_SUCCESS;
}

bool bqr_streams_captured(const bqr_streams *streams) { return false; }

batchqr_status bqr_streams_join(bqr_streams *streams, bqr_error *error) { return BATCHQR_SUCCESS; }
#endif
