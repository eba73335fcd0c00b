/* SPDX-License-Identifier: BSD-3-Clause */
/* All in long double, an element as two of them: the cost only matters for what is factored, which is small.
 */
#include "reflectors.h"
#include "memory.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>

/* rows * k * k up to which a matrix is factored. */
#define LARGEST_WORK 100000

typedef struct wide {
  long double re, im;
} wide;

static wide add(wide a, wide b) { return (wide){a.re + b.re, a.im + b.im}; }
static wide mul(wide a, wide b) { return (wide){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static wide conjugate(wide a) { return (wide){a.re, -a.im}; }
static wide reciprocal(wide a) {
  long double h = hypotl(a.re, a.im);
  return (wide){a.re / h / h, -a.im / h / h};
}

static wide load(batchqr_type type, const void *a, size_t i) {
  switch (type) {
  case BATCHQR_S:
    return (wide){((const float *)a)[i], 0};
  case BATCHQR_D:
    return (wide){((const double *)a)[i], 0};
  case BATCHQR_C:
    return (wide){((const float *)a)[2 * i], ((const float *)a)[2 * i + 1]};
  default:
    return (wide){((const double *)a)[2 * i], ((const double *)a)[2 * i + 1]};
  }
}

static void store(batchqr_type type, void *a, size_t i, wide x) {
  switch (type) {
  case BATCHQR_S:
    ((float *)a)[i] = (float)x.re;
    break;
  case BATCHQR_D:
    ((double *)a)[i] = (double)x.re;
    break;
  case BATCHQR_C:
    ((float *)a)[2 * i] = (float)x.re;
    ((float *)a)[2 * i + 1] = (float)x.im;
    break;
  default:
    ((double *)a)[2 * i] = (double)x.re;
    ((double *)a)[2 * i + 1] = (double)x.im;
    break;
  }
}

static long double norm2(const wide *x, int n) {
  long double sum = 0.0L;
  for (int i = 0; i < n; i++) sum += x[i].re * x[i].re + x[i].im * x[i].im;
  return sum;
}

/* LAPACK's xLARFG: x(0) becomes beta, x(1..) v; returns tau. */
static wide larfg(wide *x, int n) {
  long double rest = norm2(x + 1, n - 1);
  if (rest == 0.0L && x[0].im == 0.0L) return (wide){0, 0};
  long double norm = sqrtl(rest + x[0].re * x[0].re + x[0].im * x[0].im);
  long double beta = x[0].re < 0.0L ? norm : -norm;
  wide tau = {(beta - x[0].re) / beta, -x[0].im / beta};
  wide scale = reciprocal((wide){x[0].re - beta, x[0].im});
  for (int i = 1; i < n; i++) x[i] = mul(x[i], scale);
  x[0] = (wide){beta, 0};
  return tau;
}

/* y := (I - conj(tau) v v^H) y, v(0) = 1 not stored. */
static void apply(const wide *v, wide tau, wide *y, int n) {
  wide dot = y[0];
  for (int i = 1; i < n; i++) dot = add(dot, mul(conjugate(v[i]), y[i]));
  wide s = mul(conjugate(tau), dot);
  s = (wide){-s.re, -s.im};
  y[0] = add(y[0], s);
  for (int i = 1; i < n; i++) y[i] = add(y[i], mul(v[i], s));
}

static void factored(batchqr_type type, matgen_kind kind, uint64_t seed, int rows, int k, void *v, int ldv,
                     void *tau) {
  void *a = memory_host((size_t)rows * k * bqr_type_bytes(type));
  wide *x = memory_host((size_t)rows * k * sizeof *x);
  matgen_fill(type, kind, seed, rows, k, a, rows);
  for (size_t i = 0; i < (size_t)rows * k; i++) x[i] = load(type, a, i);
  for (int j = 0; j < k; j++) {
    wide *xj = x + (size_t)j * rows + j, t = larfg(xj, rows - j);
    for (int l = j + 1; l < k; l++) apply(xj, t, x + (size_t)l * rows + j, rows - j);
    for (int i = 1; i < rows - j; i++) store(type, v, (size_t)j * ldv + j + i, xj[i]);
    store(type, tau, j, t);
  }
  free(a);
  free(x);
}

/* H = I - tau v v^H is unitary for tau = (1 + exp(i angle)) / v^H v; for real types the angle is 0. */
static void random_reflector(batchqr_type type, uint64_t seed, int j, int rows, void *v, int ldv, void *tau) {
  uint64_t stream = rng_bits(seed, j);
  int n = rows - j - 1;
  bool identity = rng_int(stream, 0, 0, 9) == 0;
  double scale = identity ? 0.0 : ldexp(1.0 / sqrt(n + 1.0), rng_int(stream, 1, -12, 4));
  double angle = type_is_complex(type) ? 3.0 * rng_uniform(stream, 2) : 0.0;
  long double norm = 1.0L;
  for (int i = 0; i < n; i++) {
    double im = type_is_complex(type) ? scale * rng_uniform(stream, 4 + 2 * (uint64_t)i) : 0.0;
    size_t at = (size_t)j * ldv + j + 1 + i;
    store(type, v, at, (wide){scale * rng_uniform(stream, 3 + 2 * (uint64_t)i), im});
    wide rounded = load(type, v, at);
    norm += norm2(&rounded, 1);
  }
  wide t = {(1.0L + cosl(angle)) / norm, sinl(angle) / norm};
  store(type, tau, j, identity && !(stream & 1) ? (wide){0, 0} : t);
}

void reflectors_fill(batchqr_type type, matgen_kind kind, uint64_t seed, int rows, int k, void *v, int ldv,
                     void *tau) {
  if (k == 0) return;
  if (seed % 2 == 0 && (int64_t)rows * k * k <= LARGEST_WORK) {
    factored(type, kind, seed, rows, k, v, ldv, tau);
    return;
  }
  for (int j = 0; j < k; j++) random_reflector(type, seed, j, rows, v, ldv, tau);
}
