/* SPDX-License-Identifier: BSD-3-Clause */
/* ORMQR on the CPU. LAPACK's xORMQR writes to V while it works (xORM2R puts ones on its diagonal and takes
 * them away again), but here V is constant and may be shared by members that are worked on at the same time.
 * So this is xORMQR's loop over blocks of reflectors, on LAPACK's xLARFT and xLARFB, which only read V. */
#include "host/range.h"
#include "host/reflectors.h"

#include <stdatomic.h>

static host_scratch scratch_of(const bqr_problem *problem) {
  int lines = problem->side == BATCHQR_LEFT ? problem->n : problem->m;
  return (host_scratch){.member = bqr_host_factors_bytes(problem->type, problem->k),
                        .piece = bqr_host_piece_bytes(problem->type, problem->k, lines),
                        .pieces = host_pieces(lines, HOST_LINES)};
}

typedef struct application {
  const host_reflectors *q;
  batchqr_side side;
  bool adjoint;
  int lines, ldc;
  void *c;
  _Atomic bool *finite;
} application;

/* Lines are independent of one another: each is brought into range by itself, and one with a NaN or an Inf
 * becomes NaN. */
static void apply_piece(const void *context, int piece, void *work) {
  const application *p = context;
  const host_reflectors *q = p->q;
  int first = piece * HOST_LINES, lines = bqr_min(HOST_LINES, p->lines - first), exponents[HOST_LINES];
  bool left = p->side == BATCHQR_LEFT;
  void *c = host_at(q->type, p->c, p->ldc, left ? 0 : first, left ? first : 0);
  const host_lines x = {q->type, left, lines, q->rows, p->ldc, c};
  if (!bqr_host_lines_in(&x, exponents)) *p->finite = false;
  bqr_host_apply(q, p->side, p->adjoint, lines, c, p->ldc, work);
  bqr_host_lines_out(&x, exponents);
}

static void apply_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  bool left = problem->side == BATCHQR_LEFT;
  _Atomic bool finite = true;
  const host_reflectors q = {problem->type, left ? x->m : x->n, x->k, x->lda, x->a, x->tau, scratch};
  const application p = {.q = &q,
                         .side = problem->side,
                         .adjoint = problem->trans != BATCHQR_NO_TRANS,
                         .lines = left ? x->n : x->m,
                         .ldc = x->ldc,
                         .c = x->c,
                         .finite = &finite};
  host_set_info(launch->args, x->id, 0);
  if (x->m == 0 || x->n == 0) return;
  if (bqr_host_finite_reflectors(q.type, q.rows, q.k, q.v, q.ldv, q.tau)) {
    bqr_host_form_factors(launch, &q);
    bqr_host_for_pieces(launch, host_pieces(p.lines, HOST_LINES), apply_piece, &p);
  } else {
    bqr_host_fill_nan(q.type, x->m, x->n, x->c, x->ldc);
    finite = false;
  }
  if (!finite) host_set_info(launch->args, x->id, BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(ormqr_lapack, BATCHQR_ORMQR, scratch_of, apply_member);
