/* SPDX-License-Identifier: BSD-3-Clause */
/* The sum of two H-matrices over the same blocks, each sum of low rank rounded.
 *
 * U1 V1^T + U2 V2^T = [U1 U2] [V1 V2]^T has too many columns for what it is, as a cross approximation has;
 * what hmatrix_recompress.c does about these is all that there is to do. A block that the sum of the ranks
 * would make larger than a dense one starts from its entries, and the unit matrix. */
#include "hmatrix.h"

#include <stdlib.h>
#include <string.h>

typedef struct adder {
  const hm_blocks *x, *y;
  hm_recompressor recompressor;
  hm_addition *sum;
  hm_blocks *result;
  int64_t first; /* of the chunk, in the result */
  hm_chunk chunk;
} adder;

static int rank_of_sum(const hm_block *x, const hm_block *y) {
  const int least = x->m < x->n ? x->m : x->n, both = x->rank + y->rank;
  return both < least ? both : least;
}

/* a := a + U V^T, m x n. */
static void add_product(const hm_block *b, bool transposed, double *a) {
  for (int l = 0; l < b->rank; l++)
    for (int j = 0; j < b->n; j++)
      for (int i = 0; i < b->m; i++) {
        const double entry = b->u[i + (size_t)l * b->m] * b->v[j + (size_t)l * b->n];
        a[transposed ? j + (size_t)i * b->n : i + (size_t)j * b->m] += entry;
      }
}

static void set_unit(int n, double *a) {
  memset(a, 0, (size_t)n * n * sizeof *a);
  for (int i = 0; i < n; i++) a[i + (size_t)i * n] = 1;
}

/* Writes both factors of a sum, of sum->rank columns, to its u and v. */
static void stack(const hm_block *x, const hm_block *y, hm_block *sum) {
  const size_t m = (size_t)sum->m, n = (size_t)sum->n;
  if (x->rank + y->rank == sum->rank) {
    memcpy(sum->u, x->u, m * (size_t)x->rank * sizeof(double));
    memcpy(sum->v, x->v, n * (size_t)x->rank * sizeof(double));
    memcpy(sum->u + m * (size_t)x->rank, y->u, m * (size_t)y->rank * sizeof(double));
    memcpy(sum->v + n * (size_t)x->rank, y->v, n * (size_t)y->rank * sizeof(double));
    return;
  }
  const bool wide = m < n;
  double *entries = wide ? sum->v : sum->u;
  memset(entries, 0, m * n * sizeof *entries);
  add_product(x, wide, entries);
  add_product(y, wide, entries);
  set_unit(sum->rank, wide ? sum->u : sum->v);
}

/* The chunk's blocks are those of the result from `first` on. */
static void add_chunk(adder *a, const int64_t *of_x, const int64_t *of_y) {
  double start = ex_seconds(), *arena = ex_alloc(a->chunk.used, sizeof *arena), *next = arena;
  a->chunk.arena = arena;
  for (int64_t i = 0; i < a->chunk.count; i++) {
    hm_block *block = a->chunk.blocks[i] = &a->result->blocks[a->first + i];
    block->u = next;
    block->v = next += (size_t)block->m * block->rank;
    next += (size_t)block->n * block->rank;
  }
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < a->chunk.count; i++)
    stack(&a->x->blocks[of_x[a->first + i]], &a->y->blocks[of_y[a->first + i]], a->chunk.blocks[i]);
  a->sum->t_stack += ex_seconds() - start;
  hm_recompress(&a->recompressor, &a->chunk, a->result, NULL);
  free(arena);
  a->first += a->chunk.count;
  a->chunk.count = 0, a->chunk.used = 0;
}

static bool same_block(const hm_block *a, const hm_block *b) { return a->row == b->row && a->col == b->col; }

void hm_add(const hm_settings *settings, const hm_blocks *all, const hm_blocks *x, const hm_blocks *y,
            hm_blocks *result, hm_blocks *dense, hm_addition *sum) {
  adder a = {.x = x, .y = y, .sum = sum, .result = result};
  const size_t capacity = settings->chunk / sizeof(double), most = (size_t)all->count;
  int64_t *of_x = ex_alloc(most, sizeof *of_x), *of_y = ex_alloc(most, sizeof *of_y), i = 0, j = 0, count = 0;
  for (int64_t b = 0; b < all->count; b++) {
    const bool in_x = i < x->count && same_block(&x->blocks[i], &all->blocks[b]),
               in_y = j < y->count && same_block(&y->blocks[j], &all->blocks[b]);
    hm_block block = all->blocks[b];
    if (in_x && in_y) {
      of_x[count] = i, of_y[count++] = j;
      block.rank = rank_of_sum(&x->blocks[i], &y->blocks[j]);
      sum->ranks += x->blocks[i].rank + y->blocks[j].rank;
      hm_push_block(result, block);
    } else {
      hm_push_block(dense, block);
    }
    i += in_x, j += in_y;
  }
  hm_open_recompressor(&a.recompressor, settings, &sum->stages, &sum->peer);
  a.chunk.blocks = ex_alloc((size_t)count, sizeof *a.chunk.blocks);
  for (int64_t b = 0; b < count; b++) {
    const hm_block *block = &result->blocks[b];
    const size_t size = (size_t)block->rank * ((size_t)block->m + block->n);
    if (a.chunk.count > 0 && a.chunk.used + size > capacity) add_chunk(&a, of_x, of_y);
    a.chunk.count++, a.chunk.used += size;
  }
  if (a.chunk.count > 0) add_chunk(&a, of_x, of_y);
  hm_close_recompressor(&a.recompressor);
  free(a.chunk.blocks);
  free(of_x);
  free(of_y);
}
