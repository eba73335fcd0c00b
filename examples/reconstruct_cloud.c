/* SPDX-License-Identifier: BSD-3-Clause */
/* Scattered points, their neighbours by a grid of cells, and the fields. */
#include "reconstruct.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double turn = 6.283185307179586;

/* --- points */

static double fraction(double x) { return x - floor(x); }

/* In (0, 1), a function of i alone. */
static double noise(uint64_t i) {
  i = (i + 1) * 0x9e3779b97f4a7c15u;
  i = (i ^ (i >> 30)) * 0xbf58476d1ce4e5b9u;
  i = (i ^ (i >> 27)) * 0x94d049bb133111ebu;
  return ((double)((i ^ (i >> 31)) >> 11) + 0.5) * 0x1p-53;
}

/* A sequence that fills the cube evenly (Roberts: The unreasonable effectiveness of quasirandom sequences,
 * 2018), shaken; then squeezed towards some planes, so that the numbers of neighbours differ. */
static void scatter(double *position, int n) {
  const double g = 1.2207440846057596, shake = 0.4 / cbrt(n), squeeze = 0.12;
  for (int i = 0; i < n; i++)
    for (int d = 0; d < 3; d++) {
      double even = fraction(0.5 + (i + 1) * pow(g, -(d + 1)));
      double u = even + shake * (noise(3 * (uint64_t)i + (uint64_t)d) - 0.5);
      position[3 * (int64_t)i + d] = fraction(u + squeeze * sin(turn * u) / turn * (d + 1.0));
    }
}

/* --- neighbours */

/* Cells of at least the radius that is looked through; points are sorted by cell. */
typedef struct cells {
  int along; /* each axis */
  int *begin;
} cells;

static int cell_of(const cells *c, const double x[3]) {
  int at = 0;
  for (int d = 0; d < 3; d++) {
    int k = (int)(x[d] * c->along);
    at = at * c->along + (k < c->along ? k : c->along - 1);
  }
  return at;
}

/* Sorts the points, so that neighbours lie near each other in memory. */
static cells sort_into_cells(double *position, int n, double radius) {
  cells c = {.along = radius < 0.25 ? (int)(1 / radius) : 1};
  int count = c.along * c.along * c.along;
  c.begin = ex_zeros((size_t)count + 1, sizeof *c.begin);
  double *old = ex_alloc((size_t)n, 3 * sizeof *old);
  memcpy(old, position, (size_t)n * 3 * sizeof *old);
  for (int i = 0; i < n; i++) c.begin[cell_of(&c, old + 3 * (int64_t)i) + 1]++;
  for (int k = 0; k < count; k++) c.begin[k + 1] += c.begin[k];
  int *next = ex_alloc((size_t)count, sizeof *next);
  memcpy(next, c.begin, (size_t)count * sizeof *next);
  for (int i = 0; i < n; i++)
    memcpy(position + 3 * (int64_t)next[cell_of(&c, old + 3 * (int64_t)i)]++, old + 3 * (int64_t)i,
           3 * sizeof *old);
  free(next);
  free(old);
  return c;
}

typedef struct candidate {
  double far; /* squared distance */
  int point;
} candidate;

static int compare_candidates(const void *x, const void *y) {
  const candidate *a = x, *b = y;
  if (a->far != b->far) return a->far < b->far ? -1 : 1;
  return (a->point > b->point) - (a->point < b->point);
}

static int collect_cell(const double *position, const cells *c, int cell, int i, candidate *to) {
  int count = 0;
  for (int j = c->begin[cell]; j < c->begin[cell + 1]; j++) {
    double far = 0;
    for (int d = 0; d < 3; d++) {
      double apart = position[3 * (int64_t)j + d] - position[3 * (int64_t)i + d];
      far += (apart - rint(apart)) * (apart - rint(apart));
    }
    if (j != i) to[count++] = (candidate){far, j};
  }
  return count;
}

/* All points of the cells around point i's. */
static int collect(const double *position, const cells *c, int i, candidate *to) {
  int reach = c->along > 1 ? 1 : 0, count = 0, home[3], rest = cell_of(c, position + 3 * (int64_t)i);
  for (int d = 2; d >= 0; d--, rest /= c->along) home[d] = rest % c->along;
  for (int x = -reach; x <= reach; x++)
    for (int y = -reach; y <= reach; y++)
      for (int z = -reach; z <= reach; z++) {
        int at[3] = {home[0] + x, home[1] + y, home[2] + z}, cell = 0;
        for (int d = 0; d < 3; d++) cell = cell * c->along + (at[d] + c->along) % c->along;
        count += collect_cell(position, c, cell, i, to + count);
      }
  return count;
}

