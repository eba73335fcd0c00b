/* SPDX-License-Identifier: BSD-3-Clause */
/* Orders of the columns that keep R sparse: SuiteSparse's, and nested dissection of our own, which is there
 * always.
 *
 * Nested dissection (George: Nested dissection of a regular finite element mesh, SIAM J. Numer. Anal. 10,
 * 1973) takes out of the graph of A^T A some columns that part it in two, puts these last, and does the same
 * with the two parts. Its trees are bushy: many fronts on a level, which is what batches want. */
#include "fronts.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const fr_ordering_names[] = {"auto", "natural", "nd", "colamd", "amd", "metis", NULL};

/* --- nested dissection by level sets of the graph (George, Liu: An automatic nested dissection algorithm for
 * irregular finite element problems, SIAM J. Numer. Anal. 15, 1978) */

/* Two columns are neighbours if a row of A has both. */
typedef struct graph {
  const fr_matrix *a;
  int64_t *start; /* column j is in the rows row[start[j]] .. row[start[j + 1] - 1] */
  int *row;
  int *part;            /* the part of the graph that a column is in */
  int *seen, *seen_row; /* the last search that met it */
  int *queue, *level;   /* columns as they were met, and how far they are from the first one */
  int searches, parts;  /* part 0 has been put in order */
  int done;             /* columns that have their place */
} graph;

static void open_graph(graph *g, const fr_matrix *a) {
  const size_t cols = (size_t)a->cols, entries = (size_t)a->start[a->rows];
  *g = (graph){.a = a,
               .start = ex_zeros(cols + 2, sizeof *g->start),
               .row = ex_alloc(entries, sizeof *g->row),
               .part = ex_zeros(cols, sizeof *g->part),
               .seen = ex_zeros(cols, sizeof *g->seen),
               .seen_row = ex_zeros((size_t)a->rows, sizeof *g->seen_row),
               .queue = ex_alloc(cols, sizeof *g->queue),
               .level = ex_alloc(cols, sizeof *g->level)};
  for (int j = 0; j < a->cols; j++) g->part[j] = 1;
  g->parts = 1;
  for (size_t e = 0; e < entries; e++) g->start[a->col[e] + 2]++;
  for (int j = 0; j < a->cols; j++) g->start[j + 2] += g->start[j + 1];
  for (int i = 0; i < a->rows; i++)
    for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) g->row[g->start[a->col[e] + 1]++] = i;
}

static void close_graph(graph *g) {
  free(g->start);
  free(g->row);
  free(g->part);
  free(g->seen);
  free(g->seen_row);
  free(g->queue);
  free(g->level);
}

/* Breadth first from a column, in its part; returns how many columns were met. */
static int search_graph(graph *g, int from) {
  const fr_matrix *a = g->a;
  const int search = ++g->searches, part = g->part[from];
  int met = 0;
  g->queue[met++] = from, g->seen[from] = search, g->level[from] = 0;
  for (int q = 0; q < met; q++) {
    const int j = g->queue[q];
    for (int64_t r = g->start[j]; r < g->start[j + 1]; r++) {
      const int i = g->row[r];
      if (g->seen_row[i] == search) continue;
      g->seen_row[i] = search;
      for (int64_t e = a->start[i]; e < a->start[i + 1]; e++) {
        const int c = a->col[e];
        if (g->part[c] != part || g->seen[c] == search) continue;
        g->queue[met++] = c, g->seen[c] = search, g->level[c] = g->level[j] + 1;
      }
    }
  }
  return met;
}

static bool has_neighbour_on(const graph *g, int j, int level) {
  const fr_matrix *a = g->a;
  for (int64_t r = g->start[j]; r < g->start[j + 1]; r++)
    for (int64_t e = a->start[g->row[r]]; e < a->start[g->row[r] + 1]; e++)
      if (g->part[a->col[e]] == g->part[j] && g->level[a->col[e]] == level) return true;
  return false;
}

