/* SPDX-License-Identifier: BSD-3-Clause */
/* The host side of a family: from a problem's type and a variant's parameters to a template instance, and
 * from that to a launch. */
#ifndef BQR_KERNELS_COMMON_SIMT_LAUNCH_CUH
#define BQR_KERNELS_COMMON_SIMT_LAUNCH_CUH

#include "family.h"
#include "scalar.cuh"
#include <cuda_runtime.h>

namespace bqr {

template <class T> struct type_tag { using type = T; };

/* The batchqr_type of a T. */
template <class T>
constexpr batchqr_type type_of = std::is_same<T, float>::value           ? BATCHQR_S
                                 : std::is_same<T, double>::value        ? BATCHQR_D
                                 : std::is_same<T, complex_float>::value ? BATCHQR_C
                                                                         : BATCHQR_Z;

template <class T, class... Rest, class F> auto for_type_of(batchqr_type type, F &&f) {
  if constexpr (sizeof...(Rest) > 0) {
    if (type != type_of<T>) return for_type_of<Rest...>(type, static_cast<F &&>(f));
  }
  return f(type_tag<T>{});
}

/* The types that are compiled; the planner asks for no other. */
#ifndef BQR_TYPES
#define BQR_TYPES float, double, complex_float, complex_double
#endif

/* f(type_tag<T>{}) with the T of a batchqr_type. The lambda's `using T = typename decltype(tag)::type`. */
template <class F> auto for_type(batchqr_type type, F &&f) {
  return for_type_of<BQR_TYPES>(type, static_cast<F &&>(f));
}

/* for_value<4, 8, 16>(x, f): f(std::integral_constant<int, V>{}) with the V that equals x; the last one if
 * none does. */
template <int V, int... Rest, class F> auto for_value(int x, F &&f) {
  if constexpr (sizeof...(Rest) > 0) {
    if (x != V) return for_value<Rest...>(x, static_cast<F &&>(f));
  }
  return f(std::integral_constant<int, V>{});
}

/* for_index<N>(i, f): f(std::integral_constant<int, I>{}) with the I < N that equals i; N - 1 if none does.
 */
template <int N, int I = 0, class F> auto for_index(int i, F &&f) {
  if constexpr (I + 1 < N) {
    if (i != I) return for_index<N, I + 1>(i, static_cast<F &&>(f));
  }
  return f(std::integral_constant<int, I>{});
}

/* sizeof(T) of a batchqr_type. */
inline size_t type_bytes(batchqr_type type) {
  return for_type(type, [](auto tag) { return sizeof(typename decltype(tag)::type); });
}

/* Blocks for `pieces` pieces of work in a kernel that steps over them by gridDim.x. */
inline unsigned grid_for(int64_t pieces) {
  constexpr int64_t most = int64_t(1) << 30;
  return static_cast<unsigned>(pieces < most ? pieces : most);
}

/* Whether a block of `warps` warps and `smem` bytes for each of `count` members makes no more warps of a
 * multiprocessor than keep it busy: until then, more for a member pay. */
inline bool more_warps_pay(const bqr_device *device, int64_t count, int warps, size_t smem) {
  constexpr int enough = 12, reserved = 1024; /* bytes of each block's shared memory */
  const int fit = device->smem_per_sm / (static_cast<int>(smem) + reserved);
  return fit * warps <= enough || count * warps <= static_cast<int64_t>(enough) * device->multiprocessors;
}

inline batchqr_status status_of(cudaError_t error) {
  return error == cudaSuccess ? BATCHQR_SUCCESS : BATCHQR_CUDA_ERROR;
}

/* Loads a kernel, and lets it have `smem` bytes of dynamic shared memory and clusters of `blocks` blocks. */
template <class... P> batchqr_status prepare_kernel(void (*kernel)(P...), size_t smem, int blocks = 1) {
  cudaFuncAttributes attributes;
  cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void *>(kernel));
  if (error == cudaSuccess && static_cast<int>(smem) > attributes.maxDynamicSharedSizeBytes)
    error = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(smem));
  constexpr int portable = 8; /* larger clusters are at the device's discretion */
  if (error == cudaSuccess && blocks > portable)
    error = cudaFuncSetAttribute(reinterpret_cast<const void *>(kernel),
                                 cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
  return status_of(error);
}

/* Enqueues kernel<<<grid, threads, smem, stream>>>(args...). */
template <class... P, class... A>
batchqr_status launch_kernel(void (*kernel)(P...), dim3 grid, int threads, size_t smem, batchqr_stream stream,
                             const A &...args) {
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

/* Likewise, of blocks that wait for one another: all of them run at once, or none does. */
template <class... P, class... A>
batchqr_status launch_together(void (*kernel)(P...), dim3 grid, int threads, size_t smem,
                               batchqr_stream stream, const A &...args) {
  cudaLaunchAttribute together = {};
  together.id = cudaLaunchAttributeCooperative;
  together.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = smem;
  config.stream = stream;
  config.attrs = &together;
  config.numAttrs = 1;
  return status_of(cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...));
}

} // namespace bqr

#endif
