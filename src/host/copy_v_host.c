/* SPDX-License-Identifier: BSD-3-Clause */
/* Copies the first min(m,n) columns of a factored member to where Q will be. */
#include "host/member.h"

#include <string.h>

static void copy_member(const batchqr_problem *problem, const batchqr_args *args, const host_member *x,
                        void *scratch) {
  batchqr_type type = problem->type;
  int k = host_least(x->m, x->n);
  (void)args, (void)scratch;
  for (int j = 0; j < k && x->c != x->a; j++)
    memcpy(host_at(type, x->c, x->ldc, 0, j), host_at(type, x->a, x->lda, 0, j),
           (size_t)x->m * host_size(type));
}

static batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_device *device, const batchqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, 0, copy_member);
}

static const batchqr_variant variants[] = {{.name = "omp"}};

extern const batchqr_family batchqr_family_copy_v_host;
const batchqr_family batchqr_family_copy_v_host = {
    .name = "copy_v_host",
    .op = BATCHQR_COPY_V,
    .types = BATCHQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CPU,
    .variants = variants,
    .nvariants = 1,
    .launches = 1,
    .supports = bqr_host_supports,
    .launch = launch,
};
