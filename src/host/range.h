/* SPDX-License-Identifier: BSD-3-Clause */
/* Exponent ranges. LAPACK's kernels are safe from overflow and underflow in their norms, but not everywhere
 * else: the alpha - beta of xLARFG overflows for a column near the largest number, and products of subnormals
 * lose their digits. Multiplying a column of A by a power of two is exact, multiplies the same column of R
 * and leaves Q alone; so the few columns that need it are brought close to 1 before, and back after. Likewise
 * lines of a matrix that Q is applied to: its columns from the left, its rows from the right. */
#ifndef BQR_SRC_HOST_RANGE_H
#define BQR_SRC_HOST_RANGE_H

#include <batchqr/batchqr.h>
#include <limits.h>
#include <stdbool.h>

/* What the functions below return for data with a NaN or an Inf. */
enum { HOST_NONFINITE = INT_MIN };

/* The exponent of the largest entry of a column, which is between 2^(e-1) and 2^e; 0 for zeros. */
int bqr_host_exponent(batchqr_type type, int m, const void *column);

/* The exponent e for which 2^e a has its largest entry near 1; 0 where no scaling is called for, as for
 * almost all data. */
int bqr_host_range(batchqr_type type, int m, const void *column);
/* Likewise of a whole matrix. */
int bqr_host_matrix_range(batchqr_type type, int m, int n, const void *a, int ld);

/* a := 2^e a. */
void bqr_host_scale(batchqr_type type, int m, int n, void *a, int ld, int e);

/* a := NaN, in all parts of its numbers. */
void bqr_host_fill_nan(batchqr_type type, int m, int n, void *a, int ld);

bool bqr_host_is_zero(batchqr_type type, const void *x);

/* The lines of a matrix, `count` of them, each `length` long: its columns or its rows. */
typedef struct host_lines {
  batchqr_type type;
  bool columns;
  int count, length, ld;
  void *a;
} host_lines;

/* Multiplies line i by 2^exponents[i], which is 1 for most, and makes those with a NaN or an Inf all NaN.
 * False if there was one. */
bool bqr_host_lines_in(const host_lines *x, int *exponents);
/* Takes the multiplication back. */
void bqr_host_lines_out(const host_lines *x, const int *exponents);

/* Whether k reflectors of that many rows, below V's diagonal and in tau, are free of NaN and Inf. */
bool bqr_host_finite_reflectors(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau);

#endif
