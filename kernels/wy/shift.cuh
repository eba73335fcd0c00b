/* SPDX-License-Identifier: BSD-3-Clause */
/* Where the members of a launch that serves several alike have their operands. */
#ifndef BQR_KERNELS_WY_SHIFT_CUH
#define BQR_KERNELS_WY_SHIFT_CUH

#include "wy.h"

namespace bqr {

/* An address `bytes` further on for each member before this one. */
template <class T> __device__ __forceinline__ T *shifted(T *x, unsigned member, int64_t bytes) {
  return reinterpret_cast<T *>(reinterpret_cast<uintptr_t>(x) + member * bytes);
}

inline unsigned members_of(const bqr_wy_many &many) {
  return static_cast<unsigned>(many.count > 1 ? many.count : 1);
}

} // namespace bqr

#endif
