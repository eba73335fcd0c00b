/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_gels_refined(), by every family that refines and as the planner sees fit, of members that are hard
 * for it: geometric spectra up to a condition number of 1e14, consistent systems and huge residuals, columns
 * far apart, a column of zeros, no right-hand side at all, NaN. X is judged by two backward errors, each next
 * to that of LAPACK's xGELS, of which it may be ten times. */
#include "inspect.h"
#include "matgen.h"
#include "residual.h"
#include "suite.h"

#include <complex.h>
#include <lapacke.h>
#include <math.h>
#include <string.h>

typedef double _Complex number;
typedef struct wide {
  long double re, im;
} wide;

enum { SPECTRA = 15, SCALED = SPECTRA, ZERO_COLUMN = SCALED + 3, NOT_A_NUMBER, MEMBERS, MOST_RIGHT = 4 };
static const char *const sides[MOST_RIGHT] = {"a consistent system", "a huge residual", "random entries",
                                              "along the least singular vector"};

/* --- numbers of a type */

static number get(batchqr_type type, const void *x, int64_t i) {
  switch (type) {
  case BATCHQR_S:
    return ((const float *)x)[i];
  case BATCHQR_D:
    return ((const double *)x)[i];
  case BATCHQR_C:
    return ((const float _Complex *)x)[i];
  default:
    return ((const double _Complex *)x)[i];
  }
}

static void put(batchqr_type type, void *x, int64_t i, number value) {
  if (type == BATCHQR_S)
    ((float *)x)[i] = (float)creal(value);
  else if (type == BATCHQR_D)
    ((double *)x)[i] = creal(value);
  else if (type == BATCHQR_C)
    ((float _Complex *)x)[i] = (float _Complex)value;
  else
    ((double _Complex *)x)[i] = value;
}

static double get_real(batchqr_type type, const void *x, int64_t i) {
  return type_is_double(type) ? ((const double *)x)[i] : ((const float *)x)[i];
}

static double length(const number *x, int n) {
  double sum = 0;
  for (int i = 0; i < n; i++) sum = hypot(sum, cabs(x[i]));
  return sum;
}

static number random_number(batchqr_type type, uint64_t seed, int64_t i) {
  const double imaginary = type_is_complex(type) ? rng_uniform(seed + 1000, (uint64_t)i) : 0;
  return rng_uniform(seed, (uint64_t)i) + I * imaginary;
}

static void fill_random(batchqr_type type, uint64_t seed, number *x, int n) {
  for (int i = 0; i < n; i++) x[i] = random_number(type, seed, i);
}

/* --- systems */

typedef struct systems {
  batchqr_type type;
  int m, n, k, first; /* first: of the kinds of right-hand sides */
  size_t of_a, of_b;  /* bytes of a member */
  char *a, *b;        /* of all members */
} systems;

/* a := (I - 2 v v^H / v^H v) a, or from the right, for a random v. */
static void reflect(batchqr_type type, uint64_t seed, int m, int n, number *a, bool left) {
  const int order = left ? m : n, others = left ? n : m;
  const int64_t along = left ? 1 : m, across = left ? m : 1;
  number *v = memory_host((size_t)order * sizeof *v);
  fill_random(type, seed, v, order);
  const double size = length(v, order);
  for (int j = 0; j < others; j++) {
    number sum = 0;
    for (int i = 0; i < order; i++) sum += (left ? conj(v[i]) : v[i]) * a[i * along + j * across];
    for (int i = 0; i < order; i++)
      a[i * along + j * across] -= 2 * sum / size / size * (left ? v[i] : conj(v[i]));
  }
  free(v);
}

