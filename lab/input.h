/* SPDX-License-Identifier: BSD-3-Clause */
/* Large matrices other than those of the random sequence. */
#ifndef BQR_LAB_INPUT_H
#define BQR_LAB_INPUT_H

#include <batchqr/batchqr.h>

/* ARITHMETIC and GEOMETRIC: how singular values go from the largest to the smallest. */
typedef enum input_kind { INPUT_NORMAL, INPUT_UNIFORM, INPUT_ARITHMETIC, INPUT_GEOMETRIC } input_kind;

/* A member, dense, in host memory; NULL: INPUT_NORMAL, which sequence.h has. `condition`: the largest over
 * the smallest singular value. */
void *input_make(input_kind kind, double condition, batchqr_type type, int m, int n);

#endif
