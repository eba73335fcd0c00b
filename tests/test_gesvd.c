/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_gesvd(): LAPACK's ratios, singular values against LAPACK's in double precision, small ones against
 * extended precision's. */
#include "spectra.h"

#include <math.h>
#include <string.h>

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

/* The first of the largest entries of a column is real and positive. */
static bool is_signed(const dense *x, int j) {
  double complex largest = 0;
  for (int i = 0; i < x->m; i++)
    if (cabs(*dense_at(x, i, j)) > cabs(largest) * (1 + 1e-5)) largest = *dense_at(x, i, j);
  /* another one may be as large, but for rounding */
  for (int i = 0; i < x->m; i++) {
    const double complex z = *dense_at(x, i, j);
    if (cabs(z) * (1 + 1e-4) >= cabs(largest) && creal(z) > 0 && fabs(cimag(z)) == 0) return true;
  }
  return x->m == 0;
}

static void judge_values(const rows_call *c, int64_t i, const char *what, const dense *a, const double *s,
                         int exponent) {
  const batchqr_type type = c->batch.type;
  const int k = least(a->m, a->n);
  double *want = malloc(((size_t)k + 1) * sizeof *want);
  dense_singular_values(a, want, false);
  const double scale = k > 0 ? want[0] : 0;
  for (int j = 0; j < k; j++) {
    ck_assert_msg(s[j] >= 0 && (j == 0 || s[j] <= s[j - 1]), "%s: s[%d] = %g", what, j, s[j]);
    spectra_expect(c, i, what, "a singular value's error", fabs(s[j] - want[j]),
                   SPECTRA_RATIO *
                       (scale * type_eps(type) * most(a->m, a->n) + dense_spacing(type, exponent)));
  }
  free(want);
}

static void judge_vectors(const rows_call *c, int64_t i, const char *what, const dense *a, const double *s,
                          int exponent) {
  const batchqr_type type = c->batch.type;
  const int k = least(a->m, a->n);
  const bool has_u = c->operands[BQR_U].wanted, has_v = c->operands[BQR_V].wanted;
  dense u =
      has_u ? dense_read(type, rows_at(c, BQR_U, i), rows_ld(c, BQR_U, i), a->m, k, 0) : dense_new(0, 0);
  dense v =
      has_v ? dense_read(type, rows_at(c, BQR_V, i), rows_ld(c, BQR_V, i), a->n, k, 0) : dense_new(0, 0);
  const double eps = type_eps(type);
  if (has_u) spectra_expect(c, i, what, "||I - U^H U||", dense_orthogonality(&u), SPECTRA_RATIO * a->m * eps);
  if (has_v) spectra_expect(c, i, what, "||I - V^H V||", dense_orthogonality(&v), SPECTRA_RATIO * a->n * eps);
  for (int j = 0; j < k; j++) {
    if (has_v) ck_assert_msg(is_signed(&v, j), "%s: sign of column %d of V", what, j);
    if (has_u && !has_v) ck_assert_msg(is_signed(&u, j), "%s: sign of column %d of U", what, j);
  }
  if (has_u && has_v) { /* A V - U S, which is as good */
    dense left = dense_product(a, false, &v);
    for (int j = 0; j < k; j++)
      for (int row = 0; row < a->m; row++) *dense_at(&left, row, j) -= *dense_at(&u, row, j) * s[j];
    spectra_expect(c, i, what, "||A V - U S||", dense_norm(&left),
                   SPECTRA_RATIO * most(a->m, a->n) * (dense_norm(a) * eps + dense_spacing(type, exponent)));
    dense_free(&left);
  }
  dense_free(&u);
  dense_free(&v);
}

static void judge_rank(const rows_call *c, int64_t i, int k) {
  if (!c->operands[BQR_RANK].wanted) return;
  const void *s = rows_at(c, BQR_S, i);
  const double largest = k > 0 ? dense_real(c->batch.type, s, 0, 0) : 0;
  const double tolerance = fmax(0, fmax(c->batch.abstol, c->batch.reltol * largest));
  const int most_wanted = c->batch.kmax > 0 ? least(k, c->batch.kmax) : k;
  int rank = 0;
  while (rank < most_wanted && dense_real(c->batch.type, s, rank, 0) > tolerance) rank++;
  ck_assert_int_eq(*(const int *)rows_at(c, BQR_RANK, i), rank);
}

