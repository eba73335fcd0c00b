/* SPDX-License-Identifier: BSD-3-Clause */
/* ORGQR on the CPU: LAPACK's xORGQR, xUNGQR on every member. */
#include "host/member.h"
#include "host/range.h"

#include <lapacke.h>
#include <limits.h>

/* At least the block size of any LAPACK. */
enum { BLOCK = 64 };

/* Elements of LAPACK's work array; see geqrf_lapack. */
static int64_t work_elements(int n, int k) {
  int64_t elements = (int64_t)host_largest(1, n) * host_largest(1, host_least(BLOCK, k));
  return elements < INT_MAX ? elements : INT_MAX;
}

static size_t scratch_bytes(const bqr_problem *problem) {
  return (size_t)work_elements(problem->n, problem->k) * host_size(problem->type);
}

static size_t workspace(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return bqr_host_workspace(device, scratch_bytes(problem));
}

static void form_member(const bqr_problem *problem, const bqr_args *args, const host_member *x,
                        void *scratch) {
  batchqr_type type = problem->type;
  int m = x->m, n = x->n, k = x->k, lda = x->lda, lwork = (int)work_elements(n, k);
  host_set_info(args, x->id, 0);
  if (n == 0) return;
  if (!bqr_host_finite_reflectors(type, m, k, x->a, lda, x->tau)) {
    host_set_info(args, x->id, BATCHQR_INFO_NONFINITE);
    return;
  }
  switch (type) {
  case BATCHQR_S:
    LAPACKE_sorgqr_work(LAPACK_COL_MAJOR, m, n, k, x->a, lda, x->tau, scratch, lwork);
    break;
  case BATCHQR_D:
    LAPACKE_dorgqr_work(LAPACK_COL_MAJOR, m, n, k, x->a, lda, x->tau, scratch, lwork);
    break;
  case BATCHQR_C:
    LAPACKE_cungqr_work(LAPACK_COL_MAJOR, m, n, k, x->a, lda, x->tau, scratch, lwork);
    break;
  default:
    LAPACKE_zungqr_work(LAPACK_COL_MAJOR, m, n, k, x->a, lda, x->tau, scratch, lwork);
    break;
  }
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, scratch_bytes(problem), form_member);
}

HOST_FAMILY(orgqr_lapack, BATCHQR_ORGQR, .workspace = workspace, .launch = launch);
