/* SPDX-License-Identifier: BSD-3-Clause */
/* GELS on the CPU: a member is factored, in a copy where it is wide or to be kept, A or A^H = QR, and X is
 * R^-1 (Q^H B) (least squares) or Q (R^-H B) (least norm). Columns of A and of B are brought into range one
 * by one. With D the powers of two that A's columns were multiplied by, what is factored is A D or A^H D, and
 * X is D R^-1 (Q^H B) or Q (R^-H (D B)). */
#include "host/factor.h"
#include "host/lapack.h"
#include "host/range.h"
#include "host/reflectors.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

/* A member's memory: exponents of A's columns, tau, a copy of A where some member may have one; what
 * factoring needs, and then the factors of blocks of reflectors. */
typedef struct work {
  int *exponents;
  void *tau, *copy, *rest;
  size_t bytes;
} work;

static work lay_out(const bqr_problem *problem, void *base) {
  bqr_arena arena = {base, 0};
  const size_t size = bqr_type_bytes(problem->type);
  const int p = bqr_max(problem->m, problem->n), q = bqr_min(problem->m, problem->n);
  const size_t factor = bqr_host_factor_scratch(problem->type, p, q).member,
               factors = bqr_host_factors_bytes(problem->type, q);
  const bool copied = !problem->tall || problem->keeps_a;
  work w;
  w.exponents = bqr_arena_take(&arena, q, sizeof *w.exponents);
  w.tau = bqr_arena_take(&arena, q, size);
  w.copy = bqr_arena_take(&arena, copied ? p : 0, (size_t)q * size);
  w.rest = bqr_arena_take(&arena, 1, factor > factors ? factor : factors);
  w.bytes = arena.bytes;
  return w;
}

static host_scratch scratch_of(const bqr_problem *problem) {
  int p = bqr_max(problem->m, problem->n), q = bqr_min(problem->m, problem->n);
  host_scratch factor = bqr_host_factor_scratch(problem->type, p, q);
  size_t piece = bqr_host_piece_bytes(problem->type, q, problem->k);
  int64_t pieces = host_pieces(problem->k, HOST_LINES);
  return (host_scratch){.member = lay_out(problem, NULL).bytes,
                        .piece = piece > factor.piece ? piece : factor.piece,
                        .pieces = pieces > factor.pieces ? pieces : factor.pieces};
}

/* One member's systems: p x q and factored, with k right-hand sides in c. */
typedef struct systems {
  host_matrix a;
  host_reflectors q;
  bool least_squares, few, scaled; /* scaled: some column of A */
  int k, ldc;
  void *c;
  void *norms; /* NULL: not wanted */
  _Atomic bool *finite;
} systems;

static void set_norm(const systems *s, int j, double value) {
  if (s->norms == NULL) return;
  if (host_is_single(s->a.type))
    ((float *)s->norms)[j] = (float)value;
  else
    ((double *)s->norms)[j] = value;
}

/* Multiplies rows of a column by powers of two: row i by exponents[i] + e. */
static void scale_rows(batchqr_type type, int rows, void *column, const int *exponents, int e) {
  for (int i = 0; i < rows; i++)
    bqr_host_scale(type, 1, 1, host_at(type, column, 1, i, 0), 1, exponents[i] + e);
}

static void apply_q(const systems *s, bool adjoint, int columns, void *c, void *work) {
  const host_matrix *a = &s->a;
  if (a->n == 0) return;
  if (s->few)
    bqr_lapack_ormqr(a->type, BATCHQR_LEFT, adjoint, a->m, columns, a->n, a->a, a->lda, a->tau, c, s->ldc,
                     work, columns);
  else
    bqr_host_apply(&s->q, BATCHQR_LEFT, adjoint, columns, c, s->ldc, work);
}

/* X, and norms of residuals, of columns whose exponents are those of bqr_host_lines_in(). */
static void solve_least_squares(const systems *s, int first, int columns, const int *exponents, void *work) {
  const host_matrix *a = &s->a;
  void *c = host_at(a->type, s->c, s->ldc, 0, first);
  apply_q(s, true, columns, c, work);
  if (a->n > 0) bqr_lapack_trtrs(a->type, false, a->n, columns, a->a, a->lda, c, s->ldc);
  for (int j = 0; j < columns; j++) {
    void *x = host_at(a->type, c, s->ldc, 0, j);
    double norm = a->m > a->n && s->norms != NULL
                      ? bqr_lapack_norm(a->type, a->m - a->n, host_at(a->type, x, s->ldc, a->n, 0))
                      : 0.0;
    set_norm(s, first + j, ldexp(norm, -exponents[j]));
    if (s->scaled || exponents[j] != 0) scale_rows(a->type, a->n, x, a->exponents, -exponents[j]);
  }
}

