/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices that are hard for pivoted QR, for the SVD or for eigenvalue problems: those of matgen.h, and more
 * behind them. */
#ifndef BQR_TESTS_HARD_H
#define BQR_TESTS_HARD_H

#include "matgen.h"

enum hard_kind {
  HARD_KAHAN = MATGEN_NUM_KINDS, /* Kahan's, angle 1.2, its diagonal a little smaller from column to column */
  HARD_CANCELLATION, /* downdated norms lose all digits: columns differ by less and less than sqrt(eps) */
  HARD_HILBERT,
  HARD_VANDERMONDE,
  HARD_GRADED_COLUMNS, /* well-conditioned, columns times 1e+100 to 1e-100 (s, c: 1e+12 to 1e-12), in no order
                        */
  HARD_GRADED_ROWS,    /* rows, likewise */
  HARD_RANK_ONE,
  HARD_EQUAL,     /* all columns the same */
  HARD_REPEATED,  /* I - 2 u u^H: two different eigenvalues */
  HARD_ULPS,      /* diagonal, of eigenvalues that are few roundings apart, reflected from both sides */
  HARD_WILKINSON, /* W21+ again and again, glued by sqrt(eps) */
  HARD_TOEPLITZ,  /* -1, 2, -1 */
  HARD_NUM_KINDS
};

const char *hard_name(int kind);
/* As matgen_fill(). */
void hard_fill(batchqr_type type, int kind, uint64_t seed, int m, int n, void *a, int ld);

#endif
