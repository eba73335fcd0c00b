/* SPDX-License-Identifier: BSD-3-Clause */
/* What the threads of a block, or of a cluster, do together, and the order of what they see. */
#ifndef EMULATOR_BLOCK_FUNCTIONS_H
#define EMULATOR_BLOCK_FUNCTIONS_H

#include "engine.h"

inline void __syncthreads() { emulator::block_barrier(0, 0, false); }
inline int __syncthreads_or(int v) { return emulator::block_barrier(0, 0, v != 0); }

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __nanosleep(unsigned) { emulator::yield(); }

#endif
