/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that disagree, that fail, or that do not come: every one is to get a clear error. */
#include "memory.h"
#include "ranks.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 20, N = 4, COUNT = 3 };

static batchqr_batch batch_of(void) {
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_QR, BATCHQR_D, M, N, 0, COUNT);
  return batch;
}

static void expect_text(world *w, const char *what, batchqr_status status, batchqr_status expected,
                        const char *text) {
  const char *found = batchqr_error_message(w->handle);
  expect_that(w, status == expected, "%s: %s (%s)", what, batchqr_status_string(status), found);
  expect_that(w, status == BATCHQR_SUCCESS || strstr(found, text) != NULL, "%s: \"%s\" without \"%s\"", what,
              found, text);
}

/* All ranks call with a batch that differs on rank 1; expected of rank 1, and of the others. */
static void disagree(world *w, const char *what, batchqr_op op, batchqr_batch batch, batchqr_status of_one,
                     const char *text_of_one, batchqr_status of_others, const char *text_of_others) {
  batchqr_tsqr_t plan;
  const bool one = w->communicator->rank == 1;
  const batchqr_status status = batchqr_tsqr_create(w->handle, w->communicator, op, &batch, &plan);
  expect_text(w, what, status, one ? of_one : of_others, one ? text_of_one : text_of_others);
  expect_that(w, (plan != NULL) == (status == BATCHQR_SUCCESS), "%s: a plan after an error, or none", what);
  batchqr_tsqr_destroy(plan);
}

static void test_disagreement(world *w) {
  const batchqr_status no = BATCHQR_RANK_ERROR, invalid = BATCHQR_INVALID_ARGUMENT;
  const bool one = w->communicator->rank == 1;
  batchqr_batch batch = batch_of();
  disagree(w, "op", one ? BATCHQR_GEQR_R : BATCHQR_QR, batch, no, "rank 1 has op = 4, and rank 0 3", no,
           "rank 1 has op = 4, and rank 0 3");
  batch.n -= one;
  disagree(w, "n", BATCHQR_QR, batch, no, "rank 1 has batch.n = 3, and rank 0 4", no,
           "rank 1 has batch.n = 3");
  batch = batch_of();
  batch.type = one ? BATCHQR_S : BATCHQR_D;
  disagree(w, "type", BATCHQR_QR, batch, no, "rank 1 has batch.type = 0", no, "rank 1 has batch.type = 0");
  batch = batch_of();
  batch.a.ld -= one;
  disagree(w, "lda", BATCHQR_QR, batch, invalid, "batch.a.ld", no, "rank 1 failed: batch.a.ld");
  batch = batch_of();
  batch.keep_a = one;
  disagree(w, "keep_a", BATCHQR_QR, batch, BATCHQR_UNSUPPORTED, "keep_a", no, "rank 1 failed: batch.keep_a");
  batch = batch_of();
  batch.m = one;
  disagree(w, "a rank of one row", BATCHQR_QR, batch, BATCHQR_SUCCESS, "", BATCHQR_SUCCESS, "");
  batch = batch_of();
  batch.r.ld = one ? N - 1 : N;
  batch.m = one ? 2 : M; /* R of rank 1's rows alone would be so small */
  disagree(w, "ldr", BATCHQR_QR, batch, invalid, "batch.r.ld = 3", no, "rank 1 failed: batch.r.ld = 3");
  disagree(w, "an operation", BATCHQR_SYEVD, batch, BATCHQR_UNSUPPORTED, "op = 9", BATCHQR_UNSUPPORTED,
           "op = 9");
}

/* A communicator that says of itself that it carries another memory, on rank 1 alone. */
static void test_wrong_device(world *w) {
  batchqr_communicator wrong = *w->communicator;
  const bool one = wrong.rank == 1, cpu = w->backend == BATCHQR_BACKEND_CPU;
  if (one && cpu) wrong.backend = BATCHQR_BACKEND_CUDA;
  if (one && !cpu) wrong.device += 1;
  const batchqr_batch batch = batch_of();
  batchqr_tsqr_t plan;
  const batchqr_status status = batchqr_tsqr_create(w->handle, &wrong, BATCHQR_QR, &batch, &plan);
  expect_text(w, "device", status, one ? BATCHQR_INVALID_ARGUMENT : BATCHQR_RANK_ERROR,
              one ? "the communicator" : "rank 1 failed: the communicator");
  expect_text(
      w, "no handle", batchqr_tsqr_create(one ? NULL : w->handle, w->communicator, BATCHQR_QR, &batch, &plan),
      one ? BATCHQR_INVALID_ARGUMENT : BATCHQR_RANK_ERROR, one ? "" : "rank 1 failed: handle is NULL");
}

