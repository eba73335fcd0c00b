/* SPDX-License-Identifier: BSD-3-Clause */
/* The products of a level's merges: the columns of both halves' vectors that deflation keeps, which are zero
 * in the other half or not (merge_counts), times the vectors of the secular equation. A block of threads
 * makes 128 x 128 elements on matrix units, a warp 64 x 32 of them, and 16 columns at a time are on their way
 * to shared memory. How many columns there are is known on the device alone: blocks beyond leave at once. */
#ifndef BQR_KERNELS_TRIDIAGONAL_MULTIPLY_CUH
#define BQR_KERNELS_TRIDIAGONAL_MULTIPLY_CUH

#include "common/simt/fragment.cuh"
#include "common/simt/product.cuh"
#include "merge.cuh"

namespace bqr {

template <class R> class merge_product {
public:
  static constexpr int tile = 128, threads = 256;

private:
  static constexpr int chunk = 16, stages = 4, piece = 16 / static_cast<int>(sizeof(R));
  static constexpr int down = 4, across = 4; /* products of 16 x 8 of a warp */
  /* From one column of the left operand, and of the right one, to the next: no bank conflicts. */
  static constexpr int left_ld = tile + (sizeof(R) == 8 ? 2 : 4), right_ld = chunk + 8;
  static constexpr int left_elements = chunk * left_ld, stage = left_elements + tile * right_ld;
  static constexpr int left_pieces = tile / piece, right_pieces = chunk / piece;
  static constexpr int left_each = chunk * left_pieces / threads, right_each = tile * right_pieces / threads;

public:
  static constexpr size_t bytes = sizeof(R) * stages * stage;

  /* q: the left operand's rows; columns[k]: which of its columns is number k. u: the right operand. Rows and
   * columns beyond count as zeros; packed: whether q's columns are aligned as pieces are. */
  __device__ __forceinline__ merge_product(R *memory, const matrix_view<R> &q, const int *columns,
                                           const matrix_view<R> &u, bool packed)
      : memory_(memory), q_(q), u_(u), columns_(columns), packed_(packed) {
#pragma unroll
    for (int x = 0; x < down; x++)
#pragma unroll
      for (int y = 0; y < across; y++)
#pragma unroll
        for (int i = 0; i < 4; i++) sum_[x][y][i] = 0;
  }

  __device__ __forceinline__ void run() {
    const int chunks = (u_.rows + chunk - 1) / chunk;
    find_columns(0);
    for (int s = 0; s < stages - 1; s++) load(s);
#pragma unroll 1
    for (int s = 0; s < chunks; s++) {
      copy_async_wait_groups<stages - 2>();
      block_sync();
      load(s + stages - 1);
      multiply(memory_ + s % stages * stage);
    }
    copy_async_wait();
  }

  /* f(element, row, column) */
  template <class F> __device__ __forceinline__ void each(F &&f) const {
    const int g = lane_id() / 4, q = lane_id() % 4;
#pragma unroll
    for (int y = 0; y < across; y++)
#pragma unroll
      for (int s = 0; s < 2; s++)
#pragma unroll
        for (int x = 0; x < down; x++)
#pragma unroll
          for (int h = 0; h < 2; h++)
            f(sum_[x][y][2 * h + s], row() + 16 * x + 8 * h + g, column() + 8 * y + 2 * q + s);
  }

private:
  __device__ __forceinline__ static int row() { return warp_id() % 2 * 64; }
  __device__ __forceinline__ static int column() { return warp_id() / 2 * 32; }

  /* Those of the left operand that this thread loads next. */
  __device__ __forceinline__ void find_columns(int first) {
#pragma unroll
    for (int i = 0; i < left_each; i++) {
      const int k = first + (thread_id() + i * threads) / left_pieces;
      next_[i] = k < u_.rows ? columns_[k] : -1;
    }
  }

  __device__ __forceinline__ void load(int number) {
    const int first = number * chunk;
    if (first < u_.rows) {
      R *to = memory_ + number % stages * stage;
#pragma unroll
      for (int i = 0; i < left_each; i++) {
        const int at = thread_id() + i * threads, r = at % left_pieces * piece;
        const bool some = next_[i] >= 0;
        load_piece(to + at / left_pieces * left_ld + r, q_.at(some ? r : 0, some ? next_[i] : 0),
                   some ? q_.rows - r : 0, packed_);
      }
      find_columns(first + chunk);
#pragma unroll
      for (int i = 0; i < right_each; i++) {
        const int at = thread_id() + i * threads, k = at % right_pieces * piece, c = at / right_pieces;
        const bool some = c < u_.cols && first + k < u_.rows;
        load_piece(to + left_elements + c * right_ld + k, u_.at(some ? first + k : 0, some ? c : 0),
                   some ? u_.rows - first - k : 0, true);
      }
    }
    copy_async_group();
  }
  /* The first `length` of a piece's elements, and zeros. */
  __device__ __forceinline__ static void load_piece(R *to, const R *from, int length, bool packed) {
    if (packed) {
      copy_async_part<16>(to, from, bytes_of(least(length, piece)));
    } else {
#pragma unroll
      for (int i = 0; i < piece; i++)
        copy_async_part<static_cast<int>(sizeof(R))>(to + i, i < length ? from + i : from,
                                                     bytes_of(i < length));
    }
  }
  __device__ __forceinline__ static int bytes_of(int elements) {
    return elements > 0 ? elements * static_cast<int>(sizeof(R)) : 0;
  }

  __device__ __forceinline__ void multiply(const R *from) {
    const int g = lane_id() / 4, q = lane_id() % 4;
    const R *left = from + row() + g, *right = from + left_elements + (column() + g) * right_ld + 2 * q;
#pragma unroll
    for (int k = 0; k < chunk; k += 8) {
      operand<R> b[across][2];
#pragma unroll
      for (int y = 0; y < across; y++) {
        R two[2];
        read_two(two, right + 8 * y * right_ld + k);
        b[y][0] = split(two[0]);
        b[y][1] = split(two[1]);
      }
#pragma unroll
      for (int x = 0; x < down; x++) {
        operand<R> a[4];
#pragma unroll
        for (int i = 0; i < 4; i++) a[i] = split(left[(k + 2 * q + i % 2) * left_ld + 16 * x + 8 * (i / 2)]);
#pragma unroll
        for (int y = 0; y < across; y++) multiply_add(sum_[x][y], a, b[y]);
      }
    }
  }

  R *memory_;
  const matrix_view<R> &q_, &u_;
  const int *columns_;
  bool packed_;
  int next_[left_each];
  R sum_[down][across][4];
};

/* What the blocks of a launch work on: tiles of rows of either half, and of the columns of u. */
struct merge_grid {
  int rows, columns;
};

/* to: the columns `column` .. column + u.cols - 1 of the products of all merges, blockIdx.y. In bands of 8
 * tiles of rows, along which tiles run first, so that those made at the same time read few columns of u. */
template <class R>
__global__ void __launch_bounds__(merge_product<R>::threads, 1)
    merge_multiply_kernel(merge_tree t, const __grid_constant__ merge_arrays<R> m, merge_grid grid,
                          matrix_view<R> from, matrix_view<R> u, int column, matrix_view<R> to, bool packed) {
  constexpr int tile = merge_product<R>::tile, band = 8;
  const int g = static_cast<int>(blockIdx.y), number = static_cast<int>(blockIdx.x);
  const merge_block b(t, g);
  const merge_counts c = m.counts[g];
  const int begin = number / (band * grid.columns) * band, height = least(2 * grid.rows - begin, band),
            at = number - begin * grid.columns;
  const int which = begin + at % height, half = which / grid.rows, first_column = at / height * tile;
  const int columns = least(c.roots - column, u.cols) - first_column;
  const int row = (half ? b.middle : b.first) + which % grid.rows * tile,
            rows = (half ? b.end : b.middle) - row;
  if (columns <= 0 || rows <= 0) return;
  /* The lower half's columns from a multiple of 4 on: those added are zero there. */
  const int skip = half ? c.lower / 4 * 4 : 0, terms = (half ? c.roots : c.upper) - skip;
  const matrix_view<R> left = from.part(row, 0, rows, t.n),
                       right = u.part(b.first + skip, first_column, terms, columns);
  merge_product<R> product(shared_memory<R>(), left, m.column + b.first + skip, right, packed);
  product.run();
  const int *places = m.place + b.first + column + first_column;
  product.each([&](R x, int i, int j) {
    if (i < rows && j < columns) *to.at(row + i, places[j]) = x;
  });
}

} // namespace bqr

#endif
