/* SPDX-License-Identifier: BSD-3-Clause */
#include "product_streams.h"
#include "batch.h"
#include "costs.h"
#include <stdlib.h>

/* --- streams */

struct bqr_product_streams {
  bqr_streams *streams; /* NULL: a single one, the caller's */
  int count;
  bqr_gemm_engine *engines[BQR_MOST_STREAMS];
};

batchqr_status bqr_product_streams_new(const bqr_device *device, int count, bqr_product_streams **streams) {
  bqr_product_streams *all = calloc(1, sizeof *all);
  *streams = all;
  if (!all) return BATCHQR_OUT_OF_MEMORY;
  all->count = count;
  batchqr_status status = bqr_streams_new(device, count, true, &all->streams, NULL);
  for (int i = 0; i < count && !status; i++) status = bqr_gemm_engine_new(device, &all->engines[i]);
  return status;
}

void bqr_product_streams_free(bqr_product_streams *all) {
  if (!all) return;
  for (int i = 0; i < all->count; i++) bqr_gemm_engine_free(all->engines[i]);
  bqr_streams_free(all->streams);
  free(all);
}

batchqr_status bqr_products_begin(bqr_product_streams *all, batchqr_stream stream, bqr_products *products) {
  batchqr_status status = BATCHQR_SUCCESS;
  if (all->streams) status = bqr_streams_fork(all->streams, all->count, stream, NULL);
  for (int i = 0; i < all->count && !status; i++) {
    bqr_products *p = &products[i];
    p->all = all;
    p->number = all->count - 1 - i;
    p->engine = all->engines[i];
    p->stream = stream;
    if (all->streams) status = bqr_streams_enter(all->streams, p->number, &p->stream, NULL);
  }
  return status;
}

batchqr_status bqr_products_end(bqr_product_streams *all) {
  return all->streams ? bqr_streams_join(all->streams, NULL) : BATCHQR_SUCCESS;
}

batchqr_status bqr_products_enter(const bqr_products *p) {
  batchqr_stream same;
  return p->all->streams ? bqr_streams_enter(p->all->streams, p->number, &same, NULL) : BATCHQR_SUCCESS;
}

batchqr_status bqr_products_meet(const bqr_products *a, const bqr_products *b) {
  return a->number == b->number ? BATCHQR_SUCCESS
                                : bqr_streams_meet(a->all->streams, a->number, b->number, NULL);
}

/* --- products */

/* Emulated products are exact next to the lengths of V's rows alone, and xLARFGP's vectors may be as long as
 * 8 / eps. */
bqr_gemm bqr_product(const bqr_problem *problem, bool adjoint_a, int64_t m, int64_t n, int64_t k) {
  return (bqr_gemm){.type = problem->type,
                    .mode = problem->positive ? BATCHQR_COMPUTE_NATIVE : problem->compute,
                    .adjoint_a = adjoint_a,
                    .m = m,
                    .n = n,
                    .k = k,
                    .alpha = 1,
                    .switched = problem->switched};
}

bqr_gemm bqr_product_of_many(bqr_gemm product, const bqr_wy_many *many, int in_a) {
  const int64_t size = (int64_t)bqr_type_bytes(product.type), a = many->a / size, own = many->own / size;
  product.count = many->count;
  product.stride_a = in_a & BQR_PRODUCT_A ? a : own;
  product.stride_b = in_a & BQR_PRODUCT_B ? a : own;
  product.stride_c = in_a & BQR_PRODUCT_C ? a : own;
  return product;
}

/* Of the library's products, about. */
enum { TILE = 128 };

/* Columns of c that are made at once. */
static int64_t columns_at_once(const bqr_products *on, const bqr_gemm *g) {
  const bool of_doubles = g->type == BATCHQR_D || g->type == BATCHQR_Z;
  if (!on->yields || !of_doubles || (double)g->k < bqr_costs_of(on->device)->gemm.wave_terms || g->m == 0 ||
      !on->all || !bqr_streams_captured(on->all->streams) || bqr_gemm_tiling(on->device, g))
    return g->n;
  const int64_t tiles = (g->m - 1) / TILE + 1, across = on->device->multiprocessors / tiles;
  return (across > 1 ? across : 1) * TILE;
}

