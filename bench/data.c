/* SPDX-License-Identifier: BSD-3-Clause */
/* Random input by counting: entry i is a function of i, so that both sides know it. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1 << 16, PARTS = BENCH_DATA_PERIOD / PART + 1 };

/* One period in each precision; its parts are made when they are first used. */
static double *doubles;
static float *floats;
static bool made[PARTS];
/* The same in the target's memory, for fills of more than one part. */
static void *resident[2];

/* SplitMix64 (Steele, Lea and Flood 2014): a good hash of a counter. */
static uint64_t mix(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

double bench_data_uniform(uint64_t i) { return ((double)(mix(i) >> 11) + 0.5) * 0x1p-53; }

/* Box and Muller: a pair of normal numbers from a pair of uniform ones. */
static void make_part(int part) {
  for (int i = part * PART; i < (part + 1) * PART; i += 2) {
    double radius = sqrt(-2 * log(bench_data_uniform((uint64_t)i)));
    double angle = 2 * M_PI * bench_data_uniform((uint64_t)i + 1);
    doubles[i] = radius * cos(angle);
    doubles[i + 1] = radius * sin(angle);
    floats[i] = (float)doubles[i];
    floats[i + 1] = (float)doubles[i + 1];
  }
  made[part] = true;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Makes the parts that hold entries first, first + 1, ... of the period. */
static void make(int64_t first, int64_t reals) {
  if (!doubles) {
    doubles = malloc((size_t)PARTS * PART * sizeof *doubles);
    floats = malloc((size_t)PARTS * PART * sizeof *floats);
    if (!doubles || !floats) bench_die("out of memory for the input's random numbers");
  }
  int begin = (int)(first / PART), end = (int)((first + reals + PART - 1) / PART);
  while (begin < end && made[begin]) begin++;
  if (begin == end) return;
#pragma omp parallel for schedule(dynamic) if (end - begin > 1)
  for (int part = begin; part < end; part++)
    if (!made[part]) make_part(part);
}

void bench_data_free(bench_target *target) {
  for (int i = 0; i < 2; i++) target->ops->release(target, resident[i]);
  free(doubles);
  free(floats);
}

static bool is_double(batchqr_type type) { return type == BATCHQR_D || type == BATCHQR_Z; }

static size_t real_size(batchqr_type type) { return is_double(type) ? sizeof(double) : sizeof(float); }

static const char *period_of(batchqr_type type) {
  return is_double(type) ? (const char *)doubles : (const char *)floats;
}

void bench_data_get(batchqr_type type, void *to, int64_t first, int64_t reals) {
  size_t size = real_size(type);
  char *at = to;
  for (int64_t from = first % BENCH_DATA_PERIOD; reals > 0; from = 0) {
    int64_t now = least(reals, BENCH_DATA_PERIOD - from);
    make(from, now);
    memcpy(at, period_of(type) + (size_t)from * size, (size_t)now * size);
    at += (size_t)now * size, reals -= now;
  }
}

/* The whole period in the target's memory; NULL: there is no room for it. */
static const char *reside(bench_target *target, batchqr_type type) {
  make(0, BENCH_DATA_PERIOD);
  if (target->device->backend == BATCHQR_BACKEND_CPU) return period_of(type);
  void **there = &resident[is_double(type)];
  size_t bytes = BENCH_DATA_PERIOD * real_size(type);
  if (!*there && (*there = target->ops->allocate(target, bytes)))
    target->ops->upload(target, *there, period_of(type), bytes);
  return *there;
}

void bench_data_fill(bench_target *target, batchqr_type type, void *to, int64_t first, int64_t reals) {
  const bench_target_ops *ops = target->ops;
  size_t size = real_size(type);
  char *at = to;
  first %= BENCH_DATA_PERIOD;
  if (first + reals <= BENCH_DATA_PERIOD && reals <= PART) {
    make(first, reals);
    ops->upload(target, at, period_of(type) + (size_t)first * size, (size_t)reals * size);
    return;
  }
  const char *near = reside(target, type), *period = near ? near : period_of(type);
  void (*move)(bench_target *, void *, const void *, size_t) = near ? ops->copy : ops->upload;
  /* The rest of a period, then what is before it, then copies of that, each as long as what is there. */
  int64_t rest = least(reals, BENCH_DATA_PERIOD - first), done = least(reals - rest, first);
  move(target, at, period + (size_t)first * size, (size_t)rest * size);
  move(target, at + (size_t)rest * size, period, (size_t)done * size);
  for (done += rest; done < reals;) {
    int64_t more = least(reals - done, done);
    ops->copy(target, at + (size_t)done * size, at, (size_t)more * size);
    done += more;
  }
}
