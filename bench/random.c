/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases drawn at random: what nobody chose, and so nobody tuned for. */
#include "bench.h"
#include "matgen.h"

#include <math.h>

/* No case takes more of the matrices' memory, or more operations. */
static const double most_bytes = 4e9, most_flops = 2e12;
enum { MOST_ROWS = 1 << 22, MOST_COLUMNS = 1 << 14, MOST_MEMBERS = 10000000 };

typedef struct draws {
  uint64_t seed, next;
} draws;

static double uniform(draws *d) { return (double)(rng_bits(d->seed, d->next++) >> 11) * 0x1p-53; }

static int below(draws *d, int count) { return (int)(uniform(d) * count); }

static double log_uniform(draws *d, double least, double most) {
  return least * exp(uniform(d) * log(most / least));
}

/* From 1 to `most`; every other one is a power of two, or next to it. */
static int draw_size(draws *d, int most) {
  double size = log_uniform(d, 1, most);
  if (below(d, 2)) size = exp2(rint(log2(size))) + (below(d, 3) - 1);
  return (int)fmin(fmax(size, 1), most);
}

/* Of how many members it may be. */
static double most_members(const bench_case *what) {
  bench_case one = *what;
  one.batch = 1;
  return fmin(fmin(most_bytes / bench_bytes(&one), most_flops / bench_flops(&one)), MOST_MEMBERS);
}

/* Only routines that a peer has, too, whose operations are counted. */
static bool is_drawn(const bqr_operation *operation) {
  unsigned routines = 0;
  for (int i = 0; bench_peers[i]; i++) routines |= bench_peers[i]->routines;
  return operation->uses[0].place != BQR_NO_OPERAND && (routines >> operation->op & 1) && operation->flops &&
         !operation->estimated;
}

static const bqr_operation *draw_operation(draws *d, const bench_cases *cases) {
  int count = 0;
  for (const bqr_operation *const *o = cases->operations; *o; o++) count += is_drawn(*o);
  int left = below(d, count);
  for (const bqr_operation *const *o = cases->operations;; o++)
    if (is_drawn(*o) && left-- == 0) return *o;
}

/* One member in eight is wide, where the routine takes such. */
static bench_case draw_case(draws *d, const bench_cases *cases) {
  for (;;) {
    bench_case what = {.operation = draw_operation(d, cases), .type = (batchqr_type)below(d, 4)};
    what.m = draw_size(d, MOST_ROWS), what.n = draw_size(d, MOST_COLUMNS);
    const bool wide = below(d, 8) == 0 && what.operation->k != BQR_REFLECTORS;
    if (what.operation->square) what.m = what.n;
    if ((what.m < what.n) != wide) {
      const int m = what.m;
      what.m = what.n, what.n = m;
    }
    const double most = most_members(&what);
    if (most < 1) continue;
    what.batch = (int64_t)log_uniform(d, 1, most);
    return what;
  }
}

/* A case that contains it, with each of its sizes up to a quarter larger. */
static bench_case enlarge(draws *d, const bench_case *what) {
  bench_case larger = *what;
  const double rows = 1 + uniform(d) / 4, columns = 1 + uniform(d) / 4, members = 1 + uniform(d) / 4;
  larger.m = (int)(what->m * rows);
  larger.n = what->operation->square ? larger.m : (int)(what->n * columns);
  if (what->operation->k == BQR_REFLECTORS && larger.n > larger.m) larger.n = larger.m;
  larger.batch = (int64_t)((double)what->batch * members);
  return larger;
}

void bench_cases_random(bench_cases *cases, int seed, int count) {
  draws d = {.seed = (uint64_t)seed};
  for (int i = 0; i < count; i++) {
    const bench_case what = i % 2 ? enlarge(&d, &cases->at[cases->count - 1]) : draw_case(&d, cases);
    bench_cases_append(cases, &what);
  }
}
