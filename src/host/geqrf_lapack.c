/* SPDX-License-Identifier: BSD-3-Clause */
/* GEQRF on the CPU. */
#include "host/factor.h"
#include "host/range.h"

static size_t exponent_bytes(int n) { return host_aligned((size_t)n * sizeof(int)); }

static host_scratch scratch_of(const bqr_problem *problem) {
  host_scratch scratch = bqr_host_factor_scratch(problem->type, problem->m, problem->n);
  scratch.member += exponent_bytes(problem->n);
  return scratch;
}

static void factor_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  int k = bqr_min(x->m, x->n), info = 0;
  const host_matrix a = {problem->type, x->m, x->n, x->lda, x->a, x->tau, scratch};
  if (k > 0 && bqr_host_columns_in(&a)) {
    bqr_host_factor(launch, &a, problem->positive, (char *)scratch + exponent_bytes(problem->n));
    bqr_host_columns_out(&a);
    info = bqr_host_first_zero(&a);
  } else if (k > 0) {
    bqr_host_fill_nan(problem->type, x->m, x->n, x->a, x->lda);
    bqr_host_fill_nan(problem->type, k, 1, x->tau, k);
    info = BATCHQR_INFO_NONFINITE;
  }
  host_set_info(launch->args, x->id, info);
}

HOST_FAMILY(geqrf_lapack, BATCHQR_GEQRF, scratch_of, factor_member);
