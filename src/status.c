/* SPDX-License-Identifier: BSD-3-Clause */
/* Statuses, their names and texts, and the version. */
#include "error.h"
#include <stdarg.h>
#include <stdio.h>

const char *batchqr_status_string(batchqr_status status) {
  switch (status) {
  case BATCHQR_SUCCESS:
    return "BATCHQR_SUCCESS";
  case BATCHQR_INVALID_ARGUMENT:
    return "BATCHQR_INVALID_ARGUMENT";
  case BATCHQR_UNSUPPORTED:
    return "BATCHQR_UNSUPPORTED";
  case BATCHQR_WORKSPACE_TOO_SMALL:
    return "BATCHQR_WORKSPACE_TOO_SMALL";
  case BATCHQR_OUT_OF_MEMORY:
    return "BATCHQR_OUT_OF_MEMORY";
  case BATCHQR_CUDA_ERROR:
    return "BATCHQR_CUDA_ERROR";
  case BATCHQR_TUNING_ERROR:
    return "BATCHQR_TUNING_ERROR";
  case BATCHQR_CAPTURE_ERROR:
    return "BATCHQR_CAPTURE_ERROR";
  case BATCHQR_RANK_ERROR:
    return "BATCHQR_RANK_ERROR";
  }
  return "not a batchqr_status";
}

int batchqr_version(void) { return BATCHQR_VERSION; }

batchqr_status bqr_fail(bqr_error *error, batchqr_status status, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(error->text, sizeof error->text, format, args);
  va_end(args);
  return status;
}

batchqr_status bqr_fail_memory(bqr_error *error, const char *what) {
  return bqr_fail(error, BATCHQR_OUT_OF_MEMORY, "host memory ran out for %s", what);
}
