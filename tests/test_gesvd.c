/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_gesvd(): LAPACK's ratios, singular values against LAPACK's in double precision, small ones against
 * extended precision's. */
#include "inspect.h"
#include "spectra.h"
#include "trial.h"

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

/* Whether this build and backend have a family for the type; then the handle is to use it. */
static bool force(batchqr_handle_t handle, batchqr_type type, const char *name, const char *variant) {
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    if (strcmp(family->name, name) || family->backend != memory_backend() || !(family->types >> type & 1))
      continue;
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GESVD, name, variant), BATCHQR_SUCCESS);
    return true;
  }
  return false;
}

/* Square and nearly square members of more columns than a warp holds, with what Jacobi's method and solving
 * for V find hard: by the families that a few of them are given to, and by the one for many. */
START_TEST(middle) {
  enum { MEMBERS = 6 };
  static const int m[] = {48, 60, 64, 96, 93, 128}, n[] = {48, 64, 60, 96, 96, 120};
  const int kinds[] = {HARD_KAHAN, HARD_GRADED_COLUMNS, HARD_GRADED_ROWS, MATGEN_RANK_DEFICIENT,
                       MATGEN_WORST};
  const batchqr_type type = (batchqr_type)_i;
  for (int many = 0; many < 2; many++) {
    const int first = many && type != BATCHQR_D ? 3 : 0; /* up to 64 columns it is for d alone */
    batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
    for (int way = 0; way < 5 && (!many || force(handle, type, "gesvd_solved", NULL)); way++) {
      int of[MEMBERS];
      for (int i = 0; i < MEMBERS; i++) of[i] = kinds[(i + way) % 5];
      rows_call c = rows_new(BATCHQR_GESVD, type, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, MEMBERS - first,
                             m + first, n + first, NULL, NULL);
      spectra_fill(&c, of, MEMBERS, 3);
      spectra_run(&gesvd, &c, handle, many ? "many of middle size" : "middle");
      rows_free(&c);
    }
    batchqr_destroy(handle);
  }
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
  static const int m[] = {2100, 260, 20, 140, 9}, n[] = {5, 34, 20, 70, 120},
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

/* Tall members of one size by way of A^H A, beside some for which that will not do; of two sizes, too. */
START_TEST(gram) {
  enum { MEMBERS = 6 };
  static const struct {
    const char *variant;
    int m, n, unwanted[3];
  } all[] = {{"cols16", 130, 16, {0}},        {"cols16", 67, 9, {BQR_U, 0}},
             {"cols32", 128, 16, {0}},        {"cols32", 257, 32, {BQR_V, 0}},
             {"cols32", 90, 11, {BQR_U, 0}},  {"cols64", 200, 40, {0}},
             {"cols64", 141, 64, {BQR_V, 0}}, {"cols64", 64, 9, {BQR_U, BQR_V, 0}},
             {"cols64", 77, 1, {BQR_RANK, 0}}};
  static const int kinds[][MEMBERS] = {
      {MATGEN_RANDOM, HARD_GRADED_COLUMNS, MATGEN_RANDOM, MATGEN_RANK_DEFICIENT, MATGEN_ZERO, HARD_KAHAN},
      {MATGEN_WELL, MATGEN_ORTHONORMAL, MATGEN_CLUSTERED, MATGEN_SUBNORMAL, MATGEN_LARGEST, MATGEN_ILL}};
  const batchqr_type type = (batchqr_type)_i;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    for (int sizes = 1; sizes < 4; sizes++) { /* 3: others of one size */
      batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
      if (force(handle, type, "gesvd_gram", all[i].variant)) {
        int m[MEMBERS], n[MEMBERS];
        for (int j = 0; j < MEMBERS; j++) {
          m[j] = all[i].m + (sizes == 2 ? 10 * (j % 2) : 0);
          n[j] = all[i].n;
        }
        rows_call c =
            rows_new(BATCHQR_GESVD, type, sizes == 2 ? BATCHQR_HOST_SIZES : BATCHQR_UNIFORM,
                     sizes == 2 ? BATCHQR_POINTERS : BATCHQR_STRIDED, MEMBERS, m, n, NULL, all[i].unwanted);
        spectra_fill(&c, kinds[sizes / 3], MEMBERS, 3 + i);
        spectra_run(&gesvd, &c, handle, all[i].variant);
        rows_free(&c);
      }
      batchqr_destroy(handle);
    }
}
END_TEST

/* The same call with U, or V, in place of A: its bits are those beside A. */
static void expect_in_place(const rows_call *beside, const void *a_before, int place,
                            batchqr_handle_t handle) {
  const batchqr_backend backend = memory_backend();
  const guard *const of_a = &beside->operands[BQR_A].data, *const of_s = &beside->operands[BQR_S].data,
                     *const of_u = &beside->operands[BQR_U].data, *const of_v = &beside->operands[BQR_V].data;
  void *const a = memory_clone(backend, a_before, guard_bytes(of_a)),
              *const s = memory_alloc(backend, guard_bytes(of_s)),
              *const u = memory_alloc(backend, guard_bytes(of_u)),
              *const v = memory_alloc(backend, guard_bytes(of_v));
  batchqr_batch batch = beside->batch;
  *(place == BQR_U ? &batch.u : &batch.v) = batch.a;
  ck_assert_msg(batch_gesvd(handle, &batch, a, s, place == BQR_U ? a : u, place == BQR_V ? a : v, NULL,
                            NULL) == BATCHQR_SUCCESS,
                "%s", batchqr_error_message(handle));
  char *const host = malloc(guard_bytes(of_a));
  memory_download(backend, host, a, guard_bytes(of_a));
  for (int64_t i = 0; i < batch.count; i++)
    for (int j = 0; j < beside->n[i]; j++)
      ck_assert_msg(memcmp(host + of_a->size * (size_t)(beside->operands[BQR_A].at[i] +
                                                        j * (int64_t)rows_ld(beside, BQR_A, i)),
                           (const char *)rows_at(beside, place, i) +
                               of_a->size * (size_t)(j * rows_ld(beside, place, i)),
                           of_a->size * (size_t)(place == BQR_U ? beside->m[i] : beside->n[i])) == 0,
                    "%s in place of A differs in column %d of member %lld", bqr_places[place].name, j,
                    (long long)i);
  void *const all[] = {a, s, u, v};
  for (int i = 0; i < 4; i++) memory_free(backend, all[i]);
  free(host);
}

/* Square members, or higher ones, half of them rank-deficient. */
static void expect_both_in_place(batchqr_handle_t handle, batchqr_type type, int rows, int cols) {
  enum { MEMBERS = 4 };
  static const int kinds[] = {MATGEN_RANDOM, MATGEN_RANK_DEFICIENT}, no_rank[] = {BQR_RANK, 0};
  int m[MEMBERS], n[MEMBERS];
  for (int i = 0; i < MEMBERS; i++) m[i] = rows, n[i] = cols;
  rows_call beside =
      rows_new(BATCHQR_GESVD, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, MEMBERS, m, n, NULL, no_rank);
  spectra_fill(&beside, kinds, 2, 3);
  const size_t bytes = guard_bytes(&beside.operands[BQR_A].data);
  void *const a_before = malloc(bytes);
  memcpy(a_before, beside.operands[BQR_A].data.data, bytes);
  spectra_run(&gesvd, &beside, handle, "beside A");
  expect_in_place(&beside, a_before, BQR_U, handle);
  expect_in_place(&beside, a_before, BQR_V, handle);
  free(a_before);
  rows_free(&beside);
}

START_TEST(gram_in_place) {
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  if (force(handle, type, "gesvd_gram", "cols32")) expect_both_in_place(handle, type, 100, 18);
  batchqr_destroy(handle);
}
END_TEST

/* z of more than 16 rows is not for warps. */
static bool takes_eigenvectors(batchqr_type type, const char *family) {
  return type != BATCHQR_Z || strcmp(family, "gesvd_warp") != 0;
}

/* Members by A^H A's eigenvectors, beside some for which these will not do, also of those that share a warp.
 */
START_TEST(eigen) {
  enum { MEMBERS = 6 };
  static const struct {
    const char *family, *variant;
    int m, n, unwanted[3];
  } all[] = {{"gesvd_eigen", "width64", 64, 64, {0}},
             {"gesvd_eigen", "width64", 40, 57, {BQR_V, 0}},
             {"gesvd_eigen", "width96", 96, 96, {0}},
             {"gesvd_eigen", "width96", 90, 33, {BQR_U, 0}},
             {"gesvd_eigen", "width128", 128, 128, {0}},
             {"gesvd_eigen", "width128", 97, 128, {0}},
             {"gesvd_eigen", "width64", 5, 9, {BQR_RANK, 0}},
             {"gesvd_eigen", "width128", 70, 1, {BQR_U, BQR_V, 0}},
             {"gesvd_eigen", "width64", 48, 48, {BQR_RANK, 0}},
             {"gesvd_warp", "rows32", 32, 32, {0}},
             {"gesvd_warp", "rows32", 19, 30, {0}},
             {"gesvd_warp", "rows32", 30, 19, {BQR_V, 0}},
             {"gesvd_warp", "rows24", 24, 24, {BQR_U, 0}},
             {"gesvd_warp", "rows24", 17, 23, {BQR_V, 0}},
             {"gesvd_warp", "rows16", 16, 16, {0}},
             {"gesvd_warp", "rows16", 16, 9, {BQR_V, 0}},
             {"gesvd_warp", "rows16", 11, 14, {BQR_U, 0}},
             {"gesvd_warp", "rows16", 12, 12, {BQR_U, BQR_V, 0}}};
  static const int kinds[] = {MATGEN_RANDOM,    HARD_GRADED_COLUMNS,   MATGEN_RANDOM, MATGEN_ORTHONORMAL,
                              MATGEN_ILL,       MATGEN_RANK_DEFICIENT, MATGEN_ZERO,   HARD_KAHAN,
                              MATGEN_CLUSTERED, MATGEN_SUBNORMAL,      MATGEN_WELL,   MATGEN_LARGEST,
                              HARD_TOEPLITZ,    MATGEN_SIGNS,          HARD_REPEATED, HARD_ULPS};
  enum { KINDS = sizeof kinds / sizeof *kinds };
  const batchqr_type type = (batchqr_type)_i;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
    if (takes_eigenvectors(type, all[i].family) && force(handle, type, all[i].family, all[i].variant)) {
      int m[MEMBERS], n[MEMBERS], of[MEMBERS];
      for (int way = 0; way < 3; way++) {
        for (int j = 0; j < MEMBERS; j++) {
          m[j] = all[i].m;
          n[j] = all[i].n;
          of[j] = kinds[(MEMBERS * way + j) % KINDS];
        }
        rows_call c =
            rows_new(BATCHQR_GESVD, type, BATCHQR_UNIFORM, way % 2 ? BATCHQR_POINTERS : BATCHQR_STRIDED,
                     MEMBERS, m, n, NULL, all[i].unwanted);
        spectra_fill(&c, of, MEMBERS, 3 + i);
        spectra_run(&gesvd, &c, handle, all[i].variant);
        rows_free(&c);
      }
    }
    batchqr_destroy(handle);
  }
}
END_TEST

