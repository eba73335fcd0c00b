/* SPDX-License-Identifier: BSD-3-Clause */
/* The steps of a tall-skinny QR by trees, geqrf_tsqr, which src/large drives: what comes before, between and
 * after the launches of the on-chip families that factor the blocks of rows. `problem` tells type and sizes,
 * `args` the members, as in a launch of a family; nothing here allocates or synchronises. C interface for
 * src/large. */
#ifndef BATCHQR_KERNELS_TSQR_H
#define BATCHQR_KERNELS_TSQR_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  BATCHQR_TSQR_COLUMNS = 32, /* most columns of a member */
  BATCHQR_TSQR_LEVELS = 32,  /* most levels of a tree */
  BATCHQR_TSQR_CHUNK = 256,  /* a chunk has at least so many rows, */
  BATCHQR_TSQR_CHUNKS = 256  /* and a member at most so many chunks */
};

/* The trees of all entries of a launch. Level 0 are the leaves: blocks of `rows` rows of a member. A node of
 * the levels above holds the triangles that rows / 32 nodes below it were reduced to, one below the other.
 * Arrays are over nodes: level by level, entry by entry. Entries have as many nodes as they need, at most as
 * many as the tallest; a member's tree ends at the first level where it has one. */
typedef struct batchqr_tsqr {
  int rows, levels;
  int columns;                        /* of the widest member */
  int64_t nodes[BATCHQR_TSQR_LEVELS]; /* of the tallest member */
  int64_t first[BATCHQR_TSQR_LEVELS]; /* where a level begins */
  int64_t total;
  void **a, **tau; /* nodes as members of a batch, empty where there is none */
  int *m, *n, *ld;
  int *info;     /* of leaves */
  void *taus;    /* of nodes, `columns` each */
  void *stacks;  /* of nodes that are not leaves: rows x columns each */
  void *tops;    /* of entries: see kernels/tsqr.cu */
  double *norms; /* partial squared norms of the reflectors: `parts` for each entry, 32 each */
  int64_t parts;
  /* Where `hard` is not NULL, only members that need one have a tree; see kernels/tsqr_gram.cu. */
  int *hard;              /* of entries */
  int64_t chunks;         /* of the member with most */
  void *partials, *grams; /* of chunks and of entries: `columns` x 32 numbers in double precision */
  void *factors;          /* of entries */
} batchqr_tsqr;

/* Elements of an entry's part of `tops`. */
enum { BATCHQR_TSQR_TOP = (2 * BATCHQR_TSQR_COLUMNS + 1) * BATCHQR_TSQR_COLUMNS };

/* Describes the nodes. */
batchqr_status batchqr_tsqr_fill(const batchqr_problem *problem, const batchqr_args *args,
                                 const batchqr_tsqr *tree, batchqr_stream stream);
/* Collects the triangles of a level's nodes in those above, and the roots' as the members' R. */
batchqr_status batchqr_tsqr_gather(const batchqr_problem *problem, const batchqr_args *args,
                                   const batchqr_tsqr *tree, int level, batchqr_stream stream);
/* Replaces the reflectors of a level's nodes, above the leaves, by their rows of Q; from the roots down. */
batchqr_status batchqr_tsqr_push(const batchqr_problem *problem, const batchqr_args *args,
                                 const batchqr_tsqr *tree, int level, batchqr_stream stream);
/* From the first rows of Q: the first rows of the members' reflectors, and what the others are made with. */
batchqr_status batchqr_tsqr_reconstruct(const batchqr_problem *problem, const batchqr_args *args,
                                        const batchqr_tsqr *tree, batchqr_stream stream);
/* Replaces the leaves' reflectors by the rest of the members'. */
batchqr_status batchqr_tsqr_leaves(const batchqr_problem *problem, const batchqr_args *args,
                                   const batchqr_tsqr *tree, batchqr_stream stream);
/* Writes the members' first rows, tau and info. */
batchqr_status batchqr_tsqr_finish(const batchqr_problem *problem, const batchqr_args *args,
                                   const batchqr_tsqr *tree, batchqr_stream stream);

/* Loads these kernels; once for each plan. */
batchqr_status batchqr_tsqr_prepare(batchqr_type type);

/* The members that need no tree: everything up to batchqr_tsqr_finish. Says in `hard` which do. */
batchqr_status batchqr_tsqr_gram(const batchqr_problem *problem, const batchqr_args *args,
                                 const batchqr_tsqr *tree, batchqr_stream stream);
batchqr_status batchqr_tsqr_gram_prepare(batchqr_type type);

/* Kernels that it enqueues. */
enum { BATCHQR_TSQR_GRAM_LAUNCHES = 7 };
/* Elements of an entry's part of `factors`. */
enum { BATCHQR_TSQR_FACTORS = 3 * BATCHQR_TSQR_COLUMNS * BATCHQR_TSQR_COLUMNS + 512 };

#ifdef __cplusplus
}
#endif
#endif
