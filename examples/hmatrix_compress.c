/* SPDX-License-Identifier: BSD-3-Clause */
/* Low-rank blocks: cross approximation, then recompression by batched QR.
 *
 * A block U V^T of rank k from cross approximation has more columns than it needs. With the thin
 * factorizations U = Q_U R_U and V = Q_V R_V it is Q_U (R_U R_V^T) Q_V^T, and the singular values s of the
 * small core R_U R_V^T = W diag(s) Z^T are those of the block. Keeping the first r of them, the block becomes
 * (Q_U W sqrt(s)) (Q_V Z sqrt(s))^T (Grasedyck, Hackbusch: Construction and arithmetics of H-matrices,
 * Computing 70, 2003).
 *
 * Cross approximation fills an arena of fixed size. When it is full, all its U's and V's, thousands of
 * matrices of many sizes, are one batch for batchqr: one call factors them, one applies all Q's. What is left
 * of a chunk is packed into memory of exactly its size, so that the program never holds more than one chunk
 * beyond the compressed matrix. */
#include "hmatrix.h"

#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is truncated makes the error that was asked for; cross approximation before it is to be better. */
static const double aca_share = 0.1, truncation_share = 0.7;

/* What part of the time a step takes, for the progress bar alone. */
static const double aca_work = 0.4, qr_work = 0.15, svd_work = 0.25, apply_work = 0.2;

typedef struct compressor {
  const hm_points *points;
  const hm_settings *settings;
  hm_report *report;
  ex_backend backend;

  /* Cross approximation: order[next ..] are the blocks still to do. */
  hm_blocks *list;
  hm_block *blocks; /* the list's */
  int64_t *order, next, count;
  double work_done, work;

  /* The chunk. */
  double *arena;
  size_t capacity, used; /* elements */
  size_t needed;         /* by the largest block so far */
  int64_t *chunk, chunk_count;
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
    if (size <= c->capacity - c->used) {
      place = c->arena + c->used;
      c->used += size;
      c->chunk[c->chunk_count++] = b;
      c->report->bytes_aca += 8.0 * size;
    } else {
      c->order[--c->next] = b;
    }
  }
  return place;
}

static double block_work(const hm_block *block) { return (double)block->m + block->n; }

static void count_work(compressor *c, double work) {
#pragma omp critical(hm_chunk)
  {
    c->work_done += work;
    ex_progress(c->work_done / c->work);
  }
}

static void approximate_chunk(compressor *c) {
  const double eps = aca_share * c->settings->tol;
  double start = ex_seconds();
  c->used = 0, c->chunk_count = 0;
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
      count_work(c, block_work(block) * (block->rank == HM_DENSE ? 1 : aca_work));
    }
    hm_free_aca(&aca);
  }
  c->report->t_aca += ex_seconds() - start;
}

/* --- the batch: members 2i and 2i + 1 are U and V of the chunk's block i */

typedef struct members {
  int64_t count;
  int *rows, *ranks; /* U is rows x ranks, the rank of cross approximation */
  int *kept;         /* the rank after truncation */
  size_t *factor_at; /* where in the arena U is, later R and Householder vectors */
  size_t *tau_at, tau_size;
  double **cores;  /* ranks x kept: W sqrt(s) or Z sqrt(s) */
  double *results; /* all members' rows x kept */
  size_t *result_at, result_size;
  double work; /* for the progress bar */
} members;

static members new_members(compressor *c) {
  hm_report *report = c->report;
  size_t count = 2 * (size_t)c->chunk_count;
  members s = {.count = (int64_t)count,
               .rows = ex_alloc(count, sizeof *s.rows),
               .ranks = ex_alloc(count, sizeof *s.ranks),
               .kept = ex_alloc(count, sizeof *s.kept),
               .factor_at = ex_alloc(count, sizeof *s.factor_at),
               .tau_at = ex_alloc(count, sizeof *s.tau_at),
               .cores = ex_alloc(count, sizeof *s.cores),
               .result_at = ex_alloc(count, sizeof *s.result_at)};
  for (int64_t k = 0; k < s.count; k++) {
    const hm_block *block = &c->blocks[c->chunk[k / 2]];
    s.rows[k] = k % 2 ? block->n : block->m;
    s.ranks[k] = block->rank;
    s.factor_at[k] = (size_t)((k % 2 ? block->v : block->u) - c->arena);
    s.tau_at[k] = s.tau_size;
    s.tau_size += (size_t)block->rank;
    s.work += 0.5 * block_work(block);
    ex_count_member(&report->histogram, s.rows[k], s.ranks[k]);
  }
  report->members += s.count;
  report->chunks++;
  if (s.count > report->largest_batch) report->largest_batch = s.count;
  return s;
}

