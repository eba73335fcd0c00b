/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_gesvdr(): what holds for any approximation, up to rounding, and how good the approximation is. */
#include "spectra.h"

#include <math.h>

static int least(int a, int b) { return a < b ? a : b; }
static int most(int a, int b) { return a > b ? a : b; }

/* Member i's A, times 2^exponent, and its results. */
typedef struct results {
  dense a, u, v;
  double s[160];
  int k, exponent;
} results;

static results read_results(const rows_call *c, int64_t i) {
  const batchqr_type type = c->batch.type;
  const int m = c->m[i], n = c->n[i], k = least(c->k[i], least(m, n));
  const int exponent = dense_exponent(type, rows_before(c, BQR_A, i), rows_ld(c, BQR_A, i), m, n);
  results r = {.a = dense_read(type, rows_before(c, BQR_A, i), rows_ld(c, BQR_A, i), m, n, exponent),
               .u = dense_read(type, rows_at(c, BQR_U, i), rows_ld(c, BQR_U, i), m, k, 0),
               .v = dense_read(type, rows_at(c, BQR_V, i), rows_ld(c, BQR_V, i), n, k, 0),
               .k = k,
               .exponent = exponent};
  for (int j = 0; j < k; j++) r.s[j] = dense_real(type, rows_at(c, BQR_S, i), j, exponent);
  return r;
}

static void free_results(results *r) {
  dense_free(&r->a);
  dense_free(&r->u);
  dense_free(&r->v);
}

/* U and V are orthonormal and A^H U = V S, for any subspace. No singular value is overestimated. */
static void judge(const rows_call *c, int64_t i, const char *what) {
  const batchqr_type type = c->batch.type;
  const double eps = type_eps(type);
  results r = read_results(c, i);
  const int p = most(r.a.m, r.a.n);
  const double unit = SPECTRA_RATIO * p * (dense_norm(&r.a) * eps + dense_spacing(type, r.exponent));
  double *want = malloc(((size_t)p + 1) * sizeof *want);
  dense_singular_values(&r.a, want, false);
  spectra_expect(c, i, what, "info", abs(c->info[i]), 0);
  spectra_expect(c, i, what, "||I - U^H U||", dense_orthogonality(&r.u), SPECTRA_RATIO * r.a.m * eps);
  spectra_expect(c, i, what, "||I - V^H V||", dense_orthogonality(&r.v), SPECTRA_RATIO * r.a.n * eps);
  dense left = dense_product(&r.a, true, &r.u);
  for (int j = 0; j < r.k; j++) {
    ck_assert_msg(r.s[j] >= 0 && (j == 0 || r.s[j] <= r.s[j - 1]), "%s: s[%d] = %g", what, j, r.s[j]);
    spectra_expect(c, i, what, "a singular value beyond the true one", r.s[j] - want[j], unit);
    for (int row = 0; row < r.a.n; row++) *dense_at(&left, row, j) -= *dense_at(&r.v, row, j) * r.s[j];
  }
  spectra_expect(c, i, what, "||A^H U - V S||", dense_norm(&left), unit);
  dense_free(&left);
  free(want);
  free_results(&r);
}

static const spectra gesvdr = {.op = BATCHQR_GESVDR, .judge = judge};

enum { MEMBERS = 9 };
static const int some_m[MEMBERS] = {40, 40, 5, 90, 1, 17, 0, 33, 64},
                 some_n[MEMBERS] = {30, 30, 60, 12, 1, 17, 4, 70, 64},
                 some_k[MEMBERS] = {6, 6, 9, 12, 1, 0, 2, 10, 8};

/* Strided members are of one size. */
static rows_call new_call(batchqr_type type, batchqr_layout layout, const int *m, const int *n, const int *k,
                          int count) {
  const batchqr_sizes sizes = layout == BATCHQR_STRIDED ? BATCHQR_UNIFORM : BATCHQR_HOST_SIZES;
  rows_call c = rows_new(BATCHQR_GESVDR, type, sizes, layout, count, m, n, k, NULL);
  c.batch.oversampling = 4;
  c.batch.power_steps = 1;
  c.batch.seed = 11;
  return c;
}

static const int kinds[] = {MATGEN_RANDOM,       MATGEN_RANK_DEFICIENT, MATGEN_ZERO,     HARD_RANK_ONE,
                            HARD_GRADED_COLUMNS, HARD_HILBERT,          HARD_EQUAL,      MATGEN_ZERO_COLUMNS,
                            MATGEN_HUGE,         MATGEN_TINY,           MATGEN_SUBNORMAL};
enum { NUM_KINDS = sizeof kinds / sizeof kinds[0] };

