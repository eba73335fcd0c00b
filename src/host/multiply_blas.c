/* SPDX-License-Identifier: BSD-3-Clause */
/* MULTIPLY on the CPU: BLAS's xGEMM on pieces of C's rows. */
#include "host/lapack.h"
#include "host/member.h"
#include "host/range.h"

#include <math.h>

enum { PIECE = 256 };

/* The rows of C. */
static int rows_of(const bqr_problem *problem, int m, int n) {
  return problem->trans == BATCHQR_NO_TRANS ? m : n;
}

static host_scratch scratch_of(const bqr_problem *problem) {
  return (host_scratch){.pieces = bqr_max(1, host_pieces(rows_of(problem, problem->m, problem->n), PIECE))};
}

typedef struct product {
  const host_launch *launch;
  const host_member *x;
  int columns;
} product;

static void multiply_piece(const void *context, int piece, void *scratch) {
  const product *p = context;
  const host_member *x = p->x;
  const bqr_problem *problem = p->launch->problem;
  const batchqr_type type = problem->type;
  const bool adjoint = problem->trans != BATCHQR_NO_TRANS;
  const int first = piece * PIECE, rows = bqr_min(PIECE, rows_of(problem, x->m, x->n) - first);
  const void *a = adjoint ? host_at(type, x->a, x->lda, 0, first) : host_at(type, x->a, x->lda, first, 0);
  (void)scratch;
  bqr_blas_gemm(type, adjoint, problem->subtracts, rows, p->columns, adjoint ? x->m : x->n, a, x->lda, x->r,
                x->ldr, host_at(type, x->c, x->ldc, first, 0), x->ldc);
}

static void multiply_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const batchqr_type type = problem->type;
  const int columns = launch->args->k, inner = rows_of(problem, x->n, x->m);
  const int exponent = launch->args->scales ? ilogb(launch->args->scales[2 * x->id]) : 0;
  const product p = {launch, x, columns};
  (void)scratch;
  if (columns == 0 || rows_of(problem, x->m, x->n) == 0) return;
  if (exponent) bqr_host_scale(type, inner, columns, x->r, x->ldr, exponent);
  bqr_host_for_pieces(launch, host_pieces(rows_of(problem, x->m, x->n), PIECE), multiply_piece, &p);
  if (exponent) bqr_host_scale(type, inner, columns, x->r, x->ldr, -exponent);
}

HOST_FAMILY(multiply_blas, BQR_MULTIPLY, scratch_of, multiply_member);
