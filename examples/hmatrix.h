/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of the example program hmatrix. Read hmatrix.c first.
 *
 * The matrix is symmetric: K(x, y) = K(y, x). So only its lower half is computed and stored: the blocks whose
 * row cluster is their column cluster or comes after it. */
#ifndef HMATRIX_H
#define HMATRIX_H

#include "program.h"

/* --- hmatrix_points.c: where points come from */

/* 1 / (4 pi r); exp(-decay r) / (4 pi r), the Yukawa potential's; the sum of both. */
typedef enum hm_kernel { HM_LAPLACE, HM_YUKAWA, HM_SUM } hm_kernel;

typedef struct hm_points {
  int n;
  hm_kernel kernel;
  double decay;
  double *x, *y, *z;
  double *self; /* the Laplace matrix's diagonal: see hm_set_self_terms() */
  int merged;   /* points of the file that coincided with another one and were dropped */
  char source[256];
} hm_points;

/* n collocation points on the surface of a wing with the section NACA 0012. */
void hm_wing_points(hm_points *points, int n);
/* The points of an .xyz file or the vertices of an .off or .obj mesh; exits with EX_BAD_INPUT, the file and
 * the line when something is wrong with it. */
void hm_read_points(hm_points *points, const char *file);
/* Moves the bounding box's lowest corner to the origin and drops points that coincide with an earlier one. */
void hm_merge_duplicates(hm_points *points);
void hm_free_points(hm_points *points);

/* --- hmatrix_tree.c: clusters of points and pairs of clusters */

/* The points begin .. end - 1, in the tree's order. */
typedef struct hm_cluster {
  int begin, end;
  int child[2]; /* indices; -1 in a leaf */
  double lo[3], hi[3];
} hm_cluster;

typedef struct hm_tree {
  int count, capacity, depth;
  hm_cluster *clusters; /* clusters[0] is the root */
} hm_tree;

/* A block of the matrix: rows row .. row + m - 1, columns col .. col + n - 1. With rank >= 0 it is U V^T, U
 * of m x rank and V of n x rank; with rank HM_DENSE it is m x n at u. */
enum { HM_DENSE = -1 };
typedef struct hm_block {
  int row, col, m, n, rank;
  double *u, *v;
} hm_block;

typedef struct hm_blocks {
  int64_t count, capacity;
  hm_block *blocks;
  double **owned; /* the memory behind u and v */
  int num_owned;
} hm_blocks;

/* Bisects boxes along their longest axis until at most `leaf` points are left; permutes the points so that
 * every cluster's are consecutive. */
void hm_build_tree(hm_tree *tree, hm_points *points, int leaf);
/* Sets points->self. A point's self term is the mean of the kernel over a flat disc around it, whose radius R
 * is half the distance to the nearest neighbour: 1 / (2 pi R). */
void hm_set_self_terms(const hm_tree *tree, hm_points *points);
/* Splits the lower half of the matrix into admissible pairs of clusters, min(diam) <= eta distance, and pairs
 * of leaves. */
void hm_build_blocks(const hm_tree *tree, double eta, hm_blocks *admissible, hm_blocks *near);
void hm_push_block(hm_blocks *list, hm_block block);
/* Memory that hm_free_blocks() is to free. */
void hm_own(hm_blocks *list, double *memory);
void hm_free_blocks(hm_blocks *list);

/* --- hmatrix_kernel.c: the kernel, adaptive cross approximation, products */

/* One thread's memory for approximating blocks. */
typedef struct hm_aca {
  double *u, *v; /* m x rank and n x rank, the result */
  size_t u_capacity, v_capacity;
  unsigned char *row_used;
  int row_used_capacity;
} hm_aca;

/* Approximates a block by crosses of its rows and columns to the relative accuracy eps in the Frobenius norm.
 * Returns the rank, or HM_DENSE if U and V would take no less memory than the block. */
