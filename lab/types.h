/* SPDX-License-Identifier: BSD-3-Clause */
/* Facts about the four element types; their sizes are in batch.h. */
#ifndef BQR_LAB_TYPES_H
#define BQR_LAB_TYPES_H

#include "batch.h"

#include <float.h>
#include <stdbool.h>

static inline bool type_is_complex(batchqr_type type) { return type == BATCHQR_C || type == BATCHQR_Z; }
static inline bool type_is_double(batchqr_type type) { return type == BATCHQR_D || type == BATCHQR_Z; }
/* Of the real numbers underneath. */
static inline batchqr_type type_real(batchqr_type type) {
  return type_is_double(type) ? BATCHQR_D : BATCHQR_S;
}
static inline char type_letter(batchqr_type type) { return "sdcz"[type]; }

/* The unit roundoff, 2^-24 or 2^-53: LAPACK's xLAMCH('Epsilon'), half of FLT_EPSILON and DBL_EPSILON. */
static inline double type_eps(batchqr_type type) {
  return type_is_double(type) ? DBL_EPSILON / 2 : FLT_EPSILON / 2;
}
/* The smallest positive number, subnormal: the spacing of numbers near zero. */
static inline double type_eta(batchqr_type type) {
  return type_is_double(type) ? DBL_MIN * DBL_EPSILON : (double)FLT_MIN * FLT_EPSILON;
}
static inline double type_max(batchqr_type type) { return type_is_double(type) ? DBL_MAX : FLT_MAX; }
static inline double type_min(batchqr_type type) { return type_is_double(type) ? DBL_MIN : FLT_MIN; }

/* Gives all matrices and tau one layout. */
static inline void set_layouts(batchqr_batch *batch, batchqr_layout layout) {
  batch->a.layout = batch->c.layout = batch->r.layout = batch->tau.layout = layout;
}

#endif
