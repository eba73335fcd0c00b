/* SPDX-License-Identifier: BSD-3-Clause */
/* The tests of several ranks, one of them in each process of MPI. BATCHQR_TEST_BACKEND says on what. */
#include "memory.h"
#include "ranks.h"
#include <batchqr/mpi.h>
#include <stdio.h>
#include <stdlib.h>

/* The functions of the communicator that TSQR does not use, with a message longer than what is staged. */
static void test_transfers(world *w) {
  enum { BYTES = 40 << 20 };
  const batchqr_communicator *c = w->communicator;
  unsigned char *host = memory_host(BYTES), *data = memory_alloc(w->backend, BYTES);
  for (int i = 0; i < BYTES; i++) host[i] = (unsigned char)(c->rank == 0 ? i % 251 : 0);
  memory_upload(w->backend, data, host, BYTES);
  expect_that(w, !c->broadcast(c->context, data, BYTES, 0, NULL), "broadcast: %s", c->message(c->context));
  if (c->size > 1 && c->rank == 0)
    expect_that(w, !c->receive(c->context, data, BYTES, c->size - 1, NULL), "receive: %s",
                c->message(c->context));
  if (c->size > 1 && c->rank == c->size - 1)
    expect_that(w, !c->send(c->context, data, BYTES, 0, NULL), "send: %s", c->message(c->context));
  memory_download(w->backend, host, data, BYTES);
  bool good = true;
  for (int i = 0; i < BYTES; i++) good = good && host[i] == i % 251;
  expect_that(w, good, "what was broadcast has changed");
  memory_free(w->backend, data);
  free(host);
}

int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  world w = {.backend = memory_backend()};
  batchqr_communicator *communicator = NULL, *hasty = NULL;
  if (batchqr_mpi_create(&communicator, MPI_COMM_WORLD, w.backend, BATCHQR_MPI_AUTO, 60) ||
      batchqr_mpi_create(&hasty, MPI_COMM_WORLD, w.backend, BATCHQR_MPI_AUTO, 0.1)) {
    printf("no communicator\n");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  w.communicator = communicator;
  w.handle = memory_handle(w.backend, &(batchqr_options){.threads = 1});
  w.reference = memory_handle(BATCHQR_BACKEND_CPU, &(batchqr_options){.threads = 1});
  test_routines(&w, w.backend == BATCHQR_BACKEND_CUDA);
  test_errors(&w);
  test_columns(&w, w.backend == BATCHQR_BACKEND_CUDA);
  test_columns_errors(&w);
  test_transfers(&w);
  test_absence(&w, hasty);
  int failures;
  MPI_Allreduce(&w.failures, &failures, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  if (communicator->rank == 0)
    printf("%d ranks, %d failures, results %016llx\n", communicator->size, failures,
           (unsigned long long)w.hash);
  batchqr_destroy(w.handle);
  batchqr_destroy(w.reference);
  batchqr_communicator_destroy(communicator);
  if (hasty->rank > 0) batchqr_communicator_destroy(hasty);
  MPI_Finalize();
  return failures > 0;
}
