/* SPDX-License-Identifier: BSD-3-Clause */
/* A^H A, and what is subtracted from it: products X^H X in double precision by FP64 matrix units, a block to
 * a tile on or below the diagonal, which is written to both sides. */
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

  template <bool SCALES, class T>
  __device__ __forceinline__ void load(const factor<T> &f, int column, int row) {
#pragma unroll
    for (int i = 0; i < each; i++) {
      const int r = row + thread_id() % chunk, c = column + thread_id() / chunk + i * (threads / chunk);
      const bool there = r < f.rows && c < f.cols;
      const W x = there ? converted<W>(f.x[r + c * f.ld]) : zero<W>();
      v[i] = SCALES ? scaled(scaled(x, f.half), f.rest) : x;
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
template <bool SCALES, class T, class W>
__device__ __forceinline__ void multiply_tile(tile_sums<W> &sums, const factor<T> &f, int row, int col,
                                              chunk_memory<W> (&memory)[2]) {
  constexpr int quarter = tile_shape<W>::quarter;
  const int down = warp_id() % 2 * quarter, across = warp_id() / 2 * quarter;
  part<W> a, b;
  a.template load<SCALES>(f, row, 0);
  b.template load<SCALES>(f, col, 0);
  for (int k = 0; k < f.rows; k += chunk) {
    block_sync();
    a.store(memory[0]);
    b.store(memory[1]);
    block_sync();
    if (k + chunk < f.rows) {
      a.template load<SCALES>(f, row, k + chunk);
      b.template load<SCALES>(f, col, k + chunk);
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
    multiply_tile<true>(sums, factor_of<T>(p, entry), i * size, j * size, memory);
    W *to = static_cast<W *>(p.grams[0]) + entry * p.n * p.n;
    for_sums<W>(i * size, j * size, [&](int row, int col, int x, int y, int e) {
      store_both(to, p.n, p.n, row, col, i == j, sums.c[x][y].get(e));
    });
  }
}

/* Of real members with many columns. */
template <class T>
__global__ void __launch_bounds__(large_tile<T>::threads)
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

/* Shared memory for what is left of a tile: a lane's entries of a piece are in different banks. */
template <class W> struct complement_memory {
  static constexpr int size = tile_shape<W>::size;
  chunk_memory<W> chunks[2];
  alignas(16) W left[size][size + 2]; /* a column after the other */
};

/* The complement of the columns that are left after panel `panel`. */
template <class W>
__global__ void __launch_bounds__(threads)
    pivots_complement_kernel(const __grid_constant__ bqr_pivots p, int panel, int tiles) {
  constexpr int size = tile_shape<W>::size, columns_at_once = threads / size;
  auto &memory = *shared_memory<complement_memory<W>>();
  const int before = p.n - panel * p.width, left = before - p.width;
  const int mine = thread_id() % size, first = thread_id() / size;
  for (int64_t t = blockIdx.x; t < p.count * tiles; t += gridDim.x) {
    const int64_t entry = t / tiles;
    if (p.states[entry].exact) continue;
    int i, j;
    place_of_tile(static_cast<int>(t % tiles), i, j);
    const int row = i * size, col = j * size, rows = least(size, left - row), cols = least(size, left - col);
    const factor<W> f = {
        static_cast<const W *>(p.panel) + entry * p.width * p.n, p.width, p.width, left, 1, 1};
    const W *from = static_cast<const W *>(p.grams[panel % 2]) + entry * p.n * p.n;
    W *to = static_cast<W *>(p.grams[(panel + 1) % 2]) + entry * p.n * p.n;
    const int *slots = p.slots + entry * p.n;
    if (mine < rows) {
      const W *const of_row = from + slots[row + mine];
#pragma unroll 8
      for (int c = first; c < cols; c += columns_at_once)
        copy_async<sizeof(W)>(&memory.left[c][mine], of_row + static_cast<int64_t>(slots[col + c]) * before);
    }
    tile_sums<W> sums;
    multiply_tile<false>(sums, f, row, col, memory.chunks);
    copy_async_wait();
    block_sync();
    for_sums<W>(0, 0, [&](int r, int c, int x, int y, int e) {
      memory.left[c][r] = memory.left[c][r] - sums.c[x][y].get(e);
    });
    block_sync();
    if (mine < rows)
      for (int c = first; c < cols; c += columns_at_once)
        to[row + mine + static_cast<int64_t>(col + c) * left] = memory.left[c][mine];
    if (mine < cols && i != j)
      for (int r = first; r < rows; r += columns_at_once)
        to[col + mine + static_cast<int64_t>(row + r) * left] = conj(memory.left[mine][r]);
    block_sync();
  }
}

/* Fewer columns fill smaller tiles better. */
constexpr int least_of_large_tiles = 96;

int tiles_of(int n, int size) {
  const int across = (n - 1) / size + 1;
  return across * (across + 1) / 2;
}

} // namespace

batchqr_status prepare_products(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using T = typename decltype(tag)::type;
    batchqr_status status = prepare_kernel(pivots_gram_kernel<T>, 0);
    if constexpr (!is_complex<T>)
      if (!status) status = prepare_kernel(pivots_gram_large_kernel<T>, large_tile<T>::shared_bytes);
    return status ? status
                  : prepare_kernel(pivots_complement_kernel<wide<T>>, sizeof(complement_memory<wide<T>>));
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

batchqr_status form_complements(batchqr_type type, const bqr_pivots *p, int panel, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using W = wide<typename decltype(tag)::type>;
    const int tiles = tiles_of(p->n - (panel + 1) * p->width, tile_shape<W>::size);
    return launch_kernel(pivots_complement_kernel<W>, grid_for(p->count * tiles), threads,
                         sizeof(complement_memory<W>), stream, *p, panel, tiles);
  });
}

} // namespace bqr
