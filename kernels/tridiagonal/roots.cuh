/* SPDX-License-Identifier: BSD-3-Clause */
/* The second half of a merge, xLAED3: the roots of the secular equation, the z of which they are the exact
 * roots (Gu and Eisenstat), so that clusters need no special care, and its vectors. A warp for each root,
 * pole or vector. */
#ifndef BQR_KERNELS_TRIDIAGONAL_ROOTS_CUH
#define BQR_KERNELS_TRIDIAGONAL_ROOTS_CUH

#include "common/eigen/secular.cuh"
#include "multiply.cuh"

namespace bqr {

constexpr int merge_warps = 8; /* of a block */

/* The number of this warp. */
__device__ __forceinline__ int merge_warp() { return static_cast<int>(blockIdx.x) * merge_warps + warp_id(); }

template <class R>
__global__ void __launch_bounds__(merge_warps *warp_lanes)
    merge_roots_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, const R *e) {
  const int j = merge_warp();
  if (j >= t.rows()) return;
  const int g = t.block_of(j, t.depth);
  const merge_block b(t, g);
  const int number = m.counts[g].roots;
  if (j - b.first >= number) return;
  const R *poles = m.poles + b.first;
  secular<R, warp_lanes> equation(poles, m.weights + b.first, number, 2 * fabs(e[b.middle - 1]));
  const secular_root<R> root = equation.find(j - b.first);
  if (lane_id() > 0) return;
  m.near[j] = poles[root.origin];
  m.distance[j] = root.distance;
  m.value[j] = poles[root.origin] + root.distance;
}

template <class R>
__global__ void __launch_bounds__(merge_warps *warp_lanes)
    merge_weights_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m) {
  const int i = merge_warp();
  if (i >= t.rows()) return;
  const int g = t.block_of(i, t.depth);
  const int first = merge_block(t, g).first, end = first + m.counts[g].roots;
  if (i >= end) return;
  const R pole = m.poles[i];
  R product = 1;
#pragma unroll 4
  for (int j = first + lane_id(); j < end; j += warp_lanes) {
    const R from_root = (pole - m.near[j]) - m.distance[j];
    product *= j == i ? -from_root : from_root * fast_recip(pole - m.poles[j]);
  }
#pragma unroll
  for (int d = warp_lanes / 2; d > 0; d /= 2) product *= exchange(product, d);
  if (lane_id() > 0) return;
  const int to = first + m.rank[i];
  m.vector[to] = copysign(sqrt(fabs(product)), m.weights[i]);
  m.listed[to] = pole;
}

/* The eigenvalues in their new order, d. */
template <class R>
__global__ void __launch_bounds__(merge_warps *warp_lanes)
    merge_places_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, R *d) {
  const int i = merge_warp();
  if (i >= t.rows()) return;
  const merge_block b(t, t.block_of(i, t.depth));
  const R mine = m.value[i];
  int before = 0;
#pragma unroll 4
  for (int j = b.first + lane_id(); j < b.end; j += warp_lanes)
    before += m.value[j] < mine || (m.value[j] == mine && j < i);
  const int place = b.first + group_sum(before);
  if (lane_id() > 0) return;
  m.place[i] = place;
  d[place] = mine;
}

/* The panel's columns of the vectors of each merge, blockIdx.y: a block of threads for each. */
template <class R>
__global__ void __launch_bounds__(merge_warps *warp_lanes)
    merge_vectors_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, merge_panel panel,
                         merge_factors<R> to) {
  __shared__ R partial[merge_warps];
  const int g = static_cast<int>(blockIdx.y), column = static_cast<int>(blockIdx.x);
  const int first = merge_block(t, g).first, roots = m.counts[g].roots;
  if (panel.column + column >= roots) return;
  const int j = first + panel.column + column;
  if (!panel.range.has(m.place[j] - first)) return;
  const R near = m.near[j], distance = m.distance[j];
  const auto entry = [&](int p) {
    return m.vector[first + p] * fast_recip((m.listed[first + p] - near) - distance);
  };
  R norm2 = 0;
#pragma unroll 4
  for (int p = thread_id(); p < roots; p += num_threads()) {
    const R x = entry(p);
    norm2 = fused(x, x, norm2);
  }
  norm2 = group_sum(norm2);
  if (lane_id() == 0) partial[warp_id()] = norm2;
  block_sync();
  const R factor = R(1) / sqrt(group_sum<merge_warps>(partial[lane_id() % merge_warps]));
#pragma unroll 4
  for (int p = thread_id(); p < merge_factors<R>::padded(roots); p += num_threads())
    *to.at(g, p, column) = p < roots ? factor * entry(p) : R(0);
}

/* The first and the last row of the products, where no more is wanted. */
template <class R>
__global__ void __launch_bounds__(merge_warps *warp_lanes)
    merge_rows_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, merge_matrix<R> vectors,
                      merge_matrix<R> products) {
  const int j = merge_warp();
  if (j >= t.rows()) return;
  const int g = t.block_of(j, t.depth);
  const int first = merge_block(t, g).first;
  const int roots = m.counts[g].roots;
  if (j - first >= roots) return;
  const matrix_view<R> from = vectors.of(t, g), to = products.of(t, g);
  const R near = m.near[j], distance = m.distance[j];
  R norm2 = 0, top = 0, bottom = 0;
#pragma unroll 4
  for (int p = first + lane_id(); p < first + roots; p += warp_lanes) {
    const R x = m.vector[p] * fast_recip((m.listed[p] - near) - distance);
    const R *column = from.at(0, m.column[p]);
    norm2 = fused(x, x, norm2);
    top = fused(column[0], x, top);
    bottom = fused(column[1], x, bottom);
  }
  const R factor = R(1) / sqrt(group_sum(norm2));
  top = group_sum(top);
  bottom = group_sum(bottom);
  if (lane_id() > 0) return;
  R *row = to.at(0, m.place[j]);
  row[0] = factor * top;
  row[1] = factor * bottom;
}

/* Columns that deflation leaves as they are, of those that are wanted; a block for each. */
template <class R>
__global__ void __launch_bounds__(256)
    merge_copy_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, merge_range range,
                      merge_matrix<R> from, merge_matrix<R> to) {
  const int j = static_cast<int>(blockIdx.x), g = t.block_of(j, t.depth);
  const merge_block b(t, g);
  if (j - b.first < m.counts[g].roots || !range.has(m.place[j] - b.first)) return;
  const R *x = from.of(t, g).at(0, m.column[j]);
  R *y = to.of(t, g).at(0, m.place[j]);
  for (int i = (to.of_rows ? 0 : b.first) + thread_id(); i < (to.of_rows ? 2 : b.end); i += num_threads())
    y[i] = x[i];
}

} // namespace bqr

#endif
