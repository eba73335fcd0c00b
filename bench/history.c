/* SPDX-License-Identifier: BSD-3-Clause */
/* What earlier cases tell of later ones. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>

/* ---- how long a case will take ---- */

enum { REMEMBERED = 256 };

/* The last case of an implementation, routine, type and mode that took long enough to be bound by work. */
typedef struct memory {
  const char *impl;
  bench_case what;
  double ms, work;
} memory;

static memory memories[REMEMBERED];
static int nmemories;

/* Operations; bytes where they are not counted. */
static double work(const bench_case *what) {
  const double flops = bench_flops(what);
  return flops > 0 ? flops : bench_bytes(what);
}

static memory *recall(const char *impl, const bench_case *what) {
  for (int i = 0; i < nmemories; i++) {
    memory *it = &memories[i];
    if (it->impl == impl && it->what.operation == what->operation && it->what.type == what->type &&
        it->what.compute == what->compute && it->what.values == what->values)
      return it;
  }
  return NULL;
}

void bench_remember(const char *impl, const bench_case *what, double ms) {
  if (ms < 200) return;
  memory *it = recall(impl, what);
  if (!it && nmemories < REMEMBERED) it = &memories[nmemories++];
  if (it) *it = (memory){impl, *what, ms, work(what)};
}

/* Where members are much larger, time need not have grown with the operations. Of one that is known to be
 * slow with large members, before the first long case, what a member takes that needs more than a second. */
double bench_predict(const bench_impl *impl, const bench_case *what) {
  const memory *it = recall(impl->name, what);
  const double member_ms =
      impl->member_gflops ? bench_flops(what) / (double)what->batch / impl->member_gflops * 1e-6 : 0;
  if (!it || what->m < it->what.m || what->n < it->what.n) return member_ms > 1000 ? member_ms : 0;
  double members = (double)what->batch / (double)it->what.batch;
  double growth = work(what) / it->work / members;
  return it->ms * (growth < 16 ? growth : 1) * (impl->at_once ? fmax(1, members) : members);
}

/* ---- what cannot win ---- */

enum { NEAR = 4, MANY = 1000 };

/* A variant that was far behind. It is so, too, with members that are not much smaller, of which there are as
 * many, or more than the device holds at once in either case: of 3000 timings on an H200 that this leaves
 * out, none was within 3 % of the best. */
typedef struct defeat {
  bench_choice choice; /* with the registry's names */
  bench_case what;
} defeat;

static defeat *defeats;
static int ndefeats;

void bench_remember_defeat(const bench_choice *choice, const bench_case *what) {
  defeat *longer = realloc(defeats, (size_t)(ndefeats + 1) * sizeof *longer);
  if (!longer) lab_die("out of memory");
  defeats = longer;
  defeats[ndefeats++] = (defeat){*choice, *what};
}

static bool is_near(int size, int larger) { return size <= larger && larger <= (int64_t)NEAR * size; }

bool bench_cannot_win(const bench_choice *choice, const bench_case *what) {
  for (int i = 0; i < ndefeats; i++) {
    const bench_case *it = &defeats[i].what;
    if (defeats[i].choice.family == choice->family && defeats[i].choice.variant == choice->variant &&
        it->operation == what->operation && it->type == what->type && it->compute == what->compute &&
        is_near(what->m, it->m) && is_near(what->n, it->n) &&
        (it->batch == what->batch || (it->batch >= MANY && what->batch >= MANY)))
      return true;
  }
  return false;
}

void bench_forget(void) {
  free(defeats);
  defeats = NULL;
  ndefeats = nmemories = 0;
}
