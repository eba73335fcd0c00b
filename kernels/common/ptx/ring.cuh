/* SPDX-License-Identifier: BSD-3-Clause */
/* A ring of places in shared memory that some warps of a block fill and others read, from compute capability
 * 9.0 on; and what such warps need besides: registers moved between them, barriers of some of them. */
#ifndef BQR_KERNELS_COMMON_PTX_RING_CUH
#define BQR_KERNELS_COMMON_PTX_RING_CUH

#include "common/simt/block.cuh"

namespace bqr {

/* Barriers of a block's threads: a phase is over when as many have arrived as were said at first. */
class phase_barrier {
public:
  /* By one thread, before a block_sync(). */
  __device__ __forceinline__ void init([[maybe_unused]] int count) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(count) : "memory");
#endif
  }
  /* By one thread, before its memory serves anything else. */
  __device__ __forceinline__ void end() {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(address()) : "memory");
#endif
  }
  /* By every thread whose accesses others wait for: racecheck does not see those of a warp behind one of its
   * lanes, even after a warp_sync(). */
  __device__ __forceinline__ void arrive() {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
#endif
  }
  /* Arrives when the thread's asynchronous copies are done. */
  __device__ __forceinline__ void arrive_after_copies() {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(address()) : "memory");
#endif
  }
  /* Arrives and has the phase wait for so many bytes of copy_bulk(). */
  __device__ __forceinline__ void arrive_before_bytes([[maybe_unused]] int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes)
                 : "memory");
#endif
  }
  /* Starts copying whole 16 bytes; no thread must access what is there until the phase is over. */
  __device__ __forceinline__ void copy_bulk([[maybe_unused]] void *shared,
                                            [[maybe_unused]] const void *global, [[maybe_unused]] int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            static_cast<uint32_t>(__cvta_generic_to_shared(shared))),
        "l"(global), "r"(bytes), "r"(address())
        : "memory");
#endif
  }
  /* Writes x where block `rank` of the cluster has what is here at `to`, of whose bytes the barrier at the
   * same place there hears. */
  template <class T>
  __device__ __forceinline__ void send([[maybe_unused]] T *to, [[maybe_unused]] T x,
                                       [[maybe_unused]] int rank) {
#if __CUDA_ARCH__ >= 900
    uint32_t there, barrier;
    asm("mapa.shared::cluster.u32 %0, %1, %2;"
        : "=r"(there)
        : "r"(static_cast<uint32_t>(__cvta_generic_to_shared(to))), "r"(rank));
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(barrier) : "r"(address()), "r"(rank));
    if constexpr (sizeof(T) == 8)
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];" ::"r"(there),
          "l"(__double_as_longlong(x)), "r"(barrier)
          : "memory");
    else
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];" ::"r"(there),
          "r"(__float_as_uint(x)), "r"(barrier)
          : "memory");
#endif
  }
  /* Waits until the phase of this parity is over; that of parity 1 is before the first one. */
  __device__ __forceinline__ void wait([[maybe_unused]] uint32_t parity) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\nbra again;\nover:\n}" ::"r"(address()),
                 "r"(parity)
                 : "memory");
#endif
  }

private:
  __device__ __forceinline__ uint32_t address() const {
    return static_cast<uint32_t>(__cvta_generic_to_shared(&state_));
  }
  uint64_t state_;
};

/* Between a thread's accesses to shared memory and copy_bulk() to the same place. */
__device__ __forceinline__ void bulk_fence() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* PLACES places in turn. Each side keeps its own. */
template <int PLACES> struct ring_position {
  int place = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void next() {
    if (++place < PLACES) return;
    place = 0;
    parity ^= 1;
  }
};

/* Waits for `threads` threads, whole warps, that name the same number, 1 to 15. */
__device__ __forceinline__ void named_sync(int number, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

/* Likewise; whether any of them says so. */
__device__ __forceinline__ bool named_any(int number, int threads, bool v) {
  int any;
  asm volatile("{\n.reg .pred p, q;\nsetp.ne.s32 p, %1, 0;\nbar.red.or.pred q, %2, %3, p;\n"
               "selp.s32 %0, 1, 0, q;\n}"
               : "=r"(any)
               : "r"(static_cast<int>(v)), "r"(number), "r"(threads)
               : "memory");
  return any != 0;
}

/* The registers of a thread, for all four warps of a group; elsewhere than on Hopper they stay as they are.
 */
template <int N> __device__ __forceinline__ void more_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
template <int N> __device__ __forceinline__ void fewer_registers() {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

} // namespace bqr

#endif
