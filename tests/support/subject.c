/* SPDX-License-Identifier: BSD-3-Clause */
#include "subject.h"
#include "batch.h"
#include "children.h"
#include "handle.h"
#include "inspect.h"
#include "registry.h"
#include "residual.h"

#include <stdlib.h>

/* --- what a variant supports */

/* Limits beyond this are taken for none. */
enum { NO_LIMIT = 2048 };

const bqr_operation *subject_operation(const subject *s) {
  return bqr_registry_operation(bqr_registry_builtin(), s->family->op);
}

bool subject_makes_q(const subject *s) { return s->family->op == BATCHQR_ORGQR; }
bool subject_applies_q(const subject *s) { return subject_operation(s)->reads_side; }

bool subject_is_legal(const subject *s, size x) {
  if (subject_makes_q(s)) return x.m >= x.n && x.n >= x.k;
  if (subject_applies_q(s)) return x.k <= (s->side == BATCHQR_LEFT ? x.m : x.n);
  return x.k == 0 && (x.m == x.n || !subject_operation(s)->square);
}

bool subject_supports_as(const subject *s, size x, batchqr_layout layout, bool uniform, bool positive,
                         int64_t count) {
  bqr_problem problem = {.op = s->family->op,
                         .type = s->type,
                         .compute = s->compute,
                         .pointers = layout == BATCHQR_POINTERS,
                         .uniform = uniform,
                         .positive = positive,
                         .whole = s->whole,
                         .side = s->side,
                         .trans = s->trans,
                         .tall = x.m >= x.n,
                         .m = x.m,
                         .n = x.n,
                         .k = x.k,
                         .count = count};
  const bqr_planner planner = bqr_handle_planner(s->handle);
  const bqr_choice choice = {.family = s->family, .variant = s->variant};
  return s->family->supports(&problem, s->variant, planner.device) &&
         bqr_children_exist(&planner, &choice, &problem);
}

bool subject_supports(const subject *s, size x) {
  for (int form = 0; form < 4; form++)
    if (subject_supports_as(s, x, (batchqr_layout)(form & 1), form >> 1, false, 100)) return true;
  return false;
}

size subject_size(const subject *s, int a, int b, int other) {
  if (subject_makes_q(s)) return (size){a, b, b};
  if (subject_operation(s)->square) return (size){bqr_max(a, b), bqr_max(a, b), 0};
  if (!subject_applies_q(s)) return (size){a, b, 0};
  size left = other > 0 ? (size){a, other, b} : (size){a, b, 1};
  return s->side == BATCHQR_LEFT ? left : (size){left.n, left.m, left.k};
}

static bool fits(const subject *s, int a, int b, int other) {
  size x = subject_size(s, a, b, other);
  return subject_is_legal(s, x) && subject_supports(s, x);
}

int subject_limit(const subject *s, int a, int b, bool of_a, int other) {
  int low = 0, high = NO_LIMIT;
  bool bounded_by_a = subject_makes_q(s) || (subject_applies_q(s) && other > 0);
  if (!of_a && bounded_by_a) high = bqr_min(high, a); /* b <= a: that is the operation's limit */
  while (low < high) {
    int mid = low + (high - low + 1) / 2;
    if (of_a ? fits(s, mid, b, other) : fits(s, a, mid, other))
      low = mid;
    else
      high = mid - 1;
  }
  return low;
}

/* --- sizes to test */

static int64_t most_elements(void) {
  const char *text = getenv("BATCHQR_TEST_ELEMENTS");
  return text != NULL && *text != '\0' ? atoll(text) : INT64_MAX;
}

static void add(const subject *s, size_list *list, size x) {
  if ((int64_t)x.m * x.n > most_elements()) return;
  if (x.m < 0 || x.n < 0 || x.k < 0 || !subject_is_legal(s, x) || !subject_supports(s, x)) return;
  for (int i = 0; i < list->count; i++)
    if (list->x[i].m == x.m && list->x[i].n == x.n && list->x[i].k == x.k) return;
  if (list->count < MAX_SIZES) list->x[list->count++] = x;
}

