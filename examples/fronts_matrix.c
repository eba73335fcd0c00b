/* SPDX-License-Identifier: BSD-3-Clause */
/* Least-squares problems: measurements on a grid, or a Matrix Market file (NIST: The Matrix Market exchange
 * formats, 1996). */
#define _POSIX_C_SOURCE 200809L
#include "fronts.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* --- vectors */

double fr_norm(int64_t n, const double *x) {
  double largest = 0, sum = 0;
  for (int64_t i = 0; i < n; i++) largest = fmax(largest, fabs(x[i]));
  for (int64_t i = 0; i < n && largest > 0; i++) sum += (x[i] / largest) * (x[i] / largest);
  return largest * sqrt(sum);
}

double fr_norm_bound(const fr_matrix *a) {
  double *sums = ex_zeros((size_t)a->cols, sizeof *sums), by_rows = 0, by_cols = 0;
  for (int i = 0; i < a->rows; i++) {
    double sum = 0;
    for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
      sum += fabs(a->value[e]);
      sums[a->col[e]] += fabs(a->value[e]);
    }
    by_rows = fmax(by_rows, sum);
  }
  for (int j = 0; j < a->cols; j++) by_cols = fmax(by_cols, sums[j]);
  free(sums);
  return sqrt(by_rows) * sqrt(by_cols);
}

double fr_usual_tolerance(const fr_matrix *a) {
  double *norms = ex_zeros((size_t)a->cols, sizeof *norms), largest = 0;
  for (int64_t e = 0; e < a->start[a->rows]; e++) norms[a->col[e]] = hypot(norms[a->col[e]], a->value[e]);
  for (int j = 0; j < a->cols; j++) largest = fmax(largest, norms[j]);
  free(norms);
  return 20 * ((double)a->rows + a->cols) * DBL_EPSILON * largest;
}

void fr_residual(const fr_matrix *a, const double *x, double *r) {
#pragma omp parallel for
  for (int i = 0; i < a->rows; i++) {
    r[i] = -a->b[i];
    for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) r[i] += a->value[e] * x[a->col[e]];
  }
}

void fr_multiply_transposed(const fr_matrix *a, const double *r, double *g) {
  memset(g, 0, (size_t)a->cols * sizeof *g);
  for (int i = 0; i < a->rows; i++)
    for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) g[a->col[e]] += a->value[e] * r[i];
}

/* Errors of measurements: uniform in -1 .. 1, the same in every run (Knuth's MMIX generator). */
static double next_error(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)*state * 0x1p-63;
}

/* b := A truth, each row with an error of `noise` times its norm. */
static void make_rhs(fr_matrix *a, double noise) {
  uint64_t state = 1;
  a->b = ex_zeros((size_t)a->rows, sizeof *a->b);
  fr_residual(a, a->truth, a->b);
  for (int i = 0; i < a->rows; i++)
    a->b[i] += noise * fr_norm(a->start[i + 1] - a->start[i], a->value + a->start[i]) * next_error(&state);
}

/* --- grids */

static const double weight = 0.1; /* of the field's own measurements */

static double field(const fr_matrix *a, const int p[3]) {
  double x[3] = {0};
  for (int d = 0; d < a->dimensions; d++) x[d] = (p[d] + 0.5) / a->grid[d];
  return sin(5 * x[0] + 2 * x[1]) + cos(4 * x[1] * x[2] + 3 * x[0]) + x[2] * x[0];
}

static void add_entry(fr_matrix *a, int64_t *next, int col, double value) {
  a->col[*next] = col, a->value[(*next)++] = value;
}

