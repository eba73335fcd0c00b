/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_OPAQUE_CUH
#define BQR_KERNELS_COMMON_PTX_OPAQUE_CUH

#include <cstdint>

namespace bqr {

template <class T> void opaque(T *&) {}
inline void opaque(int &, int &, int &) {}
template <class T> void opaque_here(T &) {}
#define BQR_OPAQUE_HERE(a, b) ((void)0)

} // namespace bqr

#endif
