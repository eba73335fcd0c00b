/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_TARGET_CUH
#define BQR_KERNELS_COMMON_PTX_TARGET_CUH

#include <cstdint>

namespace bqr {

constexpr bool has_clusters = true;

inline uint32_t shared_address(const void *p) { return static_cast<uint32_t>(__cvta_generic_to_shared(p)); }
inline void *shared_pointer(uint32_t address) { return __cvta_shared_to_generic(address); }

} // namespace bqr

#endif
