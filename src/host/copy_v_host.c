/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies the first min(m,n) columns of a factored member to where Q will be. */
#include "host/member.h"

#include <string.h>

static void copy_member(const host_launch *launch, const host_member *x, void *scratch) {
  batchqr_type type = launch->problem->type;
  (void)scratch;
  for (int j = 0; j < bqr_min(x->m, x->n) && x->c != x->a; j++)
    memcpy(host_at(type, x->c, x->ldc, 0, j), host_at(type, x->a, x->lda, 0, j),
           (size_t)x->m * bqr_type_bytes(type));
}

HOST_FAMILY(copy_v_host, BQR_COPY_V, bqr_host_no_scratch, copy_member);
