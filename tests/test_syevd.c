/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_syevd(): LAPACK's ratios (xDRVST's), eigenvalues against LAPACK's in double precision. */
#include "inspect.h"
#include "spectra.h"
#include "trial.h"

#include <lapacke.h>
#include <math.h>
#include <string.h>

/* A as the call saw it: of its triangle. */
static dense read_a(const rows_call *c, int64_t i, int exponent) {
  const int n = c->n[i];
  dense a = dense_read(c->batch.type, rows_before(c, BQR_A, i), rows_ld(c, BQR_A, i), n, n, exponent);
  for (int j = 0; j < n; j++) {
    *dense_at(&a, j, j) = creal(*dense_at(&a, j, j));
    for (int row = j + 1; row < n; row++)
      if (c->batch.uplo == BATCHQR_LOWER)
        *dense_at(&a, j, row) = conj(*dense_at(&a, row, j));
      else
        *dense_at(&a, row, j) = conj(*dense_at(&a, j, row));
  }
  return a;
}

static int exponent_of(const rows_call *c, int64_t i) {
  dense a = read_a(c, i, 0);
  double largest = 0;
  int e = 0;
  for (size_t x = 0; x < (size_t)a.m * (size_t)a.n; x++)
    largest = fmax(largest, fmax(fabs(creal(a.x[x])), fabs(cimag(a.x[x]))));
  frexp(largest, &e);
  dense_free(&a);
  return -e;
}

static bool is_signed(const dense *v, int j) {
  double largest = 0;
  for (int i = 0; i < v->m; i++) largest = fmax(largest, cabs(*dense_at(v, i, j)));
  for (int i = 0; i < v->m; i++) { /* another one may be as large, but for rounding */
    const double complex z = *dense_at(v, i, j);
    if (cabs(z) * (1 + 1e-4) >= largest && creal(z) > 0 && cimag(z) == 0) return true;
  }
  return false;
}

/* Of `count` columns. */
static void judge_vectors(const rows_call *c, int64_t i, const char *what, const dense *a, const double *w,
                          int count, double spacing) {
  const batchqr_type type = c->batch.type;
  const int n = a->n;
  dense v = dense_read(type, rows_at(c, BQR_V, i), rows_ld(c, BQR_V, i), n, count, 0),
        av = dense_product(a, false, &v);
  spectra_expect(c, i, what, "||I - V^H V||", dense_orthogonality(&v), SPECTRA_RATIO * n * type_eps(type));
  for (int j = 0; j < count; j++) {
    ck_assert_msg(is_signed(&v, j), "%s: sign of column %d", what, j);
    for (int row = 0; row < n; row++) *dense_at(&av, row, j) -= *dense_at(&v, row, j) * w[j];
  }
  spectra_expect(c, i, what, "||A V - V W||", dense_norm(&av),
                 SPECTRA_RATIO * n * (dense_norm(a) * type_eps(type) + spacing));
  dense_free(&v);
  dense_free(&av);
}

static void judge(const rows_call *c, int64_t i, const char *what) {
  const batchqr_type type = c->batch.type;
  const int n = c->n[i], exponent = exponent_of(c, i);
  const double spacing = dense_spacing(type, exponent);
  dense a = read_a(c, i, exponent);
  double *w = malloc(((size_t)n + 1) * sizeof *w), *want = malloc(((size_t)n + 1) * sizeof *want);
  for (int j = 0; j < n; j++) w[j] = dense_real(type, rows_at(c, BQR_S, i), j, exponent);
  spectra_expect(c, i, what, "info", abs(c->info[i]), 0);
  dense_eigenvalues(&a, want);
  for (int j = 0; j < n; j++) {
    ck_assert_msg(j == 0 || w[j] >= w[j - 1], "%s: w[%d] = %g", what, j, w[j]);
    spectra_expect(c, i, what, "an eigenvalue's error", fabs(w[j] - want[j]),
                   SPECTRA_RATIO * (fmax(fabs(want[0]), fabs(want[n - 1])) * type_eps(type) * n + spacing));
  }
  if (c->operands[BQR_V].wanted) judge_vectors(c, i, what, &a, w, n, spacing);
  free(w);
  free(want);
  dense_free(&a);
}

/* What must not be read. */
static void spoil(rows_call *c) {
  for (int64_t i = 0; i < c->batch.count; i++)
    for (int j = 0; j < c->n[i]; j++)
      for (int row = 0; row < c->n[i]; row++)
        if (c->batch.uplo == BATCHQR_LOWER ? row < j : row > j)
          memset((char *)rows_at(c, BQR_A, i) +
                     ((size_t)j * (size_t)rows_ld(c, BQR_A, i) + (size_t)row) * bqr_type_bytes(c->batch.type),
                 0xff, bqr_type_bytes(c->batch.type));
}

static const spectra syevd = {.op = BATCHQR_SYEVD, .square = true, .fill = spoil, .judge = judge};

