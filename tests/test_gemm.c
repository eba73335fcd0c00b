/* SPDX-License-Identifier: BSD-3-Clause */
/* The products of large members: native ones, and each kind of arithmetic that may stand in for them, also at
 * sizes for which it would not be chosen. Errors are measured against the norms of op(a)'s rows and b's
 * columns: that is what a factorization's backward error is made of. */
#include "device.h"
#include "guard.h"
#include "drivers/gemm.h"
#include "suite.h"
#include <complex.h>
#include <float.h>
#include <math.h>
#include <string.h>

typedef long double complex wide;

/* What is multiplied, and by what. */
typedef struct product {
  bqr_gemm gemm;
  const bqr_tiling *tiling;   /* NULL: the engine's choice */
  int row_spread, col_spread; /* rows of op(a), columns of b, times 2^-spread ... 2^spread */
  guard a, b, c;
  void *device[3], *workspace;
} product;

static bqr_device device = {.sm = 90, .multiprocessors = 132}; /* until there is one */
static bqr_gemm_engine *engine;

static void set_up(void) {
  if (!suite_on_gpu()) return;
  bqr_error reason;
  ck_assert_int_eq(bqr_device_cuda(&device, &reason), BATCHQR_SUCCESS);
  ck_assert_int_eq(bqr_gemm_engine_new(&device, &engine), BATCHQR_SUCCESS);
}

