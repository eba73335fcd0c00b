/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a tall-skinny QR by trees, geqrf_tsqr, which src/drivers drives: what comes before, between
 * and after the launches of the on-chip families that factor the blocks of rows. `problem` tells type and
 * sizes, `args` the members, as in a launch of a family; nothing here allocates or synchronises. C interface
 * for src/drivers. */
#ifndef BQR_KERNELS_TSQR_TSQR_H
#define BQR_KERNELS_TSQR_TSQR_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  BQR_TSQR_COLUMNS = 32, /* most columns of a member */
  BQR_TSQR_LEVELS = 32,  /* most levels of a tree */
  BQR_TSQR_CHUNKS = 256  /* most chunks of a member */
};

/* The trees of all entries of a launch. Level 0 are the leaves: blocks of `rows` rows of a member. A node of
 * the levels above holds the triangles that rows / 32 nodes below it were reduced to, one below the other.
 * Arrays are over nodes: level by level, entry by entry. Entries have as many nodes as they need, at most as
 * many as the tallest; a member's tree ends at the first level where it has one. */
typedef struct bqr_tsqr {
  int rows, levels;
  bool whole;  /* R's diagonal is not negative: a member without a tree for Cholesky factors is one leaf, and
                  has  one level */
  int columns; /* of the widest member */
  int64_t nodes[BQR_TSQR_LEVELS]; /* of the tallest member */
  int64_t first[BQR_TSQR_LEVELS]; /* where a level begins */
  int64_t total;
  void **a, **tau; /* nodes as members of a batch, empty where there is none */
  int *m, *n, *ld;
  int *info;     /* of leaves */
  void *taus;    /* of nodes, `columns` each */
  void *stacks;  /* of nodes that are not leaves: rows x columns each */
  void *tops;    /* of entries: see kernels/tsqr/tsqr_tree.cu */
  int *counters; /* of entries */
  double *norms; /* partial squared norms of the reflectors: `parts` for each entry, 32 each */
  int64_t parts;
  /* Where `method` is not NULL, only members that need one have a tree; see kernels/tsqr/tsqr_gram.cu. */
  int *method;    /* of entries */
  int chunk;      /* the least rows of a chunk, a multiple of 128 */
  int64_t chunks; /* of the member with most */
  void *partials; /* of chunks: `columns` x 32 numbers in double precision */
  void *factors;  /* of entries */
} bqr_tsqr;

/* Of an entry's part of `counters`. */
enum { BQR_TSQR_COUNTERS = 64 };
/* Elements of an entry's part of `tops`. */
enum { BQR_TSQR_TOP = (2 * BQR_TSQR_COLUMNS + 1) * BQR_TSQR_COLUMNS };

/* Describes the nodes; after bqr_tsqr_gram() that is done. */
batchqr_status bqr_tsqr_fill(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                             batchqr_stream stream);
/* Collects the triangles of a level's nodes in those above. */
batchqr_status bqr_tsqr_gather(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                               int level, batchqr_stream stream);
/* Replaces the reflectors of a level's nodes, above the leaves, by their rows of Q; from the roots down. The
 * last of them makes the members' R, and the first rows of their reflectors, too. */
batchqr_status bqr_tsqr_push(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                             int level, batchqr_stream stream);
/* Replaces the leaves' reflectors by the members', and writes tau and info; also of members of one leaf. */
batchqr_status bqr_tsqr_leaves(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                               batchqr_stream stream);

/* Loads these kernels; once for each plan. */
batchqr_status bqr_tsqr_prepare(batchqr_type type);

/* The members that need no tree, from beginning to end, and the description of the others' nodes. */
batchqr_status bqr_tsqr_gram(const bqr_problem *problem, const bqr_args *args, const bqr_tsqr *tree,
                             batchqr_stream stream);
batchqr_status bqr_tsqr_gram_prepare(batchqr_type type);

/* What that enqueues. */
enum { BQR_TSQR_GRAM_LAUNCHES = 4 };
/* Elements of an entry's part of `factors`. */
enum { BQR_TSQR_FACTORS = 3 * BQR_TSQR_COLUMNS * BQR_TSQR_COLUMNS + 512 };

#ifdef __cplusplus
}
#endif
#endif
