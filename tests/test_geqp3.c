/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_geqp3(): LAPACK's ratios for xGEQP3RK, and which columns are taken. */
#include "handle.h"
#include "inspect.h"
#include "spectra.h"

#include <math.h>
#include <string.h>

static int least(int a, int b) { return a < b ? a : b; }

/* Q, m x m, of the member's first `rank` reflectors. */
static dense form_q(const rows_call *c, int64_t i, int rank) {
  const int m = c->m[i];
  dense v = dense_read(c->batch.type, rows_at(c, BQR_A, i), rows_ld(c, BQR_A, i), m, c->n[i], 0),
        q = dense_new(m, m);
  dense tau = dense_read(c->batch.type, rows_at(c, BQR_TAU, i), least(m, c->n[i]), least(m, c->n[i]), 1, 0);
  for (int j = 0; j < m; j++) *dense_at(&q, j, j) = 1;
  for (int j = rank - 1; j >= 0; j--)
    for (int col = 0; col < m; col++) {
      double complex sum = *dense_at(&q, j, col);
      for (int row = j + 1; row < m; row++) sum += conj(*dense_at(&v, row, j)) * *dense_at(&q, row, col);
      sum *= tau.x[j];
      *dense_at(&q, j, col) -= sum;
      for (int row = j + 1; row < m; row++) *dense_at(&q, row, col) -= *dense_at(&v, row, j) * sum;
    }
  dense_free(&v);
  dense_free(&tau);
  return q;
}

/* R above what remains of A: zeros below the diagonal of the first `rank` columns. */
static dense read_r(const rows_call *c, int64_t i, int rank, int exponent) {
  dense r = dense_read(c->batch.type, rows_at(c, BQR_A, i), rows_ld(c, BQR_A, i), c->m[i], c->n[i], exponent);
  for (int j = 0; j < rank; j++)
    for (int row = j + 1; row < c->m[i]; row++) *dense_at(&r, row, j) = 0;
  return r;
}

static double length(const dense *r, int first, int col) {
  double sum = 0;
  for (int row = first; row < r->m; row++) sum = hypot(sum, cabs(*dense_at(r, row, col)));
  return sum;
}

/* A's columns in the order of jpvt; false if that is no order. */
static bool permute(dense *a, const int *jpvt) {
  dense p = dense_new(a->m, a->n);
  bool *seen = calloc((size_t)a->n + 1, sizeof *seen), good = true;
  for (int j = 0; j < a->n && good; j++) {
    good = jpvt[j] >= 0 && jpvt[j] < a->n && !seen[jpvt[j]];
    if (!good) break;
    seen[jpvt[j]] = true;
    for (int row = 0; row < a->m; row++) *dense_at(&p, row, j) = *dense_at(a, row, jpvt[j]);
  }
  free(seen);
  dense_free(a);
  *a = p;
  return good;
}

/* In every step the longest column is taken, and it is long enough; those that are left at the end are not.
 */
static void judge_pivots(const rows_call *c, int64_t i, const char *what, const dense *r, int rank,
                         int exponent, double scale) {
  const int k = least(c->m[i], c->n[i]), most = c->batch.kmax > 0 ? least(k, c->batch.kmax) : k;
  const double noise = SPECTRA_RATIO * (r->m + r->n) * type_eps(c->batch.type) * scale +
                       4 * (r->m + r->n) * dense_spacing(c->batch.type, exponent);
  double tolerance = 0;
  for (int j = 0; j < r->n; j++) tolerance = fmax(tolerance, c->batch.reltol * length(r, 0, j));
  tolerance = fmax(tolerance, ldexp(c->batch.abstol, exponent));
  for (int j = 0; j < rank; j++) {
    const double pivot = cabs(*dense_at(r, j, j));
    for (int col = j; col < r->n; col++)
      spectra_expect(c, i, what, "a column that was not taken", length(r, j, col), 1.01 * pivot + noise);
    if (j > 0)
      spectra_expect(c, i, what, "a diagonal entry", pivot,
                     (1 + 1e-3) * cabs(*dense_at(r, j - 1, j - 1)) + noise);
    spectra_expect(c, i, what, "the tolerance at a pivot", tolerance, pivot + noise);
  }
  for (int col = rank; col < r->n && rank < most; col++)
    spectra_expect(c, i, what, "a column that is left", length(r, rank, col), tolerance + noise);
}

