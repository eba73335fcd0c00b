/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls with one thing wrong, drawn at random. Each function spoils one thing and says what the error has to
 * name; false: this call cannot be spoiled so. */
#include "plan.h"
#include "random_call.h"
#include "suite.h"

#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <string.h>

typedef struct spoiling {
  dice *d;
  const bqr_operation *operation;
  const struct batchqr_plan *plan; /* of the right call */
  wrong_call *w;
} spoiling;

__attribute__((format(printf, 2, 3))) static bool names(const spoiling *s, const char *format, ...) {
  va_list args;
  va_start(args, format);
  vsnprintf(s->w->named, sizeof s->w->named, format, args);
  va_end(args);
  return true;
}

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
static bool is_strided(const spoiling *s, const bqr_use *use) {
  return storage_of(s, use)->layout == BATCHQR_STRIDED && !is_optional(use);
}

static void *address_of(const spoiling *s, const bqr_use *use) {
  return bqr_address_at(&s->w->operands, (int)use->place);
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
  return (address_of(s, use) != (void *)1 || is_optional(use)) && names(s, "%s = ", name_of(s, use).text);
}

static bool misaligned_info(const spoiling *s) {
  s->w->operands.info = (int *)(void *)((char *)s->w->operands.info + 1);
  return names(s, "%s = ", name_of(s, NULL).text);
}

static bool same_address(const spoiling *s) {
  const bqr_use *use = draw_use(s), *other = draw_use(s);
  if (other >= use || !is_there(s, use) || !is_there(s, other) || !address_of(s, other)) return false;
  if (!address_of(s, use) || !((use->access | other->access) & BQR_WRITTEN)) return false;
  if ((use->access & BQR_MAY_BE_A) && other->place == BQR_A) return false;
  set_address(s, use, address_of(s, other));
  return names(s, "%s ", name_of(s, use).text);
}

static bool same_as_info(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  s->w->operands.info = address_of(s, use);
  return is_there(s, use) && address_of(s, use) && names(s, "%s is the same", name_of(s, NULL).text);
}

/* --- storage */

static bool no_layout(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->layout = (batchqr_layout)roll(s->d, 2, 9);
  return names(s, "batch.%s.layout", place_of(use));
}

static bool negative_stride(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->stride = -roll(s->d, 1, 1000);
  return is_strided(s, use) && names(s, "batch.%s.stride", place_of(use));
}

static bool endless_stride(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->stride = INT64_MAX - roll(s->d, 0, 1000);
  return is_strided(s, use) && s->w->batch.count > 1 && names(s, "batch.%s.stride", place_of(use));
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
         elements_of_others(s, use) > 0 && names(s, "batch.%s.stride", place_of(use));
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
  if (use->kind != BQR_MATRIX || is_optional(use) || storage_of(s, use)->ld_array || s->w->batch.count == 0)
    return false;
  storage_of(s, use)->ld = bqr_max(1, most_rows(s, use)) - roll(s->d, 1, 20);
  return names(s, "batch.%s.ld", place_of(use));
}

static bool needless_lds(const spoiling *s) {
  static const int any = 100;
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->ld_array = &any;
  return use->kind == BQR_MATRIX && s->w->batch.sizes == BATCHQR_UNIFORM &&
         names(s, "batch.%s.ld_array", place_of(use));
}

/* --- enums and sizes */

static bool no_type(const spoiling *s) {
  s->w->batch.type = (batchqr_type)roll(s->d, 4, 99);
  return names(s, "batch.type");
}

static bool no_sizes(const spoiling *s) {
  s->w->batch.sizes = (batchqr_sizes)roll(s->d, 3, 99);
  return names(s, "batch.sizes");
}

static bool no_side(const spoiling *s) {
  s->w->batch.side = (batchqr_side)roll(s->d, 2, 99);
  return s->operation->reads_side && names(s, "side");
}

static bool no_trans(const spoiling *s) {
  s->w->batch.trans = (batchqr_trans)roll(s->d, 3, 99);
  return s->operation->reads_trans && names(s, "trans");
}

static bool plain_transpose(const spoiling *s) {
  s->w->batch.trans = BATCHQR_TRANS;
  return s->operation->reads_trans && type_is_complex(s->w->batch.type) && names(s, "trans");
}

static bool no_triangle(const spoiling *s) {
  s->w->batch.uplo = (batchqr_uplo)roll(s->d, 2, 99);
  return s->operation->reads_uplo && names(s, "batch.uplo");
}

static bool no_rank(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  if (!s->operation->finds_rank) return false;
  switch (roll(s->d, 0, 2)) {
  case 0:
    b->kmax = -roll(s->d, 1, 99);
    return names(s, "batch.kmax");
  case 1:
    b->abstol = NAN;
    return names(s, "batch.abstol");
  default:
    b->reltol = NAN;
    return names(s, "batch.reltol");
  }
}

static bool not_square(const spoiling *s) {
  s->w->batch.m++;
  return s->operation->square && s->w->batch.sizes == BATCHQR_UNIFORM && names(s, "batch.m");
}

/* Rows that are not adjacent, of what is stored by columns only. */
static bool by_rows(const spoiling *s) {
  const bqr_use *use = draw_use(s);
  storage_of(s, use)->row_stride = roll(s->d, 2, 99);
  return use->kind == BQR_MATRIX && !(use->access & (BQR_STRIDES | BQR_OPTIONAL)) &&
         names(s, "batch.%s.row_stride", place_of(use));
}

