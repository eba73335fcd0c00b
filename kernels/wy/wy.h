/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors in the compact WY form, I - V T V^H, in global memory: the kernels that the drivers in
 * src/drivers launch. C interface of this folder. Nothing here allocates or synchronises.
 *
 * First what serves batches of members that one block of threads does not hold, in blocks of up to 32
 * reflectors: geqrf_blocked, orgqr_blocked, ormqr_blocked. `problem` tells operation, type, side and sizes,
 * `args` the members, as in a launch of a family. V is args->a below its diagonal, with ones on it (ORGQR,
 * ORMQR and GEQRF alike), tau args->tau. A member's reflectors past its last one count as H = I: a step that
 * lies past a member's end leaves it alone.
 *
 * Then what serves single large members, in blocks of up to BQR_WY_WIDEST reflectors, whose V and T are
 * operands of matrix products: geqrf_large, orgqr_large, ormqr_large. */
#ifndef BQR_KERNELS_WY_WY_H
#define BQR_KERNELS_WY_WY_H

#include "family.h"

#ifdef __CUDACC__
#define BQR_ON_BOTH __host__ __device__
#else
#define BQR_ON_BOTH
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* --- a blocked factorization's panels as batches of their own; columns brought into range and back */

/* The tail: the last panels of a member whose last row and column are in the same panel, left to one launch
 * of another family as a member of its own. A member has one, if at all, behind one panel at least. */
enum { BQR_TAIL_PANELS = 3 };

/* The columns before the tail of a member of m x n; n: it has none. That depends on nothing else, or results
 * would depend on neighbours. */
BQR_ON_BOTH static inline int bqr_before_tail(int m, int n, int width) {
  const int panels = (n - 1) / width + 1;
  return panels > BQR_TAIL_PANELS && (m - 1) / width + 1 == panels ? (panels - BQR_TAIL_PANELS) * width : n;
}

/* Arrays over steps and, within a step, over the entries of a launch: panel s of an entry has `width` columns
 * from s * width on and the rows from there on; entries that end before it have none. With a tail, it is what
 * follows the last step. */
typedef struct bqr_panels {
  void **a, **tau;
  int *m, *n, *ld;
} bqr_panels;

/* Most columns of all entries that blocks share. */
enum { BQR_SHARED_COLUMNS = 512 };

/* What is known of the columns of a launch's entries, for as many columns as the widest has. */
typedef struct bqr_columns {
  short *exponents; /* of the power of two that a column was multiplied by */
  int *nonfinite;   /* of an entry: BATCHQR_INFO_NONFINITE if it holds a NaN or an Inf */
  /* Of columns that blocks may share, their largest elements, and counters. */
  int shared; /* of each entry: none, or as many as the widest has */
  unsigned *magnitudes;
  int *arrived;
  const int *done; /* NULL, or what is not 0 on the device where bqr_columns_in() is to leave all as it is,
                      and bqr_panels_fill() to make empty panels */
} bqr_columns;

/* Fills in the panels, and zeros in nonfinite, magnitudes, arrived and the first panel's exponents. */
batchqr_status bqr_panels_fill(const bqr_problem *problem, const bqr_args *args, int width, int steps,
                               bool tail, const bqr_panels *panels, const bqr_columns *columns,
                               batchqr_stream stream);
/* Brings the columns of every entry's A into the range of common/panel/columns.cuh. Not needed where what
 * comes next does so when it first reads a column: the first panel's family and bqr_larfb_stream(). */
batchqr_status bqr_columns_in(const bqr_problem *problem, const bqr_args *args, const bqr_columns *columns,
                              batchqr_stream stream);
/* Takes that out of R and writes info. */
batchqr_status bqr_columns_out(const bqr_problem *problem, const bqr_args *args, const bqr_columns *columns,
                               batchqr_stream stream);

/* Loads these kernels; once for each plan. */
batchqr_status bqr_panels_prepare(batchqr_type type);

/* Kernels that fill, in and out enqueue together. */
enum { BQR_PANELS_LAUNCHES = 3 };

/* --- block reflectors of up to 32 columns, of every member of a batch */

/* The widest block; widths are 8, 16 or 32. */
enum { BQR_BLOCK_WIDTH = 32 };

/* t := T of the blocks of `width` reflectors that start at first, first + width, ..., `blocks` of them:
 * H(j) H(j+1) ... = I - V T V^H. T is width x width, column-major, upper triangular with zeros below, that of
 * entry i and block b at t + (i * blocks + b) * width^2 elements. */
batchqr_status bqr_larft(const bqr_problem *problem, const bqr_args *args, int first, int width, int blocks,
                         void *t, batchqr_stream stream);