/* Hands out the results, whose memory stays. */
static void finish_members(compressor *c, members *s) {
  for (int64_t k = 0; k < s->count; k++) {
    hm_block *block = &c->blocks[c->chunk[k / 2]];
    block->rank = s->kept[k];
    *(k % 2 ? &block->v : &block->u) = s->results + s->result_at[k];
  }
  hm_own(c->list, s->results);
  c->report->bytes_low_rank += (double)s->result_size * sizeof *s->results;
  free(s->rows);
  free(s->ranks);
  free(s->kept);
  free(s->factor_at);
  free(s->tau_at);
  free(s->cores);
  free(s->result_at);
}

/* The array, for the backend, of the members' addresses in `base`. */
static double **new_addresses(const compressor *c, const members *s, double *base, const size_t *at) {
  double **addresses = ex_alloc((size_t)s->count, sizeof *addresses);
  for (int64_t k = 0; k < s->count; k++) addresses[k] = base + at[k];
  double **copy = ex_copy_to_backend(&c->backend, addresses, (size_t)s->count * sizeof *addresses);
  if (c->backend.on_device) free(addresses);
  return copy;
}

static void free_addresses(const compressor *c, double **addresses) {
  if (c->backend.on_device)
    ex_free_copy(&c->backend, addresses);
  else
    free(addresses);
}

/* Plans, executes once, and adds up the times. */
static void run_batch(compressor *c, batchqr_op op, const batchqr_batch *batch,
                      const batchqr_operands *operands, const char *what, char kernels[1024],
                      double *seconds) {
  double start = ex_seconds();
  batchqr_plan_t plan;
  ex_check(&c->backend, batchqr_plan_create(c->backend.handle, op, batch, &plan), what);
  size_t bytes = batchqr_plan_workspace(plan);
  void *workspace = ex_new_memory(&c->backend, bytes);
  if (!*kernels) snprintf(kernels, 1024, "%s", batchqr_plan_describe(plan));
  double planned = ex_seconds();
  ex_check(&c->backend, batchqr_plan_execute(c->backend.handle, plan, operands, workspace, bytes), what);
  ex_wait_for_backend(&c->backend);
  *seconds += ex_seconds() - planned;
  c->report->t_plan += planned - start;
  ex_free_memory(&c->backend, workspace);
  batchqr_plan_destroy(plan);
}

/* Factors all U's and V's; R and the vectors come back to the arena. */
static void factor(compressor *c, const members *s, double *copy, double **a, double **tau) {
  int *info = ex_zeros((size_t)s->count, sizeof *info);
  int *info_copy = ex_copy_to_backend(&c->backend, info, (size_t)s->count * sizeof *info);
  batchqr_batch batch = {.type = BATCHQR_D,
                         .layout = BATCHQR_POINTERS,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = s->count,
                         .m_array = s->rows,
                         .n_array = s->ranks,
                         .a.ld_array = s->rows};
  batchqr_operands operands = {.a = a, .tau = tau, .info = info_copy};
  run_batch(c, BATCHQR_GEQRF, &batch, &operands, "batched QR", c->report->kernels[0], &c->report->t_qr);

  double start = ex_seconds();
  ex_copy_from_backend(&c->backend, c->arena, copy, c->used * sizeof *c->arena);
  ex_copy_from_backend(&c->backend, info, info_copy, (size_t)s->count * sizeof *info);
  c->report->t_copy += ex_seconds() - start;
  for (int64_t k = 0; k < s->count; k++)
    if (info[k] < 0) ex_die(EX_FAILED, "member %lld of the QR batch is not finite", (long long)k);
  ex_free_copy(&c->backend, info_copy);
  free(info);
}

/* --- cores */

/* core := R_U R_V^T, R's in the upper triangles of factored U (m rows) and V (n rows). */
static void multiply_triangles(int k, const double *u, int m, const double *v, int n, double *core) {
  memset(core, 0, (size_t)k * k * sizeof *core);
  for (int l = 0; l < k; l++)
    for (int j = 0; j <= l; j++)
      for (int i = 0; i <= l; i++) core[i + (size_t)j * k] += u[i + (size_t)l * m] * v[j + (size_t)l * n];
}

/* The smallest rank, 1 or more, whose error is at most eps in the relative Frobenius norm. */
static int truncated_rank(int k, const double *sigma, double eps) {
  double total = 0, tail = 0;
  for (int i = 0; i < k; i++) total += sigma[i] * sigma[i];
  int rank = k;
  while (rank > 1 && tail + sigma[rank - 1] * sigma[rank - 1] <= eps * eps * total) {
    rank--;
    tail += sigma[rank] * sigma[rank];
  }
  return rank;
}

