/* SPDX-License-Identifier: BSD-3-Clause */
/* What the reduction of a large Hermitian matrix to a band needs beside products and panels, and what comes
 * before and after an eigenvalue problem of that size. C interface of this folder. Nothing here allocates or
 * synchronises. */
#ifndef BQR_KERNELS_SBR_H
#define BQR_KERNELS_SBR_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* On the device, of a member that is worked on: written by bqr_sbr_load(). */
typedef struct bqr_sbr_state {
  unsigned magnitude; /* of the largest entry of the triangle */
  int exponent;       /* the matrix has been multiplied by 2^exponent */
  int info;           /* 0, or BATCHQR_INFO_NONFINITE */
} bqr_sbr_state;

/* work := a Hermitian matrix of order args->n, both triangles, which is the entry's triangle `lower` or upper
 * times a power of two that brings the largest element into [1, 2), in single precision to 2^10 times that.
 * What is below 2^-140 (2^-40) of the largest element becomes 0. All becomes 0 where the triangle holds a NaN
 * or an Inf. */
batchqr_status bqr_sbr_load(batchqr_type type, const bqr_args *args, int64_t entry, bool lower, void *work,
                            int64_t ld, bqr_sbr_state *state, batchqr_stream stream);

/* The upper triangle of the n x n matrix := the adjoint of the lower one. */
batchqr_status bqr_sbr_mirror(batchqr_type type, int n, void *a, int64_t ld, batchqr_stream stream);

/* A panel of `width` reflectors, BQR_SBR_WIDEST at most. With W = Y - V S / 2 and
 * I - V T V^H the panel's reflectors, Y = A V T and S = T^H V^H Y make A - V W^H - W V^H the matrix that is
 * reduced: writes V and W side by side to x, rows x 2 width, and W^H above V^H to z, 2 width x rows. */
enum { BQR_SBR_WIDEST = 64 };
typedef struct bqr_sbr_panel {
  int rows, width;
  const void *v, *y, *s; /* s: width x width */
  void *x, *z;
  int64_t ldv, ldy, lds, ldx, ldz;
} bqr_sbr_panel;
batchqr_status bqr_sbr_join(batchqr_type type, const bqr_sbr_panel *panel, batchqr_stream stream);

/* y := a p in single precision, on FP16 units: rows x cols, a symmetric, both triangles, columns aligned to
 * 16 bytes, and p the V T of such a panel, so that no entry is above 2. The norm of a is at most 2^11 times
 * the order of a matrix that it is a part of, `order`. memory: aligned to 256. Only for compute
 * capability 9.0. */
size_t bqr_sbr_multiply_bytes(int rows, int cols);
batchqr_status bqr_sbr_multiply(int order, int rows, int cols, const void *a, int64_t lda, const void *p,
                                int64_t ldp, void *y, int64_t ldy, void *memory, batchqr_stream stream);
batchqr_status bqr_sbr_multiply_prepare(void);

/* The entry's w := `count` ascending real numbers, divided by what load() multiplied by, or NaN; its info;
 * and its rank, if that is wanted: count, or 0. count: 0 to args->n. */
batchqr_status bqr_sbr_values(batchqr_type type, const bqr_args *args, int64_t entry, int count,
                              const void *w, const bqr_sbr_state *state, batchqr_stream stream);
/* z := q, real, n x cols; z is of the type. */
batchqr_status bqr_sbr_widen(batchqr_type type, int n, int cols, const void *q, int64_t ldq, void *z,
                             int64_t ldz, batchqr_stream stream);
/* The entry's V := z, n x count, count at least 1, each column multiplied by a number of magnitude 1 that
 * makes the first of its largest entries real and positive. z may be V itself. */
batchqr_status bqr_sbr_vectors(batchqr_type type, const bqr_args *args, int64_t entry, int count,
                               const void *z, int64_t ldz, batchqr_stream stream);

/* Kernels of load(); the others are one each. */
enum { BQR_SBR_LOAD_LAUNCHES = 3 };

/* Loads them; once for each plan. */
batchqr_status bqr_sbr_prepare(batchqr_type type);

#ifdef __cplusplus
}
#endif
#endif
