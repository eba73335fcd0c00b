/* SPDX-License-Identifier: BSD-3-Clause */
/* Results as CSV and as a table on the terminal. */
#include "bench.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

static const char csv_header[] =
    "routine,compute,type,m,n,batch,layout,impl,ms_median,ms_min,ms_max,reps,gflops,gbps,residual,"
    "orthogonality,family,variant,device,cuda,commit,date,launches,workspace,input";

/* First line of a command's output, "" if there is none. */
static void first_line(const char *command, char *line, int size) {
  *line = 0;
  FILE *pipe = popen(command, "r");
  if (!pipe) return;
  if (!fgets(line, size, pipe)) *line = 0;
  line[strcspn(line, "\r\n")] = 0;
  pclose(pipe);
}

static void find_commit(char *commit, size_t size) {
  char hash[40], changes[16];
  first_line("git -C '" BENCH_SOURCE_DIR "' rev-parse --short HEAD 2>/dev/null", hash, sizeof hash);
  first_line("git -C '" BENCH_SOURCE_DIR "' status --porcelain --untracked-files=no 2>/dev/null", changes,
             sizeof changes);
  snprintf(commit, size, "%s%s", *hash ? hash : "unknown", *changes ? "+" : "");
}

/* A CSV field without quoting: commas become blanks. */
static void copy_field(char *to, size_t size, const char *from) {
  snprintf(to, size, "%s", from);
  for (char *c = to; *c; c++)
    if (*c == ',' || *c == '"' || (unsigned char)*c < ' ') *c = ' ';
}

void bench_report_open(bench_report *report, const bench_target *target, const bench_input *input,
                       const char *commit) {
  *report = (bench_report){.rates = !target->host_time, .input = input->text};
  copy_field(report->device, sizeof report->device, target->name);
  copy_field(report->cuda, sizeof report->cuda, target->cuda);
  if (commit)
    copy_field(report->commit, sizeof report->commit, commit);
  else
    find_commit(report->commit, sizeof report->commit);
  printf("%s; CUDA %s; commit %s\n", batchqr_describe(target->handle), report->cuda, report->commit);
}

/* What tells one row from another: its case, how it was called, by whom, at which commit. */
enum { FIELD_LAYOUT = 6, FIELD_IMPL, FIELD_COMMIT = 20, FIELD_INPUT = 24, FIELDS };

/* Cuts a line into its fields; how many there are. */
static int cut(char *line, char *fields[], int most) {
  int count = 0;
  for (char *at = line; at && count < most; count++) {
    fields[count] = at;
    at = strchr(at, ',');
    if (at) *at++ = 0;
  }
  return count;
}

static void keep(bench_report *report, const char *row) {
  char **longer = realloc(report->known, (size_t)(report->nknown + 1) * sizeof *longer);
  if (!longer || !(longer[report->nknown] = strdup(row))) lab_die("out of memory");
  report->known = longer;
  report->nknown++;
}

static void read_known(bench_report *report, const char *path) {
  FILE *csv = fopen(path, "r");
  char line[4 * BENCH_TEXT], row[2 * BENCH_TEXT], *f[FIELDS];
  while (csv && fgets(line, sizeof line, csv)) {
    line[strcspn(line, "\r\n")] = 0;
    if (cut(line, f, FIELDS) < FIELDS || strcmp(f[FIELD_COMMIT], report->commit) ||
        strcmp(f[FIELD_INPUT], report->input))
      continue;
    snprintf(row, sizeof row, "%s,%s,%s,%s,%s,%s,%s,%s", f[0], f[1], f[2], f[3], f[4], f[5], f[FIELD_IMPL],
             f[FIELD_LAYOUT]);
    keep(report, row);
  }
  if (csv) fclose(csv);
}

static const char *layout_text(batchqr_layout layout, batchqr_sizes sizes) {
  if (sizes == BATCHQR_HOST_SIZES) return layout == BATCHQR_POINTERS ? "pointers+sizes" : "strided+sizes";
  return layout == BATCHQR_POINTERS ? "pointers" : "strided";
}

bool bench_report_knows(const bench_report *report, const bench_case *what, const char *impl,
                        const bench_impl_options *as) {
  char name[BENCH_TEXT];
  char row[BENCH_TEXT];
  int length = snprintf(row, sizeof row, "%s,%s,%c,%d,%d,%lld,%s,%s", bench_routine_name(what, name),
                        bench_compute_name(what->compute), type_letter(what->type), what->m, what->n,
                        (long long)what->batch, impl, as ? layout_text(as->layout, as->sizes) : "");
  for (int i = 0; i < report->nknown; i++)
    if (as ? !strcmp(report->known[i], row) : !strncmp(report->known[i], row, (size_t)length)) return true;
  return false;
}

static void cannot_write(const char *path) { lab_die("cannot write %.300s: %s", path, strerror(errno)); }

