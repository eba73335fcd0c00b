/* SPDX-License-Identifier: BSD-3-Clause */
/* Low-rank blocks with fewer columns, by batched QR.
 *
 * A block U V^T of rank k from cross approximation has more columns than it needs. With the thin
 * factorizations U = Q_U R_U and V = Q_V R_V it is Q_U (R_U R_V^T) Q_V^T, and the singular values s of the
 * small core R_U R_V^T = W diag(s) Z^T are those of the block. Keeping the first r of them, the block becomes
 * (Q_U W sqrt(s)) (Q_V Z sqrt(s))^T (Grasedyck, Hackbusch: Construction and arithmetics of H-matrices,
 * Computing 70, 2003).
 *
 * All U's and V's of a chunk, thousands of matrices of many sizes, are one batch for batchqr: one call
 * factors them, one finds the cores' singular values, one applies all Q's. With a GPU all of it happens
 * there: the factors go there once, the ranks come back, for memory to be made for what is kept, and then the
 * result. */
#include "hmatrix.h"
#include "hmatrix_cores.h"

#include <lapacke.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What truncation may take of the tolerance: it follows others' errors. */
static const double truncation_share = 0.7;

/* What part of the time a step takes, for the progress bar alone. */
static const double qr_work = 0.15, svd_work = 0.25, apply_work = 0.2;

void hm_count_work(hm_work *work, double amount) {
  if (!work) return;
#pragma omp critical(hm_work)
  {
    work->done += amount;
    ex_progress(work->done / work->all);
  }
}

double hm_block_work(const hm_block *block) { return (double)block->m + block->n; }

/* Members 2i and 2i + 1 of the batches are U and V of the chunk's block i. */
typedef struct recompression {
  const hm_chunk *chunk;
  const ex_backend *backend;
  double eps;
  hm_stages *stages;
  hm_work *work;
  double chunk_work;

  int64_t count;            /* of members */
  int *rows, *ranks, *kept; /* U is rows x ranks, the rank of cross approximation; kept after truncation */
  size_t *factor_at;        /* where in the arena U is, later R and Householder vectors */
  size_t *tau_at, tau_size;
  double *factors, *tau;     /* in the backend's memory */
  double **a, **tau_address; /* of the members, for the backend */
  double *results;           /* in the backend's memory: all members' rows x kept */
  size_t *result_at, result_size;
} recompression;

/* u and v of block i, of m x ranks[i] and n x ranks[i], at memory + at[2i] and memory + at[2i + 1]. */
typedef struct factors {
  int *ranks;
  size_t *at, size; /* elements */
  double *memory;
} factors;

static double now_after(const ex_backend *backend) {
  ex_wait_for_backend(backend);
  return ex_seconds();
}

static recompression begin(const hm_chunk *chunk, const ex_backend *backend, double eps, hm_stages *stages,
                           hm_work *work) {
  const size_t count = 2 * (size_t)chunk->count;
  recompression r = {.chunk = chunk,
                     .backend = backend,
                     .eps = eps,
                     .stages = stages,
                     .work = work,
                     .count = (int64_t)count,
                     .rows = ex_alloc(count, sizeof *r.rows),
                     .ranks = ex_alloc(count, sizeof *r.ranks),
                     .kept = ex_alloc(count, sizeof *r.kept),
                     .factor_at = ex_alloc(count, sizeof *r.factor_at),
                     .tau_at = ex_alloc(count, sizeof *r.tau_at),
                     .result_at = ex_alloc(count, sizeof *r.result_at)};
  for (int64_t k = 0; k < r.count; k++) {
    const hm_block *block = chunk->blocks[k / 2];
    r.rows[k] = k % 2 ? block->n : block->m;
    r.ranks[k] = block->rank;
    r.factor_at[k] = (size_t)((k % 2 ? block->v : block->u) - chunk->arena);
    r.tau_at[k] = r.tau_size;
    r.tau_size += (size_t)block->rank;
    r.chunk_work += 0.5 * hm_block_work(block);
  }
  return r;
}

