/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of several ranks, one of them in a thread for each GPU. The arguments: GPUs at most; `columns`,
 * where the library has few families: of what is spread by columns alone. */
#include "inspect.h"
#include "matgen.h"
#include "memory.h"
#include "ranks.h"
#include <batchqr/nccl.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_GPUS = 8, NCCLS = 3 };

typedef struct thread {
  pthread_t thread;
  int rank, size, failures;
  bool columns; /* alone */
  uint64_t hash;
  ncclUniqueId *ids;
} thread;

static ncclComm_t nccl_new(const thread *t, int which, bool blocks) {
  ncclComm_t nccl = NULL;
  ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
  config.blocking = blocks;
  ncclResult_t code = ncclCommInitRankConfig(&nccl, t->size, t->ids[which], t->rank, &config);
  while (code == ncclInProgress && ncclCommGetAsyncError(nccl, &code) == ncclSuccess) sched_yield();
  if (code == ncclSuccess) return nccl;
  printf("rank %d: no ncclComm_t\n", t->rank);
  exit(3);
}

static batchqr_communicator *communicator_new(ncclComm_t nccl, double limit) {
  batchqr_communicator *communicator;
  if (!batchqr_nccl_create(&communicator, nccl, limit)) return communicator;
  printf("no communicator\n");
  exit(3);
}

/* An execute as a graph, against the same without one. Of one GPU alone: while a stream is captured, other
 * threads may not do all that ranks do. */
static void test_capture(world *w) {
  enum { M = 700, N = 600, NB = 128, BLOCKS = (N + NB - 1) / NB };
  enter_case(w, "a graph");
  const size_t bytes = sizeof(double) * M * N;
  double *host = memory_host(bytes), *direct = memory_host(bytes), *replayed = memory_host(bytes);
  matgen_fill(BATCHQR_D, MATGEN_RANDOM, 3, M, N, host, M);
  void *a = memory_clone(w->backend, host, bytes), *tau = memory_alloc(w->backend, sizeof(double[N]));
  int *info = memory_alloc(w->backend, sizeof(int[BLOCKS]));
  const batchqr_operands operands = {.a = a, .tau = tau, .info = info};
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_GEQRF, BATCHQR_D, M, N, 0, 1);
  batchqr_columns_t plan;
  batchqr_status status =
      batchqr_columns_create(w->handle, w->communicator, BATCHQR_GEQRF, &batch, NB, &plan);
  if (!status) status = batchqr_columns_execute(w->handle, plan, &operands);
  memory_download(w->backend, direct, a, bytes);
  memory_upload(w->backend, a, host, bytes);
  const batchqr_stream stream = memory_stream_new();
  batchqr_set_stream(w->handle, stream);
  memory_capture_begin(stream);
  if (!status) status = batchqr_columns_execute(w->handle, plan, &operands);
  memory_graph *graph = memory_capture_end(stream);
  expect_that(w, !status, "a graph: %s", batchqr_error_message(w->handle));
  memory_graph_launch(graph, stream);
  memory_download(w->backend, replayed, a, bytes);
  expect_that(w, !memcmp(direct, replayed, bytes), "a graph has another result");
  memory_graph_free(graph);
  batchqr_columns_destroy(plan);
  batchqr_set_stream(w->handle, NULL);
  memory_stream_free(stream);
  memory_free(w->backend, a);
  memory_free(w->backend, tau);
  memory_free(w->backend, info);
  free(host);
  free(direct);
  free(replayed);
}

static void *run(void *argument) {
  thread *t = argument;
  cudaSetDevice(t->rank);
  world w = {.backend = BATCHQR_BACKEND_CUDA};
  const ncclComm_t nccl = nccl_new(t, 0, true);
  batchqr_communicator *const communicator = communicator_new(nccl, 60);
  w.communicator = communicator;
  w.handle = memory_handle(w.backend, NULL);
  w.reference = memory_handle(BATCHQR_BACKEND_CPU, &(batchqr_options){.threads = 1});
  if (!t->columns) test_routines(&w, true);
  if (!t->columns) test_errors(&w);
  test_columns(&w, true);
  test_columns_errors(&w);
  if (t->size == 1 && bqr_handle_device(w.handle)->types >> BATCHQR_D & 1) test_capture(&w);
  batchqr_communicator *soon[2] = {NULL};
  for (int blocks = 0; blocks < 2 && !t->columns; blocks++) {
    const ncclComm_t hasty = nccl_new(t, 1 + blocks, blocks);
    soon[blocks] = communicator_new(hasty, 2);
    test_absence(&w, soon[blocks]);
    ncclCommAbort(hasty); /* before anything frees memory, which waits for the device */
  }
  batchqr_destroy(w.handle);
  batchqr_destroy(w.reference);
  for (int i = 0; i < 2; i++) batchqr_communicator_destroy(soon[i]);
  batchqr_communicator_destroy(communicator);
  ncclCommDestroy(nccl);
  t->failures = w.failures;
  t->hash = w.hash;
  return NULL;
}

int main(int argc, char **argv) {
  int size = 0;
  if (cudaGetDeviceCount(&size) != cudaSuccess || size == 0) {
    printf("skipped: no GPU\n");
    return MEMORY_EXIT_SKIPPED;
  }
  if (argc > 1 && atoi(argv[1]) < size) size = atoi(argv[1]);
  if (size > MOST_GPUS) size = MOST_GPUS;
  ncclUniqueId ids[NCCLS];
  thread threads[MOST_GPUS];
  for (int i = 0; i < NCCLS; i++)
    if (ncclGetUniqueId(&ids[i]) != ncclSuccess) return 3;
  int failures = 0;
  for (int r = 0; r < size; r++) {
    threads[r] =
        (thread){.rank = r, .size = size, .columns = argc > 2 && !strcmp(argv[2], "columns"), .ids = ids};
    pthread_create(&threads[r].thread, NULL, run, &threads[r]);
  }
  for (int r = 0; r < size; r++) {
    pthread_join(threads[r].thread, NULL);
    failures += threads[r].failures;
  }
  printf("%d GPUs, %d failures, results %016llx\n", size, failures, (unsigned long long)threads[0].hash);
  return failures > 0;
}