static void judge(const rows_call *c, int64_t i, const char *what) {
  const batchqr_type type = c->batch.type;
  const int m = c->m[i], n = c->n[i], k = least(m, n);
  const int exponent = dense_exponent(type, rows_before(c, BQR_A, i), rows_ld(c, BQR_A, i), m, n);
  dense a = dense_read(type, rows_before(c, BQR_A, i), rows_ld(c, BQR_A, i), m, n, exponent);
  double *s = malloc(((size_t)k + 1) * sizeof *s);
  for (int j = 0; j < k; j++) s[j] = dense_real(type, rows_at(c, BQR_S, i), j, exponent);
  spectra_expect(c, i, what, "info", abs(c->info[i]), 0);
  judge_values(c, i, what, &a, s, exponent);
  judge_vectors(c, i, what, &a, s, exponent);
  judge_rank(c, i, k);
  free(s);
  dense_free(&a);
}

static const spectra gesvd = {.op = BATCHQR_GESVD, .judge = judge};

START_TEST(every_kind) { spectra_every_kind(&gesvd, (batchqr_type)_i); }
END_TEST
START_TEST(every_form) { spectra_every_form(&gesvd, (batchqr_type)_i); }
END_TEST
START_TEST(every_variant) { spectra_every_variant(&gesvd, (batchqr_type)_i); }
END_TEST
START_TEST(places) { spectra_places(&gesvd, (batchqr_type)_i); }
END_TEST
START_TEST(nonfinite) { spectra_nonfinite(&gesvd, (batchqr_type)_i); }
END_TEST
START_TEST(wrong_sizes) { spectra_wrong_sizes(&gesvd, (batchqr_type)_i); }
END_TEST

