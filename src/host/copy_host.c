/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies members, from and to matrices by any strides. */
#include "host/member.h"

#include <string.h>

static void copy_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_args *args = launch->args;
  const size_t size = bqr_type_bytes(launch->problem->type);
  const int64_t from = args->a.row_stride, to = args->c.row_stride;
  (void)scratch;
  for (int j = 0; j < x->n && x->m > 0; j++) {
    const void *a = host_offset(x->a, size, (int64_t)j * x->lda);
    void *c = host_offset(x->c, size, (int64_t)j * x->ldc);
    if (from == 1 && to == 1)
      memcpy(c, a, (size_t)x->m * size);
    else
      for (int i = 0; i < x->m; i++)
        memcpy(host_offset(c, size, i * to), host_offset(a, size, i * from), size);
  }
}

HOST_FAMILY(copy_host, BQR_COPY, bqr_host_no_scratch, copy_member);
