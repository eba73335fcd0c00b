/* SPDX-License-Identifier: BSD-3-Clause */
/* Operands of large products into the tiles of tiles.cuh: rows are scaled by powers of two to what a format
 * asks for, and rows and k filled up with zeros to whole tiles.
 *
 * Complex products are real ones of twice the sizes: b and c are taken as they lie in memory, real and
 * imaginary parts in turn, and each row x + iy of op(a) becomes two rows of (x, -y) and (y, x). */
#ifndef BATCHQR_KERNELS_COMMON_TILING_CUH
#define BATCHQR_KERNELS_COMMON_TILING_CUH

#include "columns.cuh"
#include "tiling.h"
#include "launch.cuh"
#include "tiles.cuh"

namespace bqr {

/* An operand in memory. Rows follow each other there, or the entries of a row do. */
template <class T> struct tiling_source {
  const T *x;
  int64_t ld, rows, k;
};
enum class tiling_order { rows, columns, long_columns }; /* of k; a warp for a column, or a block */

constexpr int tiling_threads = 256, tiling_warps = tiling_threads / warp_lanes;

inline int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

/* A thread's part in an operand: of one of its rows, each `stride`th unit of N reals of k. */
template <class T, int N, tiling_order ORDER> struct tiling_part {
  using R = real_t<T>;
  static constexpr int parts = is_complex<T> ? 2 : 1;
  static constexpr int block_rows = ORDER == tiling_order::long_columns ? 1
                                    : ORDER == tiling_order::columns    ? tiling_warps
                                                                        : warp_lanes;
  const R *x; /* the row's, its elements step reals apart */
  int64_t step, k;
  int64_t row;
  int unit, stride;
  bool wide; /* 16 bytes can be loaded at once */

  __device__ __forceinline__ tiling_part(const tiling_source<T> &from) {
    constexpr bool columns = ORDER != tiling_order::rows;
    row = static_cast<int64_t>(blockIdx.x) * block_rows;
    if (ORDER == tiling_order::rows) row += lane_id();
    if (ORDER == tiling_order::columns) row += warp_id();
    unit = ORDER == tiling_order::long_columns ? thread_id()
           : ORDER == tiling_order::columns    ? lane_id()
                                               : warp_id();
    stride = tiling_threads / block_rows;
    x = reinterpret_cast<const R *>(from.x) + row * parts * (columns ? from.ld : 1);
    step = columns ? 1 : from.ld;
    k = row < from.rows ? from.k * parts : 0;
    wide = columns && reinterpret_cast<uintptr_t>(x) % 16 == 0;
  }

  /* v := the unit u, zeros past the end. */
  __device__ __forceinline__ void load(int u, R (&v)[N]) const {
    constexpr int pack = 16 / sizeof(R);
    const int64_t first = static_cast<int64_t>(u) * N;
    if (ORDER != tiling_order::rows && wide && first + N <= k) {
#pragma unroll
      for (int i = 0; i < N; i += pack) {
        const int4 four = __ldg(reinterpret_cast<const int4 *>(x + first + i));
        memcpy(v + i, &four, sizeof four);
      }
    } else {
#pragma unroll
      for (int i = 0; i < N; i++) {
        const int64_t at = first + i;
        /* of rows, (x, -y) */
        const bool negative = ORDER == tiling_order::rows && is_complex<T> && i % 2 == 1;
        const R *entry = x + (ORDER == tiling_order::rows ? at / parts * step * parts + at % parts : at);
        v[i] = at < k ? (negative ? -*entry : *entry) : R(0);
      }
    }
  }
};

/* (x, -y) -> (y, x) */
template <class R, int N> __device__ __forceinline__ void turn(R (&v)[N]) {
#pragma unroll
  for (int i = 0; i < N; i += 2) {
    const R x = v[i];
    v[i] = -v[i + 1];
    v[i + 1] = x;
  }
}

/* The largest of, or the sum over, all threads that share a row. */
template <tiling_order ORDER, class V, class F>
__device__ __forceinline__ V over_row(V v, V (&scratch)[tiling_threads], F &&combine) {
  if (ORDER != tiling_order::rows) {
#pragma unroll
    for (int d = warp_lanes / 2; d > 0; d /= 2) v = combine(v, exchange(v, d));
    if (ORDER == tiling_order::columns) return v;
  }
  block_sync();
  scratch[thread_id()] = v;
  block_sync();
  const int mine = ORDER == tiling_order::rows ? lane_id() : 0;
  v = scratch[mine];
  for (int w = 1; w < tiling_warps; w++) v = combine(v, scratch[mine + w * warp_lanes]);
  return v;
}

/* F, a format: `reals` of a unit; scales, the array of what undoes each row's scale; scale(largest magnitude,
 * squared norm of the row times 2^exponent, exponent), the scale; store(unit, row, number of the unit). A row
 * of complex numbers becomes two. A row that is not finite gets NaN for its scale, and so do then all of its
 * products. */
template <class F, class T, tiling_order ORDER>
__global__ void __launch_bounds__(tiling_threads) tiling_kernel(tiling_source<T> from, int units, F format) {
  using R = real_t<T>;
  constexpr int N = F::reals;
  __shared__ uint32_t max_scratch[tiling_threads];
  __shared__ R sum_scratch[tiling_threads];
  const tiling_part<T, N, ORDER> part(from);
  auto sum = [](R a, R b) { return a + b; };
  uint32_t largest = 0;
  R norm2 = 0;
  for (int u = part.unit; u < units; u += part.stride) {
    R v[N];
    part.load(u, v);
#pragma unroll
    for (int i = 0; i < N; i++) {
      largest = greater(largest, magnitude(v[i]));
      if (F::need_norm) norm2 = fused(v[i], v[i], norm2);
    }
  }
  largest = over_row<ORDER>(largest, max_scratch, [](uint32_t a, uint32_t b) { return greater(a, b); });
  const int exponent = F::need_norm ? column_exponent<R>(largest) : 0;
  if (F::need_norm && block_any(exponent != 0)) { /* squares may leave the range */
    const R up = exponent_scale<R>(exponent);
    norm2 = 0;
    for (int u = part.unit; u < units; u += part.stride) {
      R v[N];
      part.load(u, v);
#pragma unroll
      for (int i = 0; i < N; i++) norm2 = fused(v[i] * up, v[i] * up, norm2);
    }
  }
  if (F::need_norm) norm2 = over_row<ORDER>(norm2, sum_scratch, sum);
  const R scale = magnitude_finite<R>(largest) ? format.scale(largest, norm2, exponent) : R(1);
  const int64_t row = is_complex<T> ? 2 * part.row : part.row;
  if (part.unit == 0) {
    const R inverse = magnitude_finite<R>(largest) ? 1 / scale : R(NAN);
    format.scales[row] = inverse;
    if (is_complex<T>) format.scales[row + 1] = inverse;
  }
  for (int u = part.unit; u < units; u += part.stride) {
    R v[N];
    part.load(u, v);
#pragma unroll
    for (int i = 0; i < N; i++) v[i] *= scale;
#pragma unroll 1
    for (int i = 0; i < part.parts; i++) {
      format.store(v, row + i, u);
      turn(v);
    }
  }
}

/* An operand's sizes in reals, and in memory: its tiles, then its scales. */
struct tiling_shape {
  int64_t rows, k_tiles; /* whole tiles */
  int64_t tiles_bytes;   /* of all layers */
  int64_t bytes;
};
inline tiling_shape tiling_shape_of(batchqr_type type, batchqr_operand operand, int64_t rows, int64_t k,
                                    int64_t tile_reals, int64_t layers) {
  const bool complex = type == BATCHQR_C || type == BATCHQR_Z;
  const int64_t scale_bytes = type == BATCHQR_S || type == BATCHQR_C ? 4 : 8;
  tiling_shape s;
  s.rows = round_up(complex && operand != BATCHQR_OPERAND_B ? 2 * rows : rows, row_multiple);
  s.k_tiles = round_up(complex ? 2 * k : k, tile_reals) / tile_reals;
  s.tiles_bytes = layers * s.rows * s.k_tiles * tile_row_bytes;
  s.bytes = s.tiles_bytes + round_up(s.rows * scale_bytes, 256);
  return s;
}

template <class F, class T, tiling_order ORDER>
batchqr_status launch_tiling(const tiling_source<T> &from, const tiling_shape &shape, const F &format,
                             batchqr_stream stream) {
  const int64_t rows = is_complex<T> ? shape.rows / 2 : shape.rows;
  const int64_t blocks = rows / tiling_part<T, F::reals, ORDER>::block_rows;
  const int64_t units = shape.k_tiles * F::tile_reals / F::reals;
  return launch_kernel(tiling_kernel<F, T, ORDER>, static_cast<unsigned>(blocks), tiling_threads, 0, stream,
                       from, static_cast<int>(units), format);
}

/* T: that of the operand; b's complex numbers are taken as reals. */
template <class F, class T>
batchqr_status convert_operand(batchqr_operand operand, int64_t rows, int64_t k, const void *x, int64_t ld,
                               const tiling_shape &shape, const F &format, batchqr_stream stream) {
  using R = real_t<T>;
  constexpr int64_t few_rows = 4096; /* warps that fill the device */
  if (operand == BATCHQR_OPERAND_A)
    return launch_tiling<F, T, tiling_order::rows>({static_cast<const T *>(x), ld, rows, k}, shape, format,
                                                   stream);
  if (operand == BATCHQR_OPERAND_B && is_complex<T>)
    return convert_operand<F, R>(operand, rows, 2 * k, x, 2 * ld, shape, format, stream);
  const tiling_source<T> from = {static_cast<const T *>(x), ld, rows, k};
  return rows < few_rows ? launch_tiling<F, T, tiling_order::long_columns>(from, shape, format, stream)
                         : launch_tiling<F, T, tiling_order::columns>(from, shape, format, stream);
}

} // namespace bqr

#endif
