/* SPDX-License-Identifier: BSD-3-Clause */
#include "batch.h"
#include "registry.h"
#include <string.h>

size_t bqr_type_bytes(batchqr_type type) {
  return bqr_real_bytes(type) * (type == BATCHQR_C || type == BATCHQR_Z ? 2 : 1);
}

size_t bqr_real_bytes(batchqr_type type) {
  return type == BATCHQR_S || type == BATCHQR_C ? sizeof(float) : sizeof(double);
}

size_t bqr_kind_bytes(bqr_kind kind, batchqr_type type) {
  if (kind == BQR_INTS) return sizeof(int);
  return kind == BQR_REALS ? bqr_real_bytes(type) : bqr_type_bytes(type);
}

size_t bqr_kind_alignment(bqr_kind kind, batchqr_type type) {
  return kind == BQR_INTS ? sizeof(int) : bqr_real_bytes(type);
}

/* --- places */

const batchqr_storage *bqr_storage_at(const batchqr_batch *batch, int place) {
  return (const batchqr_storage *)(const void *)((const char *)batch + bqr_places[place].storage);
}

void *bqr_address_at(const batchqr_operands *operands, int place) {
  void *address;
  memcpy(&address, (const char *)operands + bqr_places[place].address, sizeof address);
  return address;
}

bool bqr_batch_has_pointers(const bqr_operation *operation, const batchqr_batch *batch) {
  for (const bqr_use *use = operation->uses; use->place; use++)
    if (bqr_storage_at(batch, (int)use->place)->layout == BATCHQR_POINTERS) return true;
  return false;
}

bool bqr_by_strides(const batchqr_storage *x) { return x->row_stride != 0 && x->row_stride != 1; }

bool bqr_is_announced(const batchqr_storage *x) { return x->layout == BATCHQR_POINTERS || x->stride != 0; }

bool bqr_may_keep_a(const bqr_operation *operation) {
  const bqr_use *a = bqr_use_at(operation, BQR_A);
  return a && (a->access & BQR_STRIDES);
}

unsigned bqr_batch_range(const batchqr_batch *batch) {
  if (batch->il || batch->iu) return BQR_BY_INDEX;
  return batch->vl != 0 || batch->vu != 0 ? BQR_BY_VALUE : 0;
}

/* The same where it is to be changed. */
static batchqr_storage *storage_in(batchqr_batch *batch, const bqr_use *use) {
  return (batchqr_storage *)(void *)((char *)batch + bqr_places[use->place].storage);
}

int bqr_batch_arrays(const bqr_operation *operation, batchqr_batch *batch,
                     bqr_batch_array arrays[BQR_MOST_ARRAYS]) {
  int n = 0;
  arrays[n++] = (bqr_batch_array){NULL, "m_array", &batch->m_array};
  arrays[n++] = (bqr_batch_array){NULL, "n_array", &batch->n_array};
  arrays[n++] = (bqr_batch_array){NULL, "k_array", &batch->k_array};
  for (const bqr_use *use = operation->uses; use->place; use++)
    if (use->kind == BQR_MATRIX)
      arrays[n++] =
          (bqr_batch_array){bqr_places[use->place].name, "ld_array", &storage_in(batch, use)->ld_array};
  return n;
}

/* --- normalization */

static void keep_storage(batchqr_batch *to, const batchqr_batch *from, const bqr_use *use) {
  const batchqr_storage *given = bqr_storage_at(from, (int)use->place);
  batchqr_storage *kept = storage_in(to, use);
  kept->layout = given->layout;
  if (use->kind == BQR_MATRIX) kept->ld_array = given->ld_array;
  if (use->kind == BQR_MATRIX && !given->ld_array) kept->ld = given->ld;
  if (use->kind == BQR_MATRIX) kept->row_stride = given->row_stride ? given->row_stride : 1;
  if (given->layout == BATCHQR_STRIDED) kept->stride = given->stride;
}

