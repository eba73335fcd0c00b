/* SPDX-License-Identifier: BSD-3-Clause */
/* How operands are stored: leading dimensions, distances between members, any strides. */
#include "arguments_check.h"
#include <stdio.h>

static int ld_of(const bqr_checked *x, int64_t i) {
  if (!bqr_is_matrix(x)) return 1;
  return x->storage->ld_array ? x->storage->ld_array[i] : x->storage->ld;
}

static bqr_shape shape_of(const bqr_checked *x, int64_t i) {
  const bqr_check *c = x->c;
  return bqr_shape_of(x->use, c->batch, bqr_member_sizes(c->operation, c->batch, i));
}

/* The members that can be looked at: leading dimensions on the device cannot. */
static int64_t members_of(const bqr_checked *x) {
  const batchqr_batch *b = x->c->batch;
  const bool hidden = b->sizes == BATCHQR_DEVICE_SIZES && x->storage->ld_array;
  return hidden ? 0 : bqr_visible_members(b);
}

/* That an array's entry is a member's number of rows is enough where there are none; a member without
 * elements needs no leading dimension at all. */
static batchqr_status check_ld(const bqr_checked *x, int64_t i) {
  const bqr_check *c = x->c;
  const bqr_shape shape = shape_of(x, i);
  const int ld = ld_of(x, i), rows = shape.rows;
  const bool empty = rows == 0 || shape.cols == 0;
  if (ld >= bqr_max(1, rows) || (x->storage->ld_array && empty && ld >= 0)) return BATCHQR_SUCCESS;
  bqr_name of_member = {""};
  if (c->batch->sizes == BATCHQR_HOST_SIZES && !x->storage->ld_array)
    snprintf(of_member.text, sizeof of_member.text, " of member %lld", (long long)i);
  return BQR_INVALID(c, "%s = %d is smaller than max(1, %s) = %d%s", bqr_ld_name(c, x->use, i).text, ld,
                     bqr_extent_name(c, x->use->rows), bqr_max(1, rows), of_member.text);
}

/* Elements from a member's first one to behind its last one. */
static int64_t extent(bqr_shape shape, int ld) {
  return shape.rows > 0 && shape.cols > 0 ? (int64_t)(shape.cols - 1) * ld + shape.rows : 0;
}

/* Whether all members lie below each other inside one leading dimension, which is no overlap either. */
static bool members_below_each_other(const bqr_checked *x) {
  const batchqr_batch *b = x->c->batch;
  const batchqr_storage *s = x->storage;
  const bool host = b->sizes == BATCHQR_HOST_SIZES;
  const int64_t members = bqr_visible_members(b);
  if (!bqr_is_matrix(x) || s->ld_array || s->stride > s->ld) return false;
  for (int64_t i = 0; i < members; i++) {
    const int rows = shape_of(x, i).rows;
    int64_t place = host ? i : b->count - 1, start;
    const bool last = host && i == b->count - 1;
    if (__builtin_mul_overflow(place, s->stride, &start) || start > s->ld - rows ||
        (!last && rows > s->stride))
      return false;
  }
  return true;
}

static batchqr_status fail_overlap(const bqr_checked *x, bqr_shape shape, int64_t i) {
  const bqr_check *c = x->c;
  bqr_name who = {"members"};
  const bool host = c->batch->sizes == BATCHQR_HOST_SIZES;
  if (host) snprintf(who.text, sizeof who.text, "member %lld", (long long)i);
  const char *what = host ? "overlaps the next" : "overlap";
  if (!bqr_is_matrix(x))
    return BQR_INVALID(c, "%s = %lld: %s of %d elements %s", bqr_stride_name(c, x->use).text,
                       (long long)x->storage->stride, who.text, shape.rows, what);
  return BQR_INVALID(c, "%s = %lld: %s of %d x %d with ld %d %s; %lld would do",
                     bqr_stride_name(c, x->use).text, (long long)x->storage->stride, who.text, shape.rows,
                     shape.cols, ld_of(x, i), what, (long long)extent(shape, ld_of(x, i)));
}

/* That no address needs more than 63 bits: of members a stride apart, the last of so many elements. */
static batchqr_status check_range(const bqr_checked *x, int64_t largest) {
  const batchqr_batch *b = x->c->batch;
  const int64_t bytes_each = (int64_t)bqr_kind_bytes(x->use->kind, b->type);
  int64_t elements, bytes;
  if (!__builtin_mul_overflow(b->count > 0 ? b->count - 1 : 0, x->storage->stride, &elements) &&
      !__builtin_add_overflow(elements, largest, &elements) &&
      !__builtin_mul_overflow(elements, bytes_each, &bytes))
    return BATCHQR_SUCCESS;
  return BQR_INVALID(x->c, "%s = %lld: %lld members are beyond all addresses",
                     bqr_stride_name(x->c, x->use).text, (long long)x->storage->stride, (long long)b->count);
}

static batchqr_status check_sign(const bqr_checked *x) {
  if (x->storage->stride >= 0) return BATCHQR_SUCCESS;
  return BQR_INVALID(x->c, "%s = %lld is negative", bqr_stride_name(x->c, x->use).text,
                     (long long)x->storage->stride);
}

static batchqr_status check_strided(const bqr_checked *x) {
  const bqr_check *c = x->c;
  const int64_t members = members_of(x);
  batchqr_status status = check_sign(x);
  if (status) return status;
  const bool apart_anyway =
      !(x->use->access & BQR_WRITTEN) || c->batch->count <= 1 || members_below_each_other(x);
  int64_t largest = 0;
  for (int64_t i = 0; i < members; i++) {
    const bqr_shape shape = shape_of(x, i);
    const int64_t elements = extent(shape, ld_of(x, i));
    const bool last = i == c->batch->count - 1;
    if (!apart_anyway && !last && elements > x->storage->stride) return fail_overlap(x, shape, i);
    if (elements > largest) largest = elements;
  }
  return check_range(x, largest);
}