bool bench_report_csv(bench_report *report, const char *directory, const char *name, bool append,
                      bool missing, char error[BENCH_TEXT]) {
  const char *path = report->path;
  if (snprintf(report->path, sizeof report->path, "%s/%s.csv", directory, name) >= (int)sizeof report->path) {
    snprintf(error, BENCH_TEXT, "--out is a path of more than %d characters", BENCH_TEXT);
    return false;
  }
  mkdir(directory, 0777); /* where it fails for another reason than being there, so does fopen */
  if (missing) read_known(report, path);
  FILE *csv = fopen(path, append ? "a" : "w");
  if (!csv) {
    snprintf(error, BENCH_TEXT, "cannot write %.300s: %s", path, strerror(errno));
    return false;
  }
  if (!append || ftell(csv) == 0) fprintf(csv, "%s\n", csv_header);
  report->csv = csv;
  printf("writing %s\n", path);
  return true;
}

void bench_report_close_csv(bench_report *report) {
  if (report->csv && fclose(report->csv)) cannot_write(report->path);
  report->csv = NULL;
  for (int i = 0; i < report->nknown; i++) free(report->known[i]);
  free(report->known);
  report->known = NULL, report->nknown = 0;
}

/* A number, or nothing where it does not apply. */
static void print_number(FILE *csv, double value, bool applies) {
  if (applies)
    fprintf(csv, "%.6g,", value);
  else
    fputc(',', csv);
}

static void print_csv(const bench_report *report, const bench_row *row) {
  char name[BENCH_TEXT];
  const bench_case *what = &row->what;
  const bench_timing *t = &row->timing;
  bool timed = t->reps > 0;
  FILE *csv = report->csv;
  fprintf(csv, "%s,%s,%c,%d,%d,%lld,%s,%s,", bench_routine_name(what, name),
          bench_compute_name(what->compute), type_letter(what->type), what->m, what->n,
          (long long)what->batch, layout_text(row->facts.layout, row->facts.sizes), row->impl);
  print_number(csv, t->median, timed);
  print_number(csv, t->min, timed);
  print_number(csv, t->max, timed);
  fprintf(csv, "%d,", t->reps);
  print_number(csv, bench_flops(what) / t->median * 1e-6, timed && report->rates && bench_flops(what) > 0);
  print_number(csv, bench_bytes(what) / t->median * 1e-6, timed && report->rates);
  print_number(csv, row->errors.residual, !(row->errors.residual < 0));
  print_number(csv, row->errors.orthogonality, !(row->errors.orthogonality < 0));
  char date[32];
  time_t now = time(NULL);
  strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
  fprintf(csv, "%s,%s,%s,%s,%s,%s,", row->facts.family, row->facts.variant, report->device, report->cuda,
          report->commit, date);
  if (row->facts.launches >= 0) fprintf(csv, "%d", row->facts.launches);
  fputc(',', csv);
  if (row->facts.workspace >= 0) fprintf(csv, "%lld", (long long)row->facts.workspace);
  fprintf(csv, ",%s\n", report->input);
  if (fflush(csv)) cannot_write(report->path); /* now, not when all is measured */
}

void bench_report_heading(int cases, const char *title) {
  printf("\n%s: %d case%s\n", title, cases, cases == 1 ? "" : "s");
  printf("%-9s %-6s %-8s %s %8s %6s %9s  %-10s %11s %6s %4s %9s %8s %8s %8s  %s\n", "", "routine", "compute",
         "t", "m", "n", "batch", "by", "ms", "+-%", "reps", "GFLOP/s", "GB/s", "residual", "orthog.",
         "kernels");
}

static void print_case(int index, int cases, const bench_case *what) {
  char name[BENCH_TEXT];
  printf("[%3d/%3d] %-7s %-8s %c %8d %6d %9lld  ", index, cases, bench_routine_name(what, name),
         bench_compute_name(what->compute), type_letter(what->type), what->m, what->n,
         (long long)what->batch);
}

static void print_ratio(double ratio) {
  if (ratio < 0)
    printf(" %8s", "-");
  else
    printf(" %8.3g", ratio);
}

static void print_times(const bench_row *row, bool rates) {
  const bench_timing *t = &row->timing;
  if (!t->reps) {
    printf("%11s %6s %4s %9s %8s", "-", "-", "-", "-", "-");
    return;
  }
  printf("%11.4f %6.1f %4d", t->median, 50 * (t->max - t->min) / t->median, t->reps);
  if (rates)
    printf(" %9.1f %8.1f", bench_flops(&row->what) / t->median * 1e-6,
           bench_bytes(&row->what) / t->median * 1e-6);
  else
    printf(" %9s %8s", "-", "-");
}

void bench_report_row(bench_report *report, int index, int cases, const bench_row *row) {
  bool ours = !strcmp(row->impl, bench_ours.name);
  if (report->csv) print_csv(report, row);
  print_case(index, cases, &row->what);
  printf("%-10s ", row->impl);
  print_times(row, report->rates);
  print_ratio(row->errors.residual);
  print_ratio(row->errors.orthogonality);
  if (ours)
    printf("  %s %s", row->facts.family, row->facts.variant);
  else if (report->ours_ms > 0 && row->timing.reps)
    printf("  batchqr is %.3g times as fast", row->timing.median / report->ours_ms);
  puts(bench_errors_pass(&row->errors) ? "" : "  WRONG");
  fflush(stdout);
  if (ours) report->ours_ms = row->timing.median;
}

void bench_report_skip(int index, int cases, const bench_case *what, const char *impl, const char *why) {
  print_case(index, cases, what);
  printf("%-10s skipped: %s\n", impl, why);
  fflush(stdout);
}
