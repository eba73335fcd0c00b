/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of a member's matrices in long double, whose range holds all their squares. */
#ifndef BQR_LAB_NUMBER_H
#define BQR_LAB_NUMBER_H

#include "routines.h"

#include <complex.h>

typedef long double complex number;

/* Entry (i, j), which must be there, of the operand at a place, whose first one is at `a`. */
static inline number number_at(const lab_member *x, int place, const void *a, int i, int j) {
  const int64_t at = (int64_t)j * x->ld[place] + i;
  switch (x->type) {
  case BATCHQR_S:
    return ((const float *)a)[at];
  case BATCHQR_D:
    return ((const double *)a)[at];
  case BATCHQR_C:
    return ((const float complex *)a)[at];
  default:
    return ((const double complex *)a)[at];
  }
}

#endif
