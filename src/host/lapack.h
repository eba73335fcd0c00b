/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACK's block reflectors for an element type told at run time. Storage as in LAPACK, reflectors forward
 * and in columns; V is only read. */
#ifndef BQR_SRC_HOST_LAPACK_H
#define BQR_SRC_HOST_LAPACK_H

#include <batchqr/batchqr.h>
#include <stdbool.h>
#include <stddef.h>

/* Reflectors applied together, as in the reference's ILAENV; T is a matrix of that order and leading
 * dimension. */
enum { HOST_BLOCK = 32 };

/* xLARFT: T of k <= HOST_BLOCK reflectors of that many rows. */
void bqr_lapack_larft(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau, void *t);

/* xLARFB: C := op(H) C (left) or C op(H), H = I - V T V^H; C is m x n. work: k elements for each column
 * (left) or row of C. */
void bqr_lapack_larfb(batchqr_type type, batchqr_side side, bool adjoint, int m, int n, int k, const void *v,
                      int ldv, const void *t, void *c, int ldc, void *work);

/* xLARFG: the reflector of a column of n elements; beta in the first, the vector in the others. */
void bqr_lapack_larfg(batchqr_type type, int n, void *column, void *tau);
/* xLARF with that column's vector: C := H^H C, C is m x n. work: n elements. */
void bqr_lapack_larf(batchqr_type type, int m, int n, void *column, const void *tau, void *c, int ldc,
                     void *work);
/* xLANGE: a column's Frobenius norm. */
double bqr_lapack_norm(batchqr_type type, int rows, const void *column);

/* xGEJSV of a, m >= n, which is lost: singular values in s; u, m x n, and v, n x n, where they are not NULL,
 * both or none. work: bqr_lapack_gejsv_work() bytes. Returns info. */
size_t bqr_lapack_gejsv_work(batchqr_type type, int m, int n);
int bqr_lapack_gejsv(batchqr_type type, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *v,
                     int ldv, void *work);

/* xSYEVD, xHEEVD: eigenvalues in w; with vectors, these in a. work: bqr_lapack_syevd_work() bytes. Returns
 * info. */
size_t bqr_lapack_syevd_work(batchqr_type type, int n);
int bqr_lapack_syevd(batchqr_type type, bool vectors, batchqr_uplo uplo, int n, void *a, int lda, void *w,
                     void *work);

#endif
