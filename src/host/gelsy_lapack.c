/* SPDX-License-Identifier: BSD-3-Clause */
/* GELSY on the CPU: the complete orthogonal factorization of A, in range, and right-hand sides that are each
 * brought into range. */
#include "host/complete.h"
#include "host/range.h"

#include <math.h>
#include <string.h>

static host_scratch scratch_of(const bqr_problem *problem) {
  const size_t exponents = ((size_t)problem->k * sizeof(int) + 63) / 64 * 64;
  const size_t taus =
      ((size_t)bqr_min(problem->m, problem->n) * bqr_type_bytes(problem->type) + 63) / 64 * 64;
  return (host_scratch){.member = exponents + taus + bqr_host_complete_bytes(problem, problem->k),
                        .pieces = 1};
}

static void solve_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const batchqr_type type = problem->type;
  int *exponents = scratch, *jpvt = bqr_host_vector(&args->jpvt, sizeof(int), x->id),
      *rank = bqr_host_vector(&args->rank, sizeof(int), x->id);
  char *memory = (char *)scratch + ((size_t)problem->k * sizeof(int) + 63) / 64 * 64;
  host_member own = *x;
  own.tau = memory;
  memory += ((size_t)bqr_min(problem->m, problem->n) * bqr_type_bytes(type) + 63) / 64 * 64;
  host_complete f = bqr_host_complete(problem, &own, problem->k, memory);
  const host_lines b = {type, true, x->k, x->m, x->ldc, x->c};
  const bool finite = bqr_host_matrix_range(type, x->m, x->n, x->a, x->lda) != HOST_NONFINITE &&
                      bqr_host_lines_in(&b, exponents);
  if (finite) {
    bqr_host_complete_factor(&f, args);
    bqr_host_complete_solve(&f, x->k, x->c, x->ldc, exponents);
  } else
    bqr_host_fill_nan(type, x->n, x->k, x->c, x->ldc);
  if (rank) *rank = finite ? f.rank : 0;
  if (jpvt && finite && x->n > 0) memcpy(jpvt, f.pivoting.order, (size_t)x->n * sizeof *jpvt);
  host_set_info(args, x->id, finite ? 0 : BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(gelsy_lapack, BATCHQR_GELSY, scratch_of, solve_member);
