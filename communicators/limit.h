/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a communicator waits for other ranks. */
#ifndef BATCHQR_COMMUNICATORS_LIMIT_H
#define BATCHQR_COMMUNICATORS_LIMIT_H

#include <sched.h>
#include <stdbool.h>
#include <time.h>

static inline double limit_clock(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* What is waited for mostly comes within microseconds: the processor is only offered to others at first, and
 * left to them after a millisecond. */
typedef struct limit_wait {
  double begin, seconds;
} limit_wait;

static inline limit_wait limit_begin(double seconds) { return (limit_wait){limit_clock(), seconds}; }

/* Whether there is still time. */
static inline bool limit_rest(const limit_wait *wait) {
  const double past = limit_clock() - wait->begin;
  if (past < 1e-3)
    sched_yield();
  else
    nanosleep(&(struct timespec){.tv_nsec = 50000}, NULL);
  return past < wait->seconds;
}

enum { LIMIT_DEFAULT_SECONDS = 600 };

#endif
