/* SPDX-License-Identifier: BSD-3-Clause */
/* COPY_S on the CPU. */
#include "host/member.h"
#include "host/numbers.h"

static void copy_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_args *args = launch->args;
  const batchqr_type type = launch->problem->type;
  const size_t size = bqr_real_bytes(type);
  const void *from = bqr_host_vector(&args->tau, size, x->id);
  void *to = bqr_host_vector(&args->s, size, x->id);
  (void)scratch;
  for (int j = 0; j < x->n; j++)
    bqr_host_set_real(type, to, j, bqr_host_get_real(type, from, j) / args->scales[2 * x->id]);
}

HOST_FAMILY(copy_s_host, BQR_COPY_S, bqr_host_no_scratch, copy_member);