static void judge_c(const rows_call *c, int64_t i, const char *what, const dense *q) {
  if (!c->operands[BQR_C].wanted) return;
  const batchqr_type type = c->batch.type;
  const int m = c->m[i], k = c->k[i], ld = rows_ld(c, BQR_C, i);
  const int exponent = dense_exponent(type, rows_before(c, BQR_C, i), ld, m, k);
  dense before = dense_read(type, rows_before(c, BQR_C, i), ld, m, k, exponent),
        want = dense_product(q, true, &before);
  dense got = dense_read(type, rows_at(c, BQR_C, i), ld, m, k, exponent);
  const double norm = dense_norm(&before);
  dense_subtract(&got, &want);
  spectra_expect(c, i, what, "||Q^H C||", dense_norm(&got), SPECTRA_RATIO * m * type_eps(type) * norm);
  dense_free(&before);
  dense_free(&want);
  dense_free(&got);
}

static void judge(const rows_call *c, int64_t i, const char *what) {
  const batchqr_type type = c->batch.type;
  const int m = c->m[i], n = c->n[i], k = least(m, n), rank = *(int *)rows_at(c, BQR_RANK, i);
  ck_assert_int_eq(c->info[i], 0);
  ck_assert_msg(rank >= 0 && rank <= k && (!c->batch.kmax || rank <= c->batch.kmax), "rank %d", rank);
  const int exponent = dense_exponent(type, rows_before(c, BQR_A, i), rows_ld(c, BQR_A, i), m, n);
  dense a = dense_read(type, rows_before(c, BQR_A, i), rows_ld(c, BQR_A, i), m, n, exponent);
  dense q = form_q(c, i, rank), r = read_r(c, i, rank, exponent), product = dense_product(&q, false, &r);
  dense tau = dense_read(type, rows_at(c, BQR_TAU, i), k, k, 1, 0);
  ck_assert_msg(permute(&a, rows_at(c, BQR_JPVT, i)), "jpvt is no order");
  const double norm = dense_norm(&a), eps = type_eps(type);
  judge_pivots(c, i, what, &r, rank, exponent, norm);
  judge_c(c, i, what, &q);
  dense_subtract(&product, &a);
  spectra_expect(c, i, what, "||AP - QR||", dense_norm(&product),
                 SPECTRA_RATIO * (m > n ? m : n) * (norm * eps + dense_spacing(type, exponent)));
  spectra_expect(c, i, what, "||I - Q^H Q||", dense_orthogonality(&q), SPECTRA_RATIO * m * eps);
  for (int j = rank; j < k; j++) ck_assert(tau.x[j] == 0);
  dense *const all[] = {&a, &q, &r, &product, &tau};
  for (int x = 0; x < 5; x++) dense_free(all[x]);
}

/* C's magnitude says nothing of A's. */
static void fill_c(rows_call *c) {
  static const matgen_kind kinds[] = {MATGEN_RANDOM, MATGEN_SMALL_POWER, MATGEN_LARGE_POWER};
  if (!c->operands[BQR_C].wanted) return;
  for (int64_t i = 0; i < c->batch.count; i++)
    if (c->m[i] > 0 && c->k[i] > 0)
      matgen_fill(c->batch.type, kinds[i % 3], 99 + (uint64_t)i, c->m[i], c->k[i], rows_at(c, BQR_C, i),
                  rows_ld(c, BQR_C, i));
}

static const spectra geqp3 = {.op = BATCHQR_GEQP3, .fill = fill_c, .judge = judge};

START_TEST(every_kind) { spectra_every_kind(&geqp3, (batchqr_type)_i); }
END_TEST
START_TEST(every_form) { spectra_every_form(&geqp3, (batchqr_type)_i); }
END_TEST
START_TEST(every_variant) { spectra_every_variant(&geqp3, (batchqr_type)_i); }
END_TEST
START_TEST(places) { spectra_places(&geqp3, (batchqr_type)_i); }
END_TEST
START_TEST(nonfinite) { spectra_nonfinite(&geqp3, (batchqr_type)_i); }
END_TEST
START_TEST(wrong_sizes) { spectra_wrong_sizes(&geqp3, (batchqr_type)_i); }
END_TEST

