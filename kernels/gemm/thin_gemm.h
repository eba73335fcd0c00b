/* SPDX-License-Identifier: BSD-3-Clause */
/* MULTIPLY, see family.h, of single precision where r has few columns: a is read as it lies in memory and
 * split into FP16 numbers on its way to the matrix units. bqr_tiling_split, see gemm.h, writes a split and
 * reads that, which takes as long as the product. All of a is scaled alike: errors are small next to |r| and
 * a's largest entry. For compute capability 9.0. */
#ifndef BQR_KERNELS_GEMM_THIN_GEMM_H
#define BQR_KERNELS_GEMM_THIN_GEMM_H

#include "family.h"

#ifdef __cplusplus
extern "C" {
#endif

/* c := op(a) (scale r); op(a) is m x k, r k x n, c m x n. */
typedef struct bqr_thin_gemm {
  bool adjoint; /* op(a) = a^T */
  int64_t m, n, k;
  const void *a, *r; /* columns of a are aligned to 16 bytes */
  void *c;
  int64_t lda, ldr, ldc;
  const double *scales; /* on the device: what SKETCH has noted of a, the scale and its largest magnitude */
  void *workspace;      /* bqr_thin_gemm_workspace(), aligned to 256 */
} bqr_thin_gemm;

/* Of sizes alone; pure. */
size_t bqr_thin_gemm_workspace(const bqr_thin_gemm *product, const bqr_device *device);
/* In how many steps of 32 of k a multiprocessor goes over its parts of the product. */
int64_t bqr_thin_gemm_steps(const bqr_thin_gemm *product, const bqr_device *device);
/* Loads the kernels; once for each plan. */
batchqr_status bqr_thin_gemm_prepare(void);
batchqr_status bqr_thin_gemm_enqueue(const bqr_thin_gemm *product, const bqr_device *device,
                                     batchqr_stream stream);

#ifdef __cplusplus
}
#endif
#endif
