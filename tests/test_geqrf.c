/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_geqrf(), as the planner sees fit. */
#include "inspect.h"
#include "suite.h"
#include "trial.h"

/* Every kind of matrix at m x n, in one uniform batch. */
static void all_kinds(batchqr_handle_t handle, batchqr_type type, int m, int n, bool positive) {
  trial t = trial_new(BATCHQR_GEQRF, type, MATGEN_NUM_KINDS);
  trial_fill_kinds(&t, m, n, 0);
  t.positive = positive;
  trial_once(&t, handle, TRIAL_CALL);
}

/* All sizes from 0 to 40 on the GPU, where the sizes of tiles matter; on the CPU a choice of them. */
static bool skips(int size) {
  return !suite_on_gpu() && !(size <= 3 || size == 8 || size == 17 || size == 32 || size == 33);
}

static void all_sizes(batchqr_type type, bool positive) {
  batchqr_options options = {.positive_diagonal = positive};
  batchqr_handle_t handle = memory_handle(memory_backend(), &options);
  for (int m = 0; m <= 40; m++)
    for (int n = 0; n <= 40; n++) {
      if (skips(m) || skips(n) || (positive && (m + n) % 3 == 1)) continue;
      all_kinds(handle, type, m, n, positive);
    }
  batchqr_destroy(handle);
}

START_TEST(small_sizes) { all_sizes((batchqr_type)_i, false); }
END_TEST

START_TEST(small_sizes_positive) { all_sizes((batchqr_type)_i, true); }
END_TEST

