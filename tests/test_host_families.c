/* SPDX-License-Identifier: BSD-3-Clause */
/* What is the CPU backend's alone: threads, what becomes of them, and the work that they share. */
#include "matgen.h"
#include "suite.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { M = 700, N = 640, RHS = 600 };

/* All that one member goes through, as bytes. */
typedef struct results {
  size_t bytes;
  char *a, *tau, *q, *c, *x;
} results;

static char *copy_of(const char *from, size_t bytes) {
  char *to = malloc(bytes);
  return memcpy(to, from, bytes);
}

static void expect_success(batchqr_handle_t handle, batchqr_status status) {
  ck_assert_msg(status == BATCHQR_SUCCESS, "%s", batchqr_error_message(handle));
}

static results work(batchqr_type type, int threads, int positive) {
  size_t size = bqr_type_bytes(type), bytes = (size_t)M * N * size, c_bytes = (size_t)M * RHS * size;
  batchqr_handle_t handle = memory_handle(
      BATCHQR_BACKEND_CPU, &(batchqr_options){.threads = threads, .positive_diagonal = positive});
  char *a = malloc(bytes), *c = malloc(c_bytes);
  matgen_fill(type, MATGEN_RANDOM, 1, M, N, a, M);
  matgen_fill(type, MATGEN_RANDOM, 2, M, RHS, c, M);
  results r = {bytes, copy_of(a, bytes), calloc(N, size), NULL, copy_of(c, c_bytes), copy_of(c, c_bytes)};
  batchqr_batch batch = {
      .type = type, .count = 1, .m = M, .n = N, .k = N, .a = {.ld = M}, .c = {.ld = M}, .tau = {.stride = N}};
  expect_success(handle, batch_geqrf(handle, &batch, r.a, r.tau, NULL));
  r.q = copy_of(r.a, bytes);
  expect_success(handle, batch_orgqr(handle, &batch, r.q, r.tau, NULL));
  batch.n = RHS;
  expect_success(handle,
                 batch_ormqr(handle, &batch, BATCHQR_LEFT, BATCHQR_CONJ_TRANS, r.a, r.tau, r.c, NULL));
  batch.n = N;
  batch.k = RHS;
  expect_success(handle, batch_gels(handle, &batch, BATCHQR_NO_TRANS, a, r.x, NULL, NULL));
  free(a), free(c);
  batchqr_destroy(handle);
  return r;
}

static void free_results(results *r) { free(r->a), free(r->tau), free(r->q), free(r->c), free(r->x); }

/* Pieces of a member are the same, however many threads share them. */
START_TEST(threads_do_not_matter) {
  for (int positive = 0; positive < 2; positive++) {
    results one = work((batchqr_type)_i, 1, positive), many = work((batchqr_type)_i, 3, positive);
    size_t c_bytes = (size_t)M * RHS * bqr_type_bytes((batchqr_type)_i);
    ck_assert_mem_eq(one.a, many.a, one.bytes);
    ck_assert_mem_eq(one.tau, many.tau, N * bqr_type_bytes((batchqr_type)_i));
    ck_assert_mem_eq(one.q, many.q, one.bytes);
    ck_assert_mem_eq(one.c, many.c, c_bytes);
    ck_assert_mem_eq(one.x, many.x, c_bytes);
    free_results(&one), free_results(&many);
  }
}
END_TEST

/* A child has none of its parent's threads. */
START_TEST(forked) {
  results before = work((batchqr_type)_i, 0, 0);
  pid_t child = fork();
  ck_assert_int_ge(child, 0);
  if (child == 0) {
    alarm(60);
    results after = work((batchqr_type)_i, 0, 0);
    _exit(memcmp(before.q, after.q, after.bytes) != 0);
  }
  int status;
  ck_assert_int_eq(waitpid(child, &status, 0), child);
  ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child ended with status %x",
                (unsigned)status);
  free_results(&before);
}
END_TEST

static size_t workspace_for(batchqr_type type, int n, int positive) {
  batchqr_handle_t handle =
      memory_handle(BATCHQR_BACKEND_CPU, &(batchqr_options){.threads = 1, .positive_diagonal = positive});
  batchqr_batch batch = {.type = type, .count = 1, .m = 32, .n = n, .a = {.ld = 32}};
  batchqr_plan_t plan;
  expect_success(handle, batchqr_plan_create(handle, BATCHQR_GEQRF, &batch, &plan));
  size_t bytes = batchqr_plan_workspace(plan);
  batchqr_plan_destroy(plan);
  batchqr_destroy(handle);
  return bytes;
}

/* Columns are worked on in pieces, so that work does not grow with them beyond what 32 bits count: but for an
 * exponent each, 2^27 columns need what 2^16 do. test_geqrf has such pieces run in guarded memory. */
START_TEST(work_is_bounded) {
  enum { FEW = 1 << 16, MANY = 1 << 27 };
  for (int positive = 0; positive < 2; positive++)
    ck_assert_uint_eq(workspace_for((batchqr_type)_i, MANY, positive) -
                          workspace_for((batchqr_type)_i, FEW, positive),
                      (MANY - FEW) * sizeof(int));
}
END_TEST

int main(void) {
  Suite *suite = suite_create("host_families");
  suite_add(suite, threads_do_not_matter);
  suite_add(suite, forked);
  suite_add(suite, work_is_bounded);
  return suite_run(suite);
}
