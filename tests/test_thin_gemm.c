/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a matrix of single precision with a few columns, see gemm/thin_gemm.h. Errors are measured
 * against the norms of r's columns and a's largest entry times the root of k. */
#include "device.h"
#include "guard.h"
#include "gemm/thin_gemm.h"
#include "suite.h"
#include <float.h>
#include <math.h>
#include <string.h>

static bqr_device device = {.sm = 90, .multiprocessors = 132};

static void set_up(void) {
  if (!suite_on_gpu()) return;
  bqr_error reason;
  ck_assert_int_eq(bqr_device_cuda(&device, &reason), BATCHQR_SUCCESS);
  if (device.sm == 90) ck_assert_int_eq(bqr_thin_gemm_prepare(), BATCHQR_SUCCESS);
}

static double random_number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)*state * 0x1p-63;
}

static guard random_matrix(int64_t rows, int64_t cols, int64_t ld, uint64_t seed, double factor) {
  guard g = guard_create(sizeof(float), ld * cols);
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = 0; i < ld; i++) /* what is below a matrix is no part of it */
      ((float *)g.data)[i + j * ld] = i < rows ? (float)(factor * random_number(&seed)) : NAN;
  return g;
}

typedef struct product {
  bqr_thin_gemm gemm;
  double scale, largest;
  guard a, r, c;
  void *device[5];
} product;

/* a times `factor`, r's columns times 2^-spread ... 2^spread. */
static product product_new(bool adjoint, int m, int n, int k, double factor, double scale, int spread) {
  product p = {.gemm = {.adjoint = adjoint, .m = m, .n = n, .k = k}, .scale = scale};
  bqr_thin_gemm *g = &p.gemm;
  g->lda = ((adjoint ? k : m) + 3) / 4 * 4 + 4;
  g->ldr = k + 1;
  g->ldc = m + 3;
  p.a = random_matrix(adjoint ? k : m, adjoint ? m : k, g->lda, 1, factor);
  p.r = random_matrix(k, n, g->ldr, 2, 1);
  p.c = random_matrix(m, n, g->ldc, 3, 1);
  for (int64_t i = 0; i < g->ldr * n; i++)
    ((float *)p.r.data)[i] =
        ldexpf(((float *)p.r.data)[i], spread ? (int)(i / g->ldr * 7 % (2 * spread + 1)) - spread : 0);
  for (int64_t j = 0; j < (adjoint ? m : k); j++)
    for (int64_t i = 0; i < (adjoint ? k : m); i++)
      p.largest = fmax(p.largest, fabs((double)((float *)p.a.data)[i + j * g->lda]));
  return p;
}

/* Whatever is in a, `largest` is said to be its largest magnitude. */
static void product_run(product *p, float largest) {
  double scales[2] = {p->scale, 0};
  memcpy(&scales[1], &largest, sizeof largest);
  guard *arrays[] = {&p->a, &p->r, &p->c};
  bqr_thin_gemm *g = &p->gemm;
  const size_t bytes = bqr_thin_gemm_workspace(g, &device);
  guard_open(&p->c, 0, (int)g->m, (int)g->n, (int)g->ldc);
  for (int i = 0; i < 3; i++) {
    guard_seal(arrays[i]);
    p->device[i] = memory_clone(memory_backend(), arrays[i]->data, guard_bytes(arrays[i]));
  }
  p->device[3] = memory_clone(memory_backend(), scales, sizeof scales);
  p->device[4] = memory_alloc(memory_backend(), bytes);
  memory_fill(memory_backend(), p->device[4], 0xff, bytes);
  g->a = p->device[0], g->r = p->device[1], g->c = p->device[2];
  g->scales = p->device[3], g->workspace = p->device[4];
  ck_assert_int_eq(bqr_thin_gemm_enqueue(g, &device, NULL), BATCHQR_SUCCESS);
  memory_download(memory_backend(), p->c.data, p->device[2], guard_bytes(&p->c));
  ck_assert_int_eq(guard_check(&p->c), -1);
}

