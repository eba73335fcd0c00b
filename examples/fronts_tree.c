/* SPDX-License-Identifier: BSD-3-Clause */
/* The symbolic analysis: which columns each row of R has, without looking at a number.
 *
 * R has the pattern of the Cholesky factor of A^T A, and a row of A is a clique of it. So row j of R has the
 * columns of all rows of A whose first column is j, and those of its children, the rows of R whose first
 * column beside the diagonal is j: that is the column elimination tree (Gilbert, Ng: Predicting structure in
 * nonsymmetric matrix factorizations, 1993; Davis: Direct Methods for Sparse Linear Systems, 2006, chapters 4
 * and 5). Rows of R with the same columns are gathered in a front (Duff, Reid: The multifrontal solution of
 * indefinite sparse symmetric linear equations, ACM TOMS 9, 1983), and so are those with nearly the same: a
 * few zeros cost less than many tiny matrices. */
#include "fronts.h"

#include <stdlib.h>
#include <string.h>

/* While the tree grows. A column is named by its place in the order of elimination. */
typedef struct builder {
  const fr_matrix *a;
  int *place_of; /* where a column of A is eliminated */
  int *rows;     /* A's rows by their first column: */
  int *rows_at;  /* those of column j are rows[rows_at[j]] .. rows[rows_at[j + 1] - 1] */

  /* R's rows. */
  int **list, *length; /* a row's columns beside the diagonal; NULL where the front's last row has them too */
  int *up;             /* the parent in the column elimination tree; -1 at a root */
  int *oldest, *next;  /* children: lists that end with -1 */
  int *mark;           /* the last row that the column was put into */

  /* Fronts; children come before their parents. */
  int count;
  int *front_of;      /* a column's */
  int *pivots, *last; /* how many, and the last one */
  int *parent, *into; /* into: the front that it was merged into, or -1 */
  int *rows_in;       /* its rows */
  int64_t *zeros;     /* entries of its rows of R that are zero */
  int *number;        /* its place among those that are left, level by level */
} builder;

static int *new_ints(int n, int value) {
  int *ints = ex_alloc((size_t)n, sizeof *ints);
  for (int i = 0; i < n; i++) ints[i] = value;
  return ints;
}

/* --- the columns of R's rows */

static int first_column(const builder *b, int row) {
  int first = b->a->cols;
  for (int64_t e = b->a->start[row]; e < b->a->start[row + 1]; e++)
    if (b->place_of[b->a->col[e]] < first) first = b->place_of[b->a->col[e]];
  return first;
}

/* Rows without an entry come last. */
static void sort_rows(builder *b) {
  const int rows = b->a->rows, cols = b->a->cols;
  int *first = new_ints(rows, 0);
  b->rows = new_ints(rows, 0);
  b->rows_at = new_ints(cols + 2, 0);
  for (int i = 0; i < rows; i++) {
    first[i] = first_column(b, i);
    b->rows_at[first[i] + 1]++;
  }
  for (int j = 0; j <= cols; j++) b->rows_at[j + 1] += b->rows_at[j];
  int *at = new_ints(cols + 1, 0);
  for (int i = 0; i < rows; i++) b->rows[b->rows_at[first[i]] + at[first[i]]++] = i;
  free(at);
  free(first);
}

static void add_column(builder *b, int j, int col, int *capacity) {
  if (b->mark[col] == j) return;
  b->mark[col] = j;
  if (b->length[j] == *capacity) {
    *capacity = 2 * *capacity + 16;
    b->list[j] = ex_resize(b->list[j], (size_t)*capacity, sizeof(int));
  }
  b->list[j][b->length[j]++] = col;
}

