/* SPDX-License-Identifier: BSD-3-Clause */
/* What is left of a member with a NaN or an Inf: no result that depends on it is finite. */
#ifndef BQR_LAB_SPOILED_H
#define BQR_LAB_SPOILED_H

#include "routines.h"

/* GEQRF, QR, GEQR_R: R's column, tau and Q tell of the first column of A that is not finite. */
void lab_spoiled_factors(const lab_member *x, lab_verdict *v);
/* ORGQR: Q tells of V and tau. */
void lab_spoiled_q(const lab_member *x, lab_verdict *v);
/* ORMQR: all lines of C tell of V and tau; else those do that had a NaN or an Inf, and no others. */
void lab_spoiled_lines(const lab_member *x, lab_verdict *v);

#endif