void fr_grid_problem(fr_matrix *a, int dimensions, int size, double noise) {
  *a = (fr_matrix){.dimensions = dimensions, .grid = {size, size, dimensions == 3 ? size : 1}};
  const int stride[3] = {1, size, size * size};
  const int cols = size * size * a->grid[2];
  const size_t most_rows = (size_t)cols * (dimensions + 1);
  int64_t next = 0;
  a->cols = cols;
  a->start = ex_zeros(most_rows + 1, sizeof *a->start);
  a->col = ex_alloc(2 * most_rows, sizeof *a->col);
  a->value = ex_alloc(2 * most_rows, sizeof *a->value);
  a->truth = ex_alloc((size_t)cols, sizeof *a->truth);
  for (int j = 0; j < cols; j++) {
    const int p[3] = {j % size, j / size % size, j / (size * size)};
    a->truth[j] = field(a, p);
    add_entry(a, &next, j, weight);
    a->start[++a->rows] = next;
    for (int d = 0; d < dimensions; d++) {
      if (p[d] + 1 == a->grid[d]) continue;
      add_entry(a, &next, j, -1);
      add_entry(a, &next, j + stride[d], 1);
      a->start[++a->rows] = next;
    }
  }
  make_rhs(a, noise);
  snprintf(a->source, sizeof a->source,
           dimensions == 3 ? "grid of %d x %d x %d points" : "grid of %d x %d points", size, size, size);
  snprintf(a->meaning, sizeof a->meaning, "a field from the differences of neighbours, errors up to %g",
           noise);
}

/* --- scaling: entries at an end of the exponents' range are taken to its middle, where their sums and
 * products are. That is exact but for what falls below the range at its other end. */

static int exponent_of(int64_t count, const double *value) {
  double largest = 0;
  for (int64_t e = 0; e < count; e++) largest = fmax(largest, fabs(value[e]));
  return largest > 0x1p500 || (largest > 0 && largest < 0x1p-500) ? ilogb(largest) : 0;
}

static void scale(int64_t count, double *value, int exponent) {
  for (int64_t e = 0; e < count && exponent; e++) value[e] = scalbn(value[e], -exponent);
}

static void scale_matrix(fr_matrix *a) {
  a->exponent_a = exponent_of(a->start[a->rows], a->value);
  scale(a->start[a->rows], a->value, a->exponent_a);
}

static void scale_rhs(fr_matrix *a) {
  a->exponent_b = exponent_of(a->rows, a->b);
  scale(a->rows, a->b, a->exponent_b);
}

void fr_undo_scaling(const fr_matrix *a, double *x) { scale(a->cols, x, a->exponent_a - a->exponent_b); }

/* --- files */

typedef struct entry {
  int row, col;
  double value;
} entry;

typedef struct header {
  bool pattern, symmetric;
  int64_t rows, cols, entries;
  long long line; /* that announces them */
} header;

/* A word of the first line among `known`, in letters of either case. */
static int read_word(const ex_reader *r, char **s, const char *const *known, const char *refused) {
  char *word = ex_skip_blanks(*s), *end = ex_end_of_word(word);
  *s = end;
  for (int i = 0; known[i]; i++)
    if (strlen(known[i]) == (size_t)(end - word) && strncasecmp(word, known[i], strlen(known[i])) == 0)
      return i;
  ex_bad_line(r, "%s: '%.*s'", refused, end - word < 40 ? (int)(end - word) : 40, word);
}

/* %%MatrixMarket matrix FORMAT FIELD SYMMETRY */
static void read_first_line(ex_reader *r, const char *format, bool matrix, header *h) {
  const char *const formats[] = {format, NULL}, *const fields[] = {"real", "integer", "double", "pattern",
                                                                   NULL};
  const char *const symmetries[] = {"general", matrix ? "symmetric" : NULL, NULL};
  char *s = ex_next_line(r), refused[80];
  if (!s || strncasecmp(s, "%%MatrixMarket matrix ", 22) != 0)
    ex_bad_line(r, "a Matrix Market file begins with '%%%%MatrixMarket matrix %s', not '%.40s'", format,
                s ? s : "");
  s += 22;
  snprintf(refused, sizeof refused, "the format should be '%s'", format);
  read_word(r, &s, formats, refused);
  h->pattern = read_word(r, &s, fields, "the entries should be real, integer or pattern") == 3;
  if (h->pattern && !matrix) ex_bad_line(r, "an array has no pattern");
  h->symmetric = read_word(r, &s, symmetries,
                           matrix ? "the symmetry should be general or symmetric"
                                  : "the symmetry should be general") == 1;
}

