/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong enums, sizes and settings, and what there is besides a batch and its operands. */
#include "suite.h"
#include "wrong_call.h"

#include <limits.h>
#include <math.h>
#include <string.h>

/* --- enums and sizes */

static bool no_type(const spoiling *s) {
  s->w->batch.type = (batchqr_type)roll(s->d, 4, 99);
  return names(s, "batch.type = %d is not a batchqr_type", (int)s->w->batch.type);
}

static bool no_sizes(const spoiling *s) {
  s->w->batch.sizes = (batchqr_sizes)roll(s->d, 3, 99);
  return names(s, "batch.sizes = %d is not a batchqr_sizes", (int)s->w->batch.sizes);
}

static bool no_side(const spoiling *s) {
  s->w->batch.side = (batchqr_side)roll(s->d, 2, 99);
  return s->operation->reads_side && names(s, "side = %d is not a batchqr_side", (int)s->w->batch.side);
}

static bool no_trans(const spoiling *s) {
  s->w->batch.trans = (batchqr_trans)roll(s->d, 3, 99);
  return s->operation->reads_trans && names(s, "trans = %d is not a batchqr_trans", (int)s->w->batch.trans);
}

static bool plain_transpose(const spoiling *s) {
  s->w->batch.trans = BATCHQR_TRANS;
  return s->operation->reads_trans && type_is_complex(s->w->batch.type) &&
         names(s, "trans = BATCHQR_TRANS with a complex type");
}

static bool no_triangle(const spoiling *s) {
  s->w->batch.uplo = (batchqr_uplo)roll(s->d, 2, 99);
  return s->operation->reads_uplo && names(s, "batch.uplo = %d is not a batchqr_uplo", (int)s->w->batch.uplo);
}

static bool no_rank(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  if (!s->operation->finds_rank) return false;
  switch (roll(s->d, 0, 2)) {
  case 0:
    b->kmax = -roll(s->d, 1, 99);
    return names(s, "batch.kmax = %d is negative", b->kmax);
  case 1:
    b->abstol = NAN;
    return names(s, "batch.abstol is a NaN");
  default:
    b->reltol = NAN;
    return names(s, "batch.reltol is a NaN");
  }
}

static bool no_range(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  if (!s->operation->ranges) return false;
  const int which = roll(s->d, 0, 5), n = b->sizes == BATCHQR_HOST_SIZES ? INT_MAX : b->n;
  b->il = b->iu = 0;
  b->vl = b->vu = 0;
  switch (which) {
  case 0:
    b->il = -roll(s->d, 0, 99), b->iu = 1;
    return names(s, "batch.il = %d is less than 1", b->il);
  case 1:
    b->iu = roll(s->d, 1, 99), b->il = b->iu + roll(s->d, 1, 99);
    return names(s, "batch.il = %d is larger than batch.iu = %d", b->il, b->iu);
  case 2:
    b->il = 1, b->iu = n;
    if (n <= 0 || n == INT_MAX || b->count == 0) return false;
    b->iu += roll(s->d, 1, 99);
    return names(s, "batch.iu = %d is larger than batch.n = %d", b->iu, n);
  case 3:
    b->vl = roll(s->d, 1, 99), b->vu = b->vl - roll(s->d, 0, 99);
    return names(s, "batch.vl = %d is not less than batch.vu = %d", (int)b->vl, (int)b->vu);
  case 4:
    b->vu = NAN;
    return names(s, "batch.vu is a NaN");
  default:
    b->il = b->iu = 1, b->vu = 1;
    return names(s, "batch.il = 1, batch.iu = 1 and batch.vl = 0, batch.vu = 1: a range is");
  }
}

static bool no_sketch(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  if (!s->operation->sketches) return false;
  if (chance(s->d, 2)) {
    b->oversampling = -roll(s->d, 1, INT_MAX);
    return names(s, "batch.oversampling = %d is negative", b->oversampling);
  }
  b->power_steps = chance(s->d, 2) ? -roll(s->d, 1, INT_MAX) : roll(s->d, 101, INT_MAX);
  return names(s, "batch.power_steps = %d is not between 0 and 100", b->power_steps);
}

static bool sizes_on_device(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  const bool uniform = b->sizes == BATCHQR_UNIFORM;
  b->sizes = BATCHQR_DEVICE_SIZES;
  s->w->status = BATCHQR_UNSUPPORTED;
  return s->operation->host_sizes && uniform && names(s, "batch.sizes is BATCHQR_DEVICE_SIZES: ");
}

static bool not_square(const spoiling *s) {
  s->w->batch.m++;
  return s->operation->square && s->w->batch.sizes == BATCHQR_UNIFORM &&
         names(s, "batch.m = %d is not n = %d", s->w->batch.m, s->w->batch.n);
}

static bool not_zero(const spoiling *s) {
  const int words = (int)(sizeof s->w->batch.reserved / sizeof s->w->batch.reserved[0]),
            i = roll(s->d, 0, words - 1);
  s->w->batch.reserved[i] = (uint64_t)roll(s->d, 1, INT_MAX);
  return names(s, "batch.reserved[%d] = %d: ", i, (int)s->w->batch.reserved[i]);
}

static bool negative_count(const spoiling *s) {
  s->w->batch.count = -roll(s->d, 1, 99);
  return names(s, "batch.count = %d is negative", (int)s->w->batch.count);
}

