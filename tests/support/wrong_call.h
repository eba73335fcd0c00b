/* SPDX-License-Identifier: BSD-3-Clause */
/* Ways to spoil a call. Each function spoils one thing and says what the error has to name; false: this call
 * cannot be spoiled so. */
#ifndef BQR_TESTS_WRONG_CALL_H
#define BQR_TESTS_WRONG_CALL_H

#include "plan.h"
#include "random_call.h"

typedef struct spoiling {
  dice *d;
  const bqr_operation *operation;
  const struct batchqr_plan *plan; /* of the right call */
  wrong_call *w;
} spoiling;

typedef bool (*spoiler)(const spoiling *);

/* Notes what the error's text has to hold: the argument, and its value where that is known. Returns true. */
bool names(const spoiling *s, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* All there are, ended by NULL: of addresses and storage, and of the rest. */
extern const spoiler wrong_storages[], wrong_batches[];

#endif
