/* SPDX-License-Identifier: BSD-3-Clause */
/* GEQRF on the CPU: LAPACK's xGEQRF on every member.
 *
 * For a diagonal >= 0 there is xGEQRFP. But its xLARFGP is not safe: it divides by numbers that underflow
 * where a column has entries far apart, and its tau is far from unitary where a complex column has become
 * subnormal while the matrix around it has not (seen in LAPACK 3.9 to 3.11). Neither happens to a column
 * whose largest entry is near 1. So this case is a loop of our own over the columns, which calls xGEQRFP for
 * one column at a time, scaled, and applies blocks of reflectors as xGEQRF does. */
#include "host/lapack.h"
#include "host/member.h"
#include "host/range.h"

#include <lapacke.h>
#include <limits.h>
#include <stdint.h>

/* At least the block size of any LAPACK (32 in the reference's ILAENV). */
enum { BLOCK = 64 };

/* Elements of LAPACK's work array. Blocks are only used for more columns than a block has. A function of the
 * member's own sizes, so that its neighbours cannot change how it is blocked. */
static int64_t work_elements(int m, int n) {
  int64_t elements = (int64_t)host_largest(1, n) * host_largest(1, host_least(BLOCK, host_least(m, n)));
  return elements < INT_MAX ? elements : INT_MAX;
}

static size_t exponent_bytes(int n) { return ((size_t)n * sizeof(int) + 63) / 64 * 64; }

/* The exponents of the columns' scales, a factor T, work. */
static size_t scratch_bytes(const bqr_problem *problem) {
  size_t elements = HOST_BLOCK * HOST_BLOCK + (size_t)work_elements(problem->m, problem->n);
  return exponent_bytes(problem->n) + elements * host_size(problem->type);
}

static size_t workspace(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return bqr_host_workspace(device, scratch_bytes(problem));
}

#define FACTOR(routine) LAPACKE_##routine##_work(LAPACK_COL_MAJOR, m, n, a, lda, tau, work, lwork)

static void factor(batchqr_type type, int m, int n, void *a, int lda, void *tau, void *work) {
  int lwork = (int)work_elements(m, n);
  switch (type) {
  case BATCHQR_S:
    FACTOR(sgeqrf);
    break;
  case BATCHQR_D:
    FACTOR(dgeqrf);
    break;
  case BATCHQR_C:
    FACTOR(cgeqrf);
    break;
  default:
    FACTOR(zgeqrf);
    break;
  }
}

/* The reflector of one column, which xLARFGP must see near 1: what it divides by is smaller than the column
 * by up to the number at which it gives up, close to the smallest one there is. */
static void reflector_positive(batchqr_type type, int m, void *a, void *tau, void *work) {
  int n = 1, lda = m, lwork = 1, e = bqr_host_exponent(type, m, 1, a, m);
  bool far = e != HOST_NONFINITE && (e < -8 || e > 8);
  if (far) bqr_host_scale(type, m, 1, a, m, -e);
  switch (type) {
  case BATCHQR_S:
    FACTOR(sgeqrfp);
    break;
  case BATCHQR_D:
    FACTOR(dgeqrfp);
    break;
  case BATCHQR_C:
    FACTOR(cgeqrfp);
    break;
  default:
    FACTOR(zgeqrfp);
    break;
  }
  if (far) bqr_host_scale(type, 1, 1, a, m, e);
}

static void factor_positive(batchqr_type type, const host_member *x, void *t, void *work) {
  int m = x->m, n = x->n, k = host_least(m, n), lda = x->lda;
  for (int first = 0; first < k; first += HOST_BLOCK) {
    int end = host_least(first + HOST_BLOCK, k);
    for (int j = first; j < end; j++) {
      void *v = host_at(type, x->a, lda, j, j), *tau = host_offset(x->tau, host_size(type), j);
      reflector_positive(type, m - j, v, tau, work);
      if (j + 1 < end)
        bqr_lapack_larfb(type, BATCHQR_LEFT, true, m - j, end - j - 1, 1, v, lda, tau,
                         host_at(type, x->a, lda, j, j + 1), lda, work);
    }
    if (end == n) return;
    void *v = host_at(type, x->a, lda, first, first);
    bqr_lapack_larft(type, m - first, end - first, v, lda, host_offset(x->tau, host_size(type), first), t);
    bqr_lapack_larfb(type, BATCHQR_LEFT, true, m - first, n - end, end - first, v, lda, t,
                     host_at(type, x->a, lda, first, end), lda, work);
  }
}

static bool is_zero(batchqr_type type, const void *x) {
  switch (type) {
  case BATCHQR_S:
    return *(const float *)x == 0.0f;
  case BATCHQR_D:
    return *(const double *)x == 0.0;
  case BATCHQR_C:
    return ((const float *)x)[0] == 0.0f && ((const float *)x)[1] == 0.0f;
  default:
    return ((const double *)x)[0] == 0.0 && ((const double *)x)[1] == 0.0;
  }
}

/* The first zero on R's diagonal, counted from 1. */
static int first_zero(batchqr_type type, const host_member *x) {
  for (int j = 0; j < host_least(x->m, x->n); j++)
    if (is_zero(type, host_at(type, x->a, x->lda, j, j))) return j + 1;
  return 0;
}

static void factor_member(const bqr_problem *problem, const bqr_args *args, const host_member *x,
                          void *scratch) {
  batchqr_type type = problem->type;
  int m = x->m, n = x->n, k = host_least(m, n), *exponents = scratch;
  void *t = host_offset(scratch, 1, (int64_t)exponent_bytes(problem->n));
  void *work = host_offset(t, host_size(type), HOST_BLOCK * HOST_BLOCK);
  if (k == 0) {
    host_set_info(args, x->id, 0);
    return;
  }
  for (int j = 0; j < n; j++) {
    exponents[j] = bqr_host_range(type, m, 1, host_at(type, x->a, x->lda, 0, j), x->lda);
    if (exponents[j] == HOST_NONFINITE) {
      host_set_info(args, x->id, BATCHQR_INFO_NONFINITE);
      return;
    }
  }
  for (int j = 0; j < n; j++)
    if (exponents[j] != 0)
      bqr_host_scale(type, m, 1, host_at(type, x->a, x->lda, 0, j), x->lda, exponents[j]);
  if (problem->positive)
    factor_positive(type, x, t, work);
  else
    factor(type, m, n, x->a, x->lda, x->tau, work);
  for (int j = 0; j < n; j++)
    if (exponents[j] != 0)
      bqr_host_scale(type, host_least(j + 1, k), 1, host_at(type, x->a, x->lda, 0, j), x->lda, -exponents[j]);
  host_set_info(args, x->id, first_zero(type, x));
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, scratch_bytes(problem), factor_member);
}

HOST_FAMILY(geqrf_lapack, BATCHQR_GEQRF, .workspace = workspace, .launch = launch);
