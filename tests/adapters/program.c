/* SPDX-License-Identifier: BSD-3-Clause */
#define _XOPEN_SOURCE 700
#include "program.h"
#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if HAVE_CUDA
#include <cuda_runtime_api.h>
#endif

static atomic_int failures;

void *shared_memory(size_t bytes) {
  void *memory = NULL;
#if HAVE_CUDA
  if (cudaMallocManaged(&memory, bytes + !bytes, cudaMemAttachGlobal)) memory = NULL;
#else
  memory = malloc(bytes + !bytes);
#endif
  if (!memory) exit(2);
  memset(memory, 0, bytes);
  return memory;
}

void finish(void) {
#if HAVE_CUDA
  cudaError_t error = cudaDeviceSynchronize();
  if (error) failures += printf("cudaDeviceSynchronize: %s\n", cudaGetErrorString(error));
#endif
}

static size_t size_of(char letter) { return letter == 'S' ? 4 : letter == 'Z' ? 16 : 8; }
char real_letter(char letter) { return letter == 'S' || letter == 'C' ? 'S' : 'D'; }
double epsilon_of(char letter) { return real_letter(letter) == 'S' ? FLT_EPSILON : DBL_EPSILON; }

static size_t bytes_of(matrices a) { return (size_t)a.ld * a.columns * a.count * size_of(a.letter); }

static matrices allocate(char letter, int rows, int columns, int ld, int count) {
  matrices a = {.letter = letter, .rows = rows, .columns = columns, .ld = ld, .count = count};
  a.data = shared_memory(bytes_of(a));
  a.addresses = shared_memory(count * sizeof(void *));
  for (int k = 0; k < count; k++) a.addresses[k] = a.data + bytes_of(a) / count * k;
  return a;
}

matrices new_matrices(char letter, int rows, int columns, int count) {
  return allocate(letter, rows, columns, rows + 1, count);
}

matrices new_vectors(char letter, int elements, int count) {
  return allocate(letter, elements, 1, elements, count);
}

void copy_matrices(matrices to, matrices from) {
#if HAVE_CUDA
  cudaMemcpy(to.data, from.data, bytes_of(from), cudaMemcpyDefault);
#else
  memcpy(to.data, from.data, bytes_of(from));
#endif
}

double complex entry(matrices a, int k, int i, int j) {
  const size_t e = ((size_t)k * a.columns + j) * a.ld + i;
  switch (a.letter) {
  case 'S':
    return ((float *)a.data)[e];
  case 'D':
    return ((double *)a.data)[e];
  case 'C':
    return ((float complex *)a.data)[e];
  default:
    return ((double complex *)a.data)[e];
  }
}

void set_entry(matrices a, int k, int i, int j, double complex x) {
  const size_t e = ((size_t)k * a.columns + j) * a.ld + i;
  switch (a.letter) {
  case 'S':
    ((float *)a.data)[e] = (float)creal(x);
    break;
  case 'D':
    ((double *)a.data)[e] = creal(x);
    break;
  case 'C':
    ((float complex *)a.data)[e] = (float complex)x;
    break;
  default:
    ((double complex *)a.data)[e] = x;
  }
}

void fill_matrices(matrices a) {
  for (int k = 0; k < a.count; k++)
    for (int j = 0; j < a.columns; j++)
      for (int i = 0; i < a.rows; i++) {
        const double t = 1.0 + i + 1.7 * j + 3.1 * k;
        set_entry(a, k, i, j, sin(t * t) + I * cos(2 * t * t));
      }
}

dense member(matrices a, int k, int rows, int columns) {
  dense d = {.rows = rows, .columns = columns};
  for (int j = 0; j < columns; j++)
    for (int i = 0; i < rows; i++) d.x[i + j * rows] = entry(a, k, i, j);
  return d;
}

dense upper_triangle(matrices a, int k, int rows, int columns) {
  dense d = member(a, k, rows, columns);
  for (int j = 0; j < columns; j++)
    for (int i = j + 1; i < rows; i++) d.x[i + j * rows] = 0;
  return d;
}

dense product(const dense *a, const dense *b) {
  dense c = {.rows = a->rows, .columns = b->columns};
  for (int j = 0; j < c.columns; j++)
    for (int l = 0; l < a->columns; l++)
      for (int i = 0; i < c.rows; i++) c.x[i + j * c.rows] += a->x[i + l * a->rows] * b->x[l + j * b->rows];
  return c;
}

dense adjoint(const dense *a) {
  dense b = {.rows = a->columns, .columns = a->rows};
  for (int j = 0; j < b.columns; j++)
    for (int i = 0; i < b.rows; i++) b.x[i + j * b.rows] = conj(a->x[j + i * a->rows]);
  return b;
}

double difference(const dense *a, const dense *b, char letter) {
  double worst = 0;
  for (int e = 0; e < a->rows * a->columns; e++) {
    const double error = cabs(a->x[e] - b->x[e]);
    if (!(error <= worst)) worst = error; /* a NaN too */
  }
  return worst / epsilon_of(letter);
}

double not_orthonormal(const dense *q, char letter) {
  const dense q_h = adjoint(q), gram = product(&q_h, q);
  dense identity = {.rows = gram.rows, .columns = gram.columns};
  for (int i = 0; i < identity.rows; i++) identity.x[i + i * identity.rows] = 1;
  return difference(&gram, &identity, letter);
}

double not_the_factor(const dense *r, const dense *a, char letter) {
  const dense r_h = adjoint(r), a_h = adjoint(a), left = product(&r_h, r), right = product(&a_h, a);
  return difference(&left, &right, letter);
}

void judge(const char *call, matrices a, double error) {
  if (error < 1000) return;
  failures++;
  printf("%s %c %d x %d: error %.1e eps\n", call, a.letter, a.rows, a.columns, error);
}

int verdict(void) {
  puts(failures ? "wrong" : "right");
  return failures != 0;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

void take_time(const char *call, matrices a, work *restore, work *run, void *what) {
  double ms[9];
  for (int rep = -2; rep < 9; rep++) { /* the first calls plan and allocate */
    restore(what);
    finish();
    const double begin = now();
    run(what);
    finish();
    if (rep >= 0) ms[rep] = now() - begin;
  }
  qsort(ms, 9, sizeof ms[0], ascending);
  printf("%s,%c,%d,%d,%d,%.4f\n", call, a.letter, a.rows, a.columns, a.count, ms[4]);
}
