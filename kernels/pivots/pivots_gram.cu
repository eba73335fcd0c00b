/* SPDX-License-Identifier: BSD-3-Clause */
/* A^H A, and what is subtracted from it: products X^H X in double precision by FP64 matrix units, a block to
 * a tile on or below the diagonal, which is written to both sides. */
#include "pivots_parts.cuh"
#include "common/panel/exponents.cuh"
#include "common/ptx/mma.cuh"
#include "common/simt/block.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int threads = 128, chunk = 16;

/* A block's four warps have a quarter of a tile each, of 16 x 8 pieces. */
template <class W> struct tile_shape {
  static constexpr int size = is_complex<W> ? 32 : 64, quarter = size / 2;
  static constexpr int down = quarter / 16, across = quarter / 8;
  static constexpr int parts = is_complex<W> ? 2 : 1; /* real, imaginary */
};

/* A chunk of `size` columns of X in shared memory: an element's row is the fastest index. Lanes read two
 * elements at once, of eight columns at a time: with this distance of columns they are in different banks. */
template <class W> struct chunk_memory {
  static constexpr int ld = chunk + 8;
  double x[tile_shape<W>::parts][tile_shape<W>::size][ld];

  __device__ __forceinline__ void set(int column, int row, double v) { x[0][column][row] = v; }
  __device__ __forceinline__ void set(int column, int row, complex_double v) {
    x[0][column][row] = v.re;
    x[1][column][row] = v.im;
  }
  __device__ __forceinline__ void get(double (&v)[2], int part, int column, int row) const {
    const double2 two = *reinterpret_cast<const double2 *>(&x[part][column][row]);
    v[0] = two.x;
    v[1] = two.y;
  }
};

/* X: rows x cols. */
template <class T> struct factor {
  const T *x;
  int64_t ld;
  int rows, cols;
  double half, rest; /* what elements are multiplied by: powers of two */
};

/* A thread's elements of a chunk, on their way. */
template <class W> struct part {
  static constexpr int each = tile_shape<W>::size * chunk / threads;
  W v[each];

  template <class T> __device__ __forceinline__ void load(const factor<T> &f, int column, int row) {
#pragma unroll
    for (int i = 0; i < each; i++) {
      const int r = row + thread_id() % chunk, c = column + thread_id() / chunk + i * (threads / chunk);
      const bool there = r < f.rows && c < f.cols;
      const W x = there ? converted<W>(f.x[r + c * f.ld]) : zero<W>();
      v[i] = scaled(scaled(x, f.half), f.rest);
    }
  }
  __device__ __forceinline__ void store(chunk_memory<W> &to) const {
#pragma unroll
    for (int i = 0; i < each; i++)
      to.set(thread_id() / chunk + i * (threads / chunk), thread_id() % chunk, v[i]);
  }
};

