/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_CLUSTER_CUH
#define BQR_KERNELS_COMMON_PTX_CLUSTER_CUH

#include "barrier.cuh"
#include "target.cuh"

namespace bqr {

constexpr int most_cluster_blocks = 8;

inline int cluster_size() { return emulator::cluster_size(); }
inline int cluster_rank() { return emulator::cluster_rank(); }
inline void cluster_sync() { emulator::cluster_barrier(); }
inline void cluster_sync_unaligned() { emulator::cluster_barrier(); }
template <class T> T *cluster_shared(T *shared, int rank) {
  return static_cast<T *>(emulator::in_block(shared, rank));
}

} // namespace bqr

#endif
