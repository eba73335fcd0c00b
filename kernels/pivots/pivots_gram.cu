/* SPDX-License-Identifier: BSD-3-Clause */
/* A^H A in double precision by FP64 matrix units, a block to a tile on or below the diagonal, which is
 * written to both sides. */
#include "pivots_parts.cuh"
#include "pivots_tile.cuh"
#include "common/matrix/view.cuh"
#include "common/simt/block.cuh"
#include "common/simt/fragment.cuh"
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
  __device__ __forceinline__ void get(double (&v)[2], int column, int row) const {
    read_two(v, &x[0][column][row]);
  }
  __device__ __forceinline__ void get(complex_double (&v)[2], int column, int row) const {
    double re[2], im[2];
    read_two(re, &x[0][column][row]);
    read_two(im, &x[1][column][row]);
    v[0] = {re[0], im[0]};
    v[1] = {re[1], im[1]};
  }
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
template <class W> struct tile_sums {
  using S = tile_shape<W>;
  piece_sums<W> c[S::down][S::across];

  __device__ __forceinline__ void add(const chunk_memory<W> &a, const chunk_memory<W> &b, int row, int col) {
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int k = 0; k < chunk; k += 8) {
      W x[S::down][4], y[S::across][2];
#pragma unroll
      for (int i = 0; i < S::down; i++)
#pragma unroll
        for (int h = 0; h < 2; h++) {
          W two[2];
          a.get(two, row + 16 * i + 8 * h + g, k + 2 * q);
          x[i][2 * h] = two[0];
          x[i][2 * h + 1] = two[1];
        }
#pragma unroll
      for (int j = 0; j < S::across; j++) b.get(y[j], col + 8 * j + g, k + 2 * q);
#pragma unroll
      for (int i = 0; i < S::down; i++)
#pragma unroll
        for (int j = 0; j < S::across; j++) c[i][j].add(x[i], y[j]);
    }
  }
};

/* X^H X's tile of rows from `row` and columns from `col` on. */
template <class T, class W>
__device__ __forceinline__ void multiply_tile(tile_sums<W> &sums, const factor<T> &f, int row, int col,
                                              chunk_memory<W> (&memory)[2]) {
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

template <class W>
__device__ __forceinline__ void store_both(W *to, int64_t ld, int n, int i, int j, bool diagonal, W v) {
  if (i >= n || j >= n) return;
  to[i + j * ld] = v;
  if (!diagonal) to[j + i * ld] = conj(v);
}

template <class T> __device__ __forceinline__ factor<T> factor_of(const bqr_pivots &p, int64_t entry) {
  const bqr_pivots_state &s = p.states[entry];
  const bool usable = s.magnitude > 0 && magnitude_finite<T>(s.magnitude);
  const int exponent = usable ? exponent_of_scale<T>(s.magnitude) : 0;
  return {static_cast<const T *>(p.a[entry]),
          p.lda[entry],
          usable ? p.m : 0,
          p.n,
          times_power(1.0, exponent / 2),
          times_power(1.0, exponent - exponent / 2)};
}

template <class T>
__global__ void __launch_bounds__(threads)
    pivots_gram_kernel(const __grid_constant__ bqr_pivots p, int tiles) {
  using W = wide<T>;
  constexpr int size = tile_shape<W>::size;
  __shared__ chunk_memory<W> memory[2];
  for (int64_t t = blockIdx.x; t < p.count * tiles; t += gridDim.x) {
    const int64_t entry = t / tiles;
    int i, j;
    place_of_tile(static_cast<int>(t % tiles), i, j);
    tile_sums<W> sums;
    multiply_tile(sums, factor_of<T>(p, entry), i * size, j * size, memory);
    W *to = static_cast<W *>(p.grams[0]) + entry * p.n * p.n;
    for_sums<W>(i * size, j * size, [&](int row, int col, int x, int y, int e) {
      store_both(to, p.n, p.n, row, col, i == j, sums.c[x][y].get(e));
    });
  }
}

/* Of real members with many columns. */
template <class T>
__global__ void __launch_bounds__(large_tile<T>::threads, 1)
    pivots_gram_large_kernel(const __grid_constant__ bqr_pivots p, int tiles) {
  constexpr int size = large_tile<T>::size;
  const int64_t n = p.n;
  for (int64_t t = blockIdx.x; t < p.count * tiles; t += gridDim.x) {
    const int64_t entry = t / tiles;
    int i, j;
    place_of_tile(static_cast<int>(t % tiles), i, j);
    double *to = static_cast<double *>(p.grams[0]) + entry * n * n;
    auto there = [&](int row, int col) { return row < n && (i == j ? col <= row : col < n); };
    large_tile<T>(factor_of<T>(p, entry), shared_memory<unsigned char>())
        .run(
            i * size, j * size,
            [&](int row, int col, double x) {
              if (there(row, col)) to[row + col * n] = x;
            },
            [&](int row, int col, double x) {
              if (there(row, col)) to[col + row * n] = x;
            });
  }
}

/* Fewer columns fill smaller tiles better. */
constexpr int least_of_large_tiles = 96;

} // namespace

batchqr_status prepare_products(batchqr_type type, int n) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(pivots_gram_kernel<T>, 0);
    if constexpr (!is_complex<T>)
      if (!status && n >= least_of_large_tiles)
        status = prepare_kernel(pivots_gram_large_kernel<T>, large_tile<T>::shared_bytes);
    return status;
  });
}

size_t shared_of_products(batchqr_type type, int n) {
  return for_type(type, [&](auto tag) -> size_t {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex<T>)
      if (n >= least_of_large_tiles) return large_tile<T>::shared_bytes;
    return 0;
  });
}

batchqr_status form_grams(batchqr_type type, const bqr_pivots *p, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (!is_complex<T>)
      if (p->n >= least_of_large_tiles) {
        const int tiles = tiles_of(p->n, large_tile<T>::size);
        return launch_kernel(pivots_gram_large_kernel<T>, grid_for(p->count * tiles), large_tile<T>::threads,
                             large_tile<T>::shared_bytes, stream, *p, tiles);
      }
    const int tiles = tiles_of(p->n, tile_shape<wide<T>>::size);
    return launch_kernel(pivots_gram_kernel<T>, grid_for(p->count * tiles), threads, 0, stream, *p, tiles);
  });
}

} // namespace bqr