START_TEST(every_kind) { spectra_every_kind(&syevd, (batchqr_type)_i); }
END_TEST
START_TEST(every_form) { spectra_every_form(&syevd, (batchqr_type)_i); }
END_TEST
START_TEST(every_variant) { spectra_every_variant(&syevd, (batchqr_type)_i); }
END_TEST
START_TEST(places) { spectra_places(&syevd, (batchqr_type)_i); }
END_TEST
START_TEST(nonfinite) { spectra_nonfinite(&syevd, (batchqr_type)_i); }
END_TEST
START_TEST(wrong_sizes) { spectra_wrong_sizes(&syevd, (batchqr_type)_i); }
END_TEST

/* The upper triangle, values alone. */
START_TEST(ways) {
  static const int n[] = {20, 9, 5, 33, 1, 0, 70}, unwanted[] = {BQR_V, BQR_NO_OPERAND};
  const int kinds[] = {MATGEN_RANDOM, HARD_WILKINSON, HARD_ULPS};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 4; way++) {
    rows_call c = rows_new(BATCHQR_SYEVD, (batchqr_type)_i, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, 7, n, n,
                           NULL, way % 2 ? unwanted : NULL);
    c.batch.uplo = way / 2 ? BATCHQR_UPPER : BATCHQR_LOWER;
    spectra_fill(&c, kinds, 3, 3);
    spectra_run(&syevd, &c, handle, way / 2 ? "upper" : "lower");
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Values alone, of entries of all magnitudes. Of the last member in double precision LAPACK's xSYEVD has half
 * the digits. */
START_TEST(values_of_mixed_magnitudes) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  trial t = trial_new(BATCHQR_SYEVD, (batchqr_type)_i, 2001);
  for (int64_t i = 0; i < t.count; i++) {
    const int n = 2 + (int)(i % 6);
    t.members[i] = (trial_member){.m = n, .n = n, .kind = MATGEN_MIXED, .seed = (uint64_t)i};
  }
  t.members[2000] = (trial_member){.m = 5, .n = 5, .kind = MATGEN_MIXED, .seed = 248764577};
  t.sizes = BATCHQR_HOST_SIZES;
  t.no_optional = true;
  trial_once(&t, handle, TRIAL_CALL);
  batchqr_destroy(handle);
}
END_TEST

/* With vectors: of these LAPACK's divide and conquer has vectors that are orthogonal to 9 digits, to 11, ...
 */
