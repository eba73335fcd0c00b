/* SPDX-License-Identifier: BSD-3-Clause */
/* Times what several GPUs do together against one of them, in one run: a thread for each GPU, NCCL between
 * them. A row of CSV for each case and number of GPUs: wall-clock times of the slowest rank, from one barrier
 * of the ranks to the next, and how much faster that is than one GPU; 0 where one GPU is left out. The
 * argument: which cases are wanted, batch, tsqr or columns; none: all. */
#define _GNU_SOURCE /* pthread_barrier_t */
#include <batchqr/nccl.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST_GPUS = 8, REPEATS = 9 };

/* What is dealt to ranks. */
typedef enum bench_spread { MEMBERS, ROWS, COLUMNS } bench_spread;

static const char *const spreads[] = {"batch", "tsqr", "columns"};

typedef struct bench_case {
  bench_spread spread;
  batchqr_op op;
  batchqr_type type;
  int64_t m; /* of the whole */
  int n;
  int64_t count;
  batchqr_compute compute;
  int nb, repeats;
  int fewest; /* GPUs that have room for it, and time */
} bench_case;

static const bench_case cases[] = {
    {MEMBERS, BATCHQR_GEQRF, BATCHQR_D, 512, 512, 1000, BATCHQR_COMPUTE_AUTO, 0, REPEATS, 1},
    {MEMBERS, BATCHQR_GEQRF, BATCHQR_S, 512, 512, 1000, BATCHQR_COMPUTE_AUTO, 0, REPEATS, 1},
    {ROWS, BATCHQR_GEQR_R, BATCHQR_D, 16 << 20, 64, 1, BATCHQR_COMPUTE_AUTO, 0, REPEATS, 1},
    {ROWS, BATCHQR_GEQR_R, BATCHQR_S, 16 << 20, 64, 1, BATCHQR_COMPUTE_AUTO, 0, REPEATS, 1},
    {ROWS, BATCHQR_GEQR_R, BATCHQR_D, 1 << 20, 64, 1, BATCHQR_COMPUTE_AUTO, 0, REPEATS, 1},
    {ROWS, BATCHQR_QR, BATCHQR_D, 16 << 20, 64, 1, BATCHQR_COMPUTE_AUTO, 0, REPEATS, 1},
    {ROWS, BATCHQR_GEQRF, BATCHQR_D, 16 << 20, 64, 1, BATCHQR_COMPUTE_AUTO, 0, REPEATS, 1},
    {ROWS, BATCHQR_GEQR_R, BATCHQR_D, 1 << 20, 512, 1, BATCHQR_COMPUTE_AUTO, 0, REPEATS, 1},
    {COLUMNS, BATCHQR_GEQRF, BATCHQR_D, 16384, 16384, 1, BATCHQR_COMPUTE_NATIVE, 512, 5, 1},
    {COLUMNS, BATCHQR_GEQRF, BATCHQR_D, 32768, 32768, 1, BATCHQR_COMPUTE_NATIVE, 512, 3, 1},
    {COLUMNS, BATCHQR_GEQRF, BATCHQR_D, 32768, 32768, 1, BATCHQR_COMPUTE_EMULATED, 1024, 3, 1},
    {COLUMNS, BATCHQR_GEQRF, BATCHQR_S, 32768, 32768, 1, BATCHQR_COMPUTE_EMULATED, 512, 3, 1},
    {COLUMNS, BATCHQR_GEQRF, BATCHQR_S, 32768, 32768, 1, BATCHQR_COMPUTE_EMULATED, 1024, 3, 1},
    {COLUMNS, BATCHQR_GEQRF, BATCHQR_S, 32768, 32768, 1, BATCHQR_COMPUTE_HALF, 1024, 3, 1},
    {COLUMNS, BATCHQR_GELS, BATCHQR_D, 32768, 16384, 1, BATCHQR_COMPUTE_AUTO, 512, 3, 1},
    {COLUMNS, BATCHQR_GEQRF, BATCHQR_D, 65536, 65536, 1, BATCHQR_COMPUTE_AUTO, 1024, 1, 2},
};
enum { NUM_CASES = sizeof cases / sizeof cases[0] };

static const char *wanted; /* NULL: all */
static pthread_barrier_t barrier;
static double times[MOST_GPUS][REPEATS]; /* by rank */
static double alone[NUM_CASES];

typedef struct rank {
  pthread_t thread;
  int rank, size;
  ncclUniqueId *id;
  batchqr_handle_t handle;
  batchqr_communicator *communicator;
  cudaStream_t stream;
} rank;

_Noreturn static void die(const rank *r, const char *what) {
  printf("rank %d: %s: %s\n", r->rank, what, batchqr_error_message(r->handle));
  fflush(stdout);
  exit(3);
}

static void *allocate(const rank *r, size_t bytes) {
  void *memory;
  if (cudaMalloc(&memory, bytes > 0 ? bytes : 1) != cudaSuccess) die(r, "no memory");
  return memory;
}

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static size_t type_bytes(batchqr_type type) { return type == BATCHQR_S ? 4 : type == BATCHQR_Z ? 16 : 8; }

