/* SPDX-License-Identifier: BSD-3-Clause */
/* Householder vectors for tests of ORGQR and ORMQR that do not depend on the library's GEQRF. */
#ifndef BQR_LAB_REFLECTORS_H
#define BQR_LAB_REFLECTORS_H

#include "matgen.h"

/* Writes k <= rows reflectors in LAPACK's storage: v below the diagonal of the rows x k matrix v, and tau.
 * What is on and above the diagonal is left alone. For small sizes and even seeds they are those of the
 * matrix of that kind, factored in long double and rounded; else they are random ones, with norms of v from
 * tiny to large and some tau zero. */
void reflectors_fill(batchqr_type type, matgen_kind kind, uint64_t seed, int rows, int k, void *v, int ldv,
                     void *tau);

#endif
