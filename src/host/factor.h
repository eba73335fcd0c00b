/* SPDX-License-Identifier: BSD-3-Clause */
/* The QR factorization of one member, with its columns brought into range. */
#ifndef BQR_SRC_HOST_FACTOR_H
#define BQR_SRC_HOST_FACTOR_H

#include "host/member.h"

/* A member that is to be factored, and what its exponents are: column j was multiplied by 2^exponents[j]. */
typedef struct host_matrix {
  batchqr_type type;
  int m, n, lda;
  void *a, *tau;
  int *exponents;
} host_matrix;

/* What bqr_host_factor() needs of the thread, n exponents apart. */
host_scratch bqr_host_factor_scratch(batchqr_type type, int m, int n);

/* Multiplies the columns that need it; false if there is a NaN or an Inf, and then nothing was done. */
bool bqr_host_columns_in(const host_matrix *x);
/* Takes that back in R. */
void bqr_host_columns_out(const host_matrix *x);

/* xGEQRF, or with a diagonal >= 0; scratch: the member's. */
void bqr_host_factor(const host_launch *launch, const host_matrix *x, bool positive, void *scratch);

/* The first zero on R's diagonal, counted from 1; 0: none. */
int bqr_host_first_zero(const host_matrix *x);

#endif