/* Stops where it is told, and finds the rank of matrices that have one. */
START_TEST(ranks) {
  static const int m[] = {40, 20, 33, 16, 64}, n[] = {30, 35, 33, 16, 20};
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 5; way++) {
    rows_call c = rows_new(BATCHQR_GEQP3, type, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, 5, m, n,
                           (const int[]){1, 2, 0, 3, 1}, NULL);
    const int kind = way == 4 ? MATGEN_RANK_DEFICIENT : MATGEN_WORST;
    spectra_fill(&c, &kind, 1, 3);
    c.batch.kmax = way == 0 ? 7 : way == 3 ? 1000 : 0;
    c.batch.reltol = way == 1 ? 1e-3 : way == 4 ? 1e3 * type_eps(type) : -1;
    c.batch.abstol = way == 2 ? 1e-2 : 0;
    spectra_run(&geqp3, &c, handle, "ranks");
    for (int i = 0; i < 5; i++) {
      const int rank = *(int *)rows_at(&c, BQR_RANK, i), k = least(m[i], n[i]);
      if (way == 0) ck_assert_int_eq(rank, 7);
      if (way == 1 || way == 2) ck_assert(rank > 0 && rank < k);
      if (way == 3) ck_assert_int_eq(rank, k);
      if (way == 4) ck_assert_int_le(rank, k / 2 + 1);
    }
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Of nothing but A and tau. */
/* Members so small that several share a warp, some without columns, with columns of B or without. */
START_TEST(small) {
  enum { MEMBERS = 24 };
  static const int most_m[] = {8, 16, 32}, most_n[] = {8, 16, 9};
  const int kinds[] = {MATGEN_RANDOM, MATGEN_WORST, MATGEN_RANK_DEFICIENT, MATGEN_WELL, MATGEN_ZERO};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 6; way++) {
    int m[MEMBERS], n[MEMBERS], k[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) {
      m[i] = rng_int(33, (uint64_t)(3 * i), 0, most_m[way / 2]);
      n[i] = i % 4 == 1 ? 0 : rng_int(33, (uint64_t)(3 * i + 1), 0, most_n[way / 2]);
      k[i] = rng_int(33, (uint64_t)(3 * i + 2), 0, 5);
    }
    const batchqr_sizes sizes = way % 2 ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES;
    rows_call c = rows_new(BATCHQR_GEQP3, (batchqr_type)_i, sizes, BATCHQR_POINTERS, MEMBERS, m, n, k, NULL);
    spectra_fill(&c, kinds, 5, 3);
    spectra_run(&geqp3, &c, handle, "small");
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(only_a) {
  static const int m[] = {20, 9}, n[] = {12, 15}, unwanted[] = {BQR_C, BQR_JPVT, BQR_RANK, BQR_NO_OPERAND};
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  rows_call whole = rows_new(BATCHQR_GEQP3, type, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, 2, m, n, NULL, NULL);
  rows_call bare =
      rows_new(BATCHQR_GEQP3, type, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, 2, m, n, NULL, unwanted);
  const int kind = MATGEN_RANDOM;
  spectra_fill(&whole, &kind, 1, 3);
  spectra_fill(&bare, &kind, 1, 3);
  spectra_run(&geqp3, &whole, handle, "with all operands");
  ck_assert_int_eq(rows_run(&bare, handle), BATCHQR_SUCCESS);
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < n[i]; j++) {
      const size_t at = bqr_type_bytes(type) * (size_t)j * (size_t)rows_ld(&bare, BQR_A, i);
      ck_assert_mem_eq((char *)rows_at(&bare, BQR_A, i) + at, (char *)rows_at(&whole, BQR_A, i) + at,
                       bqr_type_bytes(type) * (size_t)m[i]);
    }
  rows_free(&whole);
  rows_free(&bare);
  batchqr_destroy(handle);
}
END_TEST

/* Sizes of several panels of pivots. Which members A^H A serves does not show but in the time that they take:
 * matrices whose columns are as long as one another, or nearly dependent in the end, are among them. */
START_TEST(by_products) {
  static const int sizes[][2] = {{150, 150}, {300, 70}, {70, 160}, {129, 128}, {200, 33}};
  static const int kinds[] = {MATGEN_RANDOM, MATGEN_SIGNS,       HARD_KAHAN,        HARD_GRADED_COLUMNS,
                              MATGEN_WELL,   MATGEN_SMALL_POWER, MATGEN_LARGE_POWER};
  const batchqr_type type = (batchqr_type)_i;
  if (memory_backend() != BATCHQR_BACKEND_CUDA) return;
  const char *const variants[] = {"cols32", "cols64.blocks8", "cols128.wide"};
  for (int v = 0; v < 3; v++)
    for (int s = 0; s < 5; s++) {
      batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
      if (bqr_force(handle, BATCHQR_GEQP3, "geqp3_gram", variants[v])) {
        batchqr_destroy(handle);
        return; /* a build without it */
      }
      int m[7], n[7], k[7];
      for (int i = 0; i < 7; i++) m[i] = sizes[s][0], n[i] = sizes[s][1], k[i] = 3;
      rows_call c = rows_new(BATCHQR_GEQP3, type, BATCHQR_UNIFORM, v % 2 ? BATCHQR_POINTERS : BATCHQR_STRIDED,
                             7, m, n, k, NULL);
      spectra_fill(&c, kinds, 7, 23);
      if (s == 1) c.batch.reltol = 100 * type_eps(type);
      spectra_run(&geqp3, &c, handle, variants[v]);
      rows_free(&c);
      batchqr_destroy(handle);
    }
}
END_TEST

/* A family without a C: each variant, sizes up to what it takes, hard members. */
START_TEST(without_c) {
  static const int sizes[][2] = {{1, 1},   {7, 5},    {5, 40},   {16, 16},   {33, 32},  {32, 31},  {64, 64},
                                 {60, 33}, {128, 16}, {100, 50}, {128, 128}, {256, 32}, {300, 61}, {600, 32}};
  static const int kinds[] = {MATGEN_RANDOM,        MATGEN_SIGNS,       HARD_KAHAN,         HARD_CANCELLATION,
                              HARD_GRADED_COLUMNS,  HARD_GRADED_ROWS,   HARD_RANK_ONE,      HARD_EQUAL,
                              MATGEN_WELL,          MATGEN_SMALL_POWER, MATGEN_LARGE_POWER, MATGEN_ZERO,
                              MATGEN_RANK_DEFICIENT};
  enum { MEMBERS = sizeof kinds / sizeof *kinds };
  const batchqr_type type = (batchqr_type)_i;
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    if (family->backend != memory_backend() || strcmp(family->name, "geqp3_lanes") != 0) continue;
    for (int v = 0; v < family->nvariants; v++) {
      const bqr_variant *variant = &family->variants[v];
      int served = 0;
      for (int s = 0; s < (int)(sizeof sizes / sizeof *sizes); s++) {
        batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
        ck_assert_int_eq(bqr_force(handle, BATCHQR_GEQP3, family->name, variant->name), BATCHQR_SUCCESS);
        int m[MEMBERS], n[MEMBERS];
        for (int i = 0; i < MEMBERS; i++) m[i] = sizes[s][0], n[i] = sizes[s][1];
        rows_call c = rows_new(BATCHQR_GEQP3, type, BATCHQR_UNIFORM,
                               s % 2 ? BATCHQR_POINTERS : BATCHQR_STRIDED, MEMBERS, m, n, NULL, NULL);
        spectra_fill(&c, kinds, MEMBERS, 31);
        if (s == 6) c.batch.reltol = 100 * type_eps(type);
        if (s == 7) c.batch.kmax = 20;
        const batchqr_status status = rows_run(&c, handle);
        ck_assert(status == BATCHQR_SUCCESS || status == BATCHQR_UNSUPPORTED);
        for (int i = 0; i < MEMBERS && !status; i++) judge(&c, i, variant->name);
        served += !status;
        rows_free(&c);
        batchqr_destroy(handle);
      }
      ck_assert_msg(served > 0 || !(variant->types >> type & 1), "%s serves none of these sizes",
                    variant->name);
    }
  }
}
END_TEST