START_TEST(vectors_of_mixed_magnitudes) {
  static const uint64_t seeds[] = {412242452, 413074452, 414798452, 410893452};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int uplo = 0; uplo < 2; uplo++) {
    trial t = trial_new(BATCHQR_SYEVD, (batchqr_type)_i, 40);
    for (int64_t i = 0; i < t.count; i++) {
      const uint64_t seed = i < 4 ? seeds[i] : (uint64_t)i;
      t.members[i] = (trial_member){.m = 33, .n = 33, .kind = MATGEN_MIXED, .seed = seed};
    }
    t.uplo = uplo ? BATCHQR_UPPER : BATCHQR_LOWER;
    trial_once(&t, handle, TRIAL_CALL);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Members that do not fit into shared memory. */
START_TEST(large) {
  const int sizes[] = {260, type_is_complex((batchqr_type)_i) ? 300 : 530},
            kinds[] = {HARD_WILKINSON, MATGEN_RANDOM};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  rows_call c = rows_new(BATCHQR_SYEVD, (batchqr_type)_i, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, 2, sizes,
                         sizes, NULL, NULL);
  spectra_fill(&c, kinds, 2, 21);
  spectra_run(&syevd, &c, handle, "large");
  rows_free(&c);
  batchqr_destroy(handle);
}
END_TEST

/* A handle that leaves everything to a family; NULL in a build, or on a device, without it. */
static batchqr_handle_t forced(const char *name, const char *variant, batchqr_type type) {
  const bqr_family *family = bqr_family_find(name);
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  if (!family || !bqr_family_runs_on(family, bqr_handle_device(handle), type)) {
    batchqr_destroy(handle);
    return NULL;
  }
  ck_assert_msg(!bqr_force(handle, BATCHQR_SYEVD, name, variant), "%s", batchqr_error_message(handle));
  return handle;
}

static const char *const bands[] = {"cols256.width64", "cols256.width32"};

/* All kinds, through a band: blocks of columns that end with the matrix, and those that do not. */
START_TEST(every_kind_by_two_stages) {
  static const int sizes[] = {128, 129, 160, 193, 150, 130, 144}, unwanted[] = {BQR_V, BQR_NO_OPERAND};
  int n[HARD_NUM_KINDS], kinds[HARD_NUM_KINDS];
  for (int i = 0; i < HARD_NUM_KINDS; i++) n[i] = sizes[i % 7], kinds[i] = i;
  for (int way = 0; way < 3; way++) { /* width 64 with vectors and without, width 32 with vectors */
    batchqr_handle_t handle = forced("syevd_large", bands[way / 2], (batchqr_type)_i);
    if (!handle) return;
    rows_call c = rows_new(BATCHQR_SYEVD, (batchqr_type)_i, BATCHQR_HOST_SIZES, BATCHQR_POINTERS,
                           HARD_NUM_KINDS, n, n, NULL, way % 2 ? unwanted : NULL);
    c.batch.uplo = way > 0 ? BATCHQR_UPPER : BATCHQR_LOWER;
    spectra_fill(&c, kinds, HARD_NUM_KINDS, 31 + (uint64_t)way);
    spectra_run(&syevd, &c, handle, bands[way / 2]);
    rows_free(&c);
    batchqr_destroy(handle);
  }
}
END_TEST

/* One launch of four members, the second of which has a NaN the second time: the others' bits are the same.
 */
static void judge_nonfinite(batchqr_type type, batchqr_handle_t handle) {
  enum { N = 260, MEMBERS = 4 };
  static const int n[MEMBERS] = {N, N, N, N}, kinds[] = {MATGEN_RANDOM, HARD_GRADED_COLUMNS};
  const size_t size = bqr_type_bytes(type), real = bqr_real_bytes(type);
  rows_call c[2];
  for (int spoilt = 0; spoilt < 2; spoilt++) {
    c[spoilt] = rows_new(BATCHQR_SYEVD, type, BATCHQR_UNIFORM, BATCHQR_STRIDED, MEMBERS, n, n, NULL, NULL);
    spectra_fill(&c[spoilt], kinds, 2, 17);
    spoil(&c[spoilt]);
    if (spoilt) memset((char *)rows_at(&c[1], BQR_A, 1) + (N - 1) * size, 0xff, size);
    ck_assert_int_eq(rows_run(&c[spoilt], handle), BATCHQR_SUCCESS);
  }
  for (int i = 0; i < MEMBERS; i++) {
    ck_assert_int_eq(c[1].info[i], i == 1 ? BATCHQR_INFO_NONFINITE : 0);
    if (i == 1) {
      ck_assert(isnan(dense_real(type, rows_at(&c[1], BQR_S, i), N / 2, 0)));
      continue;
    }
    ck_assert_mem_eq(rows_at(&c[0], BQR_S, i), rows_at(&c[1], BQR_S, i), N * real);
    for (int j = 0; j < N; j++)
      ck_assert_mem_eq((char *)rows_at(&c[0], BQR_V, i) + size * (size_t)(j * rows_ld(&c[0], BQR_V, i)),
                       (char *)rows_at(&c[1], BQR_V, i) + size * (size_t)(j * rows_ld(&c[1], BQR_V, i)),
                       N * size);
  }
  for (int i = 0; i < 2; i++) rows_free(&c[i]);
}

START_TEST(nonfinite_by_two_stages) {
  batchqr_handle_t handle = forced("syevd_large", bands[0], (batchqr_type)_i);
  if (!handle) return;
  judge_nonfinite((batchqr_type)_i, handle);
  batchqr_destroy(handle);
}
END_TEST

/* All kinds, in members that fill a variant's rows and in smaller ones, several to a warp. */
START_TEST(every_kind_of_small_members) {
  static const struct {
    const char *family, *variant, *types;
    int rows;
  } ways[] = {{"syevd_warp", "rows8", "sdcz", 8},
              {"syevd_warp", "rows16", "sdcz", 16},
              {"syevd_warp", "rows32", "sdcz", 32},
              {"syevd_tridiagonal", "rows2.warps2", "sd", 64},
              {"syevd_tridiagonal", "rows2.warps4", "c", 64},
              {"syevd_tridiagonal", "rows2.warps8", "z", 64},
              {"syevd_tridiagonal", "rows3.warps3", "s", 96},
              {"syevd_tridiagonal", "rows3.warps4", "d", 96},
              {"syevd_tridiagonal", "rows3.warps8", "c", 96},
              {"syevd_tridiagonal", "rows3.warps12", "z", 96},
              {"syevd_tridiagonal", "rows4.warps4", "s", 128},
              {"syevd_tridiagonal", "rows4.warps8", "d", 128},
              {"syevd_tridiagonal", "rows4.warps12", "c", 128},
              {"syevd_tridiagonal", "rows8.warps8", "s", 256},
              {"syevd_tridiagonal", "rows8.warps16", "d", 256},
              {"syevd_tridiagonal", "rows4", "sdcz", 100}};
  static const int unwanted[] = {BQR_V, BQR_NO_OPERAND};
  enum { WAYS = sizeof ways / sizeof ways[0], MEMBERS = 3 * HARD_NUM_KINDS };
  int n[MEMBERS], kinds[HARD_NUM_KINDS];
  for (int i = 0; i < HARD_NUM_KINDS; i++) kinds[i] = i;
  for (int way = 0; way < 2 * WAYS; way++) { /* at last values alone */
    const int rows = ways[way % WAYS].rows;
    if (!strchr(ways[way % WAYS].types, type_letter((batchqr_type)_i))) continue;
    batchqr_handle_t handle = forced(ways[way % WAYS].family, ways[way % WAYS].variant, (batchqr_type)_i);
    if (!handle) continue;
    const int members = rows > 128 ? HARD_NUM_KINDS : MEMBERS, full = rows > 128 ? 0 : HARD_NUM_KINDS;
    for (int i = 0; i < members; i++) n[i] = i < full || i % 3 == 0 ? rows : (7 * i + way) % (rows + 1);
    rows_call c = rows_new(BATCHQR_SYEVD, (batchqr_type)_i, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, members, n,
                           n, NULL, way >= WAYS ? unwanted : NULL);
    c.batch.uplo = way % 3 ? BATCHQR_UPPER : BATCHQR_LOWER;
    spectra_fill(&c, kinds, HARD_NUM_KINDS, 51 + (uint64_t)way);
    spectra_run(&syevd, &c, handle, ways[way % WAYS].variant);
    rows_free(&c);
    batchqr_destroy(handle);
  }
}
END_TEST

static void put_real(const rows_call *c, int64_t member, int i, int j, double x) {
  const batchqr_type type = c->batch.type;
  const size_t size = bqr_type_bytes(type);
  char *to =
      (char *)rows_at(c, BQR_A, member) + size * ((size_t)j * (size_t)rows_ld(c, BQR_A, member) + (size_t)i);
  const float rounded = (float)x;
  memset(to, 0, size);
  if (bqr_real_bytes(type) == sizeof rounded)
    memcpy(to, &rounded, sizeof rounded);
  else
    memcpy(to, &x, sizeof x);
}

/* (B, gap I; gap I, B): eigenvalues are those of B, plus and minus the gap. */
static void fill_pairs(const rows_call *c, int64_t member, double gap) {
  const int half = c->n[member] / 2, ld = rows_ld(c, BQR_A, member);
  const size_t size = bqr_type_bytes(c->batch.type);
  char *a = rows_at(c, BQR_A, member);
  for (int j = 0; j < half; j++) {
    memcpy(a + size * ((size_t)(half + j) * (size_t)ld + (size_t)half), a + size * (size_t)j * (size_t)ld,
           size * (size_t)half);
    for (int i = 0; i < half; i++) {
      put_real(c, member, half + i, j, i == j ? gap : 0);
      put_real(c, member, i, half + j, i == j ? gap : 0);
    }
  }
}

/* Eigenvalues in pairs from far apart to equal: vectors found one by one are less and less orthogonal. */
START_TEST(pairs) {
  static const int sizes[] = {8, 16, 32, 6, 30, 48, 100, 200};
  enum { STEPS = 12, MEMBERS = STEPS * (sizeof sizes / sizeof sizes[0]) };
  static const int kind = MATGEN_RANDOM;
  int n[MEMBERS];
  for (int i = 0; i < (int)MEMBERS; i++) n[i] = sizes[i / STEPS];
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  rows_call c = rows_new(BATCHQR_SYEVD, (batchqr_type)_i, BATCHQR_HOST_SIZES, BATCHQR_POINTERS, MEMBERS, n, n,
                         NULL, NULL);
  spectra_fill(&c, &kind, 1, 71);
  for (int i = 0; i < (int)MEMBERS; i++) fill_pairs(&c, i, ldexp(1, -5 * (i % STEPS)));
  spectra_run(&syevd, &c, handle, "pairs");
  rows_free(&c);
  batchqr_destroy(handle);
}
END_TEST

/* Values alone, where a point at which lanes look first is an eigenvalue three times, so that the signs of
 * all minors behind these rows are lost there: also of lanes that have no eigenvalue, in front of a smaller
 * member. The rows beside them have a zero diagonal, which does not tell how many eigenvalues are below. */
START_TEST(values_at_first_points) {
  static const int unwanted[] = {BQR_V, BQR_NO_OPERAND}, lanes[] = {16, 32}, kind = MATGEN_ZERO;
  for (int w = 0; w < 2; w++) {
    batchqr_handle_t handle = forced("syevd_warp", w ? "rows32" : "rows16", (batchqr_type)_i);
    if (!handle) return;
    enum { MOST = 32 };
    const int members = lanes[w], beside = lanes[w] / 4, rows = 2 * beside + 3;
    int n[MOST];
    for (int i = 0; i < members; i++) n[i] = rows;
    rows_call c = rows_new(BATCHQR_SYEVD, (batchqr_type)_i, BATCHQR_UNIFORM, BATCHQR_POINTERS, members, n, n,
                           NULL, unwanted);
    spectra_fill(&c, &kind, 1, 81);
    for (int i = 0; i < members; i++)
      for (int row = 0; row < rows; row++) {
        const bool middle = row >= beside && row < beside + 3, next = row + 1 >= beside && row < beside + 3;
        if (middle) put_real(&c, i, row, row, (2 * i + 1.0137) / lanes[w] - 1); /* see sturm_place() */
        if (next || row == rows - 1) continue;
        put_real(&c, i, row, row + 1, 0.45);
        put_real(&c, i, row + 1, row, 0.45);
      }
    spectra_run(&syevd, &c, handle, "first points");
    rows_free(&c);
    batchqr_destroy(handle);
  }
}
END_TEST

static const struct {
  const char *variant;
  int n;
  bool is_real; /* of real types alone */
} clusters[] = {{"blocks8", 150, false},         {"blocks4", 97, false},
                {"blocks8.global", 200, false},  {"blocks4.global", 129, false},
                {"blocks1.global", 65, false},   {"rows256", 256, true},
                {"rows256", 203, true},          {"rows1024.blocks2", 97, true},
                {"rows1024.blocks3", 290, true}, {"rows1024.blocks8", 161, true}};

/* All kinds, in members of one order: fewer chunks of rows than blocks, as many, and more. */
START_TEST(every_kind_by_clusters) {
  static const int unwanted[] = {BQR_V, BQR_NO_OPERAND};
  enum { WAYS = sizeof clusters / sizeof clusters[0] };
  int n[HARD_NUM_KINDS], kinds[HARD_NUM_KINDS];
  for (int way = 0; way < WAYS + 1; way++) { /* the last one: values alone */
    if (clusters[way % WAYS].is_real && type_is_complex((batchqr_type)_i)) continue;
    batchqr_handle_t handle = forced("syevd_cluster", clusters[way % WAYS].variant, (batchqr_type)_i);
    if (!handle) return;
    for (int i = 0; i < HARD_NUM_KINDS; i++) n[i] = clusters[way % WAYS].n, kinds[i] = i;
    rows_call c = rows_new(BATCHQR_SYEVD, (batchqr_type)_i, BATCHQR_UNIFORM, BATCHQR_POINTERS, HARD_NUM_KINDS,
                           n, n, NULL, way == WAYS ? unwanted : NULL);
    c.batch.uplo = way % 2 ? BATCHQR_UPPER : BATCHQR_LOWER;
    spectra_fill(&c, kinds, HARD_NUM_KINDS, 41 + (uint64_t)way);
    spectra_run(&syevd, &c, handle, clusters[way % WAYS].variant);
    rows_free(&c);
    batchqr_destroy(handle);
  }
}
END_TEST

/* All kinds by the whole device, one after another; of more rows than a block has threads, one. */
START_TEST(every_kind_one_stage) {
  enum { SMALL = 5 };
  static const int sizes[] = {60, 33, 16, 2, 1, 530, 1030}, unwanted[] = {BQR_V, BQR_NO_OPERAND};
  int n[HARD_NUM_KINDS], kinds[HARD_NUM_KINDS];
  const int ways = (batchqr_type)_i == BATCHQR_Z ? 6 : 7; /* z up to 1024 */
  for (int way = 0; way < ways; way++) {
    batchqr_handle_t handle = forced("syevd_cluster", "wide", (batchqr_type)_i);
    if (!handle) return;
    if (way >= SMALL && bqr_handle_device(handle)->multiprocessors < 128) {
      batchqr_destroy(handle);
      return;
    }
    const int members = way < SMALL ? HARD_NUM_KINDS : 1;
    for (int i = 0; i < members; i++) n[i] = sizes[way], kinds[i] = way < SMALL ? i : 5 * i + way;
    rows_call c = rows_new(BATCHQR_SYEVD, (batchqr_type)_i, BATCHQR_UNIFORM, BATCHQR_POINTERS, members, n, n,
                           NULL, way == 1 ? unwanted : NULL);
    c.batch.uplo = way % 2 ? BATCHQR_UPPER : BATCHQR_LOWER;
    spectra_fill(&c, kinds, members, 91 + (uint64_t)way);
    spectra_run(&syevd, &c, handle, "wide");
    rows_free(&c);
    batchqr_destroy(handle);
  }
}
END_TEST

START_TEST(nonfinite_by_clusters) {
  static const char *const names[] = {"blocks8.global", "rows1024.blocks3", "wide"};
  for (int i = 0; i < 3; i++) {
    const bool wide = i == 2;
    if (i == 1 && type_is_complex((batchqr_type)_i)) continue;
    batchqr_handle_t handle = forced("syevd_cluster", names[i], (batchqr_type)_i);
    if (!handle) return;
    if (!wide || bqr_handle_device(handle)->multiprocessors >= 128) judge_nonfinite((batchqr_type)_i, handle);
    batchqr_destroy(handle);
  }
}
END_TEST

/* --- ranges */

typedef struct range {
  int il, iu;
  double vl, vu;
} range;

static void set_range(batchqr_batch *batch, const range *r) {
  batch->il = r->il, batch->iu = r->iu;
  batch->vl = r->vl, batch->vu = r->vu;
}

/* What a member of n rows, whose eigenvalues are w, has of a range: the first, and how many. */
static int first_of(const range *r, int n, const double *w) {
  int first = bqr_min(n, bqr_max(0, r->il - 1));
  while (r->iu == 0 && first < n && !(w[first] > r->vl)) first++;
  return first;
}
static int count_of(const range *r, int n, const double *w) {
  const int first = first_of(r, n, w);
  int end = r->iu > 0 ? bqr_max(first, bqr_min(n, r->iu)) : first;
  while (r->iu == 0 && end < n && w[end] <= r->vu) end++;
  return end - first;
}

/* Two calls of the same members. */
typedef struct both {
  rows_call all, part;
} both;

static void fill_both(both *b, const int *kinds, int number, uint64_t seed) {
  spectra_fill(&b->all, kinds, number, seed);
  spectra_fill(&b->part, kinds, number, seed);
}

static both both_new(const batchqr_batch *batch, const range *r, batchqr_layout layout, const int *n,
                     const int *unwanted) {
  batchqr_batch part = *batch;
  set_range(&part, r);
  return (both){rows_new_range(batch, BATCHQR_SYEVD, layout, n, n, NULL, unwanted),
                rows_new_range(&part, BATCHQR_SYEVD, layout, n, n, NULL, unwanted)};
}

static void both_free(both *b) {
  rows_free(&b->all);
  rows_free(&b->part);
}

static bool both_run(both *b, batchqr_handle_t handle) {
  spoil(&b->all);
  spoil(&b->part);
  const batchqr_status status = rows_run(&b->all, handle);
  ck_assert_msg(!status || status == BATCHQR_UNSUPPORTED, "%s", batchqr_error_message(handle));
  ck_assert_msg(rows_run(&b->part, handle) == status, "%s", batchqr_error_message(handle));
  return !status;
}

/* Eigenvalues are those of the call without a range, bit for bit, and so are vectors, or they are judged.
 * Behind the values of a range of values there are NaNs. */
static void judge_part(const both *b, int64_t i, const char *what, bool same_vectors) {
  const rows_call *c = &b->part;
  const batchqr_type type = c->batch.type;
  const size_t size = bqr_type_bytes(type), real = bqr_real_bytes(type);
  const range r = {c->batch.il, c->batch.iu, c->batch.vl, c->batch.vu};
  const int n = c->n[i];
  double *w = malloc(((size_t)n + 1) * sizeof *w);
  for (int j = 0; j < n; j++) w[j] = dense_real(type, rows_at(&b->all, BQR_S, i), j, 0);
  const int first = first_of(&r, n, w), count = count_of(&r, n, w);
  const char *from = rows_at(&b->all, BQR_S, i), *to = rows_at(c, BQR_S, i);
  ck_assert_int_eq(c->info[i], 0);
  ck_assert_msg(*(const int *)rows_at(c, BQR_RANK, i) == count,
                "%s, member %lld of %d rows: found %d, not %d", what, (long long)i, n,
                *(const int *)rows_at(c, BQR_RANK, i), count);
  ck_assert_msg(memcmp(from + (size_t)first * real, to, (size_t)count * real) == 0,
                "%s, member %lld of %d rows, il %d, iu %d: other eigenvalues", what, (long long)i, n, r.il,
                r.iu);
  for (int j = count; j < n && r.iu == 0; j++) ck_assert(isnan(dense_real(type, to, j, 0)));
  for (int j = 0; j < count && same_vectors && c->operands[BQR_V].wanted; j++)
    ck_assert_msg(memcmp((const char *)rows_at(&b->all, BQR_V, i) +
                             size * (size_t)(first + j) * (size_t)rows_ld(&b->all, BQR_V, i),
                         (const char *)rows_at(c, BQR_V, i) + size * (size_t)j * (size_t)rows_ld(c, BQR_V, i),
                         size * (size_t)n) == 0,
                  "%s, member %lld of %d rows, il %d, iu %d: another vector %d", what, (long long)i, n, r.il,
                  r.iu, j);
  if (!same_vectors && c->operands[BQR_V].wanted && count > 0) {
    const int exponent = exponent_of(c, i);
    dense a = read_a(c, i, exponent);
    for (int j = 0; j < count; j++) w[j] = dense_real(type, to, j, exponent);
    judge_vectors(c, i, what, &a, w, count, dense_spacing(type, exponent));
    dense_free(&a);
  }
  free(w);
}

/* At both ends, all, in the middle, through clusters; none below, above and between, all, some. */
enum { RANGES = 11 };
static range range_at(int i, int n) {
  const range all[RANGES] = {{.il = 1, .iu = 1},
                             {.il = n, .iu = n},
                             {.il = 1, .iu = n},
                             {.il = n / 3 + 1, .iu = 2 * n / 3 + 1},
                             {.il = (n + 1) / 2, .iu = n},
                             {.vl = -INFINITY, .vu = INFINITY},
                             {.vl = -INFINITY, .vu = -1e30},
                             {.vl = 1e30, .vu = INFINITY},
                             {.vl = 1e-30, .vu = 2e-30},
                             {.vl = -0.25, .vu = 0.75},
                             {.vl = 0, .vu = 1e30}};
  range r = all[i];
  if (r.iu > n) r.iu = n;
  return r;
}

static const int range_kinds[] = {MATGEN_RANDOM, HARD_ULPS, MATGEN_IDENTITY, HARD_WILKINSON, MATGEN_ZERO};

/* Each variant of each family: members of one size. */
START_TEST(ranges_of_every_variant) {
  static const int orders[] = {1, 7, 33, 130}, unwanted[] = {BQR_V, BQR_NO_OPERAND};
  enum { MEMBERS = 5, SHARE = 3 };
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    if (family->op != BATCHQR_SYEVD || family->backend != memory_backend()) continue;
    for (int v = 0; v < family->nvariants; v++) {
      batchqr_handle_t handle = forced(family->name, family->variants[v].name, (batchqr_type)_i);
      if (!handle) continue;
      for (int way = 0; way < (int)(sizeof orders / sizeof *orders) * SHARE; way++) {
        const int order = orders[way / SHARE], n[MEMBERS] = {order, order, order, order, order};
        const range r = range_at((way + v) * 4 % RANGES, order); /* over all variants, all of them */
        const batchqr_batch batch = {
            .type = (batchqr_type)_i, .count = MEMBERS, .uplo = way % 2 ? BATCHQR_UPPER : BATCHQR_LOWER};
        both b =
            both_new(&batch, &r, way % 2 ? BATCHQR_POINTERS : BATCHQR_STRIDED, n, way % 4 ? NULL : unwanted);
        fill_both(&b, range_kinds, 5, 7);
        if (both_run(&b, handle))
          for (int i = 0; i < MEMBERS; i++)
            judge_part(&b, i, family->variants[v].name, !(family->ranges & BQR_BY_INDEX) || r.iu == 0);
        both_free(&b);
      }
      batchqr_destroy(handle);
    }
  }
}
END_TEST

