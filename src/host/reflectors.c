/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/reflectors.h"
#include "host/lapack.h"

size_t bqr_host_factors_bytes(batchqr_type type, int k) {
  size_t block = (size_t)host_block(k);
  return (size_t)host_pieces(k, (int)block) * block * block * bqr_type_bytes(type);
}

size_t bqr_host_piece_bytes(batchqr_type type, int k, int lines) {
  size_t block = (size_t)bqr_min(k, host_block(k));
  return block * (size_t)bqr_min(lines, HOST_LINES) * bqr_type_bytes(type);
}

static int block_size(const host_reflectors *q, int block) {
  return bqr_min(host_block(q->k), q->k - block * host_block(q->k));
}

static void *block_factor(const host_reflectors *q, int block) {
  int64_t elements = (int64_t)host_block(q->k) * host_block(q->k);
  return host_offset(q->t, bqr_type_bytes(q->type), block * elements);
}

static void form_factor(const void *context, int block, void *work) {
  const host_reflectors *q = context;
  int size = host_block(q->k), first = block * size;
  (void)work;
  bqr_lapack_larft(q->type, q->rows - first, block_size(q, block),
                   host_at(q->type, q->v, q->ldv, first, first), q->ldv,
                   host_offset(q->tau, bqr_type_bytes(q->type), first), block_factor(q, block), size);
}

void bqr_host_form_factors(const host_launch *launch, const host_reflectors *q) {
  bqr_host_for_pieces(launch, host_pieces(q->k, host_block(q->k)), form_factor, q);
}

void bqr_host_apply_block(const host_reflectors *q, int block, batchqr_side side, bool adjoint, int lines,
                          void *c, int ldc, void *work) {
  bool left = side == BATCHQR_LEFT;
  int size = host_block(q->k), first = block * size, rows = q->rows - first;
  bqr_lapack_larfb(q->type, side, adjoint, left ? rows : lines, left ? lines : rows, block_size(q, block),
                   host_at(q->type, q->v, q->ldv, first, first), q->ldv, block_factor(q, block), size,
                   host_at(q->type, c, ldc, left ? first : 0, left ? 0 : first), ldc, work);
}

void bqr_host_apply(const host_reflectors *q, batchqr_side side, bool adjoint, int lines, void *c, int ldc,
                    void *work) {
  int blocks = host_pieces(q->k, host_block(q->k));
  for (int i = 0; i < blocks; i++) {
    int block = (side == BATCHQR_LEFT) == adjoint ? i : blocks - 1 - i;
    bqr_host_apply_block(q, block, side, adjoint, lines, c, ldc, work);
  }
}