/* Members that are ordered in place, some of them left to the other family: of one panel of pivots and of
 * several, with all rows in use and with fewer. */
START_TEST(in_place) {
  static const int sizes[][2] = {{128, 16},  {33, 20},  {300, 17}, {64, 64},  {130, 90},
                                 {150, 128}, {70, 100}, {5, 40},   {200, 64}, {75, 41}};
  static const int kinds[] = {MATGEN_RANDOM,       MATGEN_SIGNS,       HARD_KAHAN,
                              HARD_GRADED_COLUMNS, MATGEN_WELL,        MATGEN_RANK_DEFICIENT,
                              MATGEN_SMALL_POWER,  MATGEN_LARGE_POWER, MATGEN_ZERO};
  enum { MEMBERS = 9 };
  const batchqr_type type = (batchqr_type)_i;
  if (memory_backend() != BATCHQR_BACKEND_CUDA || type == BATCHQR_C) return;
  for (int s = 0; s < 10; s++) {
    batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
    if (!bqr_family_find("geqp3_gram")) {
      batchqr_destroy(handle);
      return; /* a build without it */
    }
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GEQP3, "geqp3_gram", "cols128.many"), BATCHQR_SUCCESS);
    int m[MEMBERS], n[MEMBERS];
    for (int i = 0; i < MEMBERS; i++) m[i] = sizes[s][0], n[i] = sizes[s][1];
    rows_call c = rows_new(BATCHQR_GEQP3, type, BATCHQR_UNIFORM, s % 2 ? BATCHQR_POINTERS : BATCHQR_STRIDED,
                           MEMBERS, m, n, NULL, NULL);
    spectra_fill(&c, kinds, MEMBERS, 31);
    if (s == 4) c.batch.reltol = 100 * type_eps(type);
    if (s == 5) c.batch.kmax = 40;
    spectra_run(&geqp3, &c, handle, "in place");
    rows_free(&c);
    batchqr_destroy(handle);
  }
}
END_TEST

