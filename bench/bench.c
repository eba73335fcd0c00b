/* SPDX-License-Identifier: BSD-3-Clause */
/* The benchmark program: suites, single cases and sweeps; batchqr and its peers in the same run. */
#include "bench.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct session {
  bench_options options;
  bench_target target;
  bench_report report;
  int index, cases; /* progress */
  double best_ms;   /* of our right results for the case in progress; 0: none */
  bool failed;      /* ours was wrong, or could not run what was asked for */
} session;

/* ---- how long a case will take ---- */

enum { REMEMBERED = 256 };

/* The last case of an implementation, routine, type and mode that took long enough to be bound by work. */
typedef struct memory {
  const char *impl;
  bench_case what;
  double ms, flops;
} memory;

static memory memories[REMEMBERED];
static int nmemories;

static memory *recall(const char *impl, const bench_case *what) {
  for (int i = 0; i < nmemories; i++) {
    memory *it = &memories[i];
    if (it->impl == impl && it->what.routine == what->routine && it->what.type == what->type &&
        it->what.compute == what->compute)
      return it;
  }
  return NULL;
}

static void remember(const char *impl, const bench_case *what, double ms) {
  if (ms < 200) return;
  memory *it = recall(impl, what);
  if (!it && nmemories < REMEMBERED) it = &memories[nmemories++];
  if (it) *it = (memory){impl, *what, ms, bench_flops(what)};
}

/* Milliseconds that the last long case predicts for a larger one; 0: unknown. */
static double predict(const char *impl, const bench_case *what) {
  const memory *it = recall(impl, what);
  return it && bench_flops(what) > it->flops ? it->ms * bench_flops(what) / it->flops : 0;
}

/* ---- one case ---- */

typedef struct running {
  bench_job *job;
  const bench_impl *impl;
  void *state;
} running;

static bool restore(void *context) { return bench_job_restore(((const running *)context)->job); }
static bool run(void *context) {
  const running *r = context;
  return r->impl->run(r->state);
}

static void show_progress(const session *s, const bench_case *what, const char *impl) {
  if (!isatty(STDERR_FILENO)) return;
  fprintf(stderr, "\r[%3d/%3d] %s %c %d x %d x %lld: %s ...\033[K\r", s->index, s->cases,
          bench_routine_name(what->routine), bench_type_letter(what->type), what->m, what->n,
          (long long)what->batch, impl);
}

static void skip(const session *s, const bench_case *what, const char *impl, const char *why) {
  bench_report_skip(s->index, s->cases, what, impl, why);
}

/* Times, checks and reports one implementation. False: it could not be opened, for the reason in `why`. */
static bool run_impl(session *s, bench_job *job, const bench_impl *impl, const bench_impl_options *options,
                     char why[BENCH_TEXT]) {
  bool ours = impl == &bench_ours;
  bench_row row = {.what = job->what, .impl = impl->name, .facts = {.launches = -1, .workspace = -1}};
  show_progress(s, &job->what, impl->name);
  double expected = predict(impl->name, &job->what);
  if (expected > 1e3 * s->options.patience_s) {
    snprintf(why, BENCH_TEXT, "would take about %.0f s (--patience)", expected / 1e3);
    return false;
  }
  running context = {job, impl, impl->open(job, options, &row.facts, why)};
  if (!context.state) return false;
  bench_job_poison(job);
  bench_timing_options timing = s->options.timing;
  timing.graph &= ours;
  /* A first run may still load code, which must not lose it the race. */
  double race_ms = ours && s->options.race && s->best_ms ? s->options.race * s->best_ms + 0.1 : INFINITY;
  timing.limit_ms = fmin(timing.limit_ms, race_ms);
  bench_work work = {restore, run, &context};
  row.timing = bench_measure(&s->target, &work, &timing);
  if (!row.timing.reps) {
    skip(s, &job->what, impl->name, timing.graph ? "a run failed, or could not be captured" : "a run failed");
    s->failed |= ours;
  } else {
    remember(impl->name, &job->what, row.timing.median);
    bool lost = row.timing.reps == 1 && row.timing.median > race_ms;
    bool check = !lost && !s->options.no_check;
    row.errors = check ? bench_check(job, ours, s->options.probe) : (bench_errors){-1, -1};
    bool best = ours && !lost && (!s->best_ms || row.timing.median < s->best_ms);
    if (best && bench_errors_pass(&row.errors)) s->best_ms = row.timing.median;
    if (s->options.check_only) row.timing = (bench_timing){0};
    bench_report_row(&s->report, s->index, s->cases, &row);
    s->failed |= ours && !bench_errors_pass(&row.errors);
  }
  impl->close(context.state);
  return true;
}

/* Every family and variant that takes part in the routine. */
static void run_all_families(session *s, bench_job *job) {
  for (int i = 0; i < bqr_num_families(); i++) {
    const batchqr_family *family = bqr_family_at(i);
    if (family->backend != s->target.device->backend) continue;
    for (int v = 0; v < family->nvariants; v++) {
      bench_impl_options forced = s->options.impl;
      forced.choice = (bench_choice){family->name, family->variants[v].name};
      char why[BENCH_TEXT];
      run_impl(s, job, &bench_ours, &forced, why);
    }
  }
}

