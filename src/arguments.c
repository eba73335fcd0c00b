/* SPDX-License-Identifier: BSD-3-Clause */
#include "arguments.h"
#include "device.h"
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct check {
  const bqr_operation *operation;
  const batchqr_batch *batch;
  bqr_caller caller;
  bqr_error *error;
} check;

#define INVALID(c, ...) bqr_fail((c)->error, BATCHQR_INVALID_ARGUMENT, __VA_ARGS__)

/* --- names */

static bool is_typed(bqr_caller caller) { return caller == BQR_TYPED || caller == BQR_TYPED_POINTERS; }
static const char *place_name(const bqr_use *use) { return bqr_places[use->place].name; }
/* What the routine calls its argument. */
static const char *argument_name(const bqr_use *use) { return use->called ? use->called : place_name(use); }

static bqr_name scalar_name(const check *c, const char *field) {
  bqr_name n;
  snprintf(n.text, sizeof n.text, "%s%s", is_typed(c->caller) ? "" : "batch.", field);
  return n;
}

/* side and trans are arguments of their own but in the planned tier. */
static bqr_name way_name(const check *c, const char *field) {
  bqr_name n;
  snprintf(n.text, sizeof n.text, "%s%s", c->caller == BQR_PLANNED ? "batch." : "", field);
  return n;
}

/* batch.m, or batch.m_array[17]. */
static bqr_name size_name(const check *c, const char *field, int64_t i) {
  bqr_name n = scalar_name(c, field);
  bool one_for_all = *field == 'k' && !c->batch->k_array;
  if (c->batch->sizes == BATCHQR_HOST_SIZES && !one_for_all)
    snprintf(n.text, sizeof n.text, "batch.%s_array[%lld]", field, (long long)i);
  return n;
}

/* batch.a.ld, or batch.a.ld_array[17]. */
static bqr_name ld_name(const check *c, const bqr_use *use, int64_t i) {
  bqr_name n;
  snprintf(n.text, sizeof n.text, "ld%s", argument_name(use));
  if (bqr_storage_at(c->batch, (int)use->place)->ld_array)
    snprintf(n.text, sizeof n.text, "batch.%s.ld_array[%lld]", place_name(use), (long long)i);
  else if (!is_typed(c->caller))
    snprintf(n.text, sizeof n.text, "batch.%s.ld", place_name(use));
  return n;
}

static bqr_name row_stride_name(const bqr_use *use) {
  bqr_name n;
  snprintf(n.text, sizeof n.text, "batch.%s.row_stride", place_name(use));
  return n;
}

static bqr_name stride_name(const check *c, const bqr_use *use) {
  bqr_name n;
  if (is_typed(c->caller))
    snprintf(n.text, sizeof n.text, "stride_%s", argument_name(use));
  else
    snprintf(n.text, sizeof n.text, "batch.%s.stride", place_name(use));
  return n;
}

bqr_name bqr_operand_name(const bqr_use *use, bqr_caller caller) {
  bqr_name n;
  const char *called = !use ? "info" : caller == BQR_PLANNED ? place_name(use) : argument_name(use);
  snprintf(n.text, sizeof n.text, "%s%s%s", caller == BQR_PLANNED ? "operands." : "", called,
           use && caller == BQR_TYPED_POINTERS ? "_array" : "");
  return n;
}

/* An extent in the words of the errors. */
static const char *extent_name(const check *c, bqr_extent extent) {
  static const char *const names[] = {[BQR_ONE] = "1",
                                      [BQR_TWO] = "2",
                                      [BQR_M] = "m",
                                      [BQR_N] = "n",
                                      [BQR_K] = "k",
                                      [BQR_MIN_MN] = "min(m, n)",
                                      [BQR_MAX_MN] = "max(m, n)",
                                      [BQR_SAMPLES] = "k + oversampling"};
  if (extent == BQR_ORDER) return c->batch->side == BATCHQR_LEFT ? "m" : "n";
  return names[extent];
}

/* --- enums and counts */

static batchqr_status check_enum(const check *c, bqr_name called, int value, int last, const char *what) {
  if (value >= 0 && value <= last) return BATCHQR_SUCCESS;
  return INVALID(c, "%s = %d is not a %s", called.text, value, what);
}

