/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of the numerical part share; begin with fronts_solve.c. */
#ifndef FRONTS_SOLVER_H
#define FRONTS_SOLVER_H

#include "fronts.h"

typedef struct fr_solver {
  const fr_core *core;
  const fr_matrix *a; /* the core's */
  fr_tree *tree;
  ex_backend backend;
  fr_report *report;
  double memory; /* bytes that may be used */

  /* In the backend's memory. */
  fr_arrays x;
  double *fronts[2];                     /* level l is in fronts[l % 2] */
  double **front_address, **tau_address; /* of all fronts */
  double *tau;                           /* of one level */
  double *range;                         /* of R's diagonal, smallest and largest, of one level's fronts */
  int *info;                             /* of all fronts */
  int *rank, *jpvt; /* of fronts whose pivots were exchanged; jpvt of a front's pivots, from its first on */
  void *workspace;

  int64_t fronts_size[2], tau_size; /* elements that there is room for */
  size_t workspace_bytes;
  batchqr_plan_t *factor_plans, *range_plans; /* one of each for every level */

  /* On the host. */
  double **front_at, **tau_at; /* the addresses above */
  double *host_range, *host_r, *host_dropped;
  int *host_rank, *host_jpvt;
} fr_solver;

/* --- fronts_fill.c: what is done to fronts beside factorizations, by the backend */

/* Fills level l with A's rows and what the level before contributes. */
void fr_fill_level(const fr_solver *s, int l);
/* Keeps level l's rows of R. */
void fr_keep_level(const fr_solver *s, int l);
/* fr_clear_reflectors() for some fronts of level l. */
void fr_clear_fronts(const fr_solver *s, int l, int count, int *fronts);

/* --- fronts_rank.c: pivots that depend on others */

typedef enum fr_change {
  FR_SAME,  /* the ranks are those that the tree has */
  FR_RANKS, /* others are, */
  FR_ROWS   /* and so are the numbers of rows that are passed on to the next level */
} fr_change;

/* Finds the fronts of level l, factored, with pivots that depend on others, and brings those to the form that
 * fr_front describes. Sets all ranks of the level in the tree. */
fr_change fr_settle_ranks(const fr_solver *s, int l);

/* --- fronts_back.c: after the factorization, on the host */

/* x from R; sets the report's rank, and norms of what was left out. */
void fr_solve_back(const fr_solver *s, double *x);

#endif
