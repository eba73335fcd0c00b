/* SPDX-License-Identifier: BSD-3-Clause */
/* What needs no front, and what would make fronts too large.
 *
 * Column singletons: a column with one entry makes its row a row of R as it is, and column and row can go.
 * That may leave other columns with one entry. SuiteSparseQR begins with the same step (Davis: Algorithm 915,
 * ACM TOMS 38, 2011, section 2.1). Their unknowns are solved for at the end.
 *
 * Dense rows: a row couples all columns that it has an entry in, so that one dense row makes R dense. Such a
 * row, f x = b, is cut into p pieces f_1 ... f_p, which p - 1 new unknowns s link (Grcar: Matrix stretching
 * for linear equations, 1990; Adlers, Bjorck: Matrix stretching for sparse least squares problems, Numer.
 * Linear Algebra Appl. 7, 2000):
 *
 *   sqrt(p) (f_i x + g (s_i - s_(i-1))) = sqrt(p) b / p,   i = 1 ... p,   s_0 = s_p = 0.
 *
 * Whatever x is, the best s make all p residuals equal, and their squares' sum is (f x - b)^2. So x and the
 * residual's norm are those of the problem as it was, and the rank is full where it was full, even if the
 * matrix without its dense rows has no full rank. */
#include "fronts.h"

#include <math.h>
#include <stdlib.h>

/* Entries of a piece. */
enum { piece = 32 };

/* --- column singletons */

typedef struct search {
  const fr_matrix *a;
  fr_core *core;
  bool *row_gone, *col_gone;
  int *count;      /* rows that are left with an entry in the column, */
  int64_t *number; /* and the sum of their numbers: of a singleton, its row's number */
  int *queue;      /* columns that have become singletons */
  int queued;
} search;

static void queue_if_singleton(search *s, int col) {
  if (s->count[col] == 1) s->queue[s->queued++] = col;
}

static void open_search(search *s, const fr_matrix *a, fr_core *core) {
  const size_t cols = (size_t)a->cols;
  *s = (search){.a = a,
                .core = core,
                .row_gone = ex_zeros((size_t)a->rows, sizeof *s->row_gone),
                .col_gone = ex_zeros(cols, sizeof *s->col_gone),
                .count = ex_zeros(cols, sizeof *s->count),
                .number = ex_zeros(cols, sizeof *s->number),
                .queue = ex_alloc(cols, sizeof *s->queue)};
  for (int i = 0; i < a->rows; i++)
    for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
      s->count[a->col[e]]++;
      s->number[a->col[e]] += i;
    }
  for (int j = 0; j < a->cols; j++) queue_if_singleton(s, j);
}

static void close_search(search *s) {
  free(s->row_gone);
  free(s->col_gone);
  free(s->count);
  free(s->number);
  free(s->queue);
}

static double entry_at(const fr_matrix *a, int row, int col) {
  for (int64_t e = a->start[row]; e < a->start[row + 1]; e++)
    if (a->col[e] == col) return a->value[e];
  return 0;
}

static void take_singleton(search *s, int row, int col) {
  const fr_matrix *a = s->a;
  fr_core *core = s->core;
  core->pivot[core->singletons++] = (fr_pivot){row, col};
  s->row_gone[row] = s->col_gone[col] = true;
  for (int64_t e = a->start[row]; e < a->start[row + 1]; e++) {
    const int c = a->col[e];
    s->count[c]--;
    s->number[c] -= row;
    if (!s->col_gone[c]) queue_if_singleton(s, c);
  }
}

/* A column whose last entry is no larger than the tolerance is left to the fronts, which find its rank. One
 * column always stays, so that there is a front. */
static void find_singletons(search *s) {
  for (int q = 0; q < s->queued && s->core->singletons < s->a->cols - 1; q++) {
    const int col = s->queue[q], row = (int)s->number[col];
    if (s->count[col] != 1) continue;
    if (fabs(entry_at(s->a, row, col)) > s->core->tolerance) take_singleton(s, row, col);
  }
}

/* --- what is left */

static int num_pieces(int64_t entries) { return (int)((entries + piece - 1) / piece); }

/* Rows with more entries than this are dense, as in COLAMD. Where they are many, R is dense whatever is done,
 * and none counts as such. */
static int64_t find_dense_rows(const search *s, int cols) {
  const fr_matrix *a = s->a;
  const int64_t most = (int64_t)fmax(16, 10 * sqrt(cols));
  int64_t links = 0;
  for (int i = 0; i < a->rows; i++) {
    const int64_t entries = a->start[i + 1] - a->start[i];
    if (s->row_gone[i] || entries <= most) continue;
    s->core->dense_rows++;
    links += num_pieces(entries) - 1;
  }
  s->core->links = links <= cols ? (int)links : 0;
  if (s->core->links == 0) s->core->dense_rows = 0;
  return s->core->dense_rows ? most : INT64_MAX;
}

