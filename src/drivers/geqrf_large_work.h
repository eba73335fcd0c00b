/* SPDX-License-Identifier: BSD-3-Clause */
/* What a launch of geqrf_large works with, and how its workspace is cut up. */
#ifndef BQR_SRC_DRIVERS_GEQRF_LARGE_WORK_H
#define BQR_SRC_DRIVERS_GEQRF_LARGE_WORK_H

#include "wide_block.h"

/* One member's factorization. */
typedef struct bqr_large_task {
  bqr_wide_block block;
  const bqr_products *rest; /* where most of A is updated */
  char *ts[2];              /* in two streams, T is read while the next one is written */
  void *copy;               /* of the members */
  int64_t ldcopy;
  char *c; /* problem.k columns that take Q^H, too */
  int64_t ldc;
  void *copy_of_c, *scales_of_c; /* ldcopy x problem.k; of bqr_ormqr_begin() */
} bqr_large_task;

/* The whole of a launch. */
typedef struct bqr_large_work {
  bqr_products products[BQR_MOST_STREAMS];
  bqr_large_task tasks[BQR_MOST_STREAMS]; /* of the members under way */
  int members, streams;                   /* so many at once, in so many streams */
  size_t bytes;
} bqr_large_work;

/* Members of a launch that goes through them all at once; 0: they come one by one. */
int bqr_large_many(const bqr_problem *problem, const bqr_variant *variant);
/* What bringing C into range needs to know. */
bqr_problem bqr_large_problem_of_c(const bqr_problem *problem);
/* Cuts up the workspace; with base NULL only w->bytes is of use. It takes as much as the problem's limit
 * permits. */
void bqr_large_lay_out(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                       void *base, bqr_large_work *w);

#endif