/* Singular values from 1 to 1 / condition, and what x is along the last right singular vector. */
static void fill_spectrum(const systems *s, uint64_t seed, double condition, number *a, number *last) {
  memset(a, 0, (size_t)s->m * (size_t)s->n * sizeof *a);
  memset(last, 0, (size_t)s->n * sizeof *last);
  for (int j = 0; j < s->n; j++) a[j * (int64_t)s->m + j] = pow(condition, -j / (double)(s->n - 1));
  last[s->n - 1] = 1;
  for (int i = 0; i < 3; i++) {
    reflect(s->type, seed + (uint64_t)i, s->m, s->n, a, true);
    reflect(s->type, seed + 100 + (uint64_t)i, s->m, s->n, a, false);
    reflect(s->type, seed + 100 + (uint64_t)i, s->n, 1, last, true);
  }
}

static void fill_right(const systems *s, uint64_t seed, const number *a, const number *last, int side,
                       number *b) {
  number *x = memory_host((size_t)s->n * sizeof *x);
  fill_random(s->type, seed, x, s->n);
  for (int i = 0; i < s->m; i++) b[i] = 0;
  for (int j = 0; j < s->n; j++)
    for (int i = 0; i < s->m; i++) b[i] += a[j * (int64_t)s->m + i] * (side == 3 ? last[j] : x[j]);
  for (int i = 0; i < s->m; i++) {
    const number other = random_number(s->type, seed + 5, i);
    b[i] = side == 1 ? b[i] + 1e6 * other : side == 2 ? other : b[i];
  }
  free(x);
}

static double condition_of(int member) {
  return member < SPECTRA ? pow(10, member) : pow(10, member - SCALED);
}

static systems systems_new(batchqr_type type, int m, int n, int k, int first) {
  const size_t size = bqr_type_bytes(type);
  systems s = {.type = type, .m = m, .n = n, .k = k, .first = first};
  s.of_a = (size_t)m * (size_t)n * size;
  s.of_b = (size_t)m * (size_t)k * size;
  s.a = memory_host(MEMBERS * s.of_a);
  s.b = memory_host(MEMBERS * s.of_b);
  number *a = memory_host((size_t)m * (size_t)n * sizeof *a), *b = memory_host((size_t)m * sizeof *b),
         *last = memory_host((size_t)n * sizeof *last);
  for (int i = 0; i < MEMBERS; i++) {
    const uint64_t seed = (uint64_t)(1000 * m + 10000 * i);
    char *to_a = s.a + (size_t)i * s.of_a, *to_b = s.b + (size_t)i * s.of_b;
    fill_spectrum(&s, seed, i < ZERO_COLUMN ? condition_of(i) : 10, a, last);
    for (int64_t j = 0; j < (int64_t)m * n; j++) {
      if (i == ZERO_COLUMN && j / m == n / 2) a[j] = 0;
      put(type, to_a, j, a[j]);
      a[j] = get(type, to_a, j);
    }
    for (int c = 0; c < k; c++) {
      fill_right(&s, seed + 50 + (uint64_t)c, a, last, (first + c) % MOST_RIGHT, b);
      const bool none = i == 2 && c == k - 1; /* b = 0 */
      for (int j = 0; j < m; j++) put(type, to_b, (int64_t)c * m + j, none ? 0 : b[j]);
    }
    if (i == NOT_A_NUMBER) put(type, to_a, m + 1, NAN);
    if (i >= SCALED && i < ZERO_COLUMN) /* by powers of two, which change nothing else */
      for (int64_t j = 0; j < (int64_t)m * n; j++)
        put(type, to_a, j,
            get(type, to_a, j) * ldexp(1, (j / m % 2 ? 1 : -1) * (type_is_double(type) ? 500 : 50)));
  }
  free(a), free(b), free(last);
  return s;
}

static void systems_free(systems *s) { free(s->a), free(s->b); }

/* --- judges: of A D and y with x = D y, D being powers of two that bring A's columns near 1 */

typedef struct scaled_member {
  int m, n;
  number *a;          /* A D */
  int *exponents;     /* of D */
  double size;        /* ||A D||_F */
  double *u, *values; /* its SVD, of real types */
} scaled_member;

