/* SPDX-License-Identifier: BSD-3-Clause */
/* Eigenvalues and eigenvectors of large real symmetric tridiagonal matrices by Cuppen's divide and conquer
 * over the whole GPU, as LAPACK's xSTEDC: a tree of merges, all merges of a level in common launches. How
 * many columns each merge deflates is decided on the device. C interface for src/drivers. Nothing here
 * allocates or synchronises, and all of it can be captured in a graph. From compute capability 9.0 on.
 *
 * T is n x n, n >= 1, d its diagonal and e, n - 1 numbers, what is beside it, of type BATCHQR_S or BATCHQR_D,
 * finite, of magnitudes between 2^-10 and 2^40 or so at the largest; what is below 2^-22 of the largest (in
 * double precision, 2^-50) may count as zero. d and e stay as they are. All arrays are on the device and
 * overlap nowhere. The same bits come out each time. */
#ifndef BQR_KERNELS_TRIDIAGONAL_TRIDIAGONAL_H
#define BQR_KERNELS_TRIDIAGONAL_TRIDIAGONAL_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of `memory`, which is aligned to 256. With vectors one n x n matrix, 2048 columns of n more, and a
 * hundred numbers for each row; without, some 300 numbers for each row. */
size_t bqr_tridiagonal_bytes(batchqr_type type, int n, bool vectors);

/* Loads the kernels; once for each plan. */
batchqr_status bqr_tridiagonal_prepare(batchqr_type type);

/* w: the eigenvalues, ascending. Those of bqr_tridiagonal_vectors() are the same but for rounding. */
batchqr_status bqr_tridiagonal_values(batchqr_type type, int n, const void *d, const void *e, void *w,
                                      void *memory, batchqr_stream stream);

/* And q, n x n: the eigenvectors as columns, T q = q diag(w). Of these, columns first ... end - 1 are wanted,
 * the others' contents are undefined. Faster where q is aligned to 16 bytes and ldq a multiple of that. */
batchqr_status bqr_tridiagonal_vectors(batchqr_type type, int n, const void *d, const void *e, void *w,
                                       void *q, int64_t ldq, int first, int end, void *memory,
                                       batchqr_stream stream);

/* The same of `count` matrices of one order, n * count <= 2^22, each of which gets the same bits as alone. d,
 * e, w: n numbers for each, the last ones of e without meaning. stride: from one matrix of vectors to the
 * next. q may be NULL: vectors are not wanted. */
size_t bqr_tridiagonals_bytes(batchqr_type type, int n, int count, bool vectors);
batchqr_status bqr_tridiagonals(batchqr_type type, int n, int count, const void *d, const void *e, void *w,
                                void *q, int64_t ldq, int64_t stride, void *memory, batchqr_stream stream);
/* Kernels that it enqueues. */
int bqr_tridiagonals_launches(int n, bool vectors);

#ifdef __cplusplus
}
#endif
#endif