/* Rows (columns, of wide members) divided by up to 10^decades, evenly: columns of a tall one stay alike. */
static void grade_shorter(rows_call *c, int64_t i, double decades) {
  const batchqr_type type = c->batch.type;
  const int m = c->m[i], n = c->n[i], ld = rows_ld(c, BQR_A, i);
  for (int col = 0; col < n; col++)
    for (int row = 0; row < m; row++) {
      void *const at =
          (char *)rows_at(c, BQR_A, i) + bqr_type_bytes(type) * (size_t)(row + col * (int64_t)ld);
      const double by = pow(10, -decades * (m >= n ? row : col) / most(m, n));
      if (type == BATCHQR_S) *(float *)at *= (float)by;
      if (type == BATCHQR_D) *(double *)at *= by;
    }
}

/* Condition numbers from 1e2 to beyond those that A^H A's eigenvectors will do for: steps are many, and large
 * ones. */
START_TEST(eigen_graded) {
  enum { MEMBERS = 7 };
  static const double decades[MEMBERS] = {2, 3, 4, 5, 5.5, 6, 7};
  static const int sizes[][2] = {{64, 64}, {60, 41}, {33, 64}, {96, 96}, {128, 128},
                                 {32, 32}, {18, 31}, {24, 24}, {16, 16}, {15, 10}};
  const batchqr_type type = (batchqr_type)_i;
  for (int of = 0; of < 10; of++) {
    batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
    const char *const family = of < 5 ? "gesvd_eigen" : "gesvd_warp";
    if (takes_eigenvectors(type, family) && force(handle, type, family,
                                                  of < 5   ? "width128"
                                                  : of < 8 ? "rows32"
                                                           : "rows16")) {
      int m[MEMBERS], n[MEMBERS];
      const int kind = MATGEN_RANDOM;
      for (int i = 0; i < MEMBERS; i++) m[i] = sizes[of][0], n[i] = sizes[of][1];
      rows_call c =
          rows_new(BATCHQR_GESVD, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, MEMBERS, m, n, NULL, NULL);
      spectra_fill(&c, &kind, 1, 7);
      for (int i = 0; i < MEMBERS; i++) grade_shorter(&c, i, decades[i]);
      spectra_run(&gesvd, &c, handle, "graded rows");
      rows_free(&c);
    }
    batchqr_destroy(handle);
  }
}
END_TEST

