/* SPDX-License-Identifier: BSD-3-Clause */
/* Block reflectors in the compact WY form, in global memory: the kernels that src/drivers drives for members
 * that one block of threads does not hold. `problem` tells operation, type, side and sizes, `args` the
 * members, as in a launch of a family; nothing here allocates or synchronises.
 *
 * V is args->a below its diagonal, with ones on it (ORGQR, ORMQR and GEQRF alike), tau args->tau. A member's
 * reflectors past its last one count as H = I: a step that lies past a member's end leaves it alone. */
#ifndef BQR_KERNELS_BLOCKED_H
#define BQR_KERNELS_BLOCKED_H

#include "panels.h"

#ifdef __cplusplus
extern "C" {
#endif

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

/* Applies one such block, I - V T V^H or with `adjoint` I - V T^H V^H, whose T is entry i's at
 * t + i * stride_t elements:
 * GEQRF, to columns from .. to of A, rows from `first` on; ORMQR, to columns from .. to of C from the left,
 * or to its rows from .. to from the right; ORGQR, to the columns of A right of the block's reflectors
 * (`from` tells only how many there are: to - from at most). */
batchqr_status bqr_larfb(const bqr_problem *problem, const bqr_args *args, int first, int width,
                         const void *t, int64_t stride_t, bool adjoint, int from, int to,
                         batchqr_stream stream);

/* Kernels of such a call. */
int bqr_larfb_launches(const bqr_problem *problem, const bqr_device *device, int first);

/* Whether a block of larfb finds the shared memory that it needs. */
bool bqr_larfb_fits(const bqr_device *device);

/* Of which columns an update of GEQRF has some: of all, of those before each member's tail (see panels.h), or
 * of the tail, by what is before it; from and to count from its first column then. */
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
                                batchqr_stream stream);

/* The most rows of members that it serves, from `first` on; 0: it serves none. And how many blocks of threads
 * share the rows of one. */
int bqr_larfb_stream_rows(const bqr_problem *problem, const bqr_device *device);
int bqr_larfb_stream_shares(batchqr_type type, int rows);

/* GEQRF: factors panels of up to 32 columns, which are the members of `panels`, and makes T of each, as
 * bqr_larft() does, unless t is NULL. No panel has more than `rows` rows; from this and in real types
 * `wide`, many threads for a panel, follows how its sums are formed. info, if wanted, tells what is not
 * finite. */
batchqr_status bqr_geqrt(batchqr_type type, const bqr_args *panels, int rows, bool wide, void *t,
                         batchqr_stream stream);

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

#ifdef __cplusplus
}
#endif
#endif
