/* SPDX-License-Identifier: BSD-3-Clause */
#include "arguments.h"
#include "device.h"
#include <stdio.h>
#include <string.h>

const bqr_names bqr_names_planned = {.operand = {"operands.a", "operands.c", "operands.r", "operands.tau"},
                                     .info = "operands.info",
                                     .norms = "operands.norms",
                                     .range = "operands.range"};

typedef struct check {
  batchqr_op op;
  const batchqr_batch *batch;
  const bqr_names *names;
  bqr_error *error;
} check;

/* What the caller calls something; the text lives in the struct. */
typedef struct name {
  char text[64];
} name;

static name scalar_name(const check *c, const char *field) {
  name n;
  snprintf(n.text, sizeof n.text, "%s%s", c->names->typed ? "" : "batch.", field);
  return n;
}

/* batch.m, or batch.m_array[17]. */
static name size_name(const check *c, const char *field, int64_t i) {
  name n = scalar_name(c, field);
  bool one_for_all = *field == 'k' && !c->batch->k_array;
  if (c->batch->sizes == BATCHQR_HOST_SIZES && !one_for_all)
    snprintf(n.text, sizeof n.text, "batch.%s_array[%lld]", field, (long long)i);
  return n;
}

static const char *const matrix_names[] = {"a", "c", "r"};

/* batch.a.ld, or batch.a.ld_array[17]. */
static name ld_name(const check *c, int matrix, int64_t i) {
  name n;
  snprintf(n.text, sizeof n.text, "ld%s", matrix_names[matrix]);
  if (bqr_batch_storage(c->batch, matrix)->ld_array)
    snprintf(n.text, sizeof n.text, "batch.%s.ld_array[%lld]", matrix_names[matrix], (long long)i);
  else if (!c->names->typed)
    snprintf(n.text, sizeof n.text, "batch.%s.ld", matrix_names[matrix]);
  return n;
}

static name stride_name(const check *c, int operand) {
  name n;
  if (operand == BQR_TAU) return scalar_name(c, "stride_tau");
  if (c->names->typed)
    snprintf(n.text, sizeof n.text, "stride_%s", matrix_names[operand]);
  else
    snprintf(n.text, sizeof n.text, "batch.%s.stride", matrix_names[operand]);
  return n;
}

#define INVALID(c, ...) bqr_fail((c)->error, BATCHQR_INVALID_ARGUMENT, __VA_ARGS__)

/* --- enums and counts */

static batchqr_status check_enum(const check *c, name called, int value, int last, const char *what) {
  if (value >= 0 && value <= last) return BATCHQR_SUCCESS;
  return INVALID(c, "%s = %d is not a %s", called.text, value, what);
}

/* side and trans are arguments of their own in the one-call tier. */
static name way_name(const check *c, const char *field) {
  name n;
  snprintf(n.text, sizeof n.text, "%s%s", c->names == &bqr_names_planned ? "batch." : "", field);
  return n;
}

batchqr_status bqr_check_enums(batchqr_op op, const batchqr_batch *b, const bqr_names *names,
                               bqr_error *error) {
  const check all = {op, b, names, error}, *c = &all;
  batchqr_status status = check_enum(c, scalar_name(c, "type"), (int)b->type, BATCHQR_Z, "batchqr_type");
  if (!status)
    status = check_enum(c, scalar_name(c, "layout"), (int)b->layout, BATCHQR_POINTERS, "batchqr_layout");
  if (!status)
    status = check_enum(c, scalar_name(c, "sizes"), (int)b->sizes, BATCHQR_DEVICE_SIZES, "batchqr_sizes");
  if (status || (op != BATCHQR_ORMQR && op != BATCHQR_GELS)) return status;
  if (op == BATCHQR_ORMQR)
    status = check_enum(c, way_name(c, "side"), (int)b->side, BATCHQR_RIGHT, "batchqr_side");
  if (!status)
    status = check_enum(c, way_name(c, "trans"), (int)b->trans, BATCHQR_CONJ_TRANS, "batchqr_trans");
  if (!status && b->trans == BATCHQR_TRANS && (b->type == BATCHQR_C || b->type == BATCHQR_Z))
    return INVALID(c, "%s = BATCHQR_TRANS with a complex type: %c^H is BATCHQR_CONJ_TRANS",
                   way_name(c, "trans").text, op == BATCHQR_ORMQR ? 'Q' : 'A');
  return status;
}

