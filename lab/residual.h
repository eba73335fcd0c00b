/* SPDX-License-Identifier: BSD-3-Clause */
/* Test ratios, as LAPACK's TESTING/LIN computes them, but in a wider precision than the data's: double for s
 * and c, long double for d and z. The wider types also have a wider exponent range, so that nothing overflows
 * or underflows on the way. All data is in host memory.
 *
 * eps is the unit roundoff (type_eps, LAPACK's xLAMCH('Epsilon')). Norms are 1-norms, the modulus of a
 * complex number is the true one.
 *
 * Near the smallest numbers rounding is absolute: a subnormal R(i,j) can be no closer to the truth than half
 * of eta, the smallest subnormal. Where a bound is relative to ||A||, it therefore reads `||A|| eps + eta`
 * instead of `||A|| eps`. For a matrix with ||A|| above the smallest normal number that changes nothing
 * that could be seen. It also makes the ratio of zero over zero 0.
 *
 * `columns` > 0: look at no more than that many columns, evenly spread, the first and last among them (the
 * norm is then that of these columns); 0: at all of them. A ratio is NaN or Inf where the results are, so
 * test `ratio < bound`, not `ratio >= bound`. All functions are OpenMP-parallel over columns unless called
 * from a parallel region. */
#ifndef BQR_LAB_RESIDUAL_H
#define BQR_LAB_RESIDUAL_H

#include <batchqr/batchqr.h>

/* What every ratio must stay below. */
#define RESIDUAL_BOUND 30.0

/* GEQRF: ||A - Q R||_1 / (max(m,n) (||A||_1 eps + eta)), Q = H_1 ... H_min(m,n) from qr and tau. */
double residual_geqrf(batchqr_type type, int m, int n, const void *a, int lda, const void *qr, int ldqr,
                      const void *tau, int columns);

/* GEQRF: ||I - Q^H Q||_1 / (m eps) for the first n columns of Q = H_1 ... H_k, m >= n >= k. */
double residual_reflectors(batchqr_type type, int m, int n, int k, const void *v, int ldv, const void *tau,
                           int columns);

/* ORGQR: ||Q - H_1 ... H_k I||_1 / (m eps), Q m x n. */
double residual_orgqr(batchqr_type type, int m, int n, int k, const void *v, int ldv, const void *tau,
                      const void *q, int ldq, int columns);

/* ORMQR: ||C - op(Q) B||_1 / (p (||B||_1 eps + eta)), or B op(Q); B and C m x n, p = m (left) or n (right).
 * On the right the columns looked at are rows of B, and the norm is the inf-norm. */
double residual_ormqr(batchqr_type type, batchqr_side side, batchqr_trans trans, int m, int n, int k,
                      const void *v, int ldv, const void *tau, const void *b, int ldb, const void *c, int ldc,
                      int columns);

/* QR: ||A - Q R||_1 / (max(m,n) (||A||_1 eps + eta)), Q m x min(m,n), R min(m,n) x n upper trapezoidal (what
 * lies below its diagonal counts too: it must be zero). */
double residual_qr(batchqr_type type, int m, int n, const void *a, int lda, const void *q, int ldq,
                   const void *r, int ldr, int columns);

/* QR: ||R - Q^H A||_1 / (max(m,n) (||A||_1 eps + eta)). */
double residual_projection(batchqr_type type, int m, int n, const void *a, int lda, const void *q, int ldq,
                           const void *r, int ldr, int columns);

/* ||I - Q^H Q||_1 / (m eps), Q m x n. */
double residual_orthogonality(batchqr_type type, int m, int n, const void *q, int ldq, int columns);

/* GEQR_R: ||A^H A - R^H R||_1 / (max(m,n) (||A||_1 + ||A||_inf) (||A||_1 eps + eta)), R as in residual_qr().
 */
double residual_gram(batchqr_type type, int m, int n, const void *a, int lda, const void *r, int ldr,
                     int columns);

/* GELS, the largest of these over the columns b of B, with the x, the residual norm rho (where `norms` are
 * given) and Frobenius norms, and with e = max(m,n) ((||A|| ||x|| + ||B||) eps + (||A|| + 1) eta), which is
 * how far a small change of A and b moves b - op(A) x:
 *   ||op(A)^H (b - op(A) x)|| / (||A|| e)   op(A) not wide,
 *   ||b - op(A) x|| / e                     op(A) wide,
 *   ||(I - P) x|| / (max(m,n) (||A|| ||z|| eps + eta)), x = op(A)^H z + (I - P) x: likewise, where not large,
 *   | ||b - op(A) x|| - rho | / (e + eta).
 * X has as many rows as op(A) has columns. */
double residual_gels(batchqr_type type, batchqr_trans trans, int m, int n, int k, const void *a, int lda,
                     const void *b, int ldb, const void *x, int ldx, const void *norms, int columns);

/* GELSY, likewise, with A_1 the first `rank` columns of A P and Q their range's basis:
 *   ||A_1^H (b - A x)|| / (||A|| e)
 *   ||(I - P) x|| / (max(m,n) (||Q^H A|| ||z|| eps + eta)), x = A^H Q z + (I - P) x, as above: the shortest.
 */
double residual_gelsy(batchqr_type type, int m, int n, int k, const void *a, int lda, const void *b, int ldb,
                      const void *x, int ldx, const int *jpvt, int rank, int columns);

#endif
