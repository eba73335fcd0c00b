/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that calls cuSOLVER's batches: syevj and heevj, Xsyev, gesvdj. */
#include "program.h"
#include <stdio.h>
#include <string.h>
#if HAVE_CUDA
#include <cusolverDn.h>
#else
#include "fake_cusolver.h"
#endif

static cusolverDnHandle_t handle;
static syevjInfo_t syevj_info;
static gesvdjInfo_t gesvdj_info;
static cusolverDnParams_t params;

typedef struct problem {
  matrices a, original, s, u, v, work;
  cusolverEigMode_t jobz;
  cublasFillMode_t uplo;
  int *info;
  size_t device_bytes, host_bytes;
  void *device, *host;
} problem;

static void restore(void *what) {
  problem *p = what;
  copy_matrices(p->a, p->original);
}

static void expect_success(const char *call, const problem *p, int status) {
  if (status) judge(call, p->a, 1e9);
}

static problem new_problem(char letter, int m, int n, int count) {
  problem p = {.a = new_matrices(letter, m, n, count), .original = new_matrices(letter, m, n, count)};
  p.s = new_vectors(real_letter(letter), m < n ? m : n, count);
  p.u = new_matrices(letter, m, m, count);
  p.v = new_matrices(letter, n, n, count);
  p.info = shared_memory(count * sizeof(int));
  p.jobz = CUSOLVER_EIG_MODE_VECTOR;
  p.uplo = CUBLAS_FILL_MODE_UPPER;
  fill_matrices(p.original);
  return p;
}

/* --- eigenvalues */

static void syevj(void *what) {
  problem *p = what;
  const matrices *a = &p->a;
  expect_success("syevj's status", p,
                 BY_TYPE(a->letter, cusolverDnSsyevjBatched, cusolverDnDsyevjBatched, cusolverDnCheevjBatched,
                         cusolverDnZheevjBatched, handle, p->jobz, p->uplo, a->columns, (void *)a->data,
                         a->ld, (void *)p->s.data, (void *)p->work.data, p->work.rows, p->info, syevj_info,
                         a->count));
}

static cudaDataType cuda_type(char letter) {
  return letter == 'S' ? CUDA_R_32F : letter == 'D' ? CUDA_R_64F : letter == 'C' ? CUDA_C_32F : CUDA_C_64F;
}

static void xsyev(void *what) {
  problem *p = what;
  const matrices *a = &p->a;
  const cudaDataType type = cuda_type(a->letter);
  expect_success("Xsyev's status", p,
                 cusolverDnXsyevBatched(handle, params, p->jobz, p->uplo, a->columns, type, a->data, a->ld,
                                        cuda_type(p->s.letter), p->s.data, type, p->device, p->device_bytes,
                                        p->host, p->host_bytes, p->info, a->count));
}

/* The triangle that counts is the upper one; below it are other numbers. */
static problem new_symmetric(char letter, int n, int count) {
  problem p = new_problem(letter, n, n, count);
  for (int k = 0; k < count; k++)
    for (int i = 0; i < n; i++) set_entry(p.original, k, i, i, creal(entry(p.original, k, i, i)));
  const matrices *a = &p.a;
  int lwork;
  expect_success("size of syevj", &p,
                 BY_TYPE(letter, cusolverDnSsyevjBatched_bufferSize, cusolverDnDsyevjBatched_bufferSize,
                         cusolverDnCheevjBatched_bufferSize, cusolverDnZheevjBatched_bufferSize, handle,
                         p.jobz, p.uplo, n, (void *)a->data, a->ld, (void *)p.s.data, &lwork, syevj_info,
                         count));
  p.work = new_vectors(letter, lwork, 1);
  const cudaDataType type = cuda_type(letter);
  expect_success("size of Xsyev", &p,
                 cusolverDnXsyevBatched_bufferSize(handle, params, p.jobz, p.uplo, n, type, a->data, a->ld,
                                                   cuda_type(p.s.letter), p.s.data, type, &p.device_bytes,
                                                   &p.host_bytes, count));
  p.device = shared_memory(p.device_bytes);
  p.host = shared_memory(p.host_bytes);
  return p;
}

/* A V = V W, V orthonormal, W ascending. */
static void check_eigen(const char *call, problem p) {
  const int n = p.a.columns;
  for (int k = 0; k < p.a.count; k++) {
    dense a = upper_triangle(p.original, k, n, n);
    for (int j = 0; j < n; j++)
      for (int i = 0; i < j; i++) a.x[j + i * n] = conj(a.x[i + j * n]);
    const dense v = member(p.a, k, n, n), av = product(&a, &v);
    dense vw = v;
    for (int j = 0; j < n; j++)
      for (int i = 0; i < n; i++) vw.x[i + j * n] *= entry(p.s, k, j, 0);
    for (int j = 1; j < n; j++)
      if (creal(entry(p.s, k, j, 0)) < creal(entry(p.s, k, j - 1, 0)))
        judge("order of eigenvalues", p.a, 1e9);
    if (p.info[k]) judge("info of eigenvalues", p.a, 1e9);
    judge(call, p.a, difference(&av, &vw, p.a.letter));
    judge(call, p.a, not_orthonormal(&v, p.a.letter));
  }
}

