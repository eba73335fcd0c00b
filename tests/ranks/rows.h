/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices whose rows are dealt to ranks, and what is judged of results: failures are counted by the world.
 */
#ifndef BQR_TESTS_RANKS_ROWS_H
#define BQR_TESTS_RANKS_ROWS_H

#include "dense.h"
#include "matgen.h"
#include "ranks.h"

enum { COUNT = 2, MOST_RANKS = 16 };

/* How many rows each rank has. */
typedef enum manner { EVEN, ALL_ON_LAST, NONE_ON_FIRST, FEW_ON_FIRST, NUM_MANNERS } manner;

typedef struct problem {
  world *w;
  batchqr_type type;
  matgen_kind kind;
  manner manner;
  int m, n; /* of the whole */
  int rows[MOST_RANKS], at[MOST_RANKS];
  int own, first; /* this rank's rows */
  size_t size;    /* of an element */
  double eps;
  void *a; /* the whole, on the host: COUNT matrices of m x n */
} problem;

/* Some rows of COUNT matrices in the backend's memory, with a gap behind each column and each matrix. */
typedef struct piece {
  void *data;
  int rows, cols, ld;
  int64_t stride;
} piece;

static inline batchqr_storage stored(piece x) { return (batchqr_storage){.ld = x.ld, .stride = x.stride}; }

void problem_new(problem *p);
piece piece_new(const problem *p, int rows, int cols, int ld);
void *piece_host(const problem *p, piece x);
/* This rank's rows of COUNT matrices of p->m rows. */
void piece_put(const problem *p, piece x, const void *whole);
piece piece_a(const problem *p);
/* The whole matrices that all ranks have together; close-packed. */
void *collect(const problem *p, piece x);
void piece_free(const problem *p, piece x);
/* Counts a failure of the problem if a ratio is not below its bound; NaN fails. */
void judge(const problem *p, const char *what, double ratio, double bound);
void judge_status(const problem *p, const char *what, batchqr_status status);
void judge_same(const problem *p, const char *what, piece x);
/* ||A - Q R|| and ||I - Q^H Q|| of all members; `q` whole, `r` with zeros below. */
void judge_qr(const problem *p, const char *what, const void *q, const void *r, int ldr, int64_t stride_r);
dense whole_dense(const problem *p, const void *whole, int i, int cols, int exponent);
int exponent_of(const problem *p, int i);
/* The largest difference of two whole results, by the norm of the second. */
double difference(const problem *p, const void *x, const void *y, int cols, int i);

#endif