static batchqr_status check_layouts(const check *c) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (const bqr_use *use = c->operation->uses; use->place && !status; use++) {
    bqr_name n;
    snprintf(n.text, sizeof n.text, "batch.%s.layout", place_name(use));
    status = check_enum(c, n, (int)bqr_storage_at(c->batch, (int)use->place)->layout, BATCHQR_POINTERS,
                        "batchqr_layout");
  }
  return status;
}

static batchqr_status check_ways(const check *c) {
  const batchqr_batch *b = c->batch;
  batchqr_status status = BATCHQR_SUCCESS;
  if (c->operation->reads_side)
    status = check_enum(c, way_name(c, "side"), (int)b->side, BATCHQR_RIGHT, "batchqr_side");
  if (c->operation->reads_uplo)
    status = check_enum(c, scalar_name(c, "uplo"), (int)b->uplo, BATCHQR_UPPER, "batchqr_uplo");
  if (status || !c->operation->reads_trans) return status;
  status = check_enum(c, way_name(c, "trans"), (int)b->trans, BATCHQR_CONJ_TRANS, "batchqr_trans");
  if (!status && b->trans == BATCHQR_TRANS && (b->type == BATCHQR_C || b->type == BATCHQR_Z))
    return INVALID(c, "%s = BATCHQR_TRANS with a complex type: %c^H is BATCHQR_CONJ_TRANS",
                   way_name(c, "trans").text, c->operation->transposed);
  return status;
}

/* Where the rank is looked for. */
static batchqr_status check_rank(const check *c) {
  const batchqr_batch *b = c->batch;
  if (!c->operation->finds_rank) return BATCHQR_SUCCESS;
  if (b->kmax < 0) return INVALID(c, "%s = %d is negative", scalar_name(c, "kmax").text, b->kmax);
  if (isnan(b->abstol)) return INVALID(c, "%s is a NaN", scalar_name(c, "abstol").text);
  if (isnan(b->reltol)) return INVALID(c, "%s is a NaN", scalar_name(c, "reltol").text);
  return BATCHQR_SUCCESS;
}

static batchqr_status check_samples(const check *c) {
  enum { MOST_STEPS = 100 };
  const batchqr_batch *b = c->batch;
  if (!c->operation->sketches) return BATCHQR_SUCCESS;
  if (b->oversampling < 0)
    return INVALID(c, "%s = %d is negative", scalar_name(c, "oversampling").text, b->oversampling);
  if (b->power_steps < 0 || b->power_steps > MOST_STEPS)
    return INVALID(c, "%s = %d is not between 0 and %d", scalar_name(c, "power_steps").text, b->power_steps,
                   MOST_STEPS);
  return BATCHQR_SUCCESS;
}

