/* SPDX-License-Identifier: BSD-3-Clause */
/* Which matrices have aligned columns. Leading dimensions and strides are known to a plan, the caller's
 * addresses are not: it takes them for aligned, unless the batch says that they need not be, and an execute
 * looks at those on which some family relies. */
#include "arguments.h"
#include "plan_build.h"

static bool is_multiple(int64_t elements, batchqr_type type) {
  return elements % BQR_COLUMN_ALIGNMENT * (int64_t)bqr_type_bytes(type) % BQR_COLUMN_ALIGNMENT == 0;
}

static bool storage_aligned(const batchqr_batch *batch, const batchqr_storage *s) {
  return !batch->unaligned && s->layout == BATCHQR_STRIDED && !s->ld_array && !bqr_by_strides(s) &&
         is_multiple(s->ld, batch->type) && (batch->count <= 1 || is_multiple(s->stride, batch->type));
}

/* A temporary starts at a multiple of BQR_ALIGNMENT; members of different sizes follow one another. */
static bool temporary_aligned(const bqr_builder *b, bqr_operand place) {
  const batchqr_batch *batch = &b->plan->batch;
  if (b->order || batch->sizes == BATCHQR_DEVICE_SIZES) return false;
  const bqr_dims s = bqr_member_sizes(b->plan->operation, batch, 0);
  const int rows = bqr_temporary_rows((int)place, batch, s);
  return is_multiple(rows, batch->type) &&
         (batch->count <= 1 || is_multiple(bqr_temporary_elements((int)place, batch, s), batch->type));
}

/* Where the program's step finds a matrix, as bind.c does. */
static bqr_operand place_of(const struct batchqr_plan *plan, bqr_operand place, bool copied) {
  return place == BQR_WORK_A && !copied ? plan->stand_ins[BQR_A] : place;
}

/* An operation's steps may name places that it does not have. */
static bool is_there(const struct batchqr_plan *plan, bqr_operand place) {
  if (place == BQR_NO_OPERAND) return false;
  return place >= BQR_NUM_OPERANDS || bqr_use_at(plan->operation, (int)place);
}

/* Whether it may be the caller's A, too. */
static bool may_be_a(const struct batchqr_plan *plan, bqr_operand place) {
  return place == BQR_COPY_OF_A && plan->operation->program && plan->operation->program->copies_aliased_a;
}

static bool is_aligned(const bqr_builder *b, bqr_operand place, bool copied) {
  const struct batchqr_plan *plan = b->plan;
  place = place_of(plan, place, copied);
  if (!is_there(plan, place)) return true;
  if (place < BQR_NUM_OPERANDS)
    return storage_aligned(&plan->batch, bqr_storage_at(&plan->batch, (int)place));
  return temporary_aligned(b, place) &&
         (!may_be_a(plan, place) || storage_aligned(&plan->batch, &plan->batch.a));
}

/* What is only read may be aligned in whatever way. */
static bool writes_a(const bqr_builder *b, const bqr_step *step) {
  const bqr_use *a = bqr_use_at(bqr_registry_operation(b->planner->registry, step->op), BQR_A);
  return !a || a->access & BQR_WRITTEN;
}

bool bqr_plan_is_aligned(const bqr_builder *b, const bqr_step *step, bool copied) {
  return (!writes_a(b, step) || is_aligned(b, step->a, copied)) && is_aligned(b, step->c, copied);
}

static void note(struct batchqr_plan *plan, bqr_operand place, bool copied) {
  place = place_of(plan, place, copied);
  if (is_there(plan, place) && place < BQR_NUM_OPERANDS) plan->aligned[place] = true;
  if (may_be_a(plan, place)) plan->aligned[BQR_A] = true;
}

void bqr_plan_note_alignment(const bqr_builder *b) {
  struct batchqr_plan *plan = b->plan;
  for (int i = 0; i < plan->num_groups; i++) {
    const bqr_group *g = &plan->groups[i];
    if (!g->family->trusts_alignment || !g->problem.aligned) continue;
    if (writes_a(b, &g->step)) note(plan, g->step.a, g->copied);
    note(plan, g->step.c, g->copied);
  }
}

bool bqr_addresses_aligned(const batchqr_operands *operands) {
  return ((uintptr_t)operands->a | (uintptr_t)operands->c) % BQR_COLUMN_ALIGNMENT == 0;
}
