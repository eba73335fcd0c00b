/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_trsm(): layouts, kinds of sizes and of matrices, zeros and NaNs, right-hand sides far apart, the R of
 * a factorization. */
#include "suite.h"
#include "trial.h"

#include <math.h>
#include <stdlib.h>

static const int sizes[][3] = {{1, 1, 1},    {3, 3, 0},   {3, 0, 2},       {5, 3, 2},
                               {8, 8, 8},    {9, 7, 1},   {33, 32, 5},     {40, 33, 17},
                               {64, 64, 33}, {70, 65, 1}, {130, 100, 300}, {300, 129, 2}};
enum { SIZES = sizeof sizes / sizeof *sizes };

static trial kinds(int s, int way, batchqr_type type) {
  trial t = trial_new(BATCHQR_TRSM, type, MATGEN_NUM_KINDS);
  trial_fill_kinds(&t, sizes[s][0], sizes[s][1], sizes[s][2]);
  t.trans = way / 6 % 2 ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
  t.layout = (batchqr_layout)(way % 2);
  t.own_layouts = way == 5;
  t.sizes = (batchqr_sizes)(way / 2 % 3);
  t.ld_vary = way >= 6;
  return t;
}

START_TEST(all_ways) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 12; way++)
    for (int s = 0; s < SIZES; s++) {
      if (sizes[s][1] > 64 && (way + s) % 3) continue; /* these take long to judge */
      trial t = kinds(s, way, (batchqr_type)_i);
      for (int64_t i = 1; i < t.count && t.sizes != BATCHQR_UNIFORM; i++) {
        trial_member *x = &t.members[i];
        x->n = rng_int((uint64_t)i, 0, 0, x->n);
        x->m = rng_int((uint64_t)i, 1, x->n, x->m);
        x->k = rng_int((uint64_t)i, 2, 0, x->k);
      }
      trial_once(&t, handle, s % 2 ? TRIAL_CALL : suite_on_gpu() && s % 4 ? TRIAL_GRAPH : TRIAL_PLAN);
    }
  batchqr_destroy(handle);
}
END_TEST

/* A NaN or an Inf in R or in B, in matrices of every kind, singular ones too. */
START_TEST(spoiled_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int s = 0; s < SIZES; s++) {
    if (sizes[s][1] == 0) continue;
    trial t = kinds(s, s, (batchqr_type)_i);
    trial_spoil_some(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(many_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  trial t = trial_new(BATCHQR_TRSM, (batchqr_type)_i, 70001);
  trial_fill(&t, 4, 3, 2, 1);
  t.judged = 2000;
  trial_once(&t, handle, TRIAL_CALL);
  batchqr_destroy(handle);
}
END_TEST

START_TEST(wrong_sizes) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  trial t = trial_new(BATCHQR_TRSM, (batchqr_type)_i, 40);
  trial_fill(&t, 5, 3, 2, 1);
  t.sizes = BATCHQR_DEVICE_SIZES;
  t.ld_vary = true;
  trial_claim_wrongly(&t);
  trial_once(&t, handle, TRIAL_CALL);
  batchqr_destroy(handle);
}
END_TEST

/* --- numbers known beforehand, on the host and the backend */

static double get(batchqr_type type, const void *x, int64_t i) {
  const int64_t at = type_is_complex(type) ? 2 * i : i;
  return type_is_double(type) ? ((const double *)x)[at] : (double)((const float *)x)[at];
}

static void set(batchqr_type type, void *x, int64_t i, double value) {
  const int64_t at = type_is_complex(type) ? 2 * i : i;
  if (type_is_double(type))
    ((double *)x)[at] = value;
  else
    ((float *)x)[at] = (float)value;
}

typedef struct solved {
  double c[12]; /* real parts */
  int info[2];
} solved;

/* Solves with `count` members, n x n and R shared, k right-hand sides each. */
static solved solve(batchqr_type type, int n, int k, int64_t count, const void *r, const void *b) {
  const batchqr_backend backend = memory_backend();
  batchqr_handle_t handle = memory_handle(backend, NULL);
  const size_t bytes = bqr_type_bytes(type), of_b = (size_t)(n * k) * (size_t)count * bytes;
  void *a = memory_clone(backend, r, (size_t)(n * n) * bytes), *c = memory_clone(backend, b, of_b);
  int *info = memory_alloc(backend, 2 * sizeof(int));
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_TRSM, type, n, n, k, count);
  batch.a.stride = 0;
  const batchqr_status status = batch_trsm(handle, &batch, BATCHQR_NO_TRANS, a, c, info);
  ck_assert_msg(!status, "%s", batchqr_error_message(handle));
  memory_sync(backend);
  solved x = {{0}, {0}};
  void *host = memory_host(of_b);
  memory_download(backend, host, c, of_b);
  for (int64_t i = 0; i < n * k * count; i++) x.c[i] = get(type, host, i);
  free(host);
  memory_download(backend, x.info, info, sizeof x.info);
  memory_free(backend, a), memory_free(backend, c), memory_free(backend, info);
  batchqr_destroy(handle);
  return x;
}