/* The points within the radius come first; without enough of them, or with too many, the nearest. */
static int choose(candidate *all, int count, double radius) {
  int near = 0;
  for (int k = 0; k < count; k++)
    if (all[k].far < radius * radius) {
      candidate swapped = all[near];
      all[near++] = all[k];
      all[k] = swapped;
    }
  if (near >= RC_LEAST_NEIGHBOURS && near <= RC_MOST_NEIGHBOURS) return near;
  qsort(all, (size_t)count, sizeof *all, compare_candidates);
  return near < RC_LEAST_NEIGHBOURS ? RC_LEAST_NEIGHBOURS : RC_MOST_NEIGHBOURS;
}

static void find_neighbours(rc_cloud *c, const cells *cells, double radius, int most) {
  int n = c->n, *counts = ex_zeros((size_t)n + 1, sizeof *counts);
  int *found = ex_alloc((size_t)n, RC_MOST_NEIGHBOURS * sizeof *found);
  double *scale = ex_alloc((size_t)n, sizeof *scale);
#pragma omp parallel
  {
    candidate *all = ex_alloc((size_t)most, sizeof *all);
#pragma omp for schedule(dynamic, 256)
    for (int i = 0; i < n; i++) {
      int chosen = choose(all, collect(c->position, cells, i, all), radius);
      double farthest = 0;
      for (int k = 0; k < chosen; k++) {
        found[(int64_t)RC_MOST_NEIGHBOURS * i + k] = all[k].point;
        farthest = fmax(farthest, all[k].far);
      }
      while (chosen % RC_EVEN > 0) found[(int64_t)RC_MOST_NEIGHBOURS * i + chosen++] = i;
      counts[i + 1] = chosen;
      scale[i] = 1 / sqrt(farthest);
    }
    free(all);
  }
  for (int i = 0; i < n; i++) counts[i + 1] += counts[i];
  int *point = ex_alloc((size_t)counts[n], sizeof *point);
  int *neighbour = ex_alloc((size_t)counts[n], sizeof *neighbour);
  for (int i = 0; i < n; i++) {
    const int *of_point = found + (int64_t)RC_MOST_NEIGHBOURS * i;
    for (int e = counts[i]; e < counts[i + 1]; e++) {
      point[e] = i;
      neighbour[e] = of_point[e - counts[i]];
    }
  }
  free(found);
  c->first = counts;
  c->point = point;
  c->neighbour = neighbour;
  c->scale = scale;
}

static int most_in_27_cells(const cells *c, int n) {
  int count = c->along * c->along * c->along, most = 0;
  for (int k = 0; k < count; k++)
    if (c->begin[k + 1] - c->begin[k] > most) most = c->begin[k + 1] - c->begin[k];
  return c->along == 1 || most > n / 27 ? n : 27 * most;
}

rc_cloud rc_new_cloud(int n, int fields) {
  const double usual = 36; /* neighbours */
  rc_cloud c = {.n = n, .fields = fields};
  double radius = cbrt(usual * 3 / (2 * turn * n)); /* of a ball that holds so many */
  c.position = ex_alloc((size_t)n, 3 * sizeof *c.position);
  scatter(c.position, n);
  cells cells = sort_into_cells(c.position, n, 1.3 * radius);
  find_neighbours(&c, &cells, radius, most_in_27_cells(&cells, n));
  free(cells.begin);
  c.value = ex_alloc((size_t)n, (size_t)fields * sizeof *c.value);
  for (int i = 0; i < n; i++)
    for (int f = 0; f < fields; f++)
      c.value[(int64_t)i * fields + f] = rc_exact(c.position + 3 * (int64_t)i, 0, f);
  return c;
}

void rc_free_cloud(rc_cloud *c) {
  free(c->position);
  free(c->value);
  free((void *)c->scale);
  free((void *)c->first);
  free((void *)c->point);
  free((void *)c->neighbour);
}

/* --- the fields: waves that the wind carries */

double rc_exact(const double x[3], double t, int f) {
  double v[3];
  rc_wind(v);
  return sin(turn * (x[0] - v[0] * t)) * cos(turn * (x[1] - v[1] * t)) +
         0.5 * cos(turn * (x[2] - v[2] * t) + f);
}

void rc_exact_gradient(const double x[3], int f, double g[3]) {
  g[0] = turn * cos(turn * x[0]) * cos(turn * x[1]);
  g[1] = -turn * sin(turn * x[0]) * sin(turn * x[1]);
  g[2] = -0.5 * turn * sin(turn * x[2] + f);
}
