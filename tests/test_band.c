/* SPDX-License-Identifier: BSD-3-Clause */
/* Band matrices to tridiagonal form, and products by what did it, judged in double precision: B Q = Q T, Q
 * unitary. */
#include "band/band.h"
#include "device.h"
#include "guard.h"
#include "matgen.h"
#include "suite.h"
#include <complex.h>
#include <math.h>
#include <string.h>

typedef double complex wide;

static const int widths[] = {32, 64};

static bool possible(void) {
  bqr_device device;
  bqr_error reason;
  if (!suite_on_gpu()) return false;
  ck_assert_int_eq(bqr_device_cuda(&device, &reason), BATCHQR_SUCCESS);
  return device.sm >= 90;
}

static wide get(batchqr_type type, const void *x, int64_t i) {
  switch (type) {
  case BATCHQR_S:
    return ((const float *)x)[i];
  case BATCHQR_D:
    return ((const double *)x)[i];
  case BATCHQR_C:
    return ((const float complex *)x)[i];
  default:
    return ((const double complex *)x)[i];
  }
}

static void set_one(batchqr_type type, void *x, int64_t i) {
  if (type_is_double(type))
    ((double *)x)[i * (type_is_complex(type) ? 2 : 1)] = 1;
  else
    ((float *)x)[i * (type_is_complex(type) ? 2 : 1)] = 1;
}

/* A band matrix amid what must not be read, and the columns of the unit matrix, which become Q's. */
typedef struct trial {
  batchqr_type type;
  int n, width, lda, ldz, cols;
  guard a, d, e, z;
  void *device[4], *memory;
} trial;

static trial trial_new(batchqr_type type, matgen_kind kind, int n, int width, int cols) {
  trial t = {.type = type, .n = n, .width = width, .lda = n + 3, .ldz = n + 1, .cols = cols};
  const size_t size = bqr_type_bytes(type), real = bqr_type_bytes(type_real(type));
  t.a = guard_create(size, (int64_t)t.lda * n);
  char *full = memory_host(size * (size_t)n * (size_t)n);
  matgen_fill(type, kind, 1, n, n, full, n);
  for (int64_t j = 0; j < n; j++)
    for (int64_t i = j; i < n && i <= j + width; i++)
      memcpy(t.a.data + (size_t)(i + j * t.lda) * size, full + (size_t)(i + j * n) * size, size);
  free(full);
  t.d = guard_create(real, n + 1);
  guard_open(&t.d, 0, n, 1, n);
  t.e = guard_create(real, n);
  guard_open(&t.e, 0, n - 1, 1, n);
  t.z = guard_create(size, (int64_t)t.ldz * cols);
  for (int64_t j = 0; j < cols; j++) {
    memset(t.z.data + (size_t)(j * t.ldz) * size, 0, (size_t)n * size);
    set_one(type, t.z.data, j + j * t.ldz);
  }
  guard_open(&t.z, 0, n, cols, t.ldz);
  guard *all[] = {&t.a, &t.d, &t.e, &t.z};
  for (int i = 0; i < 4; i++) {
    guard_seal(all[i]);
    t.device[i] = memory_clone(memory_backend(), all[i]->data, guard_bytes(all[i]));
  }
  const size_t bytes = bqr_band_bytes(type, n, width, true);
  t.memory = memory_alloc(memory_backend(), bytes);
  memory_fill(memory_backend(), t.memory, 0xff, bytes);
  ck_assert_int_eq(bqr_band_prepare(type, width), BATCHQR_SUCCESS);
  return t;
}

static void trial_enqueue(const trial *t, batchqr_stream stream) {
  ck_assert_int_eq(bqr_band_reduce(t->type, t->n, t->width, t->device[0], t->lda, t->memory, t->device[1],
                                   t->device[2], true, stream),
                   BATCHQR_SUCCESS);
  ck_assert_int_eq(bqr_band_back(t->type, t->n, t->width, t->memory, t->cols, t->device[3], t->ldz, stream),
                   BATCHQR_SUCCESS);
}

static void trial_download(trial *t) {
  guard *all[] = {&t->a, &t->d, &t->e, &t->z};
  for (int i = 0; i < 4; i++) {
    memory_download(memory_backend(), all[i]->data, t->device[i], guard_bytes(all[i]));
    ck_assert_int_eq(guard_check(all[i]), -1);
  }
}

static void trial_free(trial *t) {
  guard *all[] = {&t->a, &t->d, &t->e, &t->z};
  for (int i = 0; i < 4; i++) {
    guard_destroy(all[i]);
    memory_free(memory_backend(), t->device[i]);
  }
  memory_free(memory_backend(), t->memory);
}

static wide band_at(const trial *t, int i, int j) {
  if (i < j) return conj(band_at(t, j, i));
  if (i > j + t->width) return 0;
  const wide x = get(t->type, t->a.data, i + (int64_t)j * t->lda);
  return i == j ? creal(x) : x;
}

