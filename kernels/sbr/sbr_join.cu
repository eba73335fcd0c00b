/* SPDX-License-Identifier: BSD-3-Clause */
/* The last step of a panel of the reduction to a band: W, beside V and under it, as products want them. A
 * block has 32 rows, a lane's each; warps share the columns. */
#include "sbr.h"
#include "common/matrix/view.cuh"
#include "common/simt/launch.cuh"

namespace {
using namespace bqr;

constexpr int threads = 256, warps = threads / warp_lanes;
constexpr int rows_of_block = warp_lanes, most = BQR_SBR_WIDEST;
constexpr int each = most / warps; /* columns of a warp */

/* s: by columns, pairs of which are read at once. */
template <class T> struct alignas(2 * sizeof(T)) two { T x, y; };
template <class T> struct storage {
  two<T> s[most][most / 2];
  T v[most][rows_of_block + 1], w[most][rows_of_block + 1];
};

template <class T>
__global__ void __launch_bounds__(threads) join_kernel(const __grid_constant__ bqr_sbr_panel p) {
  storage<T> &mine = *shared_memory<storage<T>>();
  const int first = static_cast<int>(blockIdx.x) * rows_of_block, row = first + lane_id();
  const bool there = row < p.rows;
  T *x = static_cast<T *>(p.x) + row;
  for (int k = warp_id(); k < most; k += warps) {
    const T v = there && k < p.width ? static_cast<const T *>(p.v)[row + k * p.ldv] : zero<T>();
    mine.v[k][lane_id()] = v;
    if (there && k < p.width) x[k * p.ldx] = v;
  }
  for (int e = thread_id(); e < most * most; e += threads) {
    const int i = e % most, j = e / most;
    const bool inside = i < p.width && j < p.width;
    reinterpret_cast<T *>(mine.s[j])[i] = inside ? static_cast<const T *>(p.s)[i + j * p.lds] : zero<T>();
  }
  block_sync();
  const int left = warp_id() * each;
  T sum[each];
#pragma unroll
  for (T &y : sum) y = zero<T>();
#pragma unroll 4
  for (int k = 0; k < most; k += 2) {
    const T v = mine.v[k][lane_id()], next = mine.v[k + 1][lane_id()];
#pragma unroll
    for (int c = 0; c < each; c++) {
      const two<T> s = mine.s[left + c][k / 2];
      sum[c] = madd(next, s.y, madd(v, s.x, sum[c]));
    }
  }
#pragma unroll
  for (int c = 0; c < each; c++) {
    if (left + c >= p.width || !there) break;
    const T y = static_cast<const T *>(p.y)[row + (left + c) * p.ldy];
    const T w = scaled_add(sum[c], real_t<T>(-0.5), y);
    mine.w[left + c][lane_id()] = w;
    x[(p.width + left + c) * p.ldx] = w;
  }
  block_sync();
  for (int i = warp_id(); i < rows_of_block && first + i < p.rows; i += warps) {
    T *z = static_cast<T *>(p.z) + (first + i) * p.ldz;
    for (int k = lane_id(); k < p.width; k += warp_lanes) {
      z[k] = conj(mine.w[k][i]);
      z[p.width + k] = conj(mine.v[k][i]);
    }
  }
}

} // namespace

extern "C" {

batchqr_status bqr_sbr_join(batchqr_type type, const bqr_sbr_panel *panel, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return launch_kernel(join_kernel<T>, dim3(grid_for((panel->rows - 1) / rows_of_block + 1)), threads,
                         sizeof(storage<T>), stream, *panel);
  });
}

batchqr_status bqr_sbr_join_prepare(batchqr_type type);
batchqr_status bqr_sbr_join_prepare(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    return prepare_kernel(join_kernel<T>, sizeof(storage<T>));
  });
}
}
