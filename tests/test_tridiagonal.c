/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues and eigenvectors of one tridiagonal matrix by divide and conquer over the whole GPU
 * (kernels/tridiagonal), by LAPACK's ratios, on matrices that deflate not at all, everywhere, and in long
 * runs.
 */
#include "guard.h"
#include "suite.h"
#include "tridiagonal/tridiagonal.h"
#include <float.h>
#include <math.h>
#include <string.h>

enum { RATIO = 30 };

typedef enum kind {
  TOEPLITZ, /* -1, 2, -1: nothing deflates */
  RANDOM,   /* vectors are local: most deflates */
  DIAGONAL, /* e = 0 */
  ZERO,
  IDENTITY,  /* but for an e near rounding: runs of equal eigenvalues */
  WILKINSON, /* pairs */
  GLUED,     /* of order 21, again and again */
  GRADED_DOWN,
  GRADED_UP,
  SPLIT,    /* e = 0 here and there */
  THREE,    /* three clusters */
  RANK_ONE, /* and noise behind it */
  LEGENDRE,
  NUM_KINDS
} kind;

static double random_number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)*state * 0x1p-63;
}

static void make(kind which, int n, double *d, double *e) {
  uint64_t state = 1;
  for (int i = 0; i < n; i++) {
    const double x = random_number(&state), y = random_number(&state), grade = pow(1e-16, (double)i / n),
                 k = i + 1;
    d[i] = e[i] = 0;
    switch (which) {
    case TOEPLITZ:
      d[i] = 2, e[i] = -1;
      break;
    case RANDOM:
      d[i] = x, e[i] = y;
      break;
    case DIAGONAL:
      d[i] = x;
      break;
    case ZERO:
      break;
    case IDENTITY:
      d[i] = 1, e[i] = 1e-8 * y;
      break;
    case WILKINSON:
      d[i] = fabs(i - 0.5 * (n - 1)) / n, e[i] = 1.0 / n;
      break;
    case GLUED:
      d[i] = abs(i % 21 - 10) * 0.1, e[i] = i % 21 == 20 ? 1e-9 : 0.1;
      break;
    case GRADED_DOWN:
      d[i] = grade * x, e[i] = grade * y;
      break;
    case GRADED_UP:
      d[i] = x * 1e-16 / grade, e[i] = y * 1e-16 / grade;
      break;
    case SPLIT:
      d[i] = x, e[i] = i % 7 == 3 ? 0 : y;
      break;
    case THREE:
      d[i] = i % 3 * 0.3 + 1e-14 * x, e[i] = i % 5 == 0 ? 0.3 : 1e-9 * y;
      break;
    case RANK_ONE:
      d[i] = i == 0 ? 1 : 1e-13 * x, e[i] = i == 0 ? 0.5 : 1e-13 * y;
      break;
    default:
      e[i] = k / sqrt(4 * k * k - 1);
    }
  }
}

/* T, what is found of it, and what that is in double precision. */
typedef struct problem {
  batchqr_type type;
  int n, ld;
  double *d, *e, *w, *values, norm;
  guard q;
  void *device[5], *memory; /* d, e, w, values, q */
  size_t bytes;
} problem;

static double get(batchqr_type type, const void *x, int64_t i) {
  return type == BATCHQR_S ? ((const float *)x)[i] : ((const double *)x)[i];
}

static void *upload(batchqr_type type, double *x, int n) {
  void *host = memory_host((size_t)n * 8);
  for (int i = 0; i < n; i++) {
    if (type == BATCHQR_S)
      x[i] = ((float *)host)[i] = (float)x[i];
    else
      ((double *)host)[i] = x[i];
  }
  void *device = memory_clone(memory_backend(), host, (size_t)n * bqr_type_bytes(type));
  free(host);
  return device;
}

static void download(const problem *p, int which, double *x) {
  void *host = memory_host((size_t)p->n * 8);
  memory_download(memory_backend(), host, p->device[which], (size_t)p->n * bqr_type_bytes(p->type));
  for (int i = 0; i < p->n; i++) x[i] = get(p->type, host, i);
  free(host);
}

