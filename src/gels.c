/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of GELS. UPRIGHT brings A and B into range and makes upright copies of wide A's, p x q with
 * p = max(m,n) and q = min(m,n). Upright matrices are factored, A or A^H = QR, and then there are two kinds
 * of systems: least squares, where X is R^-1 (Q^H B), and least norm, where X is Q (R^-H B; 0). TRSM does
 * what is to be done with R, and brings X back from range.
 *
 * Members of one kind share launches. With sizes on the device that cannot be: all members are copied,
 * UPRIGHT writes their sizes beside the copies, and a member has no right-hand sides in the steps of the
 * other kind. */
#include "device.h"
#include "plan.h"

bqr_sizes bqr_gels_step_sizes(int op, bqr_sizes s) {
  int p = bqr_max(s.m, s.n), q = bqr_min(s.m, s.n);
  if (op == BATCHQR_GEQRF) return (bqr_sizes){p, q, 0};
  if (op == BQR_TRSM) return (bqr_sizes){p, q, s.k};
  return op == BATCHQR_ORMQR ? (bqr_sizes){p, s.k, q} : s;
}

bool bqr_gels_copies(const batchqr_batch *batch, bqr_sizes s) {
  return s.m < s.n || batch->sizes == BATCHQR_DEVICE_SIZES;
}

bool bqr_gels_size(struct batchqr_plan *plan, int64_t elements, size_t *end) {
  bqr_gels *g = &plan->gels;
  size_t before = *end, count = (size_t)plan->batch.count + (plan->sorted ? 1 : 0);
  size_t sized = plan->batch.sizes == BATCHQR_DEVICE_SIZES ? count : 0;
  bool fits = bqr_reserve(end, count, 2 * sizeof(double), &g->scales) &&
              bqr_reserve(end, sized, 4 * sizeof(int), &g->sizes) &&
              bqr_reserve(end, (size_t)elements, bqr_type_bytes(plan->batch.type), &g->copies);
  g->bytes = *end - before;
  return fits;
}

void bqr_gels_place(const batchqr_batch *batch, int64_t *offsets) {
  int64_t next = 0;
  for (int64_t i = 0; i < batch->count; i++) {
    bqr_sizes s = bqr_member_sizes(BATCHQR_GELS, batch, i);
    offsets[i] = next;
    if (bqr_gels_copies(batch, s)) next += (int64_t)s.m * s.n;
  }
}

/* The upright copies. With sizes on the host, only wide matrices have one. */
static bqr_matrix copies(const struct batchqr_plan *plan, const bqr_group *g, char *workspace) {
  bool sized = plan->gels.offsets, device = plan->batch.sizes == BATCHQR_DEVICE_SIZES;
  bqr_sizes largest = device ? bqr_member_sizes(plan->op, &plan->batch, 0) : g->largest;
  return (bqr_matrix){.data = plan->touches[BQR_A] ? workspace + plan->gels.copies : NULL,
                      .ld_array = sized ? bqr_plan_resident(plan, plan->batch.n_array) : NULL,
                      .stride = plan->gels.stride,
                      .ld = bqr_max(1, bqr_max(largest.m, largest.n)),
                      .packed = true,
                      .offsets = bqr_plan_resident(plan, plan->gels.offsets)};
}

/* The sizes of upright matrices, where those of members differ. Least squares apply Q^H and R^-1. */
static void bind_sizes(const struct batchqr_plan *plan, const bqr_group *g, char *workspace, bqr_args *args) {
  int op = g->problem.op;
  const int *p = args->m_array, *q = args->n_array, *k = args->k_array;
  if (plan->batch.sizes == BATCHQR_DEVICE_SIZES) {
    int64_t count = args->count;
    bool least_squares = (op == BATCHQR_ORMQR) == (g->problem.trans != BATCHQR_NO_TRANS);
    p = (const int *)(workspace + plan->gels.sizes);
    q = p + count;
    k = q + (least_squares ? count : 2 * count);
  } else if (bqr_gels_copies(&plan->batch, g->largest)) {
    p = args->n_array;
    q = args->m_array;
  }
  args->m_array = p;
  args->n_array = op == BATCHQR_ORMQR ? k : q;
  args->k_array = op == BATCHQR_ORMQR ? q : op == BATCHQR_GEQRF ? NULL : k;
}

void bqr_gels_bind(const struct batchqr_plan *plan, const bqr_group *g, const batchqr_operands *operands,
                   char *workspace, bqr_args *args) {
  int op = g->problem.op;
  bool copied = bqr_gels_copies(&plan->batch, g->largest);
  args->norms = operands->norms;
  args->stride_norms = plan->batch.stride_norms;
  if (op == BATCHQR_GELS || op == BQR_SORT) return;
  args->scales = (double *)(void *)(workspace + plan->gels.scales);
  if (op == BQR_UPRIGHT) {
    if (copied) args->r = copies(plan, g, workspace);
    if (plan->batch.sizes == BATCHQR_DEVICE_SIZES)
      args->upright_sizes = (int *)(void *)(workspace + plan->gels.sizes);
    return;
  }
  if (copied) {
    args->a = copies(plan, g, workspace);
    args->host_lda = plan->gels.offsets ? plan->batch.n_array : NULL;
    args->host_offsets = plan->gels.offsets;
  }
  if (op == BATCHQR_GEQRF) args->c = (bqr_matrix){.ld = 0};
  if (op == BATCHQR_GEQRF && copied) args->pointers = false;
  args->m = g->problem.m;
  args->n = g->problem.n;
  args->k = g->problem.k;
  bind_sizes(plan, g, workspace, args);
}