static void make_list(builder *b, int j) {
  const fr_matrix *a = b->a;
  int capacity = 0;
  b->mark[j] = j;
  for (int child = b->oldest[j]; child >= 0; child = b->next[child])
    for (int i = 0; i < b->length[child]; i++) add_column(b, j, b->list[child][i], &capacity);
  for (int r = b->rows_at[j]; r < b->rows_at[j + 1]; r++)
    for (int64_t e = a->start[b->rows[r]]; e < a->start[b->rows[r] + 1]; e++)
      add_column(b, j, b->place_of[a->col[e]], &capacity);
}

/* An only child with the columns of j, and j, is in the same front. */
static void add_to_front(builder *b, int j) {
  const int child = b->oldest[j];
  const bool same = child >= 0 && b->next[child] < 0 && b->length[child] == b->length[j] + 1;
  if (same) {
    free(b->list[child]);
    b->list[child] = NULL;
  }
  const int f = b->front_of[j] = same ? b->front_of[child] : b->count++;
  b->pivots[f]++;
  b->last[f] = j;
}

static void hang_below_parent(builder *b, int j) {
  int parent = b->a->cols;
  for (int i = 0; i < b->length[j]; i++)
    if (b->list[j][i] < parent) parent = b->list[j][i];
  if (parent == b->a->cols) return;
  b->next[j] = b->oldest[parent];
  b->oldest[parent] = j;
  b->up[j] = parent;
}

/* R only grows when fronts are merged. */
static void check_room(double entries, double memory) {
  if (8 * entries > memory)
    ex_die(EX_FAILED,
           "the factorization needs %.1f MB and more, and may have %.1f: see --memory and --ordering",
           8e-6 * entries, memory / 1e6);
}

static void grow(builder *b, double memory) {
  const int n = b->a->cols;
  double entries = 0;
  b->list = ex_zeros((size_t)n, sizeof *b->list);
  b->length = new_ints(n, 0);
  b->up = new_ints(n, -1);
  b->oldest = new_ints(n, -1);
  b->next = new_ints(n, -1);
  b->mark = new_ints(n, -1);
  b->front_of = new_ints(n, -1);
  b->pivots = new_ints(n, 0);
  b->last = new_ints(n, -1);
  b->parent = new_ints(n, -1);
  for (int j = 0; j < n; j++) {
    make_list(b, j);
    add_to_front(b, j);
    hang_below_parent(b, j);
    check_room(entries += b->length[j] + 2, memory);
    if (j % 4096 == 0) ex_progress((double)j / n);
  }
  for (int f = 0; f < b->count; f++)
    if (b->up[b->last[f]] >= 0) b->parent[f] = b->front_of[b->up[b->last[f]]];
}

/* --- fronts that are nearly alike become one */

/* LAPACK Working Note 41. */
static double qr_flops(double m, double n) {
  const double k = m < n ? m : n;
  return 4 * m * n * k - 2 * (m + n) * k * k + 4 * k * k * k / 3;
}

/* Entries of k rows of R, the first with n columns. */
static int64_t trapezoid(int64_t k, int64_t n) { return k * n - k * (k - 1) / 2; }

static int smaller(int a, int b) { return a < b ? a : b; }

/* Of a front with m rows and k pivots: its columns, without b; the rows that it passes on; its factorization.
 */
static int width(const builder *b, int f) { return b->pivots[f] + b->length[b->last[f]]; }

static int passed(const builder *b, int f) {
  const int left = smaller(b->rows_in[f], width(b, f)) - b->pivots[f];
  return left > 0 ? left : 0;
}

static double flops(const builder *b, int f) { return qr_flops(b->rows_in[f], width(b, f) + 1); }

/* Front f's columns beside its pivots are its parent p's too. So if they are merged, p gets f's pivots and no
 * other column. It gets f's rows instead of those that f would pass on. */
