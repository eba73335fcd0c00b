/* SPDX-License-Identifier: BSD-3-Clause */
/* The benchmark program: suites, single cases and sweeps; batchqr and its peers in the same run. */
#include "bench.h"
#include "sequence.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What time goes to. */
enum { PREPARING, RUNNING, CHECKING, PHASES };

typedef struct session {
  bench_options options;
  bench_target target;
  bench_report report;
  int index, cases;  /* progress */
  double end_ms;     /* no case starts after it */
  double ms[PHASES]; /* of the list in progress */
  double best_ms;    /* of our right results for the case in progress; 0: none */
  bench_row planned; /* its row by the planner's choice; reps 0: none yet */
  bool failed;       /* ours was wrong, or could not run what was asked for */
} session;

/* Adds the time since `start` to a phase; the time now. */
static double spend(session *s, int phase, double start) {
  double now = bench_now_ms();
  s->ms[phase] += now - start;
  return now;
}

/* No call takes less for each of its launches. */
static const double launch_ms = 1e-3;
/* A variant that takes so many times as long as the best has no prospects with similar members. */
enum { FAR_BEHIND = 6 };

/* ---- one case ---- */

typedef struct running {
  bench_job *job;
  const bench_impl *impl;
  void *state;
  double patience_ms;
} running;

static bool restore(void *context) { return bench_job_restore(((const running *)context)->job); }
static bool run(void *context) {
  const running *r = context;
  r->job->end_ms = bench_now_ms() + r->patience_ms;
  return r->impl->run(r->state);
}

static void show_progress(const session *s, const bench_case *what, const char *impl) {
  char name[BENCH_TEXT];
  if (!isatty(STDERR_FILENO)) return;
  fprintf(stderr, "\r[%3d/%3d] %s %c %d x %d x %lld: %s ...\033[K\r", s->index, s->cases,
          bench_routine_name(what, name), type_letter(what->type), what->m, what->n, (long long)what->batch,
          impl);
}

static void skip(const session *s, const bench_case *what, const char *impl, const char *why) {
  bench_report_skip(s->index, s->cases, what, impl, why);
}

static bool same_kernels(const bench_row *a, const bench_row *b) {
  return !strcmp(a->facts.family, b->facts.family) && !strcmp(a->facts.variant, b->facts.variant);
}

/* Above this a variant has lost the race; what CUDA's events resolve does not count. */
static double race_ms(const session *s, const bench_impl *impl) {
  bool races = impl == &bench_ours && s->options.race && s->best_ms;
  return races ? s->options.race * s->best_ms + 0.01 : INFINITY;
}

/* Runs and checks what has been opened. False: a run failed, for the reason in `why`. */
static bool time_and_check(session *s, running *context, bench_row *row, char why[BENCH_TEXT]) {
  bool ours = context->impl == &bench_ours;
  bench_timing_options timing = s->options.timing;
  timing.graph &= ours;
  timing.race_ms = race_ms(s, context->impl);
  if (!ours && s->options.peer_limit_s) timing.limit_ms = 1e3 * s->options.peer_limit_s;
  bench_work work = {restore, run, context};
  double start = bench_now_ms();
  bench_job_poison(context->job);
  row->timing = bench_measure(&s->target, &work, &timing);
  start = spend(s, RUNNING, start);
  if (!row->timing.reps) {
    if (context->job->given_up)
      snprintf(why, BENCH_TEXT, "takes more than %g s (%s)", context->patience_ms / 1e3,
               s->options.peer_limit_s ? "--peer-limit" : "--patience");
    else
      snprintf(why, BENCH_TEXT, timing.graph ? "a run failed, or could not be captured" : "a run failed");
    s->failed |= ours;
    return false;
  }
  bench_remember(context->impl->name, &row->what, row->timing.median);
  bool lost = row->timing.median > timing.race_ms;
  if (lost || s->options.no_check) return true;
  bench_spoil spoil = ours ? s->options.spoil : BENCH_SPOIL_NOTHING;
  if (spoil && !bench_job_spoil(context->job, spoil)) {
    snprintf(why, BENCH_TEXT, "it has no such result (--spoil)");
    return false;
  }
  row->errors = bench_check(context->job, ours, s->options.probe);
  spend(s, CHECKING, start);
  s->failed |= ours && !bench_errors_pass(&row->errors);
  if (ours && bench_errors_pass(&row->errors) && !(s->best_ms && s->best_ms < row->timing.median))
    s->best_ms = row->timing.median;
  return true;
}

