/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the example program fronts. Read fronts.c first. */
#ifndef FRONTS_H
#define FRONTS_H

#include "fronts_assemble.h"
#include "program.h"

#include <float.h>

/* --- fronts_matrix.c: where the problem comes from */

/* min ||A x - b||, A of rows x cols, which may be wide, and have no full rank. */
typedef struct fr_matrix {
  int rows, cols;
  int64_t
      *start; /* rows + 1: row i's entries are start[i] .. start[i + 1] - 1, in ascending order of columns */
  int *col;
  double *value;
  double *b;
  double *truth;              /* the x that b was made from; NULL if b was read */
  int64_t added;              /* entries of the file that were added to an earlier one at the same place */
  int dimensions;             /* of the grid; 0 for a file */
  int grid[3];                /* its points along each axis */
  int exponent_a, exponent_b; /* A and b were divided by these powers of 2, and so x by their ratio */
  int *name;                  /* of a core: which columns of A its columns are, from 1; 0: none */
  char source[256];           /* what it is, in words */
  char meaning[256];          /* what x and b are */
} fr_matrix;

/* A field x is measured on a grid: all differences between neighbours, each with an error of size `noise`,
 * and, with little weight, the field itself. The normal equations' matrix is the grid's Laplacian and a
 * multiple of the identity. */
void fr_grid_problem(fr_matrix *a, int dimensions, int size, double noise);
/* A Matrix Market file; exits with EX_BAD_INPUT, the file and the line when something is wrong with it, with
 * EX_FAILED when it takes more than `memory` bytes. b is made of a known x and an error of size `noise`,
 * unless `rhs` names a file with it. */
void fr_read_problem(fr_matrix *a, const char *file, const char *rhs, double noise, double memory);
/* x of A's file and b's. */
void fr_undo_scaling(const fr_matrix *a, double *x);
/* Writes x as a Matrix Market array. */
void fr_write_vector(const char *file, int n, const double *x);
void fr_free_matrix(fr_matrix *a);

double fr_norm(int64_t n, const double *x);
/* A pivot that is not larger depends on others: SuiteSparseQR's 20 (rows + cols) eps times the norm of A's
 * longest column. */
double fr_usual_tolerance(const fr_matrix *a);
/* sqrt(||A||_1 ||A||_inf), which bounds ||A||_2 */
double fr_norm_bound(const fr_matrix *a);
/* r := A x - b */
void fr_residual(const fr_matrix *a, const double *x, double *r);
/* g := A^T r */
void fr_multiply_transposed(const fr_matrix *a, const double *r, double *g);

/* --- fronts_reduce.c: the part of the problem that is factored */

typedef struct fr_pivot {
  int row, col;
} fr_pivot;

typedef struct fr_core {
  fr_matrix matrix; /* the columns of A that are left, and then the new ones */
  double tolerance; /* pivots are larger, or count as zero */
  fr_pivot *pivot;  /* entries of A, the only ones of their column in rows without an earlier pivot */
  int singletons;   /* how many */
  int dense_rows;   /* of A, that were cut into pieces */
  int links;        /* new columns, which link the pieces */
} fr_core;

void fr_reduce(const fr_matrix *a, double tolerance, fr_core *core);
/* A's x from the core's, y. */
void fr_expand(const fr_matrix *a, const fr_core *core, const double *y, double *x);
void fr_free_core(fr_core *core);

/* --- fronts_order.c: in which order the columns are eliminated */

typedef enum fr_ordering { FR_AUTO, FR_NATURAL, FR_DISSECTION, FR_COLAMD, FR_AMD, FR_METIS } fr_ordering;
extern const char *const fr_ordering_names[];

/* order[p] := the column that is eliminated p-th. Returns the ordering that was taken: FR_AUTO picks one,
 * that takes no more than `memory` bytes. */
fr_ordering fr_order_columns(const fr_matrix *a, fr_ordering wanted, double memory, int *order);

/* --- fronts_tree.c: which fronts there are */

/* A level holds the fronts of one distance from the root. The levels follow each other as they are factored:
 * the leaves come first, and what a level's fronts contribute goes to the fronts of the next. */