/* A program that was compiled for a later version may say what this one does not know. */
static batchqr_status check_reserved(const check *c) {
  for (size_t i = 0; i < sizeof c->batch->reserved / sizeof c->batch->reserved[0]; i++)
    if (c->batch->reserved[i])
      return INVALID(
          c,
          "batch.reserved[%zu] = %llu: the batch was not initialized, or asks for what this version of "
          "batchqr does not have",
          i, (unsigned long long)c->batch->reserved[i]);
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_check_enums(const bqr_operation *operation, const batchqr_batch *b, bqr_caller caller,
                               bqr_error *error) {
  const check all = {operation, b, caller, error}, *c = &all;
  batchqr_status status = check_enum(c, scalar_name(c, "type"), (int)b->type, BATCHQR_Z, "batchqr_type");
  if (!status)
    status = check_enum(c, scalar_name(c, "sizes"), (int)b->sizes, BATCHQR_DEVICE_SIZES, "batchqr_sizes");
  if (!status) status = check_layouts(c);
  if (!status) status = check_ways(c);
  if (!status) status = check_rank(c);
  if (!status) status = check_samples(c);
  return status ? status : check_reserved(c);
}

static batchqr_status check_arrays(const check *c) {
  const batchqr_batch *b = c->batch;
  if (b->count < 0)
    return INVALID(c, "%s = %lld is negative", scalar_name(c, "count").text, (long long)b->count);
  if (b->sizes == BATCHQR_HOST_SIZES && b->count > INT_MAX)
    return bqr_fail(c->error, BATCHQR_UNSUPPORTED,
                    "batch.count = %lld: sizes in host arrays are limited to %d members", (long long)b->count,
                    INT_MAX);
  if (b->sizes == BATCHQR_DEVICE_SIZES && c->operation->host_sizes)
    return bqr_fail(c->error, BATCHQR_UNSUPPORTED,
                    "batch.sizes is BATCHQR_DEVICE_SIZES: %s takes sizes on the host", c->operation->name);
  if (b->sizes != BATCHQR_UNIFORM) {
    if (b->count > 0 && !b->m_array) return INVALID(c, "batch.m_array is NULL");
    if (b->count > 0 && !b->n_array) return INVALID(c, "batch.n_array is NULL");
    return BATCHQR_SUCCESS;
  }
  for (const bqr_use *use = c->operation->uses; use->place; use++)
    if (bqr_storage_at(b, (int)use->place)->ld_array)
      return INVALID(c, "batch.%s.ld_array is not NULL, but batch.sizes is BATCHQR_UNIFORM", place_name(use));
  return BATCHQR_SUCCESS;
}

/* --- sizes */

static batchqr_status check_size(const check *c, const char *field, int value, int64_t i) {
  if (value >= 0) return BATCHQR_SUCCESS;
  return INVALID(c, "%s = %d is negative", size_name(c, field, i).text, value);
}

/* The operation's own rules. Upper bounds need not obey them: members are checked on the device. */
static batchqr_status check_reflectors(const check *c, bqr_dims s, int64_t i) {
  const bqr_extent most = c->operation->reads_side ? BQR_ORDER : BQR_N;
  const int fit = bqr_extent_of(most, c->batch, s);
  if (s.k > fit)
    return INVALID(c, "%s = %d is larger than %s = %d", size_name(c, "k", i).text, s.k, extent_name(c, most),
                   fit);
  return BATCHQR_SUCCESS;
}

static batchqr_status check_tall(const check *c, bqr_dims s, int64_t i) {
  if (!c->operation->tall || s.n <= s.m) return BATCHQR_SUCCESS;
  return INVALID(c, "%s = %d is larger than m = %d", size_name(c, "n", i).text, s.n, s.m);
}

static batchqr_status check_square(const check *c, bqr_dims s, int64_t i) {
  if (!c->operation->square || s.m == s.n) return BATCHQR_SUCCESS;
  return INVALID(c, "%s = %d is not n = %d", size_name(c, "m", i).text, s.m, s.n);
}

static batchqr_status check_sizes(const check *c) {
  const bool known = c->batch->sizes != BATCHQR_DEVICE_SIZES;
  const int64_t members = bqr_visible_members(c->batch);
  for (int64_t i = 0; i < members; i++) {
    bqr_dims s = bqr_member_sizes(c->operation, c->batch, i);
    batchqr_status status = check_size(c, "m", s.m, i);
    if (!status) status = check_size(c, "n", s.n, i);
    if (!status && c->operation->k) status = check_size(c, "k", s.k, i);
    if (!status && c->operation->k == BQR_REFLECTORS && known) status = check_reflectors(c, s, i);
    if (!status && known) status = check_tall(c, s, i);
    if (!status && known) status = check_square(c, s, i);
    if (status) return status;
  }
  return BATCHQR_SUCCESS;
}

/* --- storage */

/* An operand, and where it is. */
typedef struct operand {
  const check *c;
  const bqr_use *use;
  const batchqr_storage *storage;
} operand;

static bool is_matrix(const operand *x) { return x->use->kind == BQR_MATRIX; }
static int ld_of(const operand *x, int64_t i) {
  if (!is_matrix(x)) return 1;
  return x->storage->ld_array ? x->storage->ld_array[i] : x->storage->ld;
}

static bqr_shape shape_of(const operand *x, int64_t i) {
  const check *c = x->c;
  return bqr_shape_of(x->use, c->batch, bqr_member_sizes(c->operation, c->batch, i));
}

/* The members that can be looked at: leading dimensions on the device cannot. */
static int64_t members_of(const operand *x) {
  const batchqr_batch *b = x->c->batch;
  const bool hidden = b->sizes == BATCHQR_DEVICE_SIZES && x->storage->ld_array;
  return hidden ? 0 : bqr_visible_members(b);
}

/* That an array's entry is a member's number of rows is enough where there are none; a member without
 * elements needs no leading dimension at all. */
static batchqr_status check_ld(const operand *x, int64_t i) {
  const check *c = x->c;
  const bqr_shape shape = shape_of(x, i);
  const int ld = ld_of(x, i), rows = shape.rows;
  const bool empty = rows == 0 || shape.cols == 0;
  if (ld >= bqr_max(1, rows) || (x->storage->ld_array && empty && ld >= 0)) return BATCHQR_SUCCESS;
  bqr_name of_member = {""};
  if (c->batch->sizes == BATCHQR_HOST_SIZES && !x->storage->ld_array)
    snprintf(of_member.text, sizeof of_member.text, " of member %lld", (long long)i);
  return INVALID(c, "%s = %d is smaller than max(1, %s) = %d%s", ld_name(c, x->use, i).text, ld,
                 extent_name(c, x->use->rows), bqr_max(1, rows), of_member.text);
}

/* Elements from a member's first one to behind its last one. */
static int64_t extent(bqr_shape shape, int ld) {
  return shape.rows > 0 && shape.cols > 0 ? (int64_t)(shape.cols - 1) * ld + shape.rows : 0;
}

/* Whether all members lie below each other inside one leading dimension, which is no overlap either. */
static bool members_below_each_other(const operand *x) {
  const batchqr_batch *b = x->c->batch;
  const batchqr_storage *s = x->storage;
  const bool host = b->sizes == BATCHQR_HOST_SIZES;
  const int64_t members = bqr_visible_members(b);
  if (!is_matrix(x) || s->ld_array || s->stride > s->ld) return false;
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

static batchqr_status fail_overlap(const operand *x, bqr_shape shape, int64_t i) {
  const check *c = x->c;
  bqr_name who = {"members"};
  const bool host = c->batch->sizes == BATCHQR_HOST_SIZES;
  if (host) snprintf(who.text, sizeof who.text, "member %lld", (long long)i);
  const char *what = host ? "overlaps the next" : "overlap";
  if (!is_matrix(x))
    return INVALID(c, "%s = %lld: %s of %d elements %s", stride_name(c, x->use).text,
                   (long long)x->storage->stride, who.text, shape.rows, what);
  return INVALID(c, "%s = %lld: %s of %d x %d with ld %d %s; %lld would do", stride_name(c, x->use).text,
                 (long long)x->storage->stride, who.text, shape.rows, shape.cols, ld_of(x, i), what,
                 (long long)extent(shape, ld_of(x, i)));
}

/* That no address needs more than 63 bits: of members a stride apart, the last of so many elements. */
static batchqr_status check_range(const operand *x, int64_t largest) {
  const batchqr_batch *b = x->c->batch;
  const int64_t bytes_each = (int64_t)bqr_kind_bytes(x->use->kind, b->type);
  int64_t elements, bytes;
  if (!__builtin_mul_overflow(b->count > 0 ? b->count - 1 : 0, x->storage->stride, &elements) &&
      !__builtin_add_overflow(elements, largest, &elements) &&
      !__builtin_mul_overflow(elements, bytes_each, &bytes))
    return BATCHQR_SUCCESS;
  return INVALID(x->c, "%s = %lld: %lld members are beyond all addresses", stride_name(x->c, x->use).text,
                 (long long)x->storage->stride, (long long)b->count);
}

static batchqr_status check_sign(const operand *x) {
  if (x->storage->stride >= 0) return BATCHQR_SUCCESS;
  return INVALID(x->c, "%s = %lld is negative", stride_name(x->c, x->use).text,
                 (long long)x->storage->stride);
}

static batchqr_status check_strided(const operand *x) {
  const check *c = x->c;
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

/* An optional vector that is wanted, whose longest has so many elements: without a look at all members. */
static batchqr_status check_optional(const operand *x, int64_t largest) {
  if (x->storage->layout == BATCHQR_POINTERS) return BATCHQR_SUCCESS;
  batchqr_status status = check_sign(x);
  if (!status && x->c->batch->count > 1 && x->storage->stride < largest)
    return INVALID(x->c, "%s = %lld: members of up to %lld elements overlap", stride_name(x->c, x->use).text,
                   (long long)x->storage->stride, (long long)largest);
  return status || largest == 0 ? status : check_range(x, largest);
}

/* --- any strides */

static bool by_strides(const operand *x) { return is_matrix(x) && bqr_by_strides(x->storage); }

static batchqr_status check_may_stride(const operand *x) {
  const check *c = x->c;
  const batchqr_storage *s = x->storage;
  const bool keeps = x->use->place == BQR_A && (c->batch->keep_a || by_strides(x));
  if (by_strides(x) && !(x->use->access & BQR_STRIDES))
    return INVALID(c, "%s = %lld: %s takes %s by columns only, with row_stride 0 or 1",
                   row_stride_name(x->use).text, (long long)s->row_stride, c->operation->name,
                   place_name(x->use));
  if (by_strides(x) && s->ld_array)
    return INVALID(c, "%s = %lld: there is batch.%s.ld_array, too", row_stride_name(x->use).text,
                   (long long)s->row_stride, place_name(x->use));
  if (keeps && bqr_may_keep_a(c->operation) && s->ld_array && c->batch->sizes == BATCHQR_DEVICE_SIZES)
    return INVALID(c, "batch.keep_a = %d: batch.a.ld_array must be NULL with sizes on the device",
                   c->batch->keep_a);
  return BATCHQR_SUCCESS;
}

/* A distance times a number of steps, added to an offset; false if that is beyond counting. */
static bool add_steps(int64_t *offset, int64_t steps, int64_t distance) {
  int64_t more;
  return !__builtin_mul_overflow(steps, distance, &more) && !__builtin_add_overflow(*offset, more, offset);
}

/* Of a written matrix: rows inside the distance of columns, or columns inside that of rows. */
static batchqr_status check_apart(const operand *x, bqr_shape shape, int64_t *elements) {
  const check *c = x->c;
  const int64_t row = x->storage->row_stride, col = x->storage->ld;
  if (row < 1 || col < 1)
    return INVALID(c, "%s = %lld, %s = %lld: %s is written, and its distances must be positive",
                   row_stride_name(x->use).text, (long long)row, ld_name(c, x->use, 0).text, (long long)col,
                   place_name(x->use));
  int64_t rows = 1, cols = 1;
  if (!add_steps(&rows, shape.rows - 1, row) || !add_steps(&cols, shape.cols - 1, col) ||
      __builtin_add_overflow(rows, cols - 1, elements))
    return INVALID(c, "%s = %lld: a member is beyond all addresses", row_stride_name(x->use).text,
                   (long long)row);
  if (col >= rows || row >= cols) return BATCHQR_SUCCESS;
  return INVALID(c, "%s = %lld, %s = %lld: elements of %d x %d overlap", row_stride_name(x->use).text,
                 (long long)row, ld_name(c, x->use, 0).text, (long long)col, shape.rows, shape.cols);
}

static batchqr_status check_by_strides(const operand *x) {
  const check *c = x->c;
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
      return INVALID(c, "%s = %lld: members of %d x %d with row_stride %lld and ld %d overlap",
                     stride_name(c, x->use).text, (long long)x->storage->stride, shape.rows, shape.cols,
                     (long long)x->storage->row_stride, x->storage->ld);
    if (!status && elements > largest) largest = elements;
  }
  return status || !strided ? status : check_range(x, largest);
}

static batchqr_status check_storage(const operand *x) {
  const int64_t members = is_matrix(x) ? members_of(x) : 0;
  const batchqr_status may = check_may_stride(x);
  if (may) return may;
  if (by_strides(x)) return check_by_strides(x);
  for (int64_t i = 0; i < members; i++) {
    batchqr_status status = check_ld(x, i);
    if (status) return status;
  }
  return x->storage->layout == BATCHQR_STRIDED ? check_strided(x) : BATCHQR_SUCCESS;
}

/* Whether the batch says how an optional matrix is stored: else no execute wants it. */
static bool is_stored(const operand *x) {
  return is_matrix(x) && (x->storage->ld != 0 || x->storage->ld_array);
}

batchqr_status bqr_check_batch(const bqr_operation *operation, const batchqr_batch *batch, bqr_caller caller,
                               bqr_error *error) {
  const check c = {operation, batch, caller, error};
  batchqr_status status = check_arrays(&c);
  if (!status) status = check_sizes(&c);
  for (const bqr_use *use = operation->uses; use->place && !status; use++) {
    const operand x = {&c, use, bqr_storage_at(batch, (int)use->place)};
    if (!(use->access & BQR_OPTIONAL) || is_stored(&x)) status = check_storage(&x);
  }
  return status;
}

batchqr_status bqr_check_array_memory(const bqr_operation *operation, const batchqr_batch *batch,
                                      const bqr_device *device, bqr_error *error) {
  const bool host = batch->sizes == BATCHQR_HOST_SIZES;
  batchqr_batch copy = *batch;
  bqr_batch_array arrays[BQR_MOST_ARRAYS];
  const int count = batch->sizes == BATCHQR_UNIFORM ? 0 : bqr_batch_arrays(operation, &copy, arrays);
  for (int i = 0; i < count; i++) {
    const int *array = *arrays[i].at;
    if (!array || (host ? bqr_address_serves_host(device, array) : bqr_address_serves_device(device, array)))
      continue;
    const char *owner = arrays[i].owner;
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch.%s%s%s = %p is %s memory, but batch.sizes is %s",
                    owner ? owner : "", owner ? "." : "", arrays[i].field, (const void *)array,
                    host ? "device" : "host", host ? "BATCHQR_HOST_SIZES" : "BATCHQR_DEVICE_SIZES");
  }
  return BATCHQR_SUCCESS;
}

/* --- operands */

/* The GPU loads whole elements; the CPU needs what its compiler would give an array. */
static size_t alignment(const struct batchqr_plan *plan, const bqr_use *use) {
  const batchqr_batch *b = &plan->batch;
  if (bqr_storage_at(b, (int)use->place)->layout == BATCHQR_POINTERS) return sizeof(void *);
  if (plan->aligned[use->place]) return BQR_COLUMN_ALIGNMENT;
  return plan->device.backend == BATCHQR_BACKEND_CUDA ? bqr_kind_bytes(use->kind, b->type)
                                                      : bqr_kind_alignment(use->kind, b->type);
}

static batchqr_status check_address(bqr_name called, const void *address, size_t align, bqr_error *error) {
  if ((uintptr_t)address % align == 0) return BATCHQR_SUCCESS;
  return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s = %p is not aligned to %zu bytes", called.text,
                  address, align);
}

