/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMULATOR_LAUNCH_H
#define EMULATOR_LAUNCH_H

#include "cuda_runtime_api.h"
#include <functional>

namespace emulator {

/* Enqueues a kernel, whose threads are calls of `thread`. */
cudaError_t enqueue_kernel(const cudaLaunchConfig_t &config, const void *kernel,
                           std::function<void()> thread);

/* How many blocks of one multiprocessor, or clusters of the device, run at once. */
int blocks_at_once(int threads, size_t shared);
int clusters_at_once(const cudaLaunchConfig_t &config);

} // namespace emulator

/* Arguments are copied at the launch. */
template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t *config, void (*kernel)(P...), A &&...args) {
  return emulator::enqueue_kernel(*config, reinterpret_cast<const void *>(kernel),
                                  [=] { kernel(static_cast<P>(args)...); });
}

template <class... P>
cudaError_t cudaOccupancyMaxActiveClusters(int *clusters, void (*)(P...), const cudaLaunchConfig_t *config) {
  *clusters = emulator::clusters_at_once(*config);
  return cudaSuccess;
}
template <class... P>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void (*)(P...), int threads,
                                                          size_t shared) {
  *blocks = emulator::blocks_at_once(threads, shared);
  return cudaSuccess;
}

#endif
