/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line. */
#include "bench.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bench_options_usage(void) {
  static const char text[] =
      "usage: bench [options] [ROUTINE [COMPUTE] TYPES M N BATCH]\n"
      "\n"
      "Times batchqr and its peers, checks the results, prints a table and writes CSV.\n"
      "  bench geqrf d 64 64 1000                     one case (BATCH may be `fill`: 512 MiB of matrices)\n"
      "  bench syevd_values d 4096 4096 1             the same without vectors; so does gesvd_values\n"
      "  bench --suite tiny --suite tall --out DIR    suites, each into DIR/<suite>.csv\n"
      "  bench --sweep 'geqrf sd 1..64 square 1000'   sizes 1, 2, ... 64; also 8..64:8, 4..512*2, 16,48,96\n"
      "\n"
      "What to measure\n"
      "  --suite NAME[,NAME...]  suites of bench/suites, or paths of such files\n"
      "  --sweep SPEC            ROUTINE [COMPUTE] TYPES M-RANGE (N-RANGE | square) BATCH\n"
      "  --random SEED [--cases N]   N (100) cases drawn at random, in pairs of which the second is a "
      "little\n"
      "                          larger: bench/cliffs.py says what they tell\n"
      "  --suites-dir DIR        where suites are\n"
      "  --dry-run               lists the cases and measures nothing\n"
      "  --list                  lists suites, kernel families and their variants\n"
      "Where\n"
      "  --backend auto|cpu|cuda   --device N   --threads N (CPU)\n"
      "How batchqr is called\n"
      "  --family F [--variant V]  a kernel family instead of the planner's choice\n"
      "  --all-families            the planner's choice, every other family and variant that takes part,\n"
      "                            and the row of the planner's choice once more\n"
      "  --race X                  of these, only what does the whole routine, and times only what is\n"
      "                            at most X times slower than the best so far\n"
      "  --layout strided|pointers   --one-call (not the planned tier)   --tuning FILE\n"
      "  --sizes uniform|host      host: the sizes are given in host arrays, one for each member\n"
      "What is in the matrices\n"
      "  --input normal|uniform|arithmetic:C|geometric:C    C: the largest over the smallest singular value\n"
      "How it is timed\n"
      "  --warmups N (2)   --reps N (at least 7, more while --budget MS (50) lasts)\n"
      "  --limit S (3)           a first run longer than this is the only one, others end when they have\n"
      "                          taken so long together: fewer reps\n"
      "  --patience S (60)       skip what smaller cases predict to run longer than this\n"
      "  --graph                 batchqr's calls as replays of a CUDA graph\n"
      "  --host                  what a call takes on the host until it returns, not on the GPU\n"
      "  --cold                  empty the cache before each run\n"
      "  --positive              our R with a diagonal that is not negative\n"
      "  --check-only            run once, no times   --no-check   times alone\n"
      "  --probe                 check members beyond 46 x 46 x 46 with random vectors: quicker\n"
      "  --spoil r|v|tau|q|c     change an element of this result before the check, which has to see it\n"
      "Peers\n"
      "  --peers on|off|NAME[,NAME...]   default: on, off with --all-families\n"
      "  --peer-limit S          of peers, in place of --limit and --patience; a loop over members\n"
      "                          ends there\n"
      "Results\n"
      "  --out DIR   --append   --commit HASH (default: what git says)\n"
      "  --missing               with --append: only rows that the file does not have at this commit\n"
      "  --minutes X             starts no other case after so long\n"
      "\n"
      "Exit status: 0 done, 1 a result of batchqr was wrong or a case failed, 2 wrong arguments,\n"
      "3 the machine failed.\n";
  fputs(text, stdout);
}

static bool parse_input(bench_input *input, const char *text, char error[BENCH_TEXT]) {
  static const char *const names[] = {"normal", "uniform", "arithmetic", "geometric"};
  const size_t length = strcspn(text, ":");
  for (int i = 0; i < 4; i++) {
    if (strlen(names[i]) != length || strncmp(names[i], text, length)) continue;
    char *end = (char *)text + length;
    *input = (bench_input){.kind = (input_kind)i, .condition = 1};
    if (i >= INPUT_ARITHMETIC && *end == ':') input->condition = strtod(end + 1, &end);
    const bool given = end > text + length + 1;
    if (*end || given != (i >= INPUT_ARITHMETIC) || !(input->condition >= 1 && input->condition <= 1e300))
      break;
    snprintf(input->text, sizeof input->text, given ? "%s:%g" : "%s", names[i], input->condition);
    return true;
  }
  snprintf(error, BENCH_TEXT,
           "--input is '%.300s', expected normal, uniform, arithmetic:C or geometric:C with a condition C "
           "from 1 to "
           "1e300",
           text);
  return false;
}

