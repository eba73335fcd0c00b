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

/* The bits of the largest absolute value among `count` numbers; as numbers of that type are ordered like
 * their bits, this finds NaN and Inf on the way. */
static uint32_t largest_s(const float *x, int64_t count, uint32_t largest) {
  for (int64_t i = 0; i < count; i++) {
    uint32_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    bits &= 0x7fffffffu;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

static uint64_t largest_d(const double *x, int64_t count, uint64_t largest) {
  for (int64_t i = 0; i < count; i++) {
    uint64_t bits;
    memcpy(&bits, &x[i], sizeof bits);
    bits &= 0x7fffffffffffffffu;
    largest = bits > largest ? bits : largest;
  }
  return largest;
}

static int exponent_of(double largest) {
  int e = 0;
  if (!isfinite(largest)) return HOST_NONFINITE;
  frexp(largest, &e);
  return e;
}

static int exponent_s(int64_t rows, int n, const float *a, int64_t ld) {
  uint32_t bits = 0;
  float largest;
  for (int j = 0; j < n; j++) bits = largest_s(a + j * ld, rows, bits);
  memcpy(&largest, &bits, sizeof largest);
  return exponent_of(largest);
}

static int exponent_d(int64_t rows, int n, const double *a, int64_t ld) {
  uint64_t bits = 0;
  double largest;
  for (int j = 0; j < n; j++) bits = largest_d(a + j * ld, rows, bits);
  memcpy(&largest, &bits, sizeof largest);
  return exponent_of(largest);
}

static bool is_single(batchqr_type type) { return type == BATCHQR_S || type == BATCHQR_C; }

int bqr_host_exponent(batchqr_type type, int m, int n, const void *a, int ld) {
  int parts = host_is_complex(type) ? 2 : 1;
  int64_t rows = (int64_t)m * parts, step = (int64_t)ld * parts;
  return is_single(type) ? exponent_s(rows, n, a, step) : exponent_d(rows, n, a, step);
}

int bqr_host_range(batchqr_type type, int m, int n, const void *a, int ld) {
  int e = bqr_host_exponent(type, m, n, a, ld);
  bool fine = is_single(type) ? e >= S_LOW && e <= S_HIGH : e >= D_LOW && e <= D_HIGH;
  return e == HOST_NONFINITE ? e : fine ? 0 : -e;
}

void bqr_host_scale(batchqr_type type, int m, int n, void *a, int ld, int e) {
  int parts = host_is_complex(type) ? 2 : 1;
  for (int j = 0; j < n; j++)
    for (int64_t i = 0; i < (int64_t)m * parts; i++) {
      int64_t at = (int64_t)j * ld * parts + i;
      if (is_single(type))
        ((float *)a)[at] = ldexpf(((float *)a)[at], e);
      else
        ((double *)a)[at] = ldexp(((double *)a)[at], e);
    }
}

bool bqr_host_finite_reflectors(batchqr_type type, int rows, int k, const void *v, int ldv, const void *tau) {
  if (k > 0 && bqr_host_range(type, k, 1, tau, k) == HOST_NONFINITE) return false;
  for (int j = 0; j < host_least(k, rows - 1); j++)
    if (bqr_host_range(type, rows - j - 1, 1, host_at(type, v, ldv, j + 1, j), ldv) == HOST_NONFINITE)
      return false;
  return true;
}