/* So many members that halves of them are ordered side by side: all are as if they were alone. */
START_TEST(in_halves) {
  static const int kinds[] = {MATGEN_RANDOM, HARD_KAHAN, MATGEN_SIGNS, MATGEN_RANK_DEFICIENT, MATGEN_WELL};
  enum { KINDS = 5, MEMBERS = 703, ROWS = 40, COLS = 34 };
  const batchqr_type type = (batchqr_type)_i;
  if (memory_backend() != BATCHQR_BACKEND_CUDA) return;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  if (bqr_force(handle, BATCHQR_GEQP3, "geqp3_gram", "cols32")) {
    batchqr_destroy(handle);
    return; /* a build without it */
  }
  int m[MEMBERS], n[MEMBERS], all[MEMBERS];
  for (int i = 0; i < MEMBERS; i++) m[i] = ROWS, n[i] = COLS, all[i] = kinds[i % KINDS];
  rows_call c = rows_new(BATCHQR_GEQP3, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, MEMBERS, m, n, NULL, NULL);
  spectra_fill(&c, all, MEMBERS, 23);
  const int ld = rows_ld(&c, BQR_A, 0);
  const size_t column = ROWS * bqr_type_bytes(type);
  for (int i = KINDS; i < MEMBERS; i++)
    for (int j = 0; j < COLS; j++) {
      const size_t at = (size_t)j * (size_t)ld * bqr_type_bytes(type);
      memcpy((char *)rows_at(&c, BQR_A, i) + at, (char *)rows_at(&c, BQR_A, i % KINDS) + at, column);
    }
  ck_assert_int_eq(rows_run(&c, handle), BATCHQR_SUCCESS);
  for (int i = 0; i < MEMBERS; i++) {
    const int like = i % KINDS;
    ck_assert_int_eq(*(int *)rows_at(&c, BQR_RANK, i), *(int *)rows_at(&c, BQR_RANK, like));
    ck_assert_mem_eq(rows_at(&c, BQR_JPVT, i), rows_at(&c, BQR_JPVT, like), COLS * sizeof(int));
    for (int j = 0; j < COLS; j++) {
      const size_t at = (size_t)j * (size_t)ld * bqr_type_bytes(type);
      ck_assert_mem_eq((char *)rows_at(&c, BQR_A, i) + at, (char *)rows_at(&c, BQR_A, like) + at, column);
    }
  }
  for (int i = 0; i < KINDS; i++) judge(&c, i, "in halves");
  rows_free(&c);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("geqp3");
  suite_add(suite, every_kind);
  suite_add(suite, every_form);
  suite_add(suite, every_variant);
  suite_add(suite, places);
  suite_add(suite, nonfinite);
  suite_add(suite, wrong_sizes);
  suite_add(suite, ranks);
  suite_add(suite, small);
  suite_add(suite, only_a);
  suite_add(suite, by_products);
  suite_add(suite, without_c);
  suite_add(suite, in_place);
  suite_add(suite, in_halves);
  return suite_run(suite);
}