static void tear_down(void) {
  bqr_gemm_engine_free(engine);
  engine = NULL;
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

static void put(batchqr_type type, void *x, int64_t i, double complex value) {
  switch (type) {
  case BATCHQR_S:
    ((float *)x)[i] = (float)creal(value);
    break;
  case BATCHQR_D:
    ((double *)x)[i] = creal(value);
    break;
  case BATCHQR_C:
    ((float complex *)x)[i] = (float complex)value;
    break;
  default:
    ((double complex *)x)[i] = value;
  }
}

static double random_number(uint64_t *state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return (double)(int64_t)*state * 0x1p-63;
}

/* A rows x cols array; if `graded`, its rows or columns times 2^-spread ... 2^spread. */
static guard random_matrix(batchqr_type type, int64_t rows, int64_t cols, int64_t ld, uint64_t seed,
                           bool graded_rows, int spread) {
  guard g = guard_create(bqr_type_bytes(type), ld * cols);
  for (int64_t j = 0; j < cols; j++)
    for (int64_t i = 0; i < rows; i++) {
      const int64_t line = graded_rows ? i : j;
      const double scale = ldexp(1.0, spread ? (int)(line * 37 % (2 * spread + 1)) - spread : 0);
      const double re = random_number(&seed), im = random_number(&seed);
      put(type, g.data, i + j * ld, scale * (re + im * I));
    }
  return g;
}

static product product_new(batchqr_type type, const bqr_tiling *tiling, bool adjoint, int m, int n, int k,
                           int row_spread, int col_spread) {
  product p = {.gemm = {.type = type, .adjoint_a = adjoint, .m = m, .n = n, .k = k, .alpha = 1},
               .tiling = tiling,
               .row_spread = row_spread,
               .col_spread = col_spread};
  bqr_gemm *g = &p.gemm;
  g->lda = (adjoint ? k : m) + 3;
  g->ldb = k + 1;
  g->ldc = m + 2;
  p.a = random_matrix(type, adjoint ? k : m, adjoint ? m : k, g->lda, 1, !adjoint, row_spread);
  p.b = random_matrix(type, k, n, g->ldb, 2, false, col_spread);
  p.c = random_matrix(type, m, n, g->ldc, 3, false, 0);
  return p;
}

static void product_upload(product *p) {
  guard *arrays[] = {&p->a, &p->b, &p->c};
  for (int i = 0; i < (p->gemm.count > 1 ? p->gemm.count : 1); i++)
    guard_open(&p->c, i * p->gemm.stride_c, (int)p->gemm.m, (int)p->gemm.n, (int)p->gemm.ldc);
  for (int i = 0; i < 3; i++) {
    guard_seal(arrays[i]);
    p->device[i] = memory_clone(memory_backend(), arrays[i]->data, guard_bytes(arrays[i]));
  }
  p->gemm.a = p->device[0];
  p->gemm.b = p->device[1];
  p->gemm.c = p->device[2];
  const size_t bytes = p->tiling ? bqr_gemm_tiled_workspace(p->tiling, &device, &p->gemm)
                                 : bqr_gemm_workspace(&device, &p->gemm);
  p->workspace = memory_alloc(memory_backend(), bytes);
  memory_fill(memory_backend(), p->workspace, 0xff, bytes);
}

static void product_enqueue(const product *p, batchqr_stream stream) {
  const batchqr_status status = p->tiling ? bqr_gemm_tiled(p->tiling, &device, &p->gemm, p->workspace, stream)
                                          : bqr_gemm_enqueue(engine, &p->gemm, p->workspace,
                                                             bqr_gemm_workspace(&device, &p->gemm), stream);
  ck_assert_int_eq(status, BATCHQR_SUCCESS);
}

static void product_download(product *p) {
  memory_download(memory_backend(), p->c.data, p->device[2], guard_bytes(&p->c));
  ck_assert_int_eq(guard_check(&p->c), -1);
}

static void product_run(product *p) {
  product_upload(p);
  product_enqueue(p, NULL);
  product_download(p);
}

static void product_free(product *p) {
  guard *arrays[] = {&p->a, &p->b, &p->c};
  for (int i = 0; i < 3; i++) {
    guard_destroy(arrays[i]);
    memory_free(memory_backend(), p->device[i]);
  }
  memory_free(memory_backend(), p->workspace);
}

static wide element_a(const product *p, int64_t i, int64_t l) {
  const bqr_gemm *g = &p->gemm;
  return g->adjoint_a ? conjl(get(g->type, p->a.data, l + i * g->lda))
                      : get(g->type, p->a.data, i + l * g->lda);
}

/* The error of entry (i, j) over what it may be. */
static double error_at(const product *p, int64_t i, int64_t j, double eps) {
  const bqr_gemm *g = &p->gemm;
  wide sum = 0;
  long double a2 = 0, b2 = 0;
  for (int64_t l = 0; l < g->k; l++) {
    const wide a = element_a(p, i, l), b = get(g->type, p->b.data, l + j * g->ldb);
    sum += a * b;
    a2 += creall(a) * creall(a) + cimagl(a) * cimagl(a);
    b2 += creall(b) * creall(b) + cimagl(b) * cimagl(b);
  }
  const wide old = get(g->type, guard_before(&p->c, 0), i + j * g->ldc),
             c = get(g->type, p->c.data, i + j * g->ldc);
  const wide expected = g->alpha * sum + g->beta * old;
  const long double unit = eps * sqrtl(a2 * b2) + 2 * type_eps(g->type) * cabsl(expected);
  return unit > 0 ? (double)(cabsl(c - expected) / unit) : c == expected ? 0 : INFINITY;
}

/* What errors are counted in. */
static double unit_of(const product *p) {
  if (p->tiling == &bqr_tiling_half) return 0x1p-11;
  return 2 * type_eps(p->gemm.type);
}

/* All entries of up to 20 columns. */
static void product_check(const product *p) {
  const bqr_gemm *g = &p->gemm;
  const int64_t step = g->n / 20 + 1;
  for (int64_t j = g->n - 1; j >= 0; j -= step)
    for (int64_t i = 0; i < g->m; i++) {
      const double error = error_at(p, i, j, unit_of(p));
      ck_assert_msg(error < 4, "type %d, tiling %s, %s %ld x %ld x %ld: error %g at (%ld, %ld)", g->type,
                    p->tiling == &bqr_tiling_half    ? "half"
                    : p->tiling == &bqr_tiling_split ? "split"
                    : p->tiling                      ? "modular"
                                                     : "none",
                    g->adjoint_a ? "adjoint" : "", (long)g->m, (long)g->n, (long)g->k, error, (long)i,
                    (long)j);
    }
}

/* f for every kind of arithmetic that the type can have here. */
static void for_tilings(batchqr_type type, void (*f)(batchqr_type, const bqr_tiling *)) {
  if (!suite_on_gpu()) return;
  const bqr_tiling *all[] = {&bqr_tiling_half, &bqr_tiling_split, &bqr_tiling_modular};
  f(type, NULL);
  for (int i = 0; i < 3 && device.sm == 90; i++)
    if (all[i]->types >> type & 1) f(type, all[i]);
}

static void try_sizes(batchqr_type type, const bqr_tiling *tiling) {
  static const int sizes[][3] = {{1, 1, 1},      {127, 255, 31}, {128, 256, 64},   {129, 257, 129},
                                 {300, 520, 70}, {513, 40, 300}, {257, 100, 1500}, {40, 300, 33000}};
  for (int s = 0; s < 8; s++)
    for (int adjoint = 0; adjoint < 2; adjoint++) {
      product p = product_new(type, tiling, adjoint, sizes[s][0], sizes[s][1], sizes[s][2], 0, 0);
      p.gemm.alpha = s % 2 ? -1 : 1;
      p.gemm.beta = (s + adjoint) % 2;
      product_run(&p);
      product_check(&p);
      product_free(&p);
    }
}
START_TEST(sizes) { for_tilings((batchqr_type)_i, try_sizes); }
END_TEST

/* Beside other kernels: k in parts, and strips as wide as they can be in the room. */
static void try_shared(batchqr_type type, const bqr_tiling *tiling) {
  for (int again = 0; again < 2 && tiling; again++) {
    product p = product_new(type, tiling, !again, 257, 300, 8300, 3, 3);
    p.gemm.shares = true;
    p.gemm.beta = again;
    p.gemm.room = again ? 300 << 20 : 0;
    product_run(&p);
    for (int64_t at = 0; at < 100; at++)
      ck_assert_double_lt(error_at(&p, at * 811 % p.gemm.m, at * 127 % p.gemm.n, unit_of(&p)), 4);
    product_free(&p);
  }
}
START_TEST(shared) { for_tilings((batchqr_type)_i, try_shared); }
END_TEST

/* Long sums of few results in slices of the terms, with and without a rest of them, in all the room that they
 * want and in less, beside other kernels and alone. */
static void try_slices(batchqr_type type, const bqr_tiling *tiling) {
  static const int sizes[][3] = {{257, 300, 8300}, {300, 40, 2048}, {520, 2100, 2050}, {1000, 600, 4096}};
  for (int i = 0; i < 16 && type == BATCHQR_S && tiling; i++) {
    const int *size = sizes[i / 4], adjoint = i % 2;
    product p = product_new(type, tiling, adjoint, size[0], size[1], size[2], 3, 3);
    p.gemm.sliced = true;
    p.gemm.shares = i % 4 > 1;
    p.gemm.alpha = adjoint ? 1 : -1;
    p.gemm.beta = i % 3 > 0;
    p.gemm.room = i / 4 == 0 && i > 1 ? 30 << 20 : 0;
    product_run(&p);
    for (int64_t at = 0; at < 300; at++)
      ck_assert_double_lt(error_at(&p, at * 811 % p.gemm.m, at * 1127 % p.gemm.n, unit_of(&p)), 4);
    product_free(&p);
  }
}
START_TEST(slices) { for_tilings((batchqr_type)_i, try_slices); }
END_TEST

/* Rows and columns of very different sizes each keep their own accuracy. */
static void try_spread(batchqr_type type, const bqr_tiling *tiling) {
  for (int adjoint = 0; adjoint < 2; adjoint++) {
    product p = product_new(type, tiling, adjoint, 150, 300, 200, 30, 30);
    product_run(&p);
    product_check(&p);
    product_free(&p);
  }
}
START_TEST(spread) { for_tilings((batchqr_type)_i, try_spread); }
END_TEST

/* Zeros stay exact. */
static void try_zeros(batchqr_type type, const bqr_tiling *tiling) {
  product p = product_new(type, tiling, false, 130, 260, 100, 0, 0);
  const bqr_gemm *g = &p.gemm;
  p.gemm.beta = 1;
  for (int64_t l = 0; l < g->k; l++) {
    put(type, p.a.data, 7 + l * g->lda, 0);
    put(type, p.b.data, l + 258 * g->ldb, 0);
  }
  product_run(&p);
  product_check(&p);
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->n; j++)
      if (i == 7 || j == 258)
        ck_assert(get(type, p.c.data, i + j * g->ldc) == get(type, guard_before(&p.c, 0), i + j * g->ldc));
  product_free(&p);
}
START_TEST(zeros) { for_tilings((batchqr_type)_i, try_zeros); }
END_TEST