/* The level with the fewest columns among those that leave at least a third on each side; 0 if there is none.
 */
static int narrowest_level(const graph *g, int count) {
  int best = 0, width = count;
  for (int begin = 0, end; begin < count; begin = end) {
    const int level = g->level[g->queue[begin]];
    for (end = begin; end < count && g->level[g->queue[end]] == level; end++) continue;
    if (level > 0 && end < count && 3 * end > count && 3 * begin < 2 * count && end - begin < width)
      best = level, width = end - begin;
  }
  return best;
}

/* Puts a connected part's columns, order[0 .. count - 1], into this order: one side, the other side, and the
 * columns of the middle level with a neighbour beyond it. The sides become parts; sets their sizes. */
static void split(graph *g, int *order, int count, int middle, int sides[2]) {
  int *second = ex_alloc((size_t)count, sizeof *second), *between = g->queue, num_between = 0;
  sides[0] = sides[1] = 0;
  for (int i = 0; i < count; i++) {
    const int j = order[i];
    if (g->level[j] == middle && has_neighbour_on(g, j, middle + 1))
      between[num_between++] = j;
    else if (g->level[j] <= middle)
      order[sides[0]++] = j;
    else
      second[sides[1]++] = j;
  }
  memcpy(order + sides[0], second, (size_t)sides[1] * sizeof *second);
  memcpy(order + sides[0] + sides[1], between, (size_t)num_between * sizeof *between);
  free(second);
  for (int i = 0; i < count; i++)
    g->part[order[i]] = i < sides[0] ? g->parts + 1 : i < sides[0] + sides[1] ? g->parts + 2 : 0;
  g->parts += 2;
}

static void dissect(graph *g, int *order, int count);

/* The components of a part that is not connected, one after the other. */
static void dissect_components(graph *g, int *order, int count) {
  const int before = g->searches;
  int *sorted = ex_alloc((size_t)count, sizeof *sorted), met = 0;
  for (int i = 0; i < count; i++) {
    if (g->seen[order[i]] > before) continue;
    const int size = search_graph(g, order[i]);
    memcpy(sorted + met, g->queue, (size_t)size * sizeof *sorted);
    met += size;
  }
  memcpy(order, sorted, (size_t)count * sizeof *order);
  free(sorted);
  for (int begin = 0, end; begin < count; begin = end) {
    const int search = g->seen[order[begin]];
    for (end = begin; end < count && g->seen[order[end]] == search; end++) continue;
    dissect(g, order + begin, end - begin);
  }
}

/* Orders a part's columns, order[0 .. count - 1]; what has no middle level stays as it is. */
static void dissect(graph *g, int *order, int count) {
  while (count > 2) {
    if (search_graph(g, order[0]) < count) {
      dissect_components(g, order, count);
      return;
    }
    /* From the far end, twice: level sets are narrow that begin at an end of the graph. */
    for (int k = 0; k < 2; k++) search_graph(g, g->queue[count - 1]);
    const int middle = narrowest_level(g, count);
    int sides[2];
    if (middle == 0) break;
    split(g, order, count, middle, sides);
    g->done += count - sides[0] - sides[1];
    ex_progress((double)g->done / g->a->cols);
    /* The smaller side by recursion, which is then not deep. */
    int *begin[2] = {order, order + sides[0]};
    const int small = sides[0] > sides[1];
    dissect(g, begin[small], sides[small]);
    order = begin[!small], count = sides[!small];
  }
  g->done += count;
}

/* Columns with an entry in so many rows are neighbours of nearly all, and leave no level to part the graph
 * at: they come last. COLAMD's rule. */
