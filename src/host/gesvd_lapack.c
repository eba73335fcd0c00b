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
} work;

static size_t matrix_bytes(const bqr_problem *problem, int m, int n) {
  return ((size_t)m * (size_t)n * bqr_type_bytes(problem->type) + 63) / 64 * 64;
}

static host_scratch scratch_of(const bqr_problem *problem) {
  const int most = bqr_max(problem->m, problem->n), least = bqr_min(problem->m, problem->n);
  return (host_scratch){.member = 2 * matrix_bytes(problem, most, least) +
                                  matrix_bytes(problem, least, least) +
                                  bqr_lapack_gejsv_work(problem->type, most, least),
                        .pieces = 1};
}

static work work_in(const bqr_problem *problem, void *scratch) {
  const int most = bqr_max(problem->m, problem->n), least = bqr_min(problem->m, problem->n);
  const int64_t large = (int64_t)matrix_bytes(problem, most, least),
                square = (int64_t)matrix_bytes(problem, least, least);
  return (work){scratch, host_offset(scratch, 1, large), host_offset(scratch, 1, 2 * large),
                host_offset(scratch, 1, 2 * large + square)};
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
  const work w = work_in(problem, scratch);
  if (range == HOST_NONFINITE) {
    for (int i = 0; i < k; i++) bqr_host_set_real(type, s, i, NAN);
    info = BATCHQR_INFO_NONFINITE;
  } else if (k > 0)
    info = decompose(problem, args, x, s, range, &w);
  if (rank) *rank = range == HOST_NONFINITE ? 0 : rank_of(type, args, k, s);
  host_set_info(args, x->id, info);
}

HOST_FAMILY(gesvd_lapack, BATCHQR_GESVD, scratch_of, decompose_member);