static bool is_nan(wide x) { return isnan(creall(x)) || isnan(cimagl(x)); }

/* What is not finite stays so, and leaves the other rows and columns alone. */
static void try_spoiled(batchqr_type type, const bqr_tiling *tiling) {
  product p = product_new(type, tiling, true, 130, 260, 100, 0, 0);
  const bqr_gemm *g = &p.gemm;
  put(type, p.a.data, 3 + 9 * g->lda, NAN);
  put(type, p.a.data, 5 + 129 * g->lda, INFINITY);
  put(type, p.b.data, 99 + 40 * g->ldb, INFINITY);
  put(type, p.b.data, 0 + 41 * g->ldb, NAN);
  product_run(&p);
  for (int64_t i = 0; i < g->m; i++)
    for (int64_t j = 0; j < g->n; j++) {
      const wide c = get(type, p.c.data, i + j * g->ldc);
      const bool finite = isfinite(creall(c)) && isfinite(cimagl(c));
      ck_assert_int_eq(finite, i != 9 && i != 129 && j != 40 && j != 41);
      if (i == 9 || j == 41) ck_assert(is_nan(c));
    }
  product_free(&p);
}
START_TEST(spoiled) { for_tilings((batchqr_type)_i, try_spoiled); }
END_TEST

/* Repeated, and recorded in a graph, the same bits come out. */
static void try_repeated(batchqr_type type, const bqr_tiling *tiling) {
  product p = product_new(type, tiling, false, 300, 600, 4500, 0, 0);
  p.gemm.sliced = true;
  product_run(&p);
  guard first = p.c;
  first.data = malloc(guard_bytes(&p.c));
  memcpy(first.data, p.c.data, guard_bytes(&p.c));
  memory_fill(memory_backend(), p.device[2], 0xff, guard_bytes(&p.c));
  batchqr_stream stream = memory_stream_new();
  memory_capture_begin(stream);
  product_enqueue(&p, stream);
  memory_graph *graph = memory_capture_end(stream);
  for (int i = 0; i < 2; i++) memory_graph_launch(graph, stream);
  memory_sync(memory_backend());
  memory_download(memory_backend(), p.c.data, p.device[2], guard_bytes(&p.c));
  for (int64_t j = 0; j < p.gemm.n; j++) {
    const size_t at = (size_t)(j * p.gemm.ldc) * p.c.size;
    ck_assert_mem_eq(p.c.data + at, first.data + at, (size_t)p.gemm.m * p.c.size);
  }
  memory_graph_free(graph);
  memory_stream_free(stream);
  free(first.data);
  product_free(&p);
}
START_TEST(repeated) { for_tilings((batchqr_type)_i, try_repeated); }
END_TEST

