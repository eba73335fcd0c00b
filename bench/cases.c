/* SPDX-License-Identifier: BSD-3-Clause */
/* Cases: `routine [compute] types m n batch` as words, in suite files and as sweeps. */
#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const compute_names[] = {
    [BATCHQR_COMPUTE_AUTO] = "auto",
    [BATCHQR_COMPUTE_NATIVE] = "native",
    [BATCHQR_COMPUTE_EMULATED] = "emulated",
    [BATCHQR_COMPUTE_HALF] = "half",
};
enum { NUM_COMPUTES = 4, MAX_VALUES = 4096 };
static const char type_letters[] = "sdcz";

/* The matrices of a `fill` batch take this much, enough for every cache to be far too small. */
static const double fill_bytes = 512.0 * 1024 * 1024;

const char *bench_compute_name(batchqr_compute compute) { return compute_names[compute]; }

static const char values_suffix[] = "_values";

const char *bench_routine_name(const bench_case *what, char text[BENCH_TEXT]) {
  snprintf(text, BENCH_TEXT, "%s%s", what->operation->name, what->values ? values_suffix : "");
  return text;
}

batchqr_op bench_op(const bench_case *what) { return (batchqr_op)what->operation->op; }

/* One right-hand side; 256 singular values of one member, 32 of each of several. */
static int k_of(const bench_case *what) {
  const int least = bqr_min(what->m, what->n);
  if (what->operation->k == BQR_RIGHT_HAND_SIDES) return 1;
  return what->operation->k == BQR_TRIPLETS ? bqr_min(what->batch == 1 ? 256 : 32, least) : least;
}

lab_member bench_member(const bench_case *what) {
  const bool solves = what->operation->k == BQR_RIGHT_HAND_SIDES;
  return (lab_member){.operation = what->operation,
                      .type = what->type,
                      .side = BATCHQR_LEFT,
                      .trans = solves ? BATCHQR_NO_TRANS : BATCHQR_CONJ_TRANS,
                      .m = what->m,
                      .n = what->n,
                      .k = k_of(what)};
}

/* A complex multiply-add counts as four real ones. */
double bench_flops(const bench_case *what) {
  const bqr_operation *operation = what->operation;
  if (!operation->flops || operation->estimated) return 0;
  return operation->flops(what->m, what->n, k_of(what)) * (type_is_complex(what->type) ? 4 : 1) *
         (double)what->batch;
}

/* Entries of an operand that are input, or results. */
static double entries(const lab_routine *routine, const lab_member *x, const bqr_use *use, bool result) {
  const bool lost = use->place == BQR_A && routine->destroys_a;
  if (!(use->access & (result ? BQR_WRITTEN : BQR_READ)) || (result && lost)) return 0;
  const bqr_shape part = lab_part(routine, x, use, result);
  if (use->place == BQR_A && routine->diagonal_only) return bqr_min(part.rows, part.cols);
  return (double)part.rows * part.cols;
}

double bench_bytes(const bench_case *what) {
  const lab_routine *routine = lab_routine_of(what->operation->op);
  const lab_member x = bench_member(what);
  double all = 0;
  for (const bqr_use *use = what->operation->uses; use->place; use++)
    if (use->kind == BQR_MATRIX) all += entries(routine, &x, use, false) + entries(routine, &x, use, true);
  return all * (double)bqr_type_bytes(what->type) * (double)what->batch;
}

void bench_cases_free(bench_cases *cases) {
  free(cases->at);
  cases->at = NULL;
  cases->count = cases->room = 0;
}

void bench_cases_append(bench_cases *cases, const bench_case *what) {
  if (cases->count == cases->room) {
    cases->room = cases->room ? 2 * cases->room : 64;
    cases->at = realloc(cases->at, (size_t)cases->room * sizeof *cases->at);
    if (!cases->at) lab_die("out of memory for the list of cases");
  }
  cases->at[cases->count++] = *what;
}

static bool find_name(const char *const *names, int count, const char *word, int *index) {
  for (int i = 0; i < count; i++)
    if (!strcmp(names[i], word)) return *index = i, true;
  return false;
}

static bool fail(char error[BENCH_TEXT], const char *what, const char *value, const char *expected) {
  snprintf(error, BENCH_TEXT, "%s is '%s', expected %s", what, value, expected);
  return false;
}

static bool cannot_read(char error[BENCH_TEXT], const char *path) {
  snprintf(error, BENCH_TEXT, "cannot read %.300s: %s", path, strerror(errno));
  return false;
}

