/* SPDX-License-Identifier: BSD-3-Clause */
/* Wrong addresses, and operands that are stored wrongly. */
#include "suite.h"
#include "wrong_call.h"

#include <limits.h>
#include <string.h>

/* --- operands */

static const bqr_use *draw_use(const spoiling *s) {
  int uses = 0;
  while (s->operation->uses[uses].place) uses++;
  return &s->operation->uses[roll(s->d, 0, uses - 1)];
}

static batchqr_storage *storage_of(const spoiling *s, const bqr_use *use) {
  return (batchqr_storage *)bqr_storage_at(&s->w->batch, (int)use->place);
}

static const char *place_of(const bqr_use *use) { return bqr_places[use->place].name; }
static bool is_there(const spoiling *s, const bqr_use *use) { return s->plan->largest[use->place] > 0; }
static bool is_optional(const bqr_use *use) { return use->access & BQR_OPTIONAL; }
static void *address_of(const spoiling *s, const bqr_use *use) {
  return bqr_address_at(&s->w->operands, (int)use->place);
}

/* Whether it is looked at how the operand is stored: an optional one may not be wanted. */
static bool is_stored(const spoiling *s, const bqr_use *use) {
  const batchqr_storage *x = storage_of(s, use);
  if (!is_optional(use)) return true;
  return use->kind == BQR_MATRIX ? x->ld != 0 || x->ld_array : address_of(s, use) && is_there(s, use);
}

static bool is_strided(const spoiling *s, const bqr_use *use) {
  return storage_of(s, use)->layout == BATCHQR_STRIDED && is_stored(s, use);
}

static void set_address(const spoiling *s, const bqr_use *use, const void *address) {
  memcpy((char *)&s->w->operands + bqr_places[use->place].address, &address, sizeof address);
}

static bqr_name name_of(const spoiling *s, const bqr_use *use) { return bqr_operand_name(use, s->w->caller); }

static bool no_address(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  set_address(s, use, NULL);
  return is_there(s, use) && !is_optional(use) && names(s, "%s is NULL", name_of(s, use).text);
}

static bool misaligned(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  set_address(s, use, (char *)address_of(s, use) + 1);
  return (address_of(s, use) != (void *)1 || is_optional(use)) &&
         names(s, "%s = %p is not aligned", name_of(s, use).text, address_of(s, use));
}

static bool misaligned_info(const spoiling *s) {
  s->w->operands.info = (int *)(void *)((char *)s->w->operands.info + 1);
  return names(s, "%s = %p is not aligned", name_of(s, NULL).text, (void *)s->w->operands.info);
}

/* Whether an operand's address is one for another operand, as far as its alignment goes. */
static bool fits(const spoiling *s, const bqr_use *use, const bqr_use *other) {
  const batchqr_layout layout = storage_of(s, use)->layout;
  const batchqr_type type = s->w->batch.type;
  return layout == storage_of(s, other)->layout &&
         (layout == BATCHQR_POINTERS || bqr_kind_bytes(use->kind, type) <= bqr_kind_bytes(other->kind, type));
}

static bool same_address(const spoiling *s) {
  const bqr_use *use = draw_use(s), *other = draw_use(s);
  if (other >= use || !fits(s, use, other) || !is_there(s, use) || !is_there(s, other) ||
      !address_of(s, other))
    return false;
  if (!address_of(s, use) || !((use->access | other->access) & BQR_WRITTEN)) return false;
  if ((use->access & BQR_MAY_BE_A) && other->place == BQR_A) return false;
  set_address(s, use, address_of(s, other));
  return names(s, "%s is the same address as ", name_of(s, use).text);
}

static bool same_as_info(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  s->w->operands.info = address_of(s, use);
  return is_there(s, use) && address_of(s, use) && names(s, "%s is the same", name_of(s, NULL).text);
}

/* --- storage */

/* A vector that is given, of a batch that says there is none. */
static bool unannounced(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->stride = 0;
  return (use->access & BQR_ANNOUNCED) && is_strided(s, use) && address_of(s, use) &&
         names(s, "batch.%s.stride = 0: %s is not NULL", place_of(use), name_of(s, use).text);
}

static bool no_layout(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->layout = (batchqr_layout)roll(s->d, 2, 9);
  return names(s, "batch.%s.layout = %d is not", place_of(use), (int)storage_of(s, use)->layout);
}

static bool negative_stride(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->stride = -roll(s->d, 1, 1000);
  return is_strided(s, use) &&
         names(s, "batch.%s.stride = %lld is negative", place_of(use), (long long)storage_of(s, use)->stride);
}

static bool endless_stride(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->stride = INT64_MAX - roll(s->d, 0, 1000);
  return is_strided(s, use) && s->w->batch.count > 1 &&
         names(s, "batch.%s.stride = %lld: ", place_of(use), (long long)storage_of(s, use)->stride);
}

/* Elements of the largest member but the last. */
static int64_t elements_of_others(const spoiling *s, const bqr_use *use) {
  const trial *t = s->w->t;
  int64_t most = 0;
  for (int64_t i = 0; i + 1 < t->count; i++) {
    const trial_member *x = &t->members[i];
    const bqr_shape shape = bqr_shape_of(use, &s->w->batch, (bqr_dims){x->m, x->n, x->k});
    if ((int64_t)shape.rows * shape.cols > most) most = (int64_t)shape.rows * shape.cols;
  }
  return most;
}

