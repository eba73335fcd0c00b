/* SPDX-License-Identifier: BSD-3-Clause */
/* SKETCH on the CPU: see families/sketch/sketch.h. */
#include "families/sketch/sketch.h"
#include "host/member.h"
#include "host/numbers.h"
#include "host/range.h"

#include <math.h>

/* What brings a matrix whose largest entry is below 2^exponent into range: 1 but at the ends, where products
 * with numbers near 1 would overflow or lose their digits. */
static double scale_of(batchqr_type type, int exponent) {
  const bool single = host_is_single(type);
  const int low = single ? -62 : -894, high = single ? 103 : 999, up = single ? 64 : 128, down = -24;
  return ldexp(1, exponent <= low ? up : exponent > high ? down : 0);
}

static int exponent_of(batchqr_type type, const host_member *x) {
  int most = INT_MIN;
  for (int j = 0; j < x->n; j++) {
    const int exponent = bqr_host_exponent(type, x->m, host_at(type, x->a, x->lda, 0, j));
    if (exponent > most) most = exponent;
  }
  return most == INT_MIN ? 0 : most;
}

static void fill_column(batchqr_type type, uint64_t seed, int rows, int j, void *column) {
  for (int i = 0; i < rows; i++) {
    const double re = bqr_sketch_entry(seed, i, j, 0),
                 im = host_is_complex(type) ? bqr_sketch_entry(seed, i, j, 1) : 0;
    bqr_host_set(type, host_at(type, column, 0, i, 0), CMPLX(re, im));
  }
}

static void sketch_member(const host_launch *launch, const host_member *x, void *scratch) {
  const batchqr_type type = launch->problem->type;
  const bqr_args *args = launch->args;
  (void)scratch;
  args->scales[2 * x->id] = scale_of(type, exponent_of(type, x));
  for (int j = 0; j < args->k; j++) fill_column(type, args->seed, x->n, j, host_at(type, x->c, x->ldc, 0, j));
}

HOST_FAMILY(sketch_host, BQR_SKETCH, bqr_host_no_scratch, sketch_member);