/* Members that have some of a range of indices, or none of it. */
START_TEST(ranges_of_mixed_sizes) {
  static const int n[] = {0, 1, 9, 10, 11, 33, 70, 39, 40, 41, 5, 130}, unwanted[] = {BQR_V, BQR_NO_OPERAND};
  enum { MEMBERS = sizeof n / sizeof n[0] };
  const range ranges[] = {
      {.il = 10, .iu = 40}, {.il = 1, .iu = 130}, {.il = 130, .iu = 130}, {.vl = -1, .vu = 0}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 16; way++) {
    const batchqr_batch batch = {.type = (batchqr_type)_i,
                                 .count = MEMBERS,
                                 .sizes = way / 4 % 2 ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES};
    both b = both_new(&batch, &ranges[way % 4], BATCHQR_POINTERS, n, way / 8 ? unwanted : NULL);
    fill_both(&b, range_kinds, 5, 3);
    ck_assert(both_run(&b, handle));
    for (int i = 0; i < MEMBERS; i++) judge_part(&b, i, "mixed sizes", true);
    both_free(&b);
  }
  batchqr_destroy(handle);
}
END_TEST

/* A NaN, an Inf and sizes that do not fit: nothing is found, and others are as they were. */
START_TEST(ranges_beside_bad_members) {
  static const int n[] = {20, 20, 20, 20, 20};
  const range ranges[] = {{.il = 2, .iu = 7}, {.vl = -1, .vu = 1}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  const batchqr_type type = (batchqr_type)_i;
  for (int way = 0; way < 4; way++) {
    const batchqr_batch batch = {
        .type = type, .count = 5, .sizes = way / 2 ? BATCHQR_DEVICE_SIZES : BATCHQR_HOST_SIZES};
    both b = both_new(&batch, &ranges[way % 2], BATCHQR_POINTERS, n, NULL);
    fill_both(&b, range_kinds, 1, 5);
    for (int i = 0; i < 2; i++) put_real(&b.part, 1 + 2 * i, 5, 5, i ? (double)INFINITY : (double)NAN);
    if (way / 2) b.part.n[2] = 21;
    ck_assert(both_run(&b, handle));
    for (int i = 0; i < 5; i++) {
      const int *found = rows_at(&b.part, BQR_RANK, i);
      if (i % 2) {
        ck_assert_int_eq(b.part.info[i], BATCHQR_INFO_NONFINITE);
        ck_assert_int_eq(*found, 0);
        for (int j = 0; j < (way % 2 ? 20 : 6); j++)
          ck_assert(isnan(dense_real(type, rows_at(&b.part, BQR_S, i), j, 0)));
      } else if (i == 2 && way / 2) {
        ck_assert_int_eq(b.part.info[i], BATCHQR_INFO_SIZES);
        ck_assert_mem_eq(found, rows_before(&b.part, BQR_RANK, i), sizeof *found);
      } else {
        judge_part(&b, i, "beside bad members", true);
      }
    }
    both_free(&b);
  }
  batchqr_destroy(handle);
}
END_TEST

/* All kinds in two stages, where other vectors are not made. */
START_TEST(ranges_by_two_stages) {
  static const int sizes[] = {128, 129, 160, 193, 260, 130, 144}, unwanted[] = {BQR_V, BQR_NO_OPERAND};
  int n[HARD_NUM_KINDS], kinds[HARD_NUM_KINDS];
  const range ranges[] = {{.il = 1, .iu = 13},  {.il = 117, .iu = 128}, {.il = 40, .iu = 110},
                          {.il = 64, .iu = 64}, {.il = 100, .iu = 260}, {.vl = -2, .vu = 2}};
  for (int i = 0; i < HARD_NUM_KINDS; i++) n[i] = sizes[i % 7], kinds[i] = i;
  for (int way = 0; way < 6; way++) {
    batchqr_handle_t handle = forced("syevd_large", bands[(way + _i) % 2], (batchqr_type)_i);
    if (!handle) return;
    const batchqr_batch batch = {.type = (batchqr_type)_i,
                                 .count = HARD_NUM_KINDS,
                                 .sizes = BATCHQR_HOST_SIZES,
                                 .uplo = way % 3 ? BATCHQR_UPPER : BATCHQR_LOWER};
    both b = both_new(&batch, &ranges[way], BATCHQR_POINTERS, n, way == 3 ? unwanted : NULL);
    fill_both(&b, kinds, HARD_NUM_KINDS, 31 + (uint64_t)way);
    ck_assert(both_run(&b, handle));
    for (int i = 0; i < HARD_NUM_KINDS; i++) judge_part(&b, i, "two stages", false);
    both_free(&b);
    batchqr_destroy(handle);
  }
}
END_TEST

/* As LAPACK's xSYEVR finds them: bounds lie between eigenvalues. */
START_TEST(ranges_as_lapack) {
  enum { N = 50, FIRST = 7, FOUND = 21 };
  if (_i != BATCHQR_D) return;
  static const int n[] = {N}, kind = MATGEN_RANDOM;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  range r = {.il = FIRST + 1, .iu = FIRST + FOUND};
  for (int by_value = 0; by_value < 2; by_value++) {
    const batchqr_batch batch = {.type = BATCHQR_D, .count = 1};
    both b = both_new(&batch, &r, BATCHQR_STRIDED, n, NULL);
    fill_both(&b, &kind, 1, 3);
    ck_assert(both_run(&b, handle));
    judge_part(&b, 0, "as LAPACK", true);
    dense a = read_a(&b.part, 0, 0);
    double copy[N * N], all[N], w[N], z[N * N];
    int found, support[2 * N];
    dense_eigenvalues(&a, all);
    for (int i = 0; i < N * N; i++) copy[i] = creal(a.x[i]);
    ck_assert_int_eq(LAPACKE_dsyevr(LAPACK_COL_MAJOR, 'V', by_value ? 'V' : 'I', 'L', N, copy, N, r.vl, r.vu,
                                    r.il, r.iu, 0, &found, w, z, N, support),
                     0);
    r = (range){.vl = (all[FIRST - 1] + all[FIRST]) / 2,
                .vu = (all[FIRST + FOUND - 1] + all[FIRST + FOUND]) / 2};
    ck_assert_int_eq(found, FOUND);
    ck_assert_int_eq(*(const int *)rows_at(&b.part, BQR_RANK, 0), found);
    for (int j = 0; j < found; j++) {
      const double *v = (const double *)rows_at(&b.part, BQR_V, 0) + j * rows_ld(&b.part, BQR_V, 0);
      double product = 0;
      for (int i = 0; i < N; i++) product += v[i] * z[j * N + i];
      ck_assert(fabs(((const double *)rows_at(&b.part, BQR_S, 0))[j] - w[j]) < 1e-12);
      ck_assert(fabs(fabs(product) - 1) < 1e-10);
    }
    dense_free(&a);
    both_free(&b);
  }
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("syevd");
  suite_add(suite, every_kind);
  suite_add(suite, every_form);
  suite_add(suite, every_variant);
  suite_add(suite, places);
  suite_add(suite, nonfinite);
  suite_add(suite, wrong_sizes);
  suite_add(suite, ways);
  suite_add(suite, values_of_mixed_magnitudes);
  suite_add(suite, vectors_of_mixed_magnitudes);
  suite_add(suite, large);
  suite_add(suite, every_kind_by_two_stages);
  suite_add(suite, nonfinite_by_two_stages);
  suite_add(suite, every_kind_of_small_members);
  suite_add(suite, pairs);
  suite_add(suite, values_at_first_points);
  suite_add(suite, every_kind_by_clusters);
  suite_add(suite, every_kind_one_stage);
  suite_add(suite, nonfinite_by_clusters);
  suite_add(suite, ranges_of_every_variant);
  suite_add(suite, ranges_of_mixed_sizes);
  suite_add(suite, ranges_beside_bad_members);
  suite_add(suite, ranges_by_two_stages);
  suite_add(suite, ranges_as_lapack);
  return suite_run(suite);
}
