/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_gels(), a few systems: beside LAPACK, info, typed wrappers, nothing to do. */
#include "inspect.h"
#include "residual.h"
#include "suite.h"
#include "trial.h"

#include <lapacke.h>
#include <math.h>
#include <string.h>

/* --- beside LAPACK */

#define GELS(letter, cast)                                                                                   \
  LAPACKE_##letter##gels(LAPACK_COL_MAJOR, trans, m, n, k, (cast)a, bqr_max(1, m), (cast)b,                  \
                         bqr_max(1, bqr_max(m, n)))

static int lapack_gels(batchqr_type type, bool adjoint, int m, int n, int k, void *a, void *b) {
  char trans = !adjoint ? 'N' : type_is_complex(type) ? 'C' : 'T';
  switch (type) {
  case BATCHQR_S:
    return GELS(s, float *);
  case BATCHQR_D:
    return GELS(d, double *);
  case BATCHQR_C:
    return GELS(c, lapack_complex_float *);
  default:
    return GELS(z, lapack_complex_double *);
  }
}

static double number(batchqr_type type, const void *x, int64_t i) {
  return type_is_double(type) ? ((const double *)x)[i] : ((const float *)x)[i];
}

enum { A_MOST = 60 * 60, B_MOST = 60 * 4 };
typedef struct one_system {
  batchqr_type type;
  int m, n, k, rows; /* rows: of B */
  double a[2 * A_MOST], b[2 * B_MOST];
} one_system;

static one_system make_system(batchqr_type type, matgen_kind kind, int m, int n, int k) {
  one_system s = {.type = type, .m = m, .n = n, .k = k, .rows = bqr_max(m, n)};
  matgen_fill(type, kind, 5, m, n, s.a, m);
  matgen_fill(type, kind, 6, s.rows, k, s.b, s.rows);
  return s;
}

/* Solves in place; returns info. */
static int solve(batchqr_handle_t handle, one_system *s, batchqr_trans trans) {
  batchqr_backend backend = memory_backend();
  void *a = memory_clone(backend, s->a, sizeof s->a), *b = memory_clone(backend, s->b, sizeof s->b);
  int info = 77, *info_there = memory_clone(backend, &info, sizeof info);
  batchqr_batch batch = {
      .type = s->type, .count = 1, .m = s->m, .n = s->n, .k = s->k, .a = {.ld = s->m}, .c = {.ld = s->rows}};
  ck_assert_int_eq(batch_gels(handle, &batch, trans, a, b, NULL, info_there), BATCHQR_SUCCESS);
  memory_download(backend, s->b, b, sizeof s->b);
  memory_download(backend, &info, info_there, sizeof info);
  memory_free(backend, a);
  memory_free(backend, b);
  memory_free(backend, info_there);
  return info;
}

/* Solutions are those of xGELS, to roundings times the condition number, which is 2. */
START_TEST(solutions_are_lapacks) {
  static const int sizes[][2] = {{1, 1}, {40, 9}, {9, 40}, {30, 30}, {60, 35}, {35, 60}};
  static const matgen_kind kinds[] = {MATGEN_WELL, MATGEN_OVERFLOW, MATGEN_UNDERFLOW};
  batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int c = 0; c < 36; c++) {
    const int *size = sizes[c / 6];
    bool adjoint = c % 2;
    one_system ours = make_system(type, kinds[c / 2 % 3], size[0], size[1], 3), theirs = ours;
    ck_assert_int_eq(solve(handle, &ours, adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS), 0);
    ck_assert_int_eq(lapack_gels(type, adjoint, ours.m, ours.n, ours.k, theirs.a, theirs.b), 0);
    double error = 0, norm = 0;
    int parts = type_is_complex(type) ? 2 : 1, x_rows = parts * (adjoint ? ours.m : ours.n);
    for (int j = 0; j < ours.k; j++)
      for (int i = 0; i < x_rows; i++) {
        int64_t at = (int64_t)j * ours.rows * parts + i;
        error = fmax(error, fabs(number(type, ours.b, at) - number(type, theirs.b, at)));
        norm = fmax(norm, fabs(number(type, theirs.b, at)));
      }
    ck_assert_msg(error <= 60 * type_eps(type) * norm, "%c %d x %d, adjoint %d, %s: error %g of %g",
                  type_letter(type), ours.m, ours.n, adjoint, matgen_name(kinds[c / 2 % 3]), error, norm);
  }
  batchqr_destroy(handle);
}
END_TEST

