/* SPDX-License-Identifier: BSD-3-Clause */
/* Of a narrow product T^H V^H C, see wy_narrow.cu, what comes behind V^H C: the blocks' sums are added up and
 * multiplied by T. */
#ifndef BQR_KERNELS_WY_WY_NARROW_SUMS_CUH
#define BQR_KERNELS_WY_WY_NARROW_SUMS_CUH

#include "shift.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/griddepcontrol.cuh"
#include "common/simt/block.cuh"
#include "common/simt/product.cuh"
#include "common/simt/tile.cuh"

namespace bqr {
namespace narrow_products {

constexpr int part = 32; /* columns of V and of C of a warp that makes the sums */
constexpr int most_k = BQR_WY_NARROW;
constexpr int narrow = 8; /* columns of a block here */

struct shape {
  int rows, k, n; /* V is rows x k, C rows x n */
  int64_t ldv, ldc;
  int share;       /* rows of a block, a multiple of its step */
  const int *done; /* NULL, or whether there is nothing to do */
  bqr_wy_many many;
};
__device__ __forceinline__ bool is_done(const int *done) { return done && *done; }

/* to := op(T) S, k x n, with op(T) = T^H, or -T if `negative`; S is the sum of the `blocks` of the kernel
 * above, in tiles of `side`. T is upper triangular. A block has 8 columns, a warp half of the sums of one of
 * them, and then 16 rows of the product and half of its k: what counts is how few instructions there are. */
constexpr int many_threads = 512, many_warps = many_threads / warp_lanes;
constexpr int shares = many_warps / narrow, tops = most_k / 16, depth = most_k * tops / many_warps;

template <class T> struct multiply_storage {
  T s[shares][narrow][most_k + 4]; /* S by columns, in two parts */
  T c[tops][4][warp_lanes];
};

/* A lane's entries of op(T) without signs for products of 8 k from `first` on: rows g and g + 8 from `top`
 * on, k 2 q and 2 q + 1. Rows that there are not are other ones. */
template <class T, bool NEGATIVE> class triangle_rows {
  static constexpr int unit = NEGATIVE || sizeof(T) == 16 ? 1 : 2;
  struct alignas(unit * sizeof(T)) neighbours {
    T v[unit];
  };
  const T *from_[2];
  int64_t step_, next_;         /* to the next 8 k and to the next one */
  int to_diagonal_[2], to_end_; /* from the lane's first k on */

public:
  __device__ __forceinline__ triangle_rows(const T *t, int64_t ldt, int top, int first, int end)
      : step_(8 * (NEGATIVE ? ldt : 1)), next_(NEGATIVE ? ldt : 1),
        to_end_(end - first - 2 * (lane_id() % 4)) {
    const int k = first + 2 * (lane_id() % 4);
#pragma unroll
    for (int h = 0; h < 2; h++) {
      const int row = least(top + lane_id() / 4 + 8 * h, end - 1);
      from_[h] = t + (NEGATIVE ? row + k * ldt : k + row * ldt);
      to_diagonal_[h] = row - k;
    }
  }
  __device__ __forceinline__ void read(T (&x)[4], int l) const {
#pragma unroll
    for (int h = 0; h < 4; h += unit) {
      const int k = 8 * l + h % 2, rest = to_diagonal_[h / 2] - k;
      neighbours n = {};
      if (NEGATIVE ? rest <= 0 && k < to_end_ : rest >= 0)
        n = *reinterpret_cast<const neighbours *>(from_[h / 2] + l * step_ + h % 2 * next_);
#pragma unroll
      for (int i = 0; i < unit; i++) x[h + i] = i <= rest || NEGATIVE ? n.v[i] : zero<T>();
    }
  }
};

/* shift: `side` is 2 to its power. */
template <class T, bool NEGATIVE>
__global__ void __launch_bounds__(many_threads, 1)
    multiply_kernel(shape p, const T *sums, int blocks, int shift, const T *t, int64_t ldt, T *to,
                    int64_t ldto) {
  constexpr int unit = pack<T>::size, steps = depth / 8;
  constexpr bool early = sizeof(T) <= 8; /* T is read beside the sums */
  wait_for_previous();
  if (is_done(p.done)) return;
  auto &s = *shared_memory<multiply_storage<T>>();
  sums = shifted(sums, blockIdx.y, p.many.own);
  t = shifted(t, blockIdx.y, p.many.own);
  to = shifted(to, blockIdx.y, p.many.own);
  const int left = static_cast<int>(blockIdx.x) * narrow;
  const int g = lane_id() / 4, q = lane_id() % 4, I = warp_id() % tops, P = warp_id() / tops;
  const int top = 16 * I, first = depth * P;
  const int from = NEGATIVE ? top : 0, end = least(p.k, NEGATIVE ? p.k : top + 16); /* of the rows' k */
  const bool some = top < p.k && from < first + depth && first < end;
  const triangle_rows<T, NEGATIVE> rows(t, ldt, top, first, p.k);
  T x[early ? steps : 1][4];
  if (early && some) {
#pragma unroll
    for (int l = 0; l < steps; l++)
      if (first + 8 * l < end) rows.read(x[early ? l : 0], l);
  }
  {
    constexpr int at_once = 8;
    const int column = warp_id() % narrow, number = warp_id() / narrow, side = 1 << shift;
    const int down = ((p.k - 1) >> shift) + 1, across = ((p.n - 1) >> shift) + 1;
    const int64_t stride = static_cast<int64_t>(down * across) << 2 * shift, step = shares * stride;
    for (int i = unit * lane_id(); i < p.k; i += unit * warp_lanes) {
      const T *at = sums + number * stride + ((left >> shift) * down + (i >> shift)) * (side << shift) +
                    (i & side - 1) + (((left & side - 1) + column) << shift);
      pack<T> sum = {};
      for (int b = number; b < blocks; b += shares * at_once) {
        pack<T> of[at_once];
#pragma unroll
        for (int l = 0; l < at_once; l++, at += step) {
          of[l] = {};
          if (b + shares * l < blocks) of[l] = *reinterpret_cast<const pack<T> *>(at);
        }
#pragma unroll
        for (int l = 0; l < at_once; l++)
#pragma unroll
          for (int e = 0; e < unit; e++) sum.v[e] += of[l].v[e];
      }
      *reinterpret_cast<pack<T> *>(&s.s[number][column][i]) = sum;
    }
  }
  block_sync();
  T c[4] = {zero<T>(), zero<T>(), zero<T>(), zero<T>()};
  if (some) {
#pragma unroll
    for (int l = 0; l < steps; l++) {
      const int k = first + 8 * l;
      if (k >= end) break;
      if (!early) rows.read(x[0], l);
      operand<T> a[4], b[2];
#pragma unroll
      for (int h = 0; h < 4; h++) a[h] = split(NEGATIVE ? -x[early ? l : 0][h] : conj(x[early ? l : 0][h]));
#pragma unroll
      for (int h = 0; h < 2; h++) {
        const int row = k + 2 * q + h;
        b[h] = split(row < p.k ? s.s[0][g][row] + s.s[1][g][row] : zero<T>());
      }
      multiply_add(c, a, b);
    }
  }
  if (P > 0)
#pragma unroll
    for (int h = 0; h < 4; h++) s.c[I][h][lane_id()] = c[h];
  block_sync();
  if (P > 0) return;
#pragma unroll
  for (int h = 0; h < 4; h++) {
    const int i = top + g + 8 * (h / 2), j = left + 2 * q + h % 2;
    if (i < p.k && j < p.n) to[i + j * ldto] = c[h] + s.c[I][h][lane_id()];
  }
}

} // namespace narrow_products
} // namespace bqr

#endif
