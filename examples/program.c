/* SPDX-License-Identifier: BSD-3-Clause */
/* How programs end, memory, time, options. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
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

/* --- options */

void ex_bad_usage(const char *option, const char *value, const char *wanted) {
  ex_die(EX_BAD_INPUT, "--%s '%s': %s expected; --help lists the options", option, value, wanted);
}

int ex_parse_int(const char *option, const char *value, int least, int most) {
  char *end, wanted[64];
  errno = 0;
  long number = strtol(value, &end, 10);
  snprintf(wanted, sizeof wanted, "a number from %d to %d", least, most);
  if (errno || end == value || *end || number < least || number > most) ex_bad_usage(option, value, wanted);
  return (int)number;
}

double ex_parse_double(const char *option, const char *value, double least, double most) {
  char *end, wanted[64];
  double number = strtod(value, &end);
  snprintf(wanted, sizeof wanted, "a number from %g to %g", least, most);
  if (end == value || *end || !(number >= least && number <= most)) ex_bad_usage(option, value, wanted);
  return number;
}

int ex_parse_name(const char *option, const char *value, const char *const *names, const char *wanted) {
  for (int i = 0; names[i]; i++)
    if (strcmp(value, names[i]) == 0) return i;
  ex_bad_usage(option, value, wanted);
}

batchqr_backend ex_parse_backend(const char *option, const char *value) {
  static const char *const names[] = {"auto", "cpu", "cuda", NULL};
  static const batchqr_backend backends[] = {BATCHQR_BACKEND_AUTO, BATCHQR_BACKEND_CPU, BATCHQR_BACKEND_CUDA};
  return backends[ex_parse_name(option, value, names, "auto, cpu or cuda")];
}
