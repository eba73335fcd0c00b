/* SPDX-License-Identifier: BSD-3-Clause */
/* Singular values and vectors of tall members of few columns by way of the eigenvalues L and vectors V of A^H
 * A, which another family finds, all in double precision: S = L^1/2 and U = A (V S^-1). A is read twice, and
 * written only where that will not do: where columns are not far enough from being dependent, or where
 * squares leave the range, or with a NaN or an Inf, a member is left to QR, and A is Q when it comes back.
 * The device decides that. Real types. */
#ifndef BQR_KERNELS_REFINE_SMALL_SVD_H
#define BQR_KERNELS_REFINE_SMALL_SVD_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BQR_SMALL_SVD_COLUMNS = 64 }; /* the most */

/* In the workspace, an entry for each of the launch. Matrices are n x n, without gaps. */
typedef struct bqr_small_svd {
  double *square, *z, *values; /* A^H A, its eigenvectors and eigenvalues */
  int *failed;                 /* info of these */
  void *r, *u, *v, *s;         /* of what is left; r and u may take the place of square and z */
  int *rank, *info;
  void **a;                   /* addresses */
  int *m_left, *n_left, *lda; /* of what is left to QR, 0 of what is done */
} bqr_small_svd;

/* `cols`: of the variant, 16, 32 or 64. */
batchqr_status bqr_small_svd_prepare(batchqr_type type, int cols);
/* args of GESVD, of members that are alike, m >= n > 0: A^H A, on and below the diagonal, or I. */
batchqr_status bqr_small_svd_gram(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream);
/* All results of members that are not left. */
batchqr_status bqr_small_svd_finish(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                    batchqr_stream stream);
/* R of members that were left, from their A after GEQRF. */
batchqr_status bqr_small_svd_take(batchqr_type type, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream);
/* All results of these, once the SVD of R is there, and Q in place of A. */
batchqr_status bqr_small_svd_back(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream);

enum { BQR_SMALL_SVD_LAUNCHES = 4 };

#ifdef __cplusplus
}
#endif
#endif
