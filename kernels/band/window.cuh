/* SPDX-License-Identifier: BSD-3-Clause */
/* A window of rows of Z in the registers of a warp, which block reflectors are applied to. */
#ifndef BQR_KERNELS_BAND_WINDOW_CUH
#define BQR_KERNELS_BAND_WINDOW_CUH

#include "scratch.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/simt/block.cuh"
#include "common/simt/fragment.cuh"

namespace bqr {

/* A warp has 16 columns of Z, or 8 of complex ones, as rows of a 16 x 8 operand: complex ones their real
 * parts in the upper eight rows, their imaginary parts in the lower ones. */
template <class T> struct row_operand {
  using R = real_t<T>;
  operand<R> a[4];
  __device__ __forceinline__ explicit row_operand(const R (&x)[4]) {
#pragma unroll
    for (int e = 0; e < 4; e++) a[e] = split_long(x[e]);
  }

private:
  static __device__ __forceinline__ operand<double> split_long(double x) { return split(x); }
  /* Longer by what a product loses on average where its sum is cut off, half an ulp or 0.72 2^-24 of it, and
   * the small part rounded to what the units read of it, which cut it off, too. */
  static __device__ __forceinline__ operand<float> split_long(float x) {
    const operand<float> parts = split(x);
    return {parts.hi, __float_as_uint(fmaf(x, 0x0.b8p-24f, __uint_as_float(parts.lo))) + 0x1000u};
  }
};

/* A sum of products with tiles. Units round sums toward zero, which shortens columns a little with each
 * block: in single precision every product is summed from zero, small terms first, and added outside (1000
 * columns' products with themselves were off by 500 eps without). Sums begin with zero, not with Z, whose
 * registers would be moved for each product: the units take operands in another order. */
template <class T> class row_sum {
  using R = real_t<T>;
  R c_[4];

  __device__ __forceinline__ void add_part(const operand<R> (&a)[4], const packed *part) {
    operand<R> b[2];
    unpack(b, part + lane_id());
    if constexpr (sizeof(R) == sizeof(float)) {
      R step[4] = {};
      multiply_add(step, a, b);
#pragma unroll
      for (int e = 0; e < 4; e++) c_[e] += step[e];
    } else {
      multiply_add(c_, a, b);
    }
  }

public:
  __device__ __forceinline__ row_sum() {
#pragma unroll
    for (int e = 0; e < 4; e++) c_[e] = 0;
  }
  __device__ __forceinline__ void add(const row_operand<T> &a, const packed *tile) {
    add_part(a.a, tile);
    if constexpr (is_complex<T>)
      add_part({negated(a.a[2]), negated(a.a[3]), a.a[0], a.a[1]}, tile + warp_lanes);
  }
  __device__ __forceinline__ R get(int e) const { return c_[e]; }
};

template <class T> constexpr int columns_of_warp = is_complex<T> ? 8 : 16;

/* STAGES of a block: warps that work on groups of sweeps one behind the other. */
template <class T, int B, int STAGES> struct back_shared {
  using shape = block_shape<T, B>;
  static constexpr int stages = STAGES;
  /* What registers allow: 255 for double precision, without which it spills. */
  static constexpr int most_warps = is_complex<T> && B == 32    ? 12
                                    : sizeof(T) == 4 && B == 32 ? 16
                                                                : 8,
                       most_teams = most_warps / stages;
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

template <class T, int B, int STAGES> class back_window {
  using R = real_t<T>;
  using shape = block_shape<T, B>;
  using shared = back_shared<T, B, STAGES>;
  static constexpr int across = shape::across, high = shape::high, down = shape::down;

  typename shared::rows &next_;
  const int n_;
  const int64_t ldz_;
  T *z_;         /* row 2 q of the lane's first column */
  bool mine_[2]; /* whether its columns are there */
  bool aligned_; /* twos of rows are, to their size */
  R x_[down][4];

public:
  /* c: the warp's first column. */
  __device__ __forceinline__ back_window(shared &s, int n, T *z, int64_t ldz, int64_t c, int64_t cols)
      : next_(s.next[warp_id()]), n_(n), ldz_(ldz) {
    c += lane_id() / 4;
    mine_[0] = c < cols;
    mine_[1] = c + 8 < cols;
    aligned_ = sizeof(T) < 16 && ldz % 2 == 0 && reinterpret_cast<uint64_t>(z) % (2 * sizeof(T)) == 0;
    z_ = z + c * ldz + 2 * (lane_id() % 4);
  }
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
  /* The rows above those that move() reads at first. */
  __device__ __forceinline__ void load(int64_t row) {
#pragma unroll
    for (int i = 0; i < across; i++)
      each(row + 8 * i, [&](int h, const T *from, int there) {
        const T pair[2] = {there > 0 ? from[0] : zero<T>(), there > 1 ? from[1] : zero<T>()};
        set(x_[i + high], h, pair);
      });
  }
  /* The first B rows, which are done. */
  __device__ __forceinline__ void store(int64_t row) {
#pragma unroll
    for (int i = 0; i < high; i++)
      each(row + 8 * i, [&](int h, T *to, int there) {
        T pair[2];
        get(pair, x_[i], h);
        if (aligned_ && there == 2) {
          write_two(to, pair);
        } else {
          if (there > 0) to[0] = pair[0];
          if (there > 1) to[1] = pair[1];
        }
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
#pragma unroll
    for (int i = 0; i < high; i++)
      each(row + 8 * i, [&](int h, const T *from, int there) {
        T *to = next_.pair[i][h][lane_id()];
        if (aligned_) {
          copy_async_part<sizeof(T) < 16 ? 2 * sizeof(T) : 16>(to, there ? from : z_,
                                                               there * static_cast<int>(sizeof(T)));
        } else {
          copy_async_if<sizeof(T)>(there > 0, to, there > 0 ? from : z_);
          copy_async_if<sizeof(T)>(there > 1, to + 1, there > 1 ? from + 1 : z_);
        }
      });
  }
  /* The window goes down by B rows, of which the last ones are in `next`, or zeros. */
  __device__ __forceinline__ void move(bool zeros) {
#pragma unroll
    for (int i = 0; i < down; i++) {
      if (i < across) {
#pragma unroll
        for (int e = 0; e < 4; e++) x_[i][e] = x_[i + high][e];
      } else {
#pragma unroll
        for (int h = 0; h < shared::pairs; h++) {
          T pair[2];
          read_two(pair, next_.pair[i - across][h][lane_id()]);
          if (zeros) pair[0] = pair[1] = zero<T>();
          set(x_[i], h, pair);
        }
      }
    }
  }
  /* w := V^H Z, transposed */
  __device__ __forceinline__ void project(R (&w)[across][4], const packed *v) {
    row_sum<T> sum[across];
    static_for<down>([&](auto row) {
      constexpr int i = decltype(row)::value, first = shape::first(i), before = shape::v_before(i);
      const row_operand<T> a(x_[i]);
#pragma unroll
      for (int t = first; t < shape::last(i); t++)
        sum[t].add(a, v + (before + t - first) * shape::parts * warp_lanes);
    });
#pragma unroll
    for (int t = 0; t < across; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) w[t][e] = sum[t].get(e);
  }
  /* Z := Z - Y w, two tiles of rows at a time: sums depend on themselves. */
  __device__ __forceinline__ void update(const R (&w)[across][4], const packed *y) {
    static_for<down / 2>([&](auto row) {
      constexpr int i = 2 * decltype(row)::value, first = shape::first(i), second = shape::first(i + 1),
                    before = shape::y_before(i), next = shape::y_before(i + 1);
      row_sum<T> sum[2];
#pragma unroll
      for (int t = first; t < across; t++) {
        const row_operand<T> a(w[t]);
        sum[0].add(a, y + (before + t - first) * shape::parts * warp_lanes);
        if (t >= second) sum[1].add(a, y + (next + t - second) * shape::parts * warp_lanes);
      }
#pragma unroll
      for (int e = 0; e < 4; e++) {
        x_[i][e] += sum[0].get(e);
        x_[i + 1][e] += sum[1].get(e);
      }
    });
  }
};

} // namespace bqr

#endif