/* U, and V, in place of A, of members that eigenvectors will do for and of others. */
START_TEST(eigen_in_place) {
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  if (force(handle, type, "gesvd_eigen", "width64")) expect_both_in_place(handle, type, 45, 45);
  const bool by_warp = takes_eigenvectors(type, "gesvd_warp");
  if (by_warp && force(handle, type, "gesvd_warp", "rows32")) expect_both_in_place(handle, type, 31, 20);
  if (by_warp && force(handle, type, "gesvd_warp", "rows16")) expect_both_in_place(handle, type, 12, 12);
  batchqr_destroy(handle);
}
END_TEST

/* Alone in a call, and not small: several blocks of a GPU share it. */
START_TEST(lone) {
  static const struct {
    int m, n, kind, unwanted[3];
  } all[] = {{70, 70, MATGEN_RANDOM, {0}},
             {66, 100, HARD_GRADED_ROWS, {BQR_U, 0}},
             {100, 66, HARD_GRADED_COLUMNS, {BQR_V, 0}},
             {70, 90, MATGEN_RANK_DEFICIENT, {BQR_U, BQR_V, 0}},
             {80, 80, HARD_RANK_ONE, {0}},
             {140, 130, HARD_KAHAN, {0}}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    rows_call c = rows_new(BATCHQR_GESVD, (batchqr_type)_i, BATCHQR_UNIFORM, BATCHQR_STRIDED, 1, &all[i].m,
                           &all[i].n, NULL, all[i].unwanted);
    spectra_fill(&c, &all[i].kind, 1, 7);
    spectra_run(&gesvd, &c, handle, "alone");
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* A NaN or an Inf in one of three members. */
static void expect_nonfinite(batchqr_handle_t handle, batchqr_type type, int rows, int cols) {
  const int m[] = {rows, rows, rows}, n[] = {cols, cols, cols};
  for (int bad = 0; bad < 2; bad++) {
    rows_call c = rows_new(BATCHQR_GESVD, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, 3, m, n, NULL, NULL);
    const int kind = MATGEN_RANDOM;
    spectra_fill(&c, &kind, 1, 3);
    const double value = bad ? (double)INFINITY : (double)NAN;
    char *entry = rows_at(&c, BQR_A, 1);
    entry += bqr_type_bytes(type) * (size_t)(rows - 10 + 3 * rows_ld(&c, BQR_A, 1));
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
}

START_TEST(tall_nonfinite) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  expect_nonfinite(handle, (batchqr_type)_i, 520, 8);
  batchqr_destroy(handle);
}
END_TEST

/* U in A's place. */
static void judge_in_place(batchqr_handle_t handle, batchqr_type type, int m, int n, matgen_kind kind) {
  for (int way = 0; way < 2; way++) {
    trial t = trial_new(BATCHQR_GESVD, type, 1);
    trial_fill(&t, m, n, 0, 5);
    t.members->kind = kind;
    t.in_place = true;
    t.tight = way;
    trial_build(&t);
    trial_run_and_judge(&t, handle, TRIAL_CALL);
    trial_free(&t);
  }
}

/* gesvd_tall of members that A^H A's eigenvalues are good enough for, of others that are solved by QR, and of
 * one with a NaN. */
START_TEST(tall_by_eigenvalues) {
  static const int unwanted[][4] = {{0}, {BQR_V, 0}, {BQR_U, 0}, {BQR_U, BQR_V, BQR_RANK, 0}};
  static const int sizes[][2] = {{601, 40}, {300, 70}, {600, 140}}; /* of the last one U is a product */
  static const int kinds[] = {MATGEN_RANDOM,       MATGEN_WELL,     MATGEN_SIGNS,     MATGEN_ORTHONORMAL,
                              HARD_GRADED_COLUMNS, MATGEN_OVERFLOW, MATGEN_UNDERFLOW, MATGEN_SUBNORMAL,
                              MATGEN_ILL,          MATGEN_WORST,    MATGEN_CLUSTERED, MATGEN_RANK_DEFICIENT,
                              MATGEN_ZERO_LAST,    MATGEN_ZERO,     MATGEN_LARGEST};
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  const bqr_family *family = NULL;
  for (int f = 0; f < bqr_num_families(); f++)
    if (!strcmp(bqr_family_at(f)->name, "gesvd_tall")) family = bqr_family_at(f);
  if (family && bqr_family_runs_on(family, bqr_handle_device(handle), type)) {
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GESVD, "gesvd_tall", NULL), 0);
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GEQRF, "geqrf_large", "cols64"), 0);
    ck_assert_int_eq(bqr_force(handle, BATCHQR_ORMQR, "ormqr_large", "cols64"), 0);
    for (int i = 0; i < (int)(sizeof kinds / sizeof *kinds); i++) {
      const int m = sizes[i % 3][0], n = sizes[i % 3][1], of[] = {kinds[i], MATGEN_WELL};
      rows_call c = rows_new(BATCHQR_GESVD, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, 2, (int[]){m, m},
                             (int[]){n, n}, NULL, unwanted[i % 4]);
      spectra_fill(&c, of, 2, 3);
      spectra_run(&gesvd, &c, handle, hard_name(kinds[i]));
      rows_free(&c);
    }
    expect_nonfinite(handle, type, 300, 40);
    judge_in_place(handle, type, 300, 40, MATGEN_WELL);
    judge_in_place(handle, type, 300, 40, MATGEN_WORST);
    judge_in_place(handle, type, 600, 140, MATGEN_WELL);
    judge_in_place(handle, type, 600, 140, MATGEN_WORST);
  }
  batchqr_destroy(handle);
}
END_TEST

