/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous copies of single units to shared memory, which the thread waits for that started them. */
#ifndef BQR_KERNELS_COMMON_PTX_CP_ASYNC_CUH
#define BQR_KERNELS_COMMON_PTX_CP_ASYNC_CUH

namespace bqr {

/* Copies the first `bytes` of BYTES, which are 16 or fewer, and fills up with zeros. STREAMED: what follows
 * in memory is wanted next. */
template <int BYTES, bool STREAMED = false>
__device__ __forceinline__ void copy_async_part(void *shared, const void *global, int bytes) {
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16 && STREAMED)
    asm volatile("cp.async.cg.shared.global.L2::256B [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  else if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(global), "r"(bytes)
                 : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(global), "n"(BYTES),
                 "r"(bytes)
                 : "memory");
}
/* Copies BYTES. */
template <int BYTES> __device__ __forceinline__ void copy_async(void *shared, const void *global) {
  unsigned to = static_cast<unsigned>(__cvta_generic_to_shared(shared));
  if constexpr (BYTES == 16)
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(global) : "memory");
  else
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(to), "l"(global), "n"(BYTES) : "memory");
}
/* All of them, or zeros. */
template <int BYTES>
__device__ __forceinline__ void copy_async_if(bool some, void *shared, const void *global) {
  copy_async_part<BYTES>(shared, global, some ? BYTES : 0);
}
/* Copies since the last call are a group; waits until at most PENDING groups are under way. */
__device__ __forceinline__ void copy_async_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int PENDING> __device__ __forceinline__ void copy_async_wait_groups() {
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
}
/* Waits for all copies, in groups or not. */
__device__ __forceinline__ void copy_async_wait() { asm volatile("cp.async.wait_all;" ::: "memory"); }

} // namespace bqr

#endif
