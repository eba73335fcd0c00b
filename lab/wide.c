/* SPDX-License-Identifier: BSD-3-Clause */
#include "wide.h"

#include <math.h>

/* Independent sums of a dot product. */
enum { LANES = 8 };

/* The loops below twice, with and without FMA instructions, where the loader can choose. */
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__FMA__)
#define BY_PROCESSOR __attribute__((target_clones("default", "fma")))
#else
#define BY_PROCESSOR
#endif

static inline __attribute__((always_inline)) void add_product(wide *sum, double a, wide b) {
  double product = a * b.hi, rest = fma(a, b.hi, -product) + a * b.lo;
  double next = sum->hi + product, part = next - sum->hi;
  sum->lo += rest + ((sum->hi - (next - part)) + (product - part));
  sum->hi = next;
}

wide wide_add(wide a, wide b) {
  add_product(&a, 1, b);
  return a;
}

wide wide_negative(wide a) { return (wide){-a.hi, -a.lo}; }

wide wide_multiply(wide a, wide b) {
  wide product = {0, a.lo * b.hi};
  add_product(&product, a.hi, b);
  return product;
}

BY_PROCESSOR void wide_add_multiple(wide alpha, const double *restrict x, double *restrict hi,
                                    double *restrict lo, int count) {
  for (int i = 0; i < count; i++) {
    wide y = {hi[i], lo[i]};
    add_product(&y, x[i], alpha);
    hi[i] = y.hi, lo[i] = y.lo;
  }
}

BY_PROCESSOR wide wide_dot(const double *x, const double *hi, const double *lo, int count) {
  double sum_hi[LANES] = {0}, sum_lo[LANES] = {0};
  int full = count - count % LANES;
  for (int i = 0; i < full; i += LANES)
    for (int l = 0; l < LANES; l++) {
      wide sum = {sum_hi[l], sum_lo[l]};
      add_product(&sum, x[i + l], (wide){hi[i + l], lo[i + l]});
      sum_hi[l] = sum.hi, sum_lo[l] = sum.lo;
    }
  wide sum = {0, 0};
  for (int i = full; i < count; i++) add_product(&sum, x[i], (wide){hi[i], lo[i]});
  for (int l = 0; l < LANES; l++) add_product(&sum, 1, (wide){sum_hi[l], sum_lo[l]});
  return sum;
}