/* Products of a batch have the bits that each has alone, and what is between the members stays. */
static void try_batches(batchqr_type type, const bqr_tiling *tiling) {
  enum { MEMBERS = 3 };
  if (!tiling || !tiling->batches) return;
  for (int adjoint = 0; adjoint < 2; adjoint++) {
    const int m = 150, n = 300, k = 200;
    product p = product_new(type, tiling, adjoint, m, MEMBERS * n, k, 0, 0);
    bqr_gemm *g = &p.gemm;
    guard_destroy(&p.a);
    p.a = random_matrix(type, adjoint ? k : m, MEMBERS * (adjoint ? m : k), g->lda, 4, !adjoint, 0);
    *g = (bqr_gemm){.type = type,
                    .adjoint_a = adjoint,
                    .m = m,
                    .n = n - 1,
                    .k = k,
                    .alpha = -1,
                    .beta = 1,
                    .lda = g->lda,
                    .ldb = g->ldb,
                    .ldc = g->ldc,
                    .count = MEMBERS,
                    .stride_a = g->lda * (adjoint ? m : k),
                    .stride_b = g->ldb * n,
                    .stride_c = g->ldc * n};
    product_run(&p);
    guard all = p.c;
    all.data = malloc(guard_bytes(&p.c));
    memcpy(all.data, p.c.data, guard_bytes(&p.c));
    memory_upload(memory_backend(), p.device[2], guard_before(&p.c, 0), guard_bytes(&p.c));
    const size_t size = p.c.size;
    g->count = 0;
    for (int i = 0; i < MEMBERS; i++) {
      product_enqueue(&p, NULL);
      g->a = (const char *)g->a + (size_t)g->stride_a * size;
      g->b = (const char *)g->b + (size_t)g->stride_b * size;
      g->c = (char *)g->c + (size_t)g->stride_c * size;
    }
    product_download(&p);
    ck_assert_mem_eq(p.c.data, all.data, guard_bytes(&p.c));
    free(all.data);
    product_free(&p);
  }
}
START_TEST(batches) { for_tilings((batchqr_type)_i, try_batches); }
END_TEST

