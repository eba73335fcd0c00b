/* SPDX-License-Identifier: BSD-3-Clause */
/* Clusters of points, nearest neighbours, and the partition of the matrix into blocks (Hackbusch:
 * Hierarchical Matrices, 2015, chapter 5). */
#include "hmatrix.h"

#include <math.h>
#include <stdlib.h>

static void swap(double *a, int i, int j) {
  double t = a[i];
  a[i] = a[j], a[j] = t;
}

/* Points i of begin .. end - 1 with a coordinate below the middle of the box come first; returns the first of
 * the others. The box is tight and not a point, so both parts have points. */
static int bisect(hm_points *points, const hm_cluster *c) {
  double *axes[3] = {points->x, points->y, points->z};
  int longest = 0;
  for (int d = 1; d < 3; d++)
    if (c->hi[d] - c->lo[d] > c->hi[longest] - c->lo[longest]) longest = d;
  const double *key = axes[longest];
  double middle = c->lo[longest] + 0.5 * (c->hi[longest] - c->lo[longest]);
  if (!(middle > c->lo[longest])) middle = c->hi[longest];
  int i = c->begin, j = c->end - 1;
  for (;;) {
    while (key[i] < middle) i++;
    while (!(key[j] < middle)) j--;
    if (i > j) return i;
    for (int d = 0; d < 3; d++) swap(axes[d], i, j);
  }
}

static int new_cluster(hm_tree *tree, const hm_points *points, int begin, int end) {
  if (tree->count == tree->capacity) {
    tree->capacity = tree->capacity ? 2 * tree->capacity : 256;
    tree->clusters = realloc(tree->clusters, (size_t)tree->capacity * sizeof *tree->clusters);
    if (!tree->clusters) ex_die(EX_FAILED, "no memory for %d clusters", tree->capacity);
  }
  const double *axes[3] = {points->x, points->y, points->z};
  hm_cluster *c = &tree->clusters[tree->count];
  *c = (hm_cluster){.begin = begin, .end = end, .child = {-1, -1}};
  for (int d = 0; d < 3; d++) {
    c->lo[d] = c->hi[d] = axes[d][begin];
    for (int i = begin + 1; i < end; i++)
      c->lo[d] = fmin(c->lo[d], axes[d][i]), c->hi[d] = fmax(c->hi[d], axes[d][i]);
  }
  return tree->count++;
}

/* Distinct points with 1e-12 of the diagonal between most of them: the depth stays near 3 log2(1e12) at
 * worst. */
static int grow(hm_tree *tree, hm_points *points, int begin, int end, int leaf, int depth) {
  int self = new_cluster(tree, points, begin, end);
  if (depth > tree->depth) tree->depth = depth;
  if (end - begin <= leaf) return self;
  int middle = bisect(points, &tree->clusters[self]);
  int first = grow(tree, points, begin, middle, leaf, depth + 1);
  int second = grow(tree, points, middle, end, leaf, depth + 1);
  tree->clusters[self].child[0] = first, tree->clusters[self].child[1] = second;
  return self;
}

void hm_build_tree(hm_tree *tree, hm_points *points, int leaf) {
  *tree = (hm_tree){0};
  grow(tree, points, 0, points->n, leaf, 0);
}

/* --- self terms */

static double gap(double lo, double hi, double lo2, double hi2) { return fmax(0, fmax(lo2 - hi, lo - hi2)); }

/* Square of the distance of two boxes. */
static double box_distance2(const double *lo, const double *hi, const double *lo2, const double *hi2) {
  double sum = 0;
  for (int d = 0; d < 3; d++) {
    double g = gap(lo[d], hi[d], lo2[d], hi2[d]);
    sum += g * g;
  }
  return sum;
}

/* The smaller of `best` and the square of the distance of point i to the nearest other point in the cluster.
 */
static double nearest2(const hm_tree *tree, const hm_points *points, int cluster, int i, double best) {
  const hm_cluster *c = &tree->clusters[cluster];
  const double p[3] = {points->x[i], points->y[i], points->z[i]};
  if (box_distance2(p, p, c->lo, c->hi) >= best) return best;
  if (c->child[0] < 0) {
    for (int j = c->begin; j < c->end; j++) {
      double dx = p[0] - points->x[j], dy = p[1] - points->y[j], dz = p[2] - points->z[j];
      if (j != i) best = fmin(best, dx * dx + dy * dy + dz * dz);
    }
    return best;
  }
  int near = i >= tree->clusters[c->child[1]].begin; /* sound for points outside, and best for those inside */
  best = nearest2(tree, points, c->child[near], i, best);
  return nearest2(tree, points, c->child[!near], i, best);
}

void hm_set_self_terms(const hm_tree *tree, hm_points *points) {
  const double pi = 3.14159265358979323846;
  points->self = ex_alloc((size_t)points->n, sizeof *points->self);
#pragma omp parallel for schedule(dynamic, 256)
  for (int i = 0; i < points->n; i++) {
    double radius = 0.5 * sqrt(nearest2(tree, points, 0, i, INFINITY));
    points->self[i] = 1 / (2 * pi * radius);
  }
}

/* --- blocks */

void hm_push_block(hm_blocks *list, hm_block block) {
  if (list->count == list->capacity) {
    list->capacity = list->capacity ? 2 * list->capacity : 1024;
    list->blocks = realloc(list->blocks, (size_t)list->capacity * sizeof *list->blocks);
    if (!list->blocks) ex_die(EX_FAILED, "no memory for %lld blocks", (long long)list->capacity);
  }
  list->blocks[list->count++] = block;
}

void hm_own(hm_blocks *list, double *memory) {
  list->owned = realloc(list->owned, (size_t)(list->num_owned + 1) * sizeof *list->owned);
  if (!list->owned) ex_die(EX_FAILED, "no memory for %d addresses", list->num_owned + 1);
  list->owned[list->num_owned++] = memory;
}

void hm_free_blocks(hm_blocks *list) {
  for (int i = 0; i < list->num_owned; i++) free(list->owned[i]);
  free(list->owned);
  free(list->blocks);
}

static double diameter(const hm_cluster *c) {
  return sqrt(pow(c->hi[0] - c->lo[0], 2) + pow(c->hi[1] - c->lo[1], 2) + pow(c->hi[2] - c->lo[2], 2));
}

/* The pair (r, c), c before r or the same. */
static void split(const hm_tree *tree, double eta, int r, int c, hm_blocks *admissible, hm_blocks *near) {
  const hm_cluster *row = &tree->clusters[r], *col = &tree->clusters[c];
  hm_block block = {
      .row = row->begin, .m = row->end - row->begin, .col = col->begin, .n = col->end - col->begin};
  bool row_leaf = row->child[0] < 0, col_leaf = col->child[0] < 0;
  double distance = sqrt(box_distance2(row->lo, row->hi, col->lo, col->hi));
  if (distance > 0 && fmin(diameter(row), diameter(col)) <= eta * distance) {
    hm_push_block(admissible, block);
  } else if (row_leaf && col_leaf) {
    hm_push_block(near, block);
  } else {
    for (int i = 0; i < (row_leaf ? 1 : 2); i++)
      for (int j = 0; j < (col_leaf ? 1 : 2); j++)
        if (r != c || i >= j)
          split(tree, eta, row_leaf ? r : row->child[i], col_leaf ? c : col->child[j], admissible, near);
  }
}

void hm_build_blocks(const hm_tree *tree, double eta, hm_blocks *admissible, hm_blocks *near) {
  split(tree, eta, 0, 0, admissible, near);
}