/* x must be 2^e y. */
static void expect_scaled(batchqr_type type, const void *x, const void *y, int count, int e) {
  double error = 0, norm = 0;
  for (int i = 0; i < count; i++) {
    error = fmax(error, fabs(ldexp(number(type, x, i), -e) - number(type, y, i)));
    norm = fmax(norm, fabs(number(type, y, i)));
  }
  ck_assert_msg(error < 100 * type_eps(type) * norm, "%c, times 2^%d: error %g of %g", type_letter(type), e,
                error, norm);
}

/* Number i of x becomes 2^e times that of y, which loses the digits that the product has no room for. */
static void scale_number(batchqr_type type, void *x, void *y, int64_t i, int e) {
  if (type_is_double(type)) {
    ((double *)x)[i] = ldexp(((double *)y)[i], e);
    ((double *)y)[i] = ldexp(((double *)x)[i], -e);
  } else {
    ((float *)x)[i] = ldexpf(((float *)y)[i], e);
    ((float *)y)[i] = ldexpf(((float *)x)[i], -e);
  }
}

/* A and B from the smallest to the largest numbers: X has all its digits, wherever it is in range. */
START_TEST(both_ends_of_the_range) {
  batchqr_type type = (batchqr_type)_i;
  int top = type_is_double(type) ? 1023 : 127, parts = type_is_complex(type) ? 2 : 1;
  int exponents[] = {-top - 15, -top / 2, 0, top / 2, top - 1};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int c = 0; c < 100; c++) {
    int e = exponents[c / 4 % 5], f = exponents[c / 20];
    bool adjoint = c % 2, wide = c / 2 % 2;
    batchqr_trans trans = adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS;
    if (f - e > top - 3 || f - e < -top + 3) continue; /* X is out of range */
    one_system near_one = make_system(type, MATGEN_WELL, wide ? 5 : 30, wide ? 30 : 5, 2), scaled = near_one;
    for (int i = 0; i < 30 * 5 * parts; i++) scale_number(type, scaled.a, near_one.a, i, e);
    for (int i = 0; i < 30 * 2 * parts; i++) scale_number(type, scaled.b, near_one.b, i, f);
    ck_assert_int_eq(solve(handle, &near_one, trans), 0);
    ck_assert_int_eq(solve(handle, &scaled, trans), 0);
    expect_scaled(type, scaled.b, near_one.b, (adjoint == wide ? 5 : 30) * parts, f - e);
  }
  batchqr_destroy(handle);
}
END_TEST

/* --- info, wrappers, nothing to do */

/* info is the first zero on the diagonal, as LAPACK's. */
START_TEST(rank_deficiency_is_told) {
  batchqr_type type = (batchqr_type)_i;
  int parts = type_is_complex(type) ? 2 : 1;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int zero = 0; zero < 5; zero++)
    for (int way = 0; way < 4; way++) {
      bool wide = way / 2, adjoint = way % 2;
      one_system s = make_system(type, MATGEN_RANDOM, wide ? 5 : 12, wide ? 12 : 5, 2);
      for (int i = 0; i < 12; i++)
        for (int p = 0; p < parts; p++) { /* a column of A, or a row of a wide one */
          int at = (wide ? i * 5 + zero : zero * 12 + i) * parts + p;
          if (type_is_double(type))
            s.a[at] = 0;
          else
            ((float *)s.a)[at] = 0;
        }
      one_system theirs = s;
      ck_assert_int_eq(solve(handle, &s, adjoint ? BATCHQR_CONJ_TRANS : BATCHQR_NO_TRANS), zero + 1);
      ck_assert_int_eq(lapack_gels(type, adjoint, s.m, s.n, s.k, theirs.a, theirs.b), zero + 1);
    }
  batchqr_destroy(handle);
}
END_TEST

