/* SPDX-License-Identifier: BSD-3-Clause */
/* When executes over ranks meet and wait: with a communicator of two ranks of which there is one, and which
 * notes what it is asked for. */
#include "api.h"
#include "memory.h"

#include <batchqr/ranks.h>
#include <string.h>

enum { ROWS = 40, COLS = 18, NB = 5 }; /* four blocks */

static char calls[64]; /* a: an agreement, m: a message, w: a wait */
static bool fails;     /* agreements and waits do */
static bool dumb;      /* the other rank cannot send */

static void note(char what) {
  const size_t length = strlen(calls);
  if (length + 1 < sizeof calls) calls[length] = what;
}

static batchqr_status all_gather(void *context, const void *send, void *receive, size_t bytes,
                                 batchqr_stream stream) {
  (void)context, (void)send, (void)receive, (void)bytes, (void)stream;
  note('m');
  return BATCHQR_SUCCESS;
}

static batchqr_status broadcast(void *context, void *data, size_t bytes, int root, batchqr_stream stream) {
  (void)context, (void)data, (void)bytes, (void)root, (void)stream;
  note('m');
  return BATCHQR_SUCCESS;
}

static batchqr_status agree(void *context, const void *mine, void *all, size_t bytes) {
  (void)context;
  note('a');
  for (int r = 0; r < 2; r++) memcpy((char *)all + (size_t)r * bytes, mine, bytes);
  if (dumb) *((char *)all + bytes) = 2;
  return fails ? BATCHQR_RANK_ERROR : BATCHQR_SUCCESS;
}

static batchqr_status wait_for(void *context, batchqr_stream stream) {
  (void)context, (void)stream;
  note('w');
  return fails ? BATCHQR_RANK_ERROR : BATCHQR_SUCCESS;
}

static const char *message(void *context) {
  (void)context;
  return "the other one has failed";
}

static batchqr_communicator two_ranks(void) {
  return (batchqr_communicator){.size = 2,
                                .backend = backend,
                                .device = -1,
                                .all_gather = all_gather,
                                .broadcast = broadcast,
                                .agree = agree,
                                .wait = wait_for,
                                .message = message};
}

static void *zeros(size_t elements) {
  void *x = memory_alloc(backend, elements * sizeof(double));
  memory_fill(backend, x, 0, elements * sizeof(double));
  return x;
}

static void expect_calls(const char *expected) {
  ck_assert_str_eq(calls, expected);
  memset(calls, 0, sizeof calls);
}

START_TEST(first_execute_waits_for_rows) {
  const batchqr_communicator ranks = two_ranks();
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_GEQR_R, BATCHQR_D, ROWS, COLS, 0, 1);
  const batchqr_operands operands = {.a = zeros(ROWS * COLS), .r = zeros(COLS * COLS)};
  batchqr_tsqr_t plan;
  memset(calls, 0, sizeof calls);
  expect_success(batchqr_tsqr_create(handle, &ranks, BATCHQR_GEQR_R, &batch, &plan));
  expect_calls("aa");
  fails = true;
  expect(batchqr_tsqr_execute(handle, plan, &operands), BATCHQR_RANK_ERROR, "the other one has failed");
  expect_calls("a");
  fails = false;
  dumb = true;
  expect(batchqr_tsqr_execute(handle, plan, &operands), BATCHQR_RANK_ERROR, "a rank could not send its part");
  expect_calls("aa");
  dumb = false;
  expect(batchqr_tsqr_execute(handle, plan, NULL), BATCHQR_INVALID_ARGUMENT, "operands is NULL");
  expect_calls("amwa");
  expect_success(batchqr_tsqr_execute(handle, plan, &operands));
  expect_calls("amwa");
  expect_success(batchqr_tsqr_execute(handle, plan, &operands));
  expect_calls("m");
  batchqr_tsqr_destroy(plan);
  memory_free(backend, operands.a);
  memory_free(backend, operands.r);
}
END_TEST

START_TEST(first_execute_waits_for_columns) {
  const batchqr_communicator ranks = two_ranks();
  const batchqr_batch batch = batchqr_batch_packed(BATCHQR_GELS, BATCHQR_D, ROWS, COLS, 1, 1);
  const batchqr_operands operands = {.a = zeros(ROWS * COLS), .c = zeros(ROWS)};
  batchqr_columns_t plan;
  memset(calls, 0, sizeof calls);
  expect_success(batchqr_columns_create(handle, &ranks, BATCHQR_GELS, &batch, NB, &plan));
  expect_calls("aa");
  fails = true;
  expect(batchqr_columns_execute(handle, plan, &operands), BATCHQR_RANK_ERROR, "the other one has failed");
  expect_calls("a");
  fails = false;
  expect_success(batchqr_columns_execute(handle, plan, &operands));
  expect_calls("amwamwamwamw" /* Q^H, */ "amwamwamwamw" /* R's blocks */ "a");
  expect_success(batchqr_columns_execute(handle, plan, &operands));
  expect_calls("mmmmmmmm");
  batchqr_columns_destroy(plan);
  memory_free(backend, operands.a);
  memory_free(backend, operands.c);
}
END_TEST

int main(void) {
  Suite *suite = api_suite("ranks");
  TCase *tc = api_case(suite, "ranks");
  tcase_add_test(tc, first_execute_waits_for_rows);
  tcase_add_test(tc, first_execute_waits_for_columns);
  return suite_run(suite);
}
