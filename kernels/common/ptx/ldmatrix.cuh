/* SPDX-License-Identifier: BSD-3-Clause */
/* Tiles from shared memory to the registers of a warp. */
#ifndef BQR_KERNELS_COMMON_PTX_LDMATRIX_CUH
#define BQR_KERNELS_COMMON_PTX_LDMATRIX_CUH

#include "target.cuh"

namespace bqr {

/* Four tiles of 8 x 8, of whose rows the lanes have the addresses, 8 lanes for each: of lane (g, q), entries
 * (g, 2 q + s), or TURNED (2 q + s, g). */
template <bool TURNED>
__device__ __forceinline__ void read_tiles([[maybe_unused]] uint32_t (&x)[4],
                                           [[maybe_unused]] const uint32_t *from) {
#if __CUDA_ARCH__ >= 800
  const uint32_t address = shared_address(from);
  if constexpr (TURNED)
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
  else
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(address)
                 : "memory");
#endif
}

} // namespace bqr

#endif
