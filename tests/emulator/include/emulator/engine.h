/* SPDX-License-Identifier: BSD-3-Clause */
/* The emulated device: each thread of a block is a fiber, which runs until it waits for others; each block
 * has a thread of the host's while it runs. What kernels' __shared__ variables are to a block, thread_local
 * ones are to this thread. */
#ifndef EMULATOR_ENGINE_H
#define EMULATOR_ENGINE_H

#include "vector_types.h"
#include <cstddef>
#include <functional>

constexpr int warpSize = 32;

extern thread_local uint3 threadIdx, blockIdx, blockDim, gridDim;

/* A block's dynamic shared memory: aligned as the tiles of wgmma want it. */
constexpr size_t emulator_most_shared = 227 * 1024;
extern thread_local unsigned char emulator_shared[];

namespace emulator {

/* --- waiting */

/* Lets the block's other threads go on: to be called by whoever waits until something in memory changes. */
void yield();
/* Says that something changed that others of the block, or of the whole grid, may wait for. */
void progress();
void progress_of_all();

/* Until `threads` threads of the block have come to this barrier; 0: all that have not ended. Barrier 0 is
 * __syncthreads'. Returns whether any of them said so. */
bool block_barrier(int number, int threads, bool vote);

/* Until all threads of the cluster have come. */
void cluster_barrier();

/* What all lanes in `mask`, or all threads of four warps, do together: each brings what `mine` points to, the
 * last one that comes has act() do it for all, with the lanes' pointers by their numbers. */
using joint_act = void (*)(void *const *lanes, unsigned mask);
void with_lanes(unsigned mask, void *mine, joint_act act);
void with_four_warps(void *mine, joint_act act);

/* --- the cluster */

int cluster_size();
int cluster_rank();
/* Where another block has what this one has at `mine`, in shared memory. */
void *in_block(void *mine, int rank);
/* Whether an address is in the block's shared memory. */
bool is_shared(const void *address);

/* --- asynchronous copies of a thread: done when it waits for them, as late as they may be */

void copy_later(void *to, const void *from, int bytes, int room);
void end_group();
/* Until at most `pending` groups are left. Copies behind the last group are none yet. */
void finish_groups(int pending);
/* All of them. */
void finish_copies();

/* --- launches */

struct launch {
  dim3 grid, block;
  size_t shared = 0;
  int cluster = 1;
  bool together = false; /* all blocks run at once */
  std::function<void()> thread;
};
void run(const launch &work);

/* Ends the process with where the calling thread is. */
[[noreturn]] void die(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A whole number from the environment. */
int option(const char *name, int otherwise);

} // namespace emulator

#endif