static void trial_check(const trial *t, matgen_kind kind) {
  const int n = t->n;
  const batchqr_type real = type_real(t->type);
  wide *q = memory_host(sizeof *q * (size_t)n * (size_t)t->cols);
  double norm = 0, residual = 0, orthogonality = 0;
  for (int j = 0; j < t->cols; j++)
    for (int i = 0; i < n; i++)
      q[i + (size_t)j * (size_t)n] = get(t->type, t->z.data, i + (int64_t)j * t->ldz);
  for (int i = 0; i < n; i++) {
    double sum = 0;
    for (int k = i < t->width ? 0 : i - t->width; k < n && k <= i + t->width; k++)
      sum += cabs(band_at(t, i, k));
    norm = fmax(norm, sum);
  }
  for (int j = 0; j < t->cols; j++) {
    const wide *x = q + (size_t)j * (size_t)n;
    if (j + 1 < t->cols || t->cols == n) {
      for (int i = 0; i < n; i++) {
        wide sum = -x[i] * get(real, t->d.data, j);
        if (j > 0) sum -= (x - n)[i] * get(real, t->e.data, j - 1);
        if (j + 1 < n) sum -= (x + n)[i] * get(real, t->e.data, j);
        for (int k = i < t->width ? 0 : i - t->width; k < n && k <= i + t->width; k++)
          sum += band_at(t, i, k) * x[k];
        if (!(cabs(sum) <= residual)) residual = cabs(sum);
      }
    }
    for (int l = j; l < t->cols; l++) {
      wide sum = l == j ? -1 : 0;
      for (int i = 0; i < n; i++) sum += conj(x[i]) * q[i + (size_t)l * (size_t)n];
      if (!(cabs(sum) <= orthogonality)) orthogonality = cabs(sum);
    }
  }
  free(q);
  const double eps = type_eps(t->type);
  if (norm > 0) residual /= norm;
  ck_assert_msg(residual < 30 * eps && orthogonality < 30 * eps, "type %c, %s, n %d, width %d: %g, %g eps",
                type_letter(t->type), matgen_name(kind), n, t->width, residual / eps, orthogonality / eps);
}

static void try(batchqr_type type, matgen_kind kind, int n, int width, int cols) {
  trial t = trial_new(type, kind, n, width, cols);
  trial_enqueue(&t, NULL);
  trial_download(&t);
  trial_check(&t, kind);
  trial_free(&t);
}

START_TEST(sizes) {
  static const int sizes[] = {1, 2, 3, 31, 32, 33, 63, 64, 65, 66, 130, 193, 300};
  for (size_t s = 0; s < sizeof sizes / sizeof *sizes && possible(); s++)
    for (int w = 0; w < 2; w++) {
      const int n = sizes[s];
      try((batchqr_type)_i, MATGEN_RANDOM, n, widths[w], s % 2 && n > 8 ? n - 7 : n);
    }
}
END_TEST

START_TEST(kinds) {
  static const matgen_kind all[] = {
      MATGEN_ZERO,   MATGEN_IDENTITY,     MATGEN_DIAGONAL,  MATGEN_BANDED,    MATGEN_ONES,       MATGEN_SIGNS,
      MATGEN_SINGLE, MATGEN_ZERO_COLUMNS, MATGEN_ZERO_ROWS, MATGEN_UNDERFLOW, MATGEN_SMALL_POWER};
  for (size_t k = 0; k < sizeof all / sizeof *all && possible(); k++)
    for (int w = 0; w < 2; w++) try((batchqr_type)_i, all[k], 150, widths[w], 150);
}
END_TEST

/* Repeated, and recorded in a graph, the same bits come out. */
START_TEST(repeated) {
  for (int w = 0; w < 2 && possible(); w++) {
    trial t = trial_new((batchqr_type)_i, MATGEN_RANDOM, 1000, widths[w], 200);
    batchqr_stream stream = memory_stream_new();
    memory_capture_begin(stream);
    trial_enqueue(&t, stream);
    memory_graph *graph = memory_capture_end(stream);
    guard *outputs[] = {&t.d, &t.e, &t.z};
    void *first[3] = {NULL, NULL, NULL};
    for (int turn = 0; turn < 4; turn++) {
      for (int i = 0; i < 3; i++)
        memory_upload(memory_backend(), t.device[1 + i], outputs[i]->before, guard_bytes(outputs[i]));
      if (turn == 0)
        trial_enqueue(&t, NULL);
      else
        memory_graph_launch(graph, stream);
      trial_download(&t);
      for (int i = 0; i < 3; i++) {
        const size_t bytes = guard_bytes(outputs[i]);
        if (turn == 0)
          first[i] = memcpy(memory_host(bytes), outputs[i]->data, bytes);
        else
          ck_assert_mem_eq(first[i], outputs[i]->data, bytes);
      }
    }
    for (int i = 0; i < 3; i++) free(first[i]);
    memory_graph_free(graph);
    memory_stream_free(stream);
    trial_free(&t);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("band");
  const TTest *tests[] = {sizes, kinds, repeated};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) suite_add(suite, tests[i]);
  return suite_run(suite);
}
