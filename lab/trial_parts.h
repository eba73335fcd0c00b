/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of trial.h share. */
#ifndef BQR_LAB_TRIAL_PARTS_H
#define BQR_LAB_TRIAL_PARTS_H

#include "trial.h"

/* The uses of a trial's operation, one after another. */
#define FOR_USES(use, t) for (const bqr_use *use = (t)->operation->uses; use->place; use++)

/* Whether the operand is an array of its own; else it is A, or NULL. */
static inline bool trial_has(const trial *t, const bqr_use *use) {
  const bool in_place = t->in_place && (use->access & BQR_MAY_BE_A);
  const bool left_out = t->no_optional && (use->access & BQR_OPTIONAL);
  return !in_place && !left_out;
}

static inline bool trial_is_a(const trial *t, const bqr_use *use) {
  return t->in_place && (use->access & BQR_MAY_BE_A);
}

static inline bqr_shape trial_shape(const trial *t, const trial_member *x, const bqr_use *use) {
  return bqr_shape_of(use, &(batchqr_batch){.side = t->side}, (bqr_sizes){x->m, x->n, x->k});
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
