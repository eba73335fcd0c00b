/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend's memory and clock. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *allocate(bench_target *target, size_t bytes) {
  (void)target;
  return aligned_alloc(256, (bytes + 256) / 256 * 256);
}

static void release(bench_target *target, void *memory) {
  (void)target;
  free(memory);
}

static size_t available(bench_target *target) {
  (void)target;
  long pages = sysconf(_SC_AVPHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? (size_t)pages * (size_t)size : SIZE_MAX;
}

static void copy(bench_target *target, void *to, const void *from, size_t bytes) {
  (void)target;
  if (bytes) memcpy(to, from, bytes);
}

static void poison(bench_target *target, void *to, size_t bytes) {
  (void)target;
  if (bytes) memset(to, 0xff, bytes);
}

/* They are there. */
static bench_columns places[2];
static void fetch(bench_target *target, int place, const bench_columns *columns) {
  (void)target;
  places[place] = *columns;
}
static bench_columns fetched(bench_target *target, int place) {
  (void)target;
  return places[place];
}

static double time_run(bench_target *target, const bench_work *work) {
  if (!work->restore(work->context)) return -1;
  if (target->cold) memset(target->cache_filler, 0, target->cache_bytes);
  double start = bench_now_ms();
  if (!work->run(work->context)) return -1;
  return bench_now_ms() - start;
}

static void *record(bench_target *target, const bench_work *work) {
  (void)target, (void)work;
  return NULL;
}
static double replay(bench_target *target, void *graph) {
  (void)target, (void)graph;
  return -1;
}
static void forget(bench_target *target, void *graph) { (void)target, (void)graph; }
static void close_host(bench_target *target) { (void)target; }

/* The processor's name, where Linux tells it. */
static void name_processor(char *name, size_t size) {
  FILE *info = fopen("/proc/cpuinfo", "r");
  if (!info) return;
  char line[256];
  while (fgets(line, sizeof line, info)) {
    const char *value = strncmp(line, "model name", 10) ? NULL : strchr(line, ':');
    if (!value) continue;
    value += strspn(value, ": \t");
    snprintf(name, size, "%.*s", (int)strcspn(value, "\n"), value);
    break;
  }
  fclose(info);
}

void bench_host_open(bench_target *target) {
  static const bench_target_ops ops = {allocate, release, available, copy,   poison, copy,   copy,
                                       fetch,    fetched, time_run,  record, replay, forget, close_host};
  target->ops = &ops;
  target->cache_bytes = (size_t)256 << 20; /* more than the last-level cache of current servers' sockets */
  name_processor(target->name, sizeof target->name);
  snprintf(target->cuda, sizeof target->cuda, "none");
}
