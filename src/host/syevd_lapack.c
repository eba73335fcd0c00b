/* SPDX-License-Identifier: BSD-3-Clause */
/* SYEVD on the CPU: LAPACK's xSYEVD, xHEEVD on every member, of a copy of the triangle. Where its entries
 * differ by hundreds of orders of magnitude, divide and conquer may lose orthogonality, up to half of the
 * digits (29 of 20 000 such matrices of order 33, LAPACK 3.11): then QL and QR iterations do it again. */
#include "host/lapack.h"
#include "host/member.h"
#include "host/numbers.h"
#include "host/range.h"

#include <float.h>
#include <math.h>
#include <stdint.h>

/* A copy of the triangle, n x n, all eigenvalues where a part of them is wanted, and LAPACK's work. */
typedef struct work {
  void *copy, *w, *lapack;
  size_t bytes;
} work;

static work lay_out(const bqr_problem *problem, void *base) {
  bqr_arena arena = {base, 0};
  work w;
  w.copy = bqr_arena_take(&arena, problem->n, (size_t)problem->n * bqr_type_bytes(problem->type));
  w.w = bqr_arena_take(&arena, problem->range ? problem->n : 0, bqr_real_bytes(problem->type));
  w.lapack = bqr_arena_take(&arena, 1, bqr_lapack_syevd_work(problem->type, problem->n));
  w.bytes = arena.bytes;
  return w;
}

static host_scratch scratch_of(const bqr_problem *problem) {
  return (host_scratch){.member = lay_out(problem, NULL).bytes, .pieces = 1};
}

static bool supports(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant, (void)device;
  return bqr_lapack_syevd_work(problem->type, problem->n) < SIZE_MAX;
}

/* The triangle alone, zeros in the other one, a real diagonal. */
static void copy_triangle(const bqr_problem *problem, const host_member *x, void *to) {
  const batchqr_type type = problem->type;
  const int n = x->n;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) {
      const bool in = problem->uplo == BATCHQR_LOWER ? i >= j : i <= j;
      const double complex entry = in ? bqr_host_get(type, host_at(type, x->a, x->lda, i, j)) : 0;
      bqr_host_set(type, host_at(type, to, n, i, j), i == j ? creal(entry) : entry);
    }
}

/* Divide and conquer begins with larger orders. */
enum { SMALL_ORDER = 25 };

static double sign_of(int i) { return (unsigned)i * 2654435761u >> 31 ? -1 : 1; }

/* Whether V^H V x is x, for a vector x of signs. y: room for V x. */
static bool is_orthonormal(batchqr_type type, int n, const void *v, double complex *y) {
  const double eps = type == BATCHQR_S || type == BATCHQR_C ? FLT_EPSILON : DBL_EPSILON;
  double squares = 0;
  for (int i = 0; i < n; i++) y[i] = 0;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < n; i++) y[i] += sign_of(j) * bqr_host_get(type, host_at(type, v, n, i, j));
  for (int j = 0; j < n; j++) {
    double complex sum = -sign_of(j);
    for (int i = 0; i < n; i++) sum += conj(bqr_host_get(type, host_at(type, v, n, i, j))) * y[i];
    squares += creal(sum) * creal(sum) + cimag(sum) * cimag(sum);
  }
  return sqrt(squares) <= 4 * n * eps;
}

/* Of n ascending eigenvalues, those that are wanted. */
typedef struct wanted {
  int first, count, room; /* room: W's length */
} wanted;

static wanted wanted_of(const host_launch *launch, int n, const void *w) {
  const bqr_args *args = launch->args;
  const unsigned range = launch->problem->range;
  wanted found = {0, n, n};
  if (range == BQR_BY_INDEX) {
    found.first = args->il - 1;
    found.count = found.room = bqr_max(0, bqr_min(args->iu, n) - found.first);
  } else if (range == BQR_BY_VALUE) {
    found.count = 0;
    for (int i = 0; i < n; i++) {
      const double value = bqr_host_get_real(launch->problem->type, w, i);
      found.first += value <= args->vl;
      found.count += value > args->vl && value <= args->vu;
    }
  }
  return found;
}

static void set_found(const bqr_args *args, int64_t id, int count) {
  int *found = bqr_host_vector(&args->rank, sizeof *found, id);
  if (found) *found = count;
}

static void decompose_member(const host_launch *launch, const host_member *x, void *scratch) {
  const bqr_problem *problem = launch->problem;
  const bqr_args *args = launch->args;
  const batchqr_type type = problem->type;
  const int n = x->n;
  const work memory = lay_out(problem, scratch);
  void *result = bqr_host_vector(&args->s, bqr_real_bytes(type), x->id), *copy = memory.copy,
       *w = problem->range ? memory.w : result;
  void *v = bqr_host_matrix(&args->v, type, x->id);
  if (n == 0) {
    set_found(args, x->id, 0);
    host_set_info(args, x->id, 0);
    return;
  }
  copy_triangle(problem, x, copy);
  const int range = bqr_host_matrix_range(type, n, n, copy, n);
  if (range == HOST_NONFINITE) {
    for (int i = 0; i < n; i++) bqr_host_set_real(type, w, i, NAN);
    const int room = wanted_of(launch, n, w).room;
    for (int i = 0; i < room; i++) bqr_host_set_real(type, result, i, NAN);
    set_found(args, x->id, 0);
    host_set_info(args, x->id, BATCHQR_INFO_NONFINITE);
    return;
  }
  if (range) bqr_host_scale(type, n, n, copy, n, range);
  int info = bqr_lapack_syevd(type, v != NULL, problem->uplo, n, copy, n, w, memory.lapack);
  if (v && n > SMALL_ORDER && !is_orthonormal(type, n, copy, memory.lapack)) {
    copy_triangle(problem, x, copy);
    if (range) bqr_host_scale(type, n, n, copy, n, range);
    info = bqr_lapack_syev(type, problem->uplo, n, copy, n, w, memory.lapack);
  }
  for (int i = 0; i < n; i++) bqr_host_set_real(type, w, i, ldexp(bqr_host_get_real(type, w, i), -range));
  const wanted part = wanted_of(launch, n, w);
  for (int j = part.first; j < part.first + part.count && v; j++)
    bqr_host_fix_sign(type, n, host_at(type, copy, n, 0, j), 0, NULL);
  if (v && part.count > 0)
    bqr_host_copy(type, n, part.count, host_at(type, copy, n, 0, part.first), n, v,
                  bqr_host_ld(&args->v, x->id));
  for (int i = 0; i < part.room && problem->range; i++)
    bqr_host_set_real(type, result, i,
                      i < part.count ? bqr_host_get_real(type, w, part.first + i) : (double)NAN);
  set_found(args, x->id, part.count);
  host_set_info(args, x->id, info);
}

HOST_FAMILY_WITHIN(syevd_lapack, BATCHQR_SYEVD, scratch_of, decompose_member, supports);