static batchqr_status check_operand(const struct batchqr_plan *plan, const bqr_use *use, const void *address,
                                    bqr_caller caller, bqr_error *error) {
  const bqr_name called = bqr_operand_name(use, caller);
  const bool optional = use->access & BQR_OPTIONAL;
  if (plan->largest[use->place] > 0 && !address && !optional)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is NULL", called.text);
  const size_t align = alignment(plan, use);
  if (plan->aligned[use->place] && (uintptr_t)address % align != 0)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                    "%s = %p is not aligned to %zu bytes: plans with batch.unaligned = 1 take such addresses",
                    called.text, address, align);
  return check_address(called, address, align, error);
}

/* The storage of an optional vector is looked at where it is wanted; of a matrix, it has been. */
static batchqr_status check_wanted(const struct batchqr_plan *plan, const bqr_use *use, const void *address,
                                   bqr_caller caller, bqr_error *error) {
  if (!(use->access & BQR_OPTIONAL) || !address) return BATCHQR_SUCCESS;
  const check c = {plan->operation, &plan->batch, caller, error};
  const operand x = {&c, use, bqr_storage_at(&plan->batch, (int)use->place)};
  if (!is_matrix(&x)) return check_optional(&x, plan->largest[use->place]);
  if (plan->largest[use->place] == 0 || is_stored(&x)) return BATCHQR_SUCCESS;
  return INVALID(&c, "%s is not NULL, but batch.%s.ld is 0", bqr_operand_name(use, caller).text,
                 place_name(use));
}

