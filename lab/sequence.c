/* SPDX-License-Identifier: BSD-3-Clause */
/* Random input by counting: entry i is a function of i, so that both sides know it. */
#include "sequence.h"
#include "matgen.h"
#include "types.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PART = 1 << 16, PARTS = SEQUENCE_PERIOD / PART + 1 };

/* One period in each precision; its parts are made when they are first used. */
static double *doubles;
static float *floats;
static bool made[PARTS];
/* The same in the target's memory, for fills of more than one part. */
static void *resident[2];

double sequence_uniform(uint64_t i) {
  return ((double)(rng_mix(i + 0x9e3779b97f4a7c15u) >> 11) + 0.5) * 0x1p-53;
}

/* Box and Muller: a pair of normal numbers from a pair of uniform ones. */
static void make_part(int part) {
  for (int i = part * PART; i < (part + 1) * PART; i += 2) {
    double radius = sqrt(-2 * log(sequence_uniform((uint64_t)i)));
    double angle = 2 * M_PI * sequence_uniform((uint64_t)i + 1);
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
    doubles = memory_host((size_t)PARTS * PART * sizeof *doubles);
    floats = memory_host((size_t)PARTS * PART * sizeof *floats);
  }
  int begin = (int)(first / PART), end = (int)((first + reals + PART - 1) / PART);
  while (begin < end && made[begin]) begin++;
  if (begin == end) return;
#pragma omp parallel for schedule(dynamic) if (end - begin > 1)
  for (int part = begin; part < end; part++)
    if (!made[part]) make_part(part);
}

void sequence_free(memory_space *space) {
  for (int i = 0; i < 2; i++) space_release(space, resident[i]);
  free(doubles);
  free(floats);
}

static const char *period_of(batchqr_type type) {
  return type_is_double(type) ? (const char *)doubles : (const char *)floats;
}

void sequence_get(batchqr_type type, void *to, int64_t first, int64_t reals) {
  size_t size = bqr_real_bytes(type);
  char *at = to;
  for (int64_t from = first % SEQUENCE_PERIOD; reals > 0; from = 0) {
    int64_t now = least(reals, SEQUENCE_PERIOD - from);
    make(from, now);
    memcpy(at, period_of(type) + (size_t)from * size, (size_t)now * size);
    at += (size_t)now * size, reals -= now;
  }
}

/* The whole period in the target's memory; NULL: there is no room for it. */
static const char *reside(memory_space *space, batchqr_type type) {
  make(0, SEQUENCE_PERIOD);
  if (space->backend == BATCHQR_BACKEND_CPU) return period_of(type);
  void **there = &resident[type_is_double(type)];
  size_t bytes = SEQUENCE_PERIOD * bqr_real_bytes(type);
  if (!*there && (*there = space_alloc(space, bytes))) space_upload(space, *there, period_of(type), bytes);
  return *there;
}

void sequence_fill(memory_space *space, batchqr_type type, void *to, int64_t first, int64_t reals) {
  size_t size = bqr_real_bytes(type);
  char *at = to;
  first %= SEQUENCE_PERIOD;
  if (first + reals <= SEQUENCE_PERIOD && reals <= PART) {
    make(first, reals);
    space_upload(space, at, period_of(type) + (size_t)first * size, (size_t)reals * size);
    return;
  }
  const char *near = reside(space, type), *period = near ? near : period_of(type);
  void (*move)(memory_space *, void *, const void *, size_t) = near ? space_copy : space_upload;
  /* The rest of a period, then what is before it, then copies of that, each as long as what is there. */
  int64_t rest = least(reals, SEQUENCE_PERIOD - first), done = least(reals - rest, first);
  move(space, at, period + (size_t)first * size, (size_t)rest * size);
  move(space, at + (size_t)rest * size, period, (size_t)done * size);
  for (done += rest; done < reals;) {
    int64_t more = least(reals - done, done);
    space_copy(space, at + (size_t)done * size, at, (size_t)more * size);
    done += more;
  }
}
