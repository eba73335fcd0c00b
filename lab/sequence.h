/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers for large operands, known on both sides without copying them back: stretches of one endless
 * sequence of normally distributed numbers. It repeats, but its period is prime, so that no two columns of a
 * matrix are equal. */
#ifndef BQR_LAB_SEQUENCE_H
#define BQR_LAB_SEQUENCE_H

#include "memory.h"

enum { SEQUENCE_PERIOD = 16777213 };

/* Entries first, first + 1, ... in host memory, counted in real numbers. */
void sequence_get(batchqr_type type, void *to, int64_t first, int64_t reals);
/* The same in the space's memory. */
void sequence_fill(memory_space *space, batchqr_type type, void *to, int64_t first, int64_t reals);
void sequence_free(memory_space *space);

/* Uniformly distributed in (0, 1), a function of i. */
double sequence_uniform(uint64_t i);

#endif