/* A warp's sums: element (g + 8 h, 2 q + s) of a piece is [2 h + s], see common/simt/product.cuh. */
template <class W, bool SUBTRACTS> struct tile_sums {
  using S = tile_shape<W>;
  double c[S::parts][S::down][S::across][4] = {};

  __device__ __forceinline__ void add(const chunk_memory<W> &a, const chunk_memory<W> &b, int row, int col) {
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int k = 0; k < chunk; k += 8) {
      double x[S::parts][S::down][4], y[S::parts][S::across][2];
#pragma unroll
      for (int part = 0; part < S::parts; part++) {
#pragma unroll
        for (int i = 0; i < S::down; i++)
#pragma unroll
          for (int h = 0; h < 2; h++) {
            double two[2];
            a.get(two, part, row + 16 * i + 8 * h + g, k + 2 * q);
            x[part][i][2 * h] = SUBTRACTS ? -two[0] : two[0];
            x[part][i][2 * h + 1] = SUBTRACTS ? -two[1] : two[1];
          }
#pragma unroll
        for (int j = 0; j < S::across; j++) b.get(y[part][j], part, col + 8 * j + g, k + 2 * q);
      }
#pragma unroll
      for (int i = 0; i < S::down; i++)
#pragma unroll
        for (int j = 0; j < S::across; j++) {
          multiply(c[0][i][j], x[0][i], y[0][j]);
          if constexpr (is_complex<W>) {
            multiply(c[0][i][j], x[1][i], y[1][j]);
            multiply(c[1][i][j], x[0][i], y[1][j]);
            const double minus[4] = {-x[1][i][0], -x[1][i][1], -x[1][i][2], -x[1][i][3]};
            multiply(c[1][i][j], minus, y[0][j]);
          }
        }
    }
  }
  __device__ __forceinline__ static void multiply(double (&c)[4], const double (&a)[4],
                                                  const double (&b)[2]) {
    multiply_add(c[0], c[1], c[2], c[3], a[0], a[1], a[2], a[3], b[0], b[1]);
  }
  __device__ __forceinline__ void set(int i, int j, int e, W v) {
    c[0][i][j][e] = real_part(v);
    if constexpr (is_complex<W>) c[1][i][j][e] = imag_part(v);
  }
  __device__ __forceinline__ W at(int i, int j, int e) const {
    if constexpr (is_complex<W>)
      return {c[0][i][j][e], c[1][i][j][e]};
    else
      return c[0][i][j][e];
  }
};

/* X^H X's tile of rows from `row` and columns from `col` on. */
template <class T, class W, bool SUBTRACTS>
__device__ __forceinline__ void multiply_tile(tile_sums<W, SUBTRACTS> &sums, const factor<T> &f, int row,
                                              int col, chunk_memory<W> (&memory)[2]) {
  constexpr int quarter = tile_shape<W>::quarter;
  const int down = warp_id() % 2 * quarter, across = warp_id() / 2 * quarter;
  part<W> a, b;
  a.load(f, row, 0);
  b.load(f, col, 0);
  for (int k = 0; k < f.rows; k += chunk) {
    block_sync();
    a.store(memory[0]);
    b.store(memory[1]);
    block_sync();
    if (k + chunk < f.rows) {
      a.load(f, row, k + chunk);
      b.load(f, col, k + chunk);
    }
    sums.add(memory[0], memory[1], down, across);
  }
  block_sync();
}

/* f(row, column, i, j, e) for the thread's elements of the tile. */
template <class W, class F> __device__ __forceinline__ void for_sums(int row, int col, F &&f) {
  using S = tile_shape<W>;
  const int g = lane_id() / 4, q = lane_id() % 4;
  const int down = row + warp_id() % 2 * S::quarter, across = col + warp_id() / 2 * S::quarter;
#pragma unroll
  for (int i = 0; i < S::down; i++)
#pragma unroll
    for (int j = 0; j < S::across; j++)
#pragma unroll
      for (int e = 0; e < 4; e++) f(down + 16 * i + 8 * (e / 2) + g, across + 8 * j + 2 * q + e % 2, i, j, e);
}

/* Number `tile` of the tiles on or below the diagonal, row by row of them. */
__device__ __forceinline__ void place_of_tile(int tile, int &i, int &j) {
  i = static_cast<int>((sqrtf(8.0f * static_cast<float>(tile) + 1.0f) - 1.0f) * 0.5f);
  while (i * (i + 1) / 2 > tile) i--;
  while ((i + 1) * (i + 2) / 2 <= tile) i++;
  j = tile - i * (i + 1) / 2;
}

template <class W>
__device__ __forceinline__ void store_both(W *to, int64_t ld, int n, int i, int j, bool diagonal, W v) {
  if (i >= n || j >= n) return;
  to[i + j * ld] = v;
  if (!diagonal) to[j + i * ld] = conj(v);
}