int hm_cross_approximation(const hm_points *points, const hm_block *block, double eps, hm_aca *aca);
void hm_free_aca(hm_aca *aca);
/* Computes the entries of dense blocks. */
void hm_fill_dense(const hm_points *points, hm_blocks *blocks);
/* Relative error, in the Euclidean norm over `samples` rows, of the product with a random vector. */
double hm_product_error(const hm_points *points, const hm_blocks *low_rank, const hm_blocks *dense,
                        int samples);

/* --- hmatrix_recompress.c: fewer columns for the blocks of a chunk, by batched QR */

typedef struct hm_settings {
  double tol, eta;
  int leaf, threads;
  batchqr_backend backend;
  bool compare; /* recompress on the CPU as well, for its times */
  size_t chunk; /* bytes of cross approximations that are held at a time */
} hm_settings;

typedef struct hm_work {
  double done, all;
} hm_work;

/* Moves the progress bar; `work` may be NULL. */
void hm_count_work(hm_work *work, double amount);
double hm_block_work(const hm_block *block);

/* Blocks whose u and v, of the rank that cross approximation took, lie in an arena. */
typedef struct hm_chunk {
  hm_block **blocks;
  int64_t count;
  double *arena;
  size_t used; /* elements */
} hm_chunk;

/* Seconds, added up over chunks; and what else there is to report. */
typedef struct hm_stages {
  double upload, plan, qr, svd, apply, download;
  int64_t ranks;         /* that were kept, added up */
  char kernels[3][1024]; /* what the plans of the first chunk's QR, SVD and apply say */
} hm_stages;

/* Where chunks are recompressed, how well, and what it took. */
typedef struct hm_recompressor {
  ex_backend backend, peer; /* peer: the CPU, where `compare` asks for its times as well */
  bool compare;
  double eps;
  hm_stages *stages, *peer_stages;
} hm_recompressor;

void hm_open_recompressor(hm_recompressor *r, const hm_settings *settings, hm_stages *stages,
                          hm_stages *peer_stages);
void hm_close_recompressor(hm_recompressor *r);
/* Keeps ranks whose relative error is at most eps in the Frobenius norm: sets the blocks' rank, u and v, in
 * memory that `owner` gets, and returns how many elements that is. On the CPU the arena's contents are lost.
 */
size_t hm_recompress(const hm_recompressor *r, const hm_chunk *chunk, hm_blocks *owner, hm_work *work);

/* --- hmatrix_compress.c: all admissible blocks, approximated and recompressed */

typedef struct hm_report {
  double t_aca; /* seconds */
  hm_stages stages, peer;
  int64_t members, chunks, largest_batch;
  int64_t incompressible;           /* admissible blocks that are stored dense */
  double bytes_aca, bytes_low_rank; /* of all admissible blocks, before and after recompression */
  ex_histogram histogram;           /* of the members of the QR batches */
  char backend[256];                /* batchqr_describe() */
  bool on_device;
} hm_report;

/* Sets u, v and rank of the admissible blocks; moves those that are better stored dense to `near`. */
void hm_compress(const hm_points *points, const hm_settings *settings, hm_blocks *admissible, hm_blocks *near,
                 hm_report *report);

/* --- hmatrix_add.c: sums of low-rank blocks */

typedef struct hm_addition {
  double t_stack;         /* seconds that it takes to put factors side by side */
  hm_stages stages, peer; /* stages.ranks: after rounding */
  int64_t ranks;          /* before */
} hm_addition;

/* The sum of x and y, which have blocks of `all`, in its order: where both have one, their rounded sum goes
 * to `result`; others go to `dense`, for their entries to be set. Adds to `sum`. */
void hm_add(const hm_settings *settings, const hm_blocks *all, const hm_blocks *x, const hm_blocks *y,
            hm_blocks *result, hm_blocks *dense, hm_addition *sum);

/* --- hmatrix_report.c: the picture */

/* Draws the block structure, coloured by rank. */
void hm_write_svg(const char *file, int n, const hm_blocks *low_rank, const hm_blocks *dense,
                  const char *title, const char *subtitle);

#endif
