/* SPDX-License-Identifier: BSD-3-Clause */
/* Z := Q Z. Block reflectors are made for some groups of sweeps, and applied, until there are no more: in a
 * group by hops from the first on, groups from the last one on. Sweep j + 1 is to be applied before sweep j,
 * whose reflectors at hops h and h + 1 share rows with that of sweep j + 1 at hop h, and with no other later
 * one: so all of a group's at hop h may come before those at hop h + 1. */
#include "band.h"
#include "layout.cuh"
#include "scratch.cuh"
#include "common/matrix/view.cuh"
#include "common/ptx/cp_async.cuh"
#include "common/ptx/mbarrier.cuh"
#include "common/simt/block.cuh"
#include "common/simt/fragment.cuh"
#include "common/simt/launch_cluster.cuh"
#include "common/simt/product.cuh"

namespace {
using namespace bqr;

template <class T> __device__ __forceinline__ void put(packed *tile, T a, T b) {
  if constexpr (is_complex<T>) {
    tile[lane_id()] = pack(a.re, b.re);
    tile[warp_lanes + lane_id()] = pack(a.im, b.im);
  } else {
    tile[lane_id()] = pack(a, b);
  }
}

template <class T> struct back_args {
  int n, group, groups; /* the groups group, ..., group + groups - 1 */
  const T *v, *tau;
  char *blocks;
};

template <class T, int B> struct form_shared {
  static constexpr int K = block_shape<T, B>::sweeps;
  T v[K][B + 1], gram[K][K + 1], t[K][K + 1], tau[K];
};
constexpr int form_threads = 256;

/* blockIdx: hop, group. */
template <class T, int B>
__global__ void __launch_bounds__(form_threads) form_kernel(const __grid_constant__ back_args<T> p) {
  using shape = block_shape<T, B>;
  constexpr int K = shape::sweeps;
  form_shared<T, B> &s = *shared_memory<form_shared<T, B>>();
  const int h = static_cast<int>(blockIdx.x), first = (p.group + static_cast<int>(blockIdx.y)) * K;
  if (first + h * B >= p.n) return;
  const int64_t at = reflector_storage<B>::before(p.n, h) + first;
  const int last = p.n - h * B; /* of the sweeps' numbers at this hop */
  for (int e = thread_id(); e < K * B; e += form_threads) {
    const int l = e / B, number = first + l;
    s.v[l][e % B] = number > 0 && number < last ? p.v[at * B + e] : zero<T>();
  }
  if (thread_id() < K) {
    const int number = first + thread_id();
    s.tau[thread_id()] = number > 0 && number < last ? p.tau[at + thread_id()] : zero<T>();
  }
  block_sync();
  /* v_i^H v_j, i < j */
  for (int e = thread_id(); e < K * K; e += form_threads) {
    const int i = e % K, j = e / K;
    s.t[i][j] = s.gram[i][j] = zero<T>();
    if (i >= j) continue;
    T sum[2] = {zero<T>(), zero<T>()};
    const T *a = s.v[i] + (j - i), *b = s.v[j];
    const int length = B - (j - i);
    int r = 0;
    for (; r + 1 < length; r += 2) {
      sum[0] = cmadd(a[r], b[r], sum[0]);
      sum[1] = cmadd(a[r + 1], b[r + 1], sum[1]);
    }
    if (r < length) sum[0] = cmadd(a[r], b[r], sum[0]);
    s.gram[i][j] = sum[0] + sum[1];
  }
  block_sync();
  if (thread_id() < K) { /* a row of T, which no other one needs */
    constexpr int step = 8;
    T *row = s.t[thread_id()];
    for (int j = 0; j < K; j++) {
      T sum[step] = {};
      for (int l = 0; l < j; l += step)
#pragma unroll
        for (int k = 0; k < step; k++) sum[k] = madd(row[l + k], s.gram[l + k][j], sum[k]);
#pragma unroll
      for (int d = step / 2; d > 0; d /= 2)
#pragma unroll
        for (int k = 0; k < d; k++) sum[k] = sum[k] + sum[k + d];
      if (thread_id() <= j) row[j] = thread_id() < j ? -(s.tau[j] * sum[0]) : s.tau[j];
    }
  }
  block_sync();
  char *block =
      p.blocks + (static_cast<int64_t>(blockIdx.y) * static_cast<int64_t>(gridDim.x) + h) * shape::bytes();
  const int row = lane_id() / 4, column = 2 * (lane_id() % 4);
  for (int i = 0; i < shape::down; i++) {
    packed *v = reinterpret_cast<packed *>(block + shape::v_before(i) * shape::parts * shape::unit);
    packed *y = reinterpret_cast<packed *>(block + shape::v_bytes() +
                                           shape::y_before(i) * shape::parts * shape::unit);
    for (int t = shape::first(i) + warp_id(); t < shape::across; t += num_warps()) {
      constexpr int tile = warp_lanes * shape::parts;
      if (t < shape::last(i)) {
        T x[2];
        for (int e = 0; e < 2; e++) {
          const int l = 8 * t + row, r = 8 * i + column + e - l;
          x[e] = r >= 0 && r < B ? conj(s.v[l][r]) : zero<T>();
        }
        put(v + (t - shape::first(i)) * tile, x[0], x[1]);
      }
      T sum[2] = {zero<T>(), zero<T>()};
      const int r = 8 * i + row, c = 8 * t + column;
      const int end = r < c + 1 ? r : c + 1;
#pragma unroll 4
      for (int l = r - B + 1 > 0 ? r - B + 1 : 0; l <= end; l++) {
        const T x = -s.v[l][r - l];
        sum[0] = madd(x, s.t[l][c], sum[0]);
        sum[1] = madd(x, s.t[l][c + 1], sum[1]);
      }
      put(y + (t - shape::first(i)) * tile, sum[0], sum[1]);
    }
  }
}

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
    unpack(b, part[lane_id()]);
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

constexpr int most_warps = 8, most_threads = most_warps * warp_lanes;
template <class T> constexpr int columns_of_warp = is_complex<T> ? 8 : 16;

template <class T, int B> struct back_shared {
  using shape = block_shape<T, B>;
  static constexpr int pairs = is_complex<T> ? 1 : 2; /* elements of Z that a thread has of 8 rows, in twos */
  packed v[shape::v_bytes() / sizeof(packed)], y[shape::y_bytes() / sizeof(packed)];
  T next[shape::high][pairs][most_threads][2]; /* rows that come next */
  phase_barrier v_there, y_there;
};

template <class T, int B> class back_window {
  using R = real_t<T>;
  using shape = block_shape<T, B>;
  using shared = back_shared<T, B>;
  static constexpr int across = shape::across, high = shape::high, down = shape::down;

  shared &s_;
  const int n_;
  const int64_t ldz_;
  T *z_;         /* row 2 q of the lane's first column */
  bool mine_[2]; /* whether its columns are there */
  bool aligned_; /* twos of rows are, to their size */
  R x_[down][4];

public:
  __device__ __forceinline__ back_window(shared &s, int n, T *z, int64_t ldz, int64_t cols)
      : s_(s), n_(n), ldz_(ldz) {
    constexpr int of_warp = columns_of_warp<T>;
    const int64_t c = (int64_t(blockIdx.x) * num_warps() + warp_id()) * of_warp + lane_id() / 4;
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
  __device__ __forceinline__ void load(int64_t row) {
#pragma unroll
    for (int i = 0; i < down; i++)
      each(row + 8 * i, [&](int h, const T *from, int there) {
        const T pair[2] = {there > 0 ? from[0] : zero<T>(), there > 1 ? from[1] : zero<T>()};
        set(x_[i], h, pair);
      });
  }
  /* The window's first COUNT tiles. */
  template <int COUNT> __device__ __forceinline__ void store(int64_t row) {
#pragma unroll
    for (int i = 0; i < COUNT; i++)
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
  /* Starts to copy the B rows from `row` on. */
  __device__ __forceinline__ void prefetch(int64_t row) {
#pragma unroll
    for (int i = 0; i < high; i++)
      each(row + 8 * i, [&](int h, const T *from, int there) {
        T *to = s_.next[i][h][thread_id()];
        if (aligned_) {
          copy_async_part<sizeof(T) < 16 ? 2 * sizeof(T) : 16>(to, there ? from : z_,
                                                               there * static_cast<int>(sizeof(T)));
        } else {
          copy_async_if<sizeof(T)>(there > 0, to, there > 0 ? from : z_);
          copy_async_if<sizeof(T)>(there > 1, to + 1, there > 1 ? from + 1 : z_);
        }
      });
  }
  /* The window goes down by B rows, the last of which were prefetched. */
  __device__ __forceinline__ void move() {
    copy_async_wait();
#pragma unroll
    for (int i = 0; i < down; i++) {
      if (i < across) {
#pragma unroll
        for (int e = 0; e < 4; e++) x_[i][e] = x_[i + high][e];
      } else {
#pragma unroll
        for (int h = 0; h < shared::pairs; h++) {
          T pair[2];
          read_two(pair, s_.next[i - across][h][thread_id()]);
          set(x_[i], h, pair);
        }
      }
    }
  }
  /* w := V^H Z, transposed */
  __device__ __forceinline__ void project(R (&w)[across][4]) {
    row_sum<T> sum[across];
    static_for<down>([&](auto row) {
      constexpr int i = decltype(row)::value, first = shape::first(i), before = shape::v_before(i);
      const row_operand<T> a(x_[i]);
#pragma unroll
      for (int t = first; t < shape::last(i); t++)
        sum[t].add(a, s_.v + (before + t - first) * shape::parts * warp_lanes);
    });
#pragma unroll
    for (int t = 0; t < across; t++)
#pragma unroll
      for (int e = 0; e < 4; e++) w[t][e] = sum[t].get(e);
  }
  /* Z := Z - Y w, two tiles of rows at a time: sums depend on themselves. */
  __device__ __forceinline__ void update(const R (&w)[across][4]) {
    static_for<down / 2>([&](auto row) {
      constexpr int i = 2 * decltype(row)::value, first = shape::first(i), second = shape::first(i + 1),
                    before = shape::y_before(i), next = shape::y_before(i + 1);
      row_sum<T> sum[2];
#pragma unroll
      for (int t = first; t < across; t++) {
        const row_operand<T> a(w[t]);
        sum[0].add(a, s_.y + (before + t - first) * shape::parts * warp_lanes);
        if (t >= second) sum[1].add(a, s_.y + (next + t - second) * shape::parts * warp_lanes);
      }
#pragma unroll
      for (int e = 0; e < 4; e++) {
        x_[i][e] += sum[0].get(e);
        x_[i + 1][e] += sum[1].get(e);
      }
    });
  }
};

template <class T, int B>
__global__ void __launch_bounds__(most_threads, 1)
    back_kernel(const __grid_constant__ back_args<T> p, T *z, int64_t ldz, int64_t cols) {
  using shape = block_shape<T, B>;
  using shared = back_shared<T, B>;
  shared &s = *shared_memory<shared>();
  if (thread_id() == 0) {
    s.v_there.init(1);
    s.y_there.init(1);
    mbarrier_init_fence();
  }
  block_sync();
  back_window<T, B> window(s, p.n, z, ldz, cols);
  const int stride = shape::hops(p.n);
  auto copy = [&](bool y, int group, int h) {
    const char *from = p.blocks + (static_cast<int64_t>(group - p.group) * stride + h) *
                                      static_cast<int64_t>(shape::bytes());
    phase_barrier &there = y ? s.y_there : s.v_there;
    there.arrive_before_bytes(y ? shape::y_bytes() : shape::v_bytes());
    if (y)
      there.copy_bulk(s.y, from + shape::v_bytes(), shape::y_bytes());
    else
      there.copy_bulk(s.v, from, shape::v_bytes());
  };
  const int top = p.group + p.groups - 1;
  if (thread_id() == 0) {
    copy(false, top, 0);
    copy(true, top, 0);
  }
  uint32_t parity = 0;
  for (int g = top; g >= p.group; g--) {
    const int64_t row = int64_t(g) * shape::sweeps;
    const int hops = static_cast<int>((p.n - row + B - 1) / B);
    window.load(row);
    for (int h = 0; h < hops; h++, parity ^= 1) {
      const bool more = h + 1 < hops;
      const int next_h = more ? h + 1 : 0, next_g = more ? g : g - 1;
      if (more) window.prefetch(row + int64_t(h + 1) * B + shape::sweeps);
      real_t<T> w[shape::across][4];
      s.v_there.wait(parity);
      window.project(w);
      block_sync();
      if (thread_id() == 0 && next_g >= p.group) copy(false, next_g, next_h);
      s.y_there.wait(parity);
      window.update(w);
      block_sync();
      if (thread_id() == 0 && next_g >= p.group) copy(true, next_g, next_h);
      if (more) {
        window.template store<shape::high>(row + int64_t(h) * B);
        window.move();
      } else {
        window.template store<shape::down>(row + int64_t(h) * B);
      }
    }
  }
}
} // namespace

extern "C" {

batchqr_status bqr_band_back(batchqr_type type, int n, int width, void *memory, int64_t cols, void *z,
                             int64_t ldz, batchqr_stream stream) {
  if (n < 2 || cols == 0) return BATCHQR_SUCCESS;
  return for_band(type, width, [&](auto tag, auto b) {
    using T = typename decltype(tag)::type;
    constexpr int B = decltype(b)::value;
    using shape = block_shape<T, B>;
    const band_memory<T, B> m(memory, n, true, 0);
    /* fewer columns to a block where there are not enough for all multiprocessors */
    const int sms = device_attribute(cudaDevAttrMultiProcessorCount);
    int warps = 2;
    while (warps < most_warps && cols > int64_t(columns_of_warp<T>) * warps * sms) warps *= 2;
    const int64_t of_block = columns_of_warp<T> * warps;
    batchqr_status status = BATCHQR_SUCCESS;
    for (int end = shape::groups(n); end > 0 && !status; end -= shape::at_once) {
      const int group = end < shape::at_once ? 0 : end - shape::at_once, groups = end - group;
      const back_args<T> p = {n, group, groups, m.v, m.tau, static_cast<char *>(m.scratch)};
      status = launch_kernel(form_kernel<T, B>,
                             dim3(static_cast<unsigned>(shape::hops(n)), static_cast<unsigned>(groups)),
                             form_threads, sizeof(form_shared<T, B>), stream, p);
      if (!status)
        status = launch_kernel(back_kernel<T, B>, dim3(grid_for((cols + of_block - 1) / of_block)),
                               warps * warp_lanes, sizeof(back_shared<T, B>), stream, p, static_cast<T *>(z),
                               ldz, cols);
    }
    return status;
  });
}

batchqr_status bqr_band_prepare_back(batchqr_type type, int width) {
  return for_band(type, width, [&](auto tag, auto b) {
    using T = typename decltype(tag)::type;
    constexpr int B = decltype(b)::value;
    const batchqr_status status = prepare_kernel(form_kernel<T, B>, sizeof(form_shared<T, B>));
    return status ? status : prepare_kernel(back_kernel<T, B>, sizeof(back_shared<T, B>));
  });
}
}
