/* SPDX-License-Identifier: BSD-3-Clause */
/* Values of which the compiler forgets how they were computed, so that it neither keeps what follows from
 * them in registers nor computes it again. */
#ifndef BQR_KERNELS_COMMON_PTX_OPAQUE_CUH
#define BQR_KERNELS_COMMON_PTX_OPAQUE_CUH

#include <cstdint>

namespace bqr {

template <class T> __device__ __forceinline__ void opaque(T *&p) { asm("" : "+l"(p)); }
__device__ __forceinline__ void opaque(int &a, int &b, int &c) { asm("" : "+r"(a), "+r"(b), "+r"(c)); }

/* Likewise, and not computed elsewhere than here. */
template <class T> __device__ __forceinline__ void opaque_here(T *&p) { asm volatile("" : "+l"(p)); }
__device__ __forceinline__ void opaque_here(int &x) { asm volatile("" : "+r"(x)); }
__device__ __forceinline__ void opaque_here(uint32_t &x) { asm volatile("" : "+r"(x)); }
__device__ __forceinline__ void opaque_here(float &x) { asm volatile("" : "+f"(x)); }
__device__ __forceinline__ void opaque_here(double &x) { asm volatile("" : "+d"(x)); }
/* Of two ints; a macro, since behind references the compiler orders what surrounds it otherwise
 * (multiply_fp16_kernel is other machine code). */
#define BQR_OPAQUE_HERE(a, b) asm volatile("" : "+r"(a), "+r"(b))

} // namespace bqr

#endif
