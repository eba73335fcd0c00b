/* SPDX-License-Identifier: BSD-3-Clause */
/* Least squares of small members, a block of threads for each: the way of tall.h (R^-1 from the Cholesky
 * factor of D A^H A D in double precision, then steps of the corrected seminormal equations until X's
 * backward error is what QR's may be), all of it in one launch. Members for which it does not get there are
 * left as they are, and what is to be done with them is written for the next family's launch. Real types. */
#ifndef BQR_KERNELS_REFINE_SMALL_H
#define BQR_KERNELS_REFINE_SMALL_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BQR_SMALL_COLUMNS = 128, BQR_SMALL_RIGHT = 4 }; /* the most columns, and right-hand sides */

/* `cols`: of the variant, 32, 64 or BQR_SMALL_COLUMNS. */
batchqr_status bqr_small_prepare(batchqr_type type, int cols);
/* args of GELS, of members that are alike, m >= n > 0, k > 0, without a list of members. sizes: 3 * count
 * ints: all m, all n, all k of what is left to do, zeros for members that are solved. */
batchqr_status bqr_small_solve(batchqr_type type, int cols, const bqr_args *args, int *sizes,
                               batchqr_stream stream);

#ifdef __cplusplus
}
#endif
#endif
