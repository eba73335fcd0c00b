/* SPDX-License-Identifier: BSD-3-Clause */
/* The panels of a blocked factorization, one step for each 32 columns: which of them are children of the
 * factorization's problem (see bqr_family.child), and the arrays that make them batches of their own. The
 * last panels of square members may be one more child, the tail, see bqr_before_tail(). */
#ifndef BQR_SRC_DRIVERS_PANEL_STEPS_H
#define BQR_SRC_DRIVERS_PANEL_STEPS_H

#include "arena.h"
#include "wy/wy.h"

/* What panels are asked for. Where members differ in size it must not depend on the sizes or the number of a
 * member's neighbours, or its result would. */
typedef struct bqr_panel_kind {
  int rows; /* the first panel has at most so many; 0: what the problem says, all members being alike */
  bool many_threads; /* for each panel, or few: what is better depends on the number of members */
  bool tail;         /* members leave their last panels to another family, see bqr_before_tail() */
  int blocks;        /* of a cluster for each panel, see wy/geqrt_clusters.h; 0: what bqr_geqrt() takes */
} bqr_panel_kind;

typedef struct bqr_panel_steps {
  const bqr_problem *problem;
  const bqr_device *device;
  bqr_panel_kind kind;
  int count;
  int end;           /* of the columns that these steps' panels and updates have */
  bool tail;         /* members may have one, which is the panel of step `count` */
  bool later;        /* columns are brought into range when they are first read, not at the beginning */
  bqr_panels panels; /* arrays over all entries of the launch, in turn for each step */
  bqr_columns columns;
  void *workspace; /* of the panels' families */
} bqr_panel_steps;

/* Children are planned one by one, so a factorization has so many panels at most. Members with more of them
 * are larger than the memory of any GPU: a terabyte in single precision. */
enum { BQR_MOST_PANELS = 1 << 14 };
bool bqr_panel_steps_possible(const bqr_problem *problem, bqr_panel_kind kind);

/* Of a driver's family: see bqr_family.child. The children are the panels of which bqr_geqrt() does not make
 * T, too, and then the tail, if there is one. */
bool bqr_panel_steps_child(const bqr_problem *problem, const bqr_device *device, bqr_panel_kind kind,
                           int number, bqr_problem *child);

/* Prepares the panels' families; once for each plan. */
batchqr_status bqr_panel_steps_prepare(const bqr_problem *problem, const bqr_device *device,
                                       bqr_panel_kind kind);
/* The workspace laid out. */
bqr_panel_steps bqr_panel_steps_of(const bqr_problem *problem, const bqr_device *device, bqr_panel_kind kind,
                                   bqr_arena *arena);
/* Kernels of begin and end, one less if `later`; and of one panel. */
enum { BQR_PANEL_STEPS_LAUNCHES = BQR_PANELS_LAUNCHES };
int bqr_panel_steps_launches(const bqr_panel_steps *steps, int step);

/* Brings all columns into range, unless `later`; factors one step's panels, which are children; takes the
 * columns' scales out of R and writes info. */
batchqr_status bqr_panel_steps_begin(const bqr_panel_steps *steps, const bqr_args *args,
                                     batchqr_stream stream);
batchqr_status bqr_panel_steps_factor(const bqr_panel_steps *steps, const bqr_args *args, int step,
                                      batchqr_stream stream);
/* Whether bqr_geqrt() factors a step's panels and makes T of them, whatever their members' sizes; and what
 * launches it. t: see bqr_geqrt(). */
bool bqr_panel_steps_make_t(const bqr_panel_steps *steps, int step);
batchqr_status bqr_panel_steps_geqrt(const bqr_panel_steps *steps, const bqr_args *args, int step, void *t,
                                     batchqr_stream stream);
/* The same of panels by clusters, whose T are stride_t elements apart. */
batchqr_status bqr_panel_steps_clusters(const bqr_panel_steps *steps, const bqr_args *args, int step, void *t,
                                        int64_t stride_t, batchqr_stream stream);
/* What the family of a panel just factored has left in its workspace for bqr_wy_unfold(), see
 * bqr_family.leaves_tops; NULL: nothing. */
const void *bqr_panel_steps_top(const bqr_panel_steps *steps, int step);
/* Whether a panel's family takes several passes over it, as one with a top does. */
bool bqr_panel_steps_tall(const bqr_panel_steps *steps, int step);
batchqr_status bqr_panel_steps_end(const bqr_panel_steps *steps, const bqr_args *args, batchqr_stream stream);

#endif
