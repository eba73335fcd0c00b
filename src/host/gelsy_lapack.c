/* SPDX-License-Identifier: BSD-3-Clause */
/* GELSY on the CPU: the complete orthogonal factorization of A, in range, and right-hand sides that are each
 * brought into range. */
#include "host/complete.h"
#include "host/range.h"

#include <math.h>
#include <string.h>

/* A member's memory: exponents of right-hand sides, and its factorization's. */
typedef struct work {
  int *exponents;
  void *tau;
  host_complete f;
  size_t bytes;
} work;

static work lay_out(const bqr_problem *problem, void *base) {
  bqr_arena arena = {base, 0};
  work w;
  w.exponents = bqr_arena_take(&arena, problem->k, sizeof *w.exponents);
  w.tau = bqr_arena_take(&arena, bqr_min(problem->m, problem->n), bqr_type_bytes(problem->type));
  w.f = bqr_host_complete(problem, problem->k, &arena);
  w.bytes = arena.bytes;
  return w;
}

static host_scratch scratch_of(const bqr_problem *problem) {
  return (host_scratch){.member = lay_out(problem, NULL).bytes, .pieces = 1};
}

static void solve_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const batchqr_type type = problem->type;
  int *jpvt = bqr_host_vector(&args->jpvt, sizeof(int), x->id),
      *rank = bqr_host_vector(&args->rank, sizeof(int), x->id);
  work w = lay_out(problem, scratch);
  host_member own = *x;
  own.tau = w.tau;
  const host_lines b = {type, true, x->k, x->m, x->ldc, x->c};
  const bool finite = bqr_host_matrix_range(type, x->m, x->n, x->a, x->lda) != HOST_NONFINITE &&
                      bqr_host_lines_in(&b, w.exponents);
  if (finite) {
    bqr_host_complete_factor(&w.f, &own, args);
    bqr_host_complete_solve(&w.f, x->k, x->c, x->ldc, w.exponents);
  } else
    bqr_host_fill_nan(type, x->n, x->k, x->c, x->ldc);
  if (rank) *rank = finite ? w.f.rank : 0;
  if (jpvt && finite && x->n > 0) memcpy(jpvt, w.f.pivoting.order, (size_t)x->n * sizeof *jpvt);
  host_set_info(args, x->id, finite ? 0 : BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(gelsy_lapack, BATCHQR_GELSY, scratch_of, solve_member);
