/* SPDX-License-Identifier: BSD-3-Clause */
/* ORMQR on the CPU. LAPACK's xORMQR writes to V while it works (xORM2R puts ones on its diagonal and takes
 * them away again), but here V is constant and may be shared by members that are worked on at the same time.
 * So it works on a copy of V where it is used, for few lines. Otherwise this is its loop over blocks of
 * reflectors, on LAPACK's xLARFT and xLARFB, which only read V, for a piece of C's lines after another. */
#include "host/lapack.h"
#include "host/range.h"
#include "host/reflectors.h"

#include <stdatomic.h>
#include <string.h>

static host_scratch scratch_of(const bqr_problem *problem) {
  bool left = problem->side == BATCHQR_LEFT;
  int lines = left ? problem->n : problem->m, rows = left ? problem->m : problem->n;
  int64_t v = (int64_t)rows * problem->k;
  size_t copy = (size_t)(v < HOST_SMALL ? v : HOST_SMALL) * bqr_type_bytes(problem->type);
  size_t factors = bqr_host_factors_bytes(problem->type, problem->k);
  return (host_scratch){.member = factors > copy ? factors : copy,
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

static void apply_few(const application *p, void *work) {
  const host_reflectors *q = p->q;
  size_t bytes = bqr_type_bytes(q->type);
  bool left = p->side == BATCHQR_LEFT;
  for (int j = 0; j < q->k; j++)
    memcpy(host_at(q->type, q->t, q->rows, 0, j), host_at(q->type, q->v, q->ldv, 0, j),
           (size_t)q->rows * bytes);
  if (q->k > 0)
    bqr_lapack_ormqr(q->type, p->side, p->adjoint, left ? q->rows : p->lines, left ? p->lines : q->rows, q->k,
                     q->t, q->rows, q->tau, p->c, p->ldc, work, p->lines);
}

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
  if (host_is_few(q->rows, q->k, p->lines))
    apply_few(p, work);
  else
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
    if (!host_is_few(q.rows, q.k, p.lines)) bqr_host_form_factors(launch, &q);
    bqr_host_for_pieces(launch, host_pieces(p.lines, HOST_LINES), apply_piece, &p);
  } else {
    bqr_host_fill_nan(q.type, x->m, x->n, x->c, x->ldc);
    finite = false;
  }
  if (!finite) host_set_info(launch->args, x->id, BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(ormqr_lapack, BATCHQR_ORMQR, scratch_of, apply_member);