static void decompose(scaled_member *t) {
  const int64_t count = (int64_t)t->m * t->n;
  double *a = memory_host((size_t)count * sizeof *a), *rest = memory_host((size_t)t->n * sizeof *rest);
  t->u = memory_host((size_t)count * sizeof *t->u);
  t->values = memory_host((size_t)t->n * sizeof *t->values);
  for (int64_t i = 0; i < count; i++) a[i] = creal(t->a[i]);
  const int status =
      LAPACKE_dgesvd(LAPACK_COL_MAJOR, 'S', 'N', t->m, t->n, a, t->m, t->values, t->u, t->m, NULL, 1, rest);
  ck_assert_int_eq(status, 0);
  free(a), free(rest);
}

static scaled_member scaled_new(const systems *s, int member) {
  const char *const from = s->a + (size_t)member * s->of_a;
  scaled_member t = {.m = s->m, .n = s->n};
  t.a = memory_host((size_t)s->m * (size_t)s->n * sizeof *t.a);
  t.exponents = memory_host((size_t)s->n * sizeof *t.exponents);
  for (int j = 0; j < s->n; j++) {
    number *column = t.a + (int64_t)j * s->m;
    for (int i = 0; i < s->m; i++) column[i] = get(s->type, from, (int64_t)j * s->m + i);
    t.exponents[j] = -ilogb(length(column, s->m));
    for (int i = 0; i < s->m; i++) column[i] *= ldexp(1, t.exponents[j]);
    t.size = hypot(t.size, length(column, s->m));
  }
  if (!type_is_complex(s->type)) decompose(&t);
  return t;
}

static void scaled_free(scaled_member *t) { free(t->a), free(t->exponents), free(t->u), free(t->values); }

static void subtract(wide *from, number x, number y) {
  from->re -= (long double)creal(x) * creal(y) - (long double)cimag(x) * cimag(y);
  from->im -= (long double)creal(x) * cimag(y) + (long double)cimag(x) * creal(y);
}

/* Errors in units of eps: ||(A D)^H r|| next to ||A D|| (||A D|| ||y|| + ||b||); the least ||E|| for which y
 * solves the problem for A D + E (Walden, Karlson and Sun), next to ||A D||; and of ||r||, next to ||A D||
 * ||y|| + ||b||. Frobenius norms. */
typedef struct errors {
  double normal, backward, norm;
} errors;

static double least_change(const scaled_member *t, const number *r, double size, double of_y) {
  double sum = 0;
  for (int j = 0; j < t->n; j++) {
    double along = 0;
    for (int i = 0; i < t->m; i++) along += t->u[(int64_t)j * t->m + i] * creal(r[i]);
    if (along != 0) sum = hypot(sum, along * t->values[j] / hypot(t->values[j], size / of_y));
  }
  return sum / of_y;
}

/* x: n numbers of the type; norm: NULL, or what the residual's length is said to be. */
static errors judge(const systems *s, const scaled_member *t, const void *b, const void *x,
                    const double *norm) {
  const double eps = type_eps(s->type);
  number *y = memory_host((size_t)s->n * sizeof *y), *r = memory_host((size_t)s->m * sizeof *r);
  wide *exact = memory_host((size_t)s->m * sizeof *exact);
  for (int j = 0; j < s->n; j++) y[j] = get(s->type, x, j) * ldexp(1, -t->exponents[j]);
  for (int i = 0; i < s->m; i++) {
    r[i] = get(s->type, b, i);
    exact[i] = (wide){creal(r[i]), cimag(r[i])};
  }
  const double of_y = length(y, s->n), of_b = length(r, s->m), unit = t->size * of_y + of_b;
  for (int j = 0; j < s->n; j++)
    for (int i = 0; i < s->m; i++) subtract(&exact[i], t->a[(int64_t)j * s->m + i], y[j]);
  for (int i = 0; i < s->m; i++) r[i] = (double)exact[i].re + I * (double)exact[i].im;
  const double size = length(r, s->m);
  errors e = {0, 0, 0};
  for (int j = 0; j < s->n; j++) {
    number sum = 0;
    for (int i = 0; i < s->m; i++) sum += conj(t->a[(int64_t)j * s->m + i]) * r[i];
    e.normal = hypot(e.normal, cabs(sum));
  }
  if (unit > 0) e.normal /= t->size * unit * eps;
  if (t->u && of_y > 0 && size > 0) e.backward = least_change(t, r, size, of_y) / (t->size * eps);
  if (norm) e.norm = unit > 0 ? fabs(*norm - size) / (unit * eps) : *norm;
  free(y), free(r), free(exact);
  return e;
}

