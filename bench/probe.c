/* SPDX-License-Identifier: BSD-3-Clause */
/* Test ratios of members that are too large for an exact check: every product with a random vector costs one
 * pass over the data, in a wider precision.
 *
 * For a normally distributed x, ||E x|| / ||x|| is on average ||E||_F / sqrt(n). So
 * ||A x - Q R x|| / (||A x|| max(m,n) eps) estimates the ratio of the Frobenius norms, and
 * sqrt(k) ||Q^H Q y - y|| / (||y|| m eps) that of I - Q^H Q: for errors without structure these agree with
 * LAPACK's ratios of 1-norms within a small factor. An error anywhere in the member shows. */
#include "bench.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>

enum { VECTORS = 2 };

typedef long double wide;

/* A complex vector; im is not used for real types. */
typedef struct vec {
  wide *re, *im;
  int length;
} vec;

static vec vec_new(int length) {
  vec x = {calloc((size_t)length + 1, sizeof(wide)), calloc((size_t)length + 1, sizeof(wide)), length};
  if (!x.re || !x.im) bench_die("out of memory for checking results");
  return x;
}

static void vec_free(vec x) {
  free(x.re);
  free(x.im);
}

static vec vec_random(batchqr_type type, int length, int seed) {
  vec x = vec_new(length);
  double *numbers = malloc(2 * (size_t)length * sizeof *numbers + 1);
  if (!numbers) bench_die("out of memory for checking results");
  bench_data_get(BATCHQR_D, numbers, 7654321 * (int64_t)(seed + 1), 2 * (int64_t)length);
  for (int i = 0; i < length; i++) {
    x.re[i] = numbers[2 * i];
    if (bench_is_complex(type)) x.im[i] = numbers[2 * i + 1];
  }
  free(numbers);
  return x;
}

static double vec_norm(vec x, int length) {
  wide sum = 0;
  for (int i = 0; i < length; i++) sum += x.re[i] * x.re[i] + x.im[i] * x.im[i];
  return (double)sqrtl(sum);
}

/* x[0 .. length) -= y[0 .. length) */
static void vec_subtract(vec x, vec y, int length) {
  for (int i = 0; i < length; i++) x.re[i] -= y.re[i], x.im[i] -= y.im[i];
}

/* `count` elements from `first` on. */
static void load(batchqr_type type, const void *from, size_t first, int count, vec to) {
  const float *s = from;
  const double *d = from;
  size_t step = bench_is_complex(type) ? 2 : 1;
  for (int i = 0; i < count; i++) {
    size_t at = step * (first + (size_t)i);
    to.re[i] = type_is_double(type) ? (wide)d[at] : (wide)s[at];
    if (step == 2) to.im[i] = type_is_double(type) ? (wide)d[at + 1] : (wide)s[at + 1];
  }
}

/* y[from ..] += (re, im) x[0 ..] */
static void axpy(batchqr_type type, wide re, wide im, vec x, int count, vec y, int from) {
  if (!bench_is_complex(type)) {
    for (int i = 0; i < count; i++) y.re[from + i] += re * x.re[i];
    return;
  }
  for (int i = 0; i < count; i++) {
    y.re[from + i] += re * x.re[i] - im * x.im[i];
    y.im[from + i] += re * x.im[i] + im * x.re[i];
  }
}

/* (re, im) := x^H y[from ..] */
static void dot(batchqr_type type, vec x, int count, vec y, int from, wide *re, wide *im) {
  *re = *im = 0;
  for (int i = 0; i < count; i++) *re += x.re[i] * y.re[from + i];
  if (!bench_is_complex(type)) return;
  for (int i = 0; i < count; i++) {
    *re += x.im[i] * y.im[from + i];
    *im += x.re[i] * y.im[from + i] - x.im[i] * y.re[from + i];
  }
}

/* A dense or upper trapezoidal matrix with leading dimension ld. */
typedef struct matrix {
  batchqr_type type;
  const void *data;
  int rows, columns, ld;
  bool upper;
} matrix;

static int column_length(matrix a, int j) { return a.upper ? bench_min(j + 1, a.rows) : a.rows; }

/* A x, as a vector of `length` >= rows. */
static vec multiply(matrix a, vec x, int length) {
  vec y = vec_new(length), column = vec_new(a.rows);
  for (int j = 0; j < a.columns; j++) {
    load(a.type, a.data, (size_t)j * (size_t)a.ld, column_length(a, j), column);
    axpy(a.type, x.re[j], x.im[j], column, column_length(a, j), y, 0);
  }
  vec_free(column);
  return y;
}

/* A^H x. */
static vec multiply_adjoint(matrix a, vec x) {
  vec y = vec_new(a.columns), column = vec_new(a.rows);
  for (int j = 0; j < a.columns; j++) {
    load(a.type, a.data, (size_t)j * (size_t)a.ld, column_length(a, j), column);
    dot(a.type, column, column_length(a, j), x, 0, &y.re[j], &y.im[j]);
  }
  vec_free(column);
  return y;
}