/* Steps of programs have no operands of their own. */
static bool is_routine(const bqr_operation *operation) { return operation->uses[0].place != BQR_NO_OPERAND; }

/* "geqrf, orgqr or ormqr" */
static void list_routines(const bench_cases *cases, char text[BENCH_TEXT / 2]) {
  int count = 0, used = 0;
  for (const bqr_operation *const *o = cases->operations; *o; o++) count += is_routine(*o);
  *text = 0;
  for (const bqr_operation *const *o = cases->operations; *o && used < BENCH_TEXT / 2; o++)
    if (is_routine(*o))
      used += snprintf(text + used, (size_t)(BENCH_TEXT / 2 - used), "%s%s", (*o)->name,
                       --count > 1 ? ", "
                       : count     ? " or "
                                   : "");
}

/* Whether it finds values, and vectors where they are wanted. */
static bool has_values(const bqr_operation *operation) {
  const bqr_use *v = bqr_use_at(operation, BQR_V);
  return v && (v->access & BQR_OPTIONAL);
}

static bool parse_routine(const bench_cases *cases, const char *word, bench_case *what,
                          char error[BENCH_TEXT]) {
  for (const bqr_operation *const *o = cases->operations; *o; o++) {
    const size_t length = strlen((*o)->name);
    if (!is_routine(*o) || strncmp((*o)->name, word, length) != 0) continue;
    what->operation = *o;
    what->values = !strcmp(word + length, values_suffix) && has_values(*o);
    if (what->values || !word[length]) return true;
  }
  char all[BENCH_TEXT / 2];
  list_routines(cases, all);
  return fail(error, "routine", word, all);
}

static bool parse_types(const char *word, char error[BENCH_TEXT]) {
  return (*word && strspn(word, type_letters) == strlen(word)) ||
         fail(error, "type", word, "some of the letters s, d, c, z");
}

/* A positive decimal number up to `most`, ending at *end. */
static bool parse_number(const char *text, long long most, long long *value, const char **end) {
  char *stop;
  errno = 0;
  *value = strtoll(text, &stop, 10);
  *end = stop;
  return stop != text && *text != '+' && !errno && *value >= 1 && *value <= most;
}

static bool parse_size(const char *name, const char *word, long long most, long long *value,
                       char error[BENCH_TEXT]) {
  const char *end;
  char expected[64];
  snprintf(expected, sizeof expected, "a whole number from 1 to %lld", most);
  return (parse_number(word, most, value, &end) && !*end) || fail(error, name, word, expected);
}

static bool parse_batch(const char *word, long long *value, char error[BENCH_TEXT]) {
  *value = 0;
  return !strcmp(word, "fill") || parse_size("batch", word, LLONG_MAX / 2, value, error);
}

/* Reflectors are those of an m x n matrix. */
static bool tall_only(const bqr_operation *operation) { return operation->k == BQR_REFLECTORS; }

/* `batch` 0 means fill. */
static bool append_types(bench_cases *cases, bench_case what, const char *types, char error[BENCH_TEXT]) {
  if (tall_only(what.operation) && what.m < what.n) {
    snprintf(error, BENCH_TEXT, "m is %d and n is %d, but %s is measured with m >= n", what.m, what.n,
             what.operation->name);
    return false;
  }
  if (what.operation->square && what.m != what.n) {
    snprintf(error, BENCH_TEXT, "m is %d and n is %d, but %s is of square members", what.m, what.n,
             what.operation->name);
    return false;
  }
  int64_t batch = what.batch;
  for (const char *letter = types; *letter; letter++) {
    what.type = (batchqr_type)(strchr(type_letters, *letter) - type_letters);
    double member = (double)what.m * what.n * (double)bqr_type_bytes(what.type);
    if (!batch) what.batch = member > fill_bytes ? 1 : (int64_t)(fill_bytes / member);
    bench_cases_append(cases, &what);
  }
  return true;
}

/* Splits `text` in place into at most `most` words and returns their number; more words count too. */
static int split(char *text, char **words, int most) {
  int count = 0;
  for (char *word = strtok(text, " \t\r\n"); word; word = strtok(NULL, " \t\r\n"), count++)
    if (count < most) words[count] = word;
  return count;
}