/* The same, and head := T V_1^H in the same places, V_1 being the first `width` rows of V: what
 * bqr_orgqr_panel() takes. For ORGQR and ORMQR either of them adds to info where V or tau is not finite.
 */
batchqr_status bqr_larft_head(const bqr_problem *problem, const bqr_args *args, int first, int width,
                              int blocks, void *t, void *head, batchqr_stream stream);

/* How many clusters run at the same time of each launch that bqr_larfb() makes for a problem, or, where rows
 * > 0, bqr_larfb_stream() with these rows. Asking takes longer than a launch: once for each plan, after the
 * kernels are loaded. Launches only read it. */
typedef struct bqr_clusters bqr_clusters;
batchqr_status bqr_clusters_new(const bqr_problem *problem, const bqr_device *device, int rows,
                                bqr_clusters **clusters);
void bqr_clusters_free(bqr_clusters *clusters);

/* Applies one such block, I - V T V^H or with `adjoint` I - V T^H V^H, whose T is entry i's at
 * t + i * stride_t elements:
 * GEQRF, to columns from .. to of A, rows from `first` on; ORMQR, to columns from .. to of C from the left,
 * or to its rows from .. to from the right; ORGQR, to the columns of A right of the block's reflectors
 * (`from` tells only how many there are: to - from at most). */
batchqr_status bqr_larfb(const bqr_problem *problem, const bqr_args *args, int first, int width,
                         const void *t, int64_t stride_t, bool adjoint, int from, int to,
                         const bqr_clusters *clusters, batchqr_stream stream);

/* Kernels of such a call. */
int bqr_larfb_launches(const bqr_problem *problem, const bqr_device *device, int first);

/* Whether a block of larfb finds the shared memory that it needs. */
bool bqr_larfb_fits(const bqr_device *device);

/* Of which columns an update of GEQRF has some: of all, of those before each member's tail (see
 * BQR_TAIL_PANELS), or of the tail, by what is before it; from and to count from its first column then. */
typedef enum bqr_span { BQR_WHOLE, BQR_BEFORE_TAIL, BQR_TAIL } bqr_span;

/* Applies `blocks` blocks of 32 reflectors to columns from .. to of the span, which stay on the chip
 * meanwhile. T of each is stride_block elements behind that of the one before. No member has more than `rows`
 * rows, from which follows how sums are formed. GEQRF: the adjoint of each from the first on, to columns on
 * their right. columns: NULL, or it is the first to read these columns, and brings them into range; for
 * members that one block of threads serves. ORMQR from the left, in the order that the problem calls for.
 * Where one block of threads serves the problem's members it brings columns into range and back, and adds to
 * info where they are not finite. ORGQR: columns of Q, which take the place of V; blocks of reflectors and
 * columns begin with the first. */
batchqr_status bqr_larfb_stream(const bqr_problem *problem, const bqr_args *args, int first, int blocks,
                                const void *t, int64_t stride_t, int64_t stride_block, bqr_span span,
                                int from, int to, const bqr_columns *columns, int rows,
                                const bqr_clusters *clusters, batchqr_stream stream);

/* The most rows of members that it serves, from `first` on; 0: it serves none. And how many blocks of threads
 * share the rows of one. */
int bqr_larfb_stream_rows(const bqr_problem *problem, const bqr_device *device);
int bqr_larfb_stream_shares(batchqr_type type, int rows);

/* GEQRF: factors panels of up to 32 columns, which are the members of `panels`, and makes T of each, as
 * bqr_larft() does, unless t is NULL. No panel has more than `rows` rows; from this and in real types
 * `wide`, many threads for a panel, follows how its sums are formed. positive: R's diagonal is not negative.
 * info, if wanted, tells what is not finite. */
batchqr_status bqr_geqrt(batchqr_type type, const bqr_args *panels, int rows, bool wide, bool positive,
                         void *t, batchqr_stream stream);

/* The most rows of panels that it serves; 0: it serves none. */
int bqr_geqrt_rows(batchqr_type type, const bqr_device *device);

/* Load them; once for each plan. */
batchqr_status bqr_geqrt_prepare(batchqr_type type);
batchqr_status bqr_larft_prepare(batchqr_type type);
batchqr_status bqr_larfb_prepare(batchqr_type type);
batchqr_status bqr_larfb_stream_prepare(batchqr_type type);
static inline batchqr_status bqr_blocked_prepare(batchqr_type type) {
  batchqr_status status = bqr_larft_prepare(type);
  return status ? status : bqr_larfb_prepare(type);
}

/* Applies `blocks` of them in one launch, in the order that the side and `adjoint` call for; T of each is
 * stride_block elements behind that of the one before. */
batchqr_status bqr_larfb_blocks(const bqr_problem *problem, const bqr_args *args, int first, int width,
                                int blocks, const void *t, int64_t stride_t, int64_t stride_block,
                                bool adjoint, int from, int to, batchqr_stream stream);

