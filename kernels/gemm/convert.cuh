/* SPDX-License-Identifier: BSD-3-Clause */
/* Operands of large products into the tiles of gemm/multiply.cuh: rows are scaled by powers of two to what a
 * format asks for, and rows and k filled up with zeros to whole tiles.
 *
 * Complex products are real ones of twice the sizes: b and c are taken as they lie in memory, real and
 * imaginary parts in turn, and each row x + iy of op(a) becomes two rows of (x, -y) and (y, x). */
#ifndef BQR_KERNELS_GEMM_CONVERT_CUH
#define BQR_KERNELS_GEMM_CONVERT_CUH

#include "common/panel/columns.cuh"
#include "gemm.h"
#include "common/simt/launch.cuh"
#include "multiply.cuh"
#include "common/ptx/barrier.cuh"

namespace bqr {

/* An operand in memory. Rows follow each other there, or the entries of a row do. */
template <class T> struct tiling_source {
  const T *x;
  int64_t ld, rows, k;
  const int *done; /* NULL, or whether there is nothing to do */
};

/* How the threads of a block share rows: LANES rows to a warp, WARPS warps side by side, all others along k.
 * So many as reads and writes of whole sectors ask for, and so few long rows at a time that what is read
 * twice is found in the cache the second time. */
template <int THREADS, int LANES, int WARPS, bool COLUMNS, int KEPT = 0, int BLOCKS = 0> struct tiling_order {
  static constexpr int threads = THREADS, rows = LANES * WARPS;
  static constexpr int blocks = BLOCKS;               /* of a multiprocessor, at least; 0: not said */
  static constexpr int along_k = threads / rows;      /* threads that share a row */
  static constexpr int groups = along_k * LANES / 32; /* warps that do */
  static constexpr bool columns = COLUMNS;
  static constexpr int kept = KEPT; /* units of a thread that stay in registers, so that they are read once */
  __device__ __forceinline__ static int row() { return warp_id() % WARPS * LANES + lane_id() % LANES; }
  __device__ __forceinline__ static int group() { return warp_id() / WARPS; }
  __device__ __forceinline__ static int unit() { return group() * (32 / LANES) + lane_id() / LANES; }

  /* v combined over all threads that share a row. All threads of the block call it together. */
  template <class V, class F> __device__ __forceinline__ static V over_row(V v, V *scratch, F &&combine) {
#pragma unroll
    for (int d = 16; d >= LANES; d /= 2) v = combine(v, exchange(v, d));
    if (groups == 1) return v;
    block_sync();
    if (lane_id() < LANES) scratch[group() * rows + row()] = v;
    block_sync();
    v = scratch[row()];
#pragma unroll
    for (int g = 1; g < groups; g++) v = combine(v, scratch[g * rows + row()]);
    return v;
  }
};
using tiling_rows = tiling_order<256, 8, 4, false>;
using tiling_columns = tiling_order<256, 1, 8, true>;
template <class F> using tiling_long_columns = tiling_order<512, 1, 1, true, F::kept, F::kept ? 2 : 0>;

inline int64_t round_up(int64_t x, int64_t unit) { return (x + unit - 1) / unit * unit; }

/* A thread's part in an operand: of one of its rows, each `O::along_k`th unit of N reals of k. */
template <class T, int N, class O> struct tiling_part {
  using R = real_t<T>;
  static constexpr int parts = is_complex<T> ? 2 : 1, pack = 16 / sizeof(R);
  const R *x;      /* the row's */
  int64_t step, k; /* reals from one element of it to the next, and reals in all */
  int64_t row;
  bool wide; /* 16 bytes can be loaded at once */

  __device__ __forceinline__ tiling_part(const tiling_source<T> &from) {
    row = static_cast<int64_t>(blockIdx.x) * O::rows + O::row();
    x = reinterpret_cast<const R *>(from.x) + row * parts * (O::columns ? from.ld : 1);
    step = O::columns ? parts : from.ld * parts;
    k = row < from.rows ? from.k * parts : 0;
    wide = O::columns && reinterpret_cast<uintptr_t>(x) % 16 == 0;
  }

  /* v := the unit u, zeros past the end; of rows, (x, -y). */
  __device__ __forceinline__ void load(int u, R (&v)[N]) const {
    const int64_t first = static_cast<int64_t>(u) * N;
    if (wide && first + N <= k) {
#pragma unroll
      for (int i = 0; i < N; i += pack) load_pack(first + i, v + i);
    } else {
#pragma unroll
      for (int i = 0; i < N; i++) {
        const R *entry = x + (first + i) / parts * step + i % parts;
        v[i] = first + i < k ? (!O::columns && i % parts == 1 ? -*entry : *entry) : R(0);
      }
    }
  }

  /* f(real) for all of the row but the units that are kept, each thread a part of it, in any order. */
  template <class F> __device__ __forceinline__ void each(int units, F &&f) const {
    constexpr int64_t kept = O::kept * O::along_k;
    if (wide) {
      const int64_t packs = k / pack;
#pragma unroll 4
      for (int64_t p = kept * N / pack + O::unit(); p < packs; p += O::along_k) {
        R v[pack];
        load_pack(p * pack, v);
#pragma unroll
        for (int i = 0; i < pack; i++) f(v[i]);
      }
      if (kept * N < k)
        for (int64_t i = packs * pack + O::unit(); i < k; i += O::along_k) f(x[i]);
    } else {
      for (int u = O::unit() + kept; u < units; u += O::along_k) {
        R v[N];
        load(u, v);
#pragma unroll
        for (int i = 0; i < N; i++) f(v[i]);
      }
    }
  }

private:
  __device__ __forceinline__ void load_pack(int64_t at, R *v) const {
    const int4 bits = *reinterpret_cast<const int4 *>(x + at);
    memcpy(v, &bits, sizeof bits);
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

/* F, a format: `reals` of a unit; scales, the array of what undoes each row's scale; scale(largest magnitude,
 * squared norm of the row times 2^exponent, exponent), the scale; store(unit, row, number of the unit). A row
 * of complex numbers becomes two. A row that is not finite gets NaN for its scale, and so do then all of its
 * products. */
template <class F, class T, class O>
__global__ void __launch_bounds__(O::threads, O::blocks)
    tiling_kernel(tiling_source<T> from, int units, F format) {
  using R = real_t<T>;
  constexpr int N = F::reals;
  __shared__ uint32_t max_scratch[O::groups * O::rows];
  __shared__ R sum_scratch[O::groups * O::rows];
  if (from.done && *from.done) return;
  const tiling_part<T, N, O> part(from);
  R kept[O::kept + 1][N]; /* and the unit in work */
  auto each = [&](auto &&f) {
#pragma unroll
    for (int s = 0; s < O::kept; s++)
#pragma unroll
      for (int i = 0; i < N; i++) f(kept[s][i]);
    part.each(units, f);
  };
#pragma unroll
  for (int s = 0; s < O::kept; s++) part.load(O::unit() + s * O::along_k, kept[s]);
  uint32_t largest = 0;
  R norm2 = 0;
  each([&](R x) {
    largest = greater(largest, magnitude(x));
    if (F::need_norm) norm2 = fused(x, x, norm2);
  });
  largest = O::over_row(largest, max_scratch, [](uint32_t a, uint32_t b) { return greater(a, b); });
  const int exponent = F::need_norm ? column_exponent<R>(largest) : 0;
  if (F::need_norm && block_any(exponent != 0)) { /* squares may leave the range */
    const R up = exponent_scale<R>(exponent);
    norm2 = 0;
    each([&](R x) { norm2 = fused(x * up, x * up, norm2); });
  }
  if (F::need_norm) norm2 = O::over_row(norm2, sum_scratch, [](R a, R b) { return a + b; });
  const R scale = magnitude_finite<R>(largest) ? format.scale(largest, norm2, exponent) : R(1);
  const int64_t row = is_complex<T> ? 2 * part.row : part.row;
  if (O::unit() == 0) {
    const R inverse = magnitude_finite<R>(largest) ? 1 / scale : R(NAN);
    format.scales[row] = inverse;
    if (is_complex<T>) format.scales[row + 1] = inverse;
  }
  auto store = [&](R(&v)[N], int u) {
#pragma unroll
    for (int i = 0; i < N; i++) v[i] *= scale;
#pragma unroll 1
    for (int i = 0; i < part.parts; i++) {
      format.store(v, row + i, u);
      turn(v);
    }
  };
#pragma unroll
  for (int s = 0; s < O::kept; s++) {
    const int u = O::unit() + s * O::along_k;
    if (u < units) store(kept[s], u);
  }
  for (int u = O::unit() + O::kept * O::along_k; u < units; u += O::along_k) {
    part.load(u, kept[O::kept]);
    store(kept[O::kept], u);
  }
}

/* An operand's sizes in reals, and in memory: its tiles, then its scales. */
struct tiling_shape {
  int64_t rows, k_tiles; /* whole tiles */
  int64_t tiles_bytes;   /* of all layers */
  int64_t bytes;
};
inline tiling_shape tiling_shape_of(batchqr_type type, bqr_gemm_operand operand, int64_t rows, int64_t k,
                                    int64_t tile_reals, int64_t layers) {
  const bool complex = type == BATCHQR_C || type == BATCHQR_Z;
  const int64_t scale_bytes = type == BATCHQR_S || type == BATCHQR_C ? 4 : 8;
  tiling_shape s;
  s.rows = round_up(complex && operand != BQR_GEMM_B ? 2 * rows : rows, row_multiple);
  s.k_tiles = round_up(complex ? 2 * k : k, tile_reals) / tile_reals;
  s.tiles_bytes = layers * s.rows * s.k_tiles * tile_row_bytes;
  s.bytes = s.tiles_bytes + round_up(s.rows * scale_bytes, 256);
  return s;
}

template <class F, class T, class O>
batchqr_status launch_tiling(const tiling_source<T> &from, const tiling_shape &shape, const F &format,
                             batchqr_stream stream) {
  const int64_t rows = is_complex<T> ? shape.rows / 2 : shape.rows;
  const int64_t units = shape.k_tiles * F::tile_reals / F::reals;
  return launch_kernel(tiling_kernel<F, T, O>, static_cast<unsigned>(rows / O::rows), O::threads, 0, stream,
                       from, static_cast<int>(units), format);
}

/* T: that of the operand; b's complex numbers are taken as reals. */
template <class F, class T>
batchqr_status convert_operand(bqr_gemm_operand operand, int64_t rows, int64_t k, const void *x, int64_t ld,
                               const tiling_shape &shape, const F &format, const int *done,
                               batchqr_stream stream) {
  constexpr int64_t long_column = 1 << 15; /* bytes */
  if (operand == BQR_GEMM_B && is_complex<T>)
    return convert_operand<F, real_t<T>>(operand, rows, 2 * k, x, 2 * ld, shape, format, done, stream);
  const tiling_source<T> from = {static_cast<const T *>(x), ld, rows, k, done};
  if (operand == BQR_GEMM_A) return launch_tiling<F, T, tiling_rows>(from, shape, format, stream);
  return k * static_cast<int64_t>(sizeof(T)) < long_column
             ? launch_tiling<F, T, tiling_columns>(from, shape, format, stream)
             : launch_tiling<F, T, tiling_long_columns<F>>(from, shape, format, stream);
}

} // namespace bqr

#endif
