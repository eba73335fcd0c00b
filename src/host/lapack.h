/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACK's block reflectors for an element type told at run time. Storage as in LAPACK, reflectors forward
 * and in columns; V is only read. */
#ifndef BQR_SRC_HOST_LAPACK_H
#define BQR_SRC_HOST_LAPACK_H

#include <batchqr/batchqr.h>
#include <stdbool.h>

/* Reflectors applied together, as in the reference's ILAENV; T is a matrix of that order and leading
 * dimension. */
enum { HOST_BLOCK = 32 };

/* xLARFT: T of k <= HOST_BLOCK reflectors of that many rows. */
void bqr_lapack_larft(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau, void *t);

/* xLARFB: C := op(H) C (left) or C op(H), H = I - V T V^H; C is m x n. work: k elements for each column
 * (left) or row of C. */
void bqr_lapack_larfb(batchqr_type type, batchqr_side side, bool adjoint, int m, int n, int k, const void *v,
                      int ldv, const void *t, void *c, int ldc, void *work);

#endif