typedef enum kind { FLAG, TEXT, NAMES, SWEEP, INTEGER, NUMBER, CHOICE } kind;

typedef struct option {
  const char *name;
  kind kind;
  void *to;
  double least, most;         /* INTEGER, NUMBER */
  const char *const *choices; /* CHOICE: NULL at the end; its index goes to an int */
} option;

/* What CHOICE writes, before it becomes an enum. */
static int backend_choice, layout_choice, sizes_choice, spoil_choice;
static double limit_s = 3;
static const char *input_text = "normal";

static bool refuse(char error[BENCH_TEXT], const char *name, const char *value, const char *expected) {
  snprintf(error, BENCH_TEXT, "%s is '%s', expected %s", name, value, expected);
  return false;
}

static bool add_names(bench_options *options, char *names, char error[BENCH_TEXT]) {
  for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
    if (options->nsuites == BENCH_MAX_NAMES) return refuse(error, "--suite", name, "at most 32 of them");
    options->suites[options->nsuites++] = name;
  }
  return true;
}

static bool set_number(const option *o, const char *value, char error[BENCH_TEXT]) {
  char *end, expected[80];
  errno = 0;
  double number = strtod(value, &end);
  bool whole = o->kind == NUMBER || number == (double)(long long)number;
  if (end == value || *end || errno || !(number >= o->least && number <= o->most) || !whole) {
    snprintf(expected, sizeof expected, "a %snumber from %g to %g", o->kind == INTEGER ? "whole " : "",
             o->least, o->most);
    return refuse(error, o->name, value, expected);
  }
  if (o->kind == INTEGER)
    *(int *)o->to = (int)number;
  else
    *(double *)o->to = number;
  return true;
}

static bool set_choice(const option *o, const char *value, char error[BENCH_TEXT]) {
  char expected[80] = "";
  for (int i = 0; o->choices[i]; i++) {
    if (!strcmp(o->choices[i], value)) return *(int *)o->to = i, true;
    size_t used = strlen(expected);
    snprintf(expected + used, sizeof expected - used, "%s%s", i ? " or " : "", o->choices[i]);
  }
  return refuse(error, o->name, value, expected);
}

static bool set(bench_options *options, const option *o, char *value, char error[BENCH_TEXT]) {
  switch (o->kind) {
  case FLAG:
    return *(bool *)o->to = true, true;
  case TEXT:
    return *(const char **)o->to = value, true;
  case NAMES:
    return add_names(options, value, error);
  case SWEEP:
    if (options->nsweeps == BENCH_MAX_NAMES) return refuse(error, "--sweep", value, "at most 32 of them");
    return options->sweeps[options->nsweeps++] = value, true;
  case CHOICE:
    return set_choice(o, value, error);
  default:
    return set_number(o, value, error);
  }
}

/* Options that exclude each other, or that need another. */
static bool consistent(bench_options *options, char error[BENCH_TEXT]) {
  const char *pairs =
      options->impl.choice.variant && !options->impl.choice.family ? "--variant needs --family"
      : options->impl.choice.family && options->all_families
          ? "--family and --all-families exclude each other"
      : options->check_only && options->no_check ? "--check-only and --no-check exclude each other"
      : options->timing.graph && options->impl.one_call
          ? "--graph replays a plan, --one-call makes none: they exclude each other"
      : options->timing.graph && options->target.host_time
          ? "--graph leaves the host nothing to do, --host times it: they exclude each other"
      : options->random_cases && !options->random_seed ? "--cases needs --random"
      : options->append && !options->out               ? "--append needs --out"
      : options->missing && !options->append           ? "--missing needs --append"
      : options->missing && options->all_families      ? "--missing and --all-families exclude each other"
                                                       : NULL;
  if (pairs) return snprintf(error, BENCH_TEXT, "%s", pairs), false;
  if (options->random_seed && !options->random_cases) options->random_cases = 100;
  if (options->check_only) options->timing.reps = 1, options->timing.warmups = 0;
  if (!options->peers) options->peers = options->all_families ? "off" : "on";
  return true;
}

static bool take_word(bench_options *options, const char *word, char error[BENCH_TEXT]) {
  size_t used = strlen(options->line);
  if (used + strlen(word) + 2 > BENCH_TEXT) return refuse(error, "case", word, "a shorter one");
  snprintf(options->line + used, BENCH_TEXT - used, "%s%s", used ? " " : "", word);
  return true;
}

static const option *find(const option *table, const char *name) {
  while (table->name && strcmp(table->name, name)) table++;
  return table->name ? table : NULL;
}

