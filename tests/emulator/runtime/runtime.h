/* SPDX-License-Identifier: BSD-3-Clause */
/* What the parts of the emulated runtime share. */
#ifndef EMULATOR_RUNTIME_H
#define EMULATOR_RUNTIME_H

#include "cuda_runtime_api.h"
#include <functional>

namespace emulator {

/* Keeps an error for cudaGetLastError(), and returns it. */
cudaError_t result(cudaError_t error);

/* Does a piece of work in the order of a stream: now, or, if the stream is being captured, when its graph
 * runs. */
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

/* What calls that wait do to a capture that is under way in this thread: they are not allowed. */
cudaError_t check_no_capture();

int multiprocessors();

} // namespace emulator

#endif
