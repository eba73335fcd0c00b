/* SPDX-License-Identifier: BSD-3-Clause */
/* Warm-ups, repetitions, median. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

enum { LEAST_REPS = 7, MOST_REPS = 101, LOADING_MS = 20 };

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static bench_timing summarize(double *ms, int reps) {
  qsort(ms, (size_t)reps, sizeof *ms, ascending);
  double median = reps % 2 ? ms[reps / 2] : (ms[reps / 2 - 1] + ms[reps / 2]) / 2;
  return (bench_timing){median, ms[0], ms[reps - 1], reps};
}

static double once(bench_target *target, const bench_work *work, void *graph) {
  return graph ? target->clock->replay(target, graph) : target->clock->time(target, work);
}

bench_timing bench_measure(bench_target *target, const bench_work *work,
                           const bench_timing_options *options) {
  const bench_timing failed = {0};
  double ms[MOST_REPS], total = 0;
  /* The first run is never captured: it may still load kernels, which must not lose it the race. */
  double first = target->clock->time(target, work), limit = options->limit_ms, warm = first;
  if (first > options->race_ms && first < options->race_ms + LOADING_MS)
    first = fmin(first, target->clock->time(target, work));
  if (first < 0) return failed;
  if (first > fmin(limit, options->race_ms) || (options->reps == 1 && !options->warmups))
    return summarize(&first, 1);
  void *graph = options->graph ? target->clock->record(target, work) : NULL;
  if (options->graph && !graph) return failed;
  bool ok = true;
  for (int i = 1; ok && i < options->warmups && warm < limit / 3; i++) {
    double now = once(target, work, graph);
    ok = now >= 0, warm += now;
  }
  int wanted = options->reps ? options->reps : LEAST_REPS, reps = 0;
  while (ok && reps < MOST_REPS && total <= limit &&
         (reps < wanted || (!options->reps && total < options->budget_ms))) {
    ms[reps] = once(target, work, graph);
    ok = ms[reps] >= 0;
    total += ms[reps++];
  }
  if (graph) target->clock->forget(target, graph);
  return ok ? summarize(ms, reps) : failed;
}
