/* SPDX-License-Identifier: BSD-3-Clause */
/* How orthogonal Q is, beside LAPACK's, for matrices as codes with H-matrices make them (H2Opus: 128 x 64,
 * 512 x 256): cluster bases of leaves, transfer matrices of two children, and blocks of an exponential
 * covariance. Prints the largest ||I - Q^T Q||_1 / (m eps) over the members of each. */
#include "matgen.h"
#include "residual.h"
#include "suite.h"

#include <lapacke.h>
#include <math.h>
#include <string.h>

/* BOUND: for panels from Gram matrices, see docs/decisions/0028-panels.md. */
enum { MEMBERS = 12, POINTS = 16, BOUND = 6 };

/* Chebyshev point l of p. */
static double chebyshev(int p, int l) { return cos((2 * l + 1) * acos(0) / p); }

/* Lagrange polynomial j at x, of p such points. */
static double lagrange(int p, int j, double x) {
  double value = 1;
  for (int l = 0; l < p; l++)
    if (l != j) value *= (x - chebyshev(p, l)) / (chebyshev(p, j) - chebyshev(p, l));
  return value;
}

/* Tensor products of p polynomials in each of two dimensions, at m random points of a leaf. */
static double leaf(uint64_t seed, int m, int n, int i, int j) {
  const int p = (int)lround(sqrt(n));
  (void)m;
  return lagrange(p, j / p, rng_uniform(seed, 2 * (uint64_t)i)) *
         lagrange(p, j % p, rng_uniform(seed, 2 * (uint64_t)i + 1));
}

/* The same polynomials at the points of two children, one beside the other, with weights of columns. */
static double transfer(uint64_t seed, int m, int n, int i, int j) {
  const int p = (int)lround(sqrt(n)), row = i % (m / 2);
  const double shift = i < m / 2 ? -0.5 : 0.5, weight = 0.75 + 0.25 * rng_uniform(seed, (uint64_t)j);
  return weight * lagrange(p, j / p, chebyshev(p, row / p) / 2 + shift) *
         lagrange(p, j % p, chebyshev(p, row % p));
}

/* Between points of two squares side by side. */
static double covariance(uint64_t seed, int m, int n, int i, int j) {
  (void)m, (void)n;
  const double x = rng_uniform(seed, 2 * (uint64_t)i) - rng_uniform(seed + 1, 2 * (uint64_t)j) + 3;
  const double y = rng_uniform(seed, 2 * (uint64_t)i + 1) - rng_uniform(seed + 1, 2 * (uint64_t)j + 1);
  return exp(-5 * hypot(x, y));
}

static const struct basis {
  const char *name;
  double (*entry)(uint64_t seed, int m, int n, int i, int j);
} bases[] = {{"leaves", leaf}, {"transfers", transfer}, {"covariance", covariance}};

static void fill(const struct basis *b, batchqr_type type, int count, int m, int n, void *a) {
  for (int k = 0; k < count; k++)
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) {
        const double x = b->entry((uint64_t)(97 * k + 1), m, n, i, j);
        const int64_t at = ((int64_t)k * n + j) * m + i;
        if (type == BATCHQR_D)
          ((double *)a)[at] = x;
        else
          ((float *)a)[at] = (float)x;
      }
}

static double worst(batchqr_type type, int count, int m, int n, const char *q) {
  double most = 0;
  for (int k = 0; k < count; k++) {
    const char *member = q + (size_t)k * (size_t)(m * n) * bqr_type_bytes(type);
    most = fmax(most, residual_orthogonality(type, m, n, member, m, 0));
  }
  return most;
}

