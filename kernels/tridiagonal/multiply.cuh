/* SPDX-License-Identifier: BSD-3-Clause */
/* The products of a level's merges: the columns of both halves' vectors that deflation keeps, which are zero
 * in the other half or not (merge_counts), times the vectors of the secular equation. A block of threads
 * makes 128 x 128 elements on matrix units, a warp 64 x 32 of them, while another one fetches. How many
 * columns there are is known on the device alone: blocks beyond leave at once. */
#ifndef BQR_KERNELS_TRIDIAGONAL_MULTIPLY_CUH
#define BQR_KERNELS_TRIDIAGONAL_MULTIPLY_CUH

#include "common/ptx/mbarrier.cuh"
#include "common/ptx/setmaxnreg.cuh"
#include "common/simt/fragment.cuh"
#include "common/simt/product.cuh"
#include "merge.cuh"

namespace bqr {

/* The vectors of a level's secular equations, some columns of each at a time, in tiles of 128 columns by 128
 * bytes of each, as they are wanted in shared memory: without bank conflicts where lanes (g, q) read entries
 * 2 q and 2 q + 1 of column g. */
template <class R> struct merge_factors {
  static constexpr int tile = 128, chunk = 128 / static_cast<int>(sizeof(R)), elements = tile * chunk;
  R *data;
  int chunks, tiles; /* of a merge */

  /* What XOR does to the number of a pair of entries. */
  BQR_INLINE static int turn(int column) { return column % (chunk / 8) * 4; }
  BQR_INLINE R *tile_at(int merge, int column_tile, int row_chunk) const {
    return data + ((static_cast<int64_t>(merge) * tiles + column_tile) * chunks + row_chunk) * elements;
  }
  BQR_INLINE R *at(int merge, int row, int column) const {
    const int pair = row % chunk / 2 ^ turn(column);
    return tile_at(merge, column / tile, row / chunk) + column % tile * chunk + 2 * pair + row % 2;
  }
  /* What of it products read. */
  BQR_INLINE static int padded(int rows) { return (rows + chunk - 1) / chunk * chunk; }
};

/* What a block multiplies: q's rows, of up to 128; columns[k]: which of q's columns is number k; those from
 * `last` on meet zeros. factors: `chunks` tiles, one behind the other. */
template <class R> struct merge_operands {
  matrix_view<R> q;
  const int *columns;
  int last;
  const R *factors;
  int chunks;
  bool packed; /* whole 16 bytes of q may be copied */
};

template <class R> class merge_product {
public:
  static constexpr int tile = 128, threads = 3 * tile;

private:
  using factors = merge_factors<R>;
  static constexpr int chunk = factors::chunk, stages = 6;
  static constexpr int down = 4, across = 4;                      /* products of 16 x 8 of a warp */
  static constexpr int left_ld = tile + (sizeof(R) == 8 ? 2 : 4); /* no bank conflicts */
  static constexpr int left_elements = chunk * left_ld, stage = left_elements + factors::elements;
  static constexpr int consumers = 2 * tile; /* threads */

public:
  static constexpr size_t bytes = sizeof(R) * stages * stage + 2 * stages * sizeof(phase_barrier);

  __device__ __forceinline__ merge_product(unsigned char *memory, const merge_operands<R> &x)
      : x_(x), stages_(reinterpret_cast<R *>(memory)),
        full_(reinterpret_cast<phase_barrier *>(stages_ + stages * stage)), empty_(full_ + stages) {
    if (thread_id() == 0)
      for (int s = 0; s < stages; s++) {
        full_[s].init(x.packed ? chunk : 1 + warp_lanes);
        empty_[s].init(consumers);
      }
    block_sync();
  }

  /* f(element, row, column) */
  template <class F> __device__ __forceinline__ void run(F &&f) {
    if (thread_id() < tile) {
      fewer_registers<40>();
      if (warp_id() == 0) fetch();
    } else {
      more_registers<232>();
      multiply(f);
    }
  }

private:
  __device__ __forceinline__ void fetch() {
    const int rows = least(x_.q.rows, tile), row_bytes = (rows * static_cast<int>(sizeof(R)) + 15) / 16 * 16,
              factor_bytes = factors::elements * static_cast<int>(sizeof(R));
    pipeline_state<stages> at;
    for (int c = 0; c < x_.chunks; c++) {
      R *to = stages_ + at.place * stage;
      phase_barrier &full = full_[at.place];
      /* A lane has a column; in double precision half of them none. */
      const int column = x_.columns[least(c * chunk + lane_id() % chunk, x_.last - 1)];
      empty_[at.place].wait(at.parity ^ 1);
      const int bytes = (x_.packed ? row_bytes : 0) + (lane_id() == 0 ? factor_bytes : 0);
      if (lane_id() < (x_.packed ? chunk : 1)) full.arrive_before_bytes(bytes);
      if (lane_id() == 0)
        full.copy_bulk(to + left_elements, x_.factors + static_cast<int64_t>(c) * factors::elements,
                       factor_bytes);
      if (x_.packed) {
        if (lane_id() < chunk) full.copy_bulk(to + lane_id() * left_ld, x_.q.at(0, column), row_bytes);
      } else {
        for (int k = 0; k < chunk; k++) {
          const R *from = x_.q.at(0, broadcast(column, k));
          for (int i = lane_id(); i < rows; i += warp_lanes)
            copy_async<static_cast<int>(sizeof(R))>(to + k * left_ld + i, from + i);
        }
        full.arrive_after_copies();
      }
      at.next();
    }
    copy_async_wait();
  }

  template <class F> __device__ __forceinline__ void multiply(F &&f) {
    const int g = lane_id() / 4, q = lane_id() % 4, number = warp_id() - 4, row = number % 2 * 64,
              column = number / 2 * 32, turn = factors::turn(g);
    R sum[down][across][4];
#pragma unroll
    for (int x = 0; x < down; x++)
#pragma unroll
      for (int y = 0; y < across; y++)
#pragma unroll
        for (int i = 0; i < 4; i++) sum[x][y][i] = 0;
    pipeline_state<stages> at;
#pragma unroll 1
    for (int c = 0; c < x_.chunks; c++) {
      const R *left = stages_ + at.place * stage + 2 * q * left_ld + row + g,
              *right = stages_ + at.place * stage + left_elements + (column + g) * chunk;
      full_[at.place].wait(at.parity);
#pragma unroll
      for (int k = 0; k < chunk; k += 8) {
        operand<R> b[across][2];
#pragma unroll
        for (int y = 0; y < across; y++) {
          R two[2];
          read_two(two, right + 8 * y * chunk + 2 * ((k / 2 ^ turn) + q));
          b[y][0] = split(two[0]);
          b[y][1] = split(two[1]);
        }
#pragma unroll
        for (int x = 0; x < down; x++) {
          operand<R> a[4];
#pragma unroll
          for (int i = 0; i < 4; i++) a[i] = split(left[(k + i % 2) * left_ld + 16 * x + 8 * (i / 2)]);
#pragma unroll
          for (int y = 0; y < across; y++) multiply_add(sum[x][y], a, b[y]);
        }
      }
      empty_[at.place].arrive();
      at.next();
    }
#pragma unroll
    for (int y = 0; y < across; y++)
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int x = 0; x < down; x++)
#pragma unroll
          for (int h = 0; h < 2; h++)
            f(sum[x][y][2 * h + s], row + 16 * x + 8 * h + g, column + 8 * y + 2 * q + s);
  }