static void expect_end_of_line(const ex_reader *r, char *s) {
  s = ex_skip_blanks(s);
  if (*s) ex_bad_line(r, "the line should end before '%.40s'", s);
}

static void read_sizes(ex_reader *r, bool matrix, header *h) {
  const char *wanted = matrix ? "rows, columns and the number of entries" : "rows and columns";
  char *s = ex_next_content(r);
  if (!s) ex_bad_line(r, "the file ends before its sizes");
  char *rest = s;
  if (!ex_read_count(&rest, INT_MAX, &h->rows) || !ex_read_count(&rest, INT_MAX, &h->cols) ||
      (matrix && !ex_read_count(&rest, INT64_MAX, &h->entries)))
    ex_bad_line(r, "%s should be here: '%.40s'", wanted, s);
  expect_end_of_line(r, rest);
  h->line = r->line;
}

static int read_index(const ex_reader *r, char **s, const char *what, int64_t most) {
  int64_t index;
  char *word = ex_skip_blanks(*s);
  if (!*word) ex_bad_line(r, "the line ends before the %s", what);
  if (!ex_read_count(s, INT_MAX, &index) || index < 1 || index > most)
    ex_bad_line(r, "%s '%.*s' is not in 1 .. %lld", what, (int)(ex_end_of_word(word) - word) % 40, word,
                (long long)most);
  return (int)index - 1;
}

static entry read_entry(const ex_reader *r, const header *h, char *s) {
  entry e = {.value = 1};
  e.row = read_index(r, &s, "row", h->rows);
  e.col = read_index(r, &s, "column", h->cols);
  if (h->symmetric && e.col > e.row)
    ex_bad_line(r, "entry (%d, %d) is above the diagonal of a symmetric matrix", e.row + 1, e.col + 1);
  if (!h->pattern) {
    if (!*ex_skip_blanks(s)) ex_bad_line(r, "the line ends before the entry's value");
    e.value = ex_read_number(r, &s, "the value");
  }
  expect_end_of_line(r, s);
  return e;
}

/* The next line of data, of which `count` were announced and `seen` were there; NULL at the end of the file.
 */
static char *next_datum(ex_reader *r, const header *h, const char *what, int64_t seen, int64_t count) {
  char *s = ex_next_content(r);
  if (!s && seen < count)
    ex_bad_line(r, "the file ends after %lld of the %lld %s that line %lld announces", (long long)seen,
                (long long)count, what, h->line);
  if (s && seen == count)
    ex_bad_line(r, "more %s than the %lld that line %lld announces", what, (long long)count, h->line);
  return s;
}

static int compare_entries(const void *x, const void *y) {
  const entry *a = x, *b = y;
  if (a->row != b->row) return a->row < b->row ? -1 : 1;
  return (a->col > b->col) - (a->col < b->col);
}

/* Sorts the entries into rows; adds up those at the same place, as finite elements want it. */
static void compress(fr_matrix *a, const char *file, entry *entries, int64_t count) {
  int64_t kept = 0;
  if (count > 0) qsort(entries, (size_t)count, sizeof *entries, compare_entries);
  a->start = ex_zeros((size_t)a->rows + 1, sizeof *a->start);
  a->col = ex_alloc((size_t)count, sizeof *a->col);
  a->value = ex_alloc((size_t)count, sizeof *a->value);
  for (int64_t e = 0; e < count; e++) {
    if (e > 0 && compare_entries(&entries[e], &entries[e - 1]) == 0) {
      a->value[kept - 1] += entries[e].value;
      if (!isfinite(a->value[kept - 1]))
        ex_die(EX_BAD_INPUT, "%s: the sum of the entries (%d, %d) is not finite", file, entries[e].row + 1,
               entries[e].col + 1);
      continue;
    }
    a->start[entries[e].row + 1]++;
    add_entry(a, &kept, entries[e].col, entries[e].value);
  }
  a->added = count - kept;
  for (int i = 0; i < a->rows; i++) a->start[i + 1] += a->start[i];
}

