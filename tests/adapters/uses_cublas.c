/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that calls cuBLAS: geqrfBatched and gelsBatched. */
#include "program.h"
#include <stdio.h>
#include <string.h>
#include <threads.h>
#if HAVE_CUDA
#include <cublas_v2.h>
#else
#include "fake_cublas.h"
#endif

static cublasHandle_t handle;

typedef struct problem {
  matrices a, original, tau, c, right;
} problem;

static void restore(void *what) {
  problem *p = what;
  copy_matrices(p->a, p->original);
  if (p->c.data) copy_matrices(p->c, p->right);
}

static void geqrf(void *what) {
  problem *p = what;
  int info = 77;
  int status = BY_TYPE(p->a.letter, cublasSgeqrfBatched, cublasDgeqrfBatched, cublasCgeqrfBatched,
                       cublasZgeqrfBatched, handle, p->a.rows, p->a.columns, (void *)p->a.addresses, p->a.ld,
                       (void *)p->tau.addresses, &info, p->a.count);
  if (status || info) judge("geqrf's status", p->a, 1e9);
}

static int *gels_info;

static void gels(void *what) {
  problem *p = what;
  int info = 77;
  int status =
      BY_TYPE(p->a.letter, cublasSgelsBatched, cublasDgelsBatched, cublasCgelsBatched, cublasZgelsBatched,
              handle, CUBLAS_OP_N, p->a.rows, p->a.columns, p->c.columns, (void *)p->a.addresses, p->a.ld,
              (void *)p->c.addresses, p->c.ld, &info, gels_info, p->a.count);
  if (status || info) judge("gels's status", p->a, 1e9);
}

static problem new_problem(char letter, int m, int n, int nrhs, int count) {
  problem p = {.a = new_matrices(letter, m, n, count), .original = new_matrices(letter, m, n, count)};
  p.tau = new_vectors(letter, m < n ? m : n, count);
  fill_matrices(p.original);
  if (nrhs > 0) {
    p.c = new_matrices(letter, m, nrhs, count);
    p.right = new_matrices(letter, m, nrhs, count);
    fill_matrices(p.right);
  }
  return p;
}

static void check_r(const char *call, problem p) {
  const int m = p.a.rows, n = p.a.columns;
  for (int k = 0; k < p.a.count; k++) {
    const dense r = upper_triangle(p.a, k, m < n ? m : n, n), a = member(p.original, k, m, n);
    judge(call, p.a, not_the_factor(&r, &a, p.a.letter));
  }
}

static void test_geqrf(char letter, int m, int n) {
  problem p = new_problem(letter, m, n, 0, 9);
  restore(&p);
  geqrf(&p);
  finish();
  check_r("geqrf", p);
}

/* A^H (b - A x) = 0; and R. */
static void test_gels(char letter, int m, int n) {
  problem p = new_problem(letter, m, n, 2, 9);
  restore(&p);
  gels(&p);
  finish();
  check_r("R of gels", p);
  for (int k = 0; k < p.a.count; k++) {
    if (gels_info[k]) judge("info of gels", p.a, 1e9);
    const dense a = member(p.original, k, m, n), a_h = adjoint(&a), x = member(p.c, k, n, 2);
    const dense b = member(p.right, k, m, 2), ax = product(&a, &x);
    const dense left = product(&a_h, &ax), right = product(&a_h, &b);
    judge("gels", p.a, difference(&left, &right, letter) / 10);
  }
}

static int in_a_thread(void *letter) {
  for (int n = 3; n < 9; n++) test_geqrf(*(const char *)letter, 11, n);
  return 0;
}

/* Threads share the handle, as cuBLAS allows. */
static void test_threads(void) {
  thrd_t threads[4];
  for (int t = 0; t < 4; t++)
    if (thrd_create(&threads[t], in_a_thread, &"SDCZ"[t]) != thrd_success)
      judge("threads", (matrices){0}, 1e9);
  for (int t = 0; t < 4; t++) thrd_join(threads[t], NULL);
}

static void time_all(void) {
  static const int sizes[][3] = {
      {8, 8, 100000}, {32, 32, 10000}, {64, 64, 1000}, {128, 128, 1000}, {256, 32, 1000}};
  for (int i = 0; i < 5; i++)
    for (int t = 0; t < 2; t++) {
      problem p = new_problem("SD"[t], sizes[i][0], sizes[i][1], 1, sizes[i][2]);
      take_time("geqrfBatched", p.a, restore, geqrf, &p);
      take_time("gelsBatched", p.a, restore, gels, &p);
    }
}

int main(int argc, char **argv) {
  if (cublasCreate(&handle)) return puts("no handle"), 2;
  gels_info = shared_memory(100000 * sizeof(int));
  if (argc > 1 && !strcmp(argv[1], "--time")) return time_all(), verdict();
  for (int t = 0; t < 4; t++) {
    test_geqrf("SDCZ"[t], 13, 7);
    test_geqrf("SDCZ"[t], 7, 13);
    test_geqrf("SDCZ"[t], 40, 33);
    test_gels("SDCZ"[t], 13, 7);
    test_gels("SDCZ"[t], 40, 33);
  }
  test_threads();
  cublasDestroy(handle);
  return verdict();
}