static problem problem_new(batchqr_type type, kind which, int n, int padding) {
  const size_t rows = (size_t)n;
  problem p = {.type = type, .n = n, .ld = n + padding, .norm = 1e-100};
  p.d = memory_host(rows * sizeof(double));
  p.e = memory_host(rows * sizeof(double));
  p.w = memory_host(rows * sizeof(double));
  p.values = memory_host(rows * sizeof(double));
  make(which, n, p.d, p.e);
  p.device[0] = upload(type, p.d, n);
  p.device[1] = upload(type, p.e, n);
  p.device[2] = upload(type, p.w, n);
  p.device[3] = upload(type, p.values, n);
  for (int i = 0; i < n; i++)
    p.norm = fmax(p.norm, fabs(p.d[i]) + (i > 0 ? fabs(p.e[i - 1]) : 0) + (i < n - 1 ? fabs(p.e[i]) : 0));
  p.q = guard_create(bqr_type_bytes(type), (int64_t)p.ld * n);
  guard_open(&p.q, 0, n, n, p.ld);
  guard_seal(&p.q);
  p.device[4] = memory_clone(memory_backend(), p.q.data, guard_bytes(&p.q));
  const size_t vectors = bqr_tridiagonal_bytes(type, n, true), values = bqr_tridiagonal_bytes(type, n, false);
  p.bytes = vectors > values ? vectors : values;
  p.memory = memory_alloc(memory_backend(), p.bytes);
  memory_fill(memory_backend(), p.memory, 0xff, p.bytes);
  return p;
}

static void problem_free(problem *p) {
  for (int i = 0; i < 5; i++) memory_free(memory_backend(), p->device[i]);
  memory_free(memory_backend(), p->memory);
  guard_destroy(&p->q);
  free(p->d);
  free(p->e);
  free(p->w);
  free(p->values);
}

static void enqueue(const problem *p, batchqr_stream stream) {
  ck_assert_int_eq(bqr_tridiagonal_vectors(p->type, p->n, p->device[0], p->device[1], p->device[2],
                                           p->device[4], p->ld, 0, p->n, p->memory, stream),
                   BATCHQR_SUCCESS);
  ck_assert_int_eq(
      bqr_tridiagonal_values(p->type, p->n, p->device[0], p->device[1], p->device[3], p->memory, stream),
      BATCHQR_SUCCESS);
}

static void problem_run(problem *p) {
  ck_assert_int_eq(bqr_tridiagonal_prepare(p->type), BATCHQR_SUCCESS);
  enqueue(p, NULL);
  download(p, 2, p->w);
  download(p, 3, p->values);
  memory_download(memory_backend(), p->q.data, p->device[4], guard_bytes(&p->q));
  ck_assert_int_eq(guard_check(&p->q), -1);
}

static double entry(const problem *p, int i, int j) {
  return get(p->type, p->q.data, i + (int64_t)j * p->ld);
}

/* The sum of |T q - w q|, q being column j. */
static double residual(const problem *p, int j) {
  double sum = 0;
  for (int i = 0; i < p->n; i++) {
    double r = (p->d[i] - p->w[j]) * entry(p, i, j);
    if (i > 0) r += p->e[i - 1] * entry(p, i - 1, j);
    if (i < p->n - 1) r += p->e[i] * entry(p, i + 1, j);
    sum += fabs(r);
  }
  return sum;
}

/* That of |I - Q^T Q| over column j. */
static double orthogonality(const problem *p, int j) {
  double sum = 0;
  for (int k = 0; k < p->n; k++) {
    double product = k == j ? -1 : 0;
    for (int i = 0; i < p->n; i++) product += entry(p, i, j) * entry(p, i, k);
    sum += fabs(product);
  }
  return sum;
}

