/* SPDX-License-Identifier: BSD-3-Clause */
#include "batch.h"

size_t bqr_type_bytes(batchqr_type type) {
  return bqr_real_bytes(type) * (type == BATCHQR_C || type == BATCHQR_Z ? 2 : 1);
}

size_t bqr_real_bytes(batchqr_type type) {
  return type == BATCHQR_S || type == BATCHQR_C ? sizeof(float) : sizeof(double);
}

/* One bit for each operand. */
enum { A = 1 << BQR_A, C = 1 << BQR_C, R = 1 << BQR_R, TAU = 1 << BQR_TAU };
static const unsigned char uses[] = {
    [BATCHQR_GEQRF] = A | TAU, [BATCHQR_ORGQR] = A | TAU, [BATCHQR_ORMQR] = A | TAU | C,
    [BATCHQR_QR] = A | C | R,  [BATCHQR_GEQR_R] = A | R,  [BATCHQR_GELS] = A | C,
    [BATCHQR_R_RANGE] = A};
static const unsigned char writes[] = {
    [BATCHQR_GEQRF] = A | TAU, [BATCHQR_ORGQR] = A,    [BATCHQR_ORMQR] = C,  [BATCHQR_QR] = A | C | R,
    [BATCHQR_GEQR_R] = A | R,  [BATCHQR_GELS] = A | C, [BATCHQR_R_RANGE] = 0};

bool bqr_op_uses(batchqr_op op, int operand) { return uses[op] >> operand & 1; }
bool bqr_op_writes(batchqr_op op, int operand) { return writes[op] >> operand & 1; }
bool bqr_op_has_k(batchqr_op op) { return op == BATCHQR_ORGQR || op == BATCHQR_ORMQR || op == BATCHQR_GELS; }

static void keep_storage(batchqr_storage *to, const batchqr_storage *from, const batchqr_batch *batch) {
  to->ld_array = from->ld_array;
  to->ld = to->ld_array ? 0 : from->ld;
  to->stride = batch->layout == BATCHQR_STRIDED ? from->stride : 0;
}

batchqr_batch bqr_batch_normalized(batchqr_op op, const batchqr_batch *batch) {
  batchqr_batch b = {
      .type = batch->type, .layout = batch->layout, .sizes = batch->sizes, .count = batch->count};
  bool arrays = batch->sizes != BATCHQR_UNIFORM, scalars = batch->sizes != BATCHQR_HOST_SIZES;
  if (scalars) {
    b.m = batch->m;
    b.n = batch->n;
    b.k = bqr_op_has_k(op) ? batch->k : 0;
  }
  if (op == BATCHQR_GELS && !batch->k_array) b.k = batch->k;
  if (arrays) {
    b.m_array = batch->m_array;
    b.n_array = batch->n_array;
    b.k_array = bqr_op_has_k(op) ? batch->k_array : NULL;
  }
  if (op == BATCHQR_ORMQR) b.side = batch->side;
  if (op == BATCHQR_ORMQR || op == BATCHQR_GELS) b.trans = batch->trans;
  if (op == BATCHQR_GELS) b.stride_norms = batch->stride_norms;
  keep_storage(&b.a, &batch->a, batch);
  if (bqr_op_uses(op, BQR_C)) keep_storage(&b.c, &batch->c, batch);
  if (bqr_op_uses(op, BQR_R)) keep_storage(&b.r, &batch->r, batch);
  if (bqr_op_uses(op, BQR_TAU) && batch->layout == BATCHQR_STRIDED) b.stride_tau = batch->stride_tau;
  return b;
}

int64_t bqr_visible_members(const batchqr_batch *batch) {
  return batch->sizes == BATCHQR_HOST_SIZES ? batch->count : 1;
}

bqr_sizes bqr_member_sizes(batchqr_op op, const batchqr_batch *batch, int64_t i) {
  bool host = batch->sizes == BATCHQR_HOST_SIZES;
  bqr_sizes s = {host ? batch->m_array[i] : batch->m, host ? batch->n_array[i] : batch->n, 0};
  if (!bqr_op_has_k(op)) return s;
  if (op == BATCHQR_GELS) {
    s.k = host && batch->k_array ? batch->k_array[i] : batch->k;
    return s;
  }
  bool bounds = batch->sizes == BATCHQR_DEVICE_SIZES;
  if (op == BATCHQR_ORGQR && bounds) s.n = bqr_min(s.n, s.m);
  int fit = op == BATCHQR_ORGQR || batch->side == BATCHQR_RIGHT ? s.n : s.m;
  s.k = host ? batch->k_array ? batch->k_array[i] : fit : batch->k;
  if (bounds) s.k = bqr_min(s.k, fit);
  return s;
}

const batchqr_storage *bqr_batch_storage(const batchqr_batch *batch, int matrix) {
  return matrix == BQR_A ? &batch->a : matrix == BQR_C ? &batch->c : &batch->r;
}

bqr_shape bqr_operand_shape(batchqr_op op, const batchqr_batch *batch, int operand, bqr_sizes s) {
  int min = bqr_min(s.m, s.n);
  switch (operand) {
  case BQR_A:
    if (op != BATCHQR_ORMQR) return (bqr_shape){s.m, s.n};
    return (bqr_shape){batch->side == BATCHQR_LEFT ? s.m : s.n, s.k};
  case BQR_C:
    if (op == BATCHQR_GELS) return (bqr_shape){bqr_max(s.m, s.n), s.k};
    return (bqr_shape){s.m, op == BATCHQR_ORMQR ? s.n : min};
  case BQR_R:
    return (bqr_shape){min, s.n};
  default:
    return (bqr_shape){op == BATCHQR_GEQRF ? min : s.k, 1};
  }
}

const void *bqr_operand(const batchqr_operands *operands, int operand) {
  const void *const all[] = {operands->a, operands->c, operands->r, operands->tau};
  return all[operand];
}
