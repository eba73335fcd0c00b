/* SPDX-License-Identifier: BSD-3-Clause */
/* Least squares by refinement: CGLS in the working precision, preconditioned by an R that was made in less
 * (src/drivers/gels_refine.c drives it). C interface for src/drivers; nothing here allocates or synchronises.
 * All is about one member, op(A) = A, m >= n.
 *
 * A D is worked with, D of powers of two such that A's columns have lengths in [1, 2). The copy of A D, in
 * single precision, becomes R. Of a right-hand side, also brought near 1, what is found is y with x = D y.
 *
 * When it is done. With s = R^-H (A D)^H r and r = b - A x, the least ||E|| for which y is a solution for
 * A D + E is at most ||s|| / (sigma ||y||), sigma being the least singular value of A D R^-1, and at most
 * ||(A D)^H r|| / ||r|| (Walden, Karlson and Sun, 1995; Stewart, 1977). The steps tell what sigma is in the
 * space that they have come to know, which is enough for a random right-hand side: one is solved for beside
 * the others, and until s is small next to what it was. y is accepted where the smaller of these is within
 * the rounding that QR itself makes: eps ||A D||_F / 2 (single precision: / 4), or, where no more is to be
 * had, twice that. r is then formed anew and not the one that the steps carry along.
 */
#ifndef BQR_KERNELS_REFINE_REFINE_H
#define BQR_KERNELS_REFINE_REFINE_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  BQR_REFINE_COLUMNS = 3,   /* right-hand sides of a launch that iterates */
  BQR_REFINE_MOST = 64,     /* of a member */
  BQR_REFINE_BLOCK = 1024,  /* columns of R whose triangle on the diagonal is inverted */
  BQR_REFINE_TRIANGLE = 128 /* those that are factored at a time */
};

/* What is known on the device. */
typedef struct bqr_refine_state {
  bqr_switch off; /* set once all right-hand sides are solved for */
  int failed;     /* in the rung that is under way */
  int stop;       /* nothing is left to do in it: failed, or off */
  int m, n, k;    /* of what is left to do: the member's sizes, or zeros */
  unsigned arrivals[BQR_REFINE_MOST];
  int exponents[BQR_REFINE_MOST]; /* of what each right-hand side was multiplied by */
  int steps[BQR_REFINE_MOST];     /* of each right-hand side, in all rungs */
  double error[BQR_REFINE_MOST];  /* ||E|| / ||A D||_F, as above */
  double norm[BQR_REFINE_MOST];   /* ||r||, of what was multiplied */
} bqr_refine_state;

typedef struct bqr_refine {
  batchqr_type type;
  int m, n, k;
  int blocks; /* that iterate: as many as run at once */
  const void *a, *b;
  int64_t lda, ldb;
  const double *scales; /* 2, see bqr_args: NaN is left to the direct way */
  void *copy;           /* of A D, in single precision */
  int64_t ldcopy;
  void *memory; /* bqr_refine_bytes() */
  bool alone;   /* X is wanted, and neither norms nor relres */
  bqr_refine_state *state;
} bqr_refine;

/* Where sizes and type are set. */
size_t bqr_refine_bytes(const bqr_refine *r);
batchqr_status bqr_refine_prepare(batchqr_type type, int k);

/* Before all others: the state; D; and the copy. */
batchqr_status bqr_refine_begin(const bqr_refine *r, batchqr_stream stream);
/* Of (A D)^H A D, of which the part on and above the diagonal is in the copy, R's rows from `at` on, so many
 * as are factored at a time; and what they take from the rows below, up to row `end`. Its triangle is left as
 * its inverse alone, for which there have to be zeros first. */
batchqr_status bqr_refine_clear(const bqr_refine *r, batchqr_stream stream);
batchqr_status bqr_refine_rows(const bqr_refine *r, int at, int end, batchqr_stream stream);
/* Inverts the triangles on the diagonal of R, from those. */
batchqr_status bqr_refine_invert(const bqr_refine *r, batchqr_stream stream);
/* Solves for all right-hand sides, in `most` steps at most. */
batchqr_status bqr_refine_iterate(const bqr_refine *r, int most, batchqr_stream stream);
/* After each rung: sets `off` if nothing has failed, and the sizes of what is left to do. */
batchqr_status bqr_refine_judge(const bqr_refine *r, batchqr_stream stream);
/* Where it is off: X to c, which is b, norms and info. Elsewhere what `iterations` and `relres` say of it. */
batchqr_status bqr_refine_end(const bqr_refine *r, void *c, void *norms, int *info, int *iterations,
                              void *relres, batchqr_stream stream);
/* Kernels of these but for R's. */
int bqr_refine_launches(const bqr_refine *r);

#ifdef __cplusplus
}
#endif
#endif
