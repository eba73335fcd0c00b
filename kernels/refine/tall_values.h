/* SPDX-License-Identifier: BSD-3-Clause */
/* The singular value decomposition of a tall member from the eigenvalues of A^H A (src/drivers/gesvd_tall.c
 * drives it): the steps between the launches of other families. C interface for src/drivers; nothing here
 * allocates or synchronises. Of one member, m x n, m >= n, of a real type.
 *
 * A^H A = Z diag(w) Z^H in double precision, hence S = sqrt(w), V = Z and U = A Z S^-1. U^H U differs from I
 * by eps times the square of A's condition number, a singular value by as much of itself; in single
 * precision, which loses nothing in A^H A, by eps times the condition number. Where the eigenvalues say that
 * this is small enough, that is all; other members are solved by QR and the SVD of R.
 */
#ifndef BQR_KERNELS_REFINE_TALL_VALUES_H
#define BQR_KERNELS_REFINE_TALL_VALUES_H

#include "refine.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { BQR_TALL_VALUES_PRODUCT = 128 };

typedef struct bqr_tall_values {
  batchqr_type type;
  int m, n;
  bqr_refine_state *state; /* off: it need not be solved by QR; m and n: of R, or 0 then */
  double *w, *z;           /* n eigenvalues, ascending, and n x n; z: NULL without vectors */
  int *failed;             /* SYEVD's info */
  void *right;             /* Z S^-1, n x n */
  double *wide_right;      /* the same in double precision */
  const void *a;           /* A */
  void *factored;          /* where QR of A is, or, with `copies`, is to be */
  bool copies;             /* they are not the same */
  void *core, *left;       /* of the way by QR: R and its U, n x n */
  void *lifted;            /* and [left; 0], m x n, which becomes U */
  void *s, *u, *v;         /* the caller's; u and v may be NULL */
  int64_t lda, ldfactored, ldlifted, ldu, ldv;
  int *rank; /* NULL, or the caller's */
  int kmax;
  double abstol, reltol;
} bqr_tall_values;

batchqr_status bqr_tall_values_prepare(batchqr_type type);
/* The state, and Z S^-1, whose columns' signs are V's. */
batchqr_status bqr_tall_values_judge(const bqr_tall_values *t, batchqr_stream stream);
/* U := A Z S^-1 of a member that is not solved by QR, of up to BQR_TALL_VALUES_PRODUCT columns; u may be a.
 */
batchqr_status bqr_tall_values_multiply(const bqr_tall_values *t, const bqr_device *device,
                                        batchqr_stream stream);
/* With `copies`: A of a member that is solved by QR. */
batchqr_status bqr_tall_values_copy(const bqr_tall_values *t, batchqr_stream stream);
/* R of a member that is solved by QR, with zeros below it. */
batchqr_status bqr_tall_values_core(const bqr_tall_values *t, batchqr_stream stream);
/* lifted := [left; 0] of such a one; and u := lifted. */
batchqr_status bqr_tall_values_lift(const bqr_tall_values *t, batchqr_stream stream);
batchqr_status bqr_tall_values_store(const bqr_tall_values *t, batchqr_stream stream);
/* S, V and the rank of one that is not. */
batchqr_status bqr_tall_values_end(const bqr_tall_values *t, batchqr_stream stream);
enum { BQR_TALL_VALUES_LAUNCHES = 7 };

#ifdef __cplusplus
}
#endif
#endif
