/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers in global memory with a tag each, both of which are written and read at once: who finds the tag has
 * the number, without any fence. */
#ifndef BQR_KERNELS_COMMON_PTX_MESSAGE_CUH
#define BQR_KERNELS_COMMON_PTX_MESSAGE_CUH

#include <cstdint>

namespace bqr {

template <class R> struct message;
template <> struct alignas(8) message<float> {
  float number;
  uint32_t tag;
};
template <> struct alignas(16) message<double> {
  double number;
  uint64_t tag;
};

__device__ __forceinline__ void send(message<float> *to, float number, uint32_t tag) {
#if __CUDA_ARCH__ >= 700
  asm volatile(
      "{\n.reg .b64 both;\nmov.b64 both, {%1, %2};\nst.relaxed.gpu.global.b64 [%0], both;\n}" ::"l"(to),
      "r"(__float_as_uint(number)), "r"(tag)
      : "memory");
#endif
}
__device__ __forceinline__ void send(message<double> *to, double number, uint32_t tag) {
#if __CUDA_ARCH__ >= 700
  asm volatile(
      "{\n.reg .b128 both;\nmov.b128 both, {%1, %2};\nst.relaxed.gpu.global.b128 [%0], both;\n}" ::"l"(to),
      "l"(__double_as_longlong(number)), "l"(static_cast<uint64_t>(tag))
      : "memory");
#endif
}

/* Whether the number with this tag has come. */
__device__ __forceinline__ bool received([[maybe_unused]] const message<float> *from, float &number,
                                         [[maybe_unused]] uint32_t tag) {
  uint32_t x = 0, there = tag;
#if __CUDA_ARCH__ >= 700
  asm volatile("{\n.reg .b64 both;\nld.relaxed.gpu.global.b64 both, [%2];\nmov.b64 {%0, %1}, both;\n}"
               : "=r"(x), "=r"(there)
               : "l"(from)
               : "memory");
#endif
  number = __uint_as_float(x);
  return there == tag;
}
__device__ __forceinline__ bool received([[maybe_unused]] const message<double> *from, double &number,
                                         [[maybe_unused]] uint32_t tag) {
  uint64_t x = 0, there = tag;
#if __CUDA_ARCH__ >= 700
  asm volatile("{\n.reg .b128 both;\nld.relaxed.gpu.global.b128 both, [%2];\nmov.b128 {%0, %1}, both;\n}"
               : "=l"(x), "=l"(there)
               : "l"(from)
               : "memory");
#endif
  number = __longlong_as_double(static_cast<long long>(x));
  return there == tag;
}

/* 16 bytes that are written and read at once, as 8 are. */
struct alignas(16) two_words {
  uint64_t first, second;
};
__device__ __forceinline__ void write_at_once(uint64_t *to, uint64_t x) {
#if __CUDA_ARCH__ >= 700
  asm volatile("st.relaxed.gpu.global.b64 [%0], %1;" ::"l"(to), "l"(x) : "memory");
#endif
}
__device__ __forceinline__ void write_at_once(two_words *to, two_words x) {
#if __CUDA_ARCH__ >= 700
  asm volatile(
      "{\n.reg .b128 both;\nmov.b128 both, {%1, %2};\nst.relaxed.gpu.global.b128 [%0], both;\n}" ::"l"(to),
      "l"(x.first), "l"(x.second)
      : "memory");
#endif
}
__device__ __forceinline__ uint64_t read_at_once([[maybe_unused]] const uint64_t *from) {
  uint64_t x = 0;
#if __CUDA_ARCH__ >= 700
  asm volatile("ld.relaxed.gpu.global.b64 %0, [%1];" : "=l"(x) : "l"(from) : "memory");
#endif
  return x;
}
__device__ __forceinline__ two_words read_at_once([[maybe_unused]] const two_words *from) {
  two_words x = {};
#if __CUDA_ARCH__ >= 700
  asm volatile("{\n.reg .b128 both;\nld.relaxed.gpu.global.b128 both, [%2];\nmov.b128 {%0, %1}, both;\n}"
               : "=l"(x.first), "=l"(x.second)
               : "l"(from)
               : "memory");
#endif
  return x;
}

} // namespace bqr

#endif