static int put_dense_columns_last(graph *g, int *order) {
  const double most = fmax(16, 10 * sqrt(g->a->rows));
  int sparse = 0, dense = g->a->cols;
  for (int j = g->a->cols - 1; j >= 0; j--)
    if ((double)(g->start[j + 1] - g->start[j]) > most) order[--dense] = j, g->part[j] = 0;
  for (int j = 0; j < g->a->cols; j++)
    if (g->part[j] != 0) order[sparse++] = j;
  return sparse;
}

/* --- SuiteSparse */

#if HAVE_SUITESPARSE
#include <suitesparse/cholmod.h>

/* CHOLMOD orders the rows of F for F F^T; with F = A^T, whose columns are A's rows, these are A's columns. */
static void order_by_cholmod(const fr_matrix *a, fr_ordering ordering, int *order) {
  const size_t entries = (size_t)a->start[a->rows];
  cholmod_common common;
  cholmod_l_start(&common);
  common.print = 0;
  cholmod_sparse *f =
      cholmod_l_allocate_sparse((size_t)a->cols, (size_t)a->rows, entries, 1, 1, 0, CHOLMOD_PATTERN, &common);
  int64_t *start = f ? f->p : NULL, *index = f ? f->i : NULL;
  int64_t *found = ex_alloc((size_t)a->cols, sizeof *found);
  if (!f) ex_die(EX_FAILED, "no memory to order the columns");
  for (int i = 0; i <= a->rows; i++) start[i] = a->start[i];
  for (size_t e = 0; e < entries; e++) index[e] = a->col[e];
  int good = 0;
  if (ordering == FR_COLAMD) good = cholmod_l_colamd(f, NULL, 0, 1, found, &common);
  if (ordering == FR_AMD) good = cholmod_l_amd(f, NULL, 0, found, &common);
  if (ordering == FR_METIS) good = cholmod_l_metis(f, NULL, 0, 1, found, &common);
  if (!good)
    ex_die(EX_FAILED, "the ordering %s failed: CHOLMOD's status %d", fr_ordering_names[ordering],
           common.status);
  for (int j = 0; j < a->cols; j++) order[j] = (int)found[j];
  free(found);
  cholmod_l_free_sparse(&f, &common);
  cholmod_l_finish(&common);
}
#else
static void order_by_cholmod(const fr_matrix *a, fr_ordering ordering, int *order) {
  (void)a, (void)order;
  ex_die(EX_BAD_INPUT, "the ordering %s needs SuiteSparse, which was not there when this program was built",
         fr_ordering_names[ordering]);
}
#endif

/* CHOLMOD's copies of the pattern of A^T A, at most, for those orderings that look at it. */
static double pattern_bytes(const fr_matrix *a) {
  double entries = 0;
  for (int i = 0; i < a->rows; i++)
    entries += (double)(a->start[i + 1] - a->start[i]) * (double)(a->start[i + 1] - a->start[i]);
  return 24 * fmin(entries, (double)a->cols * a->cols);
}

fr_ordering fr_order_columns(const fr_matrix *a, fr_ordering wanted, double memory, int *order) {
  const bool large = pattern_bytes(a) > memory;
  /* On grids, level sets are narrower than what METIS finds. */
  if (wanted == FR_AUTO)
    wanted = !HAVE_SUITESPARSE || a->dimensions ? FR_DISSECTION : large ? FR_COLAMD : FR_METIS;
  if (large && (wanted == FR_AMD || wanted == FR_METIS))
    ex_die(EX_FAILED, "the ordering %s needs up to %.1f MB, and may have %.1f: see --memory and --ordering",
           fr_ordering_names[wanted], pattern_bytes(a) / 1e6, memory / 1e6);
  if (wanted >= FR_COLAMD) {
    order_by_cholmod(a, wanted, order);
    return wanted;
  }
  for (int j = 0; j < a->cols; j++) order[j] = j;
  if (wanted == FR_DISSECTION) {
    graph g;
    open_graph(&g, a);
    dissect(&g, order, put_dense_columns_last(&g, order));
    close_graph(&g);
  }
  return wanted;
}