static bool overlapping(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->stride = 0;
  return is_strided(s, use) && (use->access & BQR_WRITTEN) && s->w->batch.sizes != BATCHQR_DEVICE_SIZES &&
         elements_of_others(s, use) > 0 && names(s, "batch.%s.stride = 0: ", place_of(use));
}

/* Rows of the largest member. */
static int most_rows(const spoiling *s, const bqr_use *use) {
  const trial *t = s->w->t;
  int most = 0;
  for (int64_t i = 0; i < t->count; i++) {
    const trial_member *x = &t->members[i];
    most = bqr_max(most, bqr_shape_of(use, &s->w->batch, (bqr_dims){x->m, x->n, x->k}).rows);
  }
  return most;
}

static bool small_ld(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  batchqr_storage *x = storage_of(s, use);
  if (use->kind != BQR_MATRIX || x->ld_array || s->w->batch.count == 0) return false;
  x->ld = bqr_max(1, most_rows(s, use)) - roll(s->d, 1, 20);
  return is_stored(s, use) && names(s, "batch.%s.ld = %d", place_of(use), x->ld);
}

static bool needless_lds(const spoiling *s) {
  static const int any = 100;
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->ld_array = &any;
  return use->kind == BQR_MATRIX && s->w->batch.sizes == BATCHQR_UNIFORM &&
         names(s, "batch.%s.ld_array is not NULL", place_of(use));
}

/* An optional matrix that is wanted, of a batch that does not say how it is stored. */
static bool not_stored(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  batchqr_storage *x = storage_of(s, use);
  const bool wanted = is_optional(use) && is_there(s, use) && address_of(s, use);
  x->ld = 0;
  x->ld_array = NULL;
  return wanted && use->kind == BQR_MATRIX && address_of(s, use) != s->w->operands.a &&
         names(s, "%s is not NULL, but batch.%s.ld is 0", name_of(s, use).text, place_of(use));
}

/* Whether some operand is A already. */
static bool is_in_place(const spoiling *s) { return bqr_plan_aliases_a(s->plan, &s->w->operands); }

/* What may be A is A, but stored otherwise. */
static bool stored_apart(const spoiling *s) {
  const bqr_use *use = draw_use(s), *a = bqr_use_at(s->operation, BQR_A);
  batchqr_storage *x = storage_of(s, use);
  const batchqr_batch *b = &s->w->batch;
  if (!(use->access & BQR_MAY_BE_A) || !is_there(s, use) || !is_there(s, a) || b->keep_a || b->count < 2)
    return false;
  if (is_in_place(s)) return false;
  const bool by_columns = !bqr_by_strides(x) && !bqr_by_strides(&b->a);
  if (!is_strided(s, use) || !is_strided(s, a) || !by_columns) return false;
  set_address(s, use, s->w->operands.a);
  x->stride = (x->stride > b->a.stride ? x->stride : b->a.stride) + 1;
  return names(s, "but batch.%s is not the storage of batch.a", place_of(use));
}

/* --- any strides */

/* Rows that are not adjacent, of what is stored by columns only. */
static bool by_rows(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->row_stride = roll(s->d, 2, 99);
  return use->kind == BQR_MATRIX && !(use->access & BQR_STRIDES) && is_stored(s, use) &&
         names(s, "batch.%s.row_stride = %lld: ", place_of(use), (long long)storage_of(s, use)->row_stride);
}

/* Of what may be stored so, with leading dimensions of its members' own, or backwards though it is written.
 */
static bool wrong_rows(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  batchqr_storage *x = storage_of(s, use);
  const int row = roll(s->d, 2, 99);
  x->row_stride = x->ld_array ? row : -row;
  const bool visible = s->w->batch.sizes != BATCHQR_HOST_SIZES || s->w->batch.count == 1;
  return (use->access & BQR_STRIDES) &&
         (x->ld_array || (use->place != BQR_A && is_there(s, use) && visible)) &&
         names(s, "batch.%s.row_stride = %lld", place_of(use), (long long)x->row_stride);
}

/* A is both kept and overwritten. */
static bool kept_and_written(const spoiling *s) {
  const bqr_use *use = draw_use(s), *a = bqr_use_at(s->operation, BQR_A);
  batchqr_batch *b = &s->w->batch;
  const bool hidden = b->a.ld_array && b->sizes == BATCHQR_DEVICE_SIZES;
  if (!(a->access & BQR_STRIDES) || use->place == BQR_A || !(use->access & BQR_WRITTEN)) return false;
  b->keep_a = 1;
  if (hidden) return names(s, "batch.keep_a = 1: batch.a.ld_array must be NULL");
  set_address(s, use, b->count > 0 ? s->w->operands.a : NULL);
  return fits(s, use, a) && is_there(s, use) && is_there(s, a) && names(s, " is the same address as ");
}

const spoiler wrong_storages[] = {
    no_address,  misaligned,      misaligned_info, same_address,   same_as_info,     no_layout,
    unannounced, negative_stride, overlapping,     endless_stride, small_ld,         needless_lds,
    not_stored,  stored_apart,    by_rows,         wrong_rows,     kept_and_written, NULL};