/* y := H_1 ... H_k y, or its adjoint, with the reflectors of a factored member. */
static void reflect(const bench_sample *s, const void *factored, bool adjoint, vec y) {
  batchqr_type type = s->what.type;
  int m = s->what.m;
  vec v = vec_new(m), tau = vec_new(s->k);
  load(type, s->tau, 0, s->k, tau);
  for (int i = 0; i < s->k; i++) {
    int j = adjoint ? i : s->k - 1 - i;
    wide re, im, t_re = tau.re[j], t_im = adjoint ? -tau.im[j] : tau.im[j];
    load(type, factored, (size_t)j * (size_t)m + (size_t)j, m - j, v);
    v.re[0] = 1, v.im[0] = 0;
    dot(type, v, m - j, y, j, &re, &im);
    axpy(type, -(t_re * re - t_im * im), -(t_re * im + t_im * re), v, m - j, y, j);
  }
  vec_free(v);
  vec_free(tau);
}

/* ||x - y|| / (||x|| dimension eps); frees both. */
static double relative(const bench_sample *s, vec x, vec y, int length, int dimension) {
  double norm = vec_norm(x, length);
  vec_subtract(y, x, length);
  double error = vec_norm(y, length);
  vec_free(x);
  vec_free(y);
  return error / (norm * dimension * type_eps(s->what.type));
}

static double residual(const bench_sample *s, int seed) {
  int m = s->what.m, n = s->what.n, k = s->k, dimension = m > n ? m : n;
  batchqr_type type = s->what.type;
  matrix a = {type, s->a0, m, n, m, false}, q = {type, s->a, m, k, m, false},
         r = {type, s->r, k, n, k, false};
  matrix c0 = {type, s->c0, m, n, m, false}, c = {type, s->c, m, n, m, false};
  vec x = vec_random(type, n, seed), expected, y, half;
  int length = m;
  switch (s->what.routine) {
  case BATCHQR_QR:
    expected = multiply(a, x, m);
    half = multiply(r, x, k);
    y = multiply(q, half, m);
    vec_free(half);
    break;
  case BATCHQR_GEQR_R:
    half = multiply(a, x, m);
    expected = multiply_adjoint(a, half);
    vec_free(half);
    half = multiply(r, x, k);
    y = multiply_adjoint(r, half);
    vec_free(half);
    length = n;
    break;
  case BATCHQR_ORGQR: /* both sides are about as long as x: no norm of a matrix to divide by */
    expected = vec_new(m);
    axpy(type, 1, 0, x, k, expected, 0);
    reflect(s, s->a0, false, expected);
    y = multiply(q, x, m);
    break;
  case BATCHQR_ORMQR:
    expected = multiply(c0, x, m);
    reflect(s, s->a0, true, expected);
    y = multiply(c, x, m);
    break;
  default:
    expected = multiply(a, x, m);
    r = (matrix){type, s->a, k, n, m, true};
    y = multiply(r, x, m);
    reflect(s, s->a, false, y);
    break;
  }
  vec_free(x);
  double ratio = relative(s, expected, y, length, s->what.routine == BATCHQR_ORGQR ? m : dimension);
  return s->what.routine == BATCHQR_ORGQR ? ratio * sqrt(k) : ratio;
}

static double orthogonality(const bench_sample *s, int seed) {
  int m = s->what.m, k = s->k;
  batchqr_type type = s->what.type;
  vec y = vec_random(type, k, seed), z;
  if (s->what.routine == BATCHQR_GEQRF) {
    z = vec_new(m);
    axpy(type, 1, 0, y, k, z, 0);
    reflect(s, s->a, false, z);
    reflect(s, s->a, true, z);
  } else {
    matrix q = {type, s->a, m, k, m, false};
    vec product = multiply(q, y, m);
    z = multiply_adjoint(q, product);
    vec_free(product);
  }
  return relative(s, y, z, k, m) * sqrt(k);
}

bench_errors bench_probe(const bench_sample *sample) {
  batchqr_op routine = sample->what.routine;
  bool has_q = routine == BATCHQR_GEQRF || routine == BATCHQR_QR || routine == BATCHQR_ORGQR;
  double found[2 * VECTORS];
#pragma omp parallel for schedule(dynamic)
  for (int i = 0; i < 2 * VECTORS; i++)
    found[i] = i < VECTORS ? residual(sample, i) : has_q ? orthogonality(sample, i) : -1;
  bench_errors errors = {found[0], found[VECTORS]};
  for (int i = 1; i < VECTORS; i++) {
    if (!(found[i] <= errors.residual)) errors.residual = found[i];
    if (!(found[VECTORS + i] <= errors.orthogonality)) errors.orthogonality = found[VECTORS + i];
  }
  return errors;
}
