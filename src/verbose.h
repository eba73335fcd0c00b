/* SPDX-License-Identifier: BSD-3-Clause */
/* What the environment's BATCHQR_VERBOSE makes a handle say of each call: its plan, and its time. */
#ifndef BQR_SRC_VERBOSE_H
#define BQR_SRC_VERBOSE_H

#include "error.h"
#include "plan.h"

/* Whether the environment asks for it: BATCHQR_VERBOSE is set, and is neither empty nor 0. */
bool bqr_verbose_wanted(void);

/* The time at which all is done that the stream has been given so far, in seconds; below 0 while it is
 * captured, when no time can be told. */
double bqr_verbose_clock(const bqr_device *device, batchqr_stream stream);

/* Prints a call that has taken from `begin` until now, a line for each of its plan's groups. */
void bqr_verbose_report(const struct batchqr_plan *plan, batchqr_status status, double begin,
                        batchqr_stream stream);

#endif