static void merge_if_cheaper(builder *b, int f, int p, double overhead) {
  const int pivots = b->pivots[p], rows = b->rows_in[p];
  const double apart = flops(b, f) + flops(b, p) + overhead;
  const int64_t entries = trapezoid(b->pivots[f], width(b, f)) + trapezoid(pivots, width(b, p));
  b->pivots[p] += b->pivots[f];
  b->rows_in[p] += b->rows_in[f] - passed(b, f);
  if (flops(b, p) > apart) {
    b->pivots[p] = pivots, b->rows_in[p] = rows;
    return;
  }
  b->zeros[p] += b->zeros[f] + trapezoid(b->pivots[p], width(b, p)) - entries;
  b->into[f] = p;
}

/* The children of a front are done before it. */
static void merge_fronts(builder *b, double overhead) {
  int *oldest = new_ints(b->count, -1), *next = new_ints(b->count, -1);
  b->zeros = ex_zeros((size_t)b->count, sizeof *b->zeros);
  b->into = new_ints(b->count, -1);
  b->rows_in = new_ints(b->count, 0);
  for (int j = 0; j < b->a->cols; j++) b->rows_in[b->front_of[j]] += b->rows_at[j + 1] - b->rows_at[j];
  for (int p = 0; p < b->count; p++) {
    for (int f = oldest[p]; f >= 0; f = next[f]) b->rows_in[p] += passed(b, f);
    for (int f = oldest[p]; f >= 0; f = next[f]) merge_if_cheaper(b, f, p, overhead);
    if (b->parent[p] < 0) continue;
    next[p] = oldest[b->parent[p]];
    oldest[b->parent[p]] = p;
  }
  free(oldest);
  free(next);
}

static int merged(const builder *b, int f) {
  while (b->into[f] >= 0) f = b->into[f];
  return f;
}

/* --- levels */

typedef struct front_key {
  int front, depth, cols;
} front_key;

/* Large ones first, for the sake of processors that would wait for a large one that begins late. */
static int compare_fronts(const void *x, const void *y) {
  const front_key *a = x, *b = y;
  if (a->depth != b->depth) return a->depth > b->depth ? -1 : 1;
  if (a->cols != b->cols) return a->cols > b->cols ? -1 : 1;
  return (a->front > b->front) - (a->front < b->front);
}

static void make_levels(builder *b, fr_tree *t) {
  front_key *keys = ex_alloc((size_t)b->count, sizeof *keys);
  int *depth = new_ints(b->count, 0);
  for (int f = b->count - 1; f >= 0; f--) {
    if (b->into[f] >= 0) continue;
    if (b->parent[f] >= 0) depth[f] = depth[merged(b, b->parent[f])] + 1;
    keys[t->count++] = (front_key){f, depth[f], width(b, f)};
  }
  qsort(keys, (size_t)t->count, sizeof *keys, compare_fronts);
  t->num_levels = keys[0].depth + 1;
  t->levels = ex_zeros((size_t)t->num_levels, sizeof *t->levels);
  t->fronts = ex_zeros((size_t)t->count, sizeof *t->fronts);
  b->number = new_ints(b->count, -1);
  for (int i = 0; i < t->count; i++) {
    fr_level *level = &t->levels[keys[0].depth - keys[i].depth];
    const int f = keys[i].front;
    if (level->end == 0) level->begin = i, level->most_cols = keys[i].cols;
    level->end = i + 1;
    b->number[f] = i;
    t->fronts[i] = (fr_front){.n = keys[i].cols, .k = b->pivots[f], .parent = f};
    t->zeros += b->zeros[f];
  }
  for (int i = 0; i < t->count; i++) {
    const int p = b->parent[t->fronts[i].parent];
    t->fronts[i].parent = p < 0 ? -1 : b->number[merged(b, p)];
  }
  free(depth);
  free(keys);
}

/* --- the columns, in the order of the fronts */

static int compare_ints(const void *x, const void *y) {
  const int a = *(const int *)x, b = *(const int *)y;
  return (a > b) - (a < b);
}

/* Sets t->order, and returns where each of the builder's columns is in it: the fronts' pivots follow each
 * other.
 */
