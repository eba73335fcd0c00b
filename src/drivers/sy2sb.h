/* SPDX-License-Identifier: BSD-3-Clause */
/* A large Hermitian matrix reduced to a band, A = Q B Q^H, as LAPACK's xSYTRD_SY2SB: the first stage of its
 * eigenvalue problem.
 *
 * A panel of `width` columns is factored below the band, Q = I - V T V^H, and what is right of it becomes
 * A - V W^H - W V^H (Dongarra, Sorensen and Hammarling) only at the end of an outer block of many panels:
 * then all of them change it by one product, X Z with V and W of all panels side by side in X, and W^H and
 * V^H in Z. Until then it is the matrix A0 of the block's beginning, of which a panel needs A V = A0 V - X (Z
 * V), and its own columns (Wang et al., PPoPP 2025). */
#ifndef BQR_SRC_DRIVERS_SY2SB_H
#define BQR_SRC_DRIVERS_SY2SB_H

#include "costs.h"
#include "wide_block.h"

typedef struct bqr_sy2sb {
  bqr_wide_block block; /* A from row `width` on: its panels are those of a QR factorization */
  const bqr_costs *costs;
  int n, width, outer; /* columns of an outer block */
  char *a;             /* n x n, both triangles */
  int64_t lda;
  char *x, *z; /* lda x 2 outer, 2 outer x n */
  char *p, *y; /* V T and A V T of a panel, lda x width */
  char *h;     /* Z V T, 2 outer x width */
  bool splits; /* A V T is bqr_sbr_multiply()'s while A is large, with its memory: */
  void *multiply;
} bqr_sy2sb;

/* Order, and columns of outer blocks; width: 32 or 64. */
typedef struct bqr_sy2sb_sizes {
  int n, width, outer;
} bqr_sy2sb_sizes;

/* What it asks the planner for, see bqr_family.child. The problem is that of the eigenvalues. */
bool bqr_sy2sb_child(const bqr_problem *problem, bqr_sy2sb_sizes sizes, const bqr_device *device, int number,
                     bqr_problem *child);
batchqr_status bqr_sy2sb_prepare(const bqr_problem *problem, bqr_sy2sb_sizes sizes, const bqr_device *device);

/* Takes the memory, but that of A. *s must stay where it is. */
void bqr_sy2sb_lay_out(const bqr_problem *problem, bqr_sy2sb_sizes sizes, const bqr_device *device,
                       bqr_arena *arena, bqr_products *on, bqr_sy2sb *s);
/* Reduces A, both triangles of which are there. Leaves B in the band below the diagonal, and below that V as
 * LAPACK does, n - width reflectors; tau has as many elements. */
batchqr_status bqr_sy2sb_reduce(bqr_sy2sb *s, void *a, int64_t lda, void *tau);
/* Kernels of that; products count as one. */
int bqr_sy2sb_launches(const bqr_sy2sb *s);

#endif