/* Random numbers, by way of one block of the host that is put down many times; a prime number of elements, so
 * that columns differ. */
static void fill(const rank *r, const bench_case *c, void *data, size_t elements) {
  enum { BLOCK = 7999993 };
  const size_t size = type_bytes(c->type);
  char *host = malloc(BLOCK * size);
  if (!host) die(r, "no host memory");
  uint64_t state = 88172645463325252u + (uint64_t)r->rank * 7777777;
  for (size_t i = 0; i < BLOCK; i++) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    const double x = (double)(int64_t)state / 9.3e18;
    if (size == 4)
      ((float *)(void *)host)[i] = (float)x;
    else
      ((double *)(void *)host)[i] = x;
  }
  cudaMemcpy(data, host, (elements < BLOCK ? elements : BLOCK) * size, cudaMemcpyHostToDevice);
  for (size_t at = BLOCK; at < elements; at += BLOCK)
    cudaMemcpy((char *)data + at * size, data, (elements - at < BLOCK ? elements - at : BLOCK) * size,
               cudaMemcpyDeviceToDevice);
  free(host);
}

/* What a rank does again and again. */
typedef struct work {
  batchqr_plan_t plan;
  batchqr_tsqr_t tsqr;
  batchqr_columns_t columns;
  batchqr_operands operands;
  void *pristine, *workspace;
  void *right; /* GELS: B and X */
  size_t bytes, workspace_bytes;
} work;

/* Of each rank, of its own plan. */
static void plan_alone(const rank *r, const bench_case *c, const batchqr_batch *batch, work *w) {
  if (batchqr_plan_create(r->handle, c->op, batch, &w->plan)) die(r, "plan");
  w->workspace_bytes = batchqr_plan_workspace(w->plan);
  w->workspace = allocate(r, w->workspace_bytes);
}

static void plan_members(const rank *r, const bench_case *c, batchqr_batch *batch, work *w) {
  int *rank_of = malloc((size_t)c->count * sizeof *rank_of);
  if (!rank_of || batchqr_split(r->handle, c->op, batch, r->size, rank_of, NULL)) die(r, "split");
  batch->count = 0;
  for (int64_t i = 0; i < c->count; i++) batch->count += rank_of[i] == r->rank;
  free(rank_of);
  plan_alone(r, c, batch, w);
}

static void plan_rows(const rank *r, const bench_case *c, batchqr_batch *batch, work *w) {
  batch->m = batch->a.ld = batch->c.ld = (int)(c->m / r->size);
  batch->a.stride = batch->c.stride = (int64_t)batch->m * c->n;
  if (batchqr_tsqr_create(r->handle, r->communicator, c->op, batch, &w->tsqr)) die(r, "tsqr");
}

/* On one GPU, what it does without others. */
static void plan_columns(const rank *r, const bench_case *c, batchqr_batch *batch, work *w) {
  const int own = batchqr_columns_count(c->n, c->nb, r->rank, r->size);
  if (r->size == 1) {
    plan_alone(r, c, batch, w);
  } else {
    if (batchqr_columns_create(r->handle, r->communicator, c->op, batch, c->nb, &w->columns))
      die(r, "columns");
    batch->a.stride = c->m * own;
  }
}

static work work_new(const rank *r, const bench_case *c) {
  enum { RIGHT = 1 };
  work w = {.plan = NULL};
  const size_t size = type_bytes(c->type), n = (size_t)c->n;
  batchqr_batch batch = batchqr_batch_packed(c->op, c->type, (int)c->m, c->n, RIGHT, c->count);
  batchqr_set_compute(r->handle, c->compute);
  if (c->spread == MEMBERS) plan_members(r, c, &batch, &w);
  if (c->spread == ROWS) plan_rows(r, c, &batch, &w);
  if (c->spread == COLUMNS) plan_columns(r, c, &batch, &w);
  const size_t elements = (size_t)batch.a.stride * (size_t)batch.count;
  w.bytes = elements * size;
  w.pristine = allocate(r, w.bytes);
  fill(r, c, w.pristine, elements);
  w.operands = (batchqr_operands){.a = allocate(r, w.bytes)};
  w.operands.c = w.operands.a;
  if (c->op == BATCHQR_GELS) {
    w.right = w.operands.c = allocate(r, (size_t)c->m * RIGHT * size);
    cudaMemcpy(w.right, w.pristine, (size_t)c->m * RIGHT * size, cudaMemcpyDeviceToDevice);
  }
  w.operands.tau = allocate(r, n * (size_t)c->count * size);
  w.operands.r = c->op == BATCHQR_GEQR_R || c->op == BATCHQR_QR ? allocate(r, n * n * size) : NULL;
  return w;
}