static batchqr_status check_arrays(const check *c) {
  const batchqr_batch *b = c->batch;
  if (b->count < 0)
    return INVALID(c, "%s = %lld is negative", scalar_name(c, "count").text, (long long)b->count);
  if (b->sizes != BATCHQR_UNIFORM) {
    if (b->count > 0 && !b->m_array) return INVALID(c, "batch.m_array is NULL");
    if (b->count > 0 && !b->n_array) return INVALID(c, "batch.n_array is NULL");
    return BATCHQR_SUCCESS;
  }
  for (int x = 0; x < BQR_NUM_MATRICES; x++)
    if (bqr_op_uses(c->op, x) && bqr_batch_storage(b, x)->ld_array)
      return INVALID(c, "batch.%s.ld_array is not NULL, but batch.sizes is BATCHQR_UNIFORM", matrix_names[x]);
  return BATCHQR_SUCCESS;
}

/* --- sizes */

static batchqr_status check_size(const check *c, const char *field, int value, int64_t i) {
  if (value >= 0) return BATCHQR_SUCCESS;
  return INVALID(c, "%s = %d is negative", size_name(c, field, i).text, value);
}

/* The operation's own rules. Upper bounds need not obey them: members are checked on the device. */
static batchqr_status check_reflectors(const check *c, bqr_sizes s, int64_t i) {
  batchqr_status status = check_size(c, "k", s.k, i);
  if (status || c->op == BATCHQR_GELS || c->batch->sizes == BATCHQR_DEVICE_SIZES) return status;
  if (c->op == BATCHQR_ORGQR && s.n > s.m)
    return INVALID(c, "%s = %d is larger than m = %d", size_name(c, "n", i).text, s.n, s.m);
  bool left = c->batch->side == BATCHQR_LEFT;
  int fit = c->op == BATCHQR_ORGQR || !left ? s.n : s.m;
  if (s.k > fit)
    return INVALID(c, "%s = %d is larger than %s = %d", size_name(c, "k", i).text, s.k,
                   c->op == BATCHQR_ORGQR || !left ? "n" : "m", fit);
  return status;
}

static batchqr_status check_sizes(const check *c) {
  int64_t members = bqr_visible_members(c->batch);
  for (int64_t i = 0; i < members; i++) {
    bqr_sizes s = bqr_member_sizes(c->op, c->batch, i);
    batchqr_status status = check_size(c, "m", s.m, i);
    if (!status) status = check_size(c, "n", s.n, i);
    if (!status && bqr_op_has_k(c->op)) status = check_reflectors(c, s, i);
    if (status) return status;
  }
  return BATCHQR_SUCCESS;
}

/* --- storage */

/* Leading dimensions on the device cannot be looked at. */
static bool ld_is_hidden(const check *c, const batchqr_storage *s) {
  return c->batch->sizes == BATCHQR_DEVICE_SIZES && s->ld_array;
}

static const char *rows_name(const check *c, int matrix) {
  if (matrix == BQR_R) return "min(m, n)";
  if (c->op == BATCHQR_GELS && matrix == BQR_C) return "max(m, n)";
  return c->op == BATCHQR_ORMQR && matrix == BQR_A && c->batch->side == BATCHQR_RIGHT ? "n" : "m";
}

static batchqr_status check_ld(const check *c, int matrix, int ld, int rows, int64_t i) {
  if (ld >= bqr_max(1, rows)) return BATCHQR_SUCCESS;
  name of_member = {""};
  if (c->batch->sizes == BATCHQR_HOST_SIZES && !bqr_batch_storage(c->batch, matrix)->ld_array)
    snprintf(of_member.text, sizeof of_member.text, " of member %lld", (long long)i);
  return INVALID(c, "%s = %d is smaller than max(1, %s) = %d%s", ld_name(c, matrix, i).text, ld,
                 rows_name(c, matrix), bqr_max(1, rows), of_member.text);
}

/* Elements from a member's first one to behind its last one. */
static int64_t extent(bqr_shape shape, int ld) {
  return shape.rows > 0 && shape.cols > 0 ? (int64_t)(shape.cols - 1) * ld + shape.rows : 0;
}

/* Whether all members lie below each other inside one leading dimension, which is no overlap either. */
static bool members_below_each_other(const check *c, int matrix) {
  const batchqr_storage *s = bqr_batch_storage(c->batch, matrix);
  bool host = c->batch->sizes == BATCHQR_HOST_SIZES;
  int64_t members = bqr_visible_members(c->batch);
  if (s->ld_array || s->stride > s->ld) return false;
  for (int64_t i = 0; i < members; i++) {
    int rows = bqr_operand_shape(c->op, c->batch, matrix, bqr_member_sizes(c->op, c->batch, i)).rows;
    int64_t place = host ? i : c->batch->count - 1, start;
    bool last = host && i == c->batch->count - 1;
    if (__builtin_mul_overflow(place, s->stride, &start) || start > s->ld - rows ||
        (!last && rows > s->stride))
      return false;
  }
  return true;
}

