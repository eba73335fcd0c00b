/* SPDX-License-Identifier: BSD-3-Clause */
/* The Schur complement after a panel: a block to a tile on or below the diagonal, from which products of the
 * panel's rows are subtracted by FP64 matrix units, and which is written to both sides. */
#include "pivots_parts.cuh"
#include "pivots_piece.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/simt/block.cuh"
#include "common/simt/fragment.cuh"
#include "common/simt/launch.cuh"

namespace bqr {
namespace {

constexpr int threads = 128, depth = 32, granule = 16;

/* A block's four warps have a quarter of a tile each. */
template <class W> struct tile {
  static constexpr int size = is_complex<W> ? 32 : 64, quarter = size / 2;
  static constexpr int down = quarter / 16, across = quarter / 8; /* pieces of a warp */
  static constexpr int granules =
      depth * static_cast<int>(sizeof(W)) / granule; /* of a column of the panel */

  alignas(16) unsigned char factors[2][size][granules * granule];
  alignas(16) W left[size][size + 2]; /* a column after the other: a lane's entries are in different banks */

  /* Granules lie in a column so that lanes that read operands are in different banks. */
  __device__ __forceinline__ static int place(int column, int unit) {
    return (unit ^ (is_complex<W> ? column & 1 : (column & 1) << 2)) * granule;
  }
  /* Rows 8 step + 2 q and one more. */
  __device__ __forceinline__ void read(W (&v)[2], int side, int column, int step) const {
    const int q = lane_id() % 4;
    const unsigned char *const from = factors[side][column];
    if constexpr (is_complex<W>) {
#pragma unroll
      for (int s = 0; s < 2; s++)
        v[s] = *reinterpret_cast<const W *>(from + place(column, 8 * step + 2 * q + s));
    } else {
      read_two(v, reinterpret_cast<const W *>(from + place(column, 4 * step + q)));
    }
  }
};

/* Rows from `row` on of the panel's columns from `column` on. */
template <class W>
__device__ __forceinline__ void copy_factor(tile<W> &t, int side, const W *panel, int width, int row,
                                            int column, int columns) {
  using S = tile<W>;
  constexpr int each = granule / static_cast<int>(sizeof(W));
  const int unit = thread_id() % S::granules;
#pragma unroll
  for (int c = thread_id() / S::granules; c < S::size; c += threads / S::granules)
    copy_async_if<granule>(c < columns && row + unit * each < width, t.factors[side][c] + S::place(c, unit),
                           c < columns && row + unit * each < width
                               ? panel + (column + c) * int64_t(width) + row + unit * each
                               : panel);
}

template <class W>
__global__ void __launch_bounds__(threads, 3)
    pivots_complement_kernel(const __grid_constant__ bqr_pivots p, int panel, int tiles) {
  using S = tile<W>;
  constexpr int size = S::size, columns_at_once = threads / size;
  S &s = *shared_memory<S>();
  const int before = p.n - panel * p.width, left = before - p.width;
  const int mine = thread_id() % size, first = thread_id() / size;
  const int g = lane_id() / 4, q = lane_id() % 4;
  const int top = warp_id() % 2 * S::quarter, side = warp_id() / 2 * S::quarter;
  for (int64_t t = blockIdx.x; t < p.count * tiles; t += gridDim.x) {
    const int64_t entry = t / tiles;
    if (p.states[entry].exact) continue;
    int i, j;
    place_of_tile(static_cast<int>(t % tiles), i, j);
    const int row = i * size, col = j * size, rows = least(size, left - row), cols = least(size, left - col);
    const W *factors = static_cast<const W *>(p.panel) + entry * p.width * p.n;
    const W *from = static_cast<const W *>(p.grams[panel % 2]) + entry * p.n * p.n;
    W *to = static_cast<W *>(p.grams[(panel + 1) % 2]) + entry * p.n * p.n;
    const int *slots = p.slots + entry * p.n;
    if (mine < rows) {
      const W *const of_row = from + slots[row + mine];
#pragma unroll 8
      for (int c = first; c < cols; c += columns_at_once)
        copy_async<sizeof(W)>(&s.left[c][mine], of_row + static_cast<int64_t>(slots[col + c]) * before);
    }
    piece_sums<W> sums[S::down][S::across];
    for (int k = 0; k < p.width; k += depth) {
      if (k > 0) block_sync();
      copy_factor(s, 0, factors, p.width, k, row, rows);
      if (i != j) copy_factor(s, 1, factors, p.width, k, col, cols);
      copy_async_wait();
      block_sync();
#pragma unroll 1
      for (int step = 0; step < depth / 8; step++) {
        W b[S::across][2];
#pragma unroll
        for (int y = 0; y < S::across; y++) s.read(b[y], i != j, side + 8 * y + g, step);
#pragma unroll
        for (int x = 0; x < S::down; x++) {
          W a[4];
#pragma unroll
          for (int h = 0; h < 2; h++) {
            W two[2];
            s.read(two, 0, top + 16 * x + 8 * h + g, step);
            a[2 * h] = two[0];
            a[2 * h + 1] = two[1];
          }
#pragma unroll
          for (int y = 0; y < S::across; y++) sums[x][y].add(a, b[y]);
        }
      }
    }
#pragma unroll
    for (int x = 0; x < S::down; x++)
#pragma unroll
      for (int y = 0; y < S::across; y++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          W &z = s.left[side + 8 * y + 2 * q + e % 2][top + 16 * x + 8 * (e / 2) + g];
          z = z - sums[x][y].get(e);
        }
    block_sync();
    if (mine < rows)
#pragma unroll 8
      for (int c = first; c < cols; c += columns_at_once)
        to[row + mine + static_cast<int64_t>(col + c) * left] = s.left[c][mine];
    if (mine < cols && i != j)
#pragma unroll 8
      for (int r = first; r < rows; r += columns_at_once)
        to[col + mine + static_cast<int64_t>(row + r) * left] = conj(s.left[mine][r]);
    block_sync();
  }
}

} // namespace

batchqr_status prepare_complements(batchqr_type type) {
  return for_type(type, [](auto tag) {
    using W = wide<typename decltype(tag)::type>;
    return prepare_kernel(pivots_complement_kernel<W>, sizeof(tile<W>));
  });
}

batchqr_status form_complements(batchqr_type type, const bqr_pivots *p, int panel, batchqr_stream stream) {
  return for_type(type, [&](auto tag) {
    using W = wide<typename decltype(tag)::type>;
    const int tiles = tiles_of(p->n - (panel + 1) * p->width, tile<W>::size);
    return launch_kernel(pivots_complement_kernel<W>, grid_for(p->count * tiles), threads, sizeof(tile<W>),
                         stream, *p, panel, tiles);
  });
}

} // namespace bqr