static void work_do(const rank *r, const work *w) {
  const batchqr_operands *o = &w->operands;
  const batchqr_status status =
      w->tsqr      ? batchqr_tsqr_execute(r->handle, w->tsqr, o)
      : w->columns ? batchqr_columns_execute(r->handle, w->columns, o)
                   : batchqr_plan_execute(r->handle, w->plan, o, w->workspace, w->workspace_bytes);
  if (status) die(r, "execute");
}

static void work_free(work *w) {
  batchqr_plan_destroy(w->plan);
  batchqr_tsqr_destroy(w->tsqr);
  batchqr_columns_destroy(w->columns);
  void *all[] = {w->pristine, w->workspace, w->operands.a, w->operands.tau, w->operands.r, w->right};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) cudaFree(all[i]);
}

static int ascending(const void *x, const void *y) {
  const double a = *(const double *)x, b = *(const double *)y;
  return (a > b) - (a < b);
}

static void report(const rank *r, int index, const work *w) {
  static const char *const ops[] = {"geqrf", "orgqr", "ormqr", "qr", "geqr_r", "gels"}, *const modes[] = {
                                                                                            "auto", "native",
                                                                                            "emulated",
                                                                                            "half"};
  const bench_case *c = &cases[index];
  double all[REPEATS];
  for (int i = 0; i < c->repeats; i++) {
    all[i] = 0;
    for (int j = 0; j < r->size; j++) all[i] = fmax(all[i], times[j][i]);
  }
  qsort(all, (size_t)c->repeats, sizeof *all, ascending);
  const double median = all[c->repeats / 2];
  if (r->size == 1) alone[index] = median;
  printf("%s,%s,%s,%c,%lld,%d,%lld,%d,%d,%.4f,%.4f,%.4f,%.3f,%.0f\n", spreads[c->spread], ops[c->op],
         modes[c->compute], "sdcz"[c->type], (long long)c -> m, c -> n, (long long)c -> count, c -> nb,
         r -> size, median, all[0], all[c->repeats - 1], alone[index] / median,
         1e-6 * (double)w -> bytes * r -> size / median);
  fflush(stdout);
}

static void run_case(const rank *r, int index) {
  const bench_case *c = &cases[index];
  if (r->size < c->fewest || (wanted && strcmp(wanted, spreads[c->spread]) != 0)) return;
  work w = work_new(r, c);
  for (int i = c->repeats == REPEATS ? -2 : -1; i < c->repeats; i++) {
    cudaMemcpyAsync(w.operands.a, w.pristine, w.bytes, cudaMemcpyDeviceToDevice, r->stream);
    cudaStreamSynchronize(r->stream);
    pthread_barrier_wait(&barrier);
    const double begin = now();
    work_do(r, &w);
    cudaStreamSynchronize(r->stream);
    if (i >= 0) times[r->rank][i] = now() - begin;
  }
  pthread_barrier_wait(&barrier);
  if (r->rank == 0) report(r, index, &w);
  work_free(&w);
  pthread_barrier_wait(&barrier);
}

static void *run(void *argument) {
  rank *r = argument;
  ncclComm_t nccl;
  cudaSetDevice(r->rank);
  cudaStreamCreateWithFlags(&r->stream, cudaStreamNonBlocking);
  if (batchqr_create(&r->handle, &(batchqr_options){.backend = BATCHQR_BACKEND_CUDA})) die(r, "handle");
  batchqr_set_stream(r->handle, r->stream);
  if (ncclCommInitRank(&nccl, r->size, *r->id, r->rank) != ncclSuccess ||
      batchqr_nccl_create(&r->communicator, nccl, 60))
    die(r, "communicator");
  for (int i = 0; i < NUM_CASES; i++) run_case(r, i);
  batchqr_communicator_destroy(r->communicator);
  ncclCommDestroy(nccl);
  batchqr_destroy(r->handle);
  cudaStreamDestroy(r->stream);
  return NULL;
}

int main(int argc, char **argv) {
  int gpus = 0;
  wanted = argc > 1 ? argv[1] : NULL;
  if (cudaGetDeviceCount(&gpus) != cudaSuccess || gpus == 0) {
    printf("skipped: no GPU\n");
    return 77;
  }
  if (gpus > MOST_GPUS) gpus = MOST_GPUS;
  printf("case,routine,compute,type,m,n,count,nb,gpus,ms_median,ms_min,ms_max,speedup,gbps\n");
  for (int size = 1; size <= gpus; size *= 2) {
    ncclUniqueId id;
    rank ranks[MOST_GPUS];
    if (ncclGetUniqueId(&id) != ncclSuccess) return 3;
    pthread_barrier_init(&barrier, NULL, (unsigned)size);
    for (int i = 0; i < size; i++) {
      ranks[i] = (rank){.rank = i, .size = size, .id = &id};
      pthread_create(&ranks[i].thread, NULL, run, &ranks[i]);
    }
    for (int i = 0; i < size; i++) pthread_join(ranks[i].thread, NULL);
    pthread_barrier_destroy(&barrier);
  }
  return 0;
}