typedef struct fr_tree {
  int count, num_levels;
  fr_front *fronts; /* level by level */
  fr_level *levels;
  int *order; /* the column that is eliminated p-th */
  int *rest;  /* columns, in the order of elimination */
  int *place; /* where they are among the columns of the front's parent */
  int64_t rest_size;
  int *row;              /* A's rows in the order of the fronts */
  int64_t *start;        /* like A's start, of these rows */
  int *col;              /* where their entries are among the columns of their front */
  int num_rows;          /* rows of A with an entry */
  int64_t r_size, zeros; /* entries of R, and those that are zero for the sake of larger fronts */
  double flops;
} fr_tree;

/* The column elimination tree, its columns gathered in fronts, and these in levels. Two fronts are made one
 * where that takes at most `overhead` more floating-point operations. Exits where R needs more than `memory`
 * bytes. */
void fr_build_tree(const fr_matrix *a, const int *order, double overhead, double memory, fr_tree *tree);
void fr_free_tree(fr_tree *tree);
/* Sets the sizes of a level's fronts, and where those of the level before contribute to them, from the rows
 * that these pass on. */
void fr_size_level(fr_tree *tree, int level);
/* Sets a front's rank, and the rows that it passes on. */
void fr_set_rank(fr_front *front, int rank);
/* Bytes that fr_solve() needs in the backend's memory, without the library's workspace, if no more rows are
 * passed on than the tree says. */
double fr_bytes(const fr_matrix *a, const fr_tree *tree);

/* --- fronts_solve.c: the numbers; with it fronts_solver.h, fronts_fill.c, fronts_rank.c and fronts_back.c */

typedef struct fr_level_report {
  double t_fill, t_qr, t_rank, t_keep; /* seconds */
  char families[128];                  /* the kernels that factored the level */
} fr_level_report;

typedef struct fr_report {
  fr_level_report *levels;
  double t_plan, t_factor, t_fetch, t_back;
  double workspace; /* bytes that the library asked for */
  int again;        /* fronts with pivots that depend on others, which were factored again */
  int rank;         /* of the core, */
  double neglected; /* and the Frobenius norm of what counted as zero in those of its columns that it lacks */
  double dropped;   /* ||A x - b||, as the factorization says it */
  char backend[256];  /* batchqr_describe() */
  char largest[1024]; /* what the plan of the level with most fronts says */
} fr_report;

typedef struct fr_request {
  int repeat; /* how often to factor; times are those of the last one */
  bool quiet;
  double memory; /* bytes that may be used */
} fr_request;

/* x := argmin ||A x - b|| of the core, with zeros for columns that depend on others. These make the tree's
 * fronts pass on more rows; it is changed accordingly. */
void fr_solve(const fr_core *core, fr_tree *tree, const ex_backend *backend, const fr_request *request,
              double *x, fr_report *report);

/* --- fronts_compare.c: other ways to the same x */

/* LAPACK's dgels on the dense matrix. Returns ||x - y|| / ||x|| for its solution y, and in *limit what
 * rounding errors explain. */
double fr_compare_dense(const fr_matrix *a, const double *x, double *limit);
/* LAPACK's dgelsy, which needs no full rank. Returns the difference of its ||A x - b|| to norm_r, and in
 * *limit what rounding errors explain. */
double fr_compare_dense_residual(const fr_matrix *a, double norm_r, double tolerance, double *limit);
/* SuiteSparseQR, with its own order of the columns; where SuiteSparse was there when this program was built.
 */
typedef struct fr_suitesparse {
  double t_analyze, t_factor, t_all; /* seconds; the factorization applies Q to b */
  double flops, norm_r, difference;  /* norm_r = ||A y - b||, difference = ||x - y|| / ||x|| */
  int rank;
} fr_suitesparse;
void fr_compare_suitesparse(const fr_matrix *a, const double *x, double tolerance, fr_suitesparse *result);

/* --- fronts_picture.c */

/* Draws how many fronts of which size each level has. */
void fr_write_svg(const char *file, const fr_tree *tree, const fr_report *report, const char *title,
                  const char *subtitle);

#endif
