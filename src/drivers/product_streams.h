/* SPDX-License-Identifier: BSD-3-Clause */
/* The products with blocks of many reflectors, I - V T V^H, whose V and T are matrices: the engine's, see
 * gemm.h, in the arithmetic that the compute mode permits, or, where they are small, those of wy.h. They go
 * to two streams: the caller's, and one that is for what leaves most of the GPU idle; or to more of these,
 * where several members are worked on. */
#ifndef BQR_SRC_DRIVERS_PRODUCT_STREAMS_H
#define BQR_SRC_DRIVERS_PRODUCT_STREAMS_H

#include "arena.h"
#include "gemm.h"
#include "streams.h"
#include "wy/wy.h"

enum { BQR_PRODUCT_STREAMS = 2 };

/* What a plan keeps: `count` streams, BQR_MOST_STREAMS at most, and an engine for each. */
typedef struct bqr_product_streams bqr_product_streams;
batchqr_status bqr_product_streams_new(const bqr_device *device, int count, bqr_product_streams **streams);
void bqr_product_streams_free(bqr_product_streams *streams);

/* One of the streams during a launch, and what products on it need. */
typedef struct bqr_products {
  const bqr_device *device;
  bqr_product_streams *all; /* NULL: the stream is somebody else's */
  int number;               /* of the stream, see streams.h */
  batchqr_stream stream;
  bqr_gemm_engine *engine;
  char *w1, *w2;
  int64_t cols; /* that these have room for */
  void *gemm;
  size_t gemm_bytes, room; /* see bqr_gemm */
  void *sums;              /* of blocks of the kernels in wy.h */
  bool has_sums;
  bool yields, shares; /* see bqr_products_multiply() */
  bool sliced;         /* see bqr_gemm */
  bool alone;          /* of many members: nothing runs beside them */
  const int *done;     /* see bqr_gemm; set after bqr_products_begin() */
} bqr_products;

/* Gives all their streams and engines; the last one has the caller's stream. Other threads that share the
 * plan wait until the end, behind which the caller's stream goes on behind all. The end follows each begin,
 * also one that failed. */
batchqr_status bqr_products_begin(bqr_product_streams *all, batchqr_stream stream, bqr_products *products);
batchqr_status bqr_products_end(bqr_product_streams *all);

/* What is enqueued on p->stream from here on is on p's stream: under capture all have the same. */
batchqr_status bqr_products_enter(const bqr_products *p);
/* Both go on when both have come here. One of them has to be entered next. */
batchqr_status bqr_products_meet(const bqr_products *a, const bqr_products *b);

/* What a product of the problem's type and mode is made of; alpha is 1, beta 0. */
bqr_gemm bqr_product(const bqr_problem *problem, bool adjoint_a, int64_t m, int64_t n, int64_t k);
/* Where the operands of products of many members are: in A, or in the workspace. */
enum { BQR_PRODUCT_A = 1, BQR_PRODUCT_B = 2, BQR_PRODUCT_C = 4 };
/* The product of all of them, of operands of which those are in A. */
bqr_gemm bqr_product_of_many(bqr_gemm product, const bqr_wy_many *many, int in_a);
/* c := alpha op(a) b + beta c. on->yields: kernels of another stream find multiprocessors meanwhile. Tiled
 * products leave some of them free; on->shares: they are beside kernels that have some (see bqr_gemm). In a
 * graph, which has no priorities, long native ones go in pieces of columns, each of about as many blocks as
 * run at once. */
batchqr_status bqr_products_multiply(const bqr_products *on, bqr_gemm product, const void *a, int64_t lda,
                                     const void *b, int64_t ldb, void *c, int64_t ldc);

/* Takes the memory: w1 and w2 for width x cols elements each, and what products of up to the sizes of
 * the two need. */
void bqr_products_lay_out(const bqr_problem *problem, const bqr_device *device, int width, int64_t cols,
                          const bqr_gemm largest[2], bqr_arena *arena, bqr_products *on);
/* The same with `sums` elements for narrow products, 0: none, and that much room, see bqr_gemm. Of many
 * members, `own` is one's, and `shared` has the room. */
void bqr_products_lay_out_in(const bqr_problem *problem, const bqr_device *device, int width, int64_t cols,
                             const bqr_gemm largest[2], size_t room, int64_t sums, bqr_arena *own,
                             bqr_arena *shared, bqr_products *on);
/* Whether products of up to these sizes may be. */
bool bqr_products_may_be_emulated(const bqr_device *device, const bqr_gemm largest[2]);
/* The room of products for a member of so many bytes: `share` of 16 parts of them where products may be
 * emulated, what the library wants where not; `halvings` times halved. */
size_t bqr_products_room(const bqr_device *device, const bqr_gemm largest[2], size_t member_bytes,
                         bool panels, int share, int halvings);

/* w2 := op(T) V^H C with op(T) = T, or T^H for `adjoint`, or -T where p says so; w1 and w2 have
 * T's leading dimension. p.to and p.ldto are not read. */
batchqr_status bqr_products_project(const bqr_products *on, const bqr_problem *problem, bool adjoint,
                                    bqr_wy_product p);
/* Whether that is done by the kernels of wy.h, which are for T^H and -T and need `sums`. */
bool bqr_products_are_narrow(const bqr_products *on, batchqr_type type, const bqr_wy_product *p,
                             bool adjoint);
/* C := (I - V op(T) V^H) C, as many columns at a time as there is room for; p.c is written. */
batchqr_status bqr_products_apply(const bqr_products *on, const bqr_problem *problem, bool adjoint,
                                  const bqr_wy_product *p, void *c);

#endif