static void problem_check(const problem *p, kind which) {
  const double eps = type_eps(p->type);
  const int step = p->n / 60 + 1; /* of the columns that are multiplied with all others */
  for (int j = 0; j < p->n; j++) {
    ck_assert_msg(j == 0 || p->w[j] >= p->w[j - 1], "kind %d, n = %d: w[%d] = %g", which, p->n, j, p->w[j]);
    const double change = fabs(p->w[j] - p->values[j]) / (p->norm * eps),
                 error = residual(p, j) / (p->n * p->norm * eps);
    ck_assert_msg(change < RATIO, "kind %d, n = %d: value %d changes by %g", which, p->n, j, change);
    ck_assert_msg(error < RATIO, "kind %d, n = %d: residual %g of %d", which, p->n, error, j);
    if (j % step == 0) {
      const double angle = orthogonality(p, j) / (p->n * eps);
      ck_assert_msg(angle < RATIO, "kind %d, n = %d: orthogonality %g of %d", which, p->n, angle, j);
    }
    if (which == TOEPLITZ) {
      const double x = fabs(p->w[j] - 2 + 2 * cos(acos(-1) * (j + 1) / (p->n + 1))) / (p->norm * eps);
      ck_assert_msg(x < RATIO * sqrt(p->n), "n = %d: value %d is wrong by %g", p->n, j, x);
    }
  }
}

static bool is_real(int type) { return type == BATCHQR_S || type == BATCHQR_D; }

START_TEST(matrices) {
  static const int sizes[] = {1, 2, 3, 100, 128, 129, 257, 400, 513, 1025};
  for (int s = 0; s < 10 && suite_on_gpu() && is_real(_i); s++)
    for (int which = 0; which < NUM_KINDS; which++) {
      problem p = problem_new((batchqr_type)_i, (kind)which, sizes[s], (s + which) % 4);
      problem_run(&p);
      problem_check(&p, (kind)which);
      problem_free(&p);
    }
}
END_TEST

/* More columns than one panel of the products has. */
START_TEST(panels) {
  if (!suite_on_gpu() || !is_real(_i)) return;
  problem p = problem_new((batchqr_type)_i, TOEPLITZ, 2500, 0);
  problem_run(&p);
  problem_check(&p, TOEPLITZ);
  problem_free(&p);
}
END_TEST

/* Some of the columns: the same bits. */
START_TEST(parts) {
  static const struct {
    int n, first, end;
  } cases[] = {{60, 3, 9}, {700, 0, 1}, {700, 350, 480}, {700, 699, 700}, {2500, 2000, 2200}};
  for (int i = 0; i < 10 && suite_on_gpu() && is_real(_i); i++) {
    const int n = cases[i % 5].n, first = cases[i % 5].first, end = cases[i % 5].end;
    problem p = problem_new((batchqr_type)_i, i < 5 ? TOEPLITZ : WILKINSON, n, 0);
    problem_run(&p);
    char *before = memory_host(guard_bytes(&p.q));
    memcpy(before, p.q.data, guard_bytes(&p.q));
    memory_fill(memory_backend(), p.device[4], 0xff, guard_bytes(&p.q));
    ck_assert_int_eq(bqr_tridiagonal_vectors(p.type, n, p.device[0], p.device[1], p.device[2], p.device[4],
                                             p.ld, first, end, p.memory, NULL),
                     BATCHQR_SUCCESS);
    memory_sync(memory_backend());
    memory_download(memory_backend(), p.q.data, p.device[4], guard_bytes(&p.q));
    const size_t size = p.q.size, column = size * (size_t)p.ld;
    for (int j = first; j < end; j++)
      ck_assert_mem_eq((const char *)p.q.data + column * (size_t)j, before + column * (size_t)j,
                       size * (size_t)n);
    free(before);
    problem_free(&p);
  }
}
END_TEST

