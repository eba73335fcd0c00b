/* SPDX-License-Identifier: BSD-3-Clause */
/* Matrices are made in double precision from entries of moderate size, as `parts` doubles an entry (2 where
 * complex), then scaled by powers of two while they are rounded to their type. */
#include "matgen.h"
#include "memory.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>

/* Reflectors that a matrix of given singular values is multiplied with on each side: with so many vectors of
 * random entries all its entries are filled, at a cost that stays small next to its factorization. */
enum { REFLECTORS = 4 };

static const char *const names[MATGEN_NUM_KINDS] = {
    "random",        "zero",         "identity",    "diagonal",    "upper",          "lower",
    "banded",        "ones",         "signs",       "single",      "orthonormal",    "well",
    "ill",           "worst",        "clustered",   "collinear",   "rank_deficient", "zero_first",
    "zero_last",     "zero_columns", "zero_rows",   "overflow",    "underflow",      "huge",
    "largest",       "tiny",         "subnormal",   "large_power", "small_power",    "row_scaled",
    "column_scaled", "mixed",        "nearly_upper"};

const char *matgen_name(matgen_kind kind) { return names[kind]; }

uint64_t rng_mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

uint64_t rng_bits(uint64_t seed, uint64_t index) {
  return rng_mix(rng_mix(seed + 0x9e3779b97f4a7c15u) + index * 0x9e3779b97f4a7c15u);
}

double rng_uniform(uint64_t seed, uint64_t index) {
  return ((double)(rng_bits(seed, index) >> 12) + 0.5) * 0x1p-51 - 1.0;
}

int rng_int(uint64_t seed, uint64_t index, int low, int high) {
  return low + (int)(rng_bits(seed, index) % ((uint64_t)high - (uint64_t)low + 1));
}

/* A matrix under construction, without gaps between its columns. */
typedef struct draft {
  batchqr_type type;
  uint64_t seed;
  int m, n, parts;
  double *x;
} draft;

static double *entry(const draft *d, int i, int j) { return d->x + ((size_t)j * d->m + i) * d->parts; }

static void set(const draft *d, int i, int j, double value) { entry(d, i, j)[0] = value; }

static void set_random(const draft *d, int i, int j, double scale) {
  uint64_t index = ((uint64_t)j * d->m + i) * d->parts;
  for (int p = 0; p < d->parts; p++) entry(d, i, j)[p] = scale * rng_uniform(d->seed, index + p);
}

/* Random where first <= j - i <= last. */
static void fill_band(const draft *d, int first, int last) {
  for (int j = 0; j < d->n; j++)
    for (int i = 0; i < d->m; i++)
      if (j - i >= first && j - i <= last) set_random(d, i, j, 1.0);
}

static void fill_random(const draft *d) { fill_band(d, -d->m, d->n); }

static void fill_constant_diagonal(const draft *d) {
  for (int i = 0; i < d->m && i < d->n; i++) set(d, i, i, 1.0);
}

static void fill_signs(const draft *d, bool all_ones) {
  for (int j = 0; j < d->n; j++)
    for (int i = 0; i < d->m; i++)
      set(d, i, j, all_ones || rng_bits(d->seed, (uint64_t)j * d->m + i) & 1 ? 1.0 : -1.0);
}

/* x := (I - 2 u u^H / u^H u) x for a vector x of `length` entries, `step` doubles apart. */
static void reflect(const double *u, int length, int parts, double factor, double *x, size_t step) {
  double re = 0.0, im = 0.0;
  for (int i = 0; i < length; i++) {
    const double *a = u + (size_t)i * parts, *b = x + (size_t)i * step;
    re += a[0] * b[0] + (parts == 2 ? a[1] * b[1] : 0.0);
    im += parts == 2 ? a[0] * b[1] - a[1] * b[0] : 0.0;
  }
  re *= factor;
  im *= factor;
  for (int i = 0; i < length; i++) {
    const double *a = u + (size_t)i * parts;
    double *b = x + (size_t)i * step;
    b[0] -= a[0] * re - (parts == 2 ? a[1] * im : 0.0);
    if (parts == 2) b[1] -= a[0] * im + a[1] * re;
  }
}

