/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BQR_KERNELS_COMMON_PTX_BARRIER_CUH
#define BQR_KERNELS_COMMON_PTX_BARRIER_CUH

namespace bqr {

constexpr unsigned full_mask = 0xffffffffu;

inline void warp_sync(unsigned mask = full_mask) { __syncwarp(mask); }
inline void block_sync() { __syncthreads(); }
inline bool block_any(bool v) { return __syncthreads_or(v) != 0; }
inline void named_sync(int number, int threads) { emulator::block_barrier(number, threads, false); }
inline bool named_any(int number, int threads, bool v) { return emulator::block_barrier(number, threads, v); }
inline void device_fence() { __threadfence(); }

} // namespace bqr

#endif
