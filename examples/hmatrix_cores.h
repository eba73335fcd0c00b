/* SPDX-License-Identifier: BSD-3-Clause */
/* The cores of low-rank blocks on the GPU: R_U R_V^T, and what is kept of its singular values and vectors. */
#ifndef HMATRIX_CORES_H
#define HMATRIX_CORES_H

#include <stdint.h>

/* A block U V^T of rank k, U of m x k, V of n x k. */
typedef struct hm_core {
  int m, n, k;
  int64_t u_at, v_at; /* where the factored U and V are */
  int64_t core_at;    /* where its k x k elements are, */
  int64_t column_at;  /* and its k singular values */
} hm_core;

/* Addresses in the GPU's memory. */
typedef struct hm_cores {
  const hm_core *cores;
  int64_t count;
  const double *factors;
  double *left, *right; /* of each core: R_U R_V^T, then W; and Z */
  double *sigma;
  const int *info; /* of each: what its SVD said */
  int *kept;       /* the rank after truncation; < 0: there is no SVD */
} hm_cores;

#ifdef __cplusplus
extern "C" {
#endif
/* These return a cudaError_t. R_U R_V^T of each core. */
int hm_device_form(const hm_cores *c);
/* The smallest ranks whose error is at most eps in the relative Frobenius norm. */
int hm_device_keep(const hm_cores *c, double eps);
/* Writes W sqrt(s), with zeros below, to `results` + result_at[2 i], and Z sqrt(s) to that of 2 i + 1. */
int hm_device_put(const hm_cores *c, const int64_t *result_at, double *results);
#ifdef __cplusplus
}
#endif

#endif
