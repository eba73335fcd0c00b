/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_SPECIAL_REGISTERS_CUH
#define BQR_KERNELS_COMMON_PTX_SPECIAL_REGISTERS_CUH

namespace bqr {

inline int multiprocessors() {
  int count;
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0);
  return count;
}

} // namespace bqr

#endif
