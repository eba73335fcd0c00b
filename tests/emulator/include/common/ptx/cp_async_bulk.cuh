/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_CP_ASYNC_BULK_CUH
#define BQR_KERNELS_COMMON_PTX_CP_ASYNC_BULK_CUH

#include <cstring>

namespace bqr {

inline void bulk_fence() {}
inline void store_bulk(void *global, const void *shared, int bytes) {
  std::memcpy(global, shared, static_cast<size_t>(bytes));
}
inline void wait_for_bulk_stores() {}

} // namespace bqr

#endif
