/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/range.h"
#include "host/member.h"

#include <float.h>
#include <math.h>
#include <string.h>

/* Data whose largest entry is between 2^LOW and 2^HIGH is used as it is: even its squares, summed over 2^31
 * rows, stay far from overflow and from where subnormals round. */
#define S_LOW  -40
#define S_HIGH 45
#define D_LOW  -400
#define D_HIGH 450

static int parts_of(batchqr_type type) { return host_is_complex(type) ? 2 : 1; }

/* --- exponents */

/* The bits of a number without its sign; as numbers of that type are ordered like their bits, the largest
 * bits among some numbers tell of a NaN or an Inf too. */
static inline uint32_t bits_s(float x) {
  uint32_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffffu;
}

static inline uint64_t bits_d(double x) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  return bits & 0x7fffffffffffffffu;
}

static int exponent_s(uint32_t bits) {
  float x;
  int e = 0;
  memcpy(&x, &bits, sizeof x);
  if (!isfinite(x)) return HOST_NONFINITE;
  frexpf(x, &e);
  return e;
}

static int exponent_d(uint64_t bits) {
  double x;
  int e = 0;
  memcpy(&x, &bits, sizeof x);
  if (!isfinite(x)) return HOST_NONFINITE;
  frexp(x, &e);
  return e;
}

static uint32_t largest_s(const float *x, int64_t count) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < count; i++) largest = bits_s(x[i]) > largest ? bits_s(x[i]) : largest;
  return largest;
}

static uint64_t largest_d(const double *x, int64_t count) {
  uint64_t largest = 0;
  for (int64_t i = 0; i < count; i++) largest = bits_d(x[i]) > largest ? bits_d(x[i]) : largest;
  return largest;
}

int bqr_host_exponent(batchqr_type type, int m, const void *column) {
  int64_t count = (int64_t)m * parts_of(type);
  return host_is_single(type) ? exponent_s(largest_s(column, count)) : exponent_d(largest_d(column, count));
}

/* The exponent of the scale for a largest entry of exponent e. */
static int scale_for(batchqr_type type, int e) {
  bool fine = host_is_single(type) ? e >= S_LOW && e <= S_HIGH : e >= D_LOW && e <= D_HIGH;
  return e == HOST_NONFINITE ? e : fine ? 0 : -e;
}

int bqr_host_range(batchqr_type type, int m, const void *column) {
  return scale_for(type, bqr_host_exponent(type, m, column));
}

int bqr_host_matrix_range(batchqr_type type, int m, int n, const void *a, int ld) {
  const bool single = host_is_single(type);
  const int64_t count = (int64_t)m * parts_of(type);
  uint32_t s = 0;
  uint64_t d = 0;
  for (int j = 0; j < n; j++) {
    const void *column = host_at(type, a, ld, 0, j);
    const uint32_t of_s = single ? largest_s(column, count) : 0;
    const uint64_t of_d = single ? 0 : largest_d(column, count);
    s = of_s > s ? of_s : s;
    d = of_d > d ? of_d : d;
  }
  return scale_for(type, single ? exponent_s(s) : exponent_d(d));
}

/* --- what is done to numbers */

void bqr_host_scale(batchqr_type type, int m, int n, void *a, int ld, int e) {
  int64_t count = (int64_t)m * parts_of(type);
  for (int j = 0; j < n && e != 0; j++) {
    void *column = host_at(type, a, ld, 0, j);
    for (int64_t i = 0; i < count; i++)
      if (host_is_single(type))
        ((float *)column)[i] = ldexpf(((float *)column)[i], e);
      else
        ((double *)column)[i] = ldexp(((double *)column)[i], e);
  }
}