/* --- the direct method: LAPACK's */

static int lapack_gels(batchqr_type type, int m, int n, int k, void *a, void *b) {
  switch (type) {
  case BATCHQR_S:
    return LAPACKE_sgels(LAPACK_COL_MAJOR, 'N', m, n, k, a, m, b, m);
  case BATCHQR_D:
    return LAPACKE_dgels(LAPACK_COL_MAJOR, 'N', m, n, k, a, m, b, m);
  case BATCHQR_C:
    return LAPACKE_cgels(LAPACK_COL_MAJOR, 'N', m, n, k, a, m, b, m);
  default:
    return LAPACKE_zgels(LAPACK_COL_MAJOR, 'N', m, n, k, a, m, b, m);
  }
}

/* With a member's scaled form, which `all` gets. */
static void solve_directly(const systems *s, scaled_member *all, errors (*direct)[MOST_RIGHT]) {
  const size_t size = bqr_type_bytes(s->type);
  for (int i = 0; i < ZERO_COLUMN; i++) {
    const char *const from = s->b + (size_t)i * s->of_b;
    char *a = memory_host(s->of_a), *b = memory_host(s->of_b);
    memcpy(a, s->a + (size_t)i * s->of_a, s->of_a);
    memcpy(b, from, s->of_b);
    ck_assert_int_eq(lapack_gels(s->type, s->m, s->n, s->k, a, b), 0);
    all[i] = scaled_new(s, i);
    for (int c = 0; c < s->k; c++) {
      const size_t at = (size_t)c * (size_t)s->m * size;
      double rest = 0;
      for (int j = s->n; j < s->m; j++) rest = hypot(rest, cabs(get(s->type, b + at, j)));
      direct[i][c] = judge(s, &all[i], from + at, b + at, &rest);
    }
    free(a), free(b);
  }
}

/* --- what is tested */

typedef struct results {
  char *x;
  void *norms, *relres;
  int *iterations, info[MEMBERS];
} results;

/* Without the outputs that are not wanted, families may have less to do. */
static batchqr_status solve(const systems *s, batchqr_handle_t handle, bool outputs, results *to) {
  const batchqr_backend backend = memory_backend();
  const size_t of_reals = MEMBERS * MOST_RIGHT * (type_is_double(s->type) ? sizeof(double) : sizeof(float));
  batchqr_batch batch = {.type = s->type,
                         .count = MEMBERS,
                         .m = s->m,
                         .n = s->n,
                         .k = s->k,
                         .a = {.ld = s->m, .stride = (int64_t)s->m * s->n},
                         .c = {.ld = s->m, .stride = (int64_t)s->m * s->k}};
  if (outputs) batch.norms.stride = batch.relres.stride = s->k;
  batch.iterations.stride = s->k;
  void *a = memory_clone(backend, s->a, MEMBERS * s->of_a),
       *b = memory_clone(backend, s->b, MEMBERS * s->of_b);
  void *norms = memory_clone(backend, to->norms, of_reals),
       *relres = memory_clone(backend, to->relres, of_reals);
  int *iterations = memory_clone(backend, to->iterations, MEMBERS * MOST_RIGHT * sizeof(int));
  int *info = memory_clone(backend, to->info, sizeof to->info);
  const batchqr_status status =
      batch_gels_refined(handle, &batch, BATCHQR_NO_TRANS, a, b, outputs ? norms : NULL, iterations,
                         outputs ? relres : NULL, info);
  memory_sync(backend);
  memory_download(backend, to->x, b, MEMBERS * s->of_b);
  memory_download(backend, to->norms, norms, of_reals);
  memory_download(backend, to->relres, relres, of_reals);
  memory_download(backend, to->iterations, iterations, MEMBERS * MOST_RIGHT * sizeof(int));
  memory_download(backend, to->info, info, sizeof to->info);
  void *all[] = {a, b, norms, relres, iterations, info};
  for (int i = 0; i < 6; i++) memory_free(backend, all[i]);
  return status;
}