bool bench_options_parse(bench_options *options, int argc, char **argv, char error[BENCH_TEXT]) {
  static const char *const backends[] = {"auto", "cpu", "cuda", NULL};
  static const char *const layouts[] = {"strided", "pointers", NULL};
  static const char *const results[] = {"nothing", "r", "v", "tau", "q", "c", NULL};
  static const char *const sizes[] = {"uniform", "host", NULL};
  *options = (bench_options){.suite_directory = BENCH_SUITE_DIR, .patience_s = 60};
  options->timing = (bench_timing_options){.warmups = 2, .budget_ms = 50};
  const option table[] = {
      {.name = "--suite", .kind = NAMES},
      {.name = "--sweep", .kind = SWEEP},
      {.name = "--random", .kind = INTEGER, .to = &options->random_seed, .least = 1, .most = 1e9},
      {.name = "--cases", .kind = INTEGER, .to = &options->random_cases, .least = 1, .most = 1e6},
      {.name = "--suites-dir", .kind = TEXT, .to = &options->suite_directory},
      {.name = "--list", .kind = FLAG, .to = &options->list},
      {.name = "--help", .kind = FLAG, .to = &options->help},
      {.name = "-h", .kind = FLAG, .to = &options->help},
      {.name = "--backend", .kind = CHOICE, .to = &backend_choice, .choices = backends},
      {.name = "--device", .kind = INTEGER, .to = &options->target.device, .most = 1023},
      {.name = "--threads", .kind = INTEGER, .to = &options->target.threads, .least = 1, .most = 4096},
      {.name = "--tuning", .kind = TEXT, .to = &options->target.tuning_file},
      {.name = "--cold", .kind = FLAG, .to = &options->target.cold},
      {.name = "--positive", .kind = FLAG, .to = &options->target.positive},
      {.name = "--host", .kind = FLAG, .to = &options->target.host_time},
      {.name = "--family", .kind = TEXT, .to = &options->impl.choice.family},
      {.name = "--variant", .kind = TEXT, .to = &options->impl.choice.variant},
      {.name = "--all-families", .kind = FLAG, .to = &options->all_families},
      {.name = "--race", .kind = NUMBER, .to = &options->race, .least = 1, .most = 1e6},
      {.name = "--layout", .kind = CHOICE, .to = &layout_choice, .choices = layouts},
      {.name = "--sizes", .kind = CHOICE, .to = &sizes_choice, .choices = sizes},
      {.name = "--one-call", .kind = FLAG, .to = &options->impl.one_call},
      {.name = "--input", .kind = TEXT, .to = &input_text},
      {.name = "--warmups", .kind = INTEGER, .to = &options->timing.warmups, .least = 1, .most = 1000},
      {.name = "--reps", .kind = INTEGER, .to = &options->timing.reps, .least = 1, .most = 101},
      {.name = "--budget", .kind = NUMBER, .to = &options->timing.budget_ms, .most = 1e6},
      {.name = "--limit", .kind = NUMBER, .to = &limit_s, .most = 1e6},
      {.name = "--patience", .kind = NUMBER, .to = &options->patience_s, .most = 1e9},
      {.name = "--graph", .kind = FLAG, .to = &options->timing.graph},
      {.name = "--dry-run", .kind = FLAG, .to = &options->dry_run},
      {.name = "--check-only", .kind = FLAG, .to = &options->check_only},
      {.name = "--spoil", .kind = CHOICE, .to = &spoil_choice, .choices = results},
      {.name = "--probe", .kind = FLAG, .to = &options->probe},
      {.name = "--no-check", .kind = FLAG, .to = &options->no_check},
      {.name = "--peers", .kind = TEXT, .to = &options->peers},
      {.name = "--out", .kind = TEXT, .to = &options->out},
      {.name = "--peer-limit", .kind = NUMBER, .to = &options->peer_limit_s, .least = 1e-3, .most = 1e6},
      {.name = "--append", .kind = FLAG, .to = &options->append},
      {.name = "--missing", .kind = FLAG, .to = &options->missing},
      {.name = "--minutes", .kind = NUMBER, .to = &options->minutes, .least = 1e-3, .most = 1e6},
      {.name = "--commit", .kind = TEXT, .to = &options->commit},
      {.name = NULL},
  };
  for (int i = 1; i < argc; i++) {
    const option *o = find(table, argv[i]);
    if (!o && argv[i][0] == '-') return refuse(error, "option", argv[i], "one of those that --help lists");
    if (o && o->kind != FLAG && ++i == argc)
      return snprintf(error, BENCH_TEXT, "%s needs a value", o->name), false;
    if (!(o ? set(options, o, argv[i], error) : take_word(options, argv[i], error))) return false;
  }
  options->target.backend = (batchqr_backend)backend_choice;
  options->impl.layout = (batchqr_layout)layout_choice;
  options->impl.sizes = (batchqr_sizes)sizes_choice;
  options->spoil = (bench_spoil)spoil_choice;
  options->timing.limit_ms = 1e3 * limit_s;
  return parse_input(&options->input, input_text, error) && consistent(options, error);
}
