/* SPDX-License-Identifier: BSD-3-Clause */
/* Progress on the terminal, lines and tables of a report, and what all pictures have in common. */
#define _POSIX_C_SOURCE 200809L
#include "program.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* --- progress: one stage at a time */

static struct {
  const char *name;
  bool quiet, terminal;
  double start, drawn; /* drawn: when, on a terminal; else the last quarter that was printed */
} stage;

void ex_progress_begin(const char *name, bool quiet) {
  stage.name = name, stage.quiet = quiet, stage.terminal = isatty(STDOUT_FILENO);
  stage.start = ex_seconds(), stage.drawn = 0;
}

static void draw_bar(double fraction, double seconds) {
  enum { width = 40 };
  char bar[width + 1];
  for (int i = 0; i < width; i++) bar[i] = i < fraction * width ? '#' : '.';
  bar[width] = 0;
  printf("\r  %-22s [%s] %3.0f %%", stage.name, bar, 100 * fraction);
  if (fraction > 0.05) printf("  %.0f s left ", seconds / fraction * (1 - fraction));
  fflush(stdout);
}

void ex_progress(double fraction) {
  if (stage.quiet) return;
  double seconds = ex_seconds() - stage.start;
  if (stage.terminal) {
    if (seconds - stage.drawn < 0.1) return;
    stage.drawn = seconds;
    draw_bar(fraction, seconds);
  } else if (seconds > 5 && fraction < 1 && floor(4 * fraction) > stage.drawn) {
    stage.drawn = floor(4 * fraction);
    printf("  %-22s %3.0f %% after %.0f s\n", stage.name, 25 * stage.drawn, seconds);
    fflush(stdout);
  }
}

double ex_progress_end(void) {
  double seconds = ex_seconds() - stage.start;
  if (!stage.quiet) {
    printf("%s  %-22s %8.2f s%s\n", stage.terminal ? "\r" : "", stage.name, seconds,
           stage.terminal ? "\033[K" : "");
    fflush(stdout);
  }
  return seconds;
}

/* --- lines of a report */

void ex_print_fact(const char *name, const char *format, ...) {
  va_list args;
  va_start(args, format);
  printf("  %-17s ", name);
  vprintf(format, args);
  putchar('\n');
  va_end(args);
}

void ex_print_time(const char *what, double seconds, const char *note) {
  printf("  %-34s %9.3f s%s\n", what, seconds, note);
}

void ex_print_memory(const char *what, double bytes, const char *note) {
  printf("  %-34s %9.1f%s\n", what, bytes / 1e6, note);
}

void ex_print_largest_use(void) {
  struct rusage use;
  getrusage(RUSAGE_SELF, &use);
  ex_print_memory("largest use of this process", 1024.0 * (double)use.ru_maxrss, "");
}

/* --- tables */

static void print_range(const char *format, int class) {
  char range[32];
  snprintf(range, sizeof range, "%d-%d", 1 << class, (int)((1u << (class + 1)) - 1));
  printf(format, range);
}

void ex_count_member(ex_histogram *histogram, int rows, int cols) {
  histogram->members[ilogb(rows)][ilogb(cols)]++;
}

void ex_print_histogram(const char *title, const ex_histogram *histogram) {
  int rows[2] = {EX_SIZE_CLASSES, -1}, cols[2] = {EX_SIZE_CLASSES, -1};
  for (int i = 0; i < EX_SIZE_CLASSES; i++)
    for (int j = 0; j < EX_SIZE_CLASSES; j++)
      if (histogram->members[i][j]) {
        rows[0] = i < rows[0] ? i : rows[0], rows[1] = i;
        cols[0] = j < cols[0] ? j : cols[0], cols[1] = j > cols[1] ? j : cols[1];
      }
  if (rows[1] < 0) return;
  printf("\n%s, by rows and columns\n  %15s", title, "rows \\ columns");
  for (int j = cols[0]; j <= cols[1]; j++) print_range(" %9s", j);
  for (int i = rows[0]; i <= rows[1]; i++) {
    print_range("\n  %15s", i);
    for (int j = cols[0]; j <= cols[1]; j++)
      if (histogram->members[i][j])
        printf(" %9lld", (long long)histogram->members[i][j]);
      else
        printf(" %9s", ".");
  }
  printf("\n");
}

void ex_print_plan(const char *name, const char *text) {
  enum { most = 4 };
  int line = 0;
  for (; *text; line++) {
    int length = (int)strcspn(text, "\n");
    if (line < most) ex_print_fact(line ? "" : name, "%.*s", length, text);
    text += length + (text[length] == '\n');
  }
  if (line > most) ex_print_fact("", "and %d more groups", line - most);
}

/* --- pictures */

static void write_escaped(FILE *f, const char *text) {
  for (; *text; text++) {
    switch (*text) {
    case '<':
      fputs("&lt;", f);
      break;
    case '>':
      fputs("&gt;", f);
      break;
    case '&':
      fputs("&amp;", f);
      break;
    default:
      if ((unsigned char)*text >= ' ') fputc(*text, f);
    }
  }
}

FILE *ex_svg_begin(const char *name, int width, int height) {
  FILE *f = ex_create(name);
  fprintf(f,
          "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" height=\"%d\" "
          "font-family=\"Helvetica, Arial, sans-serif\" fill=\"#1f2f36\">\n"
          "<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
          width, height, width, height, width, height);
  return f;
}

void ex_svg_end(FILE *f, const char *name) {
  fputs("</svg>\n", f);
  ex_finish(f, name);
}

void ex_svg_text(FILE *f, double x, double y, double size, const char *style, const char *text) {
  fprintf(f, "<text x=\"%.5g\" y=\"%.5g\" font-size=\"%.3g\" %s>", x, y, size, style);
  write_escaped(f, text);
  fputs("</text>\n", f);
}
