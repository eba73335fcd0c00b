/* SPDX-License-Identifier: BSD-3-Clause */
/* Y = A P of the reduction to a band, in single precision on FP16 units, judged in double precision: errors
 * beside the lengths of A's rows and P's columns. */
#include "sbr/sbr.h"
#include "device.h"
#include "guard.h"
#include "suite.h"
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool possible(void) {
  bqr_device device;
  bqr_error reason;
  if (!suite_on_gpu()) return false;
  ck_assert_int_eq(bqr_device_cuda(&device, &reason), BATCHQR_SUCCESS);
  return device.sm == 90;
}

static double uniform(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

/* The matrix, its triangles of entries up to `size`, that of column j times 2^-(j % spread); P; Y. */
typedef struct trial {
  int order, rows, cols;
  int64_t lda, ldp, ldy;
  float *a, *p;
  guard y;
  void *on_device[3], *memory;
} trial;

static trial trial_new(int order, int rows, int cols, double size, int spread) {
  trial t = {.order = order, .rows = rows, .cols = cols};
  t.lda = (rows + 15) / 16 * 16;
  t.ldp = rows + 3;
  t.ldy = rows + 1;
  t.a = memory_host(sizeof *t.a * (size_t)(t.lda * rows));
  t.p = memory_host(sizeof *t.p * (size_t)(t.ldp * cols));
  uint64_t state = 20;
  for (int64_t e = 0; e < t.lda * rows; e++) t.a[e] = NAN; /* below a column's end */
  for (int64_t e = 0; e < t.ldp * cols; e++) t.p[e] = NAN;
  for (int64_t j = 0; j < rows; j++)
    for (int64_t i = 0; i <= j; i++)
      t.a[i + j * t.lda] = t.a[j + i * t.lda] =
          (float)ldexp(uniform(&state) * size, -(int)((i + j) % spread));
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = 0; i < rows; i++) t.p[i + j * t.ldp] = (float)(4 * uniform(&state));
  t.y = guard_create(sizeof(float), t.ldy * cols);
  guard_open(&t.y, 0, rows, cols, t.ldy);
  guard_seal(&t.y);
  t.on_device[0] = memory_clone(memory_backend(), t.a, sizeof *t.a * (size_t)(t.lda * rows));
  t.on_device[1] = memory_clone(memory_backend(), t.p, sizeof *t.p * (size_t)(t.ldp * cols));
  t.on_device[2] = memory_clone(memory_backend(), t.y.data, guard_bytes(&t.y));
  const size_t bytes = bqr_sbr_multiply_bytes(rows, cols);
  t.memory = memory_alloc(memory_backend(), bytes);
  memory_fill(memory_backend(), t.memory, 0xff, bytes);
  ck_assert_int_eq(bqr_sbr_multiply_prepare(), BATCHQR_SUCCESS);
  return t;
}

static void trial_run(trial *t) {
  ck_assert_int_eq(bqr_sbr_multiply(t->order, t->rows, t->cols, t->on_device[0], t->lda, t->on_device[1],
                                    t->ldp, t->on_device[2], t->ldy, t->memory, NULL),
                   BATCHQR_SUCCESS);
  memory_download(memory_backend(), t->y.data, t->on_device[2], guard_bytes(&t->y));
  ck_assert_int_eq(guard_check(&t->y), -1);
}

static void trial_free(trial *t) {
  guard_destroy(&t->y);
  for (int i = 0; i < 3; i++) memory_free(memory_backend(), t->on_device[i]);
  memory_free(memory_backend(), t->memory);
  free(t->a);
  free(t->p);
}

static void trial_check(const trial *t) {
  for (int64_t j = 0; j < t->cols; j++) {
    double length = 0;
    for (int64_t k = 0; k < t->rows; k++) length += (double)t->p[k + j * t->ldp] * t->p[k + j * t->ldp];
    for (int64_t i = 0; i<t->rows; i += t->rows> 400 ? 7 : 1) {
      const float *a = t->a + i * t->lda;
      double sum = 0, norm = 0;
      for (int64_t k = 0; k < t->rows; k++) {
        sum += (double)a[k] * t->p[k + j * t->ldp];
        norm += (double)a[k] * a[k];
      }
      const double error = fabs(((const float *)t->y.data)[i + j * t->ldy] - sum) / sqrt(norm * length);
      ck_assert_msg(error < 4 * FLT_EPSILON, "order %d, rows %d, cols %d: (%d, %d) is off by %g eps",
                    t->order, t->rows, t->cols, (int)i, (int)j, error / FLT_EPSILON);
    }
  }
}

static void try(int order, int rows, int cols, double size, int spread) {
  trial t = trial_new(order, rows, cols, size, spread);
  trial_run(&t);
  trial_check(&t);
  void *first = memcpy(memory_host(guard_bytes(&t.y)), t.y.data, guard_bytes(&t.y));
  trial_run(&t);
  ck_assert_mem_eq(first, t.y.data, guard_bytes(&t.y));
  free(first);
  trial_free(&t);
}

START_TEST(sizes) {
  static const int sizes[] = {1, 2, 3, 31, 64, 65, 127, 129, 300, 1030, 1100}, cols[] = {1, 32, 33, 64};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes && possible(); s++)
    for (size_t c = 0; c < sizeof cols / sizeof *cols; c++) try(sizes[s], sizes[s], cols[c], 4096, 1);
}
END_TEST

/* Parts of larger matrices, entries as large as the order permits, and far apart. */
START_TEST(ranges) {
  if (!possible()) return;
  try(16384, 200, 64, 4096, 1);
  try(16384, 200, 64, 0x1p25, 1);
  try(65536, 200, 32, 4096, 20);
  try(200, 200, 64, 1, 12);
}
END_TEST

int main(void) {
  Suite *suite = suite_create("narrow_product");
  TCase *cases[] = {tcase_create("sizes"), tcase_create("ranges")};
  tcase_add_test(cases[0], sizes);
  tcase_add_test(cases[1], ranges);
  for (int i = 0; i < 2; i++) suite_add_tcase(suite, cases[i]);
  return suite_run(suite);
}
