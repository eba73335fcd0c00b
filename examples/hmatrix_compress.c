/* SPDX-License-Identifier: BSD-3-Clause */
/* Low-rank blocks: cross approximation, chunk by chunk, and recompression of each chunk.
 *
 * Cross approximation fills an arena of fixed size. When it is full, its blocks are recompressed together
 * (hmatrix_recompress.c). What is left of a chunk is packed into memory of exactly its size, so that the
 * program never holds more than one chunk beyond the compressed matrix. */
#include "hmatrix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is truncated makes the error that was asked for; cross approximation before it is to be better. */
static const double aca_share = 0.1;

/* What part of the time it takes, for the progress bar alone. */
static const double aca_work = 0.4;

typedef struct compressor {
  const hm_points *points;
  const hm_settings *settings;
  hm_report *report;
  hm_recompressor recompressor;

  /* Cross approximation: order[next ..] are the blocks still to do. */
  hm_blocks *list;
  hm_block *blocks; /* the list's */
  int64_t *order, next, count;
  hm_work work;

  hm_chunk chunk;
  size_t capacity; /* elements of its arena */
  size_t needed;   /* by the largest block so far */
} compressor;

/* --- cross approximation of a chunk */

static int64_t take_block(compressor *c, bool full) {
  int64_t b = -1;
#pragma omp critical(hm_chunk)
  if (!full && c->next < c->count) b = c->order[c->next++];
  return b;
}

/* A place in the arena for a block's factors; NULL if they do not fit, and the block is put back. */
static double *place_block(compressor *c, int64_t b) {
  hm_block *block = &c->blocks[b];
  size_t size = (size_t)block->rank * ((size_t)block->m + block->n);
  double *place = NULL;
#pragma omp critical(hm_chunk)
  {
    if (size > c->needed) c->needed = size;
    if (size <= c->capacity - c->chunk.used) {
      place = c->chunk.arena + c->chunk.used;
      c->chunk.used += size;
      c->chunk.blocks[c->chunk.count++] = block;
      c->report->bytes_aca += 8.0 * size;
    } else {
      c->order[--c->next] = b;
    }
  }
  return place;
}

static void approximate_chunk(compressor *c) {
  const double eps = aca_share * c->settings->tol;
  double start = ex_seconds();
  c->chunk.used = 0, c->chunk.count = 0;
#pragma omp parallel
  {
    hm_aca aca = {0};
    bool full = false;
    for (int64_t b; (b = take_block(c, full)) >= 0;) {
      hm_block *block = &c->blocks[b];
      block->rank = hm_cross_approximation(c->points, block, eps, &aca);
      if (block->rank != HM_DENSE) {
        block->u = place_block(c, b);
        full = !block->u;
        if (full) continue;
        block->v = block->u + (size_t)block->m * block->rank;
        memcpy(block->u, aca.u, (size_t)block->m * block->rank * sizeof *aca.u);
        memcpy(block->v, aca.v, (size_t)block->n * block->rank * sizeof *aca.v);
      }
      hm_count_work(&c->work, hm_block_work(block) * (block->rank == HM_DENSE ? 1 : aca_work));
    }
    hm_free_aca(&aca);
  }
  c->report->t_aca += ex_seconds() - start;
}

/* --- recompression of a chunk */

static void count_members(compressor *c) {
  hm_report *report = c->report;
  const int64_t members = 2 * c->chunk.count;
  for (int64_t k = 0; k < members; k++) {
    const hm_block *block = c->chunk.blocks[k / 2];
    ex_count_member(&report->histogram, k % 2 ? block->n : block->m, block->rank);
  }
  report->members += members;
  report->chunks++;
  if (members > report->largest_batch) report->largest_batch = members;
}

static void recompress_chunk(compressor *c) {
  count_members(c);
  c->report->bytes_low_rank += 8.0 * (double)hm_recompress(&c->recompressor, &c->chunk, c->list, &c->work);
}
/* --- all of it */

/* Moves the blocks that are better stored dense to `near`. */
static void move_incompressible(hm_blocks *admissible, hm_blocks *near, hm_report *report) {
  int64_t kept = 0;
  for (int64_t b = 0; b < admissible->count; b++) {
    const hm_block *block = &admissible->blocks[b];
    if (block->rank == HM_DENSE)
      hm_push_block(near, *block);
    else
      admissible->blocks[kept++] = *block;
  }
  report->incompressible = admissible->count - kept;
  admissible->count = kept;
}

void hm_compress(const hm_points *points, const hm_settings *settings, hm_blocks *admissible, hm_blocks *near,
                 hm_report *report) {
  *report = (hm_report){0};
  compressor c = {.points = points,
                  .settings = settings,
                  .report = report,
                  .list = admissible,
                  .blocks = admissible->blocks,
                  .count = admissible->count,
                  .capacity = settings->chunk / sizeof *c.chunk.arena};
  hm_open_recompressor(&c.recompressor, settings, &report->stages, &report->peer);
  report->on_device = c.recompressor.backend.on_device;
  snprintf(report->backend, sizeof report->backend, "%s", batchqr_describe(c.recompressor.backend.handle));
  c.order = ex_alloc((size_t)c.count, sizeof *c.order);
  c.chunk.blocks = ex_alloc((size_t)c.count, sizeof *c.chunk.blocks);
  for (int64_t b = 0; b < c.count; b++) {
    c.order[b] = b;
    c.work.all += hm_block_work(&c.blocks[b]);
  }
  c.chunk.arena = ex_alloc(c.capacity, sizeof *c.chunk.arena);
  while (c.next < c.count) {
    approximate_chunk(&c);
    if (c.chunk.count > 0) recompress_chunk(&c);
    if (c.needed > c.capacity) {
      free(c.chunk.arena);
      c.capacity = c.needed;
      c.chunk.arena = ex_alloc(c.capacity, sizeof *c.chunk.arena);
    }
  }
  free(c.chunk.arena);
  free(c.chunk.blocks);
  free(c.order);
  hm_close_recompressor(&c.recompressor);
  move_incompressible(admissible, near, report);
}