/* Multiplies with REFLECTORS random reflectors from the left (columns as vectors) or the right (rows). */
static void mix_vectors(const draft *d, bool left) {
  int length = left ? d->m : d->n, vectors = left ? d->n : d->m;
  size_t step = left ? (size_t)d->parts : (size_t)d->parts * d->m;
  double *u = memory_host((size_t)length * d->parts * sizeof *u);
  for (int r = 0; r < REFLECTORS; r++) {
    double norm2 = 0.0;
    for (int i = 0; i < length * d->parts; i++) {
      u[i] = rng_uniform(d->seed + 1 + 2 * r + left, i);
      norm2 += u[i] * u[i];
    }
    for (int j = 0; j < vectors; j++)
      reflect(u, length, d->parts, 2.0 / norm2, left ? entry(d, 0, j) : entry(d, j, 0), step);
  }
  free(u);
}

/* Singular values from 1 to 1/condition in geometric progression; those from `rank` on zero, the last one
 * `last` if that is not 0. */
static void fill_spectrum(const draft *d, double condition, int rank, double last) {
  int k = d->m < d->n ? d->m : d->n;
  for (int i = 0; i < rank; i++) set(d, i, i, k > 1 ? pow(condition, -(double)i / (k - 1)) : 1.0);
  if (last != 0.0 && k > 0) set(d, k - 1, k - 1, last);
  mix_vectors(d, true);
  mix_vectors(d, false);
}

static void fill_collinear(const draft *d) {
  double eps = type_eps(d->type), delta[2] = {16 * eps, sqrt(eps)};
  fill_random(d);
  for (int j = 1; j < d->n; j++)
    for (int i = 0; i < d->m; i++)
      for (int p = 0; p < d->parts; p++)
        entry(d, i, j)[p] = entry(d, i, 0)[p] + delta[j & 1] * entry(d, i, j)[p];
}

static void fill_nearly_upper(const draft *d) {
  const int most = (type_is_double(d->type) ? 53 : 24) + 6;
  fill_random(d);
  for (int j = 0; j < d->n; j++) {
    const double below = ldexp(1.0, -rng_int(d->seed + 2, (uint64_t)j, 0, most));
    if (j < d->m) set(d, j, j, 1.0 + fabs(entry(d, j, j)[0]));
    for (int i = j + 1; i < d->m; i++)
      for (int p = 0; p < d->parts; p++) entry(d, i, j)[p] *= below;
  }
}

static void clear_column(const draft *d, int j) {
  for (int i = 0; i < d->m * d->parts; i++) entry(d, 0, j)[i] = 0.0;
}

static void clear_row(const draft *d, int i) {
  for (int j = 0; j < d->n; j++)
    for (int p = 0; p < d->parts; p++) entry(d, i, j)[p] = 0.0;
}

static bool one_in_three(const draft *d, int i) { return rng_int(d->seed + 1, i, 0, 2) == 0; }

static void fill_integers(const draft *d) {
  for (int j = 0; j < d->n; j++)
    for (int i = 0; i < d->m; i++)
      for (int p = 0; p < d->parts; p++)
        entry(d, i, j)[p] = rng_int(d->seed, ((uint64_t)j * d->m + i) * d->parts + p, -1000, 1000);
}