/* The array, for the backend, of the members' addresses in `base`. */
static double **new_addresses(const recompression *r, double *base, const size_t *at) {
  double **addresses = ex_alloc((size_t)r->count, sizeof *addresses);
  for (int64_t k = 0; k < r->count; k++) addresses[k] = base + at[k];
  double **copy = ex_copy_to_backend(r->backend, addresses, (size_t)r->count * sizeof *addresses);
  if (r->backend->on_device) free(addresses);
  return copy;
}

static void free_addresses(const recompression *r, double **addresses) {
  if (r->backend->on_device)
    ex_free_copy(r->backend, addresses);
  else
    free(addresses);
}

static void upload(recompression *r) {
  double start = ex_seconds();
  r->factors = ex_copy_to_backend(r->backend, r->chunk->arena, r->chunk->used * sizeof *r->factors);
  r->tau = ex_new_memory(r->backend, r->tau_size * sizeof *r->tau);
  r->a = new_addresses(r, r->factors, r->factor_at);
  r->tau_address = new_addresses(r, r->tau, r->tau_at);
  r->stages->upload += now_after(r->backend) - start;
}

/* Plans, executes once, and adds up the times. */
static void run_batch(const recompression *r, batchqr_op op, const batchqr_batch *batch,
                      const batchqr_operands *operands, const char *what, char kernels[1024],
                      double *seconds) {
  const ex_backend *backend = r->backend;
  double start = ex_seconds();
  batchqr_plan_t plan;
  ex_check(backend, batchqr_plan_create(backend->handle, op, batch, &plan), what);
  size_t bytes = batchqr_plan_workspace(plan);
  void *workspace = ex_new_memory(backend, bytes);
  if (!*kernels) snprintf(kernels, 1024, "%s", batchqr_plan_describe(plan));
  double planned = now_after(backend);
  ex_check(backend, batchqr_plan_execute(backend->handle, plan, operands, workspace, bytes), what);
  *seconds += now_after(backend) - planned;
  r->stages->plan += planned - start;
  ex_free_memory(backend, workspace);
  batchqr_plan_destroy(plan);
}

/* Factors all U's and V's where they are. */
static void factor(const recompression *r) {
  int *info = ex_zeros((size_t)r->count, sizeof *info);
  int *info_copy = ex_copy_to_backend(r->backend, info, (size_t)r->count * sizeof *info);
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = r->count,
                         .m_array = r->rows,
                         .n_array = r->ranks,
                         .a = {.layout = BATCHQR_POINTERS, .ld_array = r->rows},
                         .tau = {.layout = BATCHQR_POINTERS}};
  batchqr_operands operands = {.a = r->a, .tau = r->tau_address, .info = info_copy};
  run_batch(r, BATCHQR_GEQRF, &batch, &operands, "batched QR", r->stages->kernels[0], &r->stages->qr);
  ex_copy_from_backend(r->backend, info, info_copy, (size_t)r->count * sizeof *info);
  for (int64_t k = 0; k < r->count; k++)
    if (info[k] < 0) ex_die(EX_FAILED, "member %lld of the QR batch is not finite", (long long)k);
  ex_free_copy(r->backend, info_copy);
  free(info);
}

static void place_results(recompression *r) {
  for (int64_t k = 0; k < r->count; k++) {
    r->result_at[k] = r->result_size;
    r->result_size += (size_t)r->rows[k] * r->kept[k];
  }
}

static _Noreturn void fail_svd(int k) {
  ex_die(EX_FAILED, "the SVD of a core of %d x %d did not converge", k, k);
}

/* --- cores on the CPU */

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

