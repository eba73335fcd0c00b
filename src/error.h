/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that goes with a status. */
#ifndef BQR_SRC_ERROR_H
#define BQR_SRC_ERROR_H

#include <batchqr/batchqr.h>

typedef struct bqr_error {
  char text[512];
} bqr_error;

/* Writes the text and returns the status, so that a failure is one statement. */
__attribute__((format(printf, 3, 4))) batchqr_status bqr_fail(bqr_error *error, batchqr_status status,
                                                              const char *format, ...);

/* The failure of a malloc for `what`. */
batchqr_status bqr_fail_memory(bqr_error *error, const char *what);

#endif