/* One implementation's row. False: it could not be opened or run, for the reason in `why`. */
static bool measure(session *s, bench_job *job, const bench_impl *impl, const bench_impl_options *options,
                    bench_row *row, char why[BENCH_TEXT]) {
  bool ours = impl == &bench_ours;
  double patience_s = !ours && s->options.peer_limit_s ? s->options.peer_limit_s : s->options.patience_s;
  *row = (bench_row){
      .what = job->what, .impl = impl->name, .facts = {.launches = -1, .workspace = -1}, .errors = {-1, -1}};
  show_progress(s, &job->what, impl->name);
  double expected = bench_predict(impl, &job->what), start = bench_now_ms();
  if (expected > 1e3 * patience_s) {
    snprintf(why, BENCH_TEXT, "would take about %.2g s (%s)", expected / 1e3,
             !ours && s->options.peer_limit_s ? "--peer-limit" : "--patience");
    return false;
  }
  running context = {job, impl, impl->open(job, options, &row->facts, why),
                     ours ? INFINITY : 1e3 * patience_s};
  if (!context.state) return false;
  spend(s, PREPARING, start);
  bool again = ours && s->planned.timing.reps && same_kernels(row, &s->planned), done = !again;
  double most_ms = race_ms(s, impl);
  bool beaten = most_ms < INFINITY &&
                (row->facts.launches * launch_ms > most_ms || bench_cannot_win(&options->choice, &job->what));
  if (!again && !beaten) done = time_and_check(s, &context, row, why);
  if (most_ms < INFINITY && row->timing.median > FAR_BEHIND * s->best_ms)
    bench_remember_defeat(&options->choice, &job->what);
  impl->close(context.state);
  return done;
}

static void report(session *s, bench_row row) {
  if (s->options.check_only) row.timing = (bench_timing){0};
  bench_report_row(&s->report, s->index, s->cases, &row);
}

