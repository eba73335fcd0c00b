/* SPDX-License-Identifier: BSD-3-Clause */
/* batch_qr() with batch.gram_schmidt: what it keeps of the bounds of compute mode half, once and twice, and
 * what is refused. Where there is no such kernel, reflectors keep all of them. */
#include "matgen.h"
#include "suite.h"

#include <math.h>
#include <string.h>

static const double half_eps = 1.0 / 2048;

/* --- a matrix with singular values from 1 to 1 / condition, in geometric progression: a diagonal one,
 * reflected */

static void reflect_columns(double *a, int m, int n, uint64_t seed) {
  double length = 0;
  for (int i = 0; i < m; i++) length += pow(rng_uniform(seed, (uint64_t)i), 2);
  for (int j = 0; j < n; j++) {
    double product = 0;
    for (int i = 0; i < m; i++) product += rng_uniform(seed, (uint64_t)i) * a[i + j * m];
    for (int i = 0; i < m; i++) a[i + j * m] -= 2 * product / length * rng_uniform(seed, (uint64_t)i);
  }
}

static void reflect_rows(double *a, int m, int n, uint64_t seed) {
  double length = 0;
  for (int j = 0; j < n; j++) length += pow(rng_uniform(seed, (uint64_t)j), 2);
  for (int i = 0; i < m; i++) {
    double product = 0;
    for (int j = 0; j < n; j++) product += rng_uniform(seed, (uint64_t)j) * a[i + j * m];
    for (int j = 0; j < n; j++) a[i + j * m] -= 2 * product / length * rng_uniform(seed, (uint64_t)j);
  }
}

static double *geometric(int m, int n, double condition) {
  double *a = calloc((size_t)m * (size_t)n, sizeof *a);
  for (int j = 0; j < n; j++) a[j + j * m] = pow(condition, -(double)j / (n - 1));
  for (uint64_t seed = 1; seed < 4; seed++) {
    reflect_columns(a, m, n, seed);
    reflect_rows(a, m, n, seed + 10);
  }
  return a;
}

/* --- a call */

typedef struct qr_case {
  int m, n, times;
  bool in_place;
  double column_scale; /* every other column's */
} qr_case;

typedef struct qr_result {
  double residual, orthogonality,
      below; /* by Frobenius norms: next to ||A||; of a column of Q; of R, below */
  int info;
} qr_result;

static double get(batchqr_type type, const void *x, int64_t i) {
  return type_is_double(type) ? ((const double *)x)[i] : (double)((const float *)x)[i];
}

static void *stored(batchqr_type type, const double *a, int64_t elements) {
  const int parts = type_is_complex(type) ? 2 : 1;
  char *x = calloc((size_t)elements, bqr_type_bytes(type));
  for (int64_t i = 0; i < elements; i++) {
    if (type_is_double(type))
      ((double *)(void *)x)[i * parts] = a[i];
    else
      ((float *)(void *)x)[i * parts] = (float)a[i];
  }
  return x;
}

/* All numbers are real, those of complex types, too. */
static void judge(batchqr_type type, const qr_case *c, const double *a, const void *q, const void *r,
                  qr_result *result) {
  const int parts = type_is_complex(type) ? 2 : 1, m = c->m, n = c->n;
  double left = 0, all = 0, product = 0, below = 0;
  for (int j = 0; j < n; j++) {
    double *column = calloc((size_t)m, sizeof *column), length = 0, error = 0;
    for (int k = 0; k <= j; k++)
      for (int i = 0; i < m; i++)
        column[i] += get(type, q, ((int64_t)k * m + i) * parts) * get(type, r, ((int64_t)j * n + k) * parts);
    for (int i = 0; i < m; i++) length += pow(a[i + j * m], 2), error += pow(a[i + j * m] - column[i], 2);
    left += length > 0 ? error / length : error; /* columns count alike, however long they are */
    all += 1;
    free(column);
    for (int i = j + 1; i < n; i++) below = fmax(below, fabs(get(type, r, ((int64_t)j * n + i) * parts)));
    for (int k = 0; k <= j; k++) {
      double dot = k == j ? -1 : 0;
      for (int i = 0; i < m; i++)
        dot += get(type, q, ((int64_t)k * m + i) * parts) * get(type, q, ((int64_t)j * m + i) * parts);
      product += (k == j ? 1 : 2) * dot * dot;
    }
  }
  result->residual = sqrt(left / all);
  result->orthogonality = sqrt(product / n);
  result->below = below;
}

