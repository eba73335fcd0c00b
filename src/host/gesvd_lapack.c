/* SPDX-License-Identifier: BSD-3-Clause */
/* GESVD on the CPU: LAPACK's xGEJSV, pivoted QR and one-sided Jacobi, of A or, where that is wide, of A^H. */
#include "host/lapack.h"
#include "host/member.h"
#include "host/numbers.h"
#include "host/range.h"

#include <math.h>
#include <stdint.h>

/* With p >= q the sizes: A or A^H and its U, p x q each, its V, q x q, LAPACK's work. */
typedef struct work {
  void *a, *u, *v, *lapack;
  size_t bytes;
} work;

static work lay_out(const bqr_problem *problem, void *base) {
  bqr_arena arena = {base, 0};
  const int p = bqr_max(problem->m, problem->n), q = bqr_min(problem->m, problem->n);
  const size_t column = (size_t)q * bqr_type_bytes(problem->type);
  work w;
  w.a = bqr_arena_take(&arena, p, column);
  w.u = bqr_arena_take(&arena, p, column);
  w.v = bqr_arena_take(&arena, q, column);
  w.lapack = bqr_arena_take(&arena, 1, bqr_lapack_gejsv_work(problem->type, p, q));
  w.bytes = arena.bytes;
  return w;
}

static host_scratch scratch_of(const bqr_problem *problem) {
  return (host_scratch){.member = lay_out(problem, NULL).bytes, .pieces = 1};
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant, (void)device;
  return bqr_lapack_gejsv_work(problem->type, bqr_max(problem->m, problem->n),
                               bqr_min(problem->m, problem->n)) < SIZE_MAX;
}

/* How many of the descending singular values are above the tolerances. */
static int rank_of(batchqr_type type, const bqr_args *args, int k, const void *s) {
  const double tolerance = k > 0 ? fmax(args->abstol, args->reltol * bqr_host_get_real(type, s, 0)) : 0;
  int rank = 0;
  while (rank < bqr_min(k, args->kmax) && bqr_host_get_real(type, s, rank) > tolerance) rank++;
  return rank;
}

static void write_vectors(batchqr_type type, const bqr_args *args, const host_member *x, const work *w) {
  const bool wide = x->m < x->n;
  const int k = bqr_min(x->m, x->n);
  void *u = bqr_host_matrix(&args->u, type, x->id), *v = bqr_host_matrix(&args->v, type, x->id);
  void *left = wide ? w->v : w->u, *right = wide ? w->u : w->v;
  for (int j = 0; j < k; j++) {
    void *l = host_at(type, left, x->m, 0, j), *r = host_at(type, right, x->n, 0, j);
    if (v)
      bqr_host_fix_sign(type, x->n, r, x->m, l);
    else
      bqr_host_fix_sign(type, x->m, l, 0, NULL);
  }
  if (u) bqr_host_copy(type, x->m, k, left, x->m, u, bqr_host_ld(&args->u, x->id));
  if (v) bqr_host_copy(type, x->n, k, right, x->n, v, bqr_host_ld(&args->v, x->id));
}

static int decompose(const bqr_problem *problem, const bqr_args *args, const host_member *x, void *s,
                     int range, const work *w) {
  const batchqr_type type = problem->type;
  const int most = bqr_max(x->m, x->n), k = bqr_min(x->m, x->n);
  const bool vectors = args->u.data || args->v.data;
  if (x->m < x->n)
    bqr_host_copy_adjoint(type, x->m, x->n, x->a, x->lda, w->a, most);
  else
    bqr_host_copy(type, x->m, x->n, x->a, x->lda, w->a, most);
  if (range) bqr_host_scale(type, most, k, w->a, most, range);
  const int info = bqr_lapack_gejsv(type, most, k, w->a, most, s, vectors ? w->u : NULL, most,
                                    vectors ? w->v : NULL, k, w->lapack);
  for (int i = 0; i < k; i++) bqr_host_set_real(type, s, i, ldexp(bqr_host_get_real(type, s, i), -range));
  if (vectors) write_vectors(type, args, x, w);
  return info;
}

static void decompose_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const batchqr_type type = problem->type;
  const int k = bqr_min(x->m, x->n), range = bqr_host_matrix_range(type, x->m, x->n, x->a, x->lda);
  void *s = bqr_host_vector(&args->s, bqr_real_bytes(type), x->id);
  int *rank = bqr_host_vector(&args->rank, sizeof(int), x->id), info = 0;
  const work w = lay_out(problem, scratch);
  if (range == HOST_NONFINITE) {
    for (int i = 0; i < k; i++) bqr_host_set_real(type, s, i, NAN);
    info = BATCHQR_INFO_NONFINITE;
  } else if (k > 0)
    info = decompose(problem, args, x, s, range, &w);
  if (rank) *rank = range == HOST_NONFINITE ? 0 : rank_of(type, args, k, s);
  host_set_info(args, x->id, info);
}

HOST_FAMILY_WITHIN(gesvd_lapack, BATCHQR_GESVD, scratch_of, decompose_member, supports);
