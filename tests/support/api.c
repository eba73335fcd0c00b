/* SPDX-License-Identifier: BSD-3-Clause */
#define _POSIX_C_SOURCE 200809L /* unsetenv */
#include "api.h"
#include "matgen.h"

#include <stdlib.h>

batchqr_backend backend;
batchqr_handle_t handle;
char *pool;

static void set_up(void) {
  unsetenv("BATCHQR_TUNING_FILE");
  handle = memory_handle(backend, NULL);
  pool = memory_alloc(backend, POOL_BYTES);
  memory_fill(backend, pool, 0, POOL_BYTES);
}

static void tear_down(void) {
  batchqr_destroy(handle);
  memory_free(backend, pool);
}

Suite *api_suite(const char *name) {
  backend = memory_backend();
  return suite_create(name);
}

TCase *api_case(Suite *suite, const char *name) {
  TCase *tests = tcase_create(name);
  tcase_add_checked_fixture(tests, set_up, tear_down);
  suite_add_tcase(suite, tests);
  return tests;
}

void expect(batchqr_status status, batchqr_status expected, const char *text) {
  ck_assert_msg(status == expected, "%s instead of %s: %s", batchqr_status_string(status),
                batchqr_status_string(expected), batchqr_error_message(handle));
  if (text) ck_assert_str_eq(batchqr_error_message(handle), text);
}

void expect_success(batchqr_status status) { expect(status, BATCHQR_SUCCESS, NULL); }

const batchqr_batch small = {.type = BATCHQR_D,
                             .count = 2,
                             .m = 4,
                             .n = 3,
                             .k = 3,
                             .a = {.ld = 4, .stride = 12},
                             .c = {.ld = 4, .stride = 12},
                             .r = {.ld = 4, .stride = 12},
                             .tau = {.stride = 3},
                             .range = {.stride = 2}};

const batchqr_batch tall = {.type = BATCHQR_D,
                            .count = 2,
                            .m = 300,
                            .n = 9,
                            .a = {.ld = 300, .stride = 2700},
                            .c = {.ld = 300, .stride = 2700},
                            .r = {.ld = 9, .stride = 81},
                            .range = {.stride = 2}};

operand_set make_set_of(batchqr_type type, uint64_t seed) {
  operand_set s = {.bytes = COUNT * STRIDE * bqr_type_bytes(type),
                   .tau_bytes = COUNT * STRIDE_TAU * bqr_type_bytes(type)};
  s.a0 = calloc(1, s.bytes);
  s.ah = malloc(s.bytes);
  s.qh = malloc(s.bytes);
  s.rh = malloc(s.bytes);
  s.tauh = malloc(s.tau_bytes);
  for (int k = 0; k < COUNT; k++)
    matgen_fill(type, MATGEN_RANDOM, seed + (uint64_t)k, M, N,
                s.a0 + (size_t)k * STRIDE * bqr_type_bytes(type), LDA);
  s.a = memory_clone(backend, s.a0, s.bytes);
  s.q = memory_clone(backend, s.a0, s.bytes);
  s.r = memory_clone(backend, s.a0, s.bytes);
  s.tau = memory_alloc(backend, s.tau_bytes);
  memory_fill(backend, s.tau, 0, s.tau_bytes);
  return s;
}

operand_set make_set(batchqr_type type) { return make_set_of(type, 0); }

void download(operand_set *s) {
  memory_download(backend, s->ah, s->a, s->bytes);
  memory_download(backend, s->qh, s->q, s->bytes);
  memory_download(backend, s->rh, s->r, s->bytes);
  memory_download(backend, s->tauh, s->tau, s->tau_bytes);
}

void free_set(operand_set *s) {
  char *const device[] = {s->a, s->q, s->r, s->tau}, *const host[] = {s->a0, s->ah, s->qh, s->rh, s->tauh};
  for (int i = 0; i < 4; i++) memory_free(backend, device[i]);
  for (int i = 0; i < 5; i++) free(host[i]);
}

batchqr_batch batch_of(batchqr_type type) {
  return (batchqr_batch){.type = type,
                         .count = COUNT,
                         .m = M,
                         .n = N,
                         .k = N,
                         .a = {.ld = LDA, .stride = STRIDE},
                         .c = {.ld = LDA, .stride = STRIDE},
                         .r = {.ld = LDA, .stride = STRIDE},
                         .tau = {.stride = STRIDE_TAU},
                         .range = {.stride = 2}};
}

batchqr_batch mixed_of(batchqr_type type) {
  static const int m[COUNT] = {9, M, 60}, n[COUNT] = {3, N, 20};
  batchqr_batch batch = batch_of(type);
  batch.sizes = BATCHQR_HOST_SIZES;
  batch.m_array = m;
  batch.n_array = n;
  return batch;
}
