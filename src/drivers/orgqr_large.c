/* SPDX-License-Identifier: BSD-3-Clause */
/* Q of large members from its reflectors, in place, in wide blocks, see block_reflectors.h: from the last to
 * the first, each is applied to the columns of Q right of it and to its own, which are those of the unit
 * matrix. */
#include "batch.h"
#include "block_reflectors.h"
#include "wy/wy.h"

static batchqr_status begin(const bqr_reflectors_work *w, batchqr_stream stream) {
  const bool all_reflected = w->problem.k == w->problem.n;
  return w->args.info || !all_reflected ? bqr_orgqr_begin(&w->problem, &w->args, stream) : BATCHQR_SUCCESS;
}

/* V^H E is V1^H, of the first k rows, in which the columns on the right are zero. */
static batchqr_status apply(const bqr_reflectors_work *w, const bqr_block_reflector *b,
                            const bqr_products *on) {
  const bqr_problem *p = &w->problem;
  const int cols = p->n - b->first, right = cols - b->k;
  char *a = (char *)w->args.a.data + (size_t)(b->first * ((int64_t)w->args.a.ld + 1)) * w->size;
  const char *c = a + (size_t)(b->k * ((int64_t)w->args.a.ld + 1)) * w->size;
  const char *v2 = b->v + (size_t)b->k * w->size;
  char *w1_right = on->w1 + (size_t)(b->k * b->ldt) * w->size;
  const int64_t lda = w->args.a.ld;
  batchqr_status status = bqr_wy_adjoint(p->type, b->k, b->k, b->v, b->ldv, on->w1, b->ldt, on->stream);
  if (!status)
    status = bqr_products_multiply(on, bqr_product(p, true, b->k, right, b->rows - b->k), v2, b->ldv, c, lda,
                                   w1_right, b->ldt);
  if (!status)
    status = bqr_products_multiply(on, bqr_product(p, false, b->k, cols, b->k), b->t, b->ldt, on->w1, b->ldt,
                                   on->w2, b->ldt);
  bqr_gemm last = bqr_product(p, false, b->rows, cols, b->k);
  last.alpha = -1;
  last.beta = 1;
  return status ? status : bqr_products_multiply(on, last, b->v, b->ldv, on->w2, b->ldt, a, lda);
}

static const bqr_reflectors_routine routine = {
    .forward = false, .begin = begin, .apply = apply, .launches = 1};

static batchqr_status launch(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device,
                             const bqr_args *args, batchqr_stream stream) {
  return bqr_reflectors_launch(problem, variant, device, args, &routine, stream);
}

static batchqr_status prepare(const bqr_problem *problem, const bqr_variant *variant,
                              const bqr_device *device) {
  (void)variant, (void)device;
  batchqr_status status = bqr_reflectors_prepare(problem->type);
  return status ? status : bqr_orgqr_prepare(problem->type);
}

static int count_launches(const bqr_problem *problem, const bqr_variant *variant, const bqr_device *device) {
  return bqr_reflectors_count_launches(problem, variant, device, &routine);
}

BQR_REFLECTORS_FAMILY(orgqr_large, BATCHQR_ORGQR);