/* A batch that has served GEQRF says nothing of reflectors, and Q of none is the identity: who wants that
 * gives neither V nor tau. Typed wrappers have k among their arguments. */
static batchqr_status check_reflectors_wanted(const struct batchqr_plan *plan,
                                              const batchqr_operands *operands, bqr_caller caller,
                                              bqr_error *error) {
  const batchqr_batch *b = &plan->batch;
  if (plan->operation->k != BQR_REFLECTORS || is_typed(caller) || b->sizes == BATCHQR_HOST_SIZES ||
      b->k_array || b->k != 0 || b->count == 0 || b->m == 0 || b->n == 0)
    return BATCHQR_SUCCESS;
  for (const bqr_use *use = plan->operation->uses; use->place; use++)
    if ((use->rows == BQR_K || use->cols == BQR_K) && bqr_address_at(operands, (int)use->place))
      return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "batch.k = 0 counts no reflectors, but %s is not NULL",
                      bqr_operand_name(use, caller).text);
  return BATCHQR_SUCCESS;
}

/* An operand that a call uses, of which at least one element is there. */
typedef struct used {
  const void *address;
  const bqr_use *use; /* NULL: info */
  bool written;       /* by the call */
} used;
enum { MOST_USED = BQR_MOST_USES + 1 };

