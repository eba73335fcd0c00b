/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_ormqr(), as the planner sees fit. */
#include "reflectors.h"
#include "suite.h"
#include "trial.h"

#include <math.h>
#include <string.h>

/* The sides and transpositions, four of each type: for real types CONJ_TRANS and TRANS must both do. */
enum { WAYS = 4 };

static trial new_trial(batchqr_type type, int64_t count, int way) {
  trial t = trial_new(BATCHQR_ORMQR, type, count);
  batchqr_trans trans = way == 1 || type_is_complex(type) ? BATCHQR_CONJ_TRANS : BATCHQR_TRANS;
  t.side = way < 2 ? BATCHQR_LEFT : BATCHQR_RIGHT;
  t.trans = way % 2 == 0 ? BATCHQR_NO_TRANS : trans;
  return t;
}

/* C of every kind, m x n, and k reflectors. */
static void all_kinds(batchqr_handle_t handle, batchqr_type type, int way, int m, int n, int k) {
  trial t = new_trial(type, MATGEN_NUM_KINDS, way);
  trial_fill_kinds(&t, m, n, k);
  trial_once(&t, handle, TRIAL_CALL);
}

/* All p from 0 to 40 and many n and k on the GPU, a choice on the CPU, p the order of Q. */
START_TEST(small_sizes) {
  static const int others[] = {1, 3, 8, 17, 32, 40, 2, 5, 33};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int step = suite_on_gpu() ? 1 : 6, turn = 0;
  for (int p = 0; p <= 40; p += p < 4 ? 1 : step)
    for (int k = 0; k <= p; k += k < 2 ? 1 : suite_on_gpu() ? 3 : 8, turn++) {
      int way = turn % WAYS, other = turn % 13 == 0 ? 0 : others[turn % 9];
      all_kinds(handle, (batchqr_type)_i, way, way < 2 ? p : other, way < 2 ? other : p, k);
    }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(large_sizes) {
  static const int sizes[][3] = {{3000, 1, 1},    {3000, 7, 20},    {1000, 20, 9},   {257, 100, 255},
                                 {600, 127, 127}, {1000, 200, 150}, {511, 300, 200}, {2999, 33, 32},
                                 {129, 1, 128},   {300, 1000, 3}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  int num_sizes = (int)(sizeof sizes / sizeof *sizes);
  for (int s = 0; s < num_sizes; s++) {
    for (int way = s % 2; way < WAYS; way += 2) {
      int p = sizes[s][0], other = sizes[s][1];
      trial t = new_trial((batchqr_type)_i, p * other < 100000 ? 3 : 1, way);
      trial_fill(&t, way < 2 ? p : other, way < 2 ? other : p, sizes[s][2], (uint64_t)s);
      trial_once(&t, handle, TRIAL_CALL);
    }
  }
  batchqr_destroy(handle);
}
END_TEST

/* Lone members that are large: reflectors in wide blocks, some of which are not full, and leading dimensions
 * that are the members' own. */
START_TEST(lone_members) {
  static const matgen_kind kinds[] = {
      MATGEN_RANDOM,         MATGEN_ILL,     MATGEN_WORST,     MATGEN_COLUMN_SCALED,
      MATGEN_RANK_DEFICIENT, MATGEN_LARGEST, MATGEN_SUBNORMAL, MATGEN_ZERO_COLUMNS};
  if (!suite_on_gpu()) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++) {
    const int way = i % WAYS, p = 1300 + i, other = 900 - i;
    trial t = new_trial((batchqr_type)_i, 1, way);
    t.members[0] = (trial_member){.m = way < 2 ? p : other,
                                  .n = way < 2 ? other : p,
                                  .k = 800 - i % 3 * 123,
                                  .kind = kinds[i],
                                  .seed = (uint64_t)i};
    t.sizes = i % 3 == 0 ? BATCHQR_UNIFORM : BATCHQR_HOST_SIZES;
    t.ld_vary = i % 3 != 0;
    trial_once(&t, handle, i < 4 ? TRIAL_GRAPH : i % 2 ? TRIAL_PLAN : TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(many_members) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < WAYS; way += 3) {
    trial t = new_trial((batchqr_type)_i, 70000, way);
    trial_fill(&t, 2, 2, 1, 0);
    trial_once(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* V is constant: members may share it, and it keeps its bits. */
START_TEST(shared_vectors) {
  static const int sizes[][3] = {{5, 3, 2}, {33, 17, 33}, {40, 40, 20}, {200, 10, 50}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int s = 0; s < 4; s++)
    for (int way = 0; way < WAYS; way++) {
      int p = sizes[s][0], other = sizes[s][1];
      trial t = new_trial((batchqr_type)_i, 50, way);
      trial_fill(&t, way < 2 ? p : other, way < 2 ? other : p, sizes[s][2], (uint64_t)s);
      t.shared = true;
      trial_once(&t, handle, TRIAL_CALL);
    }
  batchqr_destroy(handle);
}
END_TEST

/* A NaN or an Inf in V, tau or C spoils its own member alone. */
START_TEST(spoiled_members) {
  static const int sizes[][3] = {{1, 1, 1},     {3, 2, 1}, {17, 9, 9}, {40, 33, 20},
                                 {300, 40, 40}, {2, 3, 2}, {9, 5, 9}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int way = 0; way < WAYS; way++) {
      int p = sizes[s][0], other = sizes[s][1];
      trial t = new_trial((batchqr_type)_i, 20, way);
      trial_fill(&t, way < 2 ? p : other, way < 2 ? other : p, sizes[s][2], 0);
      trial_spoil_some(&t, handle, TRIAL_CALL);
    }
  batchqr_destroy(handle);
}
END_TEST

/* --- lines of C far apart */

/* Multiplies line l, a column (left) or a row, by 2^exponents[l]. */
static void scale_lines(batchqr_type type, bool left, int m, int n, char *c, const int *exponents, int sign) {
  int parts = type_is_complex(type) ? 2 : 1;
  for (int j = 0; j < n; j++)
    for (int i = 0; i < m * parts; i++) {
      int e = sign * exponents[left ? j : i / parts];
      char *at = c + bqr_real_bytes(type) * ((size_t)j * (size_t)m * (size_t)parts + (size_t)i);
      if (type_is_double(type))
        *(double *)at = ldexp(*(double *)at, e);
      else
        *(float *)at = ldexpf(*(float *)at, e);
    }
}

/* The largest difference between the same line of x and y, relative to y's largest entry, next to eps. */
static double line_ratio(batchqr_type type, bool left, int m, int n, int line, const char *x, const char *y) {
  int parts = type_is_complex(type) ? 2 : 1, length = (left ? m : n) * parts;
  double most = 0.0, largest = 0.0;
  for (int l = 0; l < length; l++) {
    size_t at = left ? (size_t)line * (size_t)length + (size_t)l
                     : ((size_t)(l / parts) * (size_t)m + (size_t)line) * (size_t)parts + (size_t)(l % parts);
    double a =
        type_is_double(type) ? ((const double *)(const void *)x)[at] : ((const float *)(const void *)x)[at];
    double b =
        type_is_double(type) ? ((const double *)(const void *)y)[at] : ((const float *)(const void *)y)[at];
    most = fmax(most, fabs(a - b));
    largest = fmax(largest, fabs(b));
  }
  return most / (largest * type_eps(type));
}

/* C := op(Q) C on the backend under test, packed. */
static void apply(batchqr_handle_t handle, const batchqr_batch *batch, const char *v, const char *tau,
                  char *c, size_t bytes) {
  void *on_device = memory_clone(memory_backend(), c, bytes);
  ck_assert_int_eq(batch_ormqr(handle, batch, batch->side, BATCHQR_CONJ_TRANS, v, tau, on_device, NULL),
                   BATCHQR_SUCCESS);
  memory_sync(memory_backend());
  memory_download(memory_backend(), c, on_device, bytes);
  memory_free(memory_backend(), on_device);
}

/* Lines of C are independent of one another: one that is tiny beside a huge one keeps its digits. Each must
 * be what it is in a C whose lines are alike. */
static void check_lines_apart(batchqr_handle_t handle, batchqr_type type, batchqr_side side, int rows,
                              int lines) {
  bool left = side == BATCHQR_LEFT;
  int m = left ? rows : lines, n = left ? lines : rows, k = rows / 2, far = type_is_double(type) ? 963 : 99;
  size_t bytes = (size_t)m * (size_t)n * bqr_type_bytes(type),
         v_bytes = (size_t)rows * (size_t)k * bqr_type_bytes(type);
  char *v = malloc(v_bytes), *tau = malloc((size_t)k * bqr_type_bytes(type)), *x = malloc(bytes),
       *y = malloc(bytes);
  int *exponents = calloc((size_t)lines, sizeof *exponents);
  for (int l = 0; l < lines; l++) exponents[l] = l % 3 == 0 ? far : l % 3 == 1 ? -far : 0;
  reflectors_fill(type, MATGEN_RANDOM, 1, rows, k, v, rows, tau);
  matgen_fill(type, MATGEN_RANDOM, 2, m, n, x, m);
  memcpy(y, x, bytes);
  scale_lines(type, left, m, n, x, exponents, 1);
  void *v_there = memory_clone(memory_backend(), v, v_bytes);
  void *tau_there = memory_clone(memory_backend(), tau, (size_t)k * bqr_type_bytes(type));
  batchqr_batch batch = {
      .type = type, .count = 1, .m = m, .n = n, .k = k, .side = side, .a = {.ld = rows}, .c = {.ld = m}};
  apply(handle, &batch, v_there, tau_there, x, bytes);
  apply(handle, &batch, v_there, tau_there, y, bytes);
  scale_lines(type, left, m, n, x, exponents, -1);
  for (int l = 0; l < lines; l++) {
    double ratio = line_ratio(type, left, m, n, l, x, y);
    ck_assert_msg(ratio < 30.0 * rows, "%s: line %d of %d lost its digits: %g", left ? "left" : "right", l,
                  lines, ratio);
  }
  memory_free(memory_backend(), v_there);
  memory_free(memory_backend(), tau_there);
  free(v), free(tau), free(x), free(y), free(exponents);
}

START_TEST(lines_far_apart) {
  static const int sizes[][2] = {{4, 3}, {20, 7}, {33, 40}, {70, 300}, {300, 20}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
    for (int side = BATCHQR_LEFT; side <= BATCHQR_RIGHT; side++)
      check_lines_apart(handle, (batchqr_type)_i, (batchqr_side)side, sizes[s][0], sizes[s][1]);
  batchqr_destroy(handle);
}
END_TEST

/* Without a C there is nothing that a NaN in V or tau could spoil, beside members that have one. */
START_TEST(no_lines) {
  static const int rows[] = {4, 70, 300, 1200};
  enum { LINES = 50, COUNT = 6 };
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t s = 0; s < sizeof rows / sizeof *rows; s++) {
    const int m = rows[s], k = bqr_min(m, 20), sizes_m[COUNT] = {m, m, m, m, m, m},
              sizes_n[COUNT] = {0, LINES, 0, LINES, 0, 0};
    const size_t each = (size_t)m * bqr_type_bytes(type);
    void *v = memory_alloc(memory_backend(), each * (size_t)k),
         *c = memory_alloc(memory_backend(), each * LINES * COUNT);
    int *there = memory_alloc(memory_backend(), 3 * COUNT * sizeof(int)), info[COUNT];
    memory_fill(memory_backend(), v, 0xff, each * (size_t)k); /* NaNs */
    memory_fill(memory_backend(), c, 0, each * LINES * COUNT);
    memory_upload(memory_backend(), there, sizes_m, sizeof sizes_m);
    memory_upload(memory_backend(), there + COUNT, sizes_n, sizeof sizes_n);
    batchqr_batch batch = {
        .type = type, .count = COUNT, .m = m, .n = LINES, .k = k, .a = {.ld = m}, .c = {.ld = m}};
    batch.c.stride = (int64_t)m * LINES;
    batch.sizes = BATCHQR_DEVICE_SIZES, batch.m_array = there, batch.n_array = there + COUNT;
    ck_assert_int_eq(batch_ormqr(handle, &batch, BATCHQR_LEFT, BATCHQR_NO_TRANS, v, v, c, there + 2 * COUNT),
                     BATCHQR_SUCCESS);
    memory_sync(memory_backend());
    memory_download(memory_backend(), info, there + 2 * COUNT, sizeof info);
    for (int i = 0; i < COUNT; i++)
      ck_assert_msg(info[i] == (sizes_n[i] ? BATCHQR_INFO_NONFINITE : 0), "member %d of %d x %d: info %d", i,
                    m, sizes_n[i], info[i]);
    memory_free(memory_backend(), v), memory_free(memory_backend(), c), memory_free(memory_backend(), there);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(nothing) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  batchqr_batch none = {
      .type = (batchqr_type)_i, .m = 5, .n = 3, .k = 3, .a = {.ld = 5}, .c = {.ld = 5, .stride = 15}};
  batchqr_batch empty = {
      .type = (batchqr_type)_i, .count = 10, .m = 4, .n = 0, .k = 0, .a = {.ld = 4}, .c = {.ld = 4}};
  ck_assert_int_eq(batch_ormqr(handle, &none, BATCHQR_LEFT, BATCHQR_NO_TRANS, NULL, NULL, NULL, NULL),
                   BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_ormqr(handle, &empty, BATCHQR_LEFT, BATCHQR_NO_TRANS, NULL, NULL, NULL, NULL),
                   BATCHQR_SUCCESS);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("ormqr");
  suite_add(suite, small_sizes);
  suite_add(suite, large_sizes);
  suite_add(suite, lone_members);
  suite_add(suite, many_members);
  suite_add(suite, shared_vectors);
  suite_add(suite, spoiled_members);
  suite_add(suite, lines_far_apart);
  suite_add(suite, no_lines);
  suite_add(suite, nothing);
  return suite_run(suite);
}