/* Twelve equations, five unknowns, two right-hand sides, by the routines with the type in their names. */
static batchqr_status call_typed(batchqr_handle_t handle, batchqr_type type, bool pointers, void *a,
                                 void *b) {
  const batchqr_trans plain = BATCHQR_NO_TRANS;
  switch (2 * (int)type + pointers) {
  case 0:
    return batch_sgels_strided(handle, plain, 12, 5, 2, a, 12, 60, b, 12, 24, NULL, 1);
  case 1:
    return batch_sgels(handle, plain, 12, 5, 2, a, 12, b, 12, NULL, 1);
  case 2:
    return batch_dgels_strided(handle, plain, 12, 5, 2, a, 12, 60, b, 12, 24, NULL, 1);
  case 3:
    return batch_dgels(handle, plain, 12, 5, 2, a, 12, b, 12, NULL, 1);
  case 4:
    return batch_cgels_strided(handle, plain, 12, 5, 2, a, 12, 60, b, 12, 24, NULL, 1);
  case 5:
    return batch_cgels(handle, plain, 12, 5, 2, a, 12, b, 12, NULL, 1);
  case 6:
    return batch_zgels_strided(handle, plain, 12, 5, 2, a, 12, 60, b, 12, 24, NULL, 1);
  default:
    return batch_zgels(handle, plain, 12, 5, 2, a, 12, b, 12, NULL, 1);
  }
}

