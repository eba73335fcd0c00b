/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of trial.h share. */
#ifndef BQR_LAB_TRIAL_PARTS_H
#define BQR_LAB_TRIAL_PARTS_H

#include "trial.h"

/* The uses of a trial's operation, one after another. */
#define FOR_USES(use, t) for (const bqr_use *use = (t)->operation->uses; use->place; use++)

/* Whether a part of the spectrum is asked for: else it must not be counted. */
static inline bool trial_has_range(const trial *t) { return t->il || t->iu || t->vl != 0 || t->vu != 0; }

static inline bool trial_left_out(const trial *t, const bqr_use *use) {
  const bool counts = t->operation->ranges && use->place == BQR_RANK;
  return (use->access & BQR_OPTIONAL) &&
         (t->no_optional || (t->left_out >> use->place & 1) || (counts && !trial_has_range(t)));
}

/* Whether the operand may be A, and fits in whatever A's size is. */
static inline bool trial_may_be_a(const trial *t, const bqr_use *use) {
  const bqr_use *a = bqr_use_at(t->operation, BQR_A);
  return (use->access & BQR_MAY_BE_A) && (use->rows == a->rows || use->rows == BQR_MIN_MN) &&
         !trial_left_out(t, use);
}

static inline bool trial_is_a(const trial *t, const bqr_use *use) {
  const bqr_use *first = t->operation->uses;
  while (first->place && !trial_may_be_a(t, first)) first++;
  return t->in_place && use == first;
}

/* Whether the operand is an array of its own; else it is A, or NULL. */
static inline bool trial_has(const trial *t, const bqr_use *use) {
  return !trial_is_a(t, use) && !trial_left_out(t, use);
}

static inline bqr_shape trial_shape(const trial *t, const trial_member *x, const bqr_use *use) {
  return bqr_shape_of(use, &(batchqr_batch){.side = t->side, .il = t->il, .iu = t->iu},
                      (bqr_dims){x->m, x->n, x->k});
}

/* Elements from a member's first to behind its last one. */
static inline int64_t trial_extent(const trial *t, const trial_member *x, const bqr_use *use) {
  return lab_extent(trial_shape(t, x, use), x->ld[use->place]);
}

static inline batchqr_storage *trial_storage(batchqr_batch *batch, int place) {
  return (batchqr_storage *)bqr_storage_at(batch, place);
}

/* Member i as routines.h sees it. */
lab_member trial_lab_member(const trial *t, int64_t i);

/* Makes the arrays of sizes, with what members claim. */
void trial_build_sizes(trial *t);

#endif