static int list_used(const struct batchqr_plan *plan, const batchqr_operands *operands, used *list) {
  int n = 0;
  for (const bqr_use *use = plan->operation->uses; use->place; use++) {
    const void *address = bqr_address_at(operands, (int)use->place);
    if (plan->largest[use->place] > 0 && address)
      list[n++] = (used){address, use, (use->access & BQR_WRITTEN) != 0};
  }
  if (plan->batch.count > 0 && operands->info) list[n++] = (used){operands->info, NULL, true};
  return n;
}

/* Operands that are one another must be meant so. */
static batchqr_status check_aliases(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                    bqr_caller caller, bqr_error *error) {
  used list[MOST_USED];
  const int n = list_used(plan, operands, list);
  for (int i = 1; i < n; i++)
    for (int j = i - 1; j >= 0; j--) {
      const used *x = &list[i], *y = &list[j];
      if (x->address != y->address || !(x->written || y->written)) continue;
      const bqr_name called = bqr_operand_name(x->use, caller), other = bqr_operand_name(y->use, caller);
      if (!x->use || !(x->use->access & BQR_MAY_BE_A) || y->use->place != BQR_A || plan->batch.keep_a)
        return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is the same address as %s", called.text,
                        other.text);
      if (!plan->stored_as_a[x->use->place])
        return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                        "%s is %s, but batch.%s is not the storage of batch.a", called.text, other.text,
                        place_name(x->use));
    }
  return BATCHQR_SUCCESS;
}