static batchqr_status fail_overlap(const check *c, int operand, bqr_shape shape, int ld, int64_t stride,
                                   int64_t i) {
  name who = {"members"};
  bool host = c->batch->sizes == BATCHQR_HOST_SIZES;
  if (host) snprintf(who.text, sizeof who.text, "member %lld", (long long)i);
  const char *what = host ? "overlaps the next" : "overlap";
  if (operand == BQR_TAU)
    return INVALID(c, "%s = %lld: %s of %d elements %s", stride_name(c, operand).text, (long long)stride,
                   who.text, shape.rows, what);
  return INVALID(c, "%s = %lld: %s of %d x %d with ld %d %s", stride_name(c, operand).text, (long long)stride,
                 who.text, shape.rows, shape.cols, ld, what);
}

/* That no address needs more than 63 bits: of `count` members a stride apart, the last of so many elements.
 */
static bool addressable(int64_t count, int64_t stride, int64_t largest, size_t element_bytes) {
  int64_t elements, bytes;
  return !__builtin_mul_overflow(count > 0 ? count - 1 : 0, stride, &elements) &&
         !__builtin_add_overflow(elements, largest, &elements) &&
         !__builtin_mul_overflow(elements, (int64_t)element_bytes, &bytes);
}

static batchqr_status check_range(const check *c, int operand, int64_t stride, int64_t largest) {
  if (addressable(c->batch->count, stride, largest, bqr_type_bytes(c->batch->type))) return BATCHQR_SUCCESS;
  return INVALID(c, "%s = %lld: %lld members are beyond all addresses", stride_name(c, operand).text,
                 (long long)stride, (long long)c->batch->count);
}

static batchqr_status check_strided(const check *c, int operand, int64_t stride) {
  if (stride < 0) return INVALID(c, "%s = %lld is negative", stride_name(c, operand).text, (long long)stride);
  const batchqr_storage *s = operand == BQR_TAU ? NULL : bqr_batch_storage(c->batch, operand);
  bool apart_anyway =
      !bqr_op_writes(c->op, operand) || c->batch->count <= 1 || (s && members_below_each_other(c, operand));
  int64_t members = s && ld_is_hidden(c, s) ? 0 : bqr_visible_members(c->batch), largest = 0;
  for (int64_t i = 0; i < members; i++) {
    bqr_shape shape = bqr_operand_shape(c->op, c->batch, operand, bqr_member_sizes(c->op, c->batch, i));
    int ld = !s ? 1 : s->ld_array ? s->ld_array[i] : s->ld;
    int64_t elements = extent(shape, ld);
    bool last = i == c->batch->count - 1;
    if (!apart_anyway && !last && elements > stride) return fail_overlap(c, operand, shape, ld, stride, i);
    if (elements > largest) largest = elements;
  }
  return check_range(c, operand, stride, largest);
}

static batchqr_status check_storage(const check *c, int matrix) {
  const batchqr_storage *s = bqr_batch_storage(c->batch, matrix);
  int64_t members = ld_is_hidden(c, s) ? 0 : bqr_visible_members(c->batch);
  for (int64_t i = 0; i < members; i++) {
    bqr_shape shape = bqr_operand_shape(c->op, c->batch, matrix, bqr_member_sizes(c->op, c->batch, i));
    batchqr_status status = check_ld(c, matrix, s->ld_array ? s->ld_array[i] : s->ld, shape.rows, i);
    if (status) return status;
  }
  return c->batch->layout == BATCHQR_STRIDED ? check_strided(c, matrix, s->stride) : BATCHQR_SUCCESS;
}

batchqr_status bqr_check_batch(batchqr_op op, const batchqr_batch *batch, const bqr_names *names,
                               bqr_error *error) {
  check c = {op, batch, names, error};
  batchqr_status status = check_arrays(&c);
  if (!status) status = check_sizes(&c);
  for (int x = 0; x < BQR_NUM_MATRICES && !status; x++)
    if (bqr_op_uses(op, x)) status = check_storage(&c, x);
  if (!status && bqr_op_uses(op, BQR_TAU) && batch->layout == BATCHQR_STRIDED)
    status = check_strided(&c, BQR_TAU, batch->stride_tau);
  return status;
}

/* --- operands */

/* The GPU loads whole elements; the CPU needs what its compiler would give an array. */
static size_t alignment(const struct batchqr_plan *plan) {
  if (plan->batch.layout == BATCHQR_POINTERS) return sizeof(void *);
  return plan->device.backend == BATCHQR_BACKEND_CUDA ? bqr_type_bytes(plan->batch.type)
                                                      : bqr_real_bytes(plan->batch.type);
}

static batchqr_status check_address(const char *called, const void *address, size_t align, bqr_error *error) {
  if ((uintptr_t)address % align == 0) return BATCHQR_SUCCESS;
  return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s = %p is not aligned to %zu bytes", called, address,
                  align);
}

