/* SPDX-License-Identifier: BSD-3-Clause */
/* QR with column pivoting of one member: the steps of LAPACK's xLAQP2, with the stopping rule of xGEQP3RK,
 * which few LAPACKs have. */
#ifndef BQR_SRC_HOST_PIVOTED_H
#define BQR_SRC_HOST_PIVOTED_H

#include "host/member.h"

/* Norms of what remains of the columns, what they were when they were last computed, the columns' order,
 * LAPACK's work. */
typedef struct host_pivoting {
  double *norms, *computed;
  int *order;
  void *lapack;
} host_pivoting;

/* Takes the memory for a member of n columns, and k of C. */
host_pivoting bqr_host_pivoting(batchqr_type type, int n, int k, bqr_arena *arena);

/* Factors x->a, in range, with x->tau, and applies Q^H to x->c where that is not NULL. Returns the rank. */
int bqr_host_factor_pivoted(batchqr_type type, const host_member *x, const host_pivoting *w, int most,
                            double abstol, double reltol);

#endif
