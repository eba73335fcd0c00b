/* SPDX-License-Identifier: BSD-3-Clause */
/* Complete orthogonal factorizations of one member: A P = Q [T 0; 0 0] Z, of whatever rank. */
#ifndef BQR_SRC_HOST_COMPLETE_H
#define BQR_SRC_HOST_COMPLETE_H

#include "host/pivoted.h"

/* Q with R above it in x->a and x->tau; of rank < n, L with Z, [R11 R12]^H = Z^H L, L n x rank. */
typedef struct host_complete {
  batchqr_type type;
  const host_member *x;
  host_pivoting pivoting;
  void *l, *tau_l, *work;
  int rank, range; /* A was multiplied by 2^range */
} host_complete;

/* Takes the memory for a member, and for so many right-hand sides. */
host_complete bqr_host_complete(const bqr_problem *problem, int columns, bqr_arena *arena);

/* Factors the member's A, which is finite, and applies Q^H to its C where that is not NULL. Finds the rank.
 */
void bqr_host_complete_factor(host_complete *f, const host_member *x, const bqr_args *args);

/* Solves, for columns of n elements of which the first `rank` are those of Q^H b: these become x. Column j
 * of b was multiplied by 2^exponents[j]; NULL: by 1. */
void bqr_host_complete_solve(const host_complete *f, int columns, void *c, int ldc, const int *exponents);

#endif
