/* SPDX-License-Identifier: BSD-3-Clause */
/* TRSM on the CPU: LAPACK's xTRTRS on a member's right-hand sides, each brought into range. BLAS does nothing
 * for numbers near the ends of the exponent range in R, and some multiply by reciprocals of the diagonal,
 * which overflow where X does not. So with such an R each X is found by substitution in long double.
 *
 * As a step of GELS there is none of it, which has a family for all of it. */
#include "host/lapack.h"
#include "host/numbers.h"
#include "host/range.h"
#include "host/reflectors.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef long double complex wide;

static host_scratch scratch_of(const bqr_problem *problem) {
  return (host_scratch){.piece = (size_t)problem->n * sizeof(wide),
                        .pieces = host_pieces(problem->k, HOST_LINES)};
}

/* What a triangle is made of. */
typedef struct triangle {
  bool finite, ordinary; /* ordinary: no column, and nothing on the diagonal, near the ends of the range */
  int zero;              /* the first on the diagonal, from 1; 0: none */
} triangle;

static triangle look_at(batchqr_type type, const host_member *x) {
  const int far = host_is_single(type) ? 60 : 500;
  triangle r = {true, true, 0};
  for (int j = 0; j < x->n; j++) {
    const void *diagonal = host_at(type, x->a, x->lda, j, j);
    const int range = bqr_host_range(type, j + 1, host_at(type, x->a, x->lda, 0, j));
    r.finite = r.finite && range != HOST_NONFINITE;
    r.ordinary = r.ordinary && range == 0 && abs(bqr_host_exponent(type, 1, diagonal)) <= far;
    if (r.zero == 0 && bqr_host_is_zero(type, diagonal)) r.zero = j + 1;
  }
  return r;
}

typedef struct systems {
  batchqr_type type;
  bool adjoint, ordinary;
  const host_member *x;
  _Atomic bool *finite;
} systems;

static wide get(const systems *s, int i, int j) {
  const wide r = bqr_host_get(s->type, host_at(s->type, s->x->a, s->x->lda, i, j));
  return s->adjoint ? conjl(r) : r;
}

/* One right-hand side; y: n numbers. */
static void substitute(const systems *s, void *column, wide *y) {
  const int n = s->x->n;
  for (int i = 0; i < n; i++) y[i] = bqr_host_get(s->type, host_at(s->type, column, n, i, 0));
  for (int j = 0; j < n && s->adjoint; j++) {
    for (int i = 0; i < j; i++) y[j] -= get(s, i, j) * y[i];
    y[j] /= get(s, j, j);
  }
  for (int j = n - 1; j >= 0 && !s->adjoint; j--) {
    y[j] /= get(s, j, j);
    for (int i = 0; i < j; i++) y[i] -= get(s, i, j) * y[j];
  }
  for (int i = 0; i < n; i++) bqr_host_set(s->type, host_at(s->type, column, n, i, 0), (double complex)y[i]);
}

static bool all_finite(const host_lines *c) {
  for (int j = 0; j < c->count; j++)
    if (bqr_host_exponent(c->type, c->length, host_at(c->type, c->a, c->ld, 0, j)) == HOST_NONFINITE)
      return false;
  return true;
}

static void solve_piece(const void *context, int piece, void *work) {
  const systems *s = context;
  const host_member *x = s->x;
  const int first = piece * HOST_LINES, columns = bqr_min(HOST_LINES, x->k - first);
  int exponents[HOST_LINES];
  const host_lines c = {s->type, true, columns, x->n, x->ldc, host_at(s->type, x->c, x->ldc, 0, first)};
  if (s->ordinary) {
    bqr_host_lines_in(&c, exponents);
    bqr_lapack_trtrs(s->type, s->adjoint, x->n, columns, x->a, x->lda, c.a, x->ldc);
    bqr_host_lines_out(&c, exponents);
  } else
    for (int j = 0; j < columns; j++) substitute(s, host_at(s->type, c.a, x->ldc, 0, j), work);
  if (!all_finite(&c)) *s->finite = false;
}

static void solve_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const batchqr_type type = problem->type;
  const triangle r = look_at(type, x);
  const host_lines b = {type, true, x->k, x->n, x->ldc, x->c};
  _Atomic bool finite = r.finite;
  const systems s = {type, problem->trans != BATCHQR_NO_TRANS, r.ordinary, x, &finite};
  (void)scratch;
  if (!r.finite)
    bqr_host_fill_nan(type, x->n, x->k, x->c, x->ldc);
  else if (r.zero)
    finite = x->k == 0 || all_finite(&b);
  else if (x->n > 0 && x->k > 0)
    bqr_host_for_pieces(launch, host_pieces(x->k, HOST_LINES), solve_piece, &s);
  host_set_info(launch->args, x->id, finite ? r.zero : BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(trsm_lapack, BATCHQR_TRSM, scratch_of, solve_member);
