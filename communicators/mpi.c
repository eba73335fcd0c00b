/* SPDX-License-Identifier: BSD-3-Clause */
/* Communicators over MPI. Every call is one that MPI can be asked about until it is done, so that a rank that
 * does not come costs the others no more than the time limit. */
#include "limit.h"
#include "staging.h"
#include <batchqr/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Long messages go in pieces, since MPI counts in int; all ranks cut at the same places. */
enum { PIECE = 1 << 26 };

typedef struct state {
  batchqr_communicator communicator;
  MPI_Comm mpi; /* the user's, duplicated */
  double limit;
  bool failed; /* some rank may be waiting in another call: there is no way back */
  staging staging;
  char message[512];
} state;

static batchqr_status fail_mpi(state *s, const char *call, int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length;
  MPI_Error_string(code, text, &length);
  s->failed = true;
  snprintf(s->message, sizeof s->message, "%s: %.400s", call, text);
  return BATCHQR_RANK_ERROR;
}

/* Waits for a request; `code`: what starting it said. */
static batchqr_status finish(state *s, const char *call, int code, MPI_Request *request) {
  const limit_wait wait = limit_begin(s->limit);
  int done = 0;
  while (code == MPI_SUCCESS && !done) {
    code = MPI_Test(request, &done, MPI_STATUS_IGNORE);
    if (code == MPI_SUCCESS && !done && !limit_rest(&wait)) {
      s->failed = true;
      snprintf(s->message, sizeof s->message,
               "%s: not all ranks have come within %g s; the communicator is of no further use", call,
               s->limit);
      return BATCHQR_RANK_ERROR;
    }
  }
  return code == MPI_SUCCESS ? BATCHQR_SUCCESS : fail_mpi(s, call, code);
}

static batchqr_status check(state *s) {
  if (!s->failed) return BATCHQR_SUCCESS;
  snprintf(s->message, sizeof s->message, "the communicator failed in an earlier call");
  return BATCHQR_RANK_ERROR;
}

static batchqr_status fail_memory(state *s) {
  s->failed = true;
  snprintf(s->message, sizeof s->message, "host memory ran out");
  return BATCHQR_OUT_OF_MEMORY;
}

static batchqr_status fail_copy(state *s) {
  s->failed = true;
  snprintf(s->message, sizeof s->message, "copying between GPU and host: %.400s", staging_error());
  return BATCHQR_CUDA_ERROR;
}

/* --- what each call does with one piece; addresses are MPI's to use */

static batchqr_status gather_piece(state *s, const void *send, void *receive, int bytes) {
  MPI_Request request;
  const int code = MPI_Iallgather(send, bytes, MPI_BYTE, receive, bytes, MPI_BYTE, s->mpi, &request);
  return finish(s, "MPI_Iallgather", code, &request);
}

/* The pieces of all ranks lie one behind the other, and their places are `bytes` apart. */
static batchqr_status gather_apart(state *s, const char *send, char *receive, size_t bytes, size_t at,
                                   int piece) {
  MPI_Datatype apart, resized;
  MPI_Request request;
  MPI_Type_contiguous(piece, MPI_BYTE, &apart);
  MPI_Type_create_resized(apart, 0, (MPI_Aint)bytes, &resized);
  MPI_Type_commit(&resized);
  const int code = MPI_Iallgather(send + at, piece, MPI_BYTE, receive + at, 1, resized, s->mpi, &request);
  const batchqr_status status = finish(s, "MPI_Iallgather", code, &request);
  MPI_Type_free(&resized);
  MPI_Type_free(&apart);
  return status;
}

static batchqr_status gather_host(state *s, const char *send, char *receive, size_t bytes) {
  batchqr_status status = BATCHQR_SUCCESS;
  if (bytes <= PIECE) return gather_piece(s, send, receive, (int)bytes);
  for (size_t at = 0; at < bytes && !status; at += PIECE) {
    const size_t rest = bytes - at;
    status = gather_apart(s, send, receive, bytes, at, (int)(rest < PIECE ? rest : PIECE));
  }
  return status;
}

/* --- the functions of the communicator */

static batchqr_status gather_staged(state *s, const char *send, char *receive, size_t bytes,
                                    batchqr_stream stream) {
  const int size = s->communicator.size;
  const size_t piece = s->staging.bytes / (size_t)(size + 1);
  char *const host = s->staging.memory, *const all = host + piece;
  batchqr_status status = BATCHQR_SUCCESS;
  for (size_t at = 0; at < bytes && !status; at += piece) {
    const size_t now = bytes - at < piece ? bytes - at : piece;
    if (!staging_copy(host, send + at, now, stream) || !staging_wait(stream)) return fail_copy(s);
    status = gather_piece(s, host, all, (int)now);
    for (int r = 0; r < size && !status; r++)
      if (!staging_copy(receive + (size_t)r * bytes + at, all + (size_t)r * now, now, stream))
        return fail_copy(s);
    if (!status && !staging_wait(stream)) return fail_copy(s);
  }
  return status;
}

static batchqr_status all_gather(void *context, const void *send, void *receive, size_t bytes,
                                 batchqr_stream stream) {
  state *s = context;
  const batchqr_status status = check(s);
  if (status) return status;
  if (s->staging.memory) return gather_staged(s, send, receive, bytes, stream);
  if (s->staging.device && !staging_wait(stream)) return fail_copy(s);
  return gather_host(s, send, receive, bytes);
}

/* In memory of its own, which is left to MPI after a failure: a message that comes late is still put there.
 */