static void product_free(product *p) {
  guard_destroy(&p->a);
  guard_destroy(&p->r);
  guard_destroy(&p->c);
  for (int i = 0; i < 5; i++) memory_free(memory_backend(), p->device[i]);
}

static float element_c(const product *p, int64_t i, int64_t j) {
  return ((float *)p->c.data)[i + j * p->gemm.ldc];
}

/* All entries of up to 12 columns. */
static void product_check(const product *p) {
  const bqr_thin_gemm *g = &p->gemm;
  for (int64_t j = g->n - 1; j >= 0; j -= g->n / 12 + 1) {
    double r2 = 0;
    const float *r = (const float *)p->r.data + j * g->ldr;
    for (int64_t l = 0; l < g->k; l++) r2 += (double)r[l] * r[l];
    for (int64_t i = 0; i < g->m; i++) {
      double sum = 0;
      for (int64_t l = 0; l < g->k; l++)
        sum += (double)((float *)p->a.data)[g->adjoint ? l + i * g->lda : i + l * g->lda] * r[l];
      const double error =
          fabs(element_c(p, i, j) - p->scale * sum) /
          (0x1p-23 * (p->scale * p->largest * sqrt((double)g->k * r2) + 2 * fabs(p->scale * sum)));
      ck_assert_msg(error < 4, "%s%d x %d x %d, scale %g: error %g at (%d, %d)", g->adjoint ? "adjoint " : "",
                    (int)g->m, (int)g->n, (int)g->k, p->scale, error, (int)i, (int)j);
    }
  }
}

START_TEST(sizes) {
  static const int all[][3] = {{1, 1, 1},        {127, 255, 31},   {128, 256, 32},
                               {129, 257, 129},  {300, 520, 70},   {513, 40, 300},
                               {257, 100, 1500}, {256, 256, 1024}, {40, 30, 9001}};
  for (size_t s = 0; s < sizeof all / sizeof all[0] && suite_on_gpu() && device.sm == 90; s++)
    for (int adjoint = 0; adjoint < 2; adjoint++) {
      product p = product_new(adjoint, all[s][0], all[s][1], all[s][2], 1, 1, s % 2 ? 0 : 20);
      product_run(&p, (float)p.largest);
      product_check(&p);
      product_free(&p);
    }
}
END_TEST

/* Entries at the ends of the range, with the scale that they are given there. */
START_TEST(range) {
  static const double factors[][2] = {
      {0x1p-140, 0x1p64}, {0x1p-110, 0x1p64}, {0x1p120, 0x1p-24}, {0x1p60, 1}};
  for (size_t s = 0; s < sizeof factors / sizeof factors[0] && suite_on_gpu() && device.sm == 90; s++) {
    product p = product_new(s % 2, 130, 20, 200, factors[s][0], factors[s][1], 0);
    product_run(&p, (float)p.largest);
    product_check(&p);
    product_free(&p);
  }
}
END_TEST

/* A matrix of zeros, and one that is not finite. */
START_TEST(special) {
  static const float largest[] = {0, INFINITY, NAN};
  for (int s = 0; s < 3 && suite_on_gpu() && device.sm == 90; s++) {
    product p = product_new(false, 70, 20, 90, s ? 1 : 0, 1, 0);
    if (s) ((float *)p.a.data)[5] = largest[s];
    product_run(&p, fabsf(largest[s]));
    for (int64_t j = 0; j < p.gemm.n; j++)
      for (int64_t i = 0; i < p.gemm.m; i++)
        ck_assert(s ? isnan(element_c(&p, i, j)) : element_c(&p, i, j) == 0);
    product_free(&p);
  }
}
END_TEST

int main(void) {
  memory_backend();
  Suite *suite = suite_create("thin_gemm");
  const TTest *tests[] = {sizes, range, special};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    TCase *tcase = tcase_create(tests[i]->name);
    tcase_add_checked_fixture(tcase, set_up, NULL);
    tcase_add_test(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
  }
  return suite_run(suite);
}
