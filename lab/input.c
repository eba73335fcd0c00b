/* SPDX-License-Identifier: BSD-3-Clause */
/* Input other than normally distributed numbers: uniform ones, and U diag(s) V^H with singular values s from
 * 1 down to 1 / condition. U and V are products of random phases (signs in real types) and Walsh-Hadamard
 * transforms: m n log(m n) operations, where LAPACK's xLATMS takes m n min(m,n). */
#include "input.h"
#include "memory.h"
#include "sequence.h"
#include "types.h"

#include <complex.h>
#include <math.h>
#include <stdlib.h>

typedef double complex number;

enum { ROUNDS = 2, SIDE_BY_SIDE = 4 };

/* ---- singular vectors ---- */

static void set_phases(number *phases, int size, uint64_t first, bool is_complex) {
  for (int i = 0; i < size; i++) {
    double u = sequence_uniform(first + (uint64_t)i);
    phases[i] = is_complex ? cexp(2 * M_PI * I * u) : u < 0.5 ? -1 : 1;
  }
}

/* Orthogonal. A size that is no power of two takes two transforms that overlap. */
static void walsh_hadamard(number *x, int size) {
  int power = 1;
  while (power <= size / 2) power *= 2;
  for (int first = 0; first <= size - power; first += size > power ? size - power : 1) {
    number *part = x + first;
    for (int half = 1; half < power; half *= 2)
      for (int i = 0; i < power; i += 2 * half)
        for (int j = i; j < i + half; j++) {
          number a = part[j], b = part[j + half];
          part[j] = a + b, part[j + half] = a - b;
        }
    for (int i = 0; i < power; i++) part[i] /= sqrt(power);
  }
}

/* All `lines`, which lie `between` apart and have `size` entries `apart` from each other. */
static void mix_lines(number *a, int lines, int64_t between, int size, int64_t apart, const number *phases) {
#pragma omp parallel for schedule(dynamic)
  for (int first = 0; first < lines; first += SIDE_BY_SIDE) {
    int count = bqr_min(SIDE_BY_SIDE, lines - first);
    number *x = memory_host((size_t)size * SIDE_BY_SIDE * sizeof *x);
    for (int i = 0; i < size; i++)
      for (int l = 0; l < count; l++)
        x[(size_t)l * size + i] = phases[i] * a[(first + l) * between + i * apart];
    for (int l = 0; l < count; l++) walsh_hadamard(x + (size_t)l * size, size);
    for (int i = 0; i < size; i++)
      for (int l = 0; l < count; l++) a[(first + l) * between + i * apart] = x[(size_t)l * size + i];
    free(x);
  }
}

static double singular_value(input_kind kind, double condition, int i, int k) {
  double part = k > 1 ? (double)i / (k - 1) : 0;
  return kind == INPUT_GEOMETRIC ? pow(condition, -part) : 1 - part * (1 - 1 / condition);
}

static void set_spectrum(input_kind kind, double condition, number *a, number *phases, int m, int n,
                         bool is_complex) {
  const int k = bqr_min(m, n);
  for (int i = 0; i < k; i++) a[i + (int64_t)i * m] = singular_value(kind, condition, i, k);
  for (int round = 0; round < 2 * ROUNDS; round += 2) {
    set_phases(phases, m, (uint64_t)round * 1000003, is_complex);
    mix_lines(a, n, m, m, 1, phases);
    set_phases(phases, n, (uint64_t)(round + 1) * 1000003, is_complex);
    mix_lines(a, m, 1, n, m, phases);
  }
}

/* ---- the member ---- */

static void set_uniform(number *a, int64_t size, bool is_complex) {
#pragma omp parallel for
  for (int64_t i = 0; i < size; i++) {
    double re = 2 * sequence_uniform((uint64_t)(2 * i)) - 1,
           im = 2 * sequence_uniform((uint64_t)(2 * i + 1)) - 1;
    a[i] = is_complex ? re + im * I : re;
  }
}

static void convert(const number *a, int64_t size, batchqr_type type, void *to) {
  float *s = to;
  double *d = to;
  float complex *c = to;
  number *z = to;
#pragma omp parallel for
  for (int64_t i = 0; i < size; i++) switch (type) {
    case BATCHQR_S:
      s[i] = (float)creal(a[i]);
      break;
    case BATCHQR_D:
      d[i] = creal(a[i]);
      break;
    case BATCHQR_C:
      c[i] = (float complex)a[i];
      break;
    default:
      z[i] = a[i];
    }
}

void *input_make(input_kind kind, double condition, batchqr_type type, int m, int n) {
  if (kind == INPUT_NORMAL) return NULL;
  const int64_t size = (int64_t)m * n;
  number *a = memory_host((size_t)size * sizeof *a), *phases = memory_host((size_t)(m + n) * sizeof *phases);
  void *member = memory_host((size_t)size * bqr_type_bytes(type));
  if (kind == INPUT_UNIFORM)
    set_uniform(a, size, type_is_complex(type));
  else
    set_spectrum(kind, condition, a, phases, m, n, type_is_complex(type));
  convert(a, size, type, member);
  free(a);
  free(phases);
  return member;
}
