/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators over NCCL. Calls are enqueued and nothing else; only `agree` and `wait` wait, and they ask
 * NCCL and the clock while they do. NCCL joins ranks to their neighbours in the first call that they make
 * together, which is `agree`'s: on an ncclComm_t that blocks, the call then waits for them, with no limit,
 * and is therefore made by a thread of its own. */
#include "first_call.h"
#include "limit.h"
#include "meeting.h"
#include <batchqr/nccl.h>
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes that ranks say at once in `agree`; more go in pieces. */
enum { PIECE = 4096 };

typedef struct state {
  batchqr_communicator communicator;
  ncclComm_t nccl;
  double limit;
  bool joined, failed; /* joined: the first call is over */
  /* Of `agree`: its stream, its memory on the GPU and on the host, for this rank and behind that for all. */
  cudaStream_t stream;
  char *device, *host;
  /* Ranks that are threads of this process: which, where they meet, and what the others find that by. */
  bool *here;
  bool all_here;
  meeting *meeting, *offered;
  meeting_token token;
  char message[512];
} state;

static batchqr_status fail_nccl(state *s, const char *call, ncclResult_t code) {
  s->failed = true;
  snprintf(s->message, sizeof s->message, "%s: %.100s: %.300s", call, ncclGetErrorString(code),
           ncclGetLastError(s->nccl));
  return BATCHQR_RANK_ERROR;
}

static batchqr_status fail_cuda(state *s, const char *what, cudaError_t code) {
  cudaGetLastError();
  snprintf(s->message, sizeof s->message, "%s: %.400s", what, cudaGetErrorString(code));
  return BATCHQR_CUDA_ERROR;
}

static batchqr_status fail_limit(state *s) {
  s->failed = true;
  snprintf(s->message, sizeof s->message,
           "not all ranks have come within %g s; the ncclComm_t is of no further use, and to be aborted",
           s->limit);
  return BATCHQR_RANK_ERROR;
}

static batchqr_status check(state *s) {
  if (!s->failed) return BATCHQR_SUCCESS;
  snprintf(s->message, sizeof s->message, "the communicator failed in an earlier call");
  return BATCHQR_RANK_ERROR;
}

/* A call on a communicator that does not block is under way when it returns. */
static batchqr_status finish(state *s, const char *call, ncclResult_t code) {
  const limit_wait wait = limit_begin(s->limit);
  while (code == ncclInProgress) {
    if (!limit_rest(&wait)) return fail_limit(s);
    if (ncclCommGetAsyncError(s->nccl, &code) != ncclSuccess) break;
  }
  return code == ncclSuccess ? BATCHQR_SUCCESS : fail_nccl(s, call, code);
}

/* The first call of all. */
static batchqr_status join(void *context, const void *send, void *receive, size_t bytes,
                           batchqr_stream stream) {
  state *s = context;
  first_call *call = first_call_begin(
      &(first_call_arguments){s->nccl, s->communicator.device, send, receive, bytes, stream});
  if (!call) {
    snprintf(s->message, sizeof s->message, "no memory, or no thread, for the first call of NCCL");
    return BATCHQR_OUT_OF_MEMORY;
  }
  const limit_wait wait = limit_begin(s->limit);
  while (!first_call_over(call))
    if (!limit_rest(&wait)) {
      first_call_end(call);
      return fail_limit(s);
    }
  s->joined = true;
  return finish(s, "ncclAllGather", first_call_end(call));
}

static batchqr_status all_gather(void *context, const void *send, void *receive, size_t bytes,
                                 batchqr_stream stream) {
  state *s = context;
  const batchqr_status status = check(s);
  if (status) return status;
  return finish(s, "ncclAllGather", ncclAllGather(send, receive, bytes, ncclUint8, s->nccl, stream));
}

static batchqr_status broadcast(void *context, void *data, size_t bytes, int root, batchqr_stream stream) {
  state *s = context;
  const batchqr_status status = check(s);
  if (status) return status;
  return finish(s, "ncclBroadcast", ncclBroadcast(data, data, bytes, ncclUint8, root, s->nccl, stream));
}

static batchqr_status send(void *context, const void *data, size_t bytes, int to, batchqr_stream stream) {
  state *s = context;
  const batchqr_status status = check(s);
  return status ? status : finish(s, "ncclSend", ncclSend(data, bytes, ncclUint8, to, s->nccl, stream));
}

static batchqr_status receive(void *context, void *data, size_t bytes, int from, batchqr_stream stream) {
  state *s = context;
  const batchqr_status status = check(s);
  return status ? status : finish(s, "ncclRecv", ncclRecv(data, bytes, ncclUint8, from, s->nccl, stream));
}

static batchqr_status wait_for(void *context, batchqr_stream stream) {
  state *s = context;
  const limit_wait wait = limit_begin(s->limit);
  cudaError_t code;
  while ((code = cudaStreamQuery(stream)) == cudaErrorNotReady) {
    ncclResult_t found = ncclSuccess;
    const ncclResult_t asked = ncclCommGetAsyncError(s->nccl, &found);
    if (asked != ncclSuccess) found = asked;
    if (found != ncclSuccess && found != ncclInProgress)
      return fail_nccl(s, "another rank, or the network", found);
    if (!limit_rest(&wait)) return fail_limit(s);
  }
  return code == cudaSuccess ? BATCHQR_SUCCESS : fail_cuda(s, "the stream", code);
}

/* --- agreement */