static qr_result factor(batchqr_type type, qr_case c, const double *spectrum) {
  const batchqr_backend backend = memory_backend();
  const size_t size = bqr_type_bytes(type), bytes = (size_t)c.m * (size_t)c.n * size;
  double *a = malloc((size_t)c.m * (size_t)c.n * sizeof *a);
  for (int i = 0; i < c.m * c.n; i++) {
    a[i] = spectrum[i] * (i / c.m % 2 ? c.column_scale : 1);
    if (!type_is_double(type)) a[i] = (double)(float)a[i];
  }
  void *x = stored(type, a, (int64_t)c.m * c.n), *r = calloc((size_t)c.n * (size_t)c.n, size);
  void *a_there = memory_clone(backend, x, bytes),
       *q_there = c.in_place ? a_there : memory_alloc(backend, bytes);
  void *r_there = memory_clone(backend, r, (size_t)c.n * (size_t)c.n * size);
  memory_fill(backend, r_there, 0x77, (size_t)c.n * (size_t)c.n * size);
  qr_result result = {.info = 77};
  int *info_there = memory_clone(backend, &result.info, sizeof result.info);
  batchqr_handle_t handle = memory_handle(backend, NULL);
  batchqr_set_compute(handle, BATCHQR_COMPUTE_HALF);
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_QR, type, c.m, c.n, 0, 1);
  batch.gram_schmidt = c.times;
  ck_assert_msg(!batch_qr(handle, &batch, a_there, q_there, r_there, info_there), "%s",
                batchqr_error_message(handle));
  memory_sync(backend);
  memory_download(backend, x, q_there, bytes);
  memory_download(backend, r, r_there, (size_t)c.n * (size_t)c.n * size);
  memory_download(backend, &result.info, info_there, sizeof result.info);
  judge(type, &c, a, x, r, &result);
  memory_free(backend, a_there);
  if (!c.in_place) memory_free(backend, q_there);
  memory_free(backend, r_there);
  memory_free(backend, info_there);
  batchqr_destroy(handle);
  free(a), free(x), free(r);
  return result;
}

static void expect_bounds(batchqr_type type, qr_case c, double condition) {
  double *a = geometric(c.m, c.n, condition);
  const qr_result got = factor(type, c, a);
  const double worst = c.times == 1 ? condition * half_eps : half_eps;
  free(a);
  ck_assert_msg(got.info == 0 && got.below == 0 && got.residual < half_eps && got.orthogonality < worst,
                "%c %d x %d, condition %g, %d times: info %d, below R %g, residual %g, orthogonality %g",
                type_letter(type), c.m, c.n, condition, c.times, got.info, got.below, got.residual,
                got.orthogonality);
}

/* --- tests */

START_TEST(bounds) {
  const batchqr_type type = (batchqr_type)_i;
  for (int times = 1; times <= 2; times++) {
    expect_bounds(type, (qr_case){300, 256, times, false, 1}, 2);
    expect_bounds(type, (qr_case){257, 192, times, true, 1}, 100);
    expect_bounds(type, (qr_case){192, 192, times, true, 1e15}, 30);
    expect_bounds(type, (qr_case){300, 128, times, false, 1e-25}, 30);
    expect_bounds(type, (qr_case){150, 100, times, false, 1}, 100); /* no panels of 64: by reflectors */
  }
}
END_TEST

/* Of what is ill-conditioned, once is not enough where there is such a kernel, or the test above saw nothing.
 */
START_TEST(orthogonality_is_that_of_gram_schmidt) {
  const batchqr_type type = (batchqr_type)_i;
  if (!suite_on_gpu() || type_is_double(type)) return;
  double *a = geometric(300, 256, 100);
  const qr_result once = factor(type, (qr_case){300, 256, 1, false, 1}, a),
                  twice = factor(type, (qr_case){300, 256, 2, false, 1}, a);
  free(a);
  ck_assert_msg(once.orthogonality > 4 * twice.orthogonality, "once %g, twice %g", once.orthogonality,
                twice.orthogonality);
}
END_TEST

START_TEST(info_is_qrs) {
  const batchqr_type type = (batchqr_type)_i;
  double *a = geometric(300, 256, 2);
  memset(a + 100 * 300, 0, 300 * sizeof *a);
  ck_assert_int_eq(factor(type, (qr_case){300, 256, 1, false, 1}, a).info, 101);
  a[200 * 300 + 7] = NAN;
  ck_assert_int_eq(factor(type, (qr_case){300, 256, 2, false, 1}, a).info, BATCHQR_INFO_NONFINITE);
  free(a);
}
END_TEST

static void expect_refusal(batchqr_compute compute, int times, const char *text) {
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  double x[1] = {0};
  batchqr_set_compute(handle, compute);
  batchqr_batch batch = batchqr_batch_packed(BATCHQR_QR, BATCHQR_D, 1, 1, 0, 1);
  batch.gram_schmidt = times;
  ck_assert_int_eq(batch_qr(handle, &batch, x, x, x, NULL), BATCHQR_INVALID_ARGUMENT);
  ck_assert_msg(strstr(batchqr_error_message(handle), text) != NULL, "%s", batchqr_error_message(handle));
  batchqr_destroy(handle);
}

START_TEST(refusals) {
  if (_i != BATCHQR_S) return;
  expect_refusal(BATCHQR_COMPUTE_HALF, 3, "batch.gram_schmidt = 3 is not 0, 1 or 2");
  expect_refusal(BATCHQR_COMPUTE_HALF, -1, "batch.gram_schmidt = -1 is not 0, 1 or 2");
  expect_refusal(BATCHQR_COMPUTE_AUTO, 1, "batch.gram_schmidt = 1, but the compute mode is not");
  expect_refusal(BATCHQR_COMPUTE_NATIVE, 2, "batch.gram_schmidt = 2, but the compute mode is not");
  expect_refusal(BATCHQR_COMPUTE_EMULATED, 1, "batch.gram_schmidt = 1, but the compute mode is not");
}
END_TEST

int main(void) {
  Suite *suite = suite_create("gram_schmidt");
  suite_add(suite, bounds);
  suite_add(suite, orthogonality_is_that_of_gram_schmidt);
  suite_add(suite, info_is_qrs);
  suite_add(suite, refusals);
  return suite_run(suite);
}
