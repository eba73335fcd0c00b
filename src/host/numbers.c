/* SPDX-License-Identifier: BSD-3-Clause */
#include "host/numbers.h"

#include <string.h>

double complex bqr_host_get(batchqr_type type, const void *x) {
  const float *f = x;
  const double *d = x;
  switch (type) {
  case BATCHQR_S:
    return f[0];
  case BATCHQR_D:
    return d[0];
  case BATCHQR_C:
    return CMPLX(f[0], f[1]);
  default:
    return CMPLX(d[0], d[1]);
  }
}

void bqr_host_set(batchqr_type type, void *x, double complex value) {
  bqr_host_set_real(type, x, 0, creal(value));
  if (host_is_complex(type)) bqr_host_set_real(type, x, 1, cimag(value));
}

double bqr_host_get_real(batchqr_type type, const void *x, int i) {
  return host_is_single(type) ? (double)((const float *)x)[i] : ((const double *)x)[i];
}

void bqr_host_set_real(batchqr_type type, void *x, int i, double value) {
  if (host_is_single(type))
    ((float *)x)[i] = (float)value;
  else
    ((double *)x)[i] = value;
}

void bqr_host_copy(batchqr_type type, int m, int n, const void *from, int ldf, void *to, int ldt) {
  if (m == 0) return;
  for (int j = 0; j < n; j++)
    memcpy(host_at(type, to, ldt, 0, j), host_at(type, from, ldf, 0, j), (size_t)m * bqr_type_bytes(type));
}

void bqr_host_copy_adjoint(batchqr_type type, int m, int n, const void *from, int ldf, void *to, int ldt) {
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m; i++)
      bqr_host_set(type, host_at(type, to, ldt, j, i),
                   conj(bqr_host_get(type, host_at(type, from, ldf, i, j))));
}

static void multiply(batchqr_type type, int n, void *x, double complex by) {
  for (int i = 0; i < n; i++) {
    void *at = host_at(type, x, n, i, 0);
    bqr_host_set(type, at, bqr_host_get(type, at) * by);
  }
}

void bqr_host_fix_sign(batchqr_type type, int m, void *x, int n, void *y) {
  double largest = 0;
  double complex number = 0;
  int place = 0;
  for (int i = 0; i < m; i++) {
    const double complex z = bqr_host_get(type, host_at(type, x, m, i, 0));
    const double square = creal(z) * creal(z) + cimag(z) * cimag(z);
    if (square <= largest) continue;
    largest = square;
    number = z;
    place = i;
  }
  if (largest == 0 || (creal(number) > 0 && cimag(number) == 0)) return;
  const double complex by = conj(number) / cabs(number);
  multiply(type, m, x, by);
  if (y) multiply(type, n, y, by);
  bqr_host_set(type, host_at(type, x, m, place, 0), cabs(number));
}
