/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of several ranks, one of them in a thread for each GPU. The arguments: GPUs at most. */
#include "memory.h"
#include "ranks.h"
#include <batchqr/nccl.h>
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST_GPUS = 8 };

typedef struct thread {
  pthread_t thread;
  int rank, size, failures;
  uint64_t hash;
  ncclUniqueId *ids;
} thread;

static ncclComm_t nccl_new(const thread *t, int which) {
  ncclComm_t nccl;
  if (ncclCommInitRank(&nccl, t->size, t->ids[which], t->rank) == ncclSuccess) return nccl;
  printf("rank %d: no ncclComm_t\n", t->rank);
  exit(3);
}

static batchqr_communicator *communicator_new(ncclComm_t nccl, double limit) {
  batchqr_communicator *communicator;
  if (!batchqr_nccl_create(&communicator, nccl, limit)) return communicator;
  printf("no communicator\n");
  exit(3);
}

static void *run(void *argument) {
  thread *t = argument;
  cudaSetDevice(t->rank);
  world w = {.backend = BATCHQR_BACKEND_CUDA};
  const ncclComm_t nccl = nccl_new(t, 0), hasty = nccl_new(t, 1);
  batchqr_communicator *const communicator = communicator_new(nccl, 60), *const soon =
                                                                             communicator_new(hasty, 2);
  w.communicator = communicator;
  w.handle = memory_handle(w.backend, NULL);
  w.reference = memory_handle(BATCHQR_BACKEND_CPU, &(batchqr_options){.threads = 1});
  test_routines(&w, true);
  test_errors(&w);
  test_columns(&w, true);
  test_columns_errors(&w);
  test_absence(&w, soon);
  ncclCommAbort(hasty); /* before anything frees memory, which waits for the device */
  batchqr_destroy(w.handle);
  batchqr_destroy(w.reference);
  batchqr_communicator_destroy(soon);
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
  ncclUniqueId ids[2];
  thread threads[MOST_GPUS];
  if (ncclGetUniqueId(&ids[0]) != ncclSuccess || ncclGetUniqueId(&ids[1]) != ncclSuccess) return 3;
  int failures = 0;
  for (int r = 0; r < size; r++) {
    threads[r] = (thread){.rank = r, .size = size, .ids = ids};
    pthread_create(&threads[r].thread, NULL, run, &threads[r]);
  }
  for (int r = 0; r < size; r++) {
    pthread_join(threads[r].thread, NULL);
    failures += threads[r].failures;
  }
  printf("%d GPUs, %d failures, results %016llx\n", size, failures, (unsigned long long)threads[0].hash);
  return failures > 0;
}
