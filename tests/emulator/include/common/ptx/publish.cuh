/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_PUBLISH_CUH
#define BQR_KERNELS_COMMON_PTX_PUBLISH_CUH

namespace bqr {

inline void publish(int *to, int x) {
  __atomic_store_n(to, x, __ATOMIC_RELEASE);
  emulator::progress_of_all();
}
inline int published(const int *from) {
  emulator::yield(); /* who asks waits, mostly */
  return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}
inline void block_fence() { __threadfence_block(); }

} // namespace bqr

#endif