batchqr_status bqr_check_operands(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                  bqr_caller caller, bqr_error *error) {
  batchqr_status status = BATCHQR_SUCCESS;
  for (const bqr_use *use = plan->operation->uses; use->place && !status; use++)
    status = check_operand(plan, use, bqr_address_at(operands, (int)use->place), caller, error);
  if (!status) status = check_address(bqr_operand_name(NULL, caller), operands->info, sizeof(int), error);
  if (!status) status = check_reflectors_wanted(plan, operands, caller, error);
  if (!status) status = check_aliases(plan, operands, caller, error);
  for (const bqr_use *use = plan->operation->uses; use->place && !status; use++)
    status = check_wanted(plan, use, bqr_address_at(operands, (int)use->place), caller, error);
  return status;
}

batchqr_status bqr_check_workspace(const struct batchqr_plan *plan, const void *workspace, size_t bytes,
                                   bqr_error *error) {
  const size_t needed = plan->workspace_bytes;
  if (bytes < needed)
    return bqr_fail(error, BATCHQR_WORKSPACE_TOO_SMALL, "workspace holds %zu bytes, %zu are needed", bytes,
                    needed);
  if (needed > 0 && !workspace)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "workspace is NULL, %zu bytes are needed", needed);
  return needed > 0 ? check_address((bqr_name){"workspace"}, workspace, BQR_ALIGNMENT, error)
                    : BATCHQR_SUCCESS;
}