/* Sets `kept` of the block's two members and their cores, ranks x kept: W sqrt(s) and Z sqrt(s). */
static void truncate_block(const recompression *r, int64_t block, double **cores) {
  const int64_t u = 2 * block, v = u + 1;
  const int k = r->ranks[u];
  double *core = ex_alloc(3 * (size_t)k * k + k, sizeof *core);
  double *w = core + (size_t)k * k, *zt = w + (size_t)k * k, *sigma = zt + (size_t)k * k;
  multiply_triangles(k, r->factors + r->factor_at[u], r->rows[u], r->factors + r->factor_at[v], r->rows[v],
                     core);
  if (LAPACKE_dgesdd(LAPACK_COL_MAJOR, 'A', k, k, core, k, sigma, w, k, zt, k) != 0) fail_svd(k);
  const int kept = truncated_rank(k, sigma, r->eps);
  r->kept[u] = r->kept[v] = kept;
  cores[u] = ex_alloc((size_t)k * kept, sizeof(double));
  cores[v] = ex_alloc((size_t)k * kept, sizeof(double));
  for (int j = 0; j < kept; j++)
    for (int l = 0; l < k; l++) {
      cores[u][l + (size_t)j * k] = w[l + (size_t)j * k] * sqrt(sigma[j]);
      cores[v][l + (size_t)j * k] = zt[j + (size_t)l * k] * sqrt(sigma[j]);
    }
  free(core);
}

/* Truncates all blocks, and puts their cores, with zeros below, where the Q's will be applied to them. */
static void truncate_on_host(recompression *r) {
  double **cores = ex_alloc((size_t)r->count, sizeof *cores);
#pragma omp parallel for schedule(dynamic, 16)
  for (int64_t i = 0; i < r->count / 2; i++) {
    truncate_block(r, i, cores);
    hm_count_work(r->work, svd_work * hm_block_work(r->chunk->blocks[i]));
  }
  place_results(r);
  r->results = ex_zeros(r->result_size, sizeof *r->results);
#pragma omp parallel for schedule(dynamic, 64)
  for (int64_t k = 0; k < r->count; k++) {
    for (int j = 0; j < r->kept[k]; j++)
      memcpy(r->results + r->result_at[k] + (size_t)j * r->rows[k], cores[k] + (size_t)j * r->ranks[k],
             (size_t)r->ranks[k] * sizeof *r->results);
    free(cores[k]);
  }
  free(cores);
}

/* --- cores on the GPU */

#if HAVE_CUDA
/* The chunk's cores; returns how many elements they have, and columns. */
static hm_core *new_cores(const recompression *r, int64_t *elements, int64_t *columns) {
  const int64_t blocks = r->count / 2;
  hm_core *cores = ex_alloc((size_t)blocks, sizeof *cores);
  *elements = *columns = 0;
  for (int64_t i = 0; i < blocks; i++) {
    cores[i] = (hm_core){.m = r->rows[2 * i],
                         .n = r->rows[2 * i + 1],
                         .k = r->ranks[2 * i],
                         .u_at = (int64_t)r->factor_at[2 * i],
                         .v_at = (int64_t)r->factor_at[2 * i + 1],
                         .core_at = *elements,
                         .column_at = *columns};
    *elements += (int64_t)cores[i].k * cores[i].k;
    *columns += cores[i].k;
  }
  return cores;
}

