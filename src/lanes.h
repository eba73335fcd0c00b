/* SPDX-License-Identifier: BSD-3-Clause */
/* Lanes: launches that need nothing of each other run side by side. Lane 0 is the caller's stream, the others
 * are streams of the plan, which wait for it and for which it waits. While the caller's stream is captured
 * there are branches of the graph instead, and it is the only stream.
 *
 * error NULL: a family calls, whose planner takes the text of a CUDA error from the runtime. */
#ifndef BQR_SRC_LANES_H
#define BQR_SRC_LANES_H

#include "error.h"
#include "family.h"

enum { BQR_MOST_LANES = 8 };

typedef struct bqr_lanes bqr_lanes;

/* NULL, with success, for a single lane and on the CPU: none of the functions below is called then. */
batchqr_status bqr_lanes_new(const bqr_device *device, int count, bqr_lanes **lanes, bqr_error *error);
void bqr_lanes_free(bqr_lanes *lanes);

/* The first `count` lanes begin behind what `stream` has been given so far. Until they are joined, other
 * threads that share the plan wait here. */
batchqr_status bqr_lanes_fork(bqr_lanes *lanes, int count, batchqr_stream stream, bqr_error *error);
/* What is enqueued on *stream from here to the next such call is lane i's. */
batchqr_status bqr_lanes_enter(bqr_lanes *lanes, int i, batchqr_stream *stream, bqr_error *error);
/* The same, and behind what lane j has been given so far. */
batchqr_status bqr_lanes_follow(bqr_lanes *lanes, int i, int j, batchqr_stream *stream, bqr_error *error);
/* The caller's stream goes on behind all lanes. Follows each fork, also one that failed. */
batchqr_status bqr_lanes_join(bqr_lanes *lanes, bqr_error *error);

#endif