static void fill_entries(const draft *d, matgen_kind kind) {
  int k = d->m < d->n ? d->m : d->n;
  double eps = type_eps(d->type);
  switch (kind) {
  case MATGEN_ZERO:
    break;
  case MATGEN_IDENTITY:
    fill_constant_diagonal(d);
    break;
  case MATGEN_DIAGONAL:
    fill_band(d, 0, 0);
    break;
  case MATGEN_UPPER:
    fill_band(d, 0, d->n);
    break;
  case MATGEN_LOWER:
    fill_band(d, -d->m, 0);
    break;
  case MATGEN_BANDED:
    fill_band(d, -2, 2);
    break;
  case MATGEN_ONES:
    fill_signs(d, true);
    break;
  case MATGEN_SIGNS:
    fill_signs(d, false);
    break;
  case MATGEN_SINGLE:
    if (k > 0) set_random(d, rng_int(d->seed, 0, 0, d->m - 1), rng_int(d->seed, 1, 0, d->n - 1), 1.0);
    break;
  case MATGEN_ORTHONORMAL:
    fill_spectrum(d, 1.0, k, 0.0);
    break;
  case MATGEN_WELL:
  case MATGEN_OVERFLOW:
  case MATGEN_UNDERFLOW:
    fill_spectrum(d, 2.0, k, 0.0);
    break;
  case MATGEN_ILL:
    fill_spectrum(d, sqrt(0.1 / eps), k, 0.0);
    break;
  case MATGEN_WORST:
    fill_spectrum(d, 0.1 / eps, k, 0.0);
    break;
  case MATGEN_CLUSTERED:
    fill_spectrum(d, 1.0, k, eps);
    break;
  case MATGEN_RANK_DEFICIENT:
    fill_spectrum(d, 2.0, (k + 1) / 2, 0.0);
    break;
  case MATGEN_COLLINEAR:
    fill_collinear(d);
    break;
  case MATGEN_SUBNORMAL:
    fill_integers(d);
    break;
  case MATGEN_NEARLY_UPPER:
    fill_nearly_upper(d);
    break;
  default:
    fill_random(d);
    break;
  }
  if (kind == MATGEN_ZERO_FIRST && d->n > 0) clear_column(d, 0);
  if (kind == MATGEN_ZERO_LAST && d->n > 0) clear_column(d, d->n - 1);
  for (int j = 0; j < d->n && kind == MATGEN_ZERO_COLUMNS; j++)
    if (one_in_three(d, j)) clear_column(d, j);
  for (int i = 0; i < d->m && kind == MATGEN_ZERO_ROWS; i++)
    if (one_in_three(d, i)) clear_row(d, i);
}

/* The exponent that brings the Frobenius norm to between 1/16 and 1/8 of the largest number; or to between
 * 0.47 and 0.96 of it. */
static int huge_exponent(const draft *d, matgen_kind kind) {
  double sum = 0.0;
  int e = 0, top = type_is_double(d->type) ? 1024 : 128;
  for (size_t i = 0; i < (size_t)d->m * d->n * d->parts; i++) sum += d->x[i] * d->x[i];
  frexp(1.05 * sqrt(sum), &e);
  return kind == MATGEN_LARGEST ? top - e : top - 3 - e;
}

/* The power of two that entry (i, j) is multiplied with. */
static int exponent(const draft *d, matgen_kind kind, int i, int j, int huge) {
  bool dbl = type_is_double(d->type);
  int low = dbl ? -1050 : -140, high = dbl ? 950 : 100;
  switch (kind) {
  case MATGEN_OVERFLOW:
    return dbl ? 971 : 104; /* 4 eps / xLAMCH('Safe minimum') */
  case MATGEN_UNDERFLOW:
    return dbl ? -971 : -104;
  case MATGEN_HUGE:
  case MATGEN_LARGEST:
    return huge;
  case MATGEN_TINY:
    return dbl ? -1021 : -125;
  case MATGEN_SUBNORMAL:
    return dbl ? -1074 : -149;
  case MATGEN_LARGE_POWER:
    return dbl ? 664 : 100;
  case MATGEN_SMALL_POWER:
    return dbl ? -664 : -100;
  case MATGEN_ROW_SCALED:
    return rng_int(d->seed + 2, i, low, high);
  case MATGEN_COLUMN_SCALED:
    return rng_int(d->seed + 2, j, low, high);
  case MATGEN_MIXED:
    return rng_int(d->seed + 2, (uint64_t)j * d->m + i, low, high);
  default:
    return 0;
  }
}

void matgen_fill(batchqr_type type, matgen_kind kind, uint64_t seed, int m, int n, void *a, int ld) {
  int parts = type_is_complex(type) ? 2 : 1;
  if (m == 0 || n == 0) return;
  draft d = {type, rng_bits(seed, kind), m, n, parts, memory_host((size_t)m * n * parts * sizeof(double))};
  fill_entries(&d, kind);
  int huge = kind == MATGEN_HUGE || kind == MATGEN_LARGEST ? huge_exponent(&d, kind) : 0;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++)
      for (int p = 0; p < parts; p++) {
        size_t to = ((size_t)j * ld + i) * parts + p;
        int e = exponent(&d, kind, i, j, huge);
        double value = e == 0 ? entry(&d, i, j)[p] : ldexp(entry(&d, i, j)[p], e);
        if (type_is_double(type))
          ((double *)a)[to] = value;
        else
          ((float *)a)[to] = (float)value;
      }
  free(d.x);
}
