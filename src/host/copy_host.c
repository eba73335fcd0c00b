/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies members, from and to matrices by any strides. */
#include "host/member.h"

#include <string.h>

static void copy_member(const bqr_problem *problem, const bqr_args *args, const host_member *x,
                        void *scratch) {
  const size_t size = host_size(problem->type);
  const int64_t from = args->a.row_stride, to = args->c.row_stride;
  (void)scratch;
  for (int j = 0; j < x->n; j++) {
    const void *a = host_offset(x->a, size, (int64_t)j * x->lda);
    void *c = host_offset(x->c, size, (int64_t)j * x->ldc);
    if (from == 1 && to == 1)
      memcpy(c, a, (size_t)x->m * size);
    else
      for (int i = 0; i < x->m; i++)
        memcpy(host_offset(c, size, i * to), host_offset(a, size, i * from), size);
  }
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, 0, copy_member);
}

HOST_FAMILY(copy_host, BQR_COPY, .launch = launch);
