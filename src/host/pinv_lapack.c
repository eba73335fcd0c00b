/* SPDX-License-Identifier: BSD-3-Clause */
/* PINV on the CPU: GELSY's solution with the rows of Q for right-hand sides, times the weights. */
#include "host/complete.h"
#include "host/lapack.h"
#include "host/numbers.h"
#include "host/range.h"

/* A member's memory: its factorization's, and Q's first columns. */
typedef struct work {
  void *tau, *q;
  host_complete f;
  size_t bytes;
} work;

static work lay_out(const bqr_problem *problem, void *base) {
  bqr_arena arena = {base, 0};
  const size_t size = bqr_type_bytes(problem->type);
  const int k = bqr_min(problem->m, problem->n);
  work w;
  w.tau = bqr_arena_take(&arena, k, size);
  w.q = bqr_arena_take(&arena, problem->m, (size_t)k * size);
  w.f = bqr_host_complete(problem, problem->m, &arena);
  w.bytes = arena.bytes;
  return w;
}

static host_scratch scratch_of(const bqr_problem *problem) {
  return (host_scratch){.member = lay_out(problem, NULL).bytes, .pieces = 1};
}

/* c := the first rows of Q^H. */
static void start(const host_complete *f, void *q, void *c, int ldc) {
  const host_member *x = f->x;
  bqr_host_copy(f->type, x->m, f->rank, x->a, x->lda, q, x->m);
  bqr_lapack_orgqr(f->type, x->m, f->rank, f->rank, q, x->m, x->tau, f->work, 64 * f->rank);
  bqr_host_copy_adjoint(f->type, x->m, f->rank, q, x->m, c, ldc);
}

/* Multiplies columns by the weights. */
static void weigh(const host_complete *f, const void *weights, void *c, int ldc) {
  const host_member *x = f->x;
  for (int j = 0; j < x->m; j++) {
    void *column = host_at(f->type, c, ldc, 0, j);
    for (int i = 0; i < x->n && weights; i++) {
      void *at = host_at(f->type, column, ldc, i, 0);
      bqr_host_set(f->type, at, bqr_host_get_real(f->type, weights, j) * bqr_host_get(f->type, at));
    }
  }
}

static void invert_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const batchqr_type type = problem->type;
  int *rank = bqr_host_vector(&args->rank, sizeof(int), x->id);
  const void *weights = bqr_host_vector(&args->s, bqr_real_bytes(type), x->id);
  work w = lay_out(problem, scratch);
  host_member own = *x;
  own.tau = w.tau, own.c = NULL;
  const batchqr_type real = host_is_single(type) ? BATCHQR_S : BATCHQR_D;
  const bool finite = bqr_host_matrix_range(type, x->m, x->n, x->a, x->lda) != HOST_NONFINITE &&
                      !(weights && bqr_host_range(real, x->m, weights) == HOST_NONFINITE);
  if (finite && x->m > 0 && x->n > 0) {
    bqr_host_complete_factor(&w.f, &own, args);
    if (w.f.rank > 0) start(&w.f, w.q, x->c, x->ldc);
    bqr_host_complete_solve(&w.f, x->m, x->c, x->ldc, NULL);
    weigh(&w.f, weights, x->c, x->ldc);
  } else if (!finite)
    bqr_host_fill_nan(type, x->n, x->m, x->c, x->ldc);
  if (rank) *rank = finite ? w.f.rank : 0;
  host_set_info(args, x->id, finite ? 0 : BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(pinv_lapack, BATCHQR_PINV, scratch_of, invert_member);
