/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams for launches that need nothing of each other, so that they run side by side. Stream 0 is the
 * caller's, the others are the plan's: they wait for the caller's stream at the fork, and it waits for them
 * at the join. While the caller's stream is captured it is the only stream, and the others are branches of
 * the graph.
 *
 * error NULL: a family calls, whose planner takes the text of a CUDA error from the runtime. */
#ifndef BQR_SRC_STREAMS_H
#define BQR_SRC_STREAMS_H

#include "error.h"
#include "family.h"

enum { BQR_MOST_STREAMS = 8 };

typedef struct bqr_streams bqr_streams;

/* *streams is NULL, with success, for a single stream and on the CPU: none of the functions below is called
 * then. `urgent`: the plan's streams have the highest priority, for launches that leave most of the GPU idle
 * and that others wait for. */
batchqr_status bqr_streams_new(const bqr_device *device, int count, bool urgent, bqr_streams **streams,
                               bqr_error *error);
void bqr_streams_free(bqr_streams *streams);

/* The first `count` streams go on behind what `stream` has been given so far. Until they are joined, other
 * threads that share the plan wait here. */
batchqr_status bqr_streams_fork(bqr_streams *streams, int count, batchqr_stream stream, bqr_error *error);
/* What is enqueued on *stream from here to the next call of enter, follow or meet is on stream i. *stream is
 * the same from fork to join. */
batchqr_status bqr_streams_enter(bqr_streams *streams, int i, batchqr_stream *stream, bqr_error *error);
/* The same, and stream i goes on behind what stream j has been given so far. */
batchqr_status bqr_streams_follow(bqr_streams *streams, int i, int j, batchqr_stream *stream,
                                  bqr_error *error);
/* Both streams go on behind what both have been given so far. One of them has to be entered next. */
batchqr_status bqr_streams_meet(bqr_streams *streams, int i, int j, bqr_error *error);
/* Whether the caller's stream is captured; from fork to join. */
bool bqr_streams_captured(const bqr_streams *streams);
/* The caller's stream goes on behind all streams. Follows each fork, also one that failed. */
batchqr_status bqr_streams_join(bqr_streams *streams, bqr_error *error);

#endif