/* ORGQR: what precedes all blocks, info and the columns right of the last reflector; and what the block's own
 * columns become, I - V T V_1^H, once it has been applied to those on their right. */
batchqr_status bqr_orgqr_begin(const bqr_problem *problem, const bqr_args *args, batchqr_stream stream);
batchqr_status bqr_orgqr_panel(const bqr_problem *problem, const bqr_args *args, int first, int width,
                               const void *head, int64_t stride_head, batchqr_stream stream);
batchqr_status bqr_orgqr_prepare(batchqr_type type);

/* ORMQR: what precedes and follows all blocks: info, and the columns (left) or rows (right) of C near the
 * ends of the range, which are multiplied by powers of two and back. scales: that many bytes for each member;
 * NULL: info alone. */
int64_t bqr_ormqr_scales(const bqr_problem *problem);
int bqr_ormqr_launches(const bqr_problem *problem); /* of both */
batchqr_status bqr_ormqr_begin(const bqr_problem *problem, const bqr_args *args, void *scales,
                               batchqr_stream stream);
batchqr_status bqr_ormqr_end(const bqr_problem *problem, const bqr_args *args, const void *scales,
                             batchqr_stream stream);
batchqr_status bqr_ormqr_prepare(const bqr_problem *problem);

/* --- V and T of wide block reflectors of one member, as operands of matrix products */

/* Members that a launch serves alike: bytes from one's A and tau to the next one's, and from all that it has
 * in the workspace (R, T, W, sums, counters) to the next one's. count 0: a single member. */
typedef struct bqr_wy_many {
  int count;
  int64_t a, tau, own;
} bqr_wy_many;

/* A panel of `width` reflectors at row and column `at` of a block of `rows` rows and `cols` columns. */
typedef struct bqr_wy_panel {
  int rows, cols, at, width;
  void *a; /* the block in A: vectors below its diagonal */
  int64_t lda;
  void *tau;       /* the panel's */
  const void *top; /* NULL, or what geqrf_tsqr left of the panel, see tsqr/tsqr_tree.cu */
  void *r, *t;     /* the block's, cols x cols both */
  int64_t ldr, ldt;
  void *sums;    /* BQR_WY_SUMS elements */
  int *counters; /* BQR_WY_COUNTERS, see bqr_wy_begin() */
  const int
      *done;     /* NULL, or what is not 0 on the device where there is nothing to do, R and V being there */
  bool positive; /* R's diagonal is not negative */
  bqr_wy_many many; /* not for panels with a top, nor for bqr_wy_tall() */
} bqr_wy_panel;
enum { BQR_WY_BLOCKS = 256, BQR_WY_SUMS = 128 * 64 * 64, BQR_WY_COUNTERS = 32 };

/* Before the first panel; of a member, or of many. */
batchqr_status bqr_wy_begin(int *counters, batchqr_stream stream);
batchqr_status bqr_wy_begin_many(int *counters, const bqr_wy_many *many, batchqr_stream stream);
/* Makes the panel's columns of A those of V, with their ones and zeros, from the block's first row on; R's go
 * to r. Writes of T what is not above the panel's triangle. bqr_wy_unfold() is for panels with a top. */
batchqr_status bqr_wy_store(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream);
batchqr_status bqr_wy_unfold(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream);
/* Factors the panel, too, in the same launch: of 32 or 64 columns, and at most so many rows below the block's
 * row `at`; at least as many as columns. 0: none. */
int bqr_wy_factor_rows(batchqr_type type, int width, const bqr_device *device);
batchqr_status bqr_wy_factor(batchqr_type type, const bqr_wy_panel *panel, batchqr_stream stream);
batchqr_status bqr_wy_factor_prepare(batchqr_type type, const bqr_device *device);
/* Panels of BQR_WY_TALL columns of real types, of any number of rows, as bqr_wy_factor() makes them,
 * if their columns are far from dependent: then *bqr_wy_tall_done() is 1 and the two numbers at `rows` 0,
 * all on the device; else nothing is done. Of the columns from `stored` on R stays in A. */
enum { BQR_WY_TALL = 64 };
bool bqr_wy_tall_possible(batchqr_type type, const bqr_device *device);
size_t bqr_wy_tall_bytes(void); /* of memory */
const int *bqr_wy_tall_done(const void *memory);
batchqr_status bqr_wy_tall(batchqr_type type, const bqr_wy_panel *panel, int stored, void *memory, int *rows,
                           batchqr_stream stream);
