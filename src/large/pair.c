/* SPDX-License-Identifier: BSD-3-Clause */
#include "pair.h"
#include "device.h"
#include <pthread.h>
#include <stdlib.h>

struct bqr_pair {
  bqr_gemm_engine *engines[BQR_PAIR];
  pthread_mutex_t lock; /* of the first lane's stream and the events */
  batchqr_stream ahead;
  cudaEvent_t events[BQR_PAIR];
};

static batchqr_status wait_for(const bqr_lane *waiting, const bqr_lane *l) {
  cudaError_t code = cudaEventRecord(l->event, l->stream);
  if (code == cudaSuccess) code = cudaStreamWaitEvent(waiting->stream, l->event, 0);
  return code == cudaSuccess ? BATCHQR_SUCCESS : BATCHQR_CUDA_ERROR;
}

batchqr_status bqr_lanes_meet(const bqr_lane *a, const bqr_lane *b) {
  if (a->stream == b->stream) return BATCHQR_SUCCESS;
  batchqr_status status = wait_for(a, b);
  return status ? status : wait_for(b, a);
}

/* A capture, which may outlive the call, must not hold the plan's stream. */
batchqr_status bqr_pair_begin(bqr_pair *pair, const bqr_device *device, batchqr_stream stream,
                              bqr_lane lanes[BQR_PAIR]) {
  const bool alone = bqr_stream_captured(device, stream);
  for (int i = 0; i < BQR_PAIR; i++) {
    lanes[i].stream = i == BQR_PAIR - 1 || alone ? stream : pair->ahead;
    lanes[i].engine = pair->engines[i];
    lanes[i].event = pair->events[i];
  }
  pthread_mutex_lock(&pair->lock);
  return bqr_lanes_meet(&lanes[0], &lanes[1]);
}

batchqr_status bqr_pair_end(bqr_pair *pair, const bqr_lane lanes[BQR_PAIR]) {
  const batchqr_status status = bqr_lanes_meet(&lanes[0], &lanes[1]);
  pthread_mutex_unlock(&pair->lock);
  return status;
}

void bqr_pair_close(bqr_pair *pair) {
  if (!pair) return;
  for (int i = 0; i < BQR_PAIR; i++) {
    bqr_gemm_engine_free(pair->engines[i]);
    if (pair->events[i]) cudaEventDestroy(pair->events[i]);
  }
  if (pair->ahead) cudaStreamDestroy(pair->ahead);
  pthread_mutex_destroy(&pair->lock);
  free(pair);
}

/* What goes ahead comes before the rest wherever the GPU can choose. */
static batchqr_status open_lanes(const bqr_device *device, bqr_pair *pair) {
  int least, greatest;
  cudaError_t code = cudaDeviceGetStreamPriorityRange(&least, &greatest);
  if (code == cudaSuccess) code = cudaStreamCreateWithPriority(&pair->ahead, cudaStreamNonBlocking, greatest);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int i = 0; i < BQR_PAIR && code == cudaSuccess && !status; i++) {
    code = cudaEventCreateWithFlags(&pair->events[i], cudaEventDisableTiming);
    status = bqr_gemm_engine_new(device, &pair->engines[i]);
  }
  return code == cudaSuccess ? status : BATCHQR_CUDA_ERROR;
}

batchqr_status bqr_pair_open(const bqr_device *device, bqr_pair **pair) {
  *pair = calloc(1, sizeof **pair);
  if (!*pair) return BATCHQR_OUT_OF_MEMORY;
  if (pthread_mutex_init(&(*pair)->lock, NULL) != 0) {
    free(*pair);
    *pair = NULL;
    return BATCHQR_OUT_OF_MEMORY;
  }
  return open_lanes(device, *pair);
}