/* Sets `kept` and `cores` of the block's two members. */
static void truncate_block(const compressor *c, members *s, int64_t block) {
  const int64_t u = 2 * block, v = u + 1;
  const int k = s->ranks[u];
  double *core = ex_alloc(3 * (size_t)k * k + k, sizeof *core);
  double *w = core + (size_t)k * k, *zt = w + (size_t)k * k, *sigma = zt + (size_t)k * k;
  multiply_triangles(k, c->arena + s->factor_at[u], s->rows[u], c->arena + s->factor_at[v], s->rows[v], core);
  if (LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'A', k, k, core, k, sigma, w, k, zt, k) != 0)
    ex_die(EX_FAILED, "the SVD of a core of %d x %d did not converge", k, k);
  const int kept = truncated_rank(k, sigma, truncation_share * c->settings->tol);
  s->kept[u] = s->kept[v] = kept;
  s->cores[u] = ex_alloc((size_t)k * kept, sizeof(double));
  s->cores[v] = ex_alloc((size_t)k * kept, sizeof(double));
  for (int j = 0; j < kept; j++)
    for (int l = 0; l < k; l++) {
      s->cores[u][l + (size_t)j * k] = w[l + (size_t)j * k] * sqrt(sigma[j]);
      s->cores[v][l + (size_t)j * k] = zt[j + (size_t)l * k] * sqrt(sigma[j]);
    }
  free(core);
}

/* Truncates all blocks, and puts their cores, with zeros below, where the Q's will be applied to them. */
static void truncate_chunk(compressor *c, members *s) {
  double start = ex_seconds();
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < s->count / 2; i++) {
    truncate_block(c, s, i);
    count_work(c, svd_work * block_work(&c->blocks[c->chunk[i]]));
  }
  s->result_size = 0;
  for (int64_t k = 0; k < s->count; k++) {
    s->result_at[k] = s->result_size;
    s->result_size += (size_t)s->rows[k] * s->kept[k];
  }
  s->results = ex_zeros(s->result_size, sizeof *s->results);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t k = 0; k < s->count; k++) {
    for (int j = 0; j < s->kept[k]; j++)
      memcpy(s->results + s->result_at[k] + (size_t)j * s->rows[k], s->cores[k] + (size_t)j * s->ranks[k],
             (size_t)s->ranks[k] * sizeof *s->results);
    free(s->cores[k]);
  }
  c->report->t_svd += ex_seconds() - start;
}

/* Replaces each member's core by Q times it. */
static void apply_factors(compressor *c, const members *s, double **a, double **tau) {
  double start = ex_seconds();
  double *copy = ex_copy_to_backend(&c->backend, s->results, s->result_size * sizeof *copy);
  double **addresses = new_addresses(c, s, copy, s->result_at);
  c->report->t_copy += ex_seconds() - start;
  batchqr_batch batch = {.type = BATCHQR_D,
                         .layout = BATCHQR_POINTERS,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = s->count,
                         .m_array = s->rows,
                         .n_array = s->kept,
                         .k_array = s->ranks,
                         .side = BATCHQR_LEFT,
                         .trans = BATCHQR_NO_TRANS,
                         .a.ld_array = s->rows,
                         .c.ld_array = s->rows};
  batchqr_operands operands = {.a = a, .tau = tau, .c = addresses};
  run_batch(c, BATCHQR_ORMQR, &batch, &operands, "batched apply", c->report->kernels[1], &c->report->t_apply);
  start = ex_seconds();
  ex_copy_from_backend(&c->backend, s->results, copy, s->result_size * sizeof *copy);
  c->report->t_copy += ex_seconds() - start;
  free_addresses(c, addresses);
  ex_free_copy(&c->backend, copy);
}

static void recompress_chunk(compressor *c) {
  members s = new_members(c);
  double start = ex_seconds();
  double *copy = ex_copy_to_backend(&c->backend, c->arena, c->used * sizeof *copy);
  double *tau_memory = ex_new_memory(&c->backend, s.tau_size * sizeof *tau_memory);
  double **a = new_addresses(c, &s, copy, s.factor_at), **tau = new_addresses(c, &s, tau_memory, s.tau_at);
  c->report->t_copy += ex_seconds() - start;
  factor(c, &s, copy, a, tau);
  count_work(c, qr_work * s.work);
  truncate_chunk(c, &s);
  apply_factors(c, &s, a, tau);
  count_work(c, apply_work * s.work);
  free_addresses(c, tau);
  free_addresses(c, a);
  ex_free_memory(&c->backend, tau_memory);
  ex_free_copy(&c->backend, copy);
  finish_members(c, &s);
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
                  .capacity = settings->chunk / sizeof *c.arena};
  ex_open_backend(&c.backend, settings->backend, settings->threads);
  snprintf(report->backend, sizeof report->backend, "%s", batchqr_describe(c.backend.handle));
  c.order = ex_alloc((size_t)c.count, sizeof *c.order);
  c.chunk = ex_alloc((size_t)c.count, sizeof *c.chunk);
  for (int64_t b = 0; b < c.count; b++) {
    c.order[b] = b;
    c.work += block_work(&c.blocks[b]);
  }
  c.arena = ex_alloc(c.capacity, sizeof *c.arena);
  while (c.next < c.count) {
    approximate_chunk(&c);
    if (c.chunk_count > 0) recompress_chunk(&c);
    if (c.needed > c.capacity) {
      free(c.arena);
      c.capacity = c.needed;
      c.arena = ex_alloc(c.capacity, sizeof *c.arena);
    }
  }
  free(c.arena);
  free(c.chunk);
  free(c.order);
  batchqr_destroy(c.backend.handle);
  move_incompressible(admissible, near, report);
}