batchqr_status bqr_wy_tall_prepare(batchqr_type type);
/* Puts R back. r: side by side, for each block of `width` columns of A, the rows of R from the block's on. */
batchqr_status bqr_wy_restore(batchqr_type type, int width, int cols, const void *r, int64_t ldr, void *a,
                              int64_t lda, batchqr_stream stream);
batchqr_status bqr_wy_restore_many(batchqr_type type, int width, int cols, const void *r, int64_t ldr,
                                   void *a, int64_t lda, const bqr_wy_many *many, batchqr_stream stream);

/* to := from, rows x cols. */
batchqr_status bqr_wy_copy(batchqr_type type, int rows, int cols, const void *from, int64_t ld_from, void *to,
                           int64_t ld_to, batchqr_stream stream);
batchqr_status bqr_wy_prepare(batchqr_type type);

/* A wide block of reflectors as LAPACK leaves them. */
typedef struct bqr_wy_block {
  int rows, cols, above; /* of V; rows of A above the block's first */
  void *a;               /* the first element of the block's columns in A */
  int64_t lda;
  const void *tau;
  void *v, *t; /* where V goes, with its diagonal and zeros, and T */
  int64_t ldv, ldt;
  const void *gram; /* V^H V of that V, with T's leading dimension */
  int *info;        /* NULL, or where BATCHQR_INFO_NONFINITE goes if V or tau is not finite */
  bool unit;        /* the columns of A become those of the unit matrix */
} bqr_wy_block;
enum { BQR_WY_WIDEST = 1024 }; /* columns */

/* Writes V. Columns of xLARFGP, which may be as long as 8 / eps, are divided by a power of two near their
 * length, with which T makes up for it: products may be exact only next to the lengths of V's rows. */
batchqr_status bqr_wy_take(batchqr_type type, const bqr_wy_block *block, batchqr_stream stream);
/* Writes T, zeros below its diagonal. */
batchqr_status bqr_wy_form(batchqr_type type, const bqr_wy_block *block, batchqr_stream stream);
/* Kernels of that. */
static inline int bqr_wy_form_launches(int cols) {
  int launches = 1;
  for (int half = 32; half < cols; half *= 2) launches++;
  return launches;
}
/* to := from^H; from is rows x cols. */
batchqr_status bqr_wy_adjoint(batchqr_type type, int rows, int cols, const void *from, int64_t ld_from,
                              void *to, int64_t ld_to, batchqr_stream stream);
batchqr_status bqr_wy_form_prepare(batchqr_type type);

/* Narrow products: k and n are at most this. Columns of V and C are aligned to 16 bytes; V is rows x k, C
 * rows x n, T k x k and upper triangular. */
enum { BQR_WY_NARROW = 128 };

/* The elements of `sums` that such products of up to so many rows and columns take: those of the blocks that
 * share the rows, see wy_narrow.cu. */
static inline int64_t bqr_wy_sums(int rows, int k, int n) {
  const int side = 64, step = 32;
  const int64_t down = (k < BQR_WY_NARROW ? k - 1 : BQR_WY_NARROW - 1) / side + 1,
                across = (n < BQR_WY_NARROW ? n - 1 : BQR_WY_NARROW - 1) / side + 1;
  const int64_t turns = rows > 0 ? (rows - 1) / step + 1 : 1, sums = ((turns - 1) / 2 + 1) * down * across;
  const int64_t most = BQR_WY_SUMS;
  return sums * side * side < most ? sums * side * side : most;
}

/* to := T^H V^H C, or -T V^H C. sums: bqr_wy_sums() elements, or BQR_WY_SUMS. */
typedef struct bqr_wy_product {
  int rows, k, n;
  bool negative; /* -T */
  const void *v, *c, *t;
  void *to;
  int64_t ldv, ldc, ldt, ldto;
  const int *done; /* as of a panel */
  bqr_wy_many many;
} bqr_wy_product;
batchqr_status bqr_wy_multiply(batchqr_type type, const bqr_wy_product *product, void *sums,
                               batchqr_stream stream);

/* to := X T; X: m x n, T: n x n, all with leading dimension ld. done: as of a panel. */
batchqr_status bqr_wy_unite(batchqr_type type, int m, int n, const void *x, const void *t, void *to,
                            int64_t ld, const int *done, const bqr_wy_many *many, batchqr_stream stream);

/* C := C - V W; W: k x n. */
typedef struct bqr_wy_update {
  int rows, k, n;
  const void *v, *w;
  void *c;
  int64_t ldv, ldw, ldc;
  const int *done; /* as of a panel */
  bqr_wy_many many;
} bqr_wy_update;
batchqr_status bqr_wy_subtract(batchqr_type type, const bqr_wy_update *update, batchqr_stream stream);

batchqr_status bqr_wy_narrow_prepare(batchqr_type type);

#ifdef __cplusplus
}
#endif
#endif
