/* SPDX-License-Identifier: BSD-3-Clause */
/* Pairs of doubles: hi is about the number, lo collects what rounding took from it, exactly what an FMA finds
 * in a product and Knuth's TwoSum in a sum, so that an error is about 2^-100. */
#ifndef BQR_LAB_WIDE_H
#define BQR_LAB_WIDE_H

typedef struct wide {
  double hi, lo;
} wide;

wide wide_add(wide a, wide b);
wide wide_negative(wide a);
wide wide_multiply(wide a, wide b);
/* y += alpha x, where y is hi and lo. */
void wide_add_multiple(wide alpha, const double *restrict x, double *restrict hi, double *restrict lo,
                       int count);
/* x^T y */
wide wide_dot(const double *x, const double *hi, const double *lo, int count);

#endif
