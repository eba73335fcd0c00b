/* SPDX-License-Identifier: BSD-3-Clause */
/* The panels of a blocked factorization, one step for each 32 columns: the families that factor them, and
 * the arrays that make them batches of their own. What members have of a tail is a step more. */
#ifndef BQR_SRC_LARGE_STEPS_H
#define BQR_SRC_LARGE_STEPS_H

#include "arena.h"
#include "wy/wy.h"
#include "panel.h"

/* Which family factors the panels. Where members differ in size it must not depend on the sizes or the number
 * of a member's neighbours, or its result would. */
typedef struct bqr_panel_rule {
  int rows;  /* the first panel has at most so many; 0: what the problem says, all members being alike */
  bool wide; /* many threads for a panel, or few: what is better depends on the number of members */
  bool tail; /* members leave their last panels to another family, see bqr_before_tail() */
} bqr_panel_rule;

typedef struct bqr_steps {
  const bqr_problem *problem;
  const bqr_device *device;
  bqr_panel_rule rule;
  const bqr_panel *chosen; /* for each step; NULL: chosen when asked for */
  int count;
  int end;           /* of the columns that these steps' panels and updates have */
  bool tail;         /* members may have one, which is the panel of step `count` */
  bool later;        /* columns are brought into range when they are first read, not at the beginning */
  bqr_panels panels; /* arrays over all entries of the launch, in turn for each step */
  bqr_columns columns;
  void *workspace; /* of the panels' families */
} bqr_steps;

/* Whether there is a family for all panels of the problem. */
bool bqr_steps_possible(const bqr_problem *problem, const bqr_device *device, bqr_panel_rule rule);

/* What a plan keeps: chooses the family of each step's panels and prepares it. For free(). */
batchqr_status bqr_steps_open(const bqr_problem *problem, const bqr_device *device, bqr_panel_rule rule,
                              bqr_panel **chosen);
/* The workspace laid out; `chosen` NULL: nothing is kept yet. */
bqr_steps bqr_steps_of(const bqr_problem *problem, const bqr_device *device, bqr_panel_rule rule,
                       const bqr_panel *chosen, bqr_arena *arena);
/* Kernels of begin and end, one less if `later`; and of one panel. */
enum { BQR_STEPS_LAUNCHES = BQR_PANELS_LAUNCHES };
int bqr_steps_panel_launches(const bqr_steps *steps, int step);

/* Brings all columns into range, unless `later`; factors one step's panels; takes the columns' scales out of
 * R and writes info. */
batchqr_status bqr_steps_begin(const bqr_steps *steps, const bqr_args *args, batchqr_stream stream);
batchqr_status bqr_steps_panel(const bqr_steps *steps, const bqr_args *args, int step, batchqr_stream stream);
/* Whether there is a kernel that makes T of a step's panels, too, whatever their members' sizes; and what
 * launches it. t: see bqr_geqrt(). */
bool bqr_steps_make_t(const bqr_steps *steps, int step);
batchqr_status bqr_steps_panel_and_t(const bqr_steps *steps, const bqr_args *args, int step, void *t,
                                     batchqr_stream stream);
/* What geqrf_tsqr left of a panel just factored, beginning with its `tops`, see kernels/tsqr/tsqr.h; NULL:
 * another family factored it, or one leaf did. */
const void *bqr_steps_top(const bqr_steps *steps, int step);
batchqr_status bqr_steps_end(const bqr_steps *steps, const bqr_args *args, batchqr_stream stream);

#endif
