/* SPDX-License-Identifier: BSD-3-Clause */
/* GEQRF on the CPU: LAPACK's xGEQRF, or xGEQRFP for a diagonal >= 0, on every member. */
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

static size_t scratch_bytes(const batchqr_problem *problem) {
  return exponent_bytes(problem->n) +
         (size_t)work_elements(problem->m, problem->n) * host_size(problem->type);
}

static size_t workspace(const batchqr_problem *problem, const batchqr_variant *variant,
                        const batchqr_device *device) {
  (void)variant;
  return bqr_host_workspace(device, scratch_bytes(problem));
}

static void factor(const batchqr_problem *problem, const host_member *x, void *work, int lwork) {
  int m = x->m, n = x->n, lda = x->lda;
  bool p = problem->positive;
  switch (problem->type) {
  case BATCHQR_S:
    (p ? LAPACKE_sgeqrfp_work : LAPACKE_sgeqrf_work)(LAPACK_COL_MAJOR, m, n, x->a, lda, x->tau, work, lwork);
    break;
  case BATCHQR_D:
    (p ? LAPACKE_dgeqrfp_work : LAPACKE_dgeqrf_work)(LAPACK_COL_MAJOR, m, n, x->a, lda, x->tau, work, lwork);
    break;
  case BATCHQR_C:
    (p ? LAPACKE_cgeqrfp_work : LAPACKE_cgeqrf_work)(LAPACK_COL_MAJOR, m, n, x->a, lda, x->tau, work, lwork);
    break;
  default:
    (p ? LAPACKE_zgeqrfp_work : LAPACKE_zgeqrf_work)(LAPACK_COL_MAJOR, m, n, x->a, lda, x->tau, work, lwork);
    break;
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

static void factor_member(const batchqr_problem *problem, const batchqr_args *args, const host_member *x,
                          void *scratch) {
  batchqr_type type = problem->type;
  int m = x->m, n = x->n, k = host_least(m, n), *exponents = scratch;
  void *work = host_offset(scratch, 1, (int64_t)exponent_bytes(problem->n));
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
  factor(problem, x, work, (int)work_elements(m, n));
  for (int j = 0; j < n; j++)
    if (exponents[j] != 0)
      bqr_host_scale(type, host_least(j + 1, k), 1, host_at(type, x->a, x->lda, 0, j), x->lda, -exponents[j]);
  host_set_info(args, x->id, first_zero(type, x));
}

static batchqr_status launch(const batchqr_problem *problem, const batchqr_variant *variant,
                             const batchqr_device *device, const batchqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, scratch_bytes(problem), factor_member);
}

static const batchqr_variant variants[] = {{.name = "omp"}};

extern const batchqr_family batchqr_family_geqrf_lapack;
const batchqr_family batchqr_family_geqrf_lapack = {
    .name = "geqrf_lapack",
    .op = BATCHQR_GEQRF,
    .types = BATCHQR_ALL_TYPES,
    .backend = BATCHQR_BACKEND_CPU,
    .variants = variants,
    .nvariants = 1,
    .launches = 1,
    .supports = bqr_host_supports,
    .workspace = workspace,
    .launch = launch,
};