static results results_new(const systems *s) {
  results r = {.x = memory_host(MEMBERS * s->of_b),
               .norms = memory_host(MEMBERS * MOST_RIGHT * sizeof(double))};
  r.relres = memory_host(MEMBERS * MOST_RIGHT * sizeof(double));
  r.iterations = memory_host(MEMBERS * MOST_RIGHT * sizeof(int));
  return r;
}

static void results_free(results *r) { free(r->x), free(r->norms), free(r->relres), free(r->iterations); }

static double worst[3]; /* of errors next to what they may be */

/* Up to ten times the direct method's, of which little may be luck; what has given up has the error of QR in
 * the compute mode, which LAPACK's ratios leave as much room. */
static void expect_error(const char *what, const char *of, int which, bool given_up, double error,
                         double direct) {
  const double most = given_up ? RESIDUAL_BOUND : 10 * fmax(direct, which == 2 ? 1 : 0.1);
  worst[which] = fmax(worst[which], error / most);
  ck_assert_msg(error <= most, "%s: %s %g eps, LAPACK's %g", what, of, error, direct);
}

/* What it says of itself: an error that it has, or that it has given up. */
static void expect_told(const systems *s, const char *what, const results *r, int at, bool must_tell,
                        const errors *e) {
  const double relres = get_real(s->type, r->relres, at);
  if (r->iterations[at] < 0 || (relres == -1 && !must_tell)) {
    ck_assert_msg(relres == -1, "%s: %d iterations, relres %g", what, r->iterations[at], relres);
    return;
  }
  ck_assert_msg(relres >= 0 && e->backward * type_eps(s->type) <= 10 * relres + 2 * type_eps(s->type),
                "%s: %g eps, told: %g", what, e->backward, relres / type_eps(s->type));
}

static void expect_results(const systems *s, const char *name, const results *r, bool outputs, bool must_tell,
                           const scaled_member *all, errors (*direct)[MOST_RIGHT]) {
  const size_t size = bqr_type_bytes(s->type);
  for (int i = 0; i < ZERO_COLUMN; i++)
    for (int c = 0; c < s->k; c++) {
      const size_t at = (size_t)i * s->of_b + (size_t)c * (size_t)s->m * size;
      const bool given_up = r->iterations[i * s->k + c] < 0;
      const double norm = outputs ? get_real(s->type, r->norms, i * s->k + c) : 0;
      char what[200];
      snprintf(what, sizeof what, "%s%s, %c %d x %d, condition %g%s, side %d (%s) of %d", name,
               outputs ? "" : ", X alone", type_letter(s->type), s->m, s->n, condition_of(i),
               i >= SCALED ? ", columns apart" : "", c, sides[(s->first + c) % MOST_RIGHT], s->k);
      ck_assert_msg(r->info[i] == 0, "%s: info %d", what, r->info[i]);
      const errors e = judge(s, &all[i], s->b + at, r->x + at, outputs ? &norm : NULL);
      expect_error(what, "normal equations' residual", 0, given_up, e.normal, direct[i][c].normal);
      expect_error(what, "backward error", 1, given_up, e.backward, direct[i][c].backward);
      if (!outputs) continue;
      expect_error(what, "residual's length", 2, given_up, e.norm, direct[i][c].norm);
      expect_told(s, what, r, i * s->k + c, must_tell, &e);
    }
  ck_assert_msg(r->info[ZERO_COLUMN] == s->n / 2 + 1, "%s: info %d", name, r->info[ZERO_COLUMN]);
  ck_assert_msg(r->info[NOT_A_NUMBER] == BATCHQR_INFO_NONFINITE, "%s: info %d", name, r->info[NOT_A_NUMBER]);
  for (int i = ZERO_COLUMN; i < MEMBERS && must_tell; i++)
    for (int c = 0; c < s->k; c++) ck_assert_int_lt(r->iterations[i * s->k + c], 0);
}

