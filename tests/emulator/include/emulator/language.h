/* SPDX-License-Identifier: BSD-3-Clause */
/* CUDA's words that are no functions. */
#ifndef EMULATOR_LANGUAGE_H
#define EMULATOR_LANGUAGE_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <math.h> /* without std:: too */
#include <type_traits>

#define __CUDACC__    1
#define __CUDA_ARCH__ 900 /* kernels take the paths for it; code of the host's does not ask */

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__ thread_local
#define __grid_constant__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __maxnreg__(...)
#define __align__(n) __attribute__((aligned(n)))

/* An assumption that does not hold is an error of the kernel's. */
#define __builtin_assume(x) ((x) ? (void)0 : emulator::die("%s:%d: not true: %s", __FILE__, __LINE__, #x))
inline bool __isShared(const void *p) { return emulator::is_shared(p); }
inline bool __isGlobal(const void *p) { return !emulator::is_shared(p); }

/* Dynamic shared memory. A kernel's `extern __shared__ T name[]` is a variable of the namespace that it is
 * in, of which there is no definition: here are the names that kernels use, and where they are. (A name that
 * is missing is an undefined symbol when the tests are linked.) */
#define EMULATOR_SHARED(T, name) extern thread_local T name[] __asm__("emulator_shared")
namespace bqr {
EMULATOR_SHARED(unsigned char, bqr_shared_memory);
EMULATOR_SHARED(unsigned char, shared);
EMULATOR_SHARED(unsigned char, dynamic);
EMULATOR_SHARED(char, smem);
} // namespace bqr
namespace {
EMULATOR_SHARED(unsigned char, shared);
} // namespace
#undef EMULATOR_SHARED

inline size_t __cvta_generic_to_shared(const void *p) {
  return static_cast<size_t>(static_cast<const unsigned char *>(p) - emulator_shared);
}
inline void *__cvta_shared_to_generic(size_t offset) {
  return emulator_shared + static_cast<int32_t>(offset);
}

#endif
