/* SPDX-License-Identifier: BSD-3-Clause */
/* JORDAN on the CPU. */
#include "host/lapack.h"
#include "host/member.h"
#include "host/numbers.h"

static void make_member(const host_launch *launch, const host_member *x, void *scratch) {
  const batchqr_type type = launch->problem->type;
  const int n = x->m / 2;
  (void)scratch;
  bqr_lapack_laset(type, x->m, x->n, x->c, x->ldc, 0);
  bqr_host_copy(type, n, n, x->a, x->lda, host_at(type, x->c, x->ldc, 0, n), x->ldc);
  bqr_host_copy_adjoint(type, n, n, x->a, x->lda, host_at(type, x->c, x->ldc, n, 0), x->ldc);
}

HOST_FAMILY(jordan_host, BQR_JORDAN, bqr_host_no_scratch, make_member);