batchqr_status bqr_products_multiply(const bqr_products *on, bqr_gemm product, const void *a, int64_t lda,
                                     const void *b, int64_t ldb, void *c, int64_t ldc) {
  product.a = a;
  product.lda = lda;
  product.ldb = ldb;
  product.ldc = ldc;
  product.room = on->room;
  product.done = on->done;
  product.yields = on->yields;
  product.shares = on->shares;
  product.sliced = on->sliced;
  const size_t size = bqr_type_bytes(product.type);
  const int64_t all = product.n, each = columns_at_once(on, &product);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t j = 0; j < all && !status; j += each) {
    product.n = all - j < each ? all - j : each;
    product.b = (const char *)b + (size_t)(j * ldb) * size;
    product.c = (char *)c + (size_t)(j * ldc) * size;
    status = bqr_gemm_enqueue(on->engine, &product, on->gemm, on->gemm_bytes, on->stream);
  }
  return status;
}

bool bqr_products_may_be_emulated(const bqr_device *device, const bqr_gemm largest[2]) {
  return bqr_gemm_may_be_tiled(device, &largest[0]) || bqr_gemm_may_be_tiled(device, &largest[1]);
}

/* What the library's products have, which sum in parts where they have much. */
static size_t native_room(const bqr_costs *costs, const bqr_gemm *largest, size_t member_bytes, bool panels) {
  double parts = panels ? costs->room.other_panels : costs->room.other_rest;
  if (largest->mode == BATCHQR_COMPUTE_NATIVE && (double)member_bytes < costs->room.native_bytes)
    parts = panels ? costs->room.small_panels : costs->room.small_rest;
  else if (largest->mode == BATCHQR_COMPUTE_NATIVE)
    parts = panels ? costs->room.large_panels : costs->room.large_rest;
  else if ((double)member_bytes <= costs->room.other_bytes)
    parts *= 2;
  return member_bytes / (size_t)parts;
}

size_t bqr_products_room(const bqr_device *device, const bqr_gemm largest[2], size_t member_bytes,
                         bool panels, int share, int halvings) {
  const bqr_costs *costs = bqr_costs_of(device);
  const size_t native = native_room(costs, &largest[0], member_bytes, panels),
               most = (size_t)costs->room.most_bytes, least = native < most ? native : most,
               part = member_bytes / (size_t)costs->room.converted;
  size_t room = bqr_products_may_be_emulated(device, largest) ? part * (size_t)share : 0;
  room = (room > least ? room : least) >> halvings;
  return room > BQR_GEMM_LEAST_ROOM ? room : BQR_GEMM_LEAST_ROOM;
}

void bqr_products_lay_out_in(const bqr_problem *problem, const bqr_device *device, int width, int64_t cols,
                             const bqr_gemm largest[2], size_t room, int64_t sums, bqr_arena *own,
                             bqr_arena *shared, bqr_products *on) {
  const size_t size = bqr_type_bytes(problem->type);
  *on = (bqr_products){.device = device,
                       .w1 = bqr_arena_take(own, cols, (size_t)width * size),
                       .w2 = bqr_arena_take(own, cols, (size_t)width * size),
                       .cols = cols,
                       .sums = sums > 0 ? bqr_arena_take(own, sums, size) : NULL,
                       .has_sums = sums > 0,
                       .room = room};
  for (int i = 0; i < 2; i++) {
    bqr_gemm product = largest[i];
    product.room = room;
    const size_t bytes = bqr_gemm_workspace(device, &product);
    if (bytes > on->gemm_bytes) on->gemm_bytes = bytes;
  }
  on->gemm = bqr_arena_take(shared, 1, on->gemm_bytes);
}

void bqr_products_lay_out(const bqr_problem *problem, const bqr_device *device, int width, int64_t cols,
                          const bqr_gemm largest[2], bqr_arena *arena, bqr_products *on) {
  bqr_products_lay_out_in(problem, device, width, cols, largest, 0, BQR_WY_SUMS, arena, arena, on);
}

/* Rows up to which what products take is latency. Of more than a panel's columns of many members of doubles,
 * whose operands are not converted first, they are judged as if there were so many of them, of twice the
 * bytes, and four times as many where all is in one stream. */
static double latent_rows(const bqr_products *on, batchqr_type type, const bqr_wy_product *p) {
  const bqr_costs *costs = bqr_costs_of(on->device);
  const bool many = p->many.count > 0 && type == BATCHQR_D && p->n > BQR_BLOCK_WIDTH;
  return costs->narrow_rows / (many ? costs->gemm.members * (on->alone ? 8 : 2) : 1);
}

