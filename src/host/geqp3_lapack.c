/* SPDX-License-Identifier: BSD-3-Clause */
/* GEQP3 on the CPU: the steps of LAPACK's xLAQP2, with the stopping rule of xGEQP3RK, which few LAPACKs have.
 */
#include "host/lapack.h"
#include "host/member.h"
#include "host/numbers.h"
#include "host/range.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Norms of what remains of the columns, what they were when they were last computed, the columns' order,
 * LAPACK's work. */
typedef struct work {
  double *norms, *computed;
  int *order;
  void *lapack;
} work;

static size_t norms_bytes(int n) { return ((size_t)n * sizeof(double) + 63) / 64 * 64; }

static host_scratch scratch_of(const bqr_problem *problem) {
  const size_t elements = (size_t)bqr_max(problem->n, problem->k);
  return (host_scratch){.member = 3 * norms_bytes(problem->n) + elements * bqr_type_bytes(problem->type),
                        .pieces = 1};
}

static work work_in(const bqr_problem *problem, void *scratch) {
  const int64_t bytes = (int64_t)norms_bytes(problem->n);
  return (work){scratch, host_offset(scratch, 1, bytes), host_offset(scratch, 1, 2 * bytes),
                host_offset(scratch, 1, 3 * bytes)};
}

static void exchange(batchqr_type type, const host_member *x, const work *w, int i, int j) {
  if (i == j) return;
  unsigned char *p = host_at(type, x->a, x->lda, 0, i), *q = host_at(type, x->a, x->lda, 0, j);
  for (size_t b = 0; b < (size_t)x->m * bqr_type_bytes(type); b++) {
    const unsigned char byte = p[b];
    p[b] = q[b];
    q[b] = byte;
  }
  const int column = w->order[i];
  w->order[i] = w->order[j];
  w->order[j] = column;
  w->norms[j] = w->norms[i];
  w->computed[j] = w->computed[i];
}

/* The first of the longest columns from `first` on. */
static int longest(const work *w, int first, int n) {
  int pivot = first;
  for (int j = first + 1; j < n; j++)
    if (w->norms[j] > w->norms[pivot]) pivot = j;
  return pivot;
}

/* Takes row j off the norm of a column, which is computed anew where too little of it would be left. */
static void downdate(batchqr_type type, const host_member *x, const work *w, int j, int column) {
  const double eps = host_is_single(type) ? FLT_EPSILON / 2 : DBL_EPSILON / 2;
  double *norm = &w->norms[column], *computed = &w->computed[column];
  if (*norm == 0) return;
  const double part = cabs(bqr_host_get(type, host_at(type, x->a, x->lda, j, column))) / *norm;
  const double left = fmax(0, (1 - part) * (1 + part)), since = *norm / *computed;
  if (left * since * since > sqrt(eps))
    *norm *= sqrt(left);
  else
    *norm = *computed = bqr_lapack_norm(type, x->m - j - 1, host_at(type, x->a, x->lda, j + 1, column));
}

/* The rank. */
static int factor(batchqr_type type, const host_member *x, const work *w, int most, double abstol,
                  double reltol) {
  const int m = x->m, n = x->n;
  double length = 0;
  for (int j = 0; j < n; j++) {
    w->order[j] = j;
    w->norms[j] = w->computed[j] = bqr_lapack_norm(type, m, host_at(type, x->a, x->lda, 0, j));
    length = fmax(length, w->norms[j]);
  }
  const double tolerance = fmax(abstol, reltol * length);
  for (int j = 0; j < most; j++) {
    const int pivot = longest(w, j, n);
    if (!(w->norms[pivot] > tolerance)) return j;
    exchange(type, x, w, j, pivot);
    void *column = host_at(type, x->a, x->lda, j, j), *tau = host_offset(x->tau, bqr_type_bytes(type), j);
    bqr_lapack_larfg(type, m - j, column, tau);
    bqr_lapack_larf(type, m - j, n - j - 1, column, tau, host_at(type, x->a, x->lda, j, j + 1), x->lda,
                    w->lapack);
    if (x->c)
      bqr_lapack_larf(type, m - j, x->k, column, tau, host_at(type, x->c, x->ldc, j, 0), x->ldc, w->lapack);
    for (int i = j + 1; i < n; i++) downdate(type, x, w, j, i);
  }
  return most;
}

/* R and what remains of A, but not the vectors. */
static void scale_back(batchqr_type type, const host_member *x, int rank, int exponent) {
  for (int j = 0; j < x->n && exponent; j++)
    bqr_host_scale(type, j < rank ? j + 1 : x->m, 1, host_at(type, x->a, x->lda, 0, j), x->lda, -exponent);
}

static void factor_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const batchqr_type type = problem->type;
  const int m = x->m, n = x->n, k = bqr_min(m, n);
  const work w = work_in(problem, scratch);
  int *jpvt = bqr_host_vector(&args->jpvt, sizeof(int), x->id);
  int *rank = bqr_host_vector(&args->rank, sizeof(int), x->id), found = 0;
  const int range_a = bqr_host_matrix_range(type, m, n, x->a, x->lda);
  const int range_c = x->c ? bqr_host_matrix_range(type, m, x->k, x->c, x->ldc) : 0;
  const bool finite = range_a != HOST_NONFINITE && range_c != HOST_NONFINITE;
  if (finite) {
    if (range_a) bqr_host_scale(type, m, n, x->a, x->lda, range_a);
    if (range_c) bqr_host_scale(type, m, x->k, x->c, x->ldc, range_c);
    found = factor(type, x, &w, bqr_min(k, args->kmax), ldexp(args->abstol, range_a), args->reltol);
    for (int j = found; j < k; j++) bqr_host_set(type, host_offset(x->tau, bqr_type_bytes(type), j), 0);
    scale_back(type, x, found, range_a);
    if (range_c) bqr_host_scale(type, m, x->k, x->c, x->ldc, -range_c);
    if (jpvt && n > 0) memcpy(jpvt, w.order, (size_t)n * sizeof *jpvt);
  }
  if (rank) *rank = found;
  host_set_info(args, x->id, finite ? 0 : BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(geqp3_lapack, BATCHQR_GEQP3, scratch_of, factor_member);
