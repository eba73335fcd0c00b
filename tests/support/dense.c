/* SPDX-License-Identifier: BSD-3-Clause */
#include "dense.h"
#include "types.h"

#include <cblas.h>
#include <lapacke.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

dense dense_new(int m, int n) {
  return (dense){m, n, calloc((size_t)m * (size_t)n + 1, sizeof(double complex))};
}

void dense_free(dense *a) {
  free(a->x);
  a->x = NULL;
}

double dense_real(batchqr_type type, const void *x, int i, int exponent) {
  return ldexp(type_is_double(type) ? ((const double *)x)[i] : (double)((const float *)x)[i], exponent);
}

dense dense_read(batchqr_type type, const void *a, int ld, int m, int n, int exponent) {
  dense d = dense_new(m, n);
  const int parts = type_is_complex(type) ? 2 : 1;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) {
      const char *entry = (const char *)a + ((size_t)j * (size_t)ld + (size_t)i) * bqr_type_bytes(type);
      const double im = parts == 2 ? dense_real(type, entry, 1, exponent) : 0;
      *dense_at(&d, i, j) = CMPLX(dense_real(type, entry, 0, exponent), im);
    }
  return d;
}

int dense_exponent(batchqr_type type, const void *a, int ld, int m, int n) {
  dense d = dense_read(type, a, ld, m, n, 0);
  double largest = 0;
  for (size_t i = 0; i < (size_t)m * (size_t)n; i++)
    largest = fmax(largest, fmax(fabs(creal(d.x[i])), fabs(cimag(d.x[i]))));
  dense_free(&d);
  int e = 0;
  frexp(largest, &e);
  return -e;
}

double dense_spacing(batchqr_type type, int exponent) { return ldexp(type_eta(type), exponent); }

static bool is_finite(const dense *a) {
  for (size_t i = 0; i < (size_t)a->m * (size_t)a->n; i++)
    if (!isfinite(creal(a->x[i])) || !isfinite(cimag(a->x[i]))) return false;
  return true;
}

/* A zero times what is not finite is nothing. */
static void add_product(dense *z, const dense *x, bool adjoint, const dense *y) {
  for (int j = 0; j < y->n; j++)
    for (int k = 0; k < y->m; k++) {
      const double complex factor = *dense_at(y, k, j);
      if (factor == 0) continue;
      for (int i = 0; i < z->m; i++)
        *dense_at(z, i, j) += (adjoint ? conj(*dense_at(x, k, i)) : *dense_at(x, i, k)) * factor;
    }
}

dense dense_product(const dense *x, bool adjoint, const dense *y) {
  dense z = dense_new(adjoint ? x->n : x->m, y->n);
  const double complex one = 1, zero = 0;
  if (z.m == 0 || z.n == 0 || y->m == 0) return z;
  if (is_finite(x) && is_finite(y))
    cblas_zgemm(CblasColMajor, adjoint ? CblasConjTrans : CblasNoTrans, CblasNoTrans, z.m, z.n, y->m, &one,
                x->x, x->m, y->x, y->m, &zero, z.x, z.m);
  else
    add_product(&z, x, adjoint, y);
  return z;
}

void dense_subtract(dense *x, const dense *y) {
  for (size_t i = 0; i < (size_t)x->m * (size_t)x->n; i++) x->x[i] -= y->x[i];
}

double dense_norm(const dense *a) {
  double largest = 0;
  for (int j = 0; j < a->n; j++) {
    double sum = 0;
    for (int i = 0; i < a->m; i++) sum += cabs(*dense_at(a, i, j));
    if (!(sum <= largest)) largest = sum; /* a NaN stays */
    if (isnan(sum)) return sum;
  }
  return largest;
}

double dense_orthogonality(const dense *q) {
  dense gram = dense_product(q, true, q);
  for (int i = 0; i < q->n; i++) *dense_at(&gram, i, i) -= 1;
  const double norm = dense_norm(&gram);
  dense_free(&gram);
  return norm;
}

/* --- references */

typedef long double complex extended;

static extended dot(int m, const extended *x, const extended *y) {
  extended sum = 0;
  for (int i = 0; i < m; i++) sum += conjl(x[i]) * y[i];
  return sum;
}

/* Makes two columns orthogonal; whether they were not. */
static bool rotate(int m, extended *x, extended *y) {
  const long double a = creall(dot(m, x, x)), b = creall(dot(m, y, y));
  const extended product = dot(m, x, y);
  const long double c = cabsl(product);
  if (c <= 0x1p-62L * sqrtl(a) * sqrtl(b)) return false;
  const extended phase = product / c;
  const long double zeta = (b - a) / (2 * c);
  const long double t = copysignl(1, zeta) / (fabsl(zeta) + sqrtl(1 + zeta * zeta));
  const long double cosine = 1 / sqrtl(1 + t * t), sine = cosine * t;
  for (int i = 0; i < m; i++) {
    const extended p = x[i], q = y[i] * conjl(phase);
    x[i] = cosine * p - sine * q;
    y[i] = sine * p + cosine * q;
  }
  return true;
}

static int descending(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a < b) - (a > b);
}

/* One-sided Jacobi, of matrices that are not large. */
static void jacobi_values(const dense *a, double *s) {
  const bool wide = a->m < a->n;
  const int m = wide ? a->n : a->m, n = wide ? a->m : a->n;
  extended *x = malloc(((size_t)m * (size_t)n + 1) * sizeof *x);
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++) x[(size_t)j * m + i] = wide ? conj(*dense_at(a, j, i)) : *dense_at(a, i, j);
  bool rotated = true;
  for (int sweep = 0; sweep < 60 && rotated; sweep++) {
    rotated = false;
    for (int i = 0; i < n; i++)
      for (int j = i + 1; j < n; j++) rotated = rotate(m, x + (size_t)i * m, x + (size_t)j * m) || rotated;
  }
  for (int j = 0; j < n; j++) s[j] = (double)sqrtl(creall(dot(m, x + (size_t)j * m, x + (size_t)j * m)));
  qsort(s, (size_t)n, sizeof *s, descending);
  free(x);
}

void dense_singular_values(const dense *a, double *s, bool relative) {
  const int k = a->m < a->n ? a->m : a->n;
  if (relative) {
    jacobi_values(a, s);
    return;
  }
  dense copy = dense_new(a->m, a->n);
  memcpy(copy.x, a->x, (size_t)a->m * (size_t)a->n * sizeof *a->x);
  if (k > 0) LAPACKE_zgesdd(LAPACK_COL_MAJOR, 'N', a->m, a->n, copy.x, a->m, s, NULL, a->m, NULL, a->n);
  dense_free(&copy);
}

void dense_eigenvalues(const dense *a, double *w) {
  dense copy = dense_new(a->m, a->n);
  memcpy(copy.x, a->x, (size_t)a->m * (size_t)a->n * sizeof *a->x);
  if (a->n > 0) LAPACKE_zheevd(LAPACK_COL_MAJOR, 'N', 'L', a->n, copy.x, a->n, w);
  dense_free(&copy);
}
