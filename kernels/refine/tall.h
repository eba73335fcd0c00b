/* SPDX-License-Identifier: BSD-3-Clause */
/* Refinement, see refine.h, for members that are so tall that reading A is what takes time: R is the Cholesky
 * factor of (A D)^H A D, summed up in double precision, and steps are those of the corrected seminormal
 * equations, y := y + R^-1 R^-H (A D)^H r (Bjorck, 1987), one pass over A each. Where columns are nearly
 * dependent, or squares leave the range, it says so. Real types. */
#ifndef BQR_KERNELS_REFINE_TALL_H
#define BQR_KERNELS_REFINE_TALL_H

#include "refine.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BQR_TALL_COLUMNS = 512, BQR_TALL_RIGHT = 4 }; /* the most columns, and right-hand sides */

/* The bytes of r->memory. r->copy is not used. */
size_t bqr_tall_bytes(const bqr_refine *r);
batchqr_status bqr_tall_prepare(batchqr_type type, int n);
/* The state and R; then the steps. bqr_tall_end() is what bqr_refine_end() is. */
batchqr_status bqr_tall_factor(const bqr_refine *r, batchqr_stream stream);
batchqr_status bqr_tall_iterate(const bqr_refine *r, batchqr_stream stream);
batchqr_status bqr_tall_end(const bqr_refine *r, void *c, void *norms, int *info, int *iterations,
                            void *relres, batchqr_stream stream);
int bqr_tall_launches(const bqr_refine *r);

#ifdef __cplusplus
}
#endif
#endif