/* The rows of the core as they come. */
typedef struct writer {
  fr_matrix *to;
  const int *now; /* the core's number of a column of A */
  int64_t next;
  int link; /* the next new column */
} writer;

static void put(writer *w, int col, double value) {
  w->to->col[w->next] = col;
  w->to->value[w->next++] = value;
}

static void end_row(writer *w, double b) {
  w->to->b[w->to->rows] = b;
  w->to->start[++w->to->rows] = w->next;
}

static void copy_row(writer *w, const fr_matrix *a, int row) {
  for (int64_t e = a->start[row]; e < a->start[row + 1]; e++) put(w, w->now[a->col[e]], a->value[e]);
  end_row(w, a->b[row]);
}

/* Links are as large as the row's largest entry: their size changes s alone, and no rounding error. */
static void stretch_row(writer *w, const fr_matrix *a, int row) {
  const int64_t begin = a->start[row], end = a->start[row + 1];
  const int pieces = num_pieces(end - begin);
  const double root = sqrt(pieces);
  double link = 0;
  for (int64_t e = begin; e < end; e++) link = fmax(link, root * fabs(a->value[e]));
  if (link == 0) link = 1;
  for (int p = 0; p < pieces; p++) {
    for (int64_t e = begin + (int64_t)p * piece; e < end && e < begin + (int64_t)(p + 1) * piece; e++)
      put(w, w->now[a->col[e]], root * a->value[e]);
    if (p > 0) put(w, w->link - 1, -link);
    if (p + 1 < pieces) put(w, w->link++, link);
    end_row(w, a->b[row] / root);
  }
}

/* Numbers A's columns that are left, and names the core's columns by A's. */
static int *number_columns(const search *s) {
  const fr_matrix *a = s->a;
  fr_matrix *to = &s->core->matrix;
  int *now = ex_alloc((size_t)a->cols, sizeof *now), left = a->cols - s->core->singletons;
  to->cols = left + s->core->links;
  to->name = ex_zeros((size_t)to->cols, sizeof *to->name);
  left = 0;
  for (int j = 0; j < a->cols; j++) {
    if (s->col_gone[j]) continue;
    to->name[left] = j + 1;
    now[j] = left++;
  }
  return now;
}

static void write_core(const search *s) {
  const fr_matrix *a = s->a;
  fr_core *core = s->core;
  const int left = a->cols - core->singletons;
  const int64_t most = find_dense_rows(s, left);
  const size_t rows = (size_t)(a->rows - core->singletons + core->links);
  const size_t entries = (size_t)(a->start[a->rows] + 2 * core->links);
  fr_matrix *to = &core->matrix;
  snprintf(to->source, sizeof to->source, "%s", a->source);
  to->dimensions = a->dimensions;
  to->start = ex_zeros(rows + 1, sizeof *to->start);
  to->col = ex_alloc(entries, sizeof *to->col);
  to->value = ex_alloc(entries, sizeof *to->value);
  to->b = ex_alloc(rows, sizeof *to->b);
  int *now = number_columns(s);
  writer w = {.to = to, .now = now, .link = left};
  for (int i = 0; i < a->rows; i++) {
    if (s->row_gone[i]) continue;
    (a->start[i + 1] - a->start[i] > most ? stretch_row : copy_row)(&w, a, i);
  }
  free(now);
}

void fr_reduce(const fr_matrix *a, double tolerance, fr_core *core) {
  search s;
  *core = (fr_core){.tolerance = tolerance, .pivot = ex_alloc((size_t)a->cols, sizeof *core->pivot)};
  open_search(&s, a, core);
  find_singletons(&s);
  write_core(&s);
  close_search(&s);
}

/* The singletons' rows of R, the last one first. */
void fr_expand(const fr_matrix *a, const fr_core *core, const double *y, double *x) {
  for (int j = 0; j < core->matrix.cols; j++)
    if (core->matrix.name[j]) x[core->matrix.name[j] - 1] = y[j];
  for (int k = core->singletons - 1; k >= 0; k--) {
    const fr_pivot p = core->pivot[k];
    double sum = a->b[p.row], diagonal = 1;
    for (int64_t e = a->start[p.row]; e < a->start[p.row + 1]; e++)
      if (a->col[e] == p.col)
        diagonal = a->value[e];
      else
        sum -= a->value[e] * x[a->col[e]];
    x[p.col] = sum / diagonal;
  }
}

void fr_free_core(fr_core *core) {
  fr_free_matrix(&core->matrix);
  free(core->pivot);
}
