/* SPDX-License-Identifier: BSD-3-Clause */
/* HALVES on the CPU. */
#include "host/member.h"
#include "host/numbers.h"

#include <math.h>

static void copy_scaled(batchqr_type type, int n, const void *from, void *to) {
  for (int i = 0; i < n; i++)
    bqr_host_set(type, host_at(type, to, 0, i, 0),
                 sqrt(2) * bqr_host_get(type, host_at(type, from, 0, i, 0)));
}

static void halve_member(const host_launch *launch, const host_member *x, void *scratch) {
  const batchqr_type type = launch->problem->type;
  const bqr_args *args = launch->args;
  const int n = x->n;
  const void *w = bqr_host_vector(&args->tau, bqr_real_bytes(type), x->id);
  void *s = bqr_host_vector(&args->s, bqr_real_bytes(type), x->id);
  void *u = bqr_host_matrix(&args->u, type, x->id), *v = bqr_host_matrix(&args->v, type, x->id);
  (void)scratch;
  for (int j = 0; j < n; j++) {
    const int from = x->m - 1 - j;
    const double value = bqr_host_get_real(type, w, from);
    bqr_host_set_real(type, s, j, value < 0 ? 0 : value);
    copy_scaled(type, n, host_at(type, x->a, x->lda, 0, from),
                host_at(type, u, bqr_host_ld(&args->u, x->id), 0, j));
    copy_scaled(type, n, host_at(type, x->a, x->lda, n, from),
                host_at(type, v, bqr_host_ld(&args->v, x->id), 0, j));
  }
}

HOST_FAMILY(halves_host, BQR_HALVES, bqr_host_no_scratch, halve_member);
