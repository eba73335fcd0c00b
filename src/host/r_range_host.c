/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest and the largest |R(j,j)| of a factored member. */
#include "host/member.h"

#include <math.h>

static double magnitude(batchqr_type type, const void *x) {
  const float *f = x;
  const double *d = x;
  switch (type) {
  case BATCHQR_S:
    return fabs(f[0]);
  case BATCHQR_D:
    return fabs(d[0]);
  case BATCHQR_C:
    return hypot(f[0], f[1]);
  default:
    return hypot(d[0], d[1]);
  }
}

static void set_range(batchqr_type type, void *range, double smallest, double largest) {
  if (host_is_single(type)) {
    float *to = range;
    to[0] = (float)smallest, to[1] = (float)largest;
  } else {
    double *to = range;
    to[0] = smallest, to[1] = largest;
  }
}

static void find_range(const host_launch *launch, const host_member *x, void *scratch) {
  batchqr_type type = launch->problem->type;
  const bqr_args *args = launch->args;
  int k = bqr_min(x->m, x->n), first_zero = 0;
  double smallest = k > 0 ? INFINITY : 0, largest = 0, sum = 0;
  (void)scratch;
  for (int j = 0; j < k; j++) {
    double r = magnitude(type, host_at(type, x->a, x->lda, j, j));
    smallest = fmin(smallest, r);
    largest = fmax(largest, r);
    sum += 0 * r; /* NaN where r is not finite */
    if (r == 0 && first_zero == 0) first_zero = j + 1;
  }
  bool finite = sum == 0;
  set_range(type, bqr_host_vector(&args->range, bqr_real_bytes(type), x->id), finite ? smallest : NAN,
            finite ? largest : NAN);
  host_set_info(args, x->id, finite ? first_zero : BATCHQR_INFO_NONFINITE);
}

HOST_FAMILY(r_range_host, BATCHQR_R_RANGE, bqr_host_no_scratch, find_range);
