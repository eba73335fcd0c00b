/* SPDX-License-Identifier: BSD-3-Clause */
/* GEQP3 on the CPU, with A and C brought into range. */
#include "host/numbers.h"
#include "host/pivoted.h"
#include "host/range.h"

#include <math.h>
#include <string.h>

static host_scratch scratch_of(const bqr_problem *problem) {
  bqr_arena arena = {NULL, 0};
  bqr_host_pivoting(problem->type, problem->n, problem->k, &arena);
  return (host_scratch){.member = arena.bytes, .pieces = 1};
}

/* R and what remains of A, but not the vectors. */
static void scale_back(batchqr_type type, const host_member *x, int rank, int exponent) {
  for (int j = 0; j < x->n && exponent; j++)
    bqr_host_scale(type, j < rank ? j + 1 : x->m, 1, host_at(type, x->a, x->lda, 0, j), x->lda, -exponent);
}

static void factor_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const batchqr_type type = problem->type;
  const int m = x->m, n = x->n, k = bqr_min(m, n);
  bqr_arena arena = {scratch, 0};
  const host_pivoting w = bqr_host_pivoting(type, problem->n, problem->k, &arena);
  int *jpvt = bqr_host_vector(&args->jpvt, sizeof(int), x->id);
  int *rank = bqr_host_vector(&args->rank, sizeof(int), x->id), found = 0;
  const int range_a = bqr_host_matrix_range(type, m, n, x->a, x->lda);
  const int range_c = x->c ? bqr_host_matrix_range(type, m, x->k, x->c, x->ldc) : 0;
  const bool finite = range_a != HOST_NONFINITE && range_c != HOST_NONFINITE;
  if (finite) {
    if (range_a) bqr_host_scale(type, m, n, x->a, x->lda, range_a);
    if (range_c) bqr_host_scale(type, m, x->k, x->c, x->ldc, range_c);
    found = bqr_host_factor_pivoted(type, x, &w, bqr_min(k, args->kmax), ldexp(args->abstol, range_a),
                                    args->reltol);
    for (int j = found; j < k; j++) bqr_host_set(type, host_offset(x->tau, bqr_type_bytes(type), j), 0);
    scale_back(type, x, found, range_a);
    if (range_c) bqr_host_scale(type, m, x->k, x->c, x->ldc, -range_c);
    if (jpvt && n > 0) memcpy(jpvt, w.order, (size_t)n * sizeof *jpvt);
  }
  if (rank) *rank = found;
  host_set_info(args, x->id, finite ? 0 : BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(geqp3_lapack, BATCHQR_GEQP3, scratch_of, factor_member);
