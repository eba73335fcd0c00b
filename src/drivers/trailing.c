/* SPDX-License-Identifier: BSD-3-Clause */
#include "trailing.h"
#include "config.h"

#if BQR_HAVE_TRAILING
#include "arena.h"
#include "batch.h"
#include "block_reflectors.h"
#include "strided_member.h"
#include "wy/wy.h"
#include <stdlib.h>

extern const bqr_family bqr_family_ormqr_large;

/* Sixteenths of the columns that emulated products may take. A block, and as many columns, have room whole in
 * single precision: else they are made in narrow strips. */
enum { URGENT_SHARE = 3, SINGLE_URGENT_SHARE = 40, REST_SHARE = 5 };

struct bqr_trailing {
  bqr_problem problem; /* of all columns */
  const bqr_device *device;
  size_t size; /* of an element */
  bqr_products products[BQR_TRAILING_PARTS];
  bqr_gemm_engine *engines[BQR_TRAILING_PARTS];
  bqr_block_reflector blocks[2];
  void *scales;
  size_t bytes;
};

/* V^H C, V W, and, on the urgent stream, V^H V. No kernels for narrow products, which want aligned columns.
 */
static void lay_out_products(bqr_trailing *t, bqr_trailing_part part, bqr_arena *arena) {
  const bqr_problem *p = &t->problem;
  const int width = bqr_max(p->k, 1), cols = part == BQR_TRAILING_URGENT ? width : bqr_max(p->n, 1);
  const int urgent = p->type == BATCHQR_S ? SINGLE_URGENT_SHARE : URGENT_SHARE;
  const int share = part == BQR_TRAILING_URGENT ? urgent : REST_SHARE;
  bqr_gemm largest[2] = {bqr_product(p, true, width, cols, bqr_max(p->m, width)),
                         bqr_product(p, false, bqr_max(p->m, width), cols, width)};
  largest[0].sliced = largest[1].sliced = true;
  const size_t member = (size_t)p->m * (size_t)bqr_max(cols, width) * t->size;
  const size_t room = bqr_products_room(t->device, largest, member, part == BQR_TRAILING_URGENT, share, 0);
  bqr_products_lay_out_in(p, t->device, width, cols, largest, room, 0, arena, arena, &t->products[part]);
  t->products[part].engine = t->engines[part];
  t->products[part].sliced = true;
  t->products[part].shares = part == BQR_TRAILING_REST; /* with those that carry messages */
}

static void lay_out(bqr_trailing *t, void *base) {
  const bqr_problem *p = &t->problem;
  const size_t column = (size_t)bqr_max(p->k, 1) * t->size;
  bqr_arena arena = {base, 0};
  for (int i = 0; i < BQR_TRAILING_PARTS; i++) lay_out_products(t, (bqr_trailing_part)i, &arena);
  for (int i = 0; i < 2; i++) {
    bqr_block_reflector *b = &t->blocks[i];
    *b = (bqr_block_reflector){.ldv = bqr_aligned_ld(p->m), .ldt = bqr_max(p->k, 1)};
    b->v = bqr_arena_take(&arena, b->ldv, column);
    b->t = bqr_arena_take(&arena, b->ldt, column);
  }
  t->blocks[0].gram = t->blocks[1].gram = bqr_arena_take(&arena, t->blocks[0].ldt, column);
  t->scales = bqr_arena_take(&arena, 1, (size_t)bqr_ormqr_scales(p));
  t->bytes = arena.bytes;
}

/* --- plans */

bool bqr_trailing_serves(const bqr_family *family, const bqr_problem *problem) {
  return family == &bqr_family_ormqr_large && problem->k <= BQR_WY_WIDEST;
}

static batchqr_status prepare(const bqr_problem *problem) {
  batchqr_status status = bqr_reflectors_prepare(problem->type);
  return status ? status : bqr_ormqr_prepare(problem);
}

batchqr_status bqr_trailing_new(const bqr_problem *problem, const bqr_device *device,
                                bqr_trailing **trailing) {
  bqr_trailing *t = calloc(1, sizeof *t);
  *trailing = t;
  if (!t) return BATCHQR_OUT_OF_MEMORY;
  t->problem = *problem;
  t->device = device;
  t->size = bqr_type_bytes(problem->type);
  batchqr_status status = prepare(problem);
  for (int i = 0; i < BQR_TRAILING_PARTS && !status; i++)
    status = bqr_gemm_engine_new(device, &t->engines[i]);
  lay_out(t, NULL);
  return status;
}

void bqr_trailing_free(bqr_trailing *t) {
  if (!t) return;
  for (int i = 0; i < BQR_TRAILING_PARTS; i++) bqr_gemm_engine_free(t->engines[i]);
  free(t);
}