bool bench_cases_line(bench_cases *cases, const char *line, char error[BENCH_TEXT]) {
  char text[BENCH_TEXT], *words[6];
  snprintf(text, sizeof text, "%s", line);
  bench_case what = {.batch = 0};
  int count = split(text, words, 6), compute = BATCHQR_COMPUTE_AUTO, at = 1;
  if (count != 5 && count != 6)
    return fail(error, "case", line, "`routine [compute] type m n batch`, for instance `geqrf d 64 64 1000`");
  if (!parse_routine(cases, words[0], &what, error)) return false;
  if (count == 6 && !find_name(compute_names, NUM_COMPUTES, words[at++], &compute))
    return fail(error, "compute", words[1], "auto, native, emulated or half");
  long long m, n, batch;
  if (!parse_types(words[at], error) || !parse_size("m", words[at + 1], INT_MAX, &m, error) ||
      !parse_size("n", words[at + 2], INT_MAX, &n, error) || !parse_batch(words[at + 3], &batch, error))
    return false;
  what.compute = (batchqr_compute)compute;
  what.m = (int)m, what.n = (int)n, what.batch = batch;
  return append_types(cases, what, words[at], error);
}

bool bench_cases_file(bench_cases *cases, const char *path, char error[BENCH_TEXT]) {
  FILE *file = fopen(path, "r");
  if (!file) return cannot_read(error, path);
  char line[BENCH_TEXT], reason[BENCH_TEXT];
  bool ok = true;
  for (int number = 1; ok && fgets(line, sizeof line, file); number++) {
    line[strcspn(line, "#\r\n")] = 0;
    if (!line[strspn(line, " \t")]) continue;
    ok = bench_cases_line(cases, line, reason);
    if (!ok) snprintf(error, BENCH_TEXT, "%.200s:%d: %.280s", path, number, reason);
  }
  if (ok && ferror(file)) ok = cannot_read(error, path);
  fclose(file);
  return ok;
}

/* `5`, `4,8,16`, `1..64`, `1..64:3` (steps of 3), `4..512*2` (each twice the one before), or several of
 * these with commas. Returns the number of values, 0 after an error. */
static int parse_range(const char *name, const char *word, int *values, char error[BENCH_TEXT]) {
  static const char expected[] = "a number, a range as 1..64, 1..64:3 or 4..512*2, or a list of them";
  int count = 0;
  for (const char *at = word;; at++) {
    long long first, last, step = 1;
    bool multiply = false;
    if (!parse_number(at, INT_MAX, &first, &at)) return fail(error, name, word, expected), 0;
    last = first;
    if (!strncmp(at, "..", 2) && (!parse_number(at + 2, INT_MAX, &last, &at) || last < first))
      return fail(error, name, word, expected), 0;
    if (*at == ':' || *at == '*') {
      multiply = *at == '*';
      if (!parse_number(at + 1, INT_MAX, &step, &at) || (multiply && step < 2))
        return fail(error, name, word, expected), 0;
    }
    for (long long value = first; value <= last; value = multiply ? value * step : value + step) {
      if (count == MAX_VALUES) return fail(error, name, word, "fewer values (at most 4096)"), 0;
      values[count++] = (int)value;
    }
    if (!*at) return count;
    if (*at != ',') return fail(error, name, word, expected), 0;
  }
}

bool bench_cases_sweep(bench_cases *cases, const char *sweep, char error[BENCH_TEXT]) {
  char text[BENCH_TEXT], *words[6];
  snprintf(text, sizeof text, "%s", sweep);
  bench_case what = {.batch = 0};
  int count = split(text, words, 6), compute = BATCHQR_COMPUTE_AUTO, at = 1;
  if (count != 5 && count != 6)
    return fail(error, "sweep", sweep,
                "`routine [compute] types m n batch`, for instance `geqrf d 1..64 square 1000`");
  if (!parse_routine(cases, words[0], &what, error)) return false;
  if (count == 6 && !find_name(compute_names, NUM_COMPUTES, words[at++], &compute))
    return fail(error, "compute", words[1], "auto, native, emulated or half");
  static int m[MAX_VALUES], n[MAX_VALUES];
  long long batch;
  bool square = !strcmp(words[at + 2], "square");
  if (!parse_types(words[at], error) || !parse_batch(words[at + 3], &batch, error)) return false;
  int nm = parse_range("m", words[at + 1], m, error);
  int nn = !nm ? 0 : square ? 1 : parse_range("n", words[at + 2], n, error);
  for (int i = 0; i < nm; i++)
    for (int j = 0; j < nn; j++) {
      what.compute = (batchqr_compute)compute;
      what.m = m[i], what.n = square ? m[i] : n[j], what.batch = batch;
      if (what.m < what.n && tall_only(what.operation)) continue;
      if (!append_types(cases, what, words[at], error)) return false;
    }
  return nm && nn;
}