START_TEST(every_kind) {
  static const int m[MEMBERS] = {40, 40, 40}, n[MEMBERS] = {30, 30, 30}, k[MEMBERS] = {6, 6, 6};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int kind = 0; kind < NUM_KINDS; kind++)
    for (int steps = 0; steps < 4; steps++) {
      const bool strided = steps == 3;
      rows_call c =
          new_call((batchqr_type)_i, strided ? BATCHQR_STRIDED : BATCHQR_POINTERS, strided ? m : some_m,
                   strided ? n : some_n, strided ? k : some_k, strided ? 3 : MEMBERS);
      c.batch.power_steps = steps;
      spectra_fill(&c, &kinds[kind], 1, 5);
      spectra_run(&gesvdr, &c, handle, hard_name(kinds[kind]));
      rows_free(&c);
    }
  batchqr_destroy(handle);
}
END_TEST

/* Sketches of so many columns that several blocks of threads share what is left. */
START_TEST(large_cores) {
  static const int m[] = {120, 100, 70, 20}, n[] = {100, 130, 70, 30}, k[] = {60, 55, 70, 8};
  static const int hard[] = {MATGEN_RANDOM, MATGEN_RANK_DEFICIENT, MATGEN_ZERO, HARD_EQUAL,
                             MATGEN_WORST,  MATGEN_ORTHONORMAL,    MATGEN_HUGE, MATGEN_SUBNORMAL};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
    rows_call c = new_call((batchqr_type)_i, BATCHQR_POINTERS, m, n, k, 4);
    spectra_fill(&c, &hard[i], 1, 19);
    spectra_run(&gesvdr, &c, handle, hard_name(hard[i]));
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* Cores of more than 128 columns. */
START_TEST(turned_cores) {
  static const int m[] = {150}, n[] = {160}, k[] = {130};
  static const int hard[] = {MATGEN_RANDOM, MATGEN_RANK_DEFICIENT, HARD_GRADED_COLUMNS};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (size_t i = 0; i < sizeof hard / sizeof hard[0]; i++) {
    rows_call c = new_call((batchqr_type)_i, BATCHQR_POINTERS, m, n, k, 1);
    spectra_fill(&c, &hard[i], 1, 29);
    spectra_run(&gesvdr, &c, handle, hard_name(hard[i]));
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* All of a spectrum that falls off, as batch_gesvd() has it; and of a matrix of lower rank than the sketch.
 */
START_TEST(as_good_as_it_can_be) {
  static const int m[] = {50, 30, 24}, n[] = {30, 50, 24};
  const batchqr_type type = (batchqr_type)_i;
  const int all[] = {30, 30, 24}, of_rank_one[] = {1, 2, 3};
  const int low_rank = HARD_RANK_ONE, random = MATGEN_RANDOM;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int way = 0; way < 2; way++) {
    rows_call c = new_call(type, BATCHQR_POINTERS, m, n, way ? of_rank_one : all, 3);
    spectra_fill(&c, way ? &low_rank : &random, 1, 7);
    spectra_run(&gesvdr, &c, handle, way ? "rank one" : "all singular values");
    for (int i = 0; i < 3; i++) {
      results r = read_results(&c, i);
      double want[64];
      dense_singular_values(&r.a, want, false);
      for (int j = 0; j < r.k; j++)
        spectra_expect(&c, i, "as good as it can be", "a singular value's error", fabs(r.s[j] - want[j]),
                       SPECTRA_RATIO * 50 * want[0] * type_eps(type));
      free_results(&r);
    }
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

/* With two power steps the error is hardly more than the best approximation's of that rank. */
START_TEST(error_against_rank) {
  enum { N = 60, K = 8 };
  const int n[] = {N}, k[] = {K};
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  rows_call c = new_call(type, BATCHQR_STRIDED, n, n, k, 1);
  c.batch.power_steps = 2;
  const int kind = MATGEN_RANDOM;
  spectra_fill(&c, &kind, 1, 3);
  for (int j = 0; j < N; j++) { /* columns that fall off by 0.8 from one to the next */
    const size_t size = bqr_type_bytes(type), reals = size / bqr_real_bytes(type);
    char *column = (char *)rows_at(&c, BQR_A, 0) + size * (size_t)j * (size_t)rows_ld(&c, BQR_A, 0);
    for (size_t i = 0; i < N * reals; i++)
      if (type_is_double(type))
        ((double *)column)[i] *= pow(0.8, j);
      else
        ((float *)column)[i] *= powf(0.8F, (float)j);
  }
  spectra_run(&gesvdr, &c, handle, "falling spectrum");
  results r = read_results(&c, 0);
  double want[N], best = 0, error = 0;
  dense_singular_values(&r.a, want, false);
  for (int j = K; j < N; j++) best += want[j] * want[j];
  for (int j = 0; j < N; j++)
    for (int i = 0; i < N; i++) {
      double complex left = *dense_at(&r.a, i, j);
      for (int l = 0; l < K; l++) left -= *dense_at(&r.u, i, l) * r.s[l] * conj(*dense_at(&r.v, j, l));
      error += creal(left) * creal(left) + cimag(left) * cimag(left);
    }
  spectra_expect(&c, 0, "falling spectrum", "the error's norm to the best one's", sqrt(error / best), 1.1);
  free_results(&r);
  rows_free(&c);
  batchqr_destroy(handle);
}
END_TEST

static void expect_equal(const rows_call *x, int64_t i, const rows_call *y, int64_t j, bool equal) {
  const int k = least(x->k[i], least(x->m[i], x->n[i]));
  const size_t size = bqr_type_bytes(x->batch.type);
  bool same = true;
  for (int col = 0; col < k; col++)
    same = same && memcmp((char *)rows_at(x, BQR_U, i) + size * (size_t)col * (size_t)rows_ld(x, BQR_U, i),
                          (char *)rows_at(y, BQR_U, j) + size * (size_t)col * (size_t)rows_ld(y, BQR_U, j),
                          size * (size_t)x->m[i]) == 0;
  same = same &&
         memcmp(rows_at(x, BQR_S, i), rows_at(y, BQR_S, j), (size_t)k * bqr_real_bytes(x->batch.type)) == 0;
  ck_assert_msg(same == equal, "member %lld of %d x %d, type %c", (long long)i, x->m[i], x->n[i],
                type_letter(x->batch.type));
}

/* The same bits for the same seed, wherever a member lies, and others for another seed. */
START_TEST(seeds_and_places) {
  int m[MEMBERS], n[MEMBERS], k[MEMBERS];
  const batchqr_type type = (batchqr_type)_i;
  for (int i = 0; i < MEMBERS; i++) {
    const int j = MEMBERS - 1 - i;
    m[i] = some_m[j], n[i] = some_n[j], k[i] = some_k[j];
  }
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  rows_call x = new_call(type, BATCHQR_POINTERS, some_m, some_n, some_k, MEMBERS);
  rows_call y = new_call(type, BATCHQR_POINTERS, m, n, k, MEMBERS);
  spectra_fill(&x, kinds, 1, 13);
  for (int i = 0; i < MEMBERS; i++)
    hard_fill(type, kinds[0], 13 + (uint64_t)i, x.m[i], x.n[i], rows_at(&y, BQR_A, MEMBERS - 1 - i),
              rows_ld(&y, BQR_A, MEMBERS - 1 - i));
  ck_assert_int_eq(rows_run(&x, handle), BATCHQR_SUCCESS);
  ck_assert_int_eq(rows_run(&y, handle), BATCHQR_SUCCESS);
  for (int i = 0; i < MEMBERS; i++) expect_equal(&x, i, &y, MEMBERS - 1 - i, true);
  y.batch.seed = (uint64_t)1 << 40;
  ck_assert_int_eq(rows_run(&y, handle), BATCHQR_SUCCESS);
  expect_equal(&x, 0, &y, MEMBERS - 1, false);
  rows_free(&x);
  rows_free(&y);
  batchqr_destroy(handle);
}
END_TEST

START_TEST(nonfinite) {
  const int m[] = {30, 30, 30}, n[] = {20, 20, 20}, k[] = {5, 5, 5};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int bad = 0; bad < 2; bad++) {
    rows_call c = new_call((batchqr_type)_i, BATCHQR_STRIDED, m, n, k, 3);
    spectra_fill(&c, kinds, 1, 17);
    const double value = bad ? (double)INFINITY : (double)NAN;
    void *entry = rows_at(&c, BQR_A, 1);
    if (type_is_double(c.batch.type))
      memcpy(entry, &value, sizeof value);
    else
      memcpy(entry, &(float){(float)value}, sizeof(float));
    ck_assert_int_eq(rows_run(&c, handle), BATCHQR_SUCCESS);
    ck_assert_int_eq(c.info[1], BATCHQR_INFO_NONFINITE);
    for (int j = 0; j < 5; j++) ck_assert(isnan(dense_real(c.batch.type, rows_at(&c, BQR_S, 1), j, 0)));
    judge(&c, 0, "beside a NaN");
    judge(&c, 2, "beside a NaN");
    rows_free(&c);
  }
  batchqr_destroy(handle);
}
END_TEST

START_TEST(sizes_on_the_device) {
  rows_call c = rows_new(BATCHQR_GESVDR, (batchqr_type)_i, BATCHQR_DEVICE_SIZES, BATCHQR_POINTERS, MEMBERS,
                         some_m, some_n, some_k, NULL);
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  ck_assert_int_eq(rows_run(&c, handle), BATCHQR_UNSUPPORTED);
  rows_free(&c);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gesvdr");
  suite_add(suite, every_kind);
  suite_add(suite, large_cores);
  suite_add(suite, turned_cores);
  suite_add(suite, as_good_as_it_can_be);
  suite_add(suite, error_against_rank);
  suite_add(suite, seeds_and_places);
  suite_add(suite, nonfinite);
  suite_add(suite, sizes_on_the_device);
  return suite_run(suite);
}