static batchqr_status agree(void *context, const void *mine, void *all, size_t bytes) {
  state *s = context;
  const size_t size = (size_t)s->communicator.size;
  batchqr_status status = check(s);
  if (status) return status;
  char *own = malloc(bytes * (size + 1) + 1);
  if (!own) return fail_memory(s);
  memcpy(own, mine, bytes);
  status = gather_host(s, own, own + bytes, bytes);
  if (status) return status;
  memcpy(all, own + bytes, bytes * size);
  free(own);
  return BATCHQR_SUCCESS;
}

typedef enum transfer { BROADCAST, SEND, RECEIVE } transfer;

static batchqr_status transfer_piece(state *s, transfer what, void *data, int bytes, int other) {
  static const char *const calls[] = {"MPI_Ibcast", "MPI_Isend", "MPI_Irecv"};
  MPI_Request request;
  int code;
  if (what == BROADCAST)
    code = MPI_Ibcast(data, bytes, MPI_BYTE, other, s->mpi, &request);
  else if (what == SEND)
    code = MPI_Isend(data, bytes, MPI_BYTE, other, 0, s->mpi, &request);
  else
    code = MPI_Irecv(data, bytes, MPI_BYTE, other, 0, s->mpi, &request);
  return finish(s, calls[what], code, &request);
}

static batchqr_status transfer_data(state *s, transfer what, char *data, size_t bytes, int other,
                                    batchqr_stream stream) {
  char *const host = s->staging.memory;
  const size_t piece = host ? s->staging.bytes : PIECE;
  const bool gives = what == SEND || (what == BROADCAST && other == s->communicator.rank);
  batchqr_status status = check(s);
  if (!status && s->staging.device && !host && !staging_wait(stream)) return fail_copy(s);
  for (size_t at = 0; at < bytes && !status; at += piece) {
    const size_t now = bytes - at < piece ? bytes - at : piece;
    if (host && gives && !(staging_copy(host, data + at, now, stream) && staging_wait(stream)))
      return fail_copy(s);
    status = transfer_piece(s, what, host ? host : data + at, (int)now, other);
    if (!status && host && !gives && !(staging_copy(data + at, host, now, stream) && staging_wait(stream)))
      return fail_copy(s);
  }
  return status;
}

static batchqr_status broadcast(void *context, void *data, size_t bytes, int root, batchqr_stream stream) {
  return transfer_data(context, BROADCAST, data, bytes, root, stream);
}

static batchqr_status send(void *context, const void *data, size_t bytes, int to, batchqr_stream stream) {
  return transfer_data(context, SEND, (char *)data, bytes, to, stream);
}

static batchqr_status receive(void *context, void *data, size_t bytes, int from, batchqr_stream stream) {
  return transfer_data(context, RECEIVE, data, bytes, from, stream);
}

/* The calls are complete when they return: what is left on the stream is the GPU's own. */
static batchqr_status wait_for(void *context, batchqr_stream stream) {
  state *s = context;
  return !s->staging.device || staging_wait(stream) ? BATCHQR_SUCCESS : fail_copy(s);
}

static const char *message(void *context) { return ((state *)context)->message; }

static void destroy(batchqr_communicator *communicator) {
  state *s = communicator->context;
  staging_free(&s->staging);
  /* Releasing is collective, too: after a failure nobody may be there. */
  if (!s->failed) MPI_Comm_free(&s->mpi);
  free(s);
}

/* --- creation */

static batchqr_status start(state *s, MPI_Comm mpi, batchqr_backend backend, batchqr_mpi_way way) {
  int code = MPI_Comm_dup(mpi, &s->mpi);
  if (code == MPI_SUCCESS) code = MPI_Comm_set_errhandler(s->mpi, MPI_ERRORS_RETURN);
  batchqr_communicator *c = &s->communicator;
  if (code == MPI_SUCCESS) code = MPI_Comm_rank(s->mpi, &c->rank);
  if (code == MPI_SUCCESS) code = MPI_Comm_size(s->mpi, &c->size);
  if (code != MPI_SUCCESS) return BATCHQR_RANK_ERROR;
  if (backend == BATCHQR_BACKEND_CPU) return BATCHQR_SUCCESS;
  const bool staged = way == BATCHQR_MPI_STAGED || (way == BATCHQR_MPI_AUTO && !staging_not_needed());
  const batchqr_status status = staging_new(&s->staging, staged);
  c->device = s->staging.ordinal;
  return status;
}

batchqr_status batchqr_mpi_create(batchqr_communicator **communicator, MPI_Comm mpi, batchqr_backend backend,
                                  batchqr_mpi_way way, double limit) {
  if (!communicator) return BATCHQR_INVALID_ARGUMENT;
  *communicator = NULL;
  if ((backend != BATCHQR_BACKEND_CPU && backend != BATCHQR_BACKEND_CUDA) ||
      (unsigned)way > BATCHQR_MPI_DEVICE)
    return BATCHQR_INVALID_ARGUMENT;
  state *s = calloc(1, sizeof *s);
  if (!s) return BATCHQR_OUT_OF_MEMORY;
  s->limit = limit > 0 ? limit : LIMIT_DEFAULT_SECONDS;
  s->communicator = (batchqr_communicator){.backend = backend,
                                           .device = -1,
                                           .context = s,
                                           .all_gather = all_gather,
                                           .broadcast = broadcast,
                                           .send = send,
                                           .receive = receive,
                                           .agree = agree,
                                           .wait = wait_for,
                                           .message = message,
                                           .destroy = destroy};
  const batchqr_status status = start(s, mpi, backend, way);
  if (status) {
    staging_free(&s->staging);
    free(s);
    return status;
  }
  *communicator = &s->communicator;
  return BATCHQR_SUCCESS;
}