/* W in the place of the cores, Z and the singular values, all cores in one batch. */
static void decompose(const recompression *r, const hm_core *cores, const hm_cores *device, int *info) {
  const size_t blocks = (size_t)device->count;
  double **places = ex_alloc(3 * blocks, sizeof *places);
  int *sizes = ex_alloc(blocks, sizeof *sizes);
  for (size_t i = 0; i < blocks; i++) {
    places[i] = device->left + cores[i].core_at;
    places[blocks + i] = device->right + cores[i].core_at;
    places[2 * blocks + i] = device->sigma + cores[i].column_at;
    sizes[i] = cores[i].k;
  }
  double **copy = ex_copy_to_backend(r->backend, places, 3 * blocks * sizeof *places);
  const batchqr_storage of_matrices = {.layout = BATCHQR_POINTERS, .ld_array = sizes};
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = device->count,
                         .m_array = sizes,
                         .n_array = sizes,
                         .a = of_matrices,
                         .u = of_matrices,
                         .v = of_matrices,
                         .s = {.layout = BATCHQR_POINTERS}};
  batchqr_operands operands = {
      .a = copy, .u = copy, .v = copy + blocks, .s = copy + 2 * blocks, .info = info};
  double seconds = 0; /* truncate_all() measures them */
  run_batch(r, BATCHQR_GESVD, &batch, &operands, "batched SVD", r->stages->kernels[1], &seconds);
  ex_free_memory(r->backend, copy);
  free(places);
  free(sizes);
}

/* What comes back is a number for each block. */
static void read_ranks(const recompression *r, const int *kept) {
  const int64_t blocks = r->count / 2;
  int *ranks = ex_alloc((size_t)blocks, sizeof *ranks);
  ex_copy_from_backend(r->backend, ranks, kept, (size_t)blocks * sizeof *ranks);
  for (int64_t i = 0; i < blocks; i++) {
    if (ranks[i] < 0) fail_svd(r->ranks[2 * i]);
    r->kept[2 * i] = r->kept[2 * i + 1] = ranks[i];
  }
  free(ranks);
}

static void truncate_on_device(recompression *r) {
  const ex_backend *backend = r->backend;
  const int64_t blocks = r->count / 2;
  int64_t elements, columns;
  hm_core *cores = new_cores(r, &elements, &columns);
  hm_core *cores_copy = ex_copy_to_backend(backend, cores, (size_t)blocks * sizeof *cores);
  int *info = ex_new_memory(backend, (size_t)blocks * sizeof *info);
  hm_cores device = {.cores = cores_copy,
                     .count = blocks,
                     .factors = r->factors,
                     .left = ex_new_memory(backend, (size_t)elements * sizeof *device.left),
                     .right = ex_new_memory(backend, (size_t)elements * sizeof *device.right),
                     .sigma = ex_new_memory(backend, (size_t)columns * sizeof *device.sigma),
                     .info = info,
                     .kept = ex_new_memory(backend, (size_t)blocks * sizeof *device.kept)};
  ex_check_cuda(hm_device_form(&device));
  decompose(r, cores, &device, info);
  ex_check_cuda(hm_device_keep(&device, r->eps));
  read_ranks(r, device.kept);
  place_results(r);
  r->results = ex_new_memory(backend, r->result_size * sizeof *r->results);
  size_t *at = ex_copy_to_backend(backend, r->result_at, (size_t)r->count * sizeof *at);
  ex_check_cuda(hm_device_put(&device, (const int64_t *)at, r->results));
  void *const memory[] = {cores_copy, device.left, device.right, device.sigma, info, device.kept, at};
  for (int i = 0; i < 7; i++) ex_free_memory(backend, memory[i]);
  free(cores);
}
#endif

static void truncate_all(recompression *r) {
  const double start = ex_seconds(), planned = r->stages->plan;
#if HAVE_CUDA
  if (r->backend->on_device) {
    truncate_on_device(r);
    hm_count_work(r->work, svd_work * r->chunk_work);
  }
#endif
  if (!r->backend->on_device) truncate_on_host(r);
  r->stages->svd += now_after(r->backend) - start - (r->stages->plan - planned);
}

/* --- the rest */

