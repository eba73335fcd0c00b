/* SPDX-License-Identifier: BSD-3-Clause */
/* Random input by counting: entry i is a function of i, so that both sides know it. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One period in each precision, made when first used. */
static double *doubles;
static float *floats;

/* SplitMix64 (Steele, Lea and Flood 2014): a good hash of a counter. */
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* In (0, 1). */
static double uniform(uint64_t i) { return ((double)(mix(i) >> 11) + 0.5) * 0x1p-53; }

/* Box and Muller: a pair of normal numbers from a pair of uniform ones. */
static void make_period(void) {
  doubles = malloc((BENCH_DATA_PERIOD + 1) * sizeof *doubles);
  floats = malloc((BENCH_DATA_PERIOD + 1) * sizeof *floats);
  if (!doubles || !floats) bench_die("out of memory for the input's random numbers");
#pragma omp parallel for
  for (int i = 0; i < BENCH_DATA_PERIOD; i += 2) {
    double radius = sqrt(-2 * log(uniform((uint64_t)i))), angle = 2 * M_PI * uniform((uint64_t)i + 1);
    doubles[i] = radius * cos(angle);
    doubles[i + 1] = radius * sin(angle);
    floats[i] = (float)doubles[i];
    floats[i + 1] = (float)doubles[i + 1];
  }
}

void bench_data_free(void) {
  free(doubles);
  free(floats);
  doubles = NULL, floats = NULL;
}

static bool is_double(batchqr_type type) { return type == BATCHQR_D || type == BATCHQR_Z; }

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static const char *period_of(batchqr_type type, size_t *size) {
  if (!doubles) make_period();
  *size = is_double(type) ? sizeof(double) : sizeof(float);
  return is_double(type) ? (const char *)doubles : (const char *)floats;
}

void bench_data_get(batchqr_type type, void *to, int64_t first, int64_t reals) {
  size_t size;
  const char *period = period_of(type, &size);
  char *at = to;
  for (int64_t from = first % BENCH_DATA_PERIOD; reals > 0; from = 0) {
    int64_t now = least(reals, BENCH_DATA_PERIOD - from);
    memcpy(at, period + (size_t)from * size, (size_t)now * size);
    at += (size_t)now * size, reals -= now;
  }
}

void bench_data_fill(bench_target *target, batchqr_type type, void *to, int64_t first, int64_t reals) {
  size_t size;
  const char *period = period_of(type, &size);
  char *at = to;
  /* The rest of a period, then what is before it, then copies of that, each as long as what is there. */
  first %= BENCH_DATA_PERIOD;
  int64_t rest = least(reals, BENCH_DATA_PERIOD - first);
  target->ops->upload(target, at, period + (size_t)first * size, (size_t)rest * size);
  int64_t done = least(reals - rest, first);
  target->ops->upload(target, at + (size_t)rest * size, period, (size_t)done * size);
  for (done += rest; done < reals;) {
    int64_t more = least(reals - done, done);
    target->ops->copy(target, at + (size_t)done * size, at, (size_t)more * size);
    done += more;
  }
}
