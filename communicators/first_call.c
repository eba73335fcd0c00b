/* SPDX-License-Identifier: BSD-3-Clause */
#include "first_call.h"
#include <pthread.h>
#include <stdlib.h>

struct first_call {
  first_call_arguments arguments;
  pthread_mutex_t lock; /* of all that follows */
  bool over;
  int users; /* the thread, and who has begun the call */
  ncclResult_t code;
};

ncclResult_t first_call_end(first_call *call) {
  pthread_mutex_lock(&call->lock);
  const ncclResult_t code = call->code;
  const bool last = --call->users == 0;
  pthread_mutex_unlock(&call->lock);
  if (!last) return code;
  pthread_mutex_destroy(&call->lock);
  free(call);
  return code;
}

static void *run(void *argument) {
  first_call *call = argument;
  const first_call_arguments *a = &call->arguments;
  ncclResult_t code = ncclUnhandledCudaError;
  if (cudaSetDevice(a->device) == cudaSuccess)
    code = ncclAllGather(a->send, a->receive, a->bytes, ncclUint8, a->nccl, a->stream);
  pthread_mutex_lock(&call->lock);
  call->code = code;
  call->over = true;
  pthread_mutex_unlock(&call->lock);
  first_call_end(call);
  return NULL;
}

first_call *first_call_begin(const first_call_arguments *arguments) {
  first_call *call = calloc(1, sizeof *call);
  if (!call) return NULL;
  call->arguments = *arguments;
  call->users = 2;
  pthread_mutex_init(&call->lock, NULL);
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, call) == 0) {
    pthread_detach(thread);
    return call;
  }
  pthread_mutex_destroy(&call->lock);
  free(call);
  return NULL;
}

bool first_call_over(first_call *call) {
  pthread_mutex_lock(&call->lock);
  const bool over = call->over;
  pthread_mutex_unlock(&call->lock);
  return over;
}
