/* SPDX-License-Identifier: BSD-3-Clause */
/* Singular values and vectors of members of middle size by way of the eigenvectors V of A^H A, which another
 * family finds, all in double precision: columns of B = A V are orthogonal but for what squaring has lost,
 * eps cond(A)^2. Steps of Jacobi's method for all pairs at once, V := V (I + W) and B := B (I + W), W ~ (B^H
 * B)(i,j) / (|b_j|^2 - |b_i|^2), make up for it: two products each, which square what is left. Where A is
 * wide, A^H is decomposed. The device decides for each member whether that will do; others are left to
 * another family: those that are nearly rank-deficient, whose squares leave the range, that hold a NaN or an
 * Inf, whose columns are so different in length that small singular values are to be found to high relative
 * accuracy, and those with close singular values that the steps do not tell apart. Real types. */
#ifndef BQR_KERNELS_REFINE_EIGEN_SVD_H
#define BQR_KERNELS_REFINE_EIGEN_SVD_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* In the workspace, an entry for each of `count` entries of the launch from `first` on. Of p x q members, p
 * the larger: squares of ld x q elements. */
typedef struct bqr_eigen_svd {
  int64_t first, count;
  int ld, ldb;             /* of the squares, even; of B */
  double *square, *z, *b;  /* A^H A, then W; V; B */
  double *values;          /* eigenvalues, q each */
  int *failed;             /* info of these */
  int *m_left, *n_left;    /* sizes of members that are left, 0 of those that are done */
  void **a, **u, **v, **s; /* addresses of all members' operands, and leading dimensions */
  int *lda, *ldu, *ldv;
  int *rank, *info; /* of what is left */
} bqr_eigen_svd;

/* Products of two eigenvectors may be as large (args.abstol of SYEVD). */
double bqr_eigen_svd_product(batchqr_type type);

/* `width`: of the variant, at least p. */
batchqr_status bqr_eigen_svd_prepare(batchqr_type type, int width);
/* args: those of GESVD, of members that are alike, m, n > 0. A^H A, or I. */
batchqr_status bqr_eigen_svd_gram(batchqr_type type, int width, const bqr_args *args, const bqr_eigen_svd *w,
                                  batchqr_stream stream);
/* All results of members that are not left. */
batchqr_status bqr_eigen_svd_finish(batchqr_type type, int width, const bqr_args *args,
                                    const bqr_eigen_svd *w, batchqr_stream stream);
/* Rank and info of those that were left, once they are done. */
batchqr_status bqr_eigen_svd_take(const bqr_args *args, const bqr_eigen_svd *w, batchqr_stream stream);

enum { BQR_EIGEN_SVD_LAUNCHES = 3 };

#ifdef __cplusplus
}
#endif
#endif