typedef struct memory {
  double *a, *r;
  int *info;
} memory;

static memory memory_of(world *w, int spoiled) {
  double *host = memory_host(sizeof(double[COUNT * M * N]));
  for (int i = 0; i < COUNT * M * N; i++) host[i] = sin(i + 1000 * w->communicator->rank);
  if (spoiled >= 0) host[spoiled * M * N + 5] = NAN;
  const memory x = {memory_clone(w->backend, host, sizeof(double[COUNT * M * N])),
                    memory_clone(w->backend, host, sizeof(double[COUNT * N * N])),
                    memory_alloc(w->backend, sizeof(int[COUNT]))};
  free(host);
  return x;
}

static void memory_release(world *w, memory x) {
  memory_free(w->backend, x.a);
  memory_free(w->backend, x.r);
  memory_free(w->backend, x.info);
}

/* A rank without A: the others learn of it from info. */
static void test_operands(world *w) {
  const batchqr_batch batch = batch_of();
  const bool one = w->communicator->rank == 1;
  const memory x = memory_of(w, -1);
  const batchqr_operands operands = {.a = one ? NULL : x.a, .c = x.a, .r = x.r, .info = x.info};
  batchqr_tsqr_t plan;
  expect_text(w, "plan", batchqr_tsqr_create(w->handle, w->communicator, BATCHQR_QR, &batch, &plan),
              BATCHQR_SUCCESS, "");
  const batchqr_status status = batchqr_tsqr_execute(w->handle, plan, &operands);
  expect_text(w, "no A", status, one ? BATCHQR_INVALID_ARGUMENT : BATCHQR_SUCCESS, "operands.a is NULL");
  expect_text(w, "wait", batchqr_wait(w->handle, w->communicator), BATCHQR_SUCCESS, "");
  int info[COUNT];
  memory_download(w->backend, info, x.info, sizeof info);
  for (int i = 0; i < COUNT && !one; i++)
    expect_that(w, info[i] == BATCHQR_INFO_NONFINITE, "info is %d though rank 1 failed", info[i]);
  batchqr_tsqr_destroy(plan);
  memory_release(w, x);
}

/* A NaN in one rank's rows of one member: the others come out as ever. */
static void test_nan(world *w) {
  const batchqr_batch batch = batch_of();
  const memory good = memory_of(w, -1),
               bad = memory_of(w, w->communicator->rank == w->communicator->size - 1 ? 1 : -1);
  double r[2][COUNT * N * N], q[2][COUNT * M * N];
  int info[2][COUNT];
  for (int i = 0; i < 2; i++) {
    const memory x = i ? bad : good;
    const batchqr_operands operands = {.a = x.a, .c = x.a, .r = x.r, .info = x.info};
    expect_text(w, "NaN", over_ranks(w, BATCHQR_QR, &batch, &operands), BATCHQR_SUCCESS, "");
    memory_download(w->backend, r[i], x.r, sizeof r[i]);
    memory_download(w->backend, q[i], x.a, sizeof q[i]);
    memory_download(w->backend, info[i], x.info, sizeof info[i]);
    memory_release(w, x);
  }
  for (int i = 0; i < COUNT; i++) {
    expect_that(w, info[0][i] == 0 && info[1][i] == (i == 1 ? BATCHQR_INFO_NONFINITE : 0),
                "info of %d is %d, %d", i, info[0][i], info[1][i]);
    const bool same = !memcmp(&r[0][i * N * N], &r[1][i * N * N], sizeof(double[N * N])) &&
                      !memcmp(&q[0][i * M * N], &q[1][i * M * N], sizeof(double[M * N]));
    expect_that(w, same || i == 1, "member %d is not as without a NaN in another one", i);
  }
}

void test_errors(world *w) {
  enter_case(w, "rows, what goes wrong");
  if (w->communicator->size < 2) return;
  test_disagreement(w);
  test_wrong_device(w);
  test_operands(w);
  test_nan(w);
}

void test_absence(world *w, const batchqr_communicator *communicator) {
  enter_case(w, "a rank that does not come");
  const batchqr_batch batch = batch_of();
  batchqr_tsqr_t plan;
  if (communicator->size < 2 || communicator->rank == 0) return;
  batchqr_status status = batchqr_tsqr_create(w->handle, communicator, BATCHQR_QR, &batch, &plan);
  expect_text(w, "rank 0 does not come", status, BATCHQR_RANK_ERROR, "not all ranks have come");
  status = batchqr_tsqr_create(w->handle, communicator, BATCHQR_QR, &batch, &plan);
  expect_text(w, "again", status, BATCHQR_RANK_ERROR, "failed in an earlier call");
}