/* What products of few rows take is latency. */
bool bqr_products_are_narrow(const bqr_products *on, batchqr_type type, const bqr_wy_product *p,
                             bool adjoint) {
  return on->has_sums && (adjoint || p->negative) && (p->rows <= latent_rows(on, type, p) || p->done) &&
         p->k <= BQR_WY_NARROW && p->n <= BQR_WY_NARROW;
}

batchqr_status bqr_products_project(const bqr_products *on, const bqr_problem *problem, bool adjoint,
                                    bqr_wy_product p) {
  p.to = on->w2;
  p.ldto = p.ldt;
  if (bqr_products_are_narrow(on, problem->type, &p, adjoint))
    return bqr_wy_multiply(problem->type, &p, on->sums, on->stream);
  const bqr_gemm first = bqr_product_of_many(bqr_product(problem, true, p.k, p.n, p.rows), &p.many,
                                             BQR_PRODUCT_A | BQR_PRODUCT_B);
  batchqr_status status = bqr_products_multiply(on, first, p.v, p.ldv, p.c, p.ldc, on->w1, p.ldt);
  if (status) return status;
  bqr_gemm last = bqr_product_of_many(bqr_product(problem, adjoint, p.k, p.n, p.k), &p.many, 0);
  last.alpha = p.negative ? -1 : 1;
  return bqr_products_multiply(on, last, p.t, p.ldt, on->w1, p.ldt, on->w2, p.ldt);
}

/* C := C - V W by kernels of wy.h, which heed the switch as no library does. */
static batchqr_status subtract_unless_done(const bqr_products *on, const bqr_problem *problem,
                                           const bqr_wy_product *p, void *c) {
  const int64_t size = (int64_t)bqr_type_bytes(problem->type);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int k = 0; k < p->k; k += BQR_WY_NARROW)
    for (int n = 0; n < p->n && !status; n += BQR_WY_NARROW) {
      const bqr_wy_update u = {.rows = p->rows,
                               .k = bqr_min(BQR_WY_NARROW, p->k - k),
                               .n = bqr_min(BQR_WY_NARROW, p->n - n),
                               .v = (const char *)p->v + k * p->ldv * size,
                               .w = on->w2 + (k + n * p->ldt) * size,
                               .c = (char *)c + n * p->ldc * size,
                               .ldv = p->ldv,
                               .ldw = p->ldt,
                               .ldc = p->ldc,
                               .done = p->done,
                               .many = p->many};
      status = bqr_wy_subtract(problem->type, &u, on->stream);
    }
  return status;
}

static batchqr_status apply_to_strip(const bqr_products *on, const bqr_problem *problem, bool adjoint,
                                     const bqr_wy_product *p, void *c) {
  batchqr_status status = bqr_products_project(on, problem, adjoint, *p);
  if (status) return status;
  if (bqr_products_are_narrow(on, problem->type, p, adjoint)) {
    const bqr_wy_update u = {p->rows, p->k, p->n, p->v, on->w2, c, p->ldv, p->ldt, p->ldc, p->done, p->many};
    return bqr_wy_subtract(problem->type, &u, on->stream);
  }
  bqr_gemm last = bqr_product_of_many(bqr_product(problem, false, p->rows, p->n, p->k), &p->many,
                                      BQR_PRODUCT_A | BQR_PRODUCT_C);
  last.alpha = -1;
  last.beta = 1;
  last.room = on->room;
  if (p->done && problem->op == BATCHQR_ORMQR && !bqr_gemm_tiling(on->device, &last))
    return subtract_unless_done(on, problem, p, c);
  return bqr_products_multiply(on, last, p->v, p->ldv, on->w2, p->ldt, c, p->ldc);
}

batchqr_status bqr_products_apply(const bqr_products *on, const bqr_problem *problem, bool adjoint,
                                  const bqr_wy_product *p, void *c) {
  const size_t column = (size_t)p->ldc * bqr_type_bytes(problem->type);
  batchqr_status status = BATCHQR_SUCCESS;
  for (int64_t j = 0; j < p->n && !status; j += on->cols) {
    bqr_wy_product strip = *p;
    strip.n = (int)(p->n - j < on->cols ? p->n - j : on->cols);
    strip.c = (char *)c + (size_t)j * column;
    status = apply_to_strip(on, problem, adjoint, &strip, (char *)c + (size_t)j * column);
  }
  return status;
}