/* Sizes up to 3000, some kinds each. */
START_TEST(large_sizes) {
  static const int sizes[][2] = {{1, 3000},  {3000, 1},  {3000, 7},  {1000, 20},  {20, 1000},
                                 {257, 255}, {200, 300}, {600, 127}, {1000, 200}, {511, 513},
                                 {64, 2000}, {2999, 33}, {129, 128}};
  static const matgen_kind kinds[] = {MATGEN_RANDOM, MATGEN_COLUMN_SCALED, MATGEN_WORST, MATGEN_LARGEST,
                                      MATGEN_SUBNORMAL};
  static const int largest[SUITE_TYPES][2] = {{3000, 3000}, {3000, 2000}, {1500, 1500}, {2000, 700}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int num_sizes = (int)(sizeof sizes / sizeof *sizes), num_kinds = (int)(sizeof kinds / sizeof *kinds);
  for (int s = 0; s <= num_sizes; s++) {
    const int *size = s < num_sizes ? sizes[s] : largest[_i];
    bool small = size[0] * size[1] < 100000;
    if (s == num_sizes && !suite_on_gpu()) continue;
    trial t = trial_new(BATCHQR_GEQRF, (batchqr_type)_i, small ? num_kinds : 1);
    for (int i = 0; i < t.count; i++)
      t.members[i] =
          (trial_member){.m = size[0], .n = size[1], .kind = kinds[(i + s) % num_kinds], .seed = (uint64_t)s};
    trial_once(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Members so tall that their panels are trees: columns that are far from dependent, and others. */
START_TEST(tall_sizes) {
  static const int widths[] = {64, 200, 70};
  static const matgen_kind kinds[] = {
      MATGEN_RANDOM, MATGEN_ILL,   MATGEN_WORST,     MATGEN_ONES, MATGEN_ZERO_COLUMNS, MATGEN_RANK_DEFICIENT,
      MATGEN_WELL,   MATGEN_SIGNS, MATGEN_UNDERFLOW, MATGEN_HUGE, MATGEN_TINY,         MATGEN_LARGE_POWER};
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++) {
    trial t = trial_new(BATCHQR_GEQRF, (batchqr_type)_i, 1 + i % 2);
    for (int j = 0; j < t.count; j++)
      t.members[j] =
          (trial_member){.m = 17000 + i, .n = widths[i % 3], .kind = kinds[i], .seed = (uint64_t)j};
    trial_once(&t, handle, i == 0 ? TRIAL_GRAPH : TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Lone members whose panels are made in one go, and some for which that cannot be done. */
START_TEST(lone_members) {
  static const matgen_kind kinds[] = {MATGEN_RANDOM,         MATGEN_ILL,          MATGEN_WORST,
                                      MATGEN_RANK_DEFICIENT, MATGEN_ZERO_COLUMNS, MATGEN_COLUMN_SCALED,
                                      MATGEN_LARGEST,        MATGEN_SUBNORMAL};
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++) {
    const bool tall = i % 2 == 0; /* which tells how wide the blocks are that panels are part of */
    trial t = trial_new(BATCHQR_GEQRF, (batchqr_type)_i, 1);
    t.members[0] = (trial_member){
        .m = (tall ? 2700 : 1800) + i, .n = tall ? 400 : 600, .kind = kinds[i], .seed = (uint64_t)i};
    trial_once(&t, handle, i == 0 ? TRIAL_GRAPH : TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* A few members that share launches, with panels that clusters hold or read twice, and updates by as many
 * blocks. */
START_TEST(few_tall_members) {
  static const struct {
    const char *family, *variant;
    int m, n;
  } ways[] = {{"geqrf_large", "cols64.many", 2500, 100},
              {"geqrf_large", "cols64.many", 8300, 70},
              {"geqrf_blocked", "rows8192.blocks8", 7000, 70},
              {"geqrf_blocked", "rows16384.blocks8", 9000, 40}};
  static const matgen_kind kinds[] = {MATGEN_RANDOM,       MATGEN_ILL,       MATGEN_WORST,
                                      MATGEN_ZERO_COLUMNS, MATGEN_UNDERFLOW, MATGEN_RANK_DEFICIENT};
  enum { KINDS = sizeof kinds / sizeof *kinds };
  if (!suite_on_gpu()) return;
  for (int i = 0; i < 2 * (int)(sizeof ways / sizeof *ways); i++) {
    const bool positive = i % 2;
    if (!bqr_family_find(ways[i / 2].family)) continue;
    batchqr_options options = {.positive_diagonal = positive};
    batchqr_handle_t handle = memory_handle(memory_backend(), &options);
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GEQRF, ways[i / 2].family, ways[i / 2].variant),
                     BATCHQR_SUCCESS);
    trial t = trial_new(BATCHQR_GEQRF, (batchqr_type)_i, KINDS);
    t.positive = positive;
    for (int j = 0; j < KINDS; j++)
      t.members[j] =
          (trial_member){.m = ways[i / 2].m, .n = ways[i / 2].n, .kind = kinds[j], .seed = (uint64_t)(i + j)};
    trial_once(&t, handle, i == 0 ? TRIAL_GRAPH : TRIAL_CALL);
    batchqr_destroy(handle);
  }
}
END_TEST

/* More members than a grid has in one direction. */
START_TEST(many_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int layout = 0; layout < 2; layout++) {
    trial t = trial_new(BATCHQR_GEQRF, (batchqr_type)_i, 70000);
    for (int i = 0; i < t.count; i++)
      t.members[i] =
          (trial_member){.m = 2, .n = 2, .kind = (matgen_kind)(i % MATGEN_NUM_KINDS), .seed = (uint64_t)i};
    t.layout = (batchqr_layout)layout;
    trial_once(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* info of matrices whose first zero on the diagonal is known. */
START_TEST(info_values) {
  static const struct {
    matgen_kind kind;
    int m, n, info;
  } cases[] = {{MATGEN_ZERO, 5, 3, 1},         {MATGEN_ZERO, 3, 5, 1},      {MATGEN_ZERO_FIRST, 7, 4, 1},
               {MATGEN_ZERO_LAST, 7, 4, 4},    {MATGEN_ZERO_LAST, 4, 7, 0}, {MATGEN_IDENTITY, 6, 6, 0},
               {MATGEN_ZERO_LAST, 40, 33, 33}, {MATGEN_RANDOM, 9, 9, 0},    {MATGEN_ZERO, 0, 4, 0}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int count = (int)(sizeof cases / sizeof *cases);
  trial t = trial_new(BATCHQR_GEQRF, (batchqr_type)_i, count);
  for (int i = 0; i < count; i++)
    t.members[i] = (trial_member){.m = cases[i].m, .n = cases[i].n, .kind = cases[i].kind, .seed = 1};
  t.sizes = BATCHQR_HOST_SIZES;
  trial_build(&t);
  trial_run_and_judge(&t, handle, TRIAL_CALL);
  for (int i = 0; i < count; i++) ck_assert_int_eq(((int *)guard_at(&t.info, 1))[i], cases[i].info);
  trial_free(&t);
  batchqr_destroy(handle);
}
END_TEST

/* A NaN or an Inf spoils its own member alone. */
START_TEST(spoiled_members) {
  static const int sizes[][2] = {{1, 1}, {3, 2}, {17, 9}, {9, 17}, {40, 33}, {300, 40}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int s = 0; s < 6; s++) {
    trial t = trial_new(BATCHQR_GEQRF, (batchqr_type)_i, 20);
    trial_fill(&t, sizes[s][0], sizes[s][1], 0, 0);
    trial_spoil_some(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Nothing to do is done, with no data at all. */
START_TEST(nothing) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  batchqr_batch none = {
      .type = (batchqr_type)_i, .m = 5, .n = 3, .a = {.ld = 5, .stride = 15}, .tau = {.stride = 3}};
  batchqr_batch empty = {.type = (batchqr_type)_i, .count = 10, .m = 0, .n = 3, .a = {.ld = 1}};
  ck_assert_int_eq(batch_geqrf(handle, &none, NULL, NULL, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_geqrf(handle, &empty, NULL, NULL, NULL), BATCHQR_SUCCESS);
  trial t = trial_new(BATCHQR_GEQRF, (batchqr_type)_i, 10);
  for (int i = 0; i < t.count; i++) t.members[i] = (trial_member){.m = 0, .n = 3};
  trial_build(&t);
  trial_run_and_judge(&t, handle, TRIAL_CALL);
  t.no_info = true;
  trial_run_and_judge(&t, handle, TRIAL_CALL);
  trial_free(&t);
  batchqr_destroy(handle);
}
END_TEST

/* The typed wrappers do as batch_geqrf() does. */
static batchqr_status call_strided(batchqr_handle_t handle, batchqr_type type, int m, int n, void *a, int lda,
                                   int64_t stride, void *tau, int64_t stride_tau, int64_t count) {
  switch (type) {
  case BATCHQR_S:
    return batch_sgeqrf_strided(handle, m, n, a, lda, stride, tau, stride_tau, count);
  case BATCHQR_D:
    return batch_dgeqrf_strided(handle, m, n, a, lda, stride, tau, stride_tau, count);
  case BATCHQR_C:
    return batch_cgeqrf_strided(handle, m, n, a, lda, stride, tau, stride_tau, count);
  default:
    return batch_zgeqrf_strided(handle, m, n, a, lda, stride, tau, stride_tau, count);
  }
}

static batchqr_status call_pointers(batchqr_handle_t handle, batchqr_type type, int m, int n, void *a,
                                    int lda, void *tau, int64_t count) {
  switch (type) {
  case BATCHQR_S:
    return batch_sgeqrf(handle, m, n, a, lda, tau, count);
  case BATCHQR_D:
    return batch_dgeqrf(handle, m, n, a, lda, tau, count);
  case BATCHQR_C:
    return batch_cgeqrf(handle, m, n, a, lda, tau, count);
  default:
    return batch_zgeqrf(handle, m, n, a, lda, tau, count);
  }
}

START_TEST(typed_wrappers) {
  enum { M = 7, N = 5, LDA = 9, STRIDE = 50, STRIDE_TAU = 6, COUNT = 12 };
  batchqr_backend backend = memory_backend();
  batchqr_handle_t handle = memory_handle(backend, NULL);
  batchqr_type type = (batchqr_type)_i;
  size_t size = bqr_type_bytes(type), bytes = STRIDE * COUNT * size, tau_bytes = STRIDE_TAU * COUNT * size;
  int64_t places[COUNT], tau_places[COUNT];
  char *input = calloc(1, bytes), *results[3], *taus[3];
  for (int i = 0; i < COUNT; i++) {
    places[i] = i * STRIDE;
    tau_places[i] = i * STRIDE_TAU;
    matgen_fill(type, MATGEN_RANDOM, (uint64_t)i, M, N, input + places[i] * (int64_t)size, LDA);
  }
  for (int way = 0; way < 3; way++) {
    void *a = memory_clone(backend, input, bytes), *tau = memory_alloc(backend, tau_bytes);
    memory_fill(backend, tau, 0, tau_bytes);
    void *as = memory_pointers(backend, a, size, places, COUNT);
    void *ts = memory_pointers(backend, tau, size, tau_places, COUNT);
    batchqr_batch batch = {.type = type,
                           .count = COUNT,
                           .m = M,
                           .n = N,
                           .a = {.ld = LDA, .stride = STRIDE},
                           .tau = {.stride = STRIDE_TAU}};
    batchqr_status status = way == 0 ? batch_geqrf(handle, &batch, a, tau, NULL)
                            : way == 1
                                ? call_strided(handle, type, M, N, a, LDA, STRIDE, tau, STRIDE_TAU, COUNT)
                                : call_pointers(handle, type, M, N, as, LDA, ts, COUNT);
    ck_assert_msg(status == BATCHQR_SUCCESS, "%s", batchqr_error_message(handle));
    results[way] = malloc(bytes);
    taus[way] = malloc(tau_bytes);
    memory_download(backend, results[way], a, bytes);
    memory_download(backend, taus[way], tau, tau_bytes);
    ck_assert_mem_eq(results[way], results[0], bytes);
    ck_assert_mem_eq(taus[way], taus[0], tau_bytes);
    void *all[] = {a, tau, as, ts};
    for (int i = 0; i < 4; i++) memory_free(backend, all[i]);
  }
  ck_assert_mem_ne(results[0], input, bytes);
  for (int way = 0; way < 3; way++) free(results[way]), free(taus[way]);
  free(input);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("geqrf");
  suite_add(suite, small_sizes);
  suite_add(suite, small_sizes_positive);
  suite_add(suite, large_sizes);
  suite_add(suite, tall_sizes);
  suite_add(suite, lone_members);
  suite_add(suite, few_tall_members);
  suite_add(suite, many_members);
  suite_add(suite, info_values);
  suite_add(suite, spoiled_members);
  suite_add(suite, nothing);
  suite_add(suite, typed_wrappers);
  return suite_run(suite);
}
