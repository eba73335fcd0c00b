/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies R out of a factored member, with zeros below its diagonal. */
#include "host/member.h"

#include <string.h>

static void copy_member(const host_launch *launch, const host_member *x, void *scratch) {
  batchqr_type type = launch->problem->type;
  size_t bytes = bqr_type_bytes(type);
  int k = bqr_min(x->m, x->n);
  bool in_place = x->r == x->a;
  int rows = in_place ? x->m : k;
  (void)scratch;
  for (int j = 0; j < x->n && k > 0; j++) {
    int upper = bqr_min(j + 1, k);
    void *to = host_at(type, x->r, x->ldr, 0, j);
    if (!in_place) memcpy(to, host_at(type, x->a, x->lda, 0, j), (size_t)upper * bytes);
    memset(host_offset(to, bytes, upper), 0, (size_t)(rows - upper) * bytes);
  }
}

HOST_FAMILY(copy_r_host, BQR_COPY_R, bqr_host_no_scratch, copy_member);
