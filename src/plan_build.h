/* SPDX-License-Identifier: BSD-3-Clause */
/* A plan while it is being built, by plan.c, plan_classes.c, plan_groups.c and plan_memory.c. */
#ifndef BQR_SRC_PLAN_BUILD_H
#define BQR_SRC_PLAN_BUILD_H

#include "choose.h"
#include "plan.h"

/* Members of one size. */
typedef struct bqr_size_class {
  bqr_dims sizes;
  int64_t first, count; /* its members in builder.order; boxes: 0, and all members */
  int box;              /* of members that the device sorts, see sort.h */
  int64_t similar;      /* members of about this size: what tuning tables are asked with */
  int group;            /* of the plan, in the step being planned; -1: none */
  int previous;         /* the same in the step before, counted from that step's first group */
  bool tall;            /* all have m >= n, for sure */
  bool done;            /* a step that does the whole operation serves it */
  bool away;            /* not in the part of the batch that is being planned */
  bool left_out;        /* `done` while a copy is planned */
} bqr_size_class;

typedef struct bqr_builder {
  const bqr_planner *planner;
  struct batchqr_plan *plan;
  bqr_error *error;
  bqr_size_class *classes;
  int64_t num_classes;
  int *order; /* all members, sorted into classes, the largest first; NULL: there is one class, or these are
                 boxes that the device sorts members into */
  int *lists;
  size_t num_listed;
  int group_capacity;
  int stage;            /* of the step being planned */
  size_t limit;         /* of a group's workspace; 0: none */
  bool copied;          /* the part of the batch that is being planned is worked on in transposed copies */
  unsigned temporaries; /* that the plan's steps use: BQR_TEMPORARY(place), added up */
} bqr_builder;

/* The larger blocks of a plan: n objects, or NULL with the error set. */
void *bqr_plan_array(bqr_builder *b, int64_t n, size_t size);

/* plan_groups.c: what a step asks of the planner for a class. */
bqr_problem bqr_plan_problem(const bqr_builder *b, const bqr_step *step, const bqr_size_class *c);
/* A new group of the plan, with the class. */
batchqr_status bqr_plan_open_group(bqr_builder *b, const bqr_choice *choice, const bqr_problem *problem,
                                   const bqr_step *step, bqr_size_class *c);
/* Plans one step for the classes of this part of the batch that are not done. `whole`: it is the operation
 * itself, and classes that no family serves are left for the program. */
batchqr_status bqr_plan_step(bqr_builder *b, const bqr_step *step, bool whole);

/* Sorts the members into classes. */
batchqr_status bqr_plan_classes(bqr_builder *b);

/* alignment.c: whether all columns of the matrices that a step writes are aligned to BQR_COLUMN_ALIGNMENT if
 * the caller's addresses are. `copied`: it works on transposed copies. */
bool bqr_plan_is_aligned(const bqr_builder *b, const bqr_step *step, bool copied);
/* Notes which of the caller's addresses the groups' families rely on. */
void bqr_plan_note_alignment(const bqr_builder *b);

/* Lays out the workspace. */
batchqr_status bqr_plan_size_workspace(bqr_builder *b);
/* Gathers all that execution and comparison need of the caller's size arrays. */
batchqr_status bqr_plan_make_image(bqr_builder *b);

#endif