static bool wants_peer(const char *list, const char *name) {
  if (!strcmp(list, "on")) return true;
  size_t length = strlen(name);
  for (const char *at = list; (at = strstr(at, name)); at += length)
    if ((at == list || at[-1] == ',') && (!at[length] || at[length] == ',')) return true;
  return false;
}

/* Peers know neither emulated nor half arithmetic: their rows stand with auto and native. */
static void run_peers(session *s, bench_job *job) {
  if (job->what.compute != BATCHQR_COMPUTE_AUTO && job->what.compute != BATCHQR_COMPUTE_NATIVE) return;
  for (int i = 0; bench_peers[i]; i++) {
    const bench_impl *peer = bench_peers[i];
    if (peer->backend != s->target.device->backend || !wants_peer(s->options.peers, peer->name)) continue;
    if (!(peer->routines >> job->what.routine & 1)) continue;
    char why[BENCH_TEXT];
    if (!run_impl(s, job, peer, &s->options.impl, why)) skip(s, &job->what, peer->name, why);
  }
}

static void run_case(session *s, const bench_case *what) {
  bench_job job;
  char why[BENCH_TEXT];
  s->report.ours_ms = s->best_ms = 0;
  if (bench_job_open(&job, &s->target, what, why)) {
    if (s->options.all_families) run_all_families(s, &job);
    if (!run_impl(s, &job, &bench_ours, &s->options.impl, why)) {
      skip(s, what, bench_ours.name, why);
      s->failed |= s->options.impl.choice.family != NULL;
    }
    run_peers(s, &job);
  } else {
    skip(s, what, "all", why);
  }
  bench_job_close(&job);
}

/* ---- lists of cases ---- */

static int wrong_arguments(const char *error) {
  fprintf(stderr, "bench: %s\n", error);
  return 2;
}

/* "tiny" for "tiny", "dir/tiny" and "dir/tiny.txt". */
static void suite_name(const char *suite, char *name, size_t size) {
  const char *slash = strrchr(suite, '/');
  snprintf(name, size, "%s", slash ? slash + 1 : suite);
  char *dot = strrchr(name, '.');
  if (dot && !strcmp(dot, ".txt")) *dot = 0;
}

static bool read_suite(const bench_options *options, const char *suite, bench_cases *cases,
                       char error[BENCH_TEXT]) {
  char path[BENCH_TEXT];
  if (strchr(suite, '/'))
    snprintf(path, sizeof path, "%s", suite);
  else
    snprintf(path, sizeof path, "%s/%s.txt", options->suite_directory, suite);
  if (access(path, R_OK) == 0) return bench_cases_file(cases, path, error);
  snprintf(error, BENCH_TEXT, "--suite is '%.100s', but %.300s cannot be read; --list names the suites",
           suite, path);
  return false;
}

static void run_cases(session *s, const char *name, const char *title, const bench_cases *cases) {
  char error[BENCH_TEXT];
  if (s->options.out && !bench_report_csv(&s->report, s->options.out, name, s->options.append, error))
    bench_die("%s", error);
  s->cases = cases->count;
  bench_report_heading(cases->count, title);
  for (s->index = 1; s->index <= cases->count; s->index++) run_case(s, &cases->at[s->index - 1]);
  bench_report_close_csv(&s->report);
}

/* One list to run: a suite, all sweeps together, or the case on the command line. */
typedef struct batch_of_cases {
  char name[64], title[64];
  bench_cases cases;
} batch_of_cases;

static bool collect(const bench_options *options, batch_of_cases *lists, int *count, char error[BENCH_TEXT]) {
  for (int i = 0; i < options->nsuites; i++) {
    batch_of_cases *list = &lists[(*count)++];
    suite_name(options->suites[i], list->name, sizeof list->name);
    snprintf(list->title, sizeof list->title, "suite %.50s", list->name);
    if (!read_suite(options, options->suites[i], &list->cases, error)) return false;
  }
  if (options->nsweeps) {
    batch_of_cases *list = &lists[(*count)++];
    strcpy(list->name, "sweep");
    strcpy(list->title, "sweep");
    for (int i = 0; i < options->nsweeps; i++)
      if (!bench_cases_sweep(&list->cases, options->sweeps[i], error)) return false;
  }
  if (*options->line) {
    batch_of_cases *list = &lists[(*count)++];
    strcpy(list->name, "case");
    strcpy(list->title, "command line");
    if (!bench_cases_line(&list->cases, options->line, error)) return false;
  }
  return true;
}

static int print_cases(const batch_of_cases *lists, int count) {
  for (int i = 0; i < count; i++) {
    printf("%s: %d cases\n", lists[i].title, lists[i].cases.count);
    for (int j = 0; j < lists[i].cases.count; j++) {
      const bench_case *what = &lists[i].cases.at[j];
      printf("  %-6s %-8s %c %8d %8d %9lld\n", bench_routine_name(what->routine),
             bench_compute_name(what->compute), bench_type_letter(what->type), what->m, what->n,
             (long long)what->batch);
    }
  }
  return 0;
}

