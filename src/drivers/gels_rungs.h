/* SPDX-License-Identifier: BSD-3-Clause */
/* What the families have in common that solve least squares by refinement: the direct way, behind a switch on
 * the device (bqr_args.off), for members which refinement does not solve. It is made of children, as those of
 * a program are of steps; a family may have more of them behind these. */
#ifndef BQR_SRC_DRIVERS_GELS_RUNGS_H
#define BQR_SRC_DRIVERS_GELS_RUNGS_H

#include "arena.h"
#include "refine/refine.h"
#include "step_children.h"

enum { BQR_RUNG_FACTOR, BQR_RUNG_APPLY, BQR_RUNG_SOLVE, BQR_RUNG_RANGE, BQR_RUNG_CHILDREN };

/* One of these children, or, if it is another one, what they all are but for the operation and the sizes. */
bqr_problem bqr_rungs_child(const bqr_problem *problem, int number);

/* Whether members and operands are such that refinement can be tried: tall, by host addresses. */
bool bqr_rungs_possible(const bqr_problem *problem, const bqr_device *device);

/* One member at work. */
typedef struct bqr_rungs {
  const bqr_problem *problem;
  const bqr_device *device;
  const void *states; /* of the children, see step_children.h */
  double *scales;
  void *tau, *children; /* children: their workspace, one after the other */
  bqr_refine refine;    /* its memory is taken by the family */
  bqr_args args;        /* the member's, as if it were alone */
  void *norms, *relres;
  int *iterations;
  batchqr_stream stream;
} bqr_rungs;

void bqr_rungs_lay_out(const bqr_problem *problem, const bqr_device *device, bqr_arena *arena, bqr_rungs *t);
/* The member of an entry; brings it into range. */
batchqr_status bqr_rungs_begin(bqr_rungs *t, const bqr_args *all, int64_t entry, batchqr_stream stream);
batchqr_status bqr_rungs_launch_child(const bqr_rungs *t, int number, bqr_args args);
/* The last rung. */
batchqr_status bqr_rungs_solve_directly(const bqr_rungs *t);

/* Of all children, see step_children.h, each of which is launched for one member at a time. */
batchqr_status bqr_rungs_open(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device, void **state);
int bqr_rungs_launches(const bqr_problem *problem, const bqr_device *device);

/* What the descriptors of these families have in common. */
#define BQR_RUNGS_FAMILY                                                                                     \
  .op = BATCHQR_GELS, .types = 1 << BATCHQR_S | 1 << BATCHQR_D, .backend = BATCHQR_BACKEND_CUDA,             \
  .sm_min = 90, .open = bqr_rungs_open, .close = bqr_step_children_close, .follows_mode = true,              \
  .only_where_good = true, .trusts_alignment = true

#endif
