/* SPDX-License-Identifier: BSD-3-Clause */
#include "wy.h"
#include "block.cuh"
#include "launch.cuh"
#include "member.cuh"

namespace {
using namespace bqr;

constexpr int threads = 256, rows_of_block = 4 * threads, most_blocks_in_y = 65535;

template <class T>
__global__ void __launch_bounds__(threads)
    copy_kernel(int rows, int cols, const T *from, int64_t ld_from, T *to, int64_t ld_to) {
  const int first = static_cast<int>(blockIdx.x) * rows_of_block + thread_id();
  for (int j = static_cast<int>(blockIdx.y); j < cols; j += static_cast<int>(gridDim.y)) {
#pragma unroll
    for (int i = 0; i < rows_of_block / threads; i++) {
      const int r = first + i * threads;
      if (r < rows) to[r + j * ld_to] = from[r + j * ld_from];
    }
  }
}

unsigned pieces_of(int rows) { return static_cast<unsigned>((rows - 1) / rows_of_block + 1); }
} // namespace

extern "C" {

batchqr_status batchqr_wy_copy(batchqr_type type, int rows, int cols, const void *from, int64_t ld_from,
                               void *to, int64_t ld_to, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(
        copy_kernel<T>, dim3(pieces_of(rows), static_cast<unsigned>(least(cols, most_blocks_in_y))), threads,
        0, stream, rows, cols, static_cast<const T *>(from), ld_from, static_cast<T *>(to), ld_to);
  });
}

batchqr_status batchqr_wy_prepare(batchqr_type type) {
  return for_type(type,
                  [](auto tag) { return prepare_kernel(copy_kernel<typename decltype(tag)::type>, 0); });
}
}