static batchqr_status agree_piece(state *s, const char *mine, char *all, size_t bytes, size_t apart) {
  const size_t size = (size_t)s->communicator.size;
  char *const gathered = s->device + PIECE;
  memcpy(s->host, mine, bytes);
  cudaError_t code = cudaMemcpyAsync(s->device, s->host, bytes, cudaMemcpyHostToDevice, s->stream);
  if (code != cudaSuccess) return fail_cuda(s, "copying to the GPU", code);
  batchqr_status status = (s->joined ? all_gather : join)(s, s->device, gathered, bytes, s->stream);
  if (status) return status;
  code = cudaMemcpyAsync(s->host + PIECE, gathered, size * bytes, cudaMemcpyDeviceToHost, s->stream);
  if (code != cudaSuccess) return fail_cuda(s, "copying from the GPU", code);
  status = wait_for(s, s->stream);
  for (size_t r = 0; r < size && !status; r++) memcpy(all + r * apart, s->host + PIECE + r * bytes, bytes);
  return status;
}

static batchqr_status agree_on_gpu(state *s, const void *mine, void *all, size_t bytes) {
  batchqr_status status = BATCHQR_SUCCESS;
  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(s->communicator.device);
  for (size_t at = 0; at < bytes && !status; at += PIECE)
    status = agree_piece(s, (const char *)mine + at, (char *)all + at,
                         bytes - at < PIECE ? bytes - at : PIECE, bytes);
  cudaSetDevice(previous);
  return status;
}

/* The first of this process's ranks has the meeting; nobody goes on before all have joined it. */
static batchqr_status find_meeting(state *s) {
  const int size = s->communicator.size;
  meeting_token *tokens = calloc((size_t)size, sizeof *tokens);
  char joined = 1, *all = calloc((size_t)size, 1);
  batchqr_status status = BATCHQR_OUT_OF_MEMORY;
  if (tokens && all) status = agree_on_gpu(s, &s->token, tokens, sizeof *tokens);
  s->all_here = true;
  for (int r = 0; r < size && !status; r++) {
    meeting *other = meeting_join(&tokens[r]);
    s->here[r] = other != NULL;
    s->all_here = s->all_here && other;
    if (s->meeting)
      meeting_leave(other);
    else
      s->meeting = other;
  }
  if (!status) status = agree_on_gpu(s, &joined, all, 1);
  if (status) {
    meeting_leave(s->meeting);
    s->meeting = NULL;
  }
  free(tokens);
  free(all);
  return status;
}

static batchqr_status agree(void *context, const void *mine, void *all, size_t bytes) {
  state *s = context;
  batchqr_status status = check(s);
  if (!status && !s->meeting) status = find_meeting(s);
  if (status) return status;
  if (!meeting_gather(s->meeting, s->communicator.rank, s->here, mine, s->all_here ? all : NULL, bytes,
                      s->limit))
    return fail_limit(s);
  return s->all_here ? BATCHQR_SUCCESS : agree_on_gpu(s, mine, all, bytes);
}

/* --- creation */

static const char *message(void *context) { return ((state *)context)->message; }

/* On the communicator's device. Freeing would wait for a collective call that never ends: what a failed
 * communicator had is left to the end of the process. */
static void release(state *s) {
  meeting_leave(s->meeting);
  meeting_leave(s->offered);
  free(s->here);
  if (s->failed) return;
  if (s->stream) cudaStreamDestroy(s->stream);
  if (s->device) cudaFree(s->device);
  if (s->host) cudaFreeHost(s->host);
}

static void destroy(batchqr_communicator *communicator) {
  state *s = communicator->context;
  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(communicator->device);
  release(s);
  cudaSetDevice(previous);
  free(s);
}

static cudaError_t allocate(state *s) {
  const size_t bytes = (size_t)PIECE * (size_t)(s->communicator.size + 1);
  s->here = calloc((size_t)s->communicator.size, sizeof *s->here);
  s->offered = meeting_new(s->communicator.size, &s->token);
  cudaError_t code = s->here && s->offered ? cudaSuccess : cudaErrorMemoryAllocation;
  if (code == cudaSuccess) code = cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking);
  if (code == cudaSuccess) code = cudaMalloc((void **)&s->device, bytes);
  if (code == cudaSuccess) code = cudaMallocHost((void **)&s->host, bytes);
  if (code != cudaSuccess) release(s);
  return code;
}

batchqr_status batchqr_nccl_create(batchqr_communicator **communicator, ncclComm_t nccl, double limit) {
  if (!communicator) return BATCHQR_INVALID_ARGUMENT;
  *communicator = NULL;
  state *s = calloc(1, sizeof *s);
  if (!s) return BATCHQR_OUT_OF_MEMORY;
  s->nccl = nccl;
  s->limit = limit > 0 ? limit : LIMIT_DEFAULT_SECONDS;
  batchqr_communicator *c = &s->communicator;
  *c = (batchqr_communicator){.backend = BATCHQR_BACKEND_CUDA,
                              .context = s,
                              .all_gather = all_gather,
                              .broadcast = broadcast,
                              .send = send,
                              .receive = receive,
                              .agree = agree,
                              .wait = wait_for,
                              .message = message,
                              .destroy = destroy};
  if (!nccl || ncclCommUserRank(nccl, &c->rank) != ncclSuccess ||
      ncclCommCount(nccl, &c->size) != ncclSuccess || ncclCommCuDevice(nccl, &c->device) != ncclSuccess) {
    free(s);
    return BATCHQR_INVALID_ARGUMENT;
  }
  int previous = 0;
  cudaGetDevice(&previous);
  cudaSetDevice(c->device);
  const cudaError_t code = allocate(s);
  cudaSetDevice(previous);
  if (code != cudaSuccess) {
    cudaGetLastError();
    free(s);
    return code == cudaErrorMemoryAllocation ? BATCHQR_OUT_OF_MEMORY : BATCHQR_CUDA_ERROR;
  }
  *communicator = c;
  return BATCHQR_SUCCESS;
}
