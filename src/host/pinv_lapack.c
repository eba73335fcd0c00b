/* SPDX-License-Identifier: BSD-3-Clause */
/* PINV on the CPU: GELSY's solution with the rows of Q for right-hand sides, times the weights. */
#include "host/complete.h"
#include "host/lapack.h"
#include "host/numbers.h"
#include "host/range.h"

static size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

/* Of tau, and of Q's first columns. */
static size_t taus_of(const bqr_problem *p) {
  return aligned((size_t)bqr_min(p->m, p->n) * bqr_type_bytes(p->type));
}
static size_t q_of(const bqr_problem *p) {
  return aligned((size_t)p->m * (size_t)bqr_min(p->m, p->n) * bqr_type_bytes(p->type));
}

static host_scratch scratch_of(const bqr_problem *p) {
  return (host_scratch){.member = taus_of(p) + q_of(p) + bqr_host_complete_bytes(p, p->m), .pieces = 1};
}

/* c := the first rows of Q^H. */
static void start(const host_complete *f, void *q, void *c, int ldc) {
  const host_member *x = f->x;
  bqr_host_copy(f->type, x->m, f->rank, x->a, x->lda, q, x->m);
  bqr_lapack_orgqr(f->type, x->m, f->rank, f->rank, q, x->m, x->tau, f->work, 64 * f->rank);
  bqr_host_copy_adjoint(f->type, x->m, f->rank, q, x->m, c, ldc);
}

/* Multiplies columns by the weights. */
static void weigh(const host_complete *f, const void *w, void *c, int ldc) {
  const host_member *x = f->x;
  for (int j = 0; j < x->m; j++) {
    void *column = host_at(f->type, c, ldc, 0, j);
    for (int i = 0; i < x->n && w; i++) {
      void *at = host_at(f->type, column, ldc, i, 0);
      bqr_host_set(f->type, at, bqr_host_get_real(f->type, w, j) * bqr_host_get(f->type, at));
    }
  }
}

static void invert_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const batchqr_type type = problem->type;
  int *rank = bqr_host_vector(&args->rank, sizeof(int), x->id);
  const void *w = bqr_host_vector(&args->s, bqr_real_bytes(type), x->id);
  char *memory = scratch;
  host_member own = *x;
  own.tau = memory, own.c = NULL;
  void *q = memory + taus_of(problem);
  host_complete f = bqr_host_complete(problem, &own, problem->m, memory + taus_of(problem) + q_of(problem));
  const batchqr_type real = host_is_single(type) ? BATCHQR_S : BATCHQR_D;
  const bool finite = bqr_host_matrix_range(type, x->m, x->n, x->a, x->lda) != HOST_NONFINITE &&
                      !(w && bqr_host_range(real, x->m, w) == HOST_NONFINITE);
  if (finite && x->m > 0 && x->n > 0) {
    bqr_host_complete_factor(&f, args);
    if (f.rank > 0) start(&f, q, x->c, x->ldc);
    bqr_host_complete_solve(&f, x->m, x->c, x->ldc, NULL);
    weigh(&f, w, x->c, x->ldc);
  } else if (!finite)
    bqr_host_fill_nan(type, x->n, x->m, x->c, x->ldc);
  if (rank) *rank = finite ? f.rank : 0;
  host_set_info(args, x->id, finite ? 0 : BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(pinv_lapack, BATCHQR_PINV, scratch_of, invert_member);
