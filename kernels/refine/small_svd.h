/* SPDX-License-Identifier: BSD-3-Clause */
/* Singular values and vectors of tall members of few columns by way of A^H A = R^H R, in double precision: R
 * = U' S V^H, which another family finds, and U = A (R^-1 U'). A is read twice, and written only where that
 * will not do: where columns are not far enough from being dependent, or where squares leave the range, or
 * with a NaN or an Inf, a member is left to QR, and A is Q when it comes back. The device decides that. Real
 * types. */
#ifndef BQR_KERNELS_REFINE_SMALL_SVD_H
#define BQR_KERNELS_REFINE_SMALL_SVD_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BQR_SMALL_SVD_COLUMNS = 64 }; /* the most */

/* In the workspace, an entry for each of the launch. Matrices are n x n, without gaps. */
typedef struct bqr_small_svd {
  double *inverse; /* of R */
  void *r, *u, *v;
  void *s; /* n numbers each */
  int *rank, *info;
  void **a;                   /* addresses */
  int *m_left, *n_left, *lda; /* of what is left to QR, 0 where R is known */
} bqr_small_svd;

/* `cols`: of the variant, 32 or 64. */
batchqr_status bqr_small_svd_prepare(batchqr_type type, int cols);
/* args of GESVD, of members that are alike, m >= n > 0: R and its inverse, or what is left. */
batchqr_status bqr_small_svd_factor(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                    batchqr_stream stream);
/* R of members that were left, from their A after GEQRF. */
batchqr_status bqr_small_svd_take(batchqr_type type, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream);
/* All results, once R's are there, and Q in place of A where A was left. */
batchqr_status bqr_small_svd_back(batchqr_type type, int cols, const bqr_args *args, const bqr_small_svd *w,
                                  batchqr_stream stream);

enum { BQR_SMALL_SVD_LAUNCHES = 3 };

#ifdef __cplusplus
}
#endif
#endif