batchqr_status bqr_check_optional(const bqr_checked *x, int64_t largest) {
  if (x->storage->layout == BATCHQR_POINTERS) return BATCHQR_SUCCESS;
  batchqr_status status = check_sign(x);
  if (!status && x->c->batch->count > 1 && x->storage->stride < largest)
    return BQR_INVALID(x->c, "%s = %lld: members of up to %lld elements overlap",
                       bqr_stride_name(x->c, x->use).text, (long long)x->storage->stride, (long long)largest);
  return status || largest == 0 ? status : check_range(x, largest);
}

/* --- any strides */

static bool by_strides(const bqr_checked *x) { return bqr_is_matrix(x) && bqr_by_strides(x->storage); }

static batchqr_status check_may_stride(const bqr_checked *x) {
  const bqr_check *c = x->c;
  const batchqr_storage *s = x->storage;
  const bool keeps = x->use->place == BQR_A && (c->batch->keep_a || by_strides(x));
  if (by_strides(x) && !(x->use->access & BQR_STRIDES))
    return BQR_INVALID(c, "%s = %lld: %s takes %s by columns only, with row_stride 0 or 1",
                       bqr_row_stride_name(x->use).text, (long long)s->row_stride, c->operation->name,
                       bqr_place_name(x->use));
  if (by_strides(x) && s->ld_array)
    return BQR_INVALID(c, "%s = %lld: there is batch.%s.ld_array, too", bqr_row_stride_name(x->use).text,
                       (long long)s->row_stride, bqr_place_name(x->use));
  if (keeps && bqr_may_keep_a(c->operation) && s->ld_array && c->batch->sizes == BATCHQR_DEVICE_SIZES)
    return BQR_INVALID(c, "batch.keep_a = %d: batch.a.ld_array must be NULL with sizes on the device",
                       c->batch->keep_a);
  return BATCHQR_SUCCESS;
}

/* A distance times a number of steps, added to an offset; false if that is beyond counting. */
static bool add_steps(int64_t *offset, int64_t steps, int64_t distance) {
  int64_t more;
  return !__builtin_mul_overflow(steps, distance, &more) && !__builtin_add_overflow(*offset, more, offset);
}

/* Of a written matrix: rows inside the distance of columns, or columns inside that of rows. */
static batchqr_status check_apart(const bqr_checked *x, bqr_shape shape, int64_t *elements) {
  const bqr_check *c = x->c;
  const int64_t row = x->storage->row_stride, col = x->storage->ld;
  if (row < 1 || col < 1)
    return BQR_INVALID(c, "%s = %lld, %s = %lld: %s is written, and its distances must be positive",
                       bqr_row_stride_name(x->use).text, (long long)row, bqr_ld_name(c, x->use, 0).text,
                       (long long)col, bqr_place_name(x->use));
  int64_t rows = 1, cols = 1;
  if (!add_steps(&rows, shape.rows - 1, row) || !add_steps(&cols, shape.cols - 1, col) ||
      __builtin_add_overflow(rows, cols - 1, elements))
    return BQR_INVALID(c, "%s = %lld: a member is beyond all addresses", bqr_row_stride_name(x->use).text,
                       (long long)row);
  if (col >= rows || row >= cols) return BATCHQR_SUCCESS;
  return BQR_INVALID(c, "%s = %lld, %s = %lld: elements of %d x %d overlap", bqr_row_stride_name(x->use).text,
                     (long long)row, bqr_ld_name(c, x->use, 0).text, (long long)col, shape.rows, shape.cols);
}

static batchqr_status check_by_strides(const bqr_checked *x) {
  const bqr_check *c = x->c;
  const bool strided = x->storage->layout == BATCHQR_STRIDED;
  const int64_t members = members_of(x);
  int64_t largest = 0;
  batchqr_status status = strided ? check_sign(x) : BATCHQR_SUCCESS;
  if (x->use->place == BQR_A) return status; /* it is only read, and may be any elements */
  for (int64_t i = 0; i < members && !status; i++) {
    const bqr_shape shape = shape_of(x, i);
    int64_t elements = 0;
    if (shape.rows < 1 || shape.cols < 1) continue;
    status = check_apart(x, shape, &elements);
    if (!status && strided && c->batch->count > 1 && elements > x->storage->stride)
      return BQR_INVALID(c, "%s = %lld: members of %d x %d with row_stride %lld and ld %d overlap",
                         bqr_stride_name(c, x->use).text, (long long)x->storage->stride, shape.rows,
                         shape.cols, (long long)x->storage->row_stride, x->storage->ld);
    if (!status && elements > largest) largest = elements;
  }
  return status || !strided ? status : check_range(x, largest);
}

batchqr_status bqr_check_storage(const bqr_checked *x) {
  const int64_t members = bqr_is_matrix(x) ? members_of(x) : 0;
  const batchqr_status may = check_may_stride(x);
  if (may) return may;
  if (by_strides(x)) return check_by_strides(x);
  for (int64_t i = 0; i < members; i++) {
    batchqr_status status = check_ld(x, i);
    if (status) return status;
  }
  return x->storage->layout == BATCHQR_STRIDED ? check_strided(x) : BATCHQR_SUCCESS;
}

bool bqr_is_stored(const bqr_checked *x) {
  return bqr_is_matrix(x) && (x->storage->ld != 0 || x->storage->ld_array);
}