static void solve_least_norm(const systems *s, int first, int columns, const int *exponents, void *work) {
  const host_matrix *a = &s->a;
  void *c = host_at(a->type, s->c, s->ldc, 0, first);
  if (a->n > 0) bqr_lapack_trtrs(a->type, true, a->n, columns, a->a, a->lda, c, s->ldc);
  if (a->m > a->n)
    bqr_lapack_laset(a->type, a->m - a->n, columns, host_at(a->type, c, s->ldc, a->n, 0), s->ldc, 0);
  apply_q(s, false, columns, c, work);
  for (int j = 0; j < columns; j++) {
    bqr_host_scale(a->type, a->m, 1, host_at(a->type, c, s->ldc, 0, j), s->ldc, -exponents[j]);
    set_norm(s, first + j, 0.0);
  }
}

/* Least norm: D B in place of B, each column with its largest entry near 1. */
static bool weighted_in(const systems *s, const host_lines *b, int *exponents) {
  for (int j = 0; j < b->count; j++) {
    void *column = host_at(b->type, b->a, b->ld, 0, j);
    int most = INT_MIN;
    if (bqr_host_exponent(b->type, b->length, column) == HOST_NONFINITE) return false;
    for (int i = 0; i < b->length; i++) {
      const void *x = host_at(b->type, column, b->ld, i, 0);
      if (!bqr_host_is_zero(b->type, x))
        most = bqr_max(most, bqr_host_exponent(b->type, 1, x) + s->a.exponents[i]);
    }
    exponents[j] = most == INT_MIN ? 0 : -most;
    scale_rows(b->type, b->length, column, s->a.exponents, exponents[j]);
  }
  return true;
}

static void solve_piece(const void *context, int piece, void *work) {
  const systems *s = context;
  int first = piece * HOST_LINES, columns = bqr_min(HOST_LINES, s->k - first), exponents[HOST_LINES];
  const host_lines b = {s->a.type, true,
                        columns,   s->least_squares ? s->a.m : s->a.n,
                        s->ldc,    host_at(s->a.type, s->c, s->ldc, 0, first)};
  bool weighted = !s->least_squares && s->scaled;
  if (!(weighted ? weighted_in(s, &b, exponents) : bqr_host_lines_in(&b, exponents))) {
    *s->finite = false;
    return;
  }
  (s->least_squares ? solve_least_squares : solve_least_norm)(s, first, columns, exponents, work);
}

/* r := a, or a^H where that is taller. */
static void copy_tall(batchqr_type type, const host_member *x, int64_t row_stride, void *r) {
  size_t bytes = bqr_type_bytes(type);
  bool wide = x->m < x->n;
  for (int j = 0; j < x->n; j++)
    for (int i = 0; i < x->m; i++) {
      void *to = wide ? host_at(type, r, x->n, j, i) : host_at(type, r, x->m, i, j);
      memcpy(to, host_offset(x->a, bytes, (int64_t)j * x->lda + i * row_stride), bytes);
      if (wide && type == BATCHQR_C) ((float *)to)[1] = -((float *)to)[1];
      if (wide && type == BATCHQR_Z) ((double *)to)[1] = -((double *)to)[1];
    }
}

/* Returns info. */
static int solve(const host_launch *launch, systems *s, void *rest) {
  if (!bqr_host_columns_in(&s->a)) return BATCHQR_INFO_NONFINITE;
  _Atomic bool finite = true;
  s->finite = &finite;
  for (int j = 0; j < s->a.n; j++) s->scaled = s->scaled || s->a.exponents[j] != 0;
  if (s->a.n > 0) bqr_host_factor(launch, &s->a, false, rest);
  int zero = bqr_host_first_zero(&s->a);
  if (!s->few && s->a.n > 0) bqr_host_form_factors(launch, &s->q);
  if (s->k > 0) bqr_host_for_pieces(launch, host_pieces(s->k, HOST_LINES), solve_piece, s);
  return finite ? zero : BATCHQR_INFO_NONFINITE;
}

static void solve_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const work w = lay_out(problem, scratch);
  batchqr_type type = problem->type;
  bool wide = x->m < x->n, copied = wide || problem->keeps_a;
  int p = bqr_max(x->m, x->n), q = bqr_min(x->m, x->n), lda = copied ? bqr_max(1, p) : x->lda;
  void *a = copied ? w.copy : x->a;
  if (copied) copy_tall(type, x, args->a.row_stride, a);
  systems s = {.a = {type, p, q, lda, a, w.tau, w.exponents},
               .q = {type, p, q, lda, a, w.tau, w.rest},
               .least_squares = wide == (problem->trans != BATCHQR_NO_TRANS),
               .few = host_is_few(p, q, x->k),
               .k = x->k,
               .ldc = x->ldc,
               .c = x->c,
               .norms = bqr_host_vector(&args->norms, bqr_real_bytes(type), x->id)};
  int info = solve(launch, &s, w.rest);
  host_set_info(args, x->id, info);
  if (info == 0) return;
  bqr_host_fill_nan(type, s.least_squares ? q : p, x->k, x->c, x->ldc);
  for (int j = 0; j < x->k; j++) set_norm(&s, j, NAN);
}

HOST_FAMILY(gels_lapack, BATCHQR_GELS, scratch_of, solve_member);