static void test_eigen(char letter, int n) {
  problem p = new_symmetric(letter, n, 5);
  restore(&p);
  syevj(&p);
  finish();
  check_eigen("syevj", p);
  restore(&p);
  xsyev(&p);
  finish();
  check_eigen("Xsyev", p);

  const matrices with_vectors = p.s;
  p.s = new_vectors(p.s.letter, n, p.a.count);
  p.jobz = CUSOLVER_EIG_MODE_NOVECTOR;
  restore(&p);
  syevj(&p);
  finish();
  const dense values = member(p.s, 3, n, 1), expected = member(with_vectors, 3, n, 1);
  judge("eigenvalues alone", p.a, difference(&values, &expected, letter));
}

/* --- singular values */

static void gesvdj(void *what) {
  problem *p = what;
  const matrices *a = &p->a;
  expect_success("gesvdj's status", p,
                 BY_TYPE(a->letter, cusolverDnSgesvdjBatched, cusolverDnDgesvdjBatched,
                         cusolverDnCgesvdjBatched, cusolverDnZgesvdjBatched, handle, p->jobz, a->rows,
                         a->columns, (void *)a->data, a->ld, (void *)p->s.data, (void *)p->u.data, p->u.ld,
                         (void *)p->v.data, p->v.ld, (void *)p->work.data, p->work.rows, p->info, gesvdj_info,
                         a->count));
}

static problem new_gesvdj(char letter, int m, int n, int count) {
  problem p = new_problem(letter, m, n, count);
  int lwork;
  expect_success("size of gesvdj", &p,
                 BY_TYPE(letter, cusolverDnSgesvdjBatched_bufferSize, cusolverDnDgesvdjBatched_bufferSize,
                         cusolverDnCgesvdjBatched_bufferSize, cusolverDnZgesvdjBatched_bufferSize, handle,
                         p.jobz, m, n, (void *)p.a.data, p.a.ld, (void *)p.s.data, (void *)p.u.data, p.u.ld,
                         (void *)p.v.data, p.v.ld, &lwork, gesvdj_info, count));
  p.work = new_vectors(letter, lwork, 1);
  return p;
}

/* A V = U S; U and V square and orthonormal. */
static void test_gesvdj(char letter, int m, int n) {
  problem p = new_gesvdj(letter, m, n, 5);
  restore(&p);
  gesvdj(&p);
  finish();
  for (int k = 0; k < p.a.count; k++) {
    const dense a = member(p.original, k, m, n), u = member(p.u, k, m, m), v = member(p.v, k, n, n);
    const dense av = product(&a, &v);
    dense us = {.rows = m, .columns = n};
    for (int j = 0; j < n && j < m; j++)
      for (int i = 0; i < m; i++) us.x[i + j * m] = u.x[i + j * m] * entry(p.s, k, j, 0);
    if (p.info[k]) judge("info of gesvdj", p.a, 1e9);
    judge("gesvdj", p.a, difference(&av, &us, letter));
    judge("U of gesvdj", p.a, not_orthonormal(&u, letter));
    judge("V of gesvdj", p.a, not_orthonormal(&v, letter));
  }
}

static void time_all(void) {
  static const int orders[][2] = {{8, 1000}, {16, 1000}, {32, 1000}, {64, 1000}, {128, 200}};
  for (int i = 0; i < 5; i++)
    for (int t = 0; t < 2; t++) {
      const int n = orders[i][0], count = orders[i][1];
      problem p = new_symmetric("SD"[t], n, count);
      take_time("XsyevBatched", p.a, restore, xsyev, &p);
      take_time("syevjBatched", p.a, restore, syevj, &p);
      if (n > 32) continue; /* cuSOLVER's limit */
      problem q = new_gesvdj("SD"[t], n, n, count);
      take_time("gesvdjBatched", q.a, restore, gesvdj, &q);
    }
}

int main(int argc, char **argv) {
  if (cusolverDnCreate(&handle)) return puts("no handle"), 2;
  cusolverDnCreateSyevjInfo(&syevj_info);
  cusolverDnCreateGesvdjInfo(&gesvdj_info);
  cusolverDnCreateParams(&params);
  if (argc > 1 && !strcmp(argv[1], "--time")) return time_all(), verdict();
  for (int t = 0; t < 4; t++) {
    test_eigen("SDCZ"[t], 7);
    test_eigen("SDCZ"[t], 30);
    test_gesvdj("SDCZ"[t], 12, 12);
    test_gesvdj("SDCZ"[t], 23, 9);
    test_gesvdj("SDCZ"[t], 9, 23);
  }
  cusolverDnDestroy(handle);
  return verdict();
}
