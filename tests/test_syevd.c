/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_syevd(): LAPACK's ratios (xDRVST's), eigenvalues against LAPACK's in double precision. */
#include "inspect.h"
#include "spectra.h"
#include "trial.h"

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

static void judge_vectors(const rows_call *c, int64_t i, const char *what, const dense *a, const double *w,
                          double spacing) {
  const batchqr_type type = c->batch.type;
  const int n = a->n;
  dense v = dense_read(type, rows_at(c, BQR_V, i), rows_ld(c, BQR_V, i), n, n, 0),
        av = dense_product(a, false, &v);
  spectra_expect(c, i, what, "||I - V^H V||", dense_orthogonality(&v), SPECTRA_RATIO * n * type_eps(type));
  for (int j = 0; j < n; j++) {
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
  if (c->operands[BQR_V].wanted) judge_vectors(c, i, what, &a, w, spacing);
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
  return suite_run(suite);
}
