/* SPDX-License-Identifier: BSD-3-Clause */
/* Rates and errors of the products of large members, src/drivers/gemm.h, each compute mode by itself:
 *
 *   bench_gemm                          the cases below
 *   bench_gemm MODE TYPE OP M N K ...   these; MODE: auto, native, emulated or half, OP: n or h, op(a) = a^H
 *
 * CSV: the median of 7 runs, operands' conversion included, and over 200 entries the largest error next to
 * the entry of |op(a)| |b|. */
#include "batch.h"
#include "device.h"
#include "drivers/gemm.h"
#include <complex.h>
#include <cuda_runtime_api.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REPS = 7, SAMPLES = 200 };
static const char *const modes[] = {"auto", "native", "emulated", "half"};
static const char letters[] = "sdcz";

static void check(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "bench_gemm: %s failed\n", what);
  exit(EXIT_FAILURE);
}
#define CHECK(call) check((call) == 0, #call)

static bool is_complex(batchqr_type type) { return type == BATCHQR_C || type == BATCHQR_Z; }
static bool is_double(batchqr_type type) { return type == BATCHQR_D || type == BATCHQR_Z; }

/* Normal numbers, about: the sum of 12 uniform ones. */
static double normal(uint64_t *state) {
  double sum = -6;
  for (int i = 0; i < 12; i++) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    sum += (double)(*state >> 11) * 0x1p-53;
  }
  return sum;
}

/* `elements` of the type: a million random numbers, over and over. */
static void *random_array(batchqr_type type, int64_t elements, uint64_t seed) {
  enum { PERIOD = 1000003 };
  const size_t real = is_double(type) ? 8 : 4, bytes = (size_t)elements * bqr_type_bytes(type),
               part = PERIOD * real;
  char *some = malloc(part), *array = NULL;
  check(some != NULL, "malloc");
  for (int i = 0; i < PERIOD; i++) {
    const double x = normal(&seed);
    if (is_double(type))
      ((double *)some)[i] = x;
    else
      ((float *)some)[i] = (float)x;
  }
  CHECK(cudaMalloc((void **)&array, bytes));
  for (size_t at = 0; at < bytes; at += part)
    CHECK(cudaMemcpy(array + at, some, bytes - at < part ? bytes - at : part, cudaMemcpyHostToDevice));
  free(some);
  return array;
}