START_TEST(typed_wrappers) {
  static const int64_t first[] = {0};
  batchqr_backend backend = memory_backend();
  batchqr_handle_t handle = memory_handle(backend, NULL);
  batchqr_type type = (batchqr_type)_i;
  one_system s = make_system(type, MATGEN_WELL, 12, 5, 2), expected = s, got = s;
  size_t size = bqr_type_bytes(type);
  solve(handle, &expected, BATCHQR_NO_TRANS);
  for (int pointers = 0; pointers < 2; pointers++) {
    void *a = memory_clone(backend, s.a, sizeof s.a), *b = memory_clone(backend, s.b, sizeof s.b);
    void *as = memory_pointers(backend, a, size, first, 1), *bs = memory_pointers(backend, b, size, first, 1);
    batchqr_status status = call_typed(handle, type, pointers, pointers ? as : a, pointers ? bs : b);
    ck_assert_msg(status == BATCHQR_SUCCESS, "%s", batchqr_error_message(handle));
    memory_download(backend, got.b, b, sizeof got.b);
    for (int j = 0; j < 2; j++)
      ck_assert_mem_eq((char *)got.b + 12 * j * size, (char *)expected.b + 12 * j * size, 5 * size);
    void *all[] = {a, b, as, bs};
    for (int i = 0; i < 4; i++) memory_free(backend, all[i]);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Right-hand sides are independent of one another: each X is what LAPACK makes of its column alone. */
static void check_columns_apart(batchqr_handle_t handle, int m, int n, bool single) {
  enum { K = 3, MOST = 40 * 40 };
  static const double doubles[K] = {1e290, 1e-290, 1.0}, singles[K] = {1e30, 1e-30, 1.0};
  double a[MOST], b[MOST], x[MOST], norms[K], lapack_a[MOST];
  float a_s[MOST], b_s[MOST], norms_s[K];
  int ldc = bqr_max(m, n);
  const double *scales = single ? singles : doubles;
  matgen_fill(BATCHQR_D, MATGEN_WELL, 1, m, n, a, m);
  matgen_fill(BATCHQR_D, MATGEN_RANDOM, 2, ldc, K, b, ldc);
  for (int i = 0; i < m * n; i++) a_s[i] = (float)a[i], a[i] = single ? (double)a_s[i] : a[i];
  for (int j = 0; j < K; j++)
    for (int i = 0; i < ldc; i++) {
      int at = j * ldc + i;
      b_s[at] = (float)(b[at] * scales[j]);
      x[at] = single ? (double)b_s[at] / scales[j] : b[at];
      b[at] = x[at] * scales[j];
    }
  size_t size = single ? sizeof(float) : sizeof(double);
  void *a_there = memory_clone(memory_backend(), single ? (void *)a_s : a, (size_t)(m * n) * size);
  void *b_there = memory_clone(memory_backend(), single ? (void *)b_s : b, (size_t)(ldc * K) * size);
  void *norms_there = memory_alloc(memory_backend(), K * size);
  batchqr_batch batch = {.type = single ? BATCHQR_S : BATCHQR_D,
                         .count = 1,
                         .m = m,
                         .n = n,
                         .k = K,
                         .a = {.ld = m},
                         .c = {.ld = ldc}};
  ck_assert_int_eq(batch_gels(handle, &batch, BATCHQR_NO_TRANS, a_there, b_there, norms_there, NULL),
                   BATCHQR_SUCCESS);
  memory_sync(memory_backend());
  memory_download(memory_backend(), single ? (void *)b_s : b, b_there, (size_t)(ldc * K) * size);
  memory_download(memory_backend(), single ? (void *)norms_s : norms, norms_there, K * size);
  memory_free(memory_backend(), a_there);
  memory_free(memory_backend(), b_there);
  memory_free(memory_backend(), norms_there);
  memcpy(lapack_a, a, sizeof a);
  ck_assert_int_eq(LAPACKE_dgels(LAPACK_COL_MAJOR, 'N', m, n, K, lapack_a, m, x, ldc), 0);
  double bound = 1e4 * m * (single ? type_eps(BATCHQR_S) : type_eps(BATCHQR_D));
  for (int j = 0; j < K; j++) {
    double most = 0.0, norm = single ? (double)norms_s[j] : norms[j], rest = 0.0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(x[j * ldc + i]));
    for (int i = n; i < m; i++) rest = hypot(rest, x[j * ldc + i]);
    for (int i = 0; i < n; i++) {
      double got = (single ? (double)b_s[j * ldc + i] : b[j * ldc + i]) / scales[j];
      ck_assert_msg(fabs(got - x[j * ldc + i]) <= bound * most, "%d x %d, X(%d, %d): %g, LAPACK has %g", m, n,
                    i, j, got, x[j * ldc + i]);
    }
    ck_assert_msg(fabs(norm / scales[j] - rest) <= bound, "%d x %d, norm %d: %g, LAPACK has %g", m, n, j,
                  norm / scales[j], rest);
  }
}

START_TEST(right_hand_sides_far_apart) {
  static const int sizes[][2] = {{3, 2}, {8, 8}, {20, 7}, {7, 20}, {40, 33}, {33, 40}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  if (_i == BATCHQR_S || _i == BATCHQR_D)
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++)
      check_columns_apart(handle, sizes[s][0], sizes[s][1], _i == BATCHQR_S);
  batchqr_destroy(handle);
}
END_TEST

/* A stride that is not needed may be anything. */
START_TEST(norms_not_wanted) {
  static const float zeros[2 * 8 * sizeof(double) / sizeof(float)];
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  void *a = memory_clone(memory_backend(), zeros, sizeof zeros);
  void *c = memory_clone(memory_backend(), zeros, sizeof zeros);
  batchqr_batch batch = {.type = (batchqr_type)_i,
                         .count = 3,
                         .m = 1,
                         .n = 1,
                         .k = 1,
                         .a = {.ld = 1, .stride = 1},
                         .c = {.ld = 1, .stride = 1},
                         .norms = {.stride = INT64_MAX}};
  ck_assert_int_eq(batch_gels(handle, &batch, BATCHQR_NO_TRANS, a, c, NULL, NULL), BATCHQR_SUCCESS);
  memory_sync(memory_backend());
  memory_free(memory_backend(), a);
  memory_free(memory_backend(), c);
  batchqr_destroy(handle);
}
END_TEST

/* Where there is nothing to leave, norms are 0: of a batch of such members, and, in steps, of one among
 * larger ones. */
START_TEST(no_rows) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 2; way++) {
    const int m = way ? 90 : 0, n = way ? 70 : 0;
    trial t = trial_new(BATCHQR_GELS, (batchqr_type)_i, 3);
    trial_fill(&t, m, n, 2, 0);
    if (way) t.sizes = BATCHQR_DEVICE_SIZES;
    t.members[1].m = t.members[1].n = 0;
    trial_once(&t, handle, TRIAL_PLAN);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(nothing) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  batchqr_batch none = {.type = (batchqr_type)_i, .m = 5, .n = 3, .k = 2, .a = {.ld = 5}, .c = {.ld = 5}};
  batchqr_batch empty = {.type = (batchqr_type)_i, .count = 10, .a = {.ld = 1}, .c = {.ld = 1}, .k = 3};
  ck_assert_int_eq(batch_gels(handle, &none, BATCHQR_NO_TRANS, NULL, NULL, NULL, NULL), BATCHQR_SUCCESS);
  ck_assert_int_eq(batch_gels(handle, &empty, BATCHQR_NO_TRANS, NULL, NULL, NULL, NULL), BATCHQR_SUCCESS);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gels, a few systems");
  suite_add(suite, solutions_are_lapacks);
  suite_add(suite, both_ends_of_the_range);
  suite_add(suite, rank_deficiency_is_told);
  suite_add(suite, typed_wrappers);
  suite_add(suite, right_hand_sides_far_apart);
  suite_add(suite, norms_not_wanted);
  suite_add(suite, no_rows);
  suite_add(suite, nothing);
  return suite_run(suite);
}
