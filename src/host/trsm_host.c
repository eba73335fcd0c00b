/* SPDX-License-Identifier: BSD-3-Clause */
/* The triangle's step of GELS: LAPACK's xTRTRS on every member, which finds zeros on the diagonal. */
#include "host/member.h"
#include "host/range.h"

#include <lapacke.h>
#include <math.h>
#include <string.h>

#define SOLVE(letter)                                                                                        \
  LAPACKE_##letter##trtrs_work(LAPACK_COL_MAJOR, 'U', trans, 'N', x->n, x->k, x->a, x->lda, x->c, x->ldc)

/* Whether there is a solution. */
static bool solve(batchqr_type type, const host_member *x, bool adjoint) {
  char trans = !adjoint ? 'N' : host_is_complex(type) ? 'C' : 'T';
  if (x->n == 0 || x->k == 0) return true;
  switch (type) {
  case BATCHQR_S:
    return SOLVE(s) == 0;
  case BATCHQR_D:
    return SOLVE(d) == 0;
  case BATCHQR_C:
    return SOLVE(c) == 0;
  default:
    return SOLVE(z) == 0;
  }
}

/* The Frobenius norm, without overflow. */
static double column_norm(batchqr_type type, int rows, const void *column) {
  int ld = host_largest(1, rows);
  switch (type) {
  case BATCHQR_S:
    return LAPACKE_slange_work(LAPACK_COL_MAJOR, 'F', rows, 1, column, ld, NULL);
  case BATCHQR_D:
    return LAPACKE_dlange_work(LAPACK_COL_MAJOR, 'F', rows, 1, column, ld, NULL);
  case BATCHQR_C:
    return LAPACKE_clange_work(LAPACK_COL_MAJOR, 'F', rows, 1, column, ld, NULL);
  default:
    return LAPACKE_zlange_work(LAPACK_COL_MAJOR, 'F', rows, 1, column, ld, NULL);
  }
}

static void set_norm(const bqr_problem *problem, const bqr_args *args, const host_member *x, int j,
                     double value) {
  if (args->norms.data == NULL) return;
  void *norms = bqr_host_vector(&args->norms, host_real_size(problem->type), x->id);
  if (problem->type == BATCHQR_S || problem->type == BATCHQR_C)
    ((float *)norms)[j] = (float)value;
  else
    ((double *)norms)[j] = value;
}

static void solve_member(const bqr_problem *problem, const bqr_args *args, const host_member *x,
                         void *scratch) {
  batchqr_type type = problem->type;
  bool adjoint = problem->trans != BATCHQR_NO_TRANS, finite = !isnan(args->scales[2 * x->id]);
  double a = args->scales[2 * x->id], b = args->scales[2 * x->id + 1];
  int below = x->m - x->n;
  (void)scratch;
  if (!finite) host_set_info(args, x->id, BATCHQR_INFO_NONFINITE);
  bool solved = finite && solve(type, x, adjoint);
  for (int j = 0; j < x->k; j++) {
    void *rest = below > 0 ? host_at(type, x->c, x->ldc, x->n, j) : NULL;
    double norm = !solved ? NAN : adjoint || below == 0 ? 0.0 : column_norm(type, below, rest) / b;
    set_norm(problem, args, x, j, norm);
    if (solved && adjoint && below > 0) memset(rest, 0, (size_t)below * host_size(type));
  }
  if (solved && a != b && x->n > 0) bqr_host_scale(type, x->n, x->k, x->c, x->ldc, ilogb(a) - ilogb(b));
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, 0, solve_member);
}

HOST_FAMILY(trsm_host, BQR_TRSM, .launch = launch);
