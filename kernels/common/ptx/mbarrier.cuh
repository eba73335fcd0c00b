/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers in shared memory (mbarrier), the bulk copies and remote stores whose bytes they count, and
 * pipelines of places in shared memory that some warps fill and others read. From compute capability 9.0 on.
 */
#ifndef BQR_KERNELS_COMMON_PTX_MBARRIER_CUH
#define BQR_KERNELS_COMMON_PTX_MBARRIER_CUH

#include "cluster.cuh"

namespace bqr {

/* A phase is over when as many threads have arrived as were said at first, and all bytes that were announced
 * are there. Arrays of them lie at the same place in all blocks of a cluster. */
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
            shared_address(shared)),
        "l"(global), "r"(bytes), "r"(address())
        : "memory");
#endif
  }
  /* Likewise to the same place in each block of the cluster whose bit is set in `ranks`, and counted there.
   */
  __device__ __forceinline__ void copy_bulk_to([[maybe_unused]] uint16_t ranks, [[maybe_unused]] void *shared,
                                               [[maybe_unused]] const void *global,
                                               [[maybe_unused]] int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
                 "l"(global), "r"(bytes), "r"(address()), "h"(ranks)
                 : "memory");
#endif
  }
  /* Arrives at the barrier at the same place in block `rank` of the cluster; orders what was read, and no
   * writes. */
  __device__ __forceinline__ void arrive_at([[maybe_unused]] int rank) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [there];\n}" ::"r"(address()),
                 "r"(rank)
                 : "memory");
#endif
  }
  /* Arrives at the barriers at the same place in all blocks, for the thread's own writes: racecheck does not
   * see those of others behind an arrival. One fence for all of them, since each arrival that releases waits
   * again. */
  __device__ __forceinline__ void arrive_everywhere() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.acq_rel.cluster;" ::: "memory");
    for (int rank = 0; rank < cluster_size(); rank++)
      asm volatile("{\n.reg .b32 there;\nmapa.shared::cluster.u32 there, %0, %1;\n"
                   "mbarrier.arrive.relaxed.cluster.shared::cluster.b64 _, [there];\n}" ::"r"(address()),
                   "r"(rank)
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
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(shared_address(to)), "r"(rank));
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
  /* The same for arrivals, and writes before them, of other blocks of the cluster. */
  __device__ __forceinline__ void wait_cluster([[maybe_unused]] uint32_t parity) {
#if __CUDA_ARCH__ >= 900
    asm volatile("{\n.reg .pred done;\nagain:\n"
                 "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
                 "@done bra over;\nbra again;\nover:\n}" ::"r"(address()),
                 "r"(parity)
                 : "memory");
#endif
  }

private:
  __device__ __forceinline__ uint32_t address() const { return shared_address(&state_); }
  uint64_t state_;
};

/* Behind init(), where other blocks of the cluster use the barriers, and before a cluster_sync(). */
__device__ __forceinline__ void mbarrier_init_fence() {
#if __CUDA_ARCH__ >= 900
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

/* Where one side of a pipeline of PLACES places is. */
template <int PLACES> struct pipeline_state {
  int place = 0;
  uint32_t parity = 0;

  __device__ __forceinline__ void next() {
    if (++place < PLACES) return;
    place = 0;
    parity ^= 1;
  }
};

} // namespace bqr

#endif