  const merge_operands<R> &x_;
  R *stages_;
  phase_barrier *full_, *empty_;
};

/* Which columns of the vectors the factors are, tiles of rows of either half, and which of the products are
 * wanted. */
struct merge_panel {
  int column, columns, row_tiles;
  merge_range range;
};

/* The panel's columns of the products of all merges, blockIdx.y. In bands of 8 tiles of rows, along which
 * tiles run first, so that those made at the same time read few columns of the factors. */
template <class R>
__global__ void __launch_bounds__(merge_product<R>::threads, 1)
    merge_multiply_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, merge_panel panel,
                          merge_matrix<R> vectors, merge_factors<R> factors, merge_matrix<R> products,
                          bool packed) {
  constexpr int tile = merge_product<R>::tile, chunk = merge_factors<R>::chunk, band = 8;
  const int g = static_cast<int>(blockIdx.y), number = static_cast<int>(blockIdx.x);
  const merge_block b(t, g);
  const merge_counts c = m.counts[g];
  const int begin = number / (band * factors.tiles) * band, height = least(2 * panel.row_tiles - begin, band),
            at = number - begin * factors.tiles, column_tile = at / height;
  const int which = begin + at % height, half = which / panel.row_tiles, first_column = column_tile * tile;
  const int columns = least(c.roots - panel.column, panel.columns) - first_column;
  const int row = (half ? b.middle : b.first) + which % panel.row_tiles * tile,
            rows = (half ? b.end : b.middle) - row;
  if (columns <= 0 || rows <= 0) return;
  /* Roots ascend, and so do their places. */
  const int *places = m.place + b.first + panel.column + first_column;
  if (places[0] - b.first >= panel.range.end ||
      places[least(columns, tile) - 1] - b.first < panel.range.first)
    return;
  /* Whole chunks: columns that do not count for a half are zero there. */
  const int skip = half ? c.lower / chunk : 0;
  const int chunks = merge_factors<R>::padded(half ? c.roots : c.upper) / chunk - skip;
  const matrix_view<R> to = products.of(t, g);
  const merge_operands<R> x = {vectors.of(t, g).part(row, 0, rows, t.n),
                               m.column + b.first + skip * chunk,
                               c.roots - skip * chunk,
                               factors.tile_at(g, column_tile, skip),
                               chunks,
                               packed};
  merge_product<R>(shared_memory<unsigned char>(), x).run([&](R y, int i, int j) {
    if (i < rows && j < columns && panel.range.has(places[j] - b.first)) *to.at(row + i, places[j]) = y;
  });
}

} // namespace bqr

#endif
