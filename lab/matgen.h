/* SPDX-License-Identifier: BSD-3-Clause */
/* Test matrices. The kinds are those of LAPACK's TESTING/LIN/xLATB4 and more. A matrix is a function of type,
 * kind, seed and sizes alone: the leading dimension, the machine and the order of calls do not matter. */
#ifndef BQR_LAB_MATGEN_H
#define BQR_LAB_MATGEN_H

#include <batchqr/batchqr.h>
#include <stdint.h>

typedef enum matgen_kind {
  MATGEN_RANDOM = 0,     /* entries uniform in (-1, 1) */
  MATGEN_ZERO,           /* all zero */
  MATGEN_IDENTITY,       /* ones on the diagonal */
  MATGEN_DIAGONAL,       /* random on the diagonal */
  MATGEN_UPPER,          /* random upper triangle */
  MATGEN_LOWER,          /* random lower triangle */
  MATGEN_BANDED,         /* two diagonals each side of the main one */
  MATGEN_ONES,           /* all ones: rank one, every reflector after the first cancels */
  MATGEN_SIGNS,          /* +1 and -1 */
  MATGEN_SINGLE,         /* one entry is not zero */
  MATGEN_ORTHONORMAL,    /* singular values all 1 */
  MATGEN_WELL,           /* condition number 2 */
  MATGEN_ILL,            /* condition number sqrt(0.1 / eps), singular values in geometric progression */
  MATGEN_WORST,          /* condition number 0.1 / eps, likewise */
  MATGEN_CLUSTERED,      /* singular values 1 but for the last, which is eps */
  MATGEN_COLLINEAR,      /* all columns nearly one and the same */
  MATGEN_RANK_DEFICIENT, /* rank about half of min(m,n) */
  MATGEN_ZERO_FIRST,     /* column 0 is zero */
  MATGEN_ZERO_LAST,      /* the last column is zero */
  MATGEN_ZERO_COLUMNS,   /* about a third of the columns, chosen at random, are zero */
  MATGEN_ZERO_ROWS,      /* likewise rows */
  MATGEN_OVERFLOW,       /* condition number 2, norm near xLATB4's LARGE */
  MATGEN_UNDERFLOW,      /* condition number 2, norm near xLATB4's SMALL */
  MATGEN_HUGE,           /* Frobenius norm between 1/16 and 1/8 of the largest number */
  MATGEN_LARGEST,        /* Frobenius norm just below the largest number: R is barely representable */
  MATGEN_TINY,           /* entries around the smallest normal number, some of them subnormal */
  MATGEN_SUBNORMAL,      /* entries small multiples of the smallest subnormal number */
  MATGEN_LARGE_POWER,    /* entries near 1e+200 (d, z), 1e+30 (s, c) */
  MATGEN_SMALL_POWER,    /* entries near 1e-200 (d, z), 1e-30 (s, c) */
  MATGEN_ROW_SCALED,     /* rows scaled by powers of two spread over most of the exponent range */
  MATGEN_COLUMN_SCALED,  /* columns likewise */
  MATGEN_MIXED,          /* every entry scaled likewise, on its own */
  MATGEN_NEARLY_UPPER,   /* upper, positive diagonal; below it each column is smaller by a power of two up to
                            beyond rounding: reflectors of xLARFGP are long */
  MATGEN_NUM_KINDS
} matgen_kind;

/* "random", "zero_first", ... */
const char *matgen_name(matgen_kind kind);

/* Writes the m x n matrix of that kind and seed to a; rows m .. ld-1 are left alone. */
void matgen_fill(batchqr_type type, matgen_kind kind, uint64_t seed, int m, int n, void *a, int ld);

/* A hash: the finalizer of splitmix64 (Steele, Lea, Flood 2014). */
uint64_t rng_mix(uint64_t x);
/* Counter-based random numbers: the index-th of the stream `seed`. */
uint64_t rng_bits(uint64_t seed, uint64_t index);
double rng_uniform(uint64_t seed, uint64_t index);             /* in (-1, 1), never 0 */
int rng_int(uint64_t seed, uint64_t index, int low, int high); /* in [low, high] */

#endif
