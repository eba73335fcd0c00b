/* SPDX-License-Identifier: BSD-3-Clause */
/* What test_kernels tries of families for steps of programs, and for operations that have such steps. */
#ifndef BQR_TESTS_KERNEL_STEPS_H
#define BQR_TESTS_KERNEL_STEPS_H

#include "subject.h"

void test_copy(const subject *s);  /* COPY, COPY_R */
void test_gels(const subject *s);  /* GELS; TRANSPOSE and TRSM as its steps */
void test_solve(const subject *s); /* SOLVE */
void test_trsm(const subject *s);  /* TRSM as a routine */

#endif
