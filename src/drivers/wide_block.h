/* SPDX-License-Identifier: BSD-3-Clause */
/* A wide block of a large member's columns, factored recursively (Elmroth and Gustavson: the left half, its
 * update of the right half, the right half, and T of both from T of each): V in its place in A, R aside, T.
 * All but the panels of 32 or 64 columns are matrix products. */
#ifndef BQR_SRC_DRIVERS_WIDE_BLOCK_H
#define BQR_SRC_DRIVERS_WIDE_BLOCK_H

#include "panel_steps.h"
#include "product_streams.h"

/* Panels of fewer rows are too far from orthogonal for bqr_wy_factor(). */
enum { BQR_WIDE_LEAST_ROWS = 128 };

/* How panels of one large member are asked for. */
extern const bqr_panel_kind bqr_wide_kind;
/* Those of members in the same launches, which bqr_geqrt_clusters() makes where bqr_wy_factor() does not. */
bqr_panel_kind bqr_wide_kind_of_many(const bqr_problem *problem);

typedef struct bqr_wide_block {
  bqr_problem problem; /* GEQRF of this member alone */
  bqr_args args;       /* likewise */
  bqr_panel_steps steps;
  const bqr_products *on; /* where it is factored */
  size_t size;            /* of an element */
  int width, origin;      /* columns of wide blocks, and this one's first row and column */
  char *a, *r, *t;        /* r: of all wide blocks, while V is in its place */
  int *counters;
  void *tall; /* of bqr_wy_tall() */
  int64_t lda, ldt;
  const int
      *done;  /* NULL, or what on the device tells that there is nothing to do: panels are there already */
  bool tried; /* bqr_wy_tall(), which `done` tells about */
  bqr_wy_many many; /* members that it is of; all have the same panels */
  bool all;         /* V and T of all panels are wanted, those of the member's last columns too */
} bqr_wide_block;

/* Addresses of elements, of V among them; T's rows and columns are counted as A's. */
static inline char *bqr_wide_in_a(const bqr_wide_block *b, int i, int j) {
  return b->a + (size_t)(i + j * b->lda) * b->size;
}
static inline char *bqr_wide_in_t(const bqr_wide_block *b, int i, int j) {
  return b->t + (size_t)(i - b->origin + (j - b->origin) * b->ldt) * b->size;
}

/* Reflectors of the steps s0 .. s1. */
int bqr_wide_reflectors(const bqr_wide_block *b, int s0, int s1);
/* Whether a step's reflectors are applied to other columns: else there are no V and T of it. */
bool bqr_wide_applied(const bqr_wide_block *b, int step);
/* Whether two panels are first tried at once: each of them would take several passes over A. */
bool bqr_wide_tall(const bqr_wide_block *b, int s0);

/* Columns from .. to of A := (I - V T^H V^H) A, with the reflectors of the steps s0 .. s1. */
batchqr_status bqr_wide_update(const bqr_wide_block *b, const bqr_products *on, int s0, int s1, int from,
                               int to);
/* Factors the columns of the steps s0 .. s1 and forms their V and, if asked for, T. */
batchqr_status bqr_wide_factor(const bqr_wide_block *b, int s0, int s1, bool with_t);
/* Kernels of that; products count as one. */
int bqr_wide_launches(const bqr_wide_block *b, int s0, int s1, bool with_t);

/* Loads all that; once for each plan. */
batchqr_status bqr_wide_prepare(const bqr_problem *problem, const bqr_device *device);

#endif
