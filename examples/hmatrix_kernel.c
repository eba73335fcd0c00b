/* SPDX-License-Identifier: BSD-3-Clause */
/* Entries of the matrix, cross approximation of its blocks, products with it. */
#include "hmatrix.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double four_pi = 12.5663706143591729539;

/* What the Laplace kernel is to be multiplied by at a distance. */
static double factor_at(const hm_points *points, double r) {
  return (points->kernel == HM_SUM) + exp(-points->decay * r);
}

/* Likewise of the self term, the mean over a disc of radius R = 1 / (2 pi self). */
static double factor_of_self(const hm_points *points, double self) {
  const double x = points->decay * 2 / (four_pi * self);
  return (points->kernel == HM_SUM) - expm1(-x) / x;
}

/* u[i] := K(x_(row + i), x_col), i = 0 .. m - 1. */
static void kernel_column(const hm_points *points, int row, int m, int col, double *u) {
  const double *restrict x = points->x + row, *restrict y = points->y + row, *restrict z = points->z + row;
  double cx = points->x[col], cy = points->y[col], cz = points->z[col];
#pragma omp simd
  for (int i = 0; i < m; i++) {
    double dx = x[i] - cx, dy = y[i] - cy, dz = z[i] - cz;
    u[i] = 1 / (four_pi * sqrt(dx * dx + dy * dy + dz * dz));
  }
  for (int i = 0; points->kernel != HM_LAPLACE && i < m; i++) u[i] *= factor_at(points, 1 / (four_pi * u[i]));
  if (col < row || col >= row + m) return;
  const double self = points->self[col];
  u[col - row] = points->kernel == HM_LAPLACE ? self : self * factor_of_self(points, self);
}

/* --- short sums of long columns: these loops are where cross approximation spends its time */

/* y := y - A w, A of m x k without gaps, w[l] at w[l * stride]. */
static void subtract_columns(int m, int k, const double *a, const double *w, int stride, double *restrict y) {
  int l = 0;
  for (; l + 4 <= k; l += 4) {
    const double *restrict a0 = a + (size_t)l * m, *restrict a1 = a0 + m, *restrict a2 = a1 + m,
                           *restrict a3 = a2 + m;
    size_t at = (size_t)l * stride;
    double w0 = w[at], w1 = w[at + stride], w2 = w[at + 2 * (size_t)stride], w3 = w[at + 3 * (size_t)stride];
#pragma omp simd
    for (int i = 0; i < m; i++) y[i] -= a0[i] * w0 + a1[i] * w1 + a2[i] * w2 + a3[i] * w3;
  }
  for (; l < k; l++) {
    const double *restrict a0 = a + (size_t)l * m;
    double w0 = w[(size_t)l * stride];
#pragma omp simd
    for (int i = 0; i < m; i++) y[i] -= a0[i] * w0;
  }
}

static double dot(int m, const double *a, const double *b) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (int i = 0; i < m; i++) sum += a[i] * b[i];
  return sum;
}

static int largest(int m, const double *a, const unsigned char *skip) {
  int best = -1;
  for (int i = 0; i < m; i++)
    if (!(skip && skip[i]) && (best < 0 || fabs(a[i]) > fabs(a[best]))) best = i;
  return best;
}

/* --- adaptive cross approximation with partial pivoting (Bebendorf: Approximation of boundary element
 * matrices, Numer. Math. 86, 2000)
 *
 * The usual test, that the last cross is small against the sum of all, is fooled where one row happens to be
 * approximated well. So it only counts as one of three signs in a row; the others are rows drawn at random
 * whose residuals are small. A drawn row whose residual is not small becomes the next pivot row. */

/* Makes room for n numbers, keeping those that are there. */
static double *reserve(double *a, size_t *capacity, size_t n) {
  if (n <= *capacity) return a;
  *capacity = n + n / 2;
  a = realloc(a, *capacity * sizeof *a);
  if (!a) ex_die(EX_FAILED, "no memory for cross approximation: %zu bytes", *capacity * sizeof *a);
  return a;
}

static uint64_t next_random(uint64_t *state) { /* xorshift64* (Vigna 2016) */
  *state ^= *state >> 12, *state ^= *state << 25, *state ^= *state >> 27;
  return *state * 0x2545F4914F6CDD1D;
}

/* A row without mark, starting the search at a random one; -1 if all are marked. */
static int draw_row(int m, const unsigned char *used, uint64_t *state) {
  int start = (int)(next_random(state) % (uint64_t)m);
  for (int i = 0; i < m; i++)
    if (!used[(start + i) % m]) return (start + i) % m;
  return -1;
}

