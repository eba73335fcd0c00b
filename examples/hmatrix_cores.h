/* SPDX-License-Identifier: BSD-3-Clause */
/* The cores of low-rank blocks on the GPU: R_U R_V^T, its singular values, and what is kept of them. */
#ifndef HMATRIX_CORES_H
#define HMATRIX_CORES_H

#include <stdint.h>

#ifdef __CUDACC__
#define HM_BOTH __host__ __device__
#else
#define HM_BOTH
#endif

/* A block U V^T of rank k, U of m x k, V of n x k. */
typedef struct hm_core {
  int m, n, k;
  int64_t block;      /* its number in the chunk */
  int64_t u_at, v_at; /* where the factored U and V are */
  int64_t core_at;    /* where its hm_core_size(k) elements are */
  int64_t column_at;  /* where its k columns' scales and places are */
} hm_core;

/* Addresses in the GPU's memory. */
typedef struct hm_cores {
  const hm_core *cores;
  const double *factors;
  double *vectors; /* of each core: X = R_U R_V^T Z / x, with orthogonal columns, then Z */
  double *scales;  /* of each column: two factors, by which X's and Z's become W sqrt(s) and Z sqrt(s) */
  int *places;     /* of each column: how many singular values come before its own */
  int *kept;       /* of each block: the rank after truncation; < 0: the iteration did not converge */
} hm_cores;

/* An odd leading dimension, so that lanes that work on different columns use different banks. */
static inline HM_BOTH int64_t hm_core_size(int64_t k) { return 2 * k * (k | 1); }

#ifdef __cplusplus
extern "C" {
#endif
/* Forms and diagonalizes the cores begin .. end - 1, of at most `k` columns; keeps the smallest ranks whose
 * error is at most eps in the relative Frobenius norm. Both return a cudaError_t. */
int hm_device_truncate(const hm_cores *c, int64_t begin, int64_t end, int k, double eps);
/* Writes W sqrt(s), with zeros below, to `results` + result_at[2 block], and Z sqrt(s) to that of
 * 2 block + 1. */
int hm_device_put(const hm_cores *c, int64_t count, const int64_t *result_at, double *results);
#ifdef __cplusplus
}
#endif

#endif
