/* SPDX-License-Identifier: BSD-3-Clause */
/* R of a large member in less than single precision, for refinement: the Cholesky factor of (A D)^H A D,
 * whose entries are rounded to FP16. What R's rows take from those below them is subtracted in split FP16. So
 * R is that of A D + E with E about 1e-4 next to A D, and fails to exist from condition numbers of about 1e4
 * on. */
#ifndef BQR_SRC_DRIVERS_GRAM_FACTOR_H
#define BQR_SRC_DRIVERS_GRAM_FACTOR_H

#include "family.h"
#include "refine/refine.h"

/* Of the operands' tiles, behind what r->memory has. Pure. */
size_t bqr_gram_factor_bytes(int m, int n);
/* Loads the kernels; once for each plan. */
batchqr_status bqr_gram_factor_prepare(void);
/* The copy becomes R, with the inverses of the triangles on its diagonal, or the state says that it has
 * failed. `width`: the columns of an outer block, a multiple of BQR_REFINE_TRIANGLE. */
batchqr_status bqr_gram_factor(const bqr_refine *r, int width, const bqr_device *device, void *tiles,
                               batchqr_stream stream);
int bqr_gram_factor_launches(int n, int width);

#endif