void bqr_host_fill_nan(batchqr_type type, int m, int n, void *a, int ld) {
  int64_t count = (int64_t)m * parts_of(type);
  for (int j = 0; j < n; j++) {
    void *column = host_at(type, a, ld, 0, j);
    for (int64_t i = 0; i < count; i++)
      if (host_is_single(type))
        ((float *)column)[i] = NAN;
      else
        ((double *)column)[i] = NAN;
  }
}

bool bqr_host_is_zero(batchqr_type type, const void *x) {
  return host_is_single(type) ? largest_s(x, parts_of(type)) == 0 : largest_d(x, parts_of(type)) == 0;
}

/* --- lines */

/* Rows that are looked at together, a column after another. */
enum { ROWS = 64 };

static void row_exponents_s(const host_lines *x, int first, int rows, int *exponents) {
  uint32_t largest[ROWS] = {0};
  int parts = parts_of(x->type);
  for (int j = 0; j < x->length; j++) {
    const float *column = host_at(x->type, x->a, x->ld, first, j);
    for (int i = 0; i < rows; i++)
      for (int p = 0; p < parts; p++) {
        uint32_t bits = bits_s(column[i * parts + p]);
        largest[i] = bits > largest[i] ? bits : largest[i];
      }
  }
  for (int i = 0; i < rows; i++) exponents[first + i] = exponent_s(largest[i]);
}

static void row_exponents_d(const host_lines *x, int first, int rows, int *exponents) {
  uint64_t largest[ROWS] = {0};
  int parts = parts_of(x->type);
  for (int j = 0; j < x->length; j++) {
    const double *column = host_at(x->type, x->a, x->ld, first, j);
    for (int i = 0; i < rows; i++)
      for (int p = 0; p < parts; p++) {
        uint64_t bits = bits_d(column[i * parts + p]);
        largest[i] = bits > largest[i] ? bits : largest[i];
      }
  }
  for (int i = 0; i < rows; i++) exponents[first + i] = exponent_d(largest[i]);
}

static void line_exponents(const host_lines *x, int *exponents) {
  for (int j = 0; j < x->count && x->columns; j++)
    exponents[j] = bqr_host_exponent(x->type, x->length, host_at(x->type, x->a, x->ld, 0, j));
  for (int first = 0; first < x->count && !x->columns; first += ROWS)
    (host_is_single(x->type) ? row_exponents_s : row_exponents_d)(x, first, bqr_min(ROWS, x->count - first),
                                                                  exponents);
}

/* A line as a matrix of one column or one row. */
static void *line(const host_lines *x, int i, int *m, int *n) {
  *m = x->columns ? x->length : 1;
  *n = x->columns ? 1 : x->length;
  return x->columns ? host_at(x->type, x->a, x->ld, 0, i) : host_at(x->type, x->a, x->ld, i, 0);
}

bool bqr_host_lines_in(const host_lines *x, int *exponents) {
  bool finite = true;
  line_exponents(x, exponents);
  for (int i = 0; i < x->count; i++) {
    int m, n, e = scale_for(x->type, exponents[i]);
    void *a = line(x, i, &m, &n);
    if (e == HOST_NONFINITE) {
      bqr_host_fill_nan(x->type, m, n, a, x->ld);
      finite = false;
      e = 0;
    }
    bqr_host_scale(x->type, m, n, a, x->ld, e);
    exponents[i] = e;
  }
  return finite;
}

void bqr_host_lines_out(const host_lines *x, const int *exponents) {
  for (int i = 0; i < x->count; i++) {
    int m, n;
    void *a = line(x, i, &m, &n);
    bqr_host_scale(x->type, m, n, a, x->ld, -exponents[i]);
  }
}

bool bqr_host_finite_reflectors(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau) {
  if (k > 0 && bqr_host_exponent(type, k, tau) == HOST_NONFINITE) return false;
  for (int j = 0; j < bqr_min(k, rows - 1); j++)
    if (bqr_host_exponent(type, rows - j - 1, host_at(type, v, ldv, j + 1, j)) == HOST_NONFINITE)
      return false;
  return true;
}