/* By a family and variant, or as the planner sees fit. */
static void expect_accurate(const systems *s, const bqr_family *family, const bqr_variant *variant,
                            const scaled_member *all, errors (*direct)[MOST_RIGHT]) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  const bool must_tell = family && strcmp(family->name, "gels_gram") != 0;
  char name[100] = "the planner's choice";
  results r = results_new(s);
  if (family) {
    ck_assert_int_eq(bqr_force(handle, BATCHQR_GELS, family->name, variant->name), BATCHQR_SUCCESS);
    snprintf(name, sizeof name, "%.40s %.40s", family->name, variant->name);
  }
  for (int outputs = 0; outputs < 2; outputs++) {
    const batchqr_status status = solve(s, handle, outputs, &r);
    if (family && status == BATCHQR_UNSUPPORTED) continue;
    ck_assert_msg(status == BATCHQR_SUCCESS, "%s", batchqr_error_message(handle));
    expect_results(s, name, &r, outputs, must_tell, all, direct);
  }
  results_free(&r);
  batchqr_destroy(handle);
}

static bool refines(const bqr_family *family, const bqr_device *device, batchqr_type type) {
  static const char *const names[] = {"gels_refine", "gels_tall", "gels_gram"};
  for (int i = 0; i < 3; i++)
    if (!strcmp(family->name, names[i])) return bqr_family_runs_on(family, device, type);
  return false;
}

static void by_all_families(const systems *s, const bqr_device *device) {
  scaled_member all[ZERO_COLUMN];
  errors direct[ZERO_COLUMN][MOST_RIGHT];
  solve_directly(s, all, direct);
  expect_accurate(s, NULL, NULL, all, direct);
  for (int f = 0; f < bqr_num_families(); f++) {
    const bqr_family *family = bqr_family_at(f);
    for (int v = 0; v < family->nvariants && refines(family, device, s->type); v++)
      expect_accurate(s, family, &family->variants[v], all, direct);
  }
  for (int i = 0; i < ZERO_COLUMN; i++) scaled_free(&all[i]);
}

START_TEST(never_less_accurate) {
  static const int sizes[][4] = {{400, 64, 3, 0},  {400, 64, 1, 0}, {200, 30, 4, 0},
                                 {512, 128, 1, 1}, {300, 65, 2, 2}, {90, 20, 1, 3}};
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  const bqr_device device = *bqr_handle_device(handle);
  batchqr_destroy(handle);
  memset(worst, 0, sizeof worst);
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    systems s = systems_new((batchqr_type)_i, sizes[i][0], sizes[i][1], sizes[i][2], sizes[i][3]);
    by_all_families(&s, &device);
    systems_free(&s);
  }
  if (getenv("BATCHQR_TEST_VERBOSE"))
    printf("%c: of what they may be, normal equations' residuals are up to %.2f, backward errors %.2f, "
           "lengths %.2f\n",
           type_letter((batchqr_type)_i), worst[0], worst[1], worst[2]);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gels, by refinement");
  suite_add(suite, never_less_accurate);
  return suite_run(suite);
}
