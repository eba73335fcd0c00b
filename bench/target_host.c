/* SPDX-License-Identifier: BSD-3-Clause */
/* The CPU backend's clock. */
#include "bench.h"

#include <stdio.h>
#include <string.h>

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
  static const bench_clock clock = {time_run, record, replay, forget, close_host};
  target->clock = &clock;
  target->cache_bytes = (size_t)256 << 20; /* more than the last-level cache of current servers' sockets */
  name_processor(target->name, sizeof target->name);
  snprintf(target->cuda, sizeof target->cuda, "none");
}
