/* SPDX-License-Identifier: BSD-3-Clause */
/* op(Q) C and C op(Q) of large members in wide blocks, see block_reflectors.h. */
#include "batch.h"
#include "block_reflectors.h"
#include "wy/wy.h"

static batchqr_status begin(const bqr_reflectors_work *w, batchqr_stream stream) {
  return bqr_ormqr_begin(&w->problem, &w->args, w->scales, stream);
}

static batchqr_status end(const bqr_reflectors_work *w, batchqr_stream stream) {
  return bqr_ormqr_end(&w->problem, &w->args, w->scales, stream);
}

/* Rows from the block's first on := (I - V op(T) V^H) times them. */
static batchqr_status apply_left(const bqr_reflectors_work *w, const bqr_block_reflector *b,
                                 const bqr_products *on) {
  const bqr_problem *p = &w->problem;
  char *c = (char *)w->args.c.data + (size_t)b->first * w->size;
  const bqr_wy_product product = {.rows = b->rows,
                                  .k = b->k,
                                  .n = p->n,
                                  .v = b->v,
                                  .ldv = b->ldv,
                                  .c = c,
                                  .ldc = w->args.c.ld,
                                  .t = b->t,
                                  .ldt = b->ldt};
  return bqr_products_apply(on, p, p->trans != BATCHQR_NO_TRANS, &product, c);
}

/* Columns from the block's first on: C V, that times op(T), that times V^H. */
static batchqr_status apply_right(const bqr_reflectors_work *w, const bqr_block_reflector *b,
                                  const bqr_products *on) {
  const bqr_problem *p = &w->problem;
  const int64_t ldc = w->args.c.ld, ldw = w->ldcopy;
  char *c = (char *)w->args.c.data + (size_t)(b->first * ldc) * w->size;
  const char *t = p->trans == BATCHQR_NO_TRANS ? b->t : b->gram;
  batchqr_status status = bqr_products_multiply(on, bqr_product(p, false, p->m, b->k, b->rows), c, ldc, b->v,
                                                b->ldv, on->w1, ldw);
  if (!status)
    status = bqr_products_multiply(on, bqr_product(p, false, p->m, b->k, b->k), on->w1, ldw, t, b->ldt,
                                   on->w2, ldw);
  bqr_gemm last = bqr_product(p, false, p->m, b->rows, b->k);
  last.alpha = -1;
  last.beta = 1;
  return status ? status : bqr_products_multiply(on, last, on->w2, ldw, b->adjoint_v, b->ldt, c, ldc);
}

static bqr_reflectors_routine routine_of(const bqr_problem *problem) {
  const bool left = problem->side == BATCHQR_LEFT, plain = problem->trans == BATCHQR_NO_TRANS;
  bqr_problem member = *problem;
  member.count = 1;
  return (bqr_reflectors_routine){.forward = left != plain,
                                  .begin = begin,
                                  .apply = left ? apply_left : apply_right,
                                  .end = end,
                                  .launches = bqr_ormqr_launches(&member)};
}

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  const bqr_reflectors_routine routine = routine_of(problem);
  return bqr_reflectors_launch(problem, variant, device, args, &routine, stream);
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant, (void)device;
  batchqr_status status = bqr_reflectors_prepare(problem->type);
  return status ? status : bqr_ormqr_prepare(problem);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  const bqr_reflectors_routine routine = routine_of(problem);
  return bqr_reflectors_count_launches(problem, variant, device, &routine);
}

BQR_REFLECTORS_FAMILY(ormqr_large, BATCHQR_ORMQR);