batchqr_batch bqr_batch_normalized(const bqr_operation *operation, const batchqr_batch *batch) {
  batchqr_batch b;
  memset(&b, 0, sizeof b);
  b.type = batch->type;
  b.sizes = batch->sizes;
  b.count = batch->count;
  const bool arrays = batch->sizes != BATCHQR_UNIFORM, scalars = batch->sizes != BATCHQR_HOST_SIZES;
  const bool one_k = operation->k && operation->k != BQR_REFLECTORS && !batch->k_array;
  if (scalars) {
    b.m = batch->m;
    b.n = batch->n;
  }
  if (operation->k && (scalars || one_k)) b.k = batch->k;
  if (arrays) {
    b.m_array = batch->m_array;
    b.n_array = batch->n_array;
  }
  if (arrays && operation->k) b.k_array = batch->k_array;
  if (operation->reads_side) b.side = batch->side;
  if (bqr_may_keep_a(operation)) b.keep_a = batch->keep_a || bqr_by_strides(&batch->a);
  if (operation->reads_trans) b.trans = batch->trans;
  if (operation->reads_uplo) b.uplo = batch->uplo;
  if (operation->finds_rank) {
    b.kmax = batch->kmax;
    b.abstol = batch->abstol > 0 ? batch->abstol : 0;
    b.reltol = batch->reltol > 0 ? batch->reltol : 0;
  }
  if (operation->ranges) {
    b.il = batch->il, b.iu = batch->iu;
    b.vl = batch->vl, b.vu = batch->vu;
  }
  if (operation->orthogonalises) b.gram_schmidt = batch->gram_schmidt;
  if (operation->sketches) {
    b.oversampling = batch->oversampling;
    b.power_steps = batch->power_steps;
    b.seed = batch->seed;
  }
  for (const bqr_use *use = operation->uses; use->place; use++) keep_storage(&b, batch, use);
  const bool strided = b.a.layout == BATCHQR_STRIDED || b.c.layout == BATCHQR_STRIDED;
  b.unaligned = batch->unaligned && strided;
  return b;
}

/* --- members */

int64_t bqr_visible_members(const batchqr_batch *batch) {
  return batch->sizes == BATCHQR_HOST_SIZES ? batch->count : 1;
}

bqr_dims bqr_member_sizes(const bqr_operation *operation, const batchqr_batch *batch, int64_t i) {
  const bool host = batch->sizes == BATCHQR_HOST_SIZES, bounds = batch->sizes == BATCHQR_DEVICE_SIZES;
  bqr_dims s = {host ? batch->m_array[i] : batch->m, host ? batch->n_array[i] : batch->n, 0};
  if (operation->k == BQR_RIGHT_HAND_SIDES) s.k = host && batch->k_array ? batch->k_array[i] : batch->k;
  if (operation->k == BQR_TRIPLETS)
    s.k = bqr_min(host && batch->k_array ? batch->k_array[i] : batch->k, bqr_min(s.m, s.n));
  if (operation->k != BQR_REFLECTORS) return s;
  if (operation->tall && bounds) s.n = bqr_min(s.n, s.m);
  const int fit = operation->reads_side ? bqr_extent_of(BQR_ORDER, batch, s) : s.n;
  s.k = host ? batch->k_array ? batch->k_array[i] : fit : batch->k;
  if (bounds) s.k = bqr_min(s.k, fit);
  return s;
}

int bqr_extent_of(bqr_extent extent, const batchqr_batch *batch, bqr_dims s) {
  switch (extent) {
  case BQR_ONE:
    return 1;
  case BQR_TWO:
    return 2;
  case BQR_M:
    return s.m;
  case BQR_N:
    return s.n;
  case BQR_K:
    return s.k;
  case BQR_MIN_MN:
    return bqr_min(s.m, s.n);
  case BQR_MAX_MN:
    return bqr_max(s.m, s.n);
  case BQR_ORDER:
    return batch->side == BATCHQR_LEFT ? s.m : s.n;
  case BQR_CHOSEN:
    return bqr_batch_range(batch) == BQR_BY_INDEX ? bqr_max(0, bqr_min(batch->iu, s.n) - batch->il + 1) : s.n;
  case BQR_SAMPLES:
    return s.k + bqr_min(batch->oversampling, bqr_min(s.m, s.n) - s.k);
  }
  return 0;
}

bqr_shape bqr_shape_of(const bqr_use *use, const batchqr_batch *batch, bqr_dims sizes) {
  return (bqr_shape){bqr_extent_of(use->rows, batch, sizes), bqr_extent_of(use->cols, batch, sizes)};
}

batchqr_batch batchqr_batch_packed(batchqr_op op, batchqr_type type, int m, int n, int k, int64_t count) {
  batchqr_batch b;
  memset(&b, 0, sizeof b);
  b.type = type;
  b.count = count;
  b.m = m, b.n = n, b.k = k;
  const bqr_operation *operation = bqr_registry_operation(bqr_registry_builtin(), (int)op);
  for (const bqr_use *use = operation ? operation->uses : NULL; use && use->place; use++) {
    const bqr_shape shape = bqr_shape_of(use, &b, (bqr_dims){m, n, k});
    batchqr_storage *storage = storage_in(&b, use);
    storage->ld = use->kind == BQR_MATRIX ? bqr_max(1, shape.rows) : 0;
    storage->stride = (int64_t)bqr_max(0, shape.rows) * bqr_max(0, shape.cols);
  }
  return b;
}