static bool is_cpu_suite(const char *name) { return !strncmp(name, "cpu", 3); }

/* Suites are sized for a GPU unless their name begins with cpu. Without one, running them must be asked for.
 */
static bool suites_fit(const bench_options *options, const batch_of_cases *lists, char error[BENCH_TEXT]) {
  char why[BENCH_TEXT];
  if (options->target.backend != BATCHQR_BACKEND_AUTO || bench_cuda_present(why)) return true;
  for (int i = 0; i < options->nsuites; i++)
    if (!is_cpu_suite(lists[i].name)) {
      snprintf(error, BENCH_TEXT,
               "%.200s.\nSuite '%s' is sized for a GPU. For a CPU there is `bench --suite cpu`; --backend "
               "cpu runs "
               "any suite on it.",
               why, lists[i].name);
      return false;
    }
  return true;
}

static int by_name(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int list_all(const bench_options *options) {
  DIR *directory = opendir(options->suite_directory);
  if (!directory) return wrong_arguments("the directory of suites cannot be read (--suites-dir)");
  char *names[256];
  int count = 0;
  puts("suites");
  for (struct dirent *entry; count < 256 && (entry = readdir(directory));)
    if (strstr(entry->d_name, ".txt")) names[count++] = strdup(entry->d_name);
  closedir(directory);
  qsort(names, (size_t)count, sizeof *names, by_name);
  for (int i = 0; i < count; i++) {
    printf("  %.*s\n", (int)(strlen(names[i]) - 4), names[i]);
    free(names[i]);
  }
  puts("families and variants, in order of preference");
  for (int i = 0; i < bqr_num_families(); i++) {
    const batchqr_family *family = bqr_family_at(i);
    printf("  %-20s %-8s %-5s", family->name, bqr_op_name(family->op),
           family->backend == BATCHQR_BACKEND_CUDA ? "cuda" : "cpu");
    for (int v = 0; v < family->nvariants; v++) printf(" %s", family->variants[v].name);
    puts("");
  }
  puts("peers");
  for (int i = 0; bench_peers[i]; i++)
    printf("  %-20s %s\n", bench_peers[i]->name,
           bench_peers[i]->backend == BATCHQR_BACKEND_CUDA ? "cuda" : "cpu");
  return 0;
}

static bool known_choice(const bench_impl_options *impl, char error[BENCH_TEXT]) {
  if (!impl->choice.family) return true;
  const batchqr_family *family = bqr_family_find(impl->choice.family);
  if (!family) {
    snprintf(error, BENCH_TEXT, "--family is '%.200s', which is not in this build; --list names the families",
             impl->choice.family);
    return false;
  }
  if (!impl->choice.variant || bqr_variant_find(family, impl->choice.variant) >= 0) return true;
  snprintf(error, BENCH_TEXT, "--variant is '%.200s', which %s does not have; --list names the variants",
           impl->choice.variant, family->name);
  return false;
}

static bool known_peers(const char *list, char error[BENCH_TEXT]) {
  if (!strcmp(list, "on") || !strcmp(list, "off")) return true;
  char names[BENCH_TEXT];
  snprintf(names, sizeof names, "%s", list);
  for (char *name = strtok(names, ","); name; name = strtok(NULL, ",")) {
    int i = 0;
    while (bench_peers[i] && strcmp(bench_peers[i]->name, name)) i++;
    if (bench_peers[i]) continue;
    snprintf(error, BENCH_TEXT, "--peers names '%.200s', which is not in this build; --list names the peers",
             name);
    return false;
  }
  return true;
}

int main(int argc, char **argv) {
  static session s;
  static batch_of_cases lists[BENCH_MAX_NAMES + 2];
  char error[BENCH_TEXT];
  int count = 0;
  if (!bench_options_parse(&s.options, argc, argv, error)) return wrong_arguments(error);
  if (s.options.help || argc == 1) return bench_options_usage(), 0;
  if (s.options.list) return list_all(&s.options);
  if (!known_choice(&s.options.impl, error) || !known_peers(s.options.peers, error) ||
      !collect(&s.options, lists, &count, error))
    return wrong_arguments(error);
  if (!count) return wrong_arguments("nothing to measure: name a suite, a sweep or a case (--help)");
  if (s.options.dry_run) return print_cases(lists, count);
  if (!suites_fit(&s.options, lists, error)) return wrong_arguments(error);
  if (!bench_target_open(&s.target, &s.options.target, error)) return wrong_arguments(error);
  if (s.options.timing.graph && s.target.device->backend != BATCHQR_BACKEND_CUDA)
    return wrong_arguments("--graph needs the CUDA backend");
  bench_report_open(&s.report, &s.target, s.options.commit);
  for (int i = 0; i < count; i++) {
    run_cases(&s, lists[i].name, lists[i].title, &lists[i].cases);
    bench_cases_free(&lists[i].cases);
  }
  bench_target_close(&s.target);
  bench_data_free();
  return s.failed;
}