/* Some of the results alone. */
START_TEST(parts) {
  static const int m[] = {20, 9, 5, 40, 33}, n[] = {12, 15, 5, 33, 40},
                   unwanted[][4] = {
                       {BQR_U, BQR_V, 0}, {BQR_U, 0}, {BQR_V, 0}, {BQR_RANK, 0}, {BQR_U, BQR_V, BQR_RANK, 0}};
  const int kinds[] = {MATGEN_RANDOM, MATGEN_RANK_DEFICIENT, HARD_RANK_ONE};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 5; way++) {
    rows_call c = rows_new(BATCHQR_GESVD, (batchqr_type)_i, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, 5, m, n,
                           NULL, unwanted[way]);
    spectra_fill(&c, kinds, 3, 3);
    c.batch.reltol = 0.3;
    c.batch.kmax = 8;
    spectra_run(&gesvd, &c, handle, "parts");
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Members so small that several share a warp: high and wide ones, with and without columns to complete, and
 * some that take more sweeps than others. */
START_TEST(small) {
  enum { MEMBERS = 24 };
  static const int unwanted[][4] = {{0}, {BQR_U, 0}, {BQR_V, 0}, {BQR_U, BQR_V, 0}}, most_of[] = {8, 16};
  const int kinds[] = {MATGEN_RANDOM, HARD_RANK_ONE,         MATGEN_ZERO,         HARD_KAHAN,
                       MATGEN_WORST,  MATGEN_RANK_DEFICIENT, MATGEN_COLUMN_SCALED};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 8; way++) {
    int m[MEMBERS], n[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
      m[i] = rng_int(31, (uint64_t)(2 * i), 0, most_of[way / 4]);
      n[i] = rng_int(31, (uint64_t)(2 * i + 1), 0, most_of[way / 4]);
    }
    rows_call c = rows_new(BATCHQR_GESVD, (batchqr_type)_i, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, MEMBERS, m,
                           n, NULL, unwanted[way % 4]);
    spectra_fill(&c, kinds, 7, 3);
    spectra_run(&gesvd, &c, handle, "small");
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Singular values far below eps times the largest, of well-conditioned matrices whose columns, or whose rows
 * where these are fewer, are scaled. */
START_TEST(small_values) {
  static const int m[] = {24, 12, 12, 40, 9}, n[] = {12, 24, 12, 33, 30};
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  rows_call c = rows_new(BATCHQR_GESVD, type, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, 5, m, n, NULL, NULL);
  const int kinds[] = {HARD_GRADED_COLUMNS, HARD_GRADED_ROWS, HARD_GRADED_COLUMNS, HARD_GRADED_COLUMNS,
                       HARD_GRADED_ROWS};
  spectra_fill(&c, kinds, 5, 23);
  spectra_run(&gesvd, &c, handle, "graded");
  for (int i = 0; i < 5; i++) {
    const int k = least(m[i], n[i]);
    double want[40];
    dense a = dense_read(type, rows_before(&c, BQR_A, i), rows_ld(&c, BQR_A, i), m[i], n[i], 0);
    dense_singular_values(&a, want, true);
    for (int j = 0; j < k; j++)
      spectra_expect(&c, i, "graded", "a singular value's relative error",
                     fabs(dense_real(type, rows_at(&c, BQR_S, i), j, 0) / want[j] - 1),
                     SPECTRA_RATIO * most(m[i], n[i]) * type_eps(type));
    dense_free(&a);
  }
  rows_free(&c);
  batchqr_destroy(handle);
}
END_TEST

/* Members that a GPU decomposes in steps, beside others: all of the results, or some alone. */
START_TEST(tall) {
  static const int m[] = {520, 260, 20, 140, 9}, n[] = {5, 34, 20, 70, 120},
                   unwanted[][4] = {{0}, {BQR_V, 0}, {BQR_U, 0}, {BQR_U, BQR_V, BQR_RANK, 0}};
  const int kinds[] = {MATGEN_RANDOM, HARD_GRADED_COLUMNS, MATGEN_RANDOM, MATGEN_RANK_DEFICIENT};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 4; way++) {
    rows_call c = rows_new(BATCHQR_GESVD, (batchqr_type)_i, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, 5, m, n,
                           NULL, unwanted[way]);
    spectra_fill(&c, kinds, 4, 3);
    spectra_run(&gesvd, &c, handle, "tall");
    rows_free(&c);
  }
  for (int way = 0; way < 2; way++) { /* of one size */
    const int ms[] = {260, 260}, ns[] = {34, 34};
    rows_call c = rows_new(BATCHQR_GESVD, (batchqr_type)_i, BATCHQR_UNIFORM, BATCHQR_STRIDED, 2, ms, ns, NULL,
                           unwanted[way]);
    spectra_fill(&c, kinds, 4, 5);
    spectra_run(&gesvd, &c, handle, "tall, one size");
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* A NaN or an Inf in one of them. */
START_TEST(tall_nonfinite) {
  static const int m[] = {520, 520, 520}, n[] = {8, 8, 8};
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int bad = 0; bad < 2; bad++) {
    rows_call c = rows_new(BATCHQR_GESVD, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, 3, m, n, NULL, NULL);
    const int kind = MATGEN_RANDOM;
    spectra_fill(&c, &kind, 1, 3);
    const double value = bad ? (double)INFINITY : (double)NAN;
    char *entry = rows_at(&c, BQR_A, 1);
    entry += bqr_type_bytes(type) * (size_t)(510 + 3 * rows_ld(&c, BQR_A, 1));
    if (type_is_double(type))
      memcpy(entry, &value, sizeof value);
    else
      memcpy(entry, &(float){(float)value}, sizeof(float));
    ck_assert_int_eq(rows_run(&c, handle), BATCHQR_SUCCESS);
    ck_assert_int_eq(c.info[1], BATCHQR_INFO_NONFINITE);
    ck_assert_int_eq(*(const int *)rows_at(&c, BQR_RANK, 1), 0);
    judge(&c, 0, "beside a NaN");
    judge(&c, 2, "beside a NaN");
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gesvd");
  suite_add(suite, every_kind);
  suite_add(suite, every_form);
  suite_add(suite, every_variant);
  suite_add(suite, places);
  suite_add(suite, nonfinite);
  suite_add(suite, wrong_sizes);
  suite_add(suite, parts);
  suite_add(suite, small);
  suite_add(suite, small_values);
  suite_add(suite, tall);
  suite_add(suite, tall_nonfinite);
  return suite_run(suite);
}