static bool negative_size(const spoiling *s) {
  const int which = roll(s->d, 0, s->operation->k ? 2 : 1);
  batchqr_batch *b = &s->w->batch;
  int *size = (int *[]){&b->m, &b->n, &b->k}[which];
  *size = -roll(s->d, 1, INT_MAX);
  const bool one_k = which == 2 && !b->k_array && s->operation->k == BQR_RIGHT_HAND_SIDES && b->count > 0;
  return (b->sizes != BATCHQR_HOST_SIZES || one_k) &&
         names(s, "batch.%c = %d is negative", "mnk"[which], *size);
}

static bool too_many_reflectors(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  if (s->operation->k != BQR_REFLECTORS || b->sizes != BATCHQR_UNIFORM) return false;
  b->k = (s->operation->reads_side && b->side == BATCHQR_LEFT ? b->m : b->n) + roll(s->d, 1, 99);
  return names(s, "batch.k = %d is larger than", b->k);
}

/* As GEQRF leaves its batch. */
static bool forgotten_reflectors(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  if (s->operation->k != BQR_REFLECTORS || b->sizes != BATCHQR_UNIFORM || b->count == 0) return false;
  const bool empty = b->m == 0 || b->n == 0 || b->k == 0;
  b->k = 0;
  return !empty && names(s, "batch.k = 0");
}

/* As many rows as an int holds: no leading dimension is as large. */
static bool endless_rows(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  b->m = INT_MAX;
  const bool by_strides = bqr_by_strides(&b->a) || bqr_by_strides(&b->c) || bqr_by_strides(&b->r);
  return b->sizes == BATCHQR_UNIFORM && !by_strides && names(s, "%d", INT_MAX);
}

static bool too_wide(const spoiling *s) {
  s->w->batch.n = s->w->batch.m + roll(s->d, 1, 99);
  return s->operation->tall && s->w->batch.sizes == BATCHQR_UNIFORM &&
         names(s, "batch.n = %d is larger than m = %d", s->w->batch.n, s->w->batch.m);
}

static bool no_array(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  const bool m = chance(s->d, 2);
  *(m ? &b->m_array : &b->n_array) = NULL;
  return b->sizes != BATCHQR_UNIFORM && b->count > 0 && names(s, "batch.%c_array is NULL", m ? 'm' : 'n');
}

/* One of the host's arrays of sizes, with a number that does not fit. */
static bool wrong_array(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  bqr_batch_array arrays[BQR_MOST_ARRAYS];
  const int count = bqr_batch_arrays(s->operation, b, arrays), which = roll(s->d, 0, count - 1);
  if (b->sizes != BATCHQR_HOST_SIZES || b->count == 0 || !*arrays[which].at) return false;
  if (arrays[which].at == &b->k_array && !s->operation->k) return false;
  const size_t bytes = (size_t)b->count * sizeof(int);
  const int i = roll(s->d, 0, (int)b->count - 1);
  s->w->array = memory_host(bytes);
  memcpy(s->w->array, *arrays[which].at, bytes);
  s->w->array[i] = -roll(s->d, 1, 9);
  *arrays[which].at = s->w->array;
  const char *owner = arrays[which].owner;
  return names(s, "batch.%s%s%s[%d] = %d is ", owner ? owner : "", owner ? "." : "", arrays[which].field, i,
               s->w->array[i]);
}

/* --- what there is besides batch and operands */

static bool no_batch(const spoiling *s) {
  s->w->no_batch = true;
  return s->w->caller == BQR_PLANNED && names(s, "batch is NULL");
}

static bool no_operation(const spoiling *s) {
  s->w->op = (batchqr_op)roll(s->d, BQR_NUM_ROUTINES, 99);
  return s->w->caller == BQR_PLANNED && names(s, "op = %d is not", (int)s->w->op);
}

static bool no_plan(const spoiling *s) {
  s->w->no_plan = true;
  return s->w->caller == BQR_PLANNED && names(s, "plan is NULL");
}

static bool no_operands(const spoiling *s) {
  s->w->no_operands = true;
  return s->w->caller == BQR_PLANNED && names(s, "operands is NULL");
}

static bool wrong_workspace(const spoiling *s) {
  wrong_call *w = s->w;
  const size_t bytes = s->plan->workspace_bytes;
  if (w->caller != BQR_PLANNED || bytes == 0) return false;
  switch (roll(s->d, 0, 2)) {
  case 0:
    w->no_workspace = true;
    return names(s, "workspace is NULL");
  case 1:
    w->workspace_off = roll(s->d, 1, 255);
    return names(s, "workspace = ");
  default:
    w->workspace_short = roll(s->d, 1, bytes < 1000 ? (int)bytes : 1000);
    w->status = BATCHQR_WORKSPACE_TOO_SMALL;
    return names(s, "workspace holds %zu bytes", bytes - (size_t)w->workspace_short);
  }
}

const spoiler wrong_batches[] = {no_type,
                                 no_sizes,
                                 no_side,
                                 no_trans,
                                 plain_transpose,
                                 no_triangle,
                                 no_rank,
                                 no_range,
                                 no_sketch,
                                 sizes_on_device,
                                 not_square,
                                 not_zero,
                                 negative_count,
                                 negative_size,
                                 too_many_reflectors,
                                 forgotten_reflectors,
                                 endless_rows,
                                 too_wide,
                                 no_array,
                                 wrong_array,
                                 no_batch,
                                 no_operation,
                                 no_plan,
                                 no_operands,
                                 wrong_workspace,
                                 NULL};