static int *renumber(const builder *b, const int *order, fr_tree *t) {
  const int n = b->a->cols;
  int *now = new_ints(n, 0), *used = new_ints(t->count, 0), next = 0;
  t->order = new_ints(n, 0);
  for (int i = 0; i < t->count; i++) {
    t->fronts[i].first = next;
    next += t->fronts[i].k;
  }
  for (int j = 0; j < n; j++) {
    const int i = b->number[merged(b, b->front_of[j])];
    now[j] = t->fronts[i].first + used[i]++;
    t->order[now[j]] = order[j];
  }
  free(used);
  return now;
}

static void copy_rests(const builder *b, const int *now, fr_tree *t) {
  for (int i = 0; i < t->count; i++) {
    t->fronts[i].rest_at = t->rest_size;
    t->rest_size += t->fronts[i].n - t->fronts[i].k;
  }
  t->rest = ex_alloc((size_t)t->rest_size, sizeof *t->rest);
  for (int f = 0; f < b->count; f++) {
    if (b->into[f] >= 0) continue;
    const int *list = b->list[b->last[f]], length = b->length[b->last[f]];
    int *rest = t->rest + t->fronts[b->number[f]].rest_at;
    for (int c = 0; c < length; c++) rest[c] = now[list[c]];
    if (length > 0) qsort(rest, (size_t)length, sizeof *rest, compare_ints);
  }
}

/* Where a column is among those of a front, which has it; its place is not before rest[*hint]. */
static int place_in_front(const fr_tree *t, const fr_front *f, int col, int *hint) {
  if (col < f->first + f->k) return col - f->first;
  const int *rest = t->rest + f->rest_at;
  while (rest[*hint] != col) ++*hint;
  return f->k + *hint;
}

static void place_rests(fr_tree *t) {
  t->place = ex_alloc((size_t)t->rest_size, sizeof *t->place);
#pragma omp parallel for schedule(dynamic, 64)
  for (int i = 0; i < t->count; i++) {
    const fr_front *f = &t->fronts[i];
    for (int c = 0, hint = 0; c < f->n - f->k; c++)
      t->place[f->rest_at + c] = place_in_front(t, &t->fronts[f->parent], t->rest[f->rest_at + c], &hint);
  }
}

/* --- the rows */

/* Gathers A's rows by the front that they begin in, and sets where their entries are there. */
static void place_rows(const builder *b, const int *now, fr_tree *t) {
  const fr_matrix *a = b->a;
  t->num_rows = b->rows_at[a->cols];
  t->row = new_ints(t->num_rows, 0);
  t->start = ex_zeros((size_t)t->num_rows + 1, sizeof *t->start);
  t->col = ex_alloc((size_t)a->start[a->rows], sizeof *t->col);
  for (int j = 0; j < a->cols; j++)
    t->fronts[b->number[merged(b, b->front_of[j])]].own += b->rows_at[j + 1] - b->rows_at[j];
  int64_t next = 0;
  for (int i = 0; i < t->count; i++) {
    t->fronts[i].own_at = next;
    next += t->fronts[i].own;
    t->fronts[i].own = 0;
  }
  for (int j = 0; j < a->cols; j++) {
    fr_front *f = &t->fronts[b->number[merged(b, b->front_of[j])]];
    for (int r = b->rows_at[j]; r < b->rows_at[j + 1]; r++) t->row[f->own_at + f->own++] = b->rows[r];
  }
  for (int r = 0; r < t->num_rows; r++)
    t->start[r + 1] = t->start[r] + a->start[t->row[r] + 1] - a->start[t->row[r]];
#pragma omp parallel for schedule(dynamic, 64)
  for (int i = 0; i < t->count; i++) {
    const fr_front *f = &t->fronts[i];
    for (int64_t r = f->own_at; r < f->own_at + f->own; r++)
      for (int64_t e = 0; e < t->start[r + 1] - t->start[r]; e++) {
        int hint = 0, col = now[b->place_of[a->col[a->start[t->row[r]] + e]]];
        t->col[t->start[r] + e] = place_in_front(t, f, col, &hint);
      }
  }
}