/* Every other family and variant that takes part in the routine; in a race, that does the whole of it. */
static void run_all_families(session *s, bench_job *job) {
  for (int i = 0; i < bqr_num_families(); i++) {
    const bqr_family *family = bqr_family_at(i);
    if (family->backend != s->target.device->backend) continue;
    if (s->options.race && family->op != job->what.operation->op) continue;
    for (int v = 0; v < family->nvariants; v++) {
      bench_impl_options forced = s->options.impl;
      forced.choice = (bench_choice){family->name, family->variants[v].name};
      char why[BENCH_TEXT];
      bench_row row;
      if (measure(s, job, &bench_ours, &forced, &row, why)) report(s, row);
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

static bool does(const bench_impl *impl, const bench_case *what) {
  return impl->routines >> what->operation->op & 1;
}

/* Peers know neither emulated nor half arithmetic: their rows stand with auto and native. */
static bool wants_row(const session *s, const bench_impl *impl, const bench_case *what) {
  bool ours = impl == &bench_ours;
  if (bench_report_knows(&s->report, what, impl->name, ours ? &s->options.impl : NULL)) return false;
  return ours || ((what->compute == BATCHQR_COMPUTE_AUTO || what->compute == BATCHQR_COMPUTE_NATIVE) &&
                  impl->backend == s->target.device->backend && wants_peer(s->options.peers, impl->name) &&
                  does(impl, what));
}

static bool wants_any_row(const session *s, const bench_case *what) {
  bool any = wants_row(s, &bench_ours, what);
  for (int i = 0; bench_peers[i]; i++) any |= wants_row(s, bench_peers[i], what);
  return any;
}

static void run_peers(session *s, bench_job *job) {
  for (int i = 0; bench_peers[i]; i++) {
    char why[BENCH_TEXT];
    bench_row row;
    if (!wants_row(s, bench_peers[i], &job->what)) continue;
    if (measure(s, job, bench_peers[i], &s->options.impl, &row, why))
      report(s, row);
    else
      skip(s, &job->what, bench_peers[i]->name, why);
  }
}

/* The planner's choice first: what is slower is then known early. Once more at the end of all families, which
 * shows that the case is complete. */
static void run_ours(session *s, bench_job *job) {
  char why[BENCH_TEXT];
  bench_row row;
  bool planned = measure(s, job, &bench_ours, &s->options.impl, &row, why);
  if (planned)
    report(s, row);
  else
    skip(s, &job->what, bench_ours.name, why);
  s->failed |= !planned && s->options.impl.choice.family != NULL;
  if (!s->options.all_families) return;
  if (planned) s->planned = row;
  run_all_families(s, job);
  if (planned) report(s, row);
}

static void run_case(session *s, const bench_case *what) {
  if (s->options.minutes && s->end_ms == INFINITY) s->end_ms = bench_now_ms() + 6e4 * s->options.minutes;
  bench_job job;
  char why[BENCH_TEXT];
  s->report.ours_ms = s->best_ms = 0;
  s->planned.timing.reps = 0;
  if (!wants_any_row(s, what)) return;
  double start = bench_now_ms();
  if (bench_job_open(&job, &s->target, what, &s->options.input, why)) {
    spend(s, PREPARING, start);
    if (wants_row(s, &bench_ours, what)) run_ours(s, &job);
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
  if (s->options.out &&
      !bench_report_csv(&s->report, s->options.out, name, s->options.append, s->options.missing, error))
    lab_die("%s", error);
  s->cases = cases->count;
  memset(s->ms, 0, sizeof s->ms);
  bench_report_heading(cases->count, title);
  for (s->index = 1; s->index <= cases->count && bench_now_ms() < s->end_ms; s->index++)
    run_case(s, &cases->at[s->index - 1]);
  bench_report_close_csv(&s->report);
  if (s->index <= cases->count) printf("stopped by --minutes: %d cases left\n", cases->count - s->index + 1);
  printf("%.2f s of preparing, %.2f s of running, %.2f s of checking\n", s->ms[PREPARING] / 1e3,
         s->ms[RUNNING] / 1e3, s->ms[CHECKING] / 1e3);
}

/* One list to run: a suite, all sweeps together, what is drawn, or the case on the command line. */
typedef struct batch_of_cases {
  char name[64], title[64];
  bench_cases cases;
} batch_of_cases;

static batch_of_cases *new_list(batch_of_cases *lists, int *count) {
  lists[*count].cases.operations = bqr_builtin_operations;
  return &lists[(*count)++];
}

static bool collect(const bench_options *options, batch_of_cases *lists, int *count, char error[BENCH_TEXT]) {
  for (int i = 0; i < options->nsuites; i++) {
    batch_of_cases *list = new_list(lists, count);
    suite_name(options->suites[i], list->name, sizeof list->name);
    snprintf(list->title, sizeof list->title, "suite %.50s", list->name);
    if (!read_suite(options, options->suites[i], &list->cases, error)) return false;
  }
  if (options->nsweeps) {
    batch_of_cases *list = new_list(lists, count);
    strcpy(list->name, "sweep");
    strcpy(list->title, "sweep");
    for (int i = 0; i < options->nsweeps; i++)
      if (!bench_cases_sweep(&list->cases, options->sweeps[i], error)) return false;
  }
  if (options->random_cases) {
    batch_of_cases *list = new_list(lists, count);
    strcpy(list->name, "random");
    snprintf(list->title, sizeof list->title, "drawn from seed %d", options->random_seed);
    bench_cases_random(&list->cases, options->random_seed, options->random_cases);
  }
  if (*options->line) {
    batch_of_cases *list = new_list(lists, count);
    strcpy(list->name, "case");
    strcpy(list->title, "command line");
    if (!bench_cases_line(&list->cases, options->line, error)) return false;
  }
  return true;
}

static int print_cases(const batch_of_cases *lists, int count) {
  char name[BENCH_TEXT];
  for (int i = 0; i < count; i++) {
    printf("%s: %d cases\n", lists[i].title, lists[i].cases.count);
    for (int j = 0; j < lists[i].cases.count; j++) {
      const bench_case *what = &lists[i].cases.at[j];
      printf("  %-6s %-8s %c %8d %8d %9lld\n", bench_routine_name(what, name),
             bench_compute_name(what->compute), type_letter(what->type), what->m, what->n,
             (long long)what->batch);
    }
  }
  return 0;
}

static bool is_cpu_suite(const char *name) { return !strncmp(name, "cpu", 3); }

/* Suites are sized for a GPU unless their name begins with cpu, and so is what is drawn. Without one, running
 * them must be asked for. */
static bool suites_fit(const bench_options *options, const batch_of_cases *lists, int count,
                       char error[BENCH_TEXT]) {
  char why[BENCH_TEXT];
  if (options->target.backend != BATCHQR_BACKEND_AUTO || bench_cuda_present(why)) return true;
  for (int i = 0; i < count; i++)
    if ((i < options->nsuites || !strcmp(lists[i].name, "random")) && !is_cpu_suite(lists[i].name)) {
      snprintf(error, BENCH_TEXT,
               "%.200s.\nSuite '%.60s' is sized for a GPU. For a CPU there is `bench --suite cpu`; "
               "--backend cpu runs any suite on it.",
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
    const bqr_family *family = bqr_family_at(i);
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
  const bqr_family *family = bqr_family_find(impl->choice.family);
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
  static batch_of_cases lists[BENCH_MAX_NAMES + 3];
  char error[BENCH_TEXT];
  int count = 0;
  if (!bench_options_parse(&s.options, argc, argv, error)) return wrong_arguments(error);
  if (s.options.help || argc == 1) return bench_options_usage(), 0;
  if (s.options.list) return list_all(&s.options);
  if (!known_choice(&s.options.impl, error) || !known_peers(s.options.peers, error) ||
      !collect(&s.options, lists, &count, error))
    return wrong_arguments(error);
  if (!count)
    return wrong_arguments(
        "nothing to measure: name a suite, a sweep or a case, or have some drawn (--help)");
  if (s.options.dry_run) return print_cases(lists, count);
  if (!suites_fit(&s.options, lists, count, error)) return wrong_arguments(error);
  if (!bench_target_open(&s.target, &s.options.target, error)) return wrong_arguments(error);
  if (s.options.timing.graph && s.target.device->backend != BATCHQR_BACKEND_CUDA)
    return wrong_arguments("--graph needs the CUDA backend");
  s.end_ms = INFINITY;
  bench_report_open(&s.report, &s.target, &s.options.input, s.options.commit);
  for (int i = 0; i < count; i++) {
    run_cases(&s, lists[i].name, lists[i].title, &lists[i].cases);
    bench_cases_free(&lists[i].cases);
  }
  bench_forget();
  sequence_free(&s.target.space);
  bench_target_close(&s.target);
  if (fflush(stdout) || ferror(stdout)) lab_die("cannot write to standard output");
  return s.failed;
}
