/* SPDX-License-Identifier: BSD-3-Clause */
/* LAPACK for an element type told at run time. Storage as in LAPACK, reflectors forward and in columns. Where
 * a size of work is not told, LAPACK needs none. */
#ifndef BQR_SRC_HOST_LAPACK_H
#define BQR_SRC_HOST_LAPACK_H

#include <batchqr/batchqr.h>
#include <stdbool.h>
#include <stddef.h>

void bqr_lapack_geqrf(batchqr_type type, int m, int n, void *a, int lda, void *tau, void *work, int lwork);
void bqr_lapack_geqrfp(batchqr_type type, int m, int n, void *a, int lda, void *tau, void *work, int lwork);
/* xGEQRT3: with the factor T of the n <= m reflectors, in its upper triangle, tau on T's diagonal. */
void bqr_lapack_geqrt3(batchqr_type type, int m, int n, void *a, int lda, void *t, int ldt);
/* xORGQR, xUNGQR. */
void bqr_lapack_orgqr(batchqr_type type, int m, int n, int k, void *a, int lda, const void *tau, void *work,
                      int lwork);
/* xORMQR, xUNMQR; writes to `a` while it works. */
void bqr_lapack_ormqr(batchqr_type type, batchqr_side side, bool adjoint, int m, int n, int k, void *a,
                      int lda, const void *tau, void *c, int ldc, void *work, int lwork);

/* xLARFT: T of k reflectors of that many rows. */
void bqr_lapack_larft(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau, void *t,
                      int ldt);
/* xLARFB: C := op(H) C (left) or C op(H), H = I - V T V^H; C is m x n. V is only read. work: k elements for
 * each column (left) or row of C. */
void bqr_lapack_larfb(batchqr_type type, batchqr_side side, bool adjoint, int m, int n, int k, const void *v,
                      int ldv, const void *t, int ldt, void *c, int ldc, void *work);

/* xLASET: zeros, and `diagonal` on the diagonal. */
void bqr_lapack_laset(batchqr_type type, int m, int n, void *a, int lda, int diagonal);

/* xTRTRS with an upper triangle or its adjoint: whether it has no zero on its diagonal, and b then holds the
 * solution. */
bool bqr_lapack_trtrs(batchqr_type type, bool adjoint, int n, int k, const void *a, int lda, void *b,
                      int ldb);
/* xLANGE: a column's Frobenius norm. */
double bqr_lapack_norm(batchqr_type type, int rows, const void *column);

/* xLARFG: the reflector of a column of n elements; beta in the first, the vector in the others. */
void bqr_lapack_larfg(batchqr_type type, int n, void *column, void *tau);
/* xLARF with that column's vector: C := H^H C, C is m x n. work: n elements. */
void bqr_lapack_larf(batchqr_type type, int m, int n, void *column, const void *tau, void *c, int ldc,
                     void *work);
/* xGEJSV of a, m >= n, which is lost: singular values in s; u, m x n, and v, n x n, where they are not NULL,
 * both or none. work: bqr_lapack_gejsv_work() bytes; SIZE_MAX: more than LAPACK's ints count. Returns info.
 */
size_t bqr_lapack_gejsv_work(batchqr_type type, int m, int n);
int bqr_lapack_gejsv(batchqr_type type, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *v,
                     int ldv, void *work);

/* xSYEVD, xHEEVD: eigenvalues in w; with vectors, these in a. work: bqr_lapack_syevd_work() bytes,
 * likewise. Returns info. */
size_t bqr_lapack_syevd_work(batchqr_type type, int n);
int bqr_lapack_syevd(batchqr_type type, bool vectors, batchqr_uplo uplo, int n, void *a, int lda, void *w,
                     void *work);
/* xSYEV, xHEEV with vectors, likewise: by QL and QR iterations alone. */
int bqr_lapack_syev(batchqr_type type, batchqr_uplo uplo, int n, void *a, int lda, void *w, void *work);

/* xGEMM: c := op(a) b, or, if it subtracts, c - op(a) b; op(a) m x k, b k x n. */
void bqr_blas_gemm(batchqr_type type, bool adjoint, bool subtracts, int m, int n, int k, const void *a,
                   int lda, const void *b, int ldb, void *c, int ldc);

#endif
