/* SPDX-License-Identifier: BSD-3-Clause */
/* Panels of wide blocks of reflectors whose V lies in A. */
#ifndef BQR_KERNELS_WY_EXCHANGE_TRIANGLE_CUH
#define BQR_KERNELS_WY_EXCHANGE_TRIANGLE_CUH

#include "wy.h"
#include "common/simt/block.cuh"

namespace bqr {

/* By a grid: what is on and above the diagonal in a panel's columns of A goes to r; ones and zeros are put in
 * its place. */
template <class T> __device__ __forceinline__ void exchange_triangle(const bqr_wy_panel &p) {
  const int rows = p.at + p.width, step = static_cast<int>(gridDim.x) * num_threads();
  T *a = static_cast<T *>(p.a) + p.at * p.lda, *r = static_cast<T *>(p.r) + p.at * p.ldr;
  for (int e = static_cast<int>(blockIdx.x) * num_threads() + thread_id(); e < rows * p.width; e += step) {
    const int i = e % rows, j = e / rows;
    if (i > p.at + j) continue;
    r[i + j * p.ldr] = a[i + j * p.lda];
    a[i + j * p.lda] = i == p.at + j ? one<T>() : zero<T>();
  }
}

} // namespace bqr

#endif