static bool not_zero(const spoiling *s) {
  const int words = (int)(sizeof s->w->batch.reserved / sizeof s->w->batch.reserved[0]),
            i = roll(s->d, 0, words - 1);
  s->w->batch.reserved[i] = (uint64_t)roll(s->d, 1, INT_MAX);
  return names(s, "batch.reserved[%d]", i);
}

static bool negative_count(const spoiling *s) {
  s->w->batch.count = -roll(s->d, 1, 99);
  return names(s, "batch.count");
}

static bool negative_size(const spoiling *s) {
  const int which = roll(s->d, 0, s->operation->k ? 2 : 1);
  batchqr_batch *b = &s->w->batch;
  *(int *[]){&b->m, &b->n, &b->k}[which] = -roll(s->d, 1, 99);
  const bool one_k = which == 2 && !b->k_array && s->operation->k == BQR_RIGHT_HAND_SIDES && b->count > 0;
  return (b->sizes != BATCHQR_HOST_SIZES || one_k) && names(s, "batch.%c", "mnk"[which]);
}

static bool too_many_reflectors(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  if (s->operation->k != BQR_REFLECTORS || b->sizes != BATCHQR_UNIFORM) return false;
  b->k = (s->operation->reads_side && b->side == BATCHQR_LEFT ? b->m : b->n) + roll(s->d, 1, 99);
  return names(s, "batch.k");
}

/* As GEQRF leaves its batch. */
static bool forgotten_reflectors(const spoiling *s) {
  batchqr_batch *b = &s->w->batch;
  if (s->operation->k != BQR_REFLECTORS || b->sizes != BATCHQR_UNIFORM || b->count == 0) return false;
  const bool empty = b->m == 0 || b->n == 0 || b->k == 0;
  b->k = 0;
  return !empty && names(s, "batch.k = 0");
}

static bool too_wide(const spoiling *s) {
  s->w->batch.n = s->w->batch.m + roll(s->d, 1, 99);
  return s->operation->tall && s->w->batch.sizes == BATCHQR_UNIFORM && names(s, "batch.n");
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
  return names(s, "batch.%s%s%s[%d]", owner ? owner : "", owner ? "." : "", arrays[which].field, i);
}

/* --- what there is besides batch and operands */

static bool no_batch(const spoiling *s) {
  s->w->no_batch = true;
  return s->w->caller == BQR_PLANNED && names(s, "batch is NULL");
}

static bool no_operation(const spoiling *s) {
  s->w->op = (batchqr_op)roll(s->d, BQR_NUM_ROUTINES, 99);
  return s->w->caller == BQR_PLANNED && names(s, "op = ");
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
    return names(s, "workspace holds");
  }
}

/* --- all */

static bool (*const spoilings[])(const spoiling *) = {no_address,
                                                      misaligned,
                                                      misaligned_info,
                                                      same_address,
                                                      same_as_info,
                                                      no_layout,
                                                      negative_stride,
                                                      endless_stride,
                                                      overlapping,
                                                      small_ld,
                                                      needless_lds,
                                                      no_type,
                                                      no_sizes,
                                                      no_side,
                                                      no_trans,
                                                      plain_transpose,
                                                      not_zero,
                                                      negative_count,
                                                      negative_size,
                                                      too_many_reflectors,
                                                      too_wide,
                                                      no_array,
                                                      wrong_array,
                                                      no_batch,
                                                      no_operation,
                                                      no_triangle,
                                                      no_rank,
                                                      not_square,
                                                      by_rows,
                                                      no_plan,
                                                      no_operands,
                                                      wrong_workspace,
                                                      forgotten_reflectors};

wrong_call draw_wrong_call(dice *d, const trial *t, batchqr_handle_t handle, const batchqr_batch *batch,
                           const batchqr_operands *operands, const struct batchqr_plan *plan) {
  for (;;) {
    wrong_call w = {.t = t,
                    .handle = handle,
                    .caller = t->routine->call && chance(d, 2) ? BQR_ONE_CALL : BQR_PLANNED,
                    .op = t->op,
                    .batch = *batch,
                    .operands = *operands,
                    .status = BATCHQR_INVALID_ARGUMENT};
    const spoiling s = {d, t->operation, plan, &w};
    const int which = roll(d, 0, (int)(sizeof spoilings / sizeof spoilings[0]) - 1);
    if (spoilings[which](&s)) return w;
    free_wrong_call(&w);
  }
}

static batchqr_status execute(const wrong_call *w, batchqr_plan_t plan) {
  const batchqr_backend backend = batchqr_get_backend(w->handle);
  const size_t bytes = batchqr_plan_workspace(plan);
  char *workspace = memory_alloc(backend, bytes + 256);
  const batchqr_status status = batchqr_plan_execute(
      w->handle, w->no_plan ? NULL : plan, w->no_operands ? NULL : &w->operands,
      w->no_workspace ? NULL : workspace + w->workspace_off, bytes - (size_t)w->workspace_short);
  memory_sync(backend);
  memory_free(backend, workspace);
  return status;
}

batchqr_status make_wrong_call(const wrong_call *w) {
  const batchqr_batch *batch = w->no_batch ? NULL : &w->batch;
  if (w->caller == BQR_ONE_CALL) {
    const batchqr_status status = w->t->routine->call(w->handle, batch, &w->operands);
    memory_sync(batchqr_get_backend(w->handle));
    return status;
  }
  batchqr_plan_t plan;
  batchqr_status status = batchqr_plan_create(w->handle, w->op, batch, &plan);
  if (!status) status = execute(w, plan);
  batchqr_plan_destroy(plan);
  return status;
}

void free_wrong_call(wrong_call *w) {
  free(w->array);
  w->array = NULL;
}
