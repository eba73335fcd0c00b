/* SPDX-License-Identifier: BSD-3-Clause */
#include "verbose.h"
#include "device.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

bool bqr_verbose_wanted(void) {
  const char *value = getenv("BATCHQR_VERBOSE");
  return value && *value && strcmp(value, "0") != 0;
}

double bqr_verbose_clock(const bqr_device *device, batchqr_stream stream) {
  struct timespec now;
  if (bqr_stream_captured(device, stream)) return -1;
  bqr_stream_finish(device, stream);
  timespec_get(&now, TIME_UTC);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

void bqr_verbose_report(const struct batchqr_plan *plan, batchqr_status status, double begin,
                        batchqr_stream stream) {
  const double end = bqr_verbose_clock(&plan->device, stream);
  char time[64] = "captured";
  if (status)
    snprintf(time, sizeof time, "%s", batchqr_status_string(status));
  else if (begin >= 0 && end >= 0)
    snprintf(time, sizeof time, "%.3f ms", 1e3 * (end - begin));
  /* One call of the C library, so that lines of several threads do not mix. */
  fprintf(stderr, "batchqr: %s, %s\n%s\n", plan->operation->name, time, plan->description);
}
