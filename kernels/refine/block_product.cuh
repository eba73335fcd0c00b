/* SPDX-License-Identifier: BSD-3-Clause */
/* Products of a member's matrices of up to N rows and columns by one block, on matrix units for double
 * precision: element (i, j) is the sum over k of line i of the left operand times line j of the right one.
 * 16 elements of each line stream through shared memory at a time. A warp has 32 or 48 x 32 elements of the
 * sum in registers until all are done, so that the sum may take an operand's place. */
#ifndef BQR_KERNELS_REFINE_BLOCK_PRODUCT_CUH
#define BQR_KERNELS_REFINE_BLOCK_PRODUCT_CUH

#include "common/matrix/member.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mma.cuh"
#include "common/simt/block.cuh"

namespace bqr {

constexpr int product_depth = 16, product_cols = 32;
/* Of a warp; so that warps of all blocks of a multiprocessor are evenly divided among its schedulers. */
template <int N> constexpr int product_rows = N == 96 ? 48 : 32;
template <int N> constexpr int product_warps = (N / product_rows<N>)*(N / product_cols);

/* Element k of line l is data[l * ld + k] if ALONG, else data[l + k * ld]. PACKED: of 16 bytes that begin
 * with an even element all are aligned. */
template <class S, bool ALONG, bool PACKED> struct product_lines {
  using type = S;
  static constexpr bool along = ALONG, packed = PACKED;
  const S *data;
  int64_t ld;
  int lines, length;
};

/* What shared memory has of up to N lines. Both ways fragments are free of bank conflicts. */
template <class LINES, int N> struct staged_lines {
  using S = typename LINES::type;
  static constexpr int size = static_cast<int>(sizeof(S)), threads = product_warps<N> * warp_lanes;
  static constexpr bool along = LINES::along;
  static constexpr int ld = along ? product_depth + 4 : N + 32 / size;

  /* Starts copying 16 elements of each line, from the `first` on; zeros beyond the last line and element. */
  static __device__ __forceinline__ void fetch(S *to, const LINES &from, int first) {
    if (LINES::packed ||
        (reinterpret_cast<uint64_t>(from.data) | static_cast<uint64_t>(from.ld) * sizeof(S)) % 16 == 0)
      copy<16 / size>(to, from, first);
    else
      copy<1>(to, from, first);
  }

  /* This lane's part of 8 elements from `k` on of 4 COUNT lines from `line` on. */
  template <int COUNT>
  static __device__ __forceinline__ void load(double (&x)[COUNT], const S *from, int line, int k) {
    const int l = line + lane_id() / 4, at = k + lane_id() % 4;
#pragma unroll
    for (int e = 0; e < COUNT; e++)
      x[e] = static_cast<double>(along ? from[(l + e / 2 * 8) * ld + at + e % 2 * 4]
                                       : from[(at + e % 2 * 4) * ld + l + e / 2 * 8]);
  }

private:
  template <int UNIT> static __device__ __forceinline__ void copy(S *to, const LINES &from, int first) {
    constexpr int row = (along ? product_depth : N) / UNIT; /* units of what lies side by side */
    constexpr int count = N * product_depth / UNIT, step = threads / row;
    static_assert(threads % row == 0 && count % threads == 0, "threads have as many units");
    const int place = thread_id() % row * UNIT, start = thread_id() / row;
    const int left = along ? from.length - first - place : from.lines - place,
              others = along ? from.lines : from.length - first;
    const int bytes = left > 0 ? least(left, UNIT) * size : 0;
    const S *source =
        from.data + (along ? first + place + start * from.ld : place + (first + start) * from.ld);
#pragma unroll
    for (int i = 0; i < count / threads; i++) {
      const bool there = bytes > 0 && start + i * step < others;
      copy_async_part<UNIT * size>(to + (start + i * step) * ld + place, there ? source : from.data,
                                   there ? bytes : 0);
      source += step * from.ld;
    }
  }
};

/* Shared memory of a product, in doubles. */
template <int N, int STAGES> struct alignas(16) product_memory {
  static constexpr int elements = N * (product_depth + 4);
  double x[STAGES][2][elements];
};

template <int N> class block_product {
  static constexpr int tall = product_rows<N>, down = N / tall, I = tall / 16, J = product_cols / 8;

public:
  /* Barriers stand before and behind it. */
  template <int STAGES, class LEFT, class RIGHT>
  __device__ __forceinline__ void form(product_memory<N, STAGES> &m, const LEFT &left, const RIGHT &right) {
    form<false>(m, left, right);
  }
  /* Of an operand and itself. */
  template <int STAGES, class LINES>
  __device__ __forceinline__ void form(product_memory<N, STAGES> &m, const LINES &lines) {
    form<true>(m, lines, lines);
  }

  /* f(row, column, sum) for this thread's elements of the first rows and columns; it may change the sum. */
  template <class F> __device__ __forceinline__ void each(int rows, int cols, F &&f) {
    const int row = top() + lane_id() / 4, col = first_column() + lane_id() % 4 * 2;
#pragma unroll
    for (int i = 0; i < I; i++)
#pragma unroll
      for (int j = 0; j < J; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
          const int r = row + 16 * i + e / 2 * 8, c = col + 8 * j + e % 2;
          if (r < rows && c < cols) f(r, c, c_[i][j][e]);
        }
  }

private:
  template <bool SAME, int STAGES, class LEFT, class RIGHT>
  __device__ __forceinline__ void form(product_memory<N, STAGES> &m, const LEFT &left, const RIGHT &right) {
    using of_left = staged_lines<LEFT, N>;
    using of_right = staged_lines<RIGHT, N>;
    const auto left_of = [&](int s) { return reinterpret_cast<typename LEFT::type *>(m.x[s][0]); };
    const auto right_of = [&](int s) {
      return reinterpret_cast<typename RIGHT::type *>(m.x[s][SAME ? 0 : 1]);
    };
    const auto fetch = [&](int step) {
      of_left::fetch(left_of(step % STAGES), left, step * product_depth);
      if (!SAME) of_right::fetch(right_of(step % STAGES), right, step * product_depth);
      copy_async_group();
    };
    const int rows = left.lines - top(), cols = right.lines - first_column(),
              steps = (left.length - 1) / product_depth + 1;
#pragma unroll
    for (int i = 0; i < I; i++)
#pragma unroll
      for (int j = 0; j < J; j++)
#pragma unroll
        for (int e = 0; e < 4; e++) c_[i][j][e] = 0;
    block_sync();
#pragma unroll
    for (int i = 0; i < STAGES - 1; i++) fetch(i); /* beyond the last, too: groups are counted */
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
      copy_async_wait_groups<STAGES - 2>();
      block_sync();
      fetch(step + STAGES - 1);
      if (rows <= 0 || cols <= 0) continue;
#pragma unroll
      for (int k = 0; k < product_depth; k += 8) {
        double a[I][4], b[J][2];
#pragma unroll
        for (int i = 0; i < I; i++) of_left::load(a[i], left_of(step % STAGES), top() + 16 * i, k);
#pragma unroll
        for (int j = 0; j < J; j++) of_right::load(b[j], right_of(step % STAGES), first_column() + 8 * j, k);
#pragma unroll
        for (int i = 0; i < I; i++)
#pragma unroll
          for (int j = 0; j < J; j++)
            if (16 * i < rows && 8 * j < cols)
              multiply_add(c_[i][j][0], c_[i][j][1], c_[i][j][2], c_[i][j][3], a[i][0], a[i][1], a[i][2],
                           a[i][3], b[j][0], b[j][1]);
      }
    }
    copy_async_wait();
    block_sync();
  }

  __device__ __forceinline__ static int top() { return warp_id() % down * tall; }
  __device__ __forceinline__ static int first_column() { return warp_id() / down * product_cols; }

  double c_[I][J][4];
};

} // namespace bqr

#endif
