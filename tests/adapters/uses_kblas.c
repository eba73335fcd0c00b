/* SPDX-License-Identifier: BSD-3-Clause */
/* A program that calls KBLAS's batched QR. */
#include "fake_kblas.h"
#include "program.h"
#include <stdbool.h>
#include <stdio.h>

static kblasHandle_t handle;
enum { COUNT = 7 };

typedef struct problem {
  matrices a, original, tau;
} problem;

static int least(int m, int n) { return m < n ? m : n; }

static problem new_problem(char letter, int m, int n) {
  problem p = {.a = new_matrices(letter, m, n, COUNT), .original = new_matrices(letter, m, n, COUNT)};
  p.tau = new_vectors(letter, least(m, n), COUNT);
  fill_matrices(p.original);
  copy_matrices(p.a, p.original);
  return p;
}

/* With addresses or strides. */
#define CALL(routine, p, by_addresses)                                                                       \
  ((p).a.letter == 'S' ? CALL_TYPE(S, routine, p, by_addresses) : CALL_TYPE(D, routine, p, by_addresses))
#define CALL_TYPE(X, routine, p, by_addresses)                                                               \
  ((by_addresses) ? kblas##X##routine##_batch(handle, (p).a.rows, (p).a.columns, (void *)(p).a.addresses,    \
                                              (p).a.ld, (void *)(p).tau.addresses, COUNT)                    \
                  : kblas##X##routine##_batch_strided(handle, (p).a.rows, (p).a.columns, (void *)(p).a.data, \
                                                      (p).a.ld, (p).a.ld * (p).a.columns,                    \
                                                      (void *)(p).tau.data, (p).tau.ld, COUNT))

static void check_r(const char *call, problem p) {
  const int m = p.a.rows, n = p.a.columns;
  for (int k = 0; k < COUNT; k++) {
    const dense r = upper_triangle(p.a, k, least(m, n), n), a = member(p.original, k, m, n);
    judge(call, p.a, not_the_factor(&r, &a, p.a.letter));
  }
}

/* The factors; then Q's min(m,n) columns in A's first ones, while the others stay. */
static void test_qr(char letter, int m, int n, bool by_addresses) {
  problem p = new_problem(letter, m, n), factors = new_problem(letter, m, n);
  if (CALL(geqrf, p, by_addresses) != KBLAS_Success) judge("geqrf's status", p.a, 1e9);
  finish();
  check_r("geqrf", p);
  copy_matrices(factors.a, p.a);
  if (CALL(orgqr, p, by_addresses) != KBLAS_Success) judge("orgqr's status", p.a, 1e9);
  finish();
  for (int k = 0; k < COUNT; k++) {
    const dense q = member(p.a, k, m, least(m, n)), r = upper_triangle(factors.a, k, least(m, n), n);
    const dense qr = product(&q, &r), a = member(p.original, k, m, n);
    judge("QR", p.a, difference(&qr, &a, letter));
    judge("Q", p.a, not_orthonormal(&q, letter));
    for (int j = m; j < n; j++)
      if (entry(p.a, k, 0, j) != entry(factors.a, k, 0, j)) judge("columns behind Q", p.a, 1e9);
  }
}

static void test_tsqrf(char letter, int m, int n, bool by_addresses) {
  problem p = new_problem(letter, m, n);
  if (CALL(tsqrf, p, by_addresses) != KBLAS_Success) judge("tsqrf's status", p.a, 1e9);
  finish();
  check_r("tsqrf", p);
}

/* Of rank 3: R's first three rows are the factor of A P. */
static void test_geqp2(char letter, int m, int n, bool by_addresses) {
  problem p = new_problem(letter, m, n);
  int *piv = shared_memory(COUNT * n * sizeof(int)), *ranks = shared_memory(COUNT * sizeof(int));
  int **addresses = shared_memory(COUNT * sizeof *addresses);
  for (int k = 0; k < COUNT; k++) {
    addresses[k] = piv + k * n;
    for (int j = 3; j < n; j++)
      for (int i = 0; i < m; i++)
        set_entry(p.original, k, i, j,
                  entry(p.original, k, i, j % 3) + 0.5 * entry(p.original, k, i, (j + 1) % 3));
  }
  copy_matrices(p.a, p.original);
  const matrices a = p.a, tau = p.tau;
  int status;
  if (letter == 'S')
    status = by_addresses ? kblasSgeqp2_batch(handle, m, n, (void *)a.addresses, a.ld, (void *)tau.addresses,
                                              addresses, ranks, 1e-3f, COUNT)
                          : kblasSgeqp2_batch_strided(handle, m, n, (void *)a.data, a.ld, a.ld * n,
                                                      (void *)tau.data, tau.ld, piv, n, ranks, 1e-3f, COUNT);
  else
    status = by_addresses ? kblasDgeqp2_batch(handle, m, n, (void *)a.addresses, a.ld, (void *)tau.addresses,
                                              addresses, ranks, 1e-10, COUNT)
                          : kblasDgeqp2_batch_strided(handle, m, n, (void *)a.data, a.ld, a.ld * n,
                                                      (void *)tau.data, tau.ld, piv, n, ranks, 1e-10, COUNT);
  finish();
  if (status != KBLAS_Success) judge("geqp2's status", a, 1e9);
  for (int k = 0; k < COUNT; k++) {
    const dense r = upper_triangle(a, k, 3, n), unpivoted = member(p.original, k, m, n);
    dense pivoted = unpivoted;
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) pivoted.x[i + j * m] = unpivoted.x[i + piv[k * n + j] * m];
    if (ranks[k] != 3) judge("geqp2's rank", a, 1e9);
    judge("geqp2", a, not_the_factor(&r, &pivoted, letter));
  }
}

int main(void) {
  if (kblasCreate(&handle) != KBLAS_Success) return puts("no handle"), 2;
  for (int t = 0; t < 4; t++) {
    test_qr("SD"[t % 2], 21, 8, t / 2);
    test_qr("SD"[t % 2], 8, 21, t / 2);
    test_tsqrf("SD"[t % 2], 60, 5, t / 2);
    test_geqp2("SD"[t % 2], 17, 9, t / 2);
  }
  kblasDestroy(&handle);
  return verdict();
}
