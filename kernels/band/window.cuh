/* SPDX-License-Identifier: BSD-3-Clause */
/* A window of rows of Z in the registers of a warp, which block reflectors are applied to. */
#ifndef BQR_KERNELS_BAND_WINDOW_CUH
#define BQR_KERNELS_BAND_WINDOW_CUH

#include "common/ptx/cp_async.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/simt/block.cuh"
#include "common/simt/fragment.cuh"
#include "scratch.cuh"

namespace bqr {

/* STAGES of a block: warps that work on groups of sweeps one behind the other. */
template <class S, int STAGES> struct back_shared {
  using shape = S;
  using T = typename S::type;
  static constexpr int stages = STAGES;
  static constexpr int most_warps = shape::most_warps(stages), most_teams = most_warps / stages;
  static constexpr int pairs = is_complex<T> ? 1 : 2; /* elements of Z that a thread has of 8 rows, in twos */
  static constexpr int tiles_of_v = shape::v_bytes() / int(sizeof(packed)),
                       tiles_of_y = shape::y_bytes() / int(sizeof(packed));
  struct rows {
    T pair[shape::high][pairs][warp_lanes][2];
  };

  /* Block reflectors: two come while one is at work, if there is room. */
  static constexpr int buffers =
      2 * stages * (shape::v_bytes() + shape::y_bytes()) + most_warps * static_cast<int>(sizeof(rows)) <=
              226 * 1024
          ? 2
          : 1;

  packed v[stages][buffers][tiles_of_v], y[stages][buffers][tiles_of_y];
  phase_barrier v_there[stages][buffers], y_there[stages][buffers];
  phase_barrier full[most_warps], empty[most_warps]; /* of `next` */
  rows next[1];                                      /* B rows for each warp, which come next */

  static size_t bytes(int warps) {
    return sizeof(back_shared) + sizeof(rows) * static_cast<size_t>(warps - 1);
  }
};

/* A warp has 16 columns of Z, or 8 of complex ones, in the order of the units' sums. */
template <class S, int STAGES> class window_rows {
protected:
  using T = typename S::type;
  using R = real_t<T>;
  using shape = S;
  using shared = back_shared<S, STAGES>;
  static constexpr int across = shape::across, high = shape::high, down = shape::down;

private:
  typename shared::rows &next_;
  const int n_;
  const int64_t ldz_;
  T *z_;         /* row 2 q of the lane's first column */
  bool mine_[2]; /* whether its columns are there */
  bool aligned_; /* twos of rows are, to their size */
  bool whole_;   /* and all of the warp's columns are there */

protected:
  R x_[down][4];

public:
  /* c: the warp's first column. */
  __device__ __forceinline__ window_rows(shared &s, int n, T *z, int64_t ldz, int64_t c, int64_t cols)
      : next_(s.next[warp_id()]), n_(n), ldz_(ldz) {
    c += lane_id() / 4;
    mine_[0] = c < cols;
    mine_[1] = c + 8 < cols;
    aligned_ = sizeof(T) < 16 && ldz % 2 == 0 && reinterpret_cast<uint64_t>(z) % (2 * sizeof(T)) == 0;
    whole_ = aligned_ && c - lane_id() / 4 + shape::columns <= cols;
    z_ = z + c * ldz + 2 * (lane_id() % 4);
  }
  /* Whether all of the B rows from `row` on are there, for all lanes. */
  __device__ __forceinline__ bool simple(int64_t row) const { return whole_ && row + shape::width <= n_; }
  /* f(pair, its elements, how many of them are there), of 8 rows from `row` on. */
  template <class F> __device__ __forceinline__ void each(int64_t row, F &&f) {
    const int64_t left = n_ - (row + 2 * (lane_id() % 4));
    const int there = left >= 2 ? 2 : left > 0 ? 1 : 0;
#pragma unroll
    for (int h = 0; h < shared::pairs; h++) f(h, z_ + row + (h == 1 ? 8 * ldz_ : 0), mine_[h] ? there : 0);
  }
  __device__ __forceinline__ void set(R (&x)[4], int h, const T (&pair)[2]) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
      x[2 * h + e] = real_part(pair[e]);
      if (is_complex<T>) x[2 + e] = imag_part(pair[e]);
    }
  }
  __device__ __forceinline__ void get(T (&pair)[2], const R (&x)[4], int h) {
#pragma unroll
    for (int e = 0; e < 2; e++) {
      if constexpr (is_complex<T>)
        pair[e] = T{x[e], x[2 + e]};
      else
        pair[e] = x[2 * h + e];
    }
  }
  /* The rows above those that move() reads at first, which no block reflector has changed yet. */
  __device__ __forceinline__ void load(int64_t row) {
#pragma unroll
    for (int i = 0; i < across; i++)
      each(row + 8 * i, [&](int h, const T *from, int there) {
        const T pair[2] = {there > 0 ? from[0] : zero<T>(), there > 1 ? from[1] : zero<T>()};
        set(x_[i + high], h, pair);
        if constexpr (shape::scale != 1) {
#pragma unroll
          for (int e = 0; e < 2; e++) x_[i + high][2 * h + e] *= shape::scale;
        }
      });
  }
  /* The first B rows, which are done. `last`: no block reflector will change them. */
  __device__ __forceinline__ void store(int64_t row, bool last) {
    if (shape::scale != 1 && last) {
#pragma unroll
      for (int i = 0; i < high; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) x_[i][e] *= 1 / shape::scale;
    }
    if (simple(row)) {
#pragma unroll
      for (int i = 0; i < high; i++)
#pragma unroll
        for (int h = 0; h < shared::pairs; h++) {
          T pair[2];
          get(pair, x_[i], h);
          write_two(z_ + row + 8 * i + (h == 1 ? 8 * ldz_ : 0), pair);
        }
      return;
    }
#pragma unroll
    for (int i = 0; i < high; i++)
      each(row + 8 * i, [&](int h, T *to, int there) {
        T pair[2];
        get(pair, x_[i], h);
        if (there > 0) to[0] = pair[0];
        if (there > 1) to[1] = pair[1];
      });
  }
  /* The same to the warp that needs them next. */
  __device__ __forceinline__ void hand_over(typename shared::rows &to) {
#pragma unroll
    for (int i = 0; i < high; i++)
#pragma unroll
      for (int h = 0; h < shared::pairs; h++) {
        T pair[2];
        get(pair, x_[i], h);
        write_two(to.pair[i][h][lane_id()], pair);
      }
  }
  /* Starts to copy the B rows from `row` on. */
  __device__ __forceinline__ void prefetch(int64_t row) {
    if (simple(row)) {
#pragma unroll
      for (int i = 0; i < high; i++)
#pragma unroll
        for (int h = 0; h < shared::pairs; h++)
          copy_async<sizeof(T) < 16 ? 2 * sizeof(T) : 16>(next_.pair[i][h][lane_id()],
                                                          z_ + row + 8 * i + (h == 1 ? 8 * ldz_ : 0));
      return;
    }
#pragma unroll
    for (int i = 0; i < high; i++)
      each(row + 8 * i, [&](int h, const T *from, int there) {
        T *to = next_.pair[i][h][lane_id()];
        copy_async_if<sizeof(T)>(there > 0, to, there > 0 ? from : z_);
        copy_async_if<sizeof(T)>(there > 1, to + 1, there > 1 ? from + 1 : z_);
      });
  }
  /* The window goes down by B rows, of which the last ones are in `next`, or zeros. */
  __device__ __forceinline__ void move(bool zeros) {
#pragma unroll
    for (int i = 0; i < across; i++)
#pragma unroll
      for (int e = 0; e < 4; e++) x_[i][e] = x_[i + high][e];
    if (zeros) {
#pragma unroll
      for (int i = across; i < down; i++)
#pragma unroll
        for (int e = 0; e < 4; e++) x_[i][e] = 0;
      return;
    }
#pragma unroll
    for (int i = across; i < down; i++)
#pragma unroll
      for (int h = 0; h < shared::pairs; h++) {
        T pair[2];
        read_two(pair, next_.pair[i - across][h][lane_id()]);
        set(x_[i], h, pair);
      }
  }
};

} // namespace bqr

#endif
