/* SPDX-License-Identifier: BSD-3-Clause */
/* How programs end, memory, time, threads. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <omp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

void ex_die(int status, const char *format, ...) {
  va_list args;
  va_start(args, format);
#pragma omp critical(ex_die)
  {
    fflush(stdout);
    fprintf(stderr, "%s: ", ex_program);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    exit(status);
  }
}

void *ex_alloc(size_t n, size_t size) { return ex_resize(NULL, n, size); }

void *ex_zeros(size_t n, size_t size) {
  void *memory = calloc(n + 1, size);
  if (!memory) ex_die(EX_FAILED, "no memory: %zu * %zu bytes", n, size);
  return memory;
}

void *ex_resize(void *memory, size_t n, size_t size) {
  memory = n < SIZE_MAX / size ? realloc(memory, n * size + 1) : NULL;
  if (!memory) ex_die(EX_FAILED, "no memory: %zu * %zu bytes", n, size);
  return memory;
}

double ex_seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int ex_use_threads(int threads) {
  if (threads) omp_set_num_threads(threads);
  return omp_get_max_threads();
}
