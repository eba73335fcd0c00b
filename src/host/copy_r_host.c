/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies R out of a factored member, with zeros below its diagonal. */
#include "host/member.h"

#include <string.h>

static void copy_member(const bqr_problem *problem, const bqr_args *args, const host_member *x,
                        void *scratch) {
  batchqr_type type = problem->type;
  int k = host_least(x->m, x->n);
  bool in_place = x->r == x->a;
  int rows = in_place ? x->m : k;
  const size_t size = host_size(type);
  const int64_t step = args->r.row_stride;
  (void)scratch;
  for (int j = 0; j < x->n && k > 0; j++) {
    const int upper = host_least(j + 1, k);
    void *to = host_offset(x->r, size, (int64_t)j * x->ldr);
    for (int i = 0; i < upper && !in_place; i++)
      memcpy(host_offset(to, size, i * step), host_at(type, x->a, x->lda, i, j), size);
    for (int i = upper; i < rows; i++) memset(host_offset(to, size, i * step), 0, size);
  }
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, 0, copy_member);
}

HOST_FAMILY(copy_r_host, BQR_COPY_R, .launch = launch);
