/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies the first min(m,n) columns of a factored member to where Q will be. */
#include "host/member.h"

#include <string.h>

static void copy_member(const bqr_problem *problem, const bqr_args *args, const host_member *x,
                        void *scratch) {
  batchqr_type type = problem->type;
  int k = host_least(x->m, x->n);
  (void)args, (void)scratch;
  for (int j = 0; j < k && x->c != x->a; j++)
    memcpy(host_at(type, x->c, x->ldc, 0, j), host_at(type, x->a, x->lda, 0, j),
           (size_t)x->m * host_size(type));
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, 0, copy_member);
}

HOST_FAMILY(copy_v_host, BQR_COPY_V, .launch = launch);
