/* SPDX-License-Identifier: BSD-3-Clause */
/* Tall members in chunks of rows, which stream through shared memory. */
#ifndef BQR_KERNELS_TSQR_TSQR_ROWS_CUH
#define BQR_KERNELS_TSQR_TSQR_ROWS_CUH

#include "tsqr.cuh"
#include "common/ptx/barrier.cuh"
#include "common/ptx/cp_async.cuh"

namespace bqr {
namespace tsqr {

/* A chunk of a member's rows. */
template <class T> struct chunk {
  T *a;
  int64_t ld, entry, number;
  int m, n, first, end; /* the member's sizes; the chunk's first row, and the one behind it */
  bool packs;
};

/* A chunk's rows, slab by slab through shared memory: while one is worked on, others are on their way. All of
 * a block copy a slab together, so that what is read of a column at a time is long; a warp has `rows` rows of
 * it. Slabs are stored by columns; the two ways of reading them are free of conflicts, or nearly so. */
template <class T> class row_stream {
  static constexpr int stages = 3, height = warps * product_rows<T>::rows;

public:
  static constexpr int rows = product_rows<T>::rows, ld = height + pack<T>::size;
  struct storage {
    alignas(16) T x[stages][N * ld];
  };

  /* Starts the first copies. All threads call it, and the others, together. */
  __device__ row_stream(storage &s, const chunk<T> &c) : slabs_(s.x), c_(c) {
    for (int stage = 0; stage < stages; stage++)
      for (int e = c.n * ld + thread_id(); e < N * ld; e += threads) slabs_[stage][e] = zero<T>();
    for (int stage = 0; stage + 1 < stages; stage++) start(c.first + stage * height, slabs_[stage]);
  }

  /* f(the warp's part of a slab, its first row); f may use it for what it likes. A barrier must follow before
   * the storage is used for something else. */
  template <class F> __device__ __forceinline__ void run(F &&f) {
    int turn = 0;
    for (int first = c_.first; first < c_.end; first += height) {
      copy_async_wait_groups<stages - 2>();
      block_sync();
      start(first + (stages - 1) * height, slabs_[turn == 0 ? stages - 1 : turn - 1]);
      const int mine = warp_id() * rows;
      if (first + mine < c_.end) f(slabs_[turn] + mine, first + mine);
      turn = turn + 1 == stages ? 0 : turn + 1;
    }
  }

private:
  /* Starts copying the rows from `first` on, with zeros behind the last one. */
  __device__ __forceinline__ void start(int first, T *slab) const {
    if (first < c_.end) {
      if (c_.packs)
        copy<pack<T>::size>(first, slab);
      else
        copy<1>(first, slab);
    }
    copy_async_group();
  }
  template <int UNIT> __device__ __forceinline__ void copy(int first, T *slab) const {
    constexpr int units = height / UNIT, columns = threads / units;
    const int row = thread_id() % units * UNIT, left = largest(0, least(UNIT, c_.end - first - row));
    const int column = thread_id() / units;
    const int64_t step = columns * c_.ld;
    const T *from = c_.a + (left > 0 ? first + row : first) + column * c_.ld;
    T *to = slab + row + column * ld;
#pragma unroll 4
    for (int j = column; j < c_.n; j += columns, from += step, to += columns * ld)
      copy_async_part<UNIT * sizeof(T), true>(to, from, left * static_cast<int>(sizeof(T)));
  }

  T (*slabs_)[N * ld];
  const chunk<T> &c_;
};

} // namespace tsqr
} // namespace bqr

#endif