static double real_at(batchqr_type type, const void *x, int64_t i) {
  return type == BATCHQR_D ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

/* A x = U S V^T x for a random x, of a member that is too large for the other judges. */
static void expect_product(const trial *t) {
  const trial_member *x = t->members;
  const guard *g[] = {&t->operands[BQR_A].g, &t->operands[BQR_S].g, &t->operands[BQR_U].g,
                      &t->operands[BQR_V].g};
  const char *a = guard_before(g[0], x->at[BQR_A]), *s = guard_at(g[1], x->at[BQR_S]),
             *u = guard_at(g[2], x->at[BQR_U]), *v = guard_at(g[3], x->at[BQR_V]);
  double *y = calloc((size_t)x->m, sizeof *y), error = 0, size = 0;
  for (int j = 0; j < x->n; j++) {
    double along = 0;
    for (int i = 0; i < x->n; i++)
      along += real_at(t->type, v, (int64_t)j * x->ld[BQR_V] + i) * rng_uniform(3, (uint64_t)i);
    along *= real_at(t->type, s, j);
    for (int i = 0; i < x->m; i++)
      y[i] += real_at(t->type, a, (int64_t)j * x->ld[BQR_A] + i) * rng_uniform(3, (uint64_t)j) -
              real_at(t->type, u, (int64_t)j * x->ld[BQR_U] + i) * along;
    size = hypot(size, along);
  }
  for (int i = 0; i < x->m; i++) error = hypot(error, y[i]);
  ck_assert_msg(error <= SPECTRA_RATIO * x->n * type_eps(t->type) * size, "%c %d x %d: error %g of %g",
                type_letter(t->type), x->m, x->n, error, size);
  free(y);
}

/* By numbers of columns, in a workspace of no more than what is asked for: by eigenvalues, and by QR. */
START_TEST(tall_by_columns) {
  static const int columns[] = {140, 600, 769};
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  const bqr_family *family = NULL;
  for (int f = 0; f < bqr_num_families(); f++)
    if (!strcmp(bqr_family_at(f)->name, "gesvd_tall")) family = bqr_family_at(f);
  if (family && bqr_family_runs_on(family, bqr_handle_device(handle), type)) {
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GESVD, "gesvd_tall", NULL), 0);
    for (int i = 0; i < 2 * (int)(sizeof columns / sizeof *columns); i++) {
      trial t = trial_new(BATCHQR_GESVD, type, 1);
      trial_fill(&t, 4 * columns[i / 2] + (i / 2 % 2) * 1700, columns[i / 2], 0, 5);
      t.members->kind = i % 2 ? MATGEN_ZERO_LAST : MATGEN_RANDOM;
      t.layout = BATCHQR_STRIDED;
      t.own_layouts = false;
      t.tight = true;
      trial_build(&t);
      ck_assert_msg(trial_run(&t, handle, TRIAL_PLAN) == BATCHQR_SUCCESS, "%c %d x %d: %s", type_letter(type),
                    t.members->m, t.members->n, batchqr_error_message(handle));
      trial_check_guards(&t, handle);
      expect_product(&t);
      trial_free(&t);
    }
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
  suite_add(suite, middle);
  suite_add(suite, small_values);
  suite_add(suite, tall);
  suite_add(suite, gram);
  suite_add(suite, gram_in_place);
  suite_add(suite, eigen);
  suite_add(suite, eigen_in_place);
  suite_add(suite, eigen_graded);
  suite_add(suite, lone);
  suite_add(suite, tall_nonfinite);
  suite_add(suite, tall_by_eigenvalues);
  suite_add(suite, tall_by_columns);
  return suite_run(suite);
}
