/* SPDX-License-Identifier: BSD-3-Clause */
/* Two lanes of work on large members: a stream and an engine for each, and what enqueued products need. One
 * is the caller's stream; the other goes ahead with what leaves most of the GPU idle. */
#ifndef BQR_SRC_LARGE_PAIR_H
#define BQR_SRC_LARGE_PAIR_H

#include "gemm.h"
#include <cuda_runtime_api.h>

enum { BQR_PAIR = 2 };

/* What a launch enqueues one after another, and the memory for it, see products.h. */
typedef struct bqr_lane {
  batchqr_stream stream;
  bqr_gemm_engine *engine;
  cudaEvent_t event;
  char *w1, *w2;
  void *gemm;
  size_t gemm_bytes;
  void *sums; /* of blocks of the kernels in wy.h */
} bqr_lane;

/* What a plan keeps. */
typedef struct bqr_pair bqr_pair;
batchqr_status bqr_pair_open(const bqr_device *device, bqr_pair **pair);
void bqr_pair_close(bqr_pair *pair);

/* Gives lanes their streams, engines and events; the last lane's stream is the caller's. The other one begins
 * behind what that has been given so far, and other threads that share the plan wait until the end, at which
 * each lane goes on behind both. Follows each begin, also one that failed. */
batchqr_status bqr_pair_begin(bqr_pair *pair, const bqr_device *device, batchqr_stream stream,
                              bqr_lane lanes[BQR_PAIR]);
batchqr_status bqr_pair_end(bqr_pair *pair, const bqr_lane lanes[BQR_PAIR]);

/* Each lane goes on when both have come here. */
batchqr_status bqr_lanes_meet(const bqr_lane *a, const bqr_lane *b);

#endif