int hm_cross_approximation(const hm_points *points, const hm_block *block, double eps, hm_aca *aca) {
  enum { signs_needed = 3 };
  const int m = block->m, n = block->n, most = (int)((int64_t)m * n / ((int64_t)m + n));
  uint64_t random = ((uint64_t)block->row << 32 | (uint32_t)block->col) ^ 0x9E3779B97F4A7C15;
  double norm2 = 0; /* square of the Frobenius norm of U V^T */
  int rank = 0, signs = 0;
  if (m > aca->row_used_capacity) {
    free(aca->row_used);
    aca->row_used = ex_alloc((size_t)m, 1);
    aca->row_used_capacity = m;
  }
  memset(aca->row_used, 0, (size_t)m);

  for (int row = m / 2; row >= 0 && signs < signs_needed;) {
    aca->u = reserve(aca->u, &aca->u_capacity, (size_t)m * (rank + 1));
    aca->v = reserve(aca->v, &aca->v_capacity, (size_t)n * (rank + 1));
    double *u = aca->u + (size_t)m * rank, *v = aca->v + (size_t)n * rank;

    kernel_column(points, block->col, n, block->row + row, v);
    subtract_columns(n, rank, aca->v, aca->u + row, m, v);
    aca->row_used[row] = 1;
    int col = largest(n, v, NULL);
    double row_norm2 = dot(n, v, v);
    if (v[col] == 0 || (rank > 0 && row_norm2 * m <= eps * eps * norm2)) {
      signs++;
      row = draw_row(m, aca->row_used, &random);
      continue;
    }
    if (rank == most) return HM_DENSE;

    double scale = 1 / v[col];
    for (int j = 0; j < n; j++) v[j] *= scale;
    kernel_column(points, block->row, m, block->col + col, u);
    subtract_columns(m, rank, aca->u, aca->v + col, n, u);

    double cross2 = dot(m, u, u) * row_norm2 * scale * scale;
    for (int l = 0; l < rank; l++)
      norm2 += 2 * dot(m, u, aca->u + (size_t)m * l) * dot(n, v, aca->v + (size_t)n * l);
    norm2 += cross2;
    rank++;
    if (cross2 <= eps * eps * norm2) {
      signs++;
      row = draw_row(m, aca->row_used, &random);
    } else {
      signs = 0;
      row = largest(m, u, aca->row_used);
    }
  }
  return rank;
}

void hm_free_aca(hm_aca *aca) {
  free(aca->u);
  free(aca->v);
  free(aca->row_used);
}

/* --- dense blocks */

void hm_fill_dense(const hm_points *points, hm_blocks *blocks) {
  size_t total = 0;
  for (int64_t b = 0; b < blocks->count; b++) total += (size_t)blocks->blocks[b].m * blocks->blocks[b].n;
  double *next = ex_alloc(total, sizeof *next);
  hm_own(blocks, next);
  for (int64_t b = 0; b < blocks->count; b++) {
    hm_block *block = &blocks->blocks[b];
    block->rank = HM_DENSE;
    block->u = next;
    next += (size_t)block->m * block->n;
  }
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t b = 0; b < blocks->count; b++) {
    const hm_block *block = &blocks->blocks[b];
    for (int j = 0; j < block->n; j++)
      kernel_column(points, block->row, block->m, block->col + j, block->u + (size_t)j * block->m);
  }
}

/* --- products */

/* y := y + A x, A of m x n. */
static void multiply(int m, int n, const double *a, const double *x, double *restrict y) {
  for (int j = 0; j < n; j++) {
    const double *restrict column = a + (size_t)j * m;
    double w = x[j];
#pragma omp simd
    for (int i = 0; i < m; i++) y[i] += column[i] * w;
  }
}

/* y := y + A^T x. */
static void multiply_transposed(int m, int n, const double *a, const double *x, double *y) {
  for (int j = 0; j < n; j++) y[j] += dot(m, a + (size_t)j * m, x);
}

/* y := y + U (V^T x). */
static void multiply_low_rank(int m, int n, int rank, const double *u, const double *v, const double *x,
                              double *y) {
  for (int l = 0; l < rank; l++) {
    double w = dot(n, v + (size_t)l * n, x);
    multiply(m, 1, u + (size_t)l * m, &w, y);
  }
}

/* Adds the block's product and that of its mirror image above the diagonal. */
static void apply_block(const hm_block *b, const double *x, double *y) {
  bool mirrored = b->row != b->col;
  if (b->rank == HM_DENSE) {
    multiply(b->m, b->n, b->u, x + b->col, y + b->row);
    if (mirrored) multiply_transposed(b->m, b->n, b->u, x + b->row, y + b->col);
  } else {
    multiply_low_rank(b->m, b->n, b->rank, b->u, b->v, x + b->col, y + b->row);
    multiply_low_rank(b->n, b->m, b->rank, b->v, b->u, x + b->row, y + b->col);
  }
}

static void apply(int n, const hm_blocks *low_rank, const hm_blocks *dense, const double *x, double *y) {
  const hm_blocks *lists[2] = {low_rank, dense};
  memset(y, 0, (size_t)n * sizeof *y);
#pragma omp parallel
  {
    double *mine = ex_zeros((size_t)n, sizeof *mine);
    for (int list = 0; list < 2; list++) {
#pragma omp for schedule(dynamic, 16) nowait
      for (int64_t b = 0; b < lists[list]->count; b++) apply_block(&lists[list]->blocks[b], x, mine);
    }
#pragma omp critical
    for (int i = 0; i < n; i++) y[i] += mine[i];
    free(mine);
  }
}

double hm_product_error(const hm_points *points, const hm_blocks *low_rank, const hm_blocks *dense,
                        int samples) {
  const int n = points->n;
  if (samples > n) samples = n;
  double *x = ex_alloc((size_t)n, sizeof *x), *y = ex_alloc((size_t)n, sizeof *y), error2 = 0, norm2 = 0;
  uint64_t random = 0x2545F4914F6CDD1D;
  for (int i = 0; i < n; i++) x[i] = ldexp((double)(next_random(&random) >> 11), -52) - 1;
  apply(n, low_rank, dense, x, y);
#pragma omp parallel reduction(+ : error2, norm2)
  {
    double *row = ex_alloc((size_t)n, sizeof *row);
#pragma omp for schedule(static)
    for (int s = 0; s < samples; s++) {
      int i = (int)((int64_t)s * n / samples);
      kernel_column(points, 0, n, i, row);
      double exact = dot(n, row, x);
      error2 += (y[i] - exact) * (y[i] - exact);
      norm2 += exact * exact;
    }
    free(row);
  }
  free(x);
  free(y);
  return sqrt(error2 / norm2);
}