size_t bqr_trailing_bytes(const bqr_trailing *t) { return t->bytes; }

void bqr_trailing_place(bqr_trailing *t, void *memory) { lay_out(t, memory); }

/* --- range */

static bqr_problem columns_of(const bqr_trailing *t, int n) {
  bqr_problem problem = t->problem;
  problem.n = n;
  return problem;
}

static bqr_args args_of(const bqr_trailing *t, void *a, int lda, int n) {
  return (bqr_args){.c = {.data = a, .ld = lda}, .m = t->problem.m, .n = n, .k = t->problem.k, .count = 1};
}

batchqr_status bqr_trailing_begin(const bqr_trailing *t, void *a, int lda, batchqr_stream stream) {
  const bqr_args args = args_of(t, a, lda, t->problem.n);
  return bqr_ormqr_begin(&t->problem, &args, t->scales, stream);
}

batchqr_status bqr_trailing_end(const bqr_trailing *t, int first, int n, void *a, int lda,
                                batchqr_stream stream) {
  const bqr_problem problem = columns_of(t, n);
  const bqr_args args = args_of(t, a, lda, n);
  const size_t before = (size_t)(first / BQR_TRAILING_COLUMNS);
  const bqr_problem whole = columns_of(t, BQR_TRAILING_COLUMNS);
  return bqr_ormqr_end(&problem, &args, (const char *)t->scales + before * (size_t)bqr_ormqr_scales(&whole),
                       stream);
}

/* --- blocks */

batchqr_status bqr_trailing_form(bqr_trailing *t, int place, int rows, int k, const void *v, int ldv,
                                 const void *tau, batchqr_stream stream) {
  bqr_block_reflector *b = &t->blocks[place];
  bqr_products on = t->products[BQR_TRAILING_URGENT];
  const batchqr_type type = t->problem.type;
  b->rows = rows;
  b->k = k;
  on.stream = stream;
  const bqr_wy_block from = {.rows = rows,
                             .cols = k,
                             .a = (void *)v,
                             .lda = ldv,
                             .tau = tau,
                             .v = b->v,
                             .t = b->t,
                             .ldv = b->ldv,
                             .ldt = b->ldt,
                             .gram = b->gram};
  batchqr_status status = bqr_wy_take(type, &from, stream);
  if (!status)
    status = bqr_products_multiply(&on, bqr_product(&t->problem, true, k, k, rows), b->v, b->ldv, b->v,
                                   b->ldv, b->gram, b->ldt);
  return status ? status : bqr_wy_form(type, &from, stream);
}

batchqr_status bqr_trailing_apply(const bqr_trailing *t, int place, bqr_trailing_part part, void *c, int ldc,
                                  int n, batchqr_stream stream) {
  const bqr_block_reflector *b = &t->blocks[place];
  bqr_products on = t->products[part];
  const bqr_wy_product product = {.rows = b->rows,
                                  .k = b->k,
                                  .n = n,
                                  .v = b->v,
                                  .ldv = b->ldv,
                                  .c = c,
                                  .ldc = ldc,
                                  .t = b->t,
                                  .ldt = b->ldt};
  on.stream = stream;
  return n > 0 ? bqr_products_apply(&on, &t->problem, true, &product, c) : BATCHQR_SUCCESS;
}

#else /* and no plan has one */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bool bqr_trailing_serves(const bqr_family *family, const bqr_problem *problem) { return false; }
batchqr_status bqr_trailing_new(const bqr_problem *problem, const bqr_device *device,
                                bqr_trailing **trailing) {
  return BATCHQR_UNSUPPORTED;
}
void bqr_trailing_free(bqr_trailing *trailing) {}
size_t bqr_trailing_bytes(const bqr_trailing *trailing) { return 0; }
void bqr_trailing_place(bqr_trailing *trailing, void *memory) {}
batchqr_status bqr_trailing_begin(const bqr_trailing *trailing, void *a, int lda, batchqr_stream stream) {
  return BATCHQR_UNSUPPORTED;
}
batchqr_status bqr_trailing_end(const bqr_trailing *trailing, int first, int n, void *a, int lda,
                                batchqr_stream stream) {
  return BATCHQR_UNSUPPORTED;
}
batchqr_status bqr_trailing_form(bqr_trailing *trailing, int place, int rows, int k, const void *v, int ldv,
                                 const void *tau, batchqr_stream stream) {
  return BATCHQR_UNSUPPORTED;
}
batchqr_status bqr_trailing_apply(const bqr_trailing *trailing, int place, bqr_trailing_part part, void *c,
                                  int ldc, int n, batchqr_stream stream) {
  return BATCHQR_UNSUPPORTED;
}
#endif
