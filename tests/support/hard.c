/* SPDX-License-Identifier: BSD-3-Clause */
#include "hard.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>

static const char *const names[] = {"kahan",          "cancellation", "hilbert",   "vandermonde",
                                    "graded_columns", "graded_rows",  "rank_one",  "equal",
                                    "repeated",       "ulps",         "wilkinson", "toeplitz"};

const char *hard_name(int kind) {
  return kind < MATGEN_NUM_KINDS ? matgen_name((matgen_kind)kind) : names[kind - MATGEN_NUM_KINDS];
}

static void set(batchqr_type type, void *a, int64_t at, double value) {
  const int64_t i = at * (type_is_complex(type) ? 2 : 1);
  for (int p = 0; p < (type_is_complex(type) ? 2 : 1); p++)
    if (type_is_double(type))
      ((double *)a)[i + p] = p ? 0 : value;
    else
      ((float *)a)[i + p] = p ? 0 : (float)value;
}

static void scale(batchqr_type type, void *a, int64_t at, double by) {
  const int64_t i = at * (type_is_complex(type) ? 2 : 1);
  for (int p = 0; p < (type_is_complex(type) ? 2 : 1); p++)
    if (type_is_double(type))
      ((double *)a)[i + p] *= by;
    else
      ((float *)a)[i + p] = (float)(((float *)a)[i + p] * by);
}

/* A number of the progression from 10^power to 10^-power, in an order of its own for each seed. */
static double grade(batchqr_type type, uint64_t seed, int i) {
  const int power = type_is_double(type) ? 100 : 12;
  return pow(10, rng_int(seed + 77, (uint64_t)i, -power, power));
}

/* n random numbers, and the sum of their squares. */
typedef struct vector {
  int n;
  double *x, norm2;
} vector;

static vector random_vector(uint64_t seed, int n) {
  vector u = {n, malloc(((size_t)n + 1) * sizeof(double)), 0};
  for (int k = 0; k < n; k++) {
    u.x[k] = rng_uniform(seed, (uint64_t)k);
    u.norm2 += u.x[k] * u.x[k];
  }
  return u;
}

/* Entry (i, j) of I - 2 u u^T, u brought to length 1. */
static double reflector(const vector *u, int i, int j) { return (i == j) - 2 * u->x[i] * u->x[j] / u->norm2; }

static double ulps_entry(batchqr_type type, const vector *u, int i, int j) {
  double sum = 0;
  for (int k = 0; k < u->n; k++)
    sum +=
        reflector(u, i, k) * (1 + 2 * type_eps(type) * (k % 4)) * (k % 3 == 0 ? -1 : 1) * reflector(u, j, k);
  return sum;
}

static double entry(batchqr_type type, int kind, uint64_t seed, const vector *u, int m, int n, int i, int j) {
  const double eps = type_eps(type), off = abs(i - j) == 1;
  switch (kind) {
  case HARD_KAHAN:
    return (i > j ? 0 : i == j ? 1 : -cos(1.2)) * pow(sin(1.2), i) * (1 - 100 * eps * j);
  case HARD_CANCELLATION:
    return (i == 0) +
           sqrt(eps) * pow(2, -j / 3.0) * rng_uniform(seed, (uint64_t)i * (uint64_t)n + (uint64_t)j);
  case HARD_HILBERT:
    return 1.0 / (i + j + 1);
  case HARD_VANDERMONDE:
    return pow((i + 1.0) / m, j);
  case HARD_RANK_ONE:
    return rng_uniform(seed, (uint64_t)i) * rng_uniform(seed + 1, (uint64_t)j);
  case HARD_EQUAL:
    return rng_uniform(seed, (uint64_t)i);
  case HARD_REPEATED:
    return reflector(u, i, j);
  case HARD_ULPS:
    return ulps_entry(type, u, i, j);
  case HARD_WILKINSON:
    return i == j ? abs(i % 21 - 10) : off ? ((i > j ? i : j) % 21 == 0 ? sqrt(eps) : 1) : 0;
  default: /* HARD_TOEPLITZ */
    return i == j ? 2 : -off;
  }
}

void hard_fill(batchqr_type type, int kind, uint64_t seed, int m, int n, void *a, int ld) {
  const bool graded = kind == HARD_GRADED_COLUMNS || kind == HARD_GRADED_ROWS;
  if (kind < MATGEN_NUM_KINDS || graded)
    matgen_fill(type, graded ? MATGEN_WELL : (matgen_kind)kind, seed, m, n, a, ld);
  if (kind < MATGEN_NUM_KINDS) return;
  const vector u = random_vector(seed, m > n ? m : n);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      const int64_t at = (int64_t)j * ld + i;
      if (graded)
        scale(type, a, at, grade(type, seed, kind == HARD_GRADED_ROWS ? i : j));
      else
        set(type, a, at, entry(type, kind, seed, &u, m, n, i, j));
    }
  free(u.x);
}