/* The engine's own choice, where it is not the native product. */
START_TEST(chosen) {
  static const batchqr_compute modes[] = {BATCHQR_COMPUTE_AUTO, BATCHQR_COMPUTE_NATIVE,
                                          BATCHQR_COMPUTE_EMULATED, BATCHQR_COMPUTE_HALF};
  for (int i = 0; i < 4 && suite_on_gpu(); i++) {
    product p = product_new((batchqr_type)_i, NULL, true, 2048, 2100, 2048, 0, 0);
    p.gemm.mode = modes[i];
    product_run(&p);
    const double unit =
        modes[i] == BATCHQR_COMPUTE_HALF && !type_is_double(p.gemm.type) ? 0x1p-11 : unit_of(&p);
    for (int64_t at = 0; at < 50; at++)
      ck_assert_double_lt(error_at(&p, at * 811 % p.gemm.m, at * 127 % p.gemm.n, unit), 4);
    product_free(&p);
  }
}
END_TEST

/* Smaller products never need more, and a workspace that is too small is told. */
START_TEST(workspaces) {
  static const int64_t sizes[] = {1, 100, 1000, 4096, 9000, 30000, 40000};
  static const int num_sizes = sizeof sizes / sizeof *sizes;
  for (int mode = 0; mode < 8; mode++)
    for (int s = 0; s < num_sizes * num_sizes * num_sizes; s++) {
      const int at[] = {s % num_sizes, s / num_sizes % num_sizes, s / num_sizes / num_sizes};
      bqr_gemm g = {.type = (batchqr_type)_i,
                    .mode = (batchqr_compute)(mode % 4),
                    .m = sizes[at[0]],
                    .n = sizes[at[1]],
                    .k = sizes[at[2]],
                    .sliced = mode > 3};
      const size_t bytes = bqr_gemm_workspace(&device, &g);
      ck_assert(g.mode != BATCHQR_COMPUTE_NATIVE || !bqr_gemm_tiling(&device, &g));
      for (int d = 0; d < 3; d++) {
        bqr_gemm larger = g;
        if (at[d] + 1 == num_sizes) continue;
        *(d == 0 ? &larger.m : d == 1 ? &larger.n : &larger.k) = sizes[at[d] + 1];
        ck_assert_uint_le(bytes, bqr_gemm_workspace(&device, &larger));
      }
      if (engine && s == 0)
        ck_assert_int_eq(bqr_gemm_enqueue(engine, &g, NULL, bytes - 1, NULL), BATCHQR_WORKSPACE_TOO_SMALL);
    }
}
END_TEST

int main(void) {
  memory_backend();
  Suite *suite = suite_create("gemm");
  const TTest *tests[] = {sizes,   shared,   slices,  spread, zeros,
                          spoiled, repeated, batches, chosen, workspaces};
  for (size_t i = 0; i < sizeof tests / sizeof *tests; i++) {
    TCase *tcase = tcase_create(tests[i]->name);
    tcase_add_checked_fixture(tcase, set_up, tear_down);
    suite_add_types(tcase, tests[i]);
    suite_add_tcase(suite, tcase);
  }
  return suite_run(suite);
}