/* Replaces each member's core by Q times it. */
static void apply_factors(const recompression *r) {
  double **c = new_addresses(r, r->results, r->result_at);
  batchqr_batch batch = {.type = BATCHQR_D,
                         .sizes = BATCHQR_HOST_SIZES,
                         .count = r->count,
                         .m_array = r->rows,
                         .n_array = r->kept,
                         .k_array = r->ranks,
                         .side = BATCHQR_LEFT,
                         .trans = BATCHQR_NO_TRANS,
                         .a = {.layout = BATCHQR_POINTERS, .ld_array = r->rows},
                         .tau = {.layout = BATCHQR_POINTERS},
                         .c = {.layout = BATCHQR_POINTERS, .ld_array = r->rows}};
  batchqr_operands operands = {.a = r->a, .tau = r->tau_address, .c = c};
  run_batch(r, BATCHQR_ORMQR, &batch, &operands, "batched apply", r->stages->kernels[2], &r->stages->apply);
  free_addresses(r, c);
}

/* The results, in the host's memory. */
static double *download(const recompression *r) {
  if (!r->backend->on_device) return r->results;
  double start = ex_seconds();
  double *memory = ex_alloc(r->result_size, sizeof *memory);
  ex_copy_from_backend(r->backend, memory, r->results, r->result_size * sizeof *memory);
  ex_free_copy(r->backend, r->results);
  r->stages->download += ex_seconds() - start;
  return memory;
}

static factors finish(const recompression *r) {
  factors f = {.memory = download(r), .size = r->result_size, .at = r->result_at};
  f.ranks = ex_alloc((size_t)r->count / 2, sizeof *f.ranks);
  for (int64_t i = 0; i < r->count / 2; i++) {
    f.ranks[i] = r->kept[2 * i];
    r->stages->ranks += f.ranks[i];
  }
  free_addresses(r, r->tau_address);
  free_addresses(r, r->a);
  ex_free_memory(r->backend, r->tau);
  ex_free_copy(r->backend, r->factors);
  free(r->rows);
  free(r->ranks);
  free(r->kept);
  free(r->factor_at);
  free(r->tau_at);
  return f;
}

static factors recompress(const hm_chunk *chunk, const ex_backend *backend, double eps, hm_stages *stages,
                          hm_work *work) {
  recompression r = begin(chunk, backend, eps, stages, work);
  upload(&r);
  factor(&r);
  hm_count_work(work, qr_work * r.chunk_work);
  truncate_all(&r);
  apply_factors(&r);
  hm_count_work(work, apply_work * r.chunk_work);
  return finish(&r);
}

void hm_open_recompressor(hm_recompressor *r, const hm_settings *settings, hm_stages *stages,
                          hm_stages *peer_stages) {
  *r = (hm_recompressor){.compare = settings->compare,
                         .eps = truncation_share * settings->tol,
                         .stages = stages,
                         .peer_stages = peer_stages};
  ex_open_backend(&r->backend, settings->backend, settings->threads);
  if (!r->compare) return;
  if (!r->backend.on_device)
    ex_die(EX_BAD_INPUT, "--compare sets a GPU beside the CPU, and the backend is %s",
           batchqr_describe(r->backend.handle));
  ex_open_backend(&r->peer, BATCHQR_BACKEND_CPU, settings->threads);
}

void hm_close_recompressor(hm_recompressor *r) {
  ex_close_backend(&r->backend);
  ex_close_backend(&r->peer);
}

size_t hm_recompress(const hm_recompressor *r, const hm_chunk *chunk, hm_blocks *owner, hm_work *work) {
  const factors kept = recompress(chunk, &r->backend, r->eps, r->stages, work);
  if (r->compare) {
    const factors other = recompress(chunk, &r->peer, r->eps, r->peer_stages, NULL);
    free(other.memory);
    free(other.ranks);
    free(other.at);
  }
  for (int64_t i = 0; i < chunk->count; i++) {
    hm_block *block = chunk->blocks[i];
    block->rank = kept.ranks[i];
    block->u = kept.memory + kept.at[2 * i];
    block->v = kept.memory + kept.at[2 * i + 1];
  }
  hm_own(owner, kept.memory);
  free(kept.ranks);
  free(kept.at);
  return kept.size;
}