/* --- sizes */

void fr_size_level(fr_tree *t, int l) {
  fr_level *level = &t->levels[l];
  t->flops -= level->flops;
  level->size = level->tau_size = 0;
  level->flops = 0;
  for (int i = level->begin; i < level->end; i++) t->fronts[i].m = t->fronts[i].own;
  for (int i = l > 0 ? level[-1].begin : level->begin; i < level->begin; i++) {
    fr_front *child = &t->fronts[i];
    child->row = t->fronts[child->parent].m;
    t->fronts[child->parent].m += child->passed;
  }
  for (int i = level->begin; i < level->end; i++) {
    fr_front *f = &t->fronts[i];
    f->front_at = level->size;
    f->tau_at = level->tau_size;
    level->size += (int64_t)f->m * (f->n + 1);
    level->tau_size += smaller(f->m, f->n + 1);
    level->flops += qr_flops(f->m, f->n + 1);
  }
  t->flops += level->flops;
}

void fr_set_rank(fr_front *f, int rank) {
  f->rank = rank;
  f->passed = smaller(f->m - rank, f->n - f->k);
}

/* As they are where no column depends on others. */
static void set_sizes(fr_tree *t) {
  for (int l = 0; l < t->num_levels; l++) {
    fr_size_level(t, l);
    for (int i = t->levels[l].begin; i < t->levels[l].end; i++) {
      fr_front *f = &t->fronts[i];
      fr_set_rank(f, smaller(f->m, f->k));
      f->r_at = t->r_size;
      t->r_size += (int64_t)f->k * (f->n + 1);
    }
  }
}

static void free_builder(builder *b) {
  for (int j = 0; j < b->a->cols; j++) free(b->list[j]);
  int *ints[] = {b->place_of, b->rows,   b->rows_at, b->length, b->up,   b->oldest,  b->next,  b->mark,
                 b->front_of, b->pivots, b->last,    b->parent, b->into, b->rows_in, b->number};
  for (size_t i = 0; i < sizeof ints / sizeof *ints; i++) free(ints[i]);
  free(b->list);
  free(b->zeros);
}

void fr_build_tree(const fr_matrix *a, const int *order, double overhead, double memory, fr_tree *tree) {
  builder b = {.a = a, .place_of = new_ints(a->cols, 0)};
  *tree = (fr_tree){0};
  for (int p = 0; p < a->cols; p++) b.place_of[order[p]] = p;
  sort_rows(&b);
  grow(&b, memory);
  merge_fronts(&b, overhead);
  make_levels(&b, tree);
  int *now = renumber(&b, order, tree);
  copy_rests(&b, now, tree);
  place_rests(tree);
  place_rows(&b, now, tree);
  set_sizes(tree);
  free(now);
  free_builder(&b);
}

double fr_bytes(const fr_matrix *a, const fr_tree *t) {
  int64_t fronts[2] = {0}, tau = 0;
  for (int l = 0; l < t->num_levels; l++) {
    if (t->levels[l].size > fronts[l % 2]) fronts[l % 2] = t->levels[l].size;
    if (t->levels[l].tau_size > tau) tau = t->levels[l].tau_size;
  }
  const double entries = (double)a->start[a->rows];
  return 8.0 * (double)(fronts[0] + fronts[1] + t->r_size + tau) + 12 * entries + 16.0 * a->rows +
         4.0 * ((double)t->rest_size + a->cols) + (double)t->count * (sizeof(fr_front) + 60);
}

void fr_free_tree(fr_tree *t) {
  free(t->fronts);
  free(t->levels);
  free(t->order);
  free(t->rest);
  free(t->place);
  free(t->row);
  free(t->start);
  free(t->col);
}