static void by_lapack(batchqr_type type, int count, int m, int n, void *a) {
  double tau[POINTS * POINTS];
  for (int k = 0; k < count; k++) {
    const int64_t at = (int64_t)k * m * n;
    if (type == BATCHQR_D) {
      ck_assert_int_eq(LAPACKE_dgeqrf(LAPACK_COL_MAJOR, m, n, (double *)a + at, m, tau), 0);
      ck_assert_int_eq(LAPACKE_dorgqr(LAPACK_COL_MAJOR, m, n, n, (double *)a + at, m, tau), 0);
    } else {
      ck_assert_int_eq(LAPACKE_sgeqrf(LAPACK_COL_MAJOR, m, n, (float *)a + at, m, (float *)tau), 0);
      ck_assert_int_eq(LAPACKE_sorgqr(LAPACK_COL_MAJOR, m, n, n, (float *)a + at, m, (float *)tau), 0);
    }
  }
}

/* In the place of A: by batch_qr(), or by batch_geqrf() and batch_orgqr(). */
static void by_batchqr(batchqr_handle_t handle, batchqr_type type, int count, int m, int n, bool in_one,
                       void *a) {
  const batchqr_backend backend = memory_backend();
  const size_t size = bqr_type_bytes(type), bytes = (size_t)count * (size_t)(m * n) * size;
  batchqr_batch batch = {.type = type, .count = count, .m = m, .n = n};
  batch.a = batch.c = (batchqr_storage){.ld = m, .stride = m * n};
  batch.r = (batchqr_storage){.ld = n, .stride = n * n};
  batch.tau = (batchqr_storage){.stride = n};
  void *device = memory_clone(backend, a, bytes), *r = memory_alloc(backend, (size_t)(count * n * n) * size);
  if (in_one) {
    ck_assert_int_eq(batch_qr(handle, &batch, device, device, r, NULL), BATCHQR_SUCCESS);
  } else {
    ck_assert_int_eq(batch_geqrf(handle, &batch, device, r, NULL), BATCHQR_SUCCESS); /* r: tau */
    batch.k = n;
    ck_assert_int_eq(batch_orgqr(handle, &batch, device, r, NULL), BATCHQR_SUCCESS);
  }
  memory_sync(backend);
  memory_download(backend, a, device, bytes);
  memory_free(backend, device);
  memory_free(backend, r);
}

static double ratio_of(batchqr_handle_t handle, batchqr_type type, int count, int m, int n, int way,
                       const void *a) {
  const size_t bytes = (size_t)count * (size_t)(m * n) * bqr_type_bytes(type);
  void *q = memory_host(bytes);
  memcpy(q, a, bytes);
  if (way == 0)
    by_lapack(type, count, m, n, q);
  else
    by_batchqr(handle, type, count, m, n, way == 1, q);
  const double ratio = worst(type, count, m, n, q);
  free(q);
  return ratio;
}

static void compare(batchqr_handle_t handle, const struct basis *b, batchqr_type type, int m, int n) {
  const int count = m > 128 ? MEMBERS / 3 : MEMBERS;
  void *a = memory_host((size_t)count * (size_t)(m * n) * bqr_type_bytes(type));
  double ratio[3];
  fill(b, type, count, m, n, a);
  for (int way = 0; way < 3; way++) ratio[way] = ratio_of(handle, type, count, m, n, way, a);
  printf("%c %d x %d, %s: LAPACK %.3f, qr %.3f, geqrf and orgqr %.3f\n", type_letter(type), m, n, b->name,
         ratio[0], ratio[1], ratio[2]);
  for (int way = 1; way < 3; way++)
    ck_assert_msg(ratio[way] <= BOUND * ratio[0], "%s: %g, LAPACK's %g", b->name, ratio[way], ratio[0]);
  free(a);
}

START_TEST(beside_lapack) {
  static const int sizes[][2] = {{128, 64}, {512, 256}};
  const batchqr_type type = (batchqr_type)_i;
  batchqr_handle_t handle = memory_handle(memory_backend(), NULL);
  for (int s = 0; s < 2; s++)
    for (int b = 0; b < 3; b++) compare(handle, &bases[b], type, sizes[s][0], sizes[s][1]);
  batchqr_destroy(handle);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("bases");
  TCase *tests = tcase_create("beside_lapack");
  tcase_add_loop_test(tests, beside_lapack, BATCHQR_S, BATCHQR_D + 1);
  suite_add_tcase(suite, tests);
  return suite_run(suite);
}
