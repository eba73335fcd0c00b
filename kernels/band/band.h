/* SPDX-License-Identifier: BSD-3-Clause */
/* Symmetric and Hermitian band matrices to real tridiagonal form by bulge chasing, B = Q T Q^H, and products
 * by Q. (Second stage of two-stage tridiagonalization: B. Lang, A parallel algorithm for reducing symmetric
 * banded matrices to tridiagonal form, 1993; A. Haidar, H. Ltaief and J. Dongarra, Parallel reduction to
 * condensed forms for symmetric eigenvalue problems using aggregated fine-grained and memory-aware kernels,
 * 2011.) Nothing here allocates or synchronises. For compute capability 9.0 and later. */
#ifndef BQR_KERNELS_BAND_BAND_H
#define BQR_KERNELS_BAND_BAND_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Widths, the numbers of subdiagonals, are 32 and 64. */

/* Bytes of the memory that the three functions below share, aligned to 256. `vectors`: Q is wanted. */
size_t bqr_band_bytes(batchqr_type type, int n, int width, bool vectors);
/* Loads the kernels; once for each plan. */
batchqr_status bqr_band_prepare(batchqr_type type, int width);
/* Reads the diagonal, whose imaginary parts count as zero, and the `width` subdiagonals of the n x n matrix
 * at a, and nothing else of it. d: n, e: n - 1 elements of the real type. Entries should be near 1: sums of
 * squares neither overflow nor underflow, but entries near the range's ends do. The same bits come out each
 * time. */
batchqr_status bqr_band_reduce(batchqr_type type, int n, int width, const void *a, int64_t lda, void *memory,
                               void *d, void *e, bool vectors, batchqr_stream stream);
/* z := Q z, n x cols. memory: as bqr_band_reduce() left it; a part of it is scratch. In single precision
 * columns of z are to be at most 4 long, as eigenvectors are: halves overflow beyond. */
batchqr_status bqr_band_back(batchqr_type type, int n, int width, void *memory, int64_t cols, void *z,
                             int64_t ldz, batchqr_stream stream);

#ifdef __cplusplus
}
#endif
#endif
