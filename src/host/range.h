/* SPDX-License-Identifier: BSD-3-Clause */
/* Exponent ranges. LAPACK's kernels are safe from overflow and underflow in their norms, but not everywhere
 * else: the alpha - beta of xLARFG overflows for a column near the largest number, and products of subnormals
 * lose their digits. Multiplying a column of A by a power of two is exact, multiplies the same column of R
 * and leaves Q alone; so the few matrices that need it are factored with such columns brought close to 1. */
#ifndef BQR_SRC_HOST_RANGE_H
#define BQR_SRC_HOST_RANGE_H

#include <batchqr/batchqr.h>
#include <limits.h>
#include <stdbool.h>

/* What the functions below return for data with a NaN or an Inf. */
enum { HOST_NONFINITE = INT_MIN };

/* The exponent of the largest entry, which is between 2^(e-1) and 2^e; 0 for zeros. */
int bqr_host_exponent(batchqr_type type, int m, int n, const void *a, int ld);

/* The exponent e for which 2^e a has its largest entry near 1; 0 where no scaling is called for, as for
 * almost all data. */
int bqr_host_range(batchqr_type type, int m, int n, const void *a, int ld);

/* a := 2^e a. */
void bqr_host_scale(batchqr_type type, int m, int n, void *a, int ld, int e);

/* Whether k reflectors of that many rows, below V's diagonal and in tau, are free of NaN and Inf. */
bool bqr_host_finite_reflectors(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau);

#endif
