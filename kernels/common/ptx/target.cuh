/* SPDX-License-Identifier: BSD-3-Clause */
/* What the architecture that is compiled for has, and addresses as its instructions take them. */
#ifndef BQR_KERNELS_COMMON_PTX_TARGET_CUH
#define BQR_KERNELS_COMMON_PTX_TARGET_CUH

#include <cstdint>

namespace bqr {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
constexpr bool has_clusters = true;
#else
constexpr bool has_clusters = false;
#endif

__device__ __forceinline__ uint32_t shared_address(const void *p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}
__device__ __forceinline__ void *shared_pointer(uint32_t address) {
  return __cvta_shared_to_generic(address);
}

} // namespace bqr

#endif