/* A corner of what is supported, and its neighbours. Without a limit there is no corner; far ones would take
 * too long. */
static void add_corner(const subject *s, size_list *list, int a, int b, int other) {
  if (a >= NO_LIMIT || b >= NO_LIMIT || (int64_t)a * b > 1 << 20) return;
  for (int i = 0; i < 3; i++)
    for (int j = 0; j < 3; j++) add(s, list, subject_size(s, a - 1 + i, b - 1 + j, other));
}

static void add_limits(const subject *s, size_list *list, int other) {
  int most_a = subject_limit(s, 0, 1, true, other), most_b = subject_limit(s, most_a, 0, false, other);
  add_corner(s, list, most_a, most_b, other);
  add_corner(s, list, most_a, 1, other);
  int widest = subject_limit(s, 1, 0, false, other); /* with one row, where that is legal */
  if (widest > 0) add_corner(s, list, subject_limit(s, 0, widest, true, other), widest, other);
  for (int b = 2; b < most_b; b *= 4) add_corner(s, list, subject_limit(s, 0, b, true, other), b, other);
}

size_list subject_sizes(const subject *s) {
  /* The last ones: square or nearly so, of which some variants factor the last columns by themselves. */
  static const int pairs[][2] = {{1, 1},    {2, 1},    {1, 2},   {2, 2},     {3, 5},     {5, 3},
                                 {8, 8},    {9, 7},    {16, 16}, {17, 15},   {15, 17},   {32, 32},
                                 {33, 31},  {31, 33},  {33, 33}, {40, 8},    {8, 40},    {64, 32},
                                 {65, 65},  {100, 7},  {7, 100}, {128, 40},  {200, 100}, {100, 200},
                                 {300, 33}, {1000, 5}, {97, 97}, {129, 128}, {130, 160}, {201, 193}};
  size_list list = {.count = 0};
  bool ormqr = subject_applies_q(s);
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    if (ormqr && (i + (unsigned)s->side + (unsigned)s->trans / 2) % 2)
      continue; /* each in two of the four ways */
    if (subject_operation(s)->square && pairs[i][0] != pairs[i][1]) continue;
    add(s, &list, subject_size(s, pairs[i][0], pairs[i][1], ormqr ? 1 + (int)i * 7 % 40 : 0));
    if (subject_makes_q(s)) add(s, &list, (size){pairs[i][0], pairs[i][1], pairs[i][1] / 2});
  }
  add(s, &list, subject_size(s, 0, 0, 0));
  add(s, &list, subject_size(s, 5, 0, 0));
  add_limits(s, &list, ormqr ? 3 : 0);
  if (ormqr) add_limits(s, &list, 0);
  return list;
}

/* --- trials */

size subject_smaller(const subject *s, size x, uint64_t seed) {
  size y = {rng_int(seed, 0, 0, x.m), rng_int(seed, 1, 0, x.n), 0};
  if (subject_makes_q(s)) y.n = bqr_min(y.n, y.m), y.k = rng_int(seed, 2, 0, y.n);
  if (subject_operation(s)->square) y.m = y.n;
  if (subject_applies_q(s)) y.k = rng_int(seed, 2, 0, bqr_min(x.k, s->side == BATCHQR_LEFT ? y.m : y.n));
  return y;
}

trial subject_trial(const subject *s, int64_t count) {
  trial t = trial_new((batchqr_op)s->family->op, s->type, count);
  t.side = s->side;
  t.trans = s->trans;
  if (s->compute == BATCHQR_COMPUTE_HALF) t.bound = RESIDUAL_BOUND * 0x1p-11 / type_eps(s->type);
  return t;
}

bool subject_takes(const subject *s, trial *t, size x) {
  bool uniform = t->sizes == BATCHQR_UNIFORM;
  t->positive = t->positive && subject_supports_as(s, x, t->layout, uniform, true, t->count);
  if (subject_supports_as(s, x, t->layout, uniform, t->positive, t->count)) return true;
  t->layout = t->layout == BATCHQR_STRIDED ? BATCHQR_POINTERS : BATCHQR_STRIDED;
  return subject_supports_as(s, x, t->layout, uniform, t->positive, t->count);
}