/* Right-hand sides near both ends of the range, in one member: x = (b0 - b1) / 2, b1 / 2. */
START_TEST(right_hand_sides_far_apart) {
  const batchqr_type type = (batchqr_type)_i;
  const double scales[] = {type_is_double(type) ? 0x1p1000 : 0x1p120, 1,
                           type_is_double(type) ? 0x1p-990 : 0x1p-110};
  double r[8] = {0}, b[24] = {0};
  set(type, r, 0, 2), set(type, r, 2, 2), set(type, r, 3, 2);
  set(type, r, 1, NAN); /* below the diagonal */
  for (int i = 0; i < 6; i++)
    set(type, b, 2 * i, 7 * scales[i % 3]), set(type, b, 2 * i + 1, 3 * scales[i % 3]);
  const solved x = solve(type, 2, 3, 2, r, b);
  for (int i = 0; i < 6; i++) {
    ck_assert_double_eq(x.c[2 * i], 2 * scales[i % 3]);
    ck_assert_double_eq(x.c[2 * i + 1], 1.5 * scales[i % 3]);
  }
  ck_assert(x.info[0] == 0 && x.info[1] == 0);
}
END_TEST

/* An R whose diagonal has no reciprocal: B = R (1, 1). */
START_TEST(tiny_diagonal) {
  const batchqr_type type = (batchqr_type)_i;
  const double tiny = type_is_double(type) ? 0x1p-1070 : 0x1p-145;
  double r[8] = {0}, b[8] = {0};
  set(type, r, 0, 3 * tiny), set(type, r, 2, tiny), set(type, r, 3, 5 * tiny);
  for (int i = 0; i < 2; i++) set(type, b, 2 * i, 4 * tiny), set(type, b, 2 * i + 1, 5 * tiny);
  const solved x = solve(type, 2, 1, 2, r, b);
  for (int i = 0; i < 4; i++) ck_assert_double_eq(x.c[i], 1);
}
END_TEST

/* An Inf on R's diagonal alone would leave X finite. */
START_TEST(infinite_diagonal) {
  const batchqr_type type = (batchqr_type)_i;
  double r[2] = {0}, b[4] = {0};
  set(type, r, 0, INFINITY), set(type, b, 0, 1), set(type, b, 1, 1);
  const solved x = solve(type, 1, 1, 2, r, b);
  ck_assert(x.info[0] == BATCHQR_INFO_NONFINITE && x.info[1] == BATCHQR_INFO_NONFINITE);
  ck_assert(isnan(x.c[0]) && isnan(x.c[1]));
}
END_TEST

/* What people do with batch_geqrf(): R x = Q^H b, by the same batch. */
START_TEST(of_a_factorization) {
  enum { M = 7, N = 3, COUNT = 5 };
  const batchqr_backend backend = memory_backend();
  batchqr_handle_t handle = memory_handle(backend, NULL);
  double a0[COUNT * M * N], b0[COUNT * M], x[COUNT * M], y[COUNT * M];
  for (int i = 0; i < COUNT * M * N; i++) a0[i] = rng_uniform(5, (uint64_t)i) - 0.5;
  for (int i = 0; i < COUNT * M; i++) b0[i] = rng_uniform(6, (uint64_t)i);
  void *a = memory_clone(backend, a0, sizeof a0), *b = memory_clone(backend, b0, sizeof b0);
  void *tau = memory_alloc(backend, COUNT * N * sizeof(double));
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_GELS, BATCHQR_D, M, N, 1, COUNT), of_c = batch;
  of_c.n = 1, of_c.k = N;
  batch.tau.stride = of_c.tau.stride = N;
  ck_assert_int_eq(batch_geqrf(handle, &batch, a, tau, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_ormqr(handle, &of_c, BATCHQR_LEFT, BATCHQR_TRANS, a, tau, b, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_trsm(handle, &batch, BATCHQR_NO_TRANS, a, b, NULL), BATCHQR_SUCCESS);
  memory_sync(backend);
  memory_download(backend, x, b, sizeof x);
  memory_free(backend, a), memory_free(backend, b);
  a = memory_clone(backend, a0, sizeof a0), b = memory_clone(backend, b0, sizeof b0);
  ck_assert_int_eq(batch_gels(handle, &batch, BATCHQR_NO_TRANS, a, b, NULL, NULL), BATCHQR_SUCCESS);
  memory_sync(backend);
  memory_download(backend, y, b, sizeof y);
  for (int i = 0; i < COUNT; i++)
    for (int j = 0; j < N; j++) ck_assert_double_eq_tol(x[i * M + j], y[i * M + j], 1e-12);
  memory_free(backend, a), memory_free(backend, b), memory_free(backend, tau);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("trsm");
  suite_add(suite, all_ways);
  suite_add(suite, spoiled_members);
  suite_add(suite, many_members);
  suite_add(suite, wrong_sizes);
  suite_add(suite, right_hand_sides_far_apart);
  suite_add(suite, tiny_diagonal);
  suite_add(suite, infinite_diagonal);
  TCase *factored = tcase_create("of_a_factorization");
  tcase_add_test(factored, of_a_factorization);
  suite_add_tcase(suite, factored);
  return suite_run(suite);
}
