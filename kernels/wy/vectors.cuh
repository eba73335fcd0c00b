/* SPDX-License-Identifier: BSD-3-Clause */
/* V of a block of reflectors, in global memory below the diagonal of a member's A, and how the matrix units
 * read it: in chunks of rows, whose order is free, so that a lane's rows are neighbours in memory. */
#ifndef BQR_KERNELS_WY_VECTORS_CUH
#define BQR_KERNELS_WY_VECTORS_CUH

#include "wy.h"
#include "common/matrix/member.cuh"
#include "common/simt/tile.cuh"

namespace bqr {

/* Which block of which reflectors. */
struct block_step {
  int op, side; /* of the problem */
  int first, width;
};

/* The rows and columns of V from the block's diagonal on; width 0: the member ends before. */
template <class T> struct vectors {
  const T *data;
  int64_t ld;
  int rows, width;

  /* An entry, with the ones and zeros of a unit lower trapezoid, and zeros beyond its ends. */
  __device__ __forceinline__ T at(int i, int j) const {
    if (j >= width || i >= rows || i < j) return zero<T>();
    return i == j ? one<T>() : data[i + j * ld];
  }
};

/* Entry i of the launch, for any operation that has reflectors. */
BQR_INLINE member member_of_step(const bqr_args &args, int64_t i, const block_step &step) {
  member x = member_of(args, i, step.op, step.side);
  if (step.op == BATCHQR_GEQRF) x.k = least(x.m, x.n);
  return x;
}

template <class T>
__device__ __forceinline__ vectors<T> vectors_of(const bqr_args &args, const member &x,
                                                 const block_step &step) {
  const int rows = step.op == BATCHQR_ORMQR && step.side == BATCHQR_RIGHT ? x.n : x.m;
  vectors<T> v = {nullptr, 0, rows - step.first, least(step.width, x.k - step.first)};
  if (!x.ok || v.width <= 0) return {nullptr, 0, 0, 0};
  v.ld = matrix_ld(args.a, x.id);
  v.data = matrix_data<T>(args, args.a, x.id) + step.first * (v.ld + 1);
  return v;
}

/* The rows of one or two products' k, dealt to the 4 lanes q of a column. */
template <class T> struct chunk {
  static constexpr int steps = sizeof(T) == 4 ? 2 : 1; /* products */
  static constexpr int rows = 8 * steps, each = rows / 4;

  /* The row of a lane's entry e: whole units of 16 bytes. */
  BQR_INLINE static constexpr int row(int q, int e) { return sizeof(T) == 16 ? q + 4 * e : each * q + e; }
  /* The entry that is number 2 q + s in product t. */
  BQR_INLINE static constexpr int entry(int t, int s) { return steps * s + t; }
};

} // namespace bqr

#endif