/* Exits with the line if so many rows, columns and entries take too much memory. */
static void check_room(const ex_reader *r, const header *h, int64_t entries, double memory) {
  const double each = sizeof(entry) + sizeof *((fr_matrix *)0)->col + sizeof(double);
  const double bytes = 24.0 * (double)(h->rows + h->cols) + each * (double)entries;
  if (bytes > memory)
    ex_die(EX_FAILED,
           "%s:%lld: %lld rows, %lld columns and the entries up to here need %.1f MB, and may have %.1f: see "
           "--memory",
           r->name, r->line, (long long)h->rows, (long long)h->cols, bytes / 1e6, memory / 1e6);
}

static void read_matrix(fr_matrix *a, const char *file, double memory) {
  ex_reader r;
  header h = {0};
  entry *entries = NULL;
  int64_t count = 0, capacity = 0;
  ex_open(&r, file, "%");
  read_first_line(&r, "coordinate", true, &h);
  read_sizes(&r, true, &h);
  if (h.symmetric && h.rows != h.cols)
    ex_bad_line(&r, "a symmetric matrix of %lld rows and %lld columns", (long long)h.rows, (long long)h.cols);
  if (h.rows == 0 || h.cols == 0)
    ex_bad_line(&r, "%lld rows and %lld columns: least squares need a row and a column", (long long)h.rows,
                (long long)h.cols);
  check_room(&r, &h, 0, memory);
  int64_t seen = 0;
  for (char *s; (s = next_datum(&r, &h, "entries", seen, h.entries)); seen++) {
    if (count + 2 > capacity) {
      capacity = 2 * capacity + 1024;
      check_room(&r, &h, capacity, memory);
      entries = ex_resize(entries, (size_t)capacity, sizeof *entries);
    }
    entry e = read_entry(&r, &h, s);
    entries[count++] = e;
    if (h.symmetric && e.row != e.col) entries[count++] = (entry){e.col, e.row, e.value};
  }
  ex_close(&r);
  a->rows = (int)h.rows, a->cols = (int)h.cols;
  compress(a, file, entries, count);
  scale_matrix(a);
  free(entries);
}

static void read_rhs(fr_matrix *a, const char *file) {
  ex_reader r;
  header h = {0};
  ex_open(&r, file, "%");
  read_first_line(&r, "array", false, &h);
  read_sizes(&r, false, &h);
  if (h.rows != a->rows || h.cols != 1)
    ex_bad_line(&r, "%lld rows and %lld columns; the matrix needs %d rows and 1 column", (long long)h.rows,
                (long long)h.cols, a->rows);
  a->b = ex_alloc((size_t)a->rows, sizeof *a->b);
  int64_t i = 0;
  for (char *s; (s = next_datum(&r, &h, "numbers", i, h.rows)); i++) {
    a->b[i] = ex_read_number(&r, &s, "the value");
    expect_end_of_line(&r, s);
  }
  ex_close(&r);
}

void fr_read_problem(fr_matrix *a, const char *file, const char *rhs, double noise, double memory) {
  *a = (fr_matrix){0};
  read_matrix(a, file, memory);
  snprintf(a->source, sizeof a->source, "%s", file);
  if (rhs) {
    read_rhs(a, rhs);
    scale_rhs(a);
    snprintf(a->meaning, sizeof a->meaning, "right-hand side %s", rhs);
    return;
  }
  a->truth = ex_alloc((size_t)a->cols, sizeof *a->truth);
  for (int j = 0; j < a->cols; j++) a->truth[j] = sin(j + 1);
  make_rhs(a, noise);
  a->exponent_b = a->exponent_a;
  snprintf(a->meaning, sizeof a->meaning, "right-hand side of x(j) = sin j, errors up to %g", noise);
}

void fr_write_vector(const char *file, int n, const double *x) {
  FILE *f = ex_create(file);
  fprintf(f, "%%%%MatrixMarket matrix array real general\n%d 1\n", n);
  for (int j = 0; j < n; j++) fprintf(f, "%.17g\n", x[j]);
  ex_finish(f, file);
}

void fr_free_matrix(fr_matrix *a) {
  free(a->start);
  free(a->col);
  free(a->value);
  free(a->b);
  free(a->truth);
  free(a->name);
}
