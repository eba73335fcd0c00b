/* SPDX-License-Identifier: BSD-3-Clause */
/* What a front is, how it is filled, and what of it is kept: the same lines for the CPU, where a thread takes
 * a slice of a front's columns, and for the GPU, where a block's threads share a slice. No two slices, and no
 * two children of a front, write to the same place. fronts_fill.c calls them. */
#ifndef FRONTS_ASSEMBLE_H
#define FRONTS_ASSEMBLE_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDACC__
#define FR_BOTH __host__ __device__
#else
#define FR_BOTH
#endif

/* A front is a dense matrix of m rows and n + 1 columns: k pivots, n - k other columns of A, and b's. Its QR
 * factorization makes `rank` rows of R, k if no pivot depends on others, and below them the upper trapezoid
 * that it contributes to its parent. */
typedef struct fr_front {
  int m, n, k, rank;
  int pivoted; /* not 0: its pivots were exchanged, see fronts_rank.c */
  int first;   /* its pivots are the columns first .. first + k - 1, counted in the order of elimination */
  int parent;  /* a front of the next level; -1 at a root */
  int passed;  /* rows that it contributes to the parent, */
  int row;     /* where they begin in the parent: below its rows of A and those of earlier children */
  int own;     /* rows of A that begin here, from row `own_at` in the order of the fronts */
  int64_t own_at;
  int64_t rest_at;  /* its other columns are rest[rest_at] .. rest[rest_at + n - k - 1], in ascending order */
  int64_t front_at; /* where it is in its level's memory */
  int64_t r_at;     /* where its rows of R will be: k x (n + 1) */
  int64_t tau_at;   /* where its tau are in its level's */
} fr_front;

typedef struct fr_level {
  int begin, end; /* fronts */
  int most_cols;
  int64_t size, tau_size; /* elements of its fronts, and of their tau */
  double flops;
} fr_level;

/* Addresses in the backend's memory. */
typedef struct fr_arrays {
  fr_front *fronts;
  int64_t *start;   /* rows of A, in the order of the fronts */
  int *col, *place; /* see fr_tree */
  double *value, *b;
  double *r;
  double *dropped; /* a number of each front: the part of b that none of its columns can reduce */
} fr_arrays;

/* A thread has the rows row, row + rows, ... and the columns col, col + cols, ... of what is to be copied. */
typedef struct fr_share {
  int row, rows, col, cols;
} fr_share;

/* A's own rows of front f, which lies at `to`. */
static inline FR_BOTH void fr_put_rows(const fr_arrays *x, const fr_front *f, double *to, fr_share s) {
  for (int i = s.row + s.rows * s.col; i < f->own; i += s.rows * s.cols) {
    const int64_t r = f->own_at + i;
    for (int64_t e = x->start[r]; e < x->start[r + 1]; e++) to[i + (int64_t)f->m * x->col[e]] = x->value[e];
    to[i + (int64_t)f->m * f->n] = x->b[r];
  }
}

/* What front f, factored, at `from`, contributes to its parent, at `to`. */
static inline FR_BOTH void fr_put_contribution(const fr_arrays *x, const fr_front *f, const double *from,
                                               double *to, fr_share s) {
  const fr_front *p = &x->fronts[f->parent];
  for (int j = s.col; j <= f->n - f->k; j += s.cols) {
    const int place = j < f->n - f->k ? x->place[f->rest_at + j] : p->n;
    for (int i = s.row; i <= j && i < f->passed; i += s.rows)
      to[f->row + i + (int64_t)p->m * place] = from[f->rank + i + (int64_t)f->m * (f->k + j)];
  }
}

/* Zeros where batch_geqrf() left its reflectors, below R. */
static inline FR_BOTH void fr_clear_reflectors(const fr_front *f, double *front, fr_share s) {
  for (int j = s.col; j <= f->n; j += s.cols)
    for (int i = j + 1 + s.row; i < f->m; i += s.rows) front[i + (int64_t)f->m * j] = 0;
}

/* Element (i, j) of the pivots' k rows of R, as fr_keep_r() keeps them; in the rows from the rank on, what
 * the pivots that depend on others leave, which counts as zero. */
static inline FR_BOTH double fr_r_element(const fr_front *f, const double *from, int i, int j) {
  const bool is_r = i < f->rank && i <= j, is_rest = i >= f->rank && i < f->m && j >= f->rank && j < f->k;
  return is_r || is_rest ? from[i + (int64_t)f->m * j] : 0;
}

static inline FR_BOTH void fr_keep_r(const fr_arrays *x, int front, const double *from, fr_share s) {
  const fr_front *f = &x->fronts[front];
  double *r = x->r + f->r_at;
  for (int j = s.col; j <= f->n; j += s.cols)
    for (int i = s.row; i < f->k; i += s.rows) r[i + (int64_t)f->k * j] = fr_r_element(f, from, i, j);
  if (s.row == 0 && s.col == 0) {
    const int last = f->rank + f->n - f->k; /* the row below all that is passed on */
    x->dropped[front] = f->m > last ? from[last + (int64_t)f->m * f->n] : 0;
  }
}

/* --- fronts_assemble.cu: launches for the fronts begin .. end - 1 of a level, which lie at `level`, in
 * `slices`. They return a cudaError_t. */

#ifdef __cplusplus
extern "C" {
#endif
/* Fills `size` elements with zeros and puts A's rows. */
int fr_device_put_rows(const fr_arrays *x, int begin, int end, int slices, double *level, int64_t size);
/* Puts what the level's fronts contribute to those at `next`. */
int fr_device_put_contributions(const fr_arrays *x, int begin, int end, int slices, const double *level,
                                double *next);
/* fr_clear_reflectors() for `count` fronts of the level; `list`, of their numbers, is in device memory. */
int fr_device_clear_reflectors(const fr_arrays *x, const int *list, int count, int slices, double *level);
int fr_device_keep_r(const fr_arrays *x, int begin, int end, int slices, const double *level);
#ifdef __cplusplus
}
#endif

#endif
