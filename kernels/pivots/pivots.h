/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of columns that pivoted QR takes them in, from A^H A in double precision: kernels that
 * src/drivers/geqp3_gram.c launches. C interface of this folder. Nothing here allocates or synchronises.
 *
 * What remains of column j after some steps has a length whose square is the diagonal entry of A^H A's Schur
 * complement: pivots of QR are those of a Cholesky factorization with pivoting of A^H A. That goes in panels
 * of `width` steps. Within one, several pivots are found at a time (see pivots_candidates.cuh), and entries
 * of the Schur complement are made where they are looked at, of those at its beginning and of the panel's
 * rows of the Cholesky factor; then, by matrix units, all of them, of the columns that are not taken yet,
 * close-packed.
 *
 * Such a square has an error of the rounding errors of A's own squared lengths. A member for which this could
 * matter, in a choice or in the decision to stop, is left to a family that looks at the columns themselves.
 */
#ifndef BQR_KERNELS_PIVOTS_PIVOTS_H
#define BQR_KERNELS_PIVOTS_PIVOTS_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Members have fewer than 2^16 columns. */
enum { BQR_PIVOTS_COLUMNS = 65535 };
/* Columns that each of several blocks offers at once, at most. */
enum { BQR_PIVOTS_OFFERS = 8 };

/* Of a member. */
typedef struct bqr_pivots_state {
  double tolerance2;                  /* squared, of A times 2^exponent */
  int exponent;                       /* 2^exponent brings A's largest entry near 1 */
  int exact;                          /* not 0: the member is left to the other family */
  uint32_t magnitude, magnitude_of_c; /* of their largest entries, see scalar.cuh */
  unsigned arrivals;                  /* of blocks that have come to a barrier */
} bqr_pivots_state;

/* A column. */
typedef struct bqr_pivots_offer {
  double norm2; /* of what remains of it; negative: it is taken, or there is none */
  int slot, place, source;
} bqr_pivots_offer;

/* What a block has beside the columns that it offers. */
typedef struct bqr_pivots_rest {
  double norm2; /* of the longest column that it does not offer */
  int place;
  uint32_t longest; /* above the leading bits of the longest one's norm2 */
  double first2;    /* the largest of the squared norms that its columns had at the beginning */
} bqr_pivots_rest;

/* Arrays in the workspace for `most` members at once, which are the launch's entries first .. first + count
 * - 1. Members are m x n, of `steps` = min(m,n) pivots. A column is at a slot among those that were not taken
 * when the panel began; its place is where it lies in A P so far. Two arrays are for panels in turn. `wide`
 * is double or complex double. */
typedef struct bqr_pivots {
  int m, n, steps, width, blocks, candidates;
  bool cluster;  /* of blocks; else these meet in global memory */
  bool in_place; /* members are factored where they are */
  int64_t most, first, count;
  int64_t ld; /* of work and work_c, in elements of A's type */
  bqr_pivots_state *states;
  void *grams[2];              /* wide, n x n: the Schur complement, close-packed */
  void *panel;                 /* wide, width x n: rows of the Cholesky factor, a column after the other */
  int *columns[2], *places[2]; /* n: of each slot */
  int *slots;                  /* n: of the slots of the next panel those in this one */
  double *first2;              /* n: A's squared columns, times 4^exponent */
  int *order;                  /* n: jpvt */
  bqr_pivots_offer *offers;    /* 2 x blocks x BQR_PIVOTS_OFFERS */
  bqr_pivots_rest *rests;      /* 2 x blocks */
  void *offered;               /* wide, for each offer width: the panel's entries of the columns offered */
  void *work, *work_c, *tau;   /* m x n, m x k, steps: A P, C and what they become */
  /* For the other family, of members that are left to it; those of others are empty. */
  int *m_left, *n_left, *lda, *ldc, *rank, *info;
  void **a, **c, **tau_at, **jpvt_at;
  /* Of all members, where bqr_pivots_member_order() has ordered them in place. */
  void **whole;
  int *ld_whole, *m_whole, *n_whole; /* sizes of those that are still to be factored; else 0 */
} bqr_pivots;

/* Shared memory that a block of the products, or of bqr_pivots_arrange(), takes. */
size_t bqr_pivots_shared(batchqr_type type, int n, bool in_place);
/* Loads the kernels; once for each plan. chooses: those of choose, too. */
batchqr_status bqr_pivots_prepare(batchqr_type type, const bqr_pivots *p, bool chooses);
/* How many columns are looked at together, of which a block has room for in `shared` bytes of memory; 0 if a
 * panel does not fit. */
int bqr_pivots_candidates(batchqr_type type, int n, int width, int blocks, size_t shared);
/* Members' states and addresses, and A^H A. With all_exact all are left to the other family, and nothing of
 * the rest is to be called but bqr_pivots_end(). */
batchqr_status bqr_pivots_begin(batchqr_type type, const bqr_args *args, const bqr_pivots *p, bool all_exact,
                                batchqr_stream stream);
/* The pivots of a panel. */
batchqr_status bqr_pivots_choose(batchqr_type type, const bqr_args *args, const bqr_pivots *p, int panel,
                                 const bqr_device *device, batchqr_stream stream);
/* Copies A P to work and C to work_c. */
batchqr_status bqr_pivots_gather(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                                 batchqr_stream stream);
/* In place of it, for members without a C that are to be factored in place: A P takes the place of A. Those
 * that are left to the other family find a copy in `work`, from which they return in place of end. */
enum { BQR_PIVOTS_IN_PLACE_COLUMNS = 1024 };
batchqr_status bqr_pivots_arrange(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                                  batchqr_stream stream);
batchqr_status bqr_pivots_return(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                                 batchqr_stream stream);
/* What became of them back to A, tau and C; jpvt, rank and info. */
batchqr_status bqr_pivots_end(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                              batchqr_stream stream);
/* In place of begin, choose and arrange, for members of few columns: all in one launch. */
enum { BQR_PIVOTS_MEMBER_COLUMNS = 128 };
/* Real members of no more columns than this and of more rows are factored, too, if columns are far from
 * dependent. */
enum { BQR_PIVOTS_FACTOR_COLUMNS = 32 };
bool bqr_pivots_member_factors(batchqr_type type, int m, int n);
size_t bqr_pivots_member_shared(batchqr_type type, int m, int n);
batchqr_status bqr_pivots_member_prepare(batchqr_type type, const bqr_pivots *p);
batchqr_status bqr_pivots_member_order(batchqr_type type, const bqr_args *args, const bqr_pivots *p,
                                       batchqr_stream stream);
/* Kernels of begin and of a panel, the last of which has one less. */
enum { BQR_PIVOTS_BEGIN_LAUNCHES = 3, BQR_PIVOTS_PANEL_LAUNCHES = 2 };

#ifdef __cplusplus
}
#endif
#endif
