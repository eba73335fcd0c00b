/* SPDX-License-Identifier: BSD-3-Clause */
/* Launches of a family without a planner. */
#ifndef BQR_TESTS_DIRECT_H
#define BQR_TESTS_DIRECT_H

#include "subject.h"

/* What of a trial is launched. */
typedef struct direct {
  const subject *s;
  const trial *t;
  const int *members; /* on the host; NULL: all */
  int64_t count;
} direct;

/* Launches it, for trial_run_with(); the context is a direct. */
batchqr_status launch_directly(const batchqr_batch *b, const batchqr_operands *o, void *context);

#endif
