/* SPDX-License-Identifier: BSD-3-Clause */
/* ORMQR on the CPU. LAPACK's xORMQR writes to V while it works (xORM2R puts ones on its diagonal and takes
 * them away again), but here V is constant and may be shared by members that are worked on at the same time.
 * So this is xORMQR's loop over blocks of reflectors, on LAPACK's xLARFT and xLARFB, which only read V. */
#include "host/lapack.h"
#include "host/member.h"
#include "host/range.h"

/* The factor T, and work of HOST_BLOCK columns as long as C is wide (left) or high (right). */
static size_t scratch_bytes(const bqr_problem *problem) {
  size_t length = (size_t)host_largest(1, problem->side == BATCHQR_LEFT ? problem->n : problem->m);
  return (size_t)HOST_BLOCK * (HOST_BLOCK + length) * host_size(problem->type);
}

static size_t workspace(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  (void)variant;
  return bqr_host_workspace(device, scratch_bytes(problem));
}

/* C := op(H) C or C op(H), H = H_first ... H_(first + size - 1). */
static void apply_block(const bqr_problem *problem, const host_member *x, int first, int size, void *t) {
  batchqr_type type = problem->type;
  bool left = problem->side == BATCHQR_LEFT, adjoint = problem->trans != BATCHQR_NO_TRANS;
  int rows = (left ? x->m : x->n) - first; /* of V */
  int m = left ? rows : x->m, n = left ? x->n : rows;
  void *v = host_at(type, x->a, x->lda, first, first);
  void *c = left ? host_at(type, x->c, x->ldc, first, 0) : host_at(type, x->c, x->ldc, 0, first);
  void *work = host_offset(t, host_size(type), HOST_BLOCK * HOST_BLOCK);
  bqr_lapack_larft(type, rows, size, v, x->lda, host_offset(x->tau, host_size(type), first), t);
  bqr_lapack_larfb(type, problem->side, adjoint, m, n, size, v, x->lda, t, c, x->ldc, work);
}

static void apply_member(const bqr_problem *problem, const bqr_args *args, const host_member *x,
                         void *scratch) {
  batchqr_type type = problem->type;
  bool left = problem->side == BATCHQR_LEFT, adjoint = problem->trans != BATCHQR_NO_TRANS;
  int rows = left ? x->m : x->n; /* of V */
  host_set_info(args, x->id, 0);
  if (x->m == 0 || x->n == 0) return;
  int e = bqr_host_range(type, x->m, x->n, x->c, x->ldc);
  if (e == HOST_NONFINITE || !bqr_host_finite_reflectors(type, rows, x->k, x->a, x->lda, x->tau)) {
    host_set_info(args, x->id, BATCHQR_INFO_NONFINITE);
    return;
  }
  if (e != 0) bqr_host_scale(type, x->m, x->n, x->c, x->ldc, e);
  int blocks = (x->k + HOST_BLOCK - 1) / HOST_BLOCK;
  for (int i = 0; i < blocks; i++) {
    int first = HOST_BLOCK * (left == adjoint ? i : blocks - 1 - i);
    apply_block(problem, x, first, host_least(HOST_BLOCK, x->k - first), scratch);
  }
  if (e != 0) bqr_host_scale(type, x->m, x->n, x->c, x->ldc, -e);
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  (void)variant, (void)stream;
  return bqr_host_for_members(problem, device, args, scratch_bytes(problem), apply_member);
}

HOST_FAMILY(ormqr_lapack, BATCHQR_ORMQR, .workspace = workspace, .launch = launch);