/* The same bits from a graph, in memory that is not as it was. */
START_TEST(repeated) {
  if (!suite_on_gpu() || !is_real(_i)) return;
  problem p = problem_new((batchqr_type)_i, WILKINSON, 700, 1);
  problem_run(&p);
  void *before = memory_host(guard_bytes(&p.q));
  memcpy(before, p.q.data, guard_bytes(&p.q));
  double *w = memory_host((size_t)p.n * sizeof *w);
  memory_fill(memory_backend(), p.memory, 0x7f, p.bytes);
  batchqr_stream stream = memory_stream_new();
  memory_capture_begin(stream);
  enqueue(&p, stream);
  memory_graph *graph = memory_capture_end(stream);
  for (int i = 0; i < 2; i++) memory_graph_launch(graph, stream);
  memory_sync(memory_backend());
  memory_download(memory_backend(), p.q.data, p.device[4], guard_bytes(&p.q));
  ck_assert_mem_eq(p.q.data, before, guard_bytes(&p.q));
  download(&p, 2, w);
  ck_assert_mem_eq(w, p.w, (size_t)p.n * sizeof *w);
  download(&p, 3, w);
  ck_assert_mem_eq(w, p.values, (size_t)p.n * sizeof *w);
  memory_graph_free(graph);
  memory_stream_free(stream);
  free(before);
  free(w);
  problem_free(&p);
}
END_TEST

/* Several at once have the bits that each has alone. */
START_TEST(several) {
  enum { COUNT = 3 };
  if (!suite_on_gpu() || !is_real(_i)) return;
  const batchqr_type type = (batchqr_type)_i;
  static const kind which[COUNT] = {TOEPLITZ, RANDOM, GLUED};
  problem alone[COUNT];
  const int n = 270;
  const size_t vector = (size_t)n * bqr_type_bytes(type), matrix = vector * (size_t)n;
  unsigned char *d = memory_host(COUNT * vector), *e = memory_host(COUNT * vector),
                *w = memory_host(COUNT * vector), *q = memory_host(COUNT * matrix),
                *own = memory_host(matrix);
  for (int i = 0; i < COUNT; i++) {
    alone[i] = problem_new(type, which[i], n, 0);
    problem_run(&alone[i]);
    memory_download(memory_backend(), d + i * vector, alone[i].device[0], vector);
    memory_download(memory_backend(), e + i * vector, alone[i].device[1], vector);
  }
  const size_t bytes = bqr_tridiagonals_bytes(type, n, COUNT, true);
  void *device[] = {memory_clone(memory_backend(), d, COUNT * vector),
                    memory_clone(memory_backend(), e, COUNT * vector),
                    memory_alloc(memory_backend(), COUNT * vector),
                    memory_alloc(memory_backend(), COUNT * matrix), memory_alloc(memory_backend(), bytes)};
  memory_fill(memory_backend(), device[4], 0xff, bytes);
  ck_assert_int_eq(bqr_tridiagonals(type, n, COUNT, device[0], device[1], device[2], device[3], n,
                                    (int64_t)n * n, device[4], NULL),
                   BATCHQR_SUCCESS);
  memory_download(memory_backend(), w, device[2], COUNT * vector);
  memory_download(memory_backend(), q, device[3], COUNT * matrix);
  for (int i = 0; i < COUNT; i++) {
    ck_assert_mem_eq(q + i * matrix, alone[i].q.data, matrix);
    memory_download(memory_backend(), own, alone[i].device[2], vector);
    ck_assert_mem_eq(w + i * vector, own, vector);
    problem_free(&alone[i]);
  }
  for (int i = 0; i < 5; i++) memory_free(memory_backend(), device[i]);
  free(d);
  free(e);
  free(w);
  free(q);
  free(own);
}
END_TEST

/* One matrix beside that of the vectors, and little more. */
START_TEST(workspaces) {
  const batchqr_type type = BATCHQR_D;
  for (int n = 1000; n < 70000; n = n * 3 / 2 + 1) {
    const double rows = n, bytes = (double)bqr_type_bytes(type);
    ck_assert_double_le((double)bqr_tridiagonal_bytes(type, n, true),
                        bytes * rows * (rows + 1.15 * fmin(rows, 2048) + 400));
    ck_assert_double_le((double)bqr_tridiagonal_bytes(type, n, false), bytes * rows * 320);
  }
}
END_TEST

int main(void) {
  Suite *suite = suite_create("tridiagonal");
  const TTest *tests[] = {matrices, panels, parts, repeated, several, workspaces};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) suite_add(suite, tests[i]);
  return suite_run(suite);
}