template <class T>
__global__ void __launch_bounds__(threads)
    pivots_gram_kernel(const __grid_constant__ bqr_pivots p, int tiles) {
  using W = wide<T>;
  constexpr int size = tile_shape<W>::size;
  __shared__ chunk_memory<W> memory[2];
  for (int64_t t = blockIdx.x; t < p.count * tiles; t += gridDim.x) {
    const int64_t entry = t / tiles;
    const bqr_pivots_state &s = p.states[entry];
    int i, j;
    place_of_tile(static_cast<int>(t % tiles), i, j);
    const bool usable = s.magnitude > 0 && magnitude_finite<T>(s.magnitude);
    const int exponent = usable ? exponent_to<T>(s.magnitude, 0) : 0;
    const factor<T> f = {static_cast<const T *>(p.a[entry]),
                         p.lda[entry],
                         usable ? p.m : 0,
                         p.n,
                         times_power(1.0, exponent / 2),
                         times_power(1.0, exponent - exponent / 2)};
    tile_sums<W, false> sums;
    multiply_tile(sums, f, i * size, j * size, memory);
    W *to = static_cast<W *>(p.grams[0]) + entry * p.n * p.n;
    for_sums<W>(i * size, j * size, [&](int row, int col, int x, int y, int e) {
      store_both(to, p.n, p.n, row, col, i == j, sums.at(x, y, e));
    });
  }
}

/* The complement of the columns that are left after panel `panel`. */
template <class W>
__global__ void __launch_bounds__(threads)
    pivots_complement_kernel(const __grid_constant__ bqr_pivots p, int panel, int tiles) {
  constexpr int size = tile_shape<W>::size;
  __shared__ chunk_memory<W> memory[2];
  const int before = p.n - panel * p.width, left = before - p.width;
  for (int64_t t = blockIdx.x; t < p.count * tiles; t += gridDim.x) {
    const int64_t entry = t / tiles;
    if (p.states[entry].exact) continue;
    int i, j;
    place_of_tile(static_cast<int>(t % tiles), i, j);
    const factor<W> f = {
        static_cast<const W *>(p.panel) + entry * p.width * p.n, p.width, p.width, left, 1, 1};
    const W *from = static_cast<const W *>(p.grams[panel % 2]) + entry * p.n * p.n;
    W *to = static_cast<W *>(p.grams[(panel + 1) % 2]) + entry * p.n * p.n;
    const int *slots = p.slots + entry * p.n;
    tile_sums<W, true> sums;
    for_sums<W>(i * size, j * size, [&](int row, int col, int x, int y, int e) {
      if (row < left && col < left)
        sums.set(x, y, e, from[slots[row] + static_cast<int64_t>(slots[col]) * before]);
    });
    multiply_tile(sums, f, i * size, j * size, memory);
    for_sums<W>(i * size, j * size, [&](int row, int col, int x, int y, int e) {
      store_both(to, left, left, row, col, i == j, sums.at(x, y, e));
    });
  }
}

template <class T> int tiles_of(int n) {
  const int across = (n - 1) / tile_shape<wide<T>>::size + 1;
  return across * (across + 1) / 2;
}

} // namespace

batchqr_status prepare_products(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    const batchqr_status status = prepare_kernel(pivots_gram_kernel<T>, 0);
    return status ? status : prepare_kernel(pivots_complement_kernel<wide<T>>, 0);
  });
}

batchqr_status form_grams(batchqr_type type, const bqr_pivots *p, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int tiles = tiles_of<T>(p->n);
    return launch_kernel(pivots_gram_kernel<T>, grid_for(p->count * tiles), threads, 0, stream, *p, tiles);
  });
}

batchqr_status form_complements(batchqr_type type, const bqr_pivots *p, int panel, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int tiles = tiles_of<T>(p->n - (panel + 1) * p->width);
    return launch_kernel(pivots_complement_kernel<wide<T>>, grid_for(p->count * tiles), threads, 0, stream,
                         *p, panel, tiles);
  });
}

} // namespace bqr
