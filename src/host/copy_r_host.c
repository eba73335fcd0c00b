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
  const int64_t step = launch->args->r.row_stride;
  (void)scratch;
  for (int j = 0; j < x->n && k > 0; j++) {
    int upper = bqr_min(j + 1, k);
    void *to = host_offset(x->r, bytes, (int64_t)j * x->ldr);
    for (int i = 0; i < upper && !in_place; i++)
      memcpy(host_offset(to, bytes, i * step), host_at(type, x->a, x->lda, i, j), bytes);
    for (int i = upper; i < rows; i++) memset(host_offset(to, bytes, i * step), 0, bytes);
  }
}

HOST_FAMILY(copy_r_host, BQR_COPY_R, bqr_host_no_scratch, copy_member);