/* An operand that a call uses, of which at least one element is there. */
typedef struct place {
  const void *address;
  const char *called;
  int operand;  /* -1: info, norms or range */
  bool written; /* by the call */
} place;
enum { MOST_PLACES = BQR_NUM_OPERANDS + 3 };

static int list_places(const struct batchqr_plan *plan, const batchqr_operands *operands,
                       const bqr_names *names, place *places) {
  int n = 0;
  for (int x = 0; x < BQR_NUM_OPERANDS; x++)
    if (plan->touches[x])
      places[n++] = (place){bqr_operand(operands, x), names->operand[x], x, bqr_op_writes(plan->op, x)};
  if (plan->batch.count == 0) return n;
  if (operands->info) places[n++] = (place){operands->info, names->info, -1, true};
  if (plan->op == BATCHQR_GELS && operands->norms)
    places[n++] = (place){operands->norms, names->norms, -1, true};
  if (plan->op == BATCHQR_R_RANGE) places[n++] = (place){operands->range, names->range, -1, true};
  return n;
}

/* Whether an operand may be A, stored alike. */
static bool may_be_a(batchqr_op op, int operand) {
  return op == BATCHQR_QR ? operand == BQR_C : op == BATCHQR_GEQR_R && operand == BQR_R;
}

/* Operands that are one another must be meant so. */
static batchqr_status check_aliases(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                    const bqr_names *names, bqr_error *error) {
  place places[MOST_PLACES];
  int n = list_places(plan, operands, names, places);
  for (int i = 1; i < n; i++)
    for (int j = i - 1; j >= 0; j--) {
      const place *x = &places[i], *y = &places[j];
      if (x->address != y->address || !(x->written || y->written)) continue;
      if (y->operand != BQR_A || !may_be_a(plan->op, x->operand))
        return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is the same address as %s", x->called,
                        y->called);
      if (!(x->operand == BQR_C ? plan->a_and_c_alike : plan->a_and_r_alike))
        return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                        "%s is %s, but batch.%s is not the storage of batch.a", x->called, y->called,
                        matrix_names[x->operand]);
    }
  return BATCHQR_SUCCESS;
}

/* Norms of different members must not be the same numbers. */
static batchqr_status check_norms(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                  const bqr_names *names, bqr_error *error) {
  if (plan->op != BATCHQR_GELS || !operands->norms) return BATCHQR_SUCCESS;
  int64_t stride = plan->batch.stride_norms, count = plan->batch.count;
  size_t bytes = bqr_real_bytes(plan->batch.type);
  if (count > 1 && stride < plan->most_rhs)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                    "batch.stride_norms = %lld is smaller than k = %d, and %s is not NULL", (long long)stride,
                    plan->most_rhs, names->norms);
  if (plan->most_rhs > 0 && !addressable(count, stride, plan->most_rhs, bytes))
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT,
                    "batch.stride_norms = %lld: %lld members are beyond all addresses", (long long)stride,
                    (long long)count);
  return check_address(names->norms, operands->norms, bytes, error);
}

static batchqr_status check_ranges(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                   const bqr_names *names, bqr_error *error) {
  if (plan->op != BATCHQR_R_RANGE || plan->batch.count == 0) return BATCHQR_SUCCESS;
  if (!operands->range) return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is NULL", names->range);
  return check_address(names->range, operands->range, bqr_real_bytes(plan->batch.type), error);
}

batchqr_status bqr_check_operands(const struct batchqr_plan *plan, const batchqr_operands *operands,
                                  const bqr_names *names, bqr_error *error) {
  for (int x = 0; x < BQR_NUM_OPERANDS; x++) {
    if (!bqr_op_uses(plan->op, x)) continue;
    const void *address = bqr_operand(operands, x);
    if (plan->touches[x] && !address)
      return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "%s is NULL", names->operand[x]);
    batchqr_status status = check_address(names->operand[x], address, alignment(plan), error);
    if (status) return status;
  }
  batchqr_status status = check_address(names->info, operands->info, sizeof(int), error);
  if (!status) status = check_aliases(plan, operands, names, error);
  if (!status) status = check_norms(plan, operands, names, error);
  return status ? status : check_ranges(plan, operands, names, error);
}

batchqr_status bqr_check_workspace(const struct batchqr_plan *plan, const void *workspace, size_t bytes,
                                   bqr_error *error) {
  size_t needed = plan->workspace_bytes;
  if (bytes < needed)
    return bqr_fail(error, BATCHQR_WORKSPACE_TOO_SMALL, "workspace holds %zu bytes, %zu are needed", bytes,
                    needed);
  if (needed > 0 && !workspace)
    return bqr_fail(error, BATCHQR_INVALID_ARGUMENT, "workspace is NULL, %zu bytes are needed", needed);
  return needed > 0 ? check_address("workspace", workspace, BQR_ALIGNMENT, error) : BATCHQR_SUCCESS;
}
