/* SPDX-License-Identifier: BSD-3-Clause */
/* Small dense matrices in double precision, whatever the type of the data, for judging results. */
#ifndef BQR_TESTS_DENSE_H
#define BQR_TESTS_DENSE_H

#include <batchqr/batchqr.h>
#include <complex.h>
#include <stdbool.h>

typedef struct dense {
  int m, n;
  double complex *x; /* by columns, without gaps */
} dense;

dense dense_new(int m, int n); /* zeros */
void dense_free(dense *a);
static inline double complex *dense_at(const dense *a, int i, int j) { return a->x + (size_t)j * a->m + i; }

/* Data times 2^exponent. */
dense dense_read(batchqr_type type, const void *a, int ld, int m, int n, int exponent);
double dense_real(batchqr_type type, const void *x, int i, int exponent);
/* The exponent that brings the largest entry near 1; 0 for zeros. */
int dense_exponent(batchqr_type type, const void *a, int ld, int m, int n);
/* What rounding to the type's spacing near zero may cost an entry, times 2^exponent. */
double dense_spacing(batchqr_type type, int exponent);

/* x y, or x^H y. */
dense dense_product(const dense *x, bool adjoint, const dense *y);
void dense_subtract(dense *x, const dense *y);
double dense_norm(const dense *a); /* the largest sum of a column */
/* ||I - Q^H Q||. */
double dense_orthogonality(const dense *q);

/* The singular values, descending, min(m,n) of them: LAPACK's zgesdd; relative: to nearly full relative
 * accuracy where that makes sense, by one-sided Jacobi in extended precision. */
void dense_singular_values(const dense *a, double *s, bool relative);
/* The eigenvalues of a Hermitian matrix, ascending: LAPACK's zheevd. */
void dense_eigenvalues(const dense *a, double *w);

#endif