static double complex get(batchqr_type type, const void *x, int64_t i) {
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

/* The error of entry (i, j), alpha being 1 and beta 0; `row` and `column`: space for k elements. */
static double error_at(const bqr_gemm *g, int64_t i, int64_t j, void *row, void *column) {
  const size_t size = bqr_type_bytes(g->type), k = (size_t)g->k;
  const char *a = (const char *)g->a + (size_t)(g->adjoint_a ? i * g->lda : i) * size;
  char c[16];
  if (g->adjoint_a)
    CHECK(cudaMemcpy(row, a, k * size, cudaMemcpyDeviceToHost));
  else
    CHECK(cudaMemcpy2D(row, size, a, (size_t)g->lda * size, size, k, cudaMemcpyDeviceToHost));
  CHECK(
      cudaMemcpy(column, (const char *)g->b + (size_t)(j * g->ldb) * size, k * size, cudaMemcpyDeviceToHost));
  CHECK(cudaMemcpy(c, (const char *)g->c + (size_t)(i + j * g->ldc) * size, size, cudaMemcpyDeviceToHost));
  long double complex sum = 0;
  long double bound = 0;
  for (int64_t l = 0; l < g->k; l++) {
    const double complex x = get(g->type, row, l), y = get(g->type, column, l);
    sum += (long double complex)(g->adjoint_a ? conj(x) : x) * y;
    bound += cabsl(x) * cabsl(y);
  }
  return (double)(cabsl(get(g->type, c, 0) - sum) / bound);
}

static double largest_error(const bqr_gemm *g) {
  const size_t bytes = (size_t)g->k * bqr_type_bytes(g->type);
  void *row = malloc(bytes), *column = malloc(bytes);
  check(row && column, "malloc");
  double largest = 0;
  for (int64_t s = 0; s < SAMPLES; s++) {
    const double error = error_at(g, s * 104729 % g->m, s * 15485863 % g->n, row, column);
    if (!(error <= largest)) largest = error;
  }
  free(row);
  free(column);
  return largest;
}

static int ascending(const void *a, const void *b) {
  const float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static float median_ms(bqr_gemm_engine *engine, const bqr_device *device, const bqr_gemm *g) {
  const size_t bytes = bqr_gemm_workspace(device, g);
  void *workspace;
  cudaEvent_t start, stop;
  float ms[REPS];
  CHECK(cudaMalloc(&workspace, bytes));
  CHECK(cudaEventCreate(&start));
  CHECK(cudaEventCreate(&stop));
  for (int i = -2; i < REPS; i++) {
    CHECK(cudaEventRecord(start, NULL));
    CHECK(bqr_gemm_enqueue(engine, g, workspace, bytes, NULL));
    CHECK(cudaEventRecord(stop, NULL));
    CHECK(cudaEventSynchronize(stop));
    if (i >= 0) CHECK(cudaEventElapsedTime(&ms[i], start, stop));
  }
  CHECK(cudaEventDestroy(start));
  CHECK(cudaEventDestroy(stop));
  CHECK(cudaFree(workspace));
  qsort(ms, REPS, sizeof *ms, ascending);
  return ms[REPS / 2];
}

static const char *arithmetic(const bqr_device *device, const bqr_gemm *g) {
  const bqr_tiling *tiling = bqr_gemm_tiling(device, g);
  return tiling == &bqr_tiling_half      ? "half"
         : tiling == &bqr_tiling_split   ? "split"
         : tiling == &bqr_tiling_modular ? "modular"
                                         : "native";
}

static void bench(bqr_gemm_engine *engine, const bqr_device *device, bqr_gemm g) {
  g.lda = g.adjoint_a ? g.k : g.m;
  g.ldb = g.k;
  g.ldc = g.m;
  g.alpha = 1;
  void *a = random_array(g.type, g.m * g.k, 1), *b = random_array(g.type, g.k * g.n, 2),
       *c = random_array(g.type, g.m * g.n, 3);
  g.a = a;
  g.b = b;
  g.c = c;
  const double ms = median_ms(engine, device, &g);
  const double flops = (is_complex(g.type) ? 8.0 : 2.0) * (double)g.m * (double)g.n * (double)g.k;
  printf("gemm,%s,%c,%s,%d,%d,%d,%s,%.5f,%.2f,%.3e\n", modes[g.mode], letters[g.type],
         g.adjoint_a ? "h" : "n", (int)g.m, (int)g.n, (int)g.k, arithmetic(device, &g), ms, flops / ms * 1e-9,
         largest_error(&g));
  fflush(stdout);
  CHECK(cudaFree(a));
  CHECK(cudaFree(b));
  CHECK(cudaFree(c));
}

/* Squares, and what blocked factorizations multiply: op(a) = V^H, then V. */
static void bench_all(bqr_gemm_engine *engine, const bqr_device *device) {
  static const int sizes[][4] = {{2048, 2048, 2048, 0},    {4096, 4096, 4096, 0}, {8192, 8192, 8192, 0},
                                 {16384, 16384, 16384, 0}, {512, 8192, 16384, 1}, {16384, 8192, 512, 0},
                                 {1024, 8192, 16384, 1},   {16384, 8192, 1024, 0}};
  for (int i = 0; i < 8; i++)
    for (int type = 0; type < 4; type++)
      for (int mode = 1; mode < 4; mode++) {
        const bqr_gemm g = {.type = (batchqr_type)type,
                            .mode = (batchqr_compute)mode,
                            .adjoint_a = sizes[i][3],
                            .m = sizes[i][0],
                            .n = sizes[i][1],
                            .k = sizes[i][2]};
        const bool large = sizes[i][0] > 8192 && sizes[i][2] > 8192;
        if (!(large && is_complex(g.type)) && !(mode == BATCHQR_COMPUTE_HALF && is_double(g.type)))
          bench(engine, device, g);
      }
}

static void bench_named(bqr_gemm_engine *engine, const bqr_device *device, char **words) {
  int mode = 0;
  while (mode < 4 && strcmp(words[0], modes[mode]) != 0) mode++;
  const char *type = strchr(letters, *words[1]);
  check(mode < 4 && *words[1] && type, "reading the arguments");
  bench(engine, device,
        (bqr_gemm){.type = (batchqr_type)(type - letters),
                   .mode = (batchqr_compute)mode,
                   .adjoint_a = *words[2] == 'h',
                   .m = atoi(words[3]),
                   .n = atoi(words[4]),
                   .k = atoi(words[5])});
}

int main(int argc, char **argv) {
  bqr_device device;
  bqr_error reason;
  bqr_gemm_engine *engine;
  CHECK(bqr_device_cuda(&device, &reason));
  CHECK(bqr_gemm_engine_new(&device, &engine));
  printf("routine,compute,type,op,m,n,k,arithmetic,ms_median,tflops,error\n");
  if (argc == 1) bench_all(engine, &device);
  for (int i = 1; i + 6 <= argc; i += 6) bench_named(engine, &device, argv + i);
  bqr_gemm_engine_free(engine);
}
