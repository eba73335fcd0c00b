/* SPDX-License-Identifier: BSD-3-Clause */
/* Where ranks meet that are threads of one process: on the host. A GPU that waits for another rank can keep
 * that one from loading a kernel, see src/ranks/agree.h. */
#ifndef BATCHQR_COMMUNICATORS_MEETING_H
#define BATCHQR_COMMUNICATORS_MEETING_H

#include <stdbool.h>
#include <stddef.h>

typedef struct meeting meeting;

/* What a meeting is found by: random, since a process does not know which others there are. */
typedef struct meeting_token {
  unsigned char bytes[16];
} meeting_token;

/* A meeting for up to `size` ranks, which this process may join. NULL: no memory, or no random numbers. */
meeting *meeting_new(int size, meeting_token *token);
/* NULL: it is not of this process. Each meeting that was made or joined is left. */
meeting *meeting_join(const meeting_token *token);
void meeting_leave(meeting *m);

/* Of the ranks that `here` marks, each gives `mine` and gets what all gave, `bytes` from each, at all + rank
 * * bytes; all NULL: they only wait for each other. False: not all have come in so many seconds, nor will
 * they. */
bool meeting_gather(meeting *m, int rank, const bool *here, const void *mine, void *all, size_t bytes,
                    double seconds);

#endif
