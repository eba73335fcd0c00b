/* SPDX-License-Identifier: BSD-3-Clause */
/* Single numbers of an element type told at run time, as double precision's. */
#ifndef BQR_SRC_HOST_NUMBERS_H
#define BQR_SRC_HOST_NUMBERS_H

#include "host/member.h"

#include <complex.h>

double complex bqr_host_get(batchqr_type type, const void *x);
void bqr_host_set(batchqr_type type, void *x, double complex value);

/* Of the real numbers that elements are made of. */
double bqr_host_get_real(batchqr_type type, const void *x, int i);
void bqr_host_set_real(batchqr_type type, void *x, int i, double value);

/* m x n elements; the adjoint is n x m. */
void bqr_host_copy(batchqr_type type, int m, int n, const void *from, int ldf, void *to, int ldt);
void bqr_host_copy_adjoint(batchqr_type type, int m, int n, const void *from, int ldf, void *to, int ldt);

/* Multiplies a vector, and another one if that is not NULL, by the number of magnitude 1 that makes the first
 * of the vector's largest entries real and positive. */
void bqr_host_fix_sign(batchqr_type type, int m, void *x, int n, void *y);

#endif
